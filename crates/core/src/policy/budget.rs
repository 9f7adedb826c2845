//! How much one run may do in all, and when it goes round in circles.

use crate::approval::PromptBudget;
use crate::policy::source_location::SourceLocation;

/// The budgets of a run. What is not named is not bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Where they stand.
    pub source: SourceLocation,
    /// Calls that ran.
    pub calls: Option<u64>,
    /// The time that they took, in milliseconds.
    pub wall_ms: Option<u64>,
    /// Bytes that the file tools wrote.
    pub written: Option<u64>,
    /// Bytes that were fetched.
    pub fetched: Option<u64>,
    /// Tokens that models read and write.
    pub llm_tokens: Option<u64>,
    /// The most that models may cost, in millionths of a US dollar.
    pub llm_cost: Option<u64>,
    /// How often the same call may be made.
    pub same_call: Option<u64>,
    /// How many calls may be denied one after the other.
    pub denied_in_a_row: Option<u64>,
    /// How many calls may be denied in all.
    pub denied_total: Option<u64>,
    /// Whether a person is asked when a run goes round in circles, instead of ending it.
    pub asks_when_looping: bool,
    /// How many prompts a person may be shown.
    pub attention: Option<PromptBudget>,
}
