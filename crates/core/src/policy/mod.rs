//! The policy: bound to a workspace, and asked.
//!
//! The texts are read by another crate, which gives [`PolicyRules`]; [`UnboundPolicy::bind`] adds the base policy, sees
//! every pattern from the workspace, and gives a [`Policy`], the only thing that can [`decide`]. One function decides for
//! enforcement, explanation, examples and replay.

mod apply;
mod argv_pattern;
mod audit;
mod binding;
mod budget;
mod commands;
mod decide;
mod expectation;
mod git_and_tests;
mod layer;
mod model;
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
pub use binding::{BASE_NAME, BindRoots, UnboundPolicy};
pub use budget::Budgets;
pub use commands::{
    CommandForm, CommandRule, DeniedToken, EffectRule, EnvironmentRule, ExecRule, FlagRule,
    ProgramRule, WorkDirectories,
};
pub use decide::{DecisionTrace, Judgement, PolicyCheck, PolicyInput, decide, written_by_words};
pub use expectation::{DecisionExpectation, ExampleExpectation, PolicyExample, PolicyTest};
pub use git_and_tests::{GitRule, TestRule};
pub use layer::LayerKind;
pub use model::{
    Constraint, DroppedRule, FetchRule, FileRule, HardDenyRule, HostRules, PathRule, Policy,
    PolicyLayer, PolicyRules, Quota, SandboxRule, ToolRule, UrlRule,
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
