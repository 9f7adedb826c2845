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
//! [`request_plan_approval`] before the first of its calls takes this path; nothing can run from a [`PlannedCall`].

mod approval;
mod connection;
mod plan;
mod redacted;
mod run;
mod stages;

pub use approval::{
    AnsweredCall, Approved, AwaitingAnswer, AwaitingApproval, BatchApproval, RoutedApproval,
};
pub use plan::{PlanApproval, PlannedCall, request_plan_approval};
pub use redacted::recorded_action;
pub use run::{
    AllowedBy, ConnectionRecord, FinishedCall, Operation, Permit, Preview, RunningCall, SavedUndo,
    UnconfinedPermit, run,
};
pub use stages::{
    AllowedCall, Cleared, Denied, Judged, Preflight, PreflightReport, Proposed, propose,
    recorded_decision,
};
