//! The policy: read, bound to a workspace, and asked.
//!
//! [`Draft::parse`] reads a text and reports everything that is wrong with it; [`Draft::bind`] adds
//! the base policy, sees every pattern from the workspace, and gives a [`Policy`], the only thing
//! that can [`decide`]. One function decides for enforcement, explanation, examples and replay.

mod apply;
mod audit;
mod base;
mod bounds;
mod budget;
mod commands;
mod decide;
mod draft;
mod foreign;
mod layer;
mod model;
mod narrow;
mod parse;
mod patterns;
mod profile;
mod secrets;
mod stakes;
mod usage;
pub(crate) mod variables;

pub use apply::{APPLY, UNDO};
pub use audit::{AnchorRule, AuditRule, CheckpointRule, Payloads};
pub use base::{shipped, shipped_names};
pub use bounds::{Bounds, Contents, Invariants, Reach, Scope, Sight};
pub use budget::Budgets;
pub use commands::{
    CommandRule, EffectRule, Environment, ExecRule, FlagRule, Folders, Form, ProgramRule, Token,
    TokenPattern,
};
pub use decide::{Case, Check, Judgement, Trace, decide, written_by_words};
pub use draft::{Draft, Extended, LayerDraft, Roots};
pub use layer::{Layer, LayerKind, is_layer};
pub use model::{
    Constraint, Example, Expectation, Expected, FetchRule, FileRule, Lift, Never, PathRule, Policy,
    PolicyTest, Quota, SandboxRule, Source, ToolRule, UrlRule,
};
pub use narrow::{GitRule, TestRule};
pub use parse::DIALECT;
pub use patterns::{ArgvPattern, PathPattern, WordPattern};
pub use profile::{Profile, Requires, Unattended};
pub use secrets::{PatternRule, RedactionRule, Returned, SecretRule};
pub use stakes::{Hazard, Stakes};
pub use usage::{Usage, Used};
