//! `runtime` is the only place where deciding and acting meet.
//!
//! [`submit`] is the one path that every call takes. A [`Run`] is what it takes it in: a policy, a
//! journal and a pair of hands, which are live ones or those of a recording.

mod approval;
mod aside;
mod author;
mod changes;
mod check;
mod delivered;
mod erase;
mod feedback;
mod hands;
mod law;
mod layers;
mod layout;
mod less;
mod lint;
mod list;
mod observe;
mod path;
mod places;
pub mod plan;
mod replay;
mod resume;
mod run;
mod schema;
mod session;
mod source_text;
mod stake;
mod stream;
mod unconfined;
mod undo;

pub use approval::{
    Answered, Empty, LiveGrant, Pending, PendingState, Prompt, Reply, Said, Say, clear_grants,
    live_grants, not_waiting, revoke_grant, this_moment,
};
pub use aside::AsideError;
pub use author::{
    Answer, Authored, Changed, Fate, InText, Kept, LearnError, Learned, Mutant, Past, Proposal,
    RuleUse, Step, TooManyMutants,
};
pub use capsule_tools::{
    CATALOGUE, Cancel, Commands, Hush, Looked, Sink, Standing, Stream, Workspace, describe, edit,
    signature_of,
};
pub use changes::{Became, ChangesError, Diffs, Subject, Waiting};
pub use check::{
    Checked, Claim, check, check_claims, claims, explain, explain_call, explain_case, trace_case,
};
pub use delivered::Delivered;
pub use erase::{EraseError, Erased, Eraser, due};
pub use feedback::Feedback;
pub use hands::{Hands, Live, Machine, Variables};
pub use law::{Law, LawError, Lookup, PolicySource, Texts};
pub use layers::{LayerText, News};
pub use layout::{LayoutError, lay_out};
pub use lint::lint;
pub use observe::{Note, Observed, Observer, Silent};
pub use path::submit;
pub use places::real;
pub use replay::{Cause, Difference, Divergence, ReplayError, Replayed, Source, replay};
pub use resume::{ResumeError, Resumption};
pub use run::{Run, count, engine, tools_digest};
pub use schema::policy_schema;
pub use session::{Finished, OpenError, Session, Start};
pub use source_text::{Text, read_text, shown_name};
pub use stake::{Unapplied, unapplied};
pub use stream::MaskedStream;
pub use unconfined::runs_unconfined;
pub use undo::{Undoing, Undone};
