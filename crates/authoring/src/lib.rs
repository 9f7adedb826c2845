//! `authoring` advises authors of policies: it checks a policy's examples and tests, measures which rules
//! they cover, points out rules that are probably not meant, formats the text, gives its schema, and
//! proposes rules for recorded calls.
//!
//! It must not run a tool, start a program, read or write a file, or decide a call in any other way than
//! the policy itself does. It sees no tools, no sandbox and no runtime: the caller hands in the loaded
//! policy ([`capsule_policy::LoadedPolicy`]) and facts about the tools
//! ([`capsule_core::tool::ToolSet`]), and the caller writes what is proposed.

#![forbid(unsafe_code)]

mod check;
mod coverage;
mod editable_policy;
mod format;
mod learn;
mod lint;
mod mutation;
mod policy_text;
mod recorded_calls;
mod schema;

pub use check::{
    CheckedAssertion, PolicyAssertion, assertion_diagnostics, assertions, check_assertions,
};
pub use coverage::RuleUsage;
pub use editable_policy::{EditablePolicy, TextLocation};
pub use format::{FormatError, format_policy};
pub use learn::{
    ChangedDecision, LearnError, LearnReport, ProposalStep, RefusedCall, RuleProposal,
};
pub use lint::lint;
pub use mutation::{Mutant, MutantResult, TooManyMutants};
pub use recorded_calls::{PastCall, RecordedAnswer};
pub use schema::policy_schema;
