//! Evidence: the order of the one path, as types.
//!
//! ```text
//! ToolCall ─► Proposed ─► Preflight ─► Judged ─┬─► Allowed ─► Cleared ─► run(Permit) ─► Done
//!                │                             ├─► Asking  ─► Denied (nobody to ask yet)
//!                └─────── (not understood) ────┴─► Denied
//! ```
//!
//! Every step consumes the one before and writes its event before it returns, so there is no way to
//! a later step around an earlier one: the constructors are private to this module. A [`Permit`]
//! exists only inside [`run`], after the intent was written; it cannot be stored, cloned or
//! serialised. [`Denied`] has no method that leads on.

mod run;
mod stages;

pub use run::{Done, Permit, Prepared, run};
pub use stages::{
    Allowed, Asking, Cleared, Denied, Judged, Preflight, Proposed, Understanding, propose,
    recorded_action, recorded_decision,
};
