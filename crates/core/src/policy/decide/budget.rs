//! How much one run may do in all, and when it goes round in circles.

use alloc::format;
use alloc::vec::Vec;

use crate::action::Action;
use crate::decision::Verdict;
use crate::policy::decide::check::{Finding, PolicyInput};
use crate::policy::model::Policy;
use crate::tool::ToolName;
use capsule_base::code::Code;

pub(super) fn check(policy: &Policy, input: &PolicyInput<'_>) -> Vec<Finding> {
    let (budgets, usage) = (&policy.budgets, input.usage);
    let mut found = Vec::new();
    let mut check = |limit: Option<u64>, is_met: bool, code: Code, what: &str| {
        if let Some(limit) = limit.filter(|_| is_met) {
            let finding =
                Finding::deny(code, format!("the run has used its budget of {limit} {what}"));
            found.push(finding.under_rule("budgets", &budgets.source));
        }
    };
    let met = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
    let total = usage.total();
    check(budgets.calls, met(budgets.calls, total.calls), Code::BudgetCalls, "calls");
    let millis = total.micros / 1_000;
    check(budgets.wall_ms, met(budgets.wall_ms, millis), Code::BudgetWall, "milliseconds");
    if let Action::Write { bytes, .. } | Action::Edit { bytes, .. } = input.action {
        let before = used_bytes(input, "fs.write").saturating_add(used_bytes(input, "fs.edit"));
        let after = before.saturating_add(*bytes);
        let over = budgets.written.is_some_and(|limit| after > limit);
        check(budgets.written, over, Code::BudgetWritten, "bytes written");
    }
    if let Action::Fetch { .. } = input.action {
        let is_met = met(budgets.fetched, fetched(input));
        check(budgets.fetched, is_met, Code::BudgetFetched, "bytes fetched");
    }
    found.extend(check_loops(policy, input));
    found
}

/// A run that goes round in circles ends, or waits for a person to say that it goes on.
fn check_loops(policy: &Policy, input: &PolicyInput<'_>) -> Vec<Finding> {
    let (budgets, usage) = (&policy.budgets, input.usage);
    let same = usage.same_calls(input.tool, input.args_digest);
    let rows = [
        (budgets.same_call, same, Code::BudgetSameCall, "equal calls"),
        (
            budgets.denied_in_a_row,
            usage.denied_in_a_row(),
            Code::BudgetDeniedInARow,
            "denied calls in a row",
        ),
        (budgets.denied_total, usage.denied_total(), Code::BudgetDeniedTotal, "denied calls"),
    ];
    let mut found = Vec::new();
    for (limit, used, code, what) in rows {
        let Some(limit) = limit.filter(|limit| used >= *limit) else { continue };
        let reason = format!("the run has used its budget of {limit} {what}");
        let finding = match budgets.asks_when_looping {
            true => Finding::with_verdict(
                Verdict::AskEach,
                format!("{reason}, and asks whether to go on"),
            ),
            false => Finding::deny(code, reason),
        };
        found.push(finding.under_rule("budgets", &budgets.source));
    }
    found
}

fn used_bytes(input: &PolicyInput<'_>, tool: &str) -> u64 {
    input.usage.of_tool(&ToolName::unchecked(tool)).map_or(0, |used| used.bytes)
}

/// The bytes that the run fetched: as pages, and by commands.
pub(crate) fn fetched(input: &PolicyInput<'_>) -> u64 {
    used_bytes(input, "http.get").saturating_add(input.usage.total().received)
}

/// The bytes that the run may still fetch.
pub(super) fn fetch_left(policy: &Policy, input: &PolicyInput<'_>) -> u64 {
    policy.budgets.fetched.map_or(u64::MAX, |limit| limit.saturating_sub(fetched(input)))
}
