//! One function decides. It is pure and total, and every caller gets the same answer from it.
//!
//! Checks do not answer; they leave findings. The strictest finding is the decision, the first of
//! several that are equally strict, and where there is none the call is denied.

mod apply;
pub(super) mod budget;
mod call;
mod call_restrictions;
pub(super) mod check;
mod command_line;
mod command_list;
mod command_scope;
mod data_flow;
mod default_verdict;
mod effects;
mod exec;
pub(super) mod fetch;
pub(super) mod files;
mod flags;
mod git_and_tests;
mod hard_deny;
mod hosts;
mod instead;
mod instruction_files;
mod instructions;
mod judgement;
mod layers;
mod questions;
mod quota;
mod risk;
mod sandbox;
mod temporary;
mod variables;
mod workspace_wipe;

pub use check::PolicyInput;
pub use instructions::written_by_words;
pub use judgement::{DecisionTrace, Judgement, PolicyCheck};
pub use layers::decide;
