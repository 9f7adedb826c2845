//! What the types of evidence make impossible. Each file in `compile_fail` is a way around the one
//! path; the compiler's answer beside it is the proof that there is none.

use capsule_core::lifecycle::{
    AllowedCall, AwaitingApproval, Cleared, Denied, Permit, Preflight, Proposed, UnconfinedPermit,
};
use static_assertions::assert_not_impl_any;

assert_not_impl_any!(Permit<'static>: Clone, Copy, serde::Serialize, Default);
assert_not_impl_any!(UnconfinedPermit<'static>: Clone, Copy, serde::Serialize, Default);
assert_not_impl_any!(Cleared: Clone, serde::Serialize, Default);
assert_not_impl_any!(AllowedCall: Clone, serde::Serialize, Default);
assert_not_impl_any!(AwaitingApproval: Clone, serde::Serialize, Default);
assert_not_impl_any!(Denied: Clone, serde::Serialize, Default);
assert_not_impl_any!(Preflight: Clone, serde::Serialize, Default);
assert_not_impl_any!(Proposed: Clone, serde::Serialize, Default);

/// FR-2, FR-3, APR-4: nothing runs from a call, and nothing that was denied can be cleared.
#[test]
fn there_is_no_way_around_the_path() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
