//! Evidence: the order of the one path, as types.
//!
//! ```text
//! ToolCall ─► Proposed ─► Preflight ─► Judged ─┬─► Allowed ──────────────────────► Cleared ─► run(Permit) ─► Done
//!                │                             ├─► Asking ─┬─► (a grant, a union) ──┘ ▲
//!                │                             │           ├─► Shown ─► Approved ─────┘
//!                │                             │           │     └────► Denied
//!                │                             │           └─► Denied (nobody is there)
//!                └─────── (not understood) ────┴─► Denied
//! ```
//!
//! Every step consumes the one before and writes its event before it returns, so there is no way to
//! a later step around an earlier one: the constructors are private to this module. A [`Permit`]
//! exists only inside [`run`], after the intent was written; it cannot be stored, cloned or
//! serialised. [`Denied`] has no method that leads on. What a plan will come to is asked about by
//! [`ask_whole`] before the first of its calls takes this path; nothing can run from an [`Upcoming`].

mod asking;
mod run;
mod seen;
mod stages;
mod whole;

pub use asking::{Answered, Approved, Asking, Lifted, Shown, Union};
pub use run::{Done, Permit, Prepared, Preserved, Preview, Unconfined, run};
pub use seen::recorded_action;
pub use stages::{
    Allowed, Cleared, Denied, Judged, Preflight, Proposed, Understanding, propose,
    recorded_decision,
};
pub use whole::{Upcoming, Whole, ask_whole};
