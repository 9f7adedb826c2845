//! Where a question goes: grants that are alive answer it, or a card is laid before a person.

mod card;
mod desk;
mod history;
mod live;
mod pending;
mod plan;
mod settle;

pub(crate) use desk::{Desk, Stored};
pub use desk::{Empty, Prompt, Reply, Said};
pub use live::{LiveGrant, clear_grants, live_grants, revoke_grant};
pub(crate) use pending::claim;
pub use pending::{Answered, Pending, PendingState, Say, not_waiting, this_moment};
pub(crate) use settle::{Settled, settle};
