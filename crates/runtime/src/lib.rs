//! `runtime` is the only place where deciding and acting meet.
//!
//! [`submit`] is the one path that every call takes. A [`Run`] is what it takes it in: a policy, a
//! journal and a pair of hands, which are live ones or those of a recording.

mod changes;
mod check;
mod delivered;
mod hands;
mod law;
mod lint;
mod observe;
mod path;
pub mod plan;
mod replay;
mod run;
mod session;
mod stream;

pub use capsule_tools::{
    CATALOGUE, Cancel, Commands, Hush, Sink, Stream, Workspace, describe, signature_of,
};
pub use changes::{ChangesError, Subject, Waiting};
pub use check::{check_examples, explain, explain_recorded};
pub use delivered::Delivered;
pub use hands::{Hands, Live, Machine, Variables};
pub use law::{Law, LawError, Lookup, PolicySource, Text, read_text, real, shown_name};
pub use lint::lint;
pub use observe::{Note, Observed, Observer, Silent};
pub use path::submit;
pub use replay::{Cause, Difference, Divergence, ReplayError, Replayed, Source, replay};
pub use run::{Run, count, engine, tools_digest};
pub use session::{Finished, Session, Start};
pub use stream::MaskedStream;
