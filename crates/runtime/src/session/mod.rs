//! Sessions: runs that stay open while processes come and go.
//!
//! The calls of a session share one staged workspace, its grants, its budgets and its record. One process
//! works in it at a time, under a lock; what it leaves for the next one is a `SessionState`. No process of
//! ours stays in between.

mod approvals;
mod close;
mod enter;
mod error;
mod held;
mod identity;
mod recovery;
mod state;

pub use close::{EndedSession, end_session};
pub use enter::{OpenSession, SessionChoice, SessionRequest, open_sessions};
pub(crate) use enter::{SessionEntry, enter_session};
pub use error::SessionError;
pub use held::HeldSession;
pub(crate) use state::{ConversationState, SessionState};
