//! The policy: read, bound to a workspace, and asked.
//!
//! [`Draft::parse`] reads a text and reports everything that is wrong with it; [`Draft::bind`] adds
//! the base policy, sees every pattern from the workspace, and gives a [`Policy`], the only thing
//! that can [`decide`]. One function decides for enforcement, explanation, examples and replay.

mod apply;
mod base;
mod bounds;
mod decide;
mod draft;
mod model;
mod parse;
mod patterns;
mod profile;
mod usage;

pub use apply::APPLY;
pub use bounds::{Bounds, Reach, Scope, Sight};
pub use decide::{Case, Judgement, decide};
pub use draft::{Draft, Roots};
pub use model::{
    AuditRule, CommandRule, Constraint, Environment, Example, ExecRule, Expected, FetchRule,
    FileRule, FlagRule, Never, PathRule, Payloads, Policy, ProgramRule, Quota, SandboxRule, Source,
    Token, TokenPattern, ToolRule, UrlRule,
};
pub use parse::DIALECT;
pub use patterns::{ArgvPattern, PathPattern, WordPattern};
pub use profile::Profile;
pub use usage::{Usage, Used};
