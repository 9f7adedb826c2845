//! The policy: read, bound to a workspace, and asked.
//!
//! [`PolicyDraft::parse`] reads a text and reports everything that is wrong with it; [`PolicyDraft::bind`] adds
//! the base policy, sees every pattern from the workspace, and gives a [`Policy`], the only thing
//! that can [`decide`]. One function decides for enforcement, explanation, examples and replay.

mod apply;
mod argv_pattern;
mod audit;
mod budget;
mod builtin;
mod commands;
mod decide;
mod draft;
mod expectation;
mod git_and_tests;
mod layer;
mod loaded;
mod model;
mod parse;
mod path_pattern;
mod policy_in_force;
mod profile;
mod restrictions;
mod risk_policy;
mod secrets;
mod source_location;
mod usage;

pub use apply::{AGENT_TOOL, APPLY_TOOL, ATTACH_TOOL, UNDO_TOOL};
pub use argv_pattern::{ArgumentPattern, ArgvPattern, TokenMatcher};
pub use audit::{AnchorRule, AuditRule, CheckpointRule, PayloadRetention};
pub use budget::Budgets;
pub use builtin::{builtin_names, builtin_text};
pub use commands::{
    CommandForm, CommandRule, DeniedToken, EffectRule, EnvironmentRule, ExecRule, FlagRule,
    ProgramRule, WorkDirectories,
};
pub use decide::{DecisionTrace, Judgement, PolicyCheck, PolicyInput, decide, written_by_words};
pub use draft::{BindRoots, ExtendedPolicy, LayerDraft, PolicyDraft};
pub use expectation::{DecisionExpectation, ExampleExpectation, PolicyExample, PolicyTest};
pub use git_and_tests::{GitRule, TestRule};
pub use layer::{LayerKind, is_layer};
pub use loaded::{LoadedPolicy, SourceText};
pub use model::{
    Constraint, DroppedRule, FetchRule, FileRule, HardDenyRule, PathRule, Policy, PolicyLayer,
    Quota, SandboxRule, ToolRule, UrlRule,
};
pub use path_pattern::PathPattern;
pub use profile::{Profile, ProfileRequirements, Unattended};
pub use restrictions::{
    ContentScope, EgressScope, HostJudgement, HostQuestion, HostScope, Invariants, ListingScope,
    PathScope, Restrictions,
};
pub use risk_policy::{Hazard, RiskPolicy};
pub use secrets::{PatternRule, RedactionRule, ReturnedMasks, SecretRule};
pub use source_location::SourceLocation;
pub use usage::{NetworkUsage, ToolUsage, Usage};
