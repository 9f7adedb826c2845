//! How much one run may do in all, and when it goes round in circles.

use alloc::format;
use alloc::vec::Vec;

use crate::action::Action;
use crate::decision::Verdict;
use crate::policy::decide::check::{Finding, PolicyInput};
use crate::policy::model::Policy;
use crate::tool::ToolName;
use capsule_base::code::Code;

/// A run that has used itself up ends; one that goes round in circles ends, or waits for a person to say that it goes on.
pub(super) fn check(policy: &Policy, input: &PolicyInput<'_>) -> Vec<Finding> {
    let (budgets, usage, total) = (&policy.budgets, input.usage, input.usage.total());
    let same = usage.same_calls(input.tool, input.args_digest);
    let in_a_row = usage.denied_in_a_row;
    // Bytes that are to be written fit where the last of them does.
    let written = match input.action {
        Action::Write { bytes, .. } | Action::Edit { bytes, .. } => {
            let before = used_bytes(input, "fs.write").saturating_add(used_bytes(input, "fs.edit"));
            before.saturating_add(*bytes).checked_sub(1)
        }
        _ => None,
    };
    let fetched = matches!(input.action, Action::Fetch { .. }).then(|| fetched(input));
    let rows = [
        (budgets.calls, Some(total.calls), Code::BudgetCalls, "calls", false),
        (budgets.wall_ms, Some(total.micros / 1_000), Code::BudgetWall, "milliseconds", false),
        (budgets.written, written, Code::BudgetWritten, "bytes written", false),
        (budgets.fetched, fetched, Code::BudgetFetched, "bytes fetched", false),
        (budgets.same_call, Some(same), Code::BudgetSameCall, "equal calls", true),
        (budgets.denied_in_a_row, Some(in_a_row), Code::BudgetDeniedInARow, IN_A_ROW, true),
        (
            budgets.denied_total,
            Some(usage.denied_total),
            Code::BudgetDeniedTotal,
            "denied calls",
            true,
        ),
    ];
    let finding = |(limit, used, code, what, is_loop): (Option<u64>, Option<u64>, _, _, _)| {
        let limit = limit.filter(|limit| used.is_some_and(|used| used >= *limit))?;
        let reason = format!("the run has used its budget of {limit} {what}");
        let finding = match is_loop && budgets.asks_when_looping {
            true => Finding::with_verdict(
                Verdict::AskEach,
                format!("{reason}, and asks whether to go on"),
            ),
            false => Finding::deny(code, reason),
        };
        Some(finding.under_rule("budgets", &budgets.source))
    };
    rows.into_iter().filter_map(finding).collect()
}

const IN_A_ROW: &str = "denied calls in a row";

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
