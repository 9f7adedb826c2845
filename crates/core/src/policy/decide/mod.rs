//! One function decides. It is pure and total, and every caller gets the same answer from it.
//!
//! Checks do not answer; they leave findings. The strictest finding is the decision, the first of
//! several that are equally strict, and where there is none the call is denied.

mod apply;
mod budget;
mod call;
mod call_restrictions;
mod command_line;
mod command_list;
mod command_scope;
mod consequences;
mod data_flow;
mod default_verdict;
mod effects;
mod exec;
pub(super) mod fetch;
pub(super) mod files;
pub(super) mod finding;
mod flags;
mod git_and_tests;
mod hard_deny;
mod instructions;
mod judgement;
mod layers;
mod policy_input;
mod program_rule;
mod questions;
mod quota;
mod risk;
mod sandbox;
mod trace;
mod variables;
mod workspace_wipe;

pub use instructions::written_by_words;
pub use judgement::Judgement;
pub use layers::decide;
pub use policy_input::PolicyInput;
pub use trace::{DecisionTrace, PolicyCheck};
