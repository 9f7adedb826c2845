//! How much one run may do in all, and when it goes round in circles.

use alloc::format;
use alloc::vec::Vec;

use crate::action::Action;
use crate::code::Code;
use crate::decision::Verdict;
use crate::policy::decide::{Case, Finding};
use crate::policy::model::Policy;
use crate::tool::ToolName;

pub(super) fn check(policy: &Policy, case: &Case<'_>) -> Vec<Finding> {
    let (budgets, usage) = (&policy.budgets, case.usage);
    let mut found = Vec::new();
    let mut check = |limit: Option<u64>, is_met: bool, code: Code, what: &str| {
        if let Some(limit) = limit.filter(|_| is_met) {
            let finding =
                Finding::deny(code, format!("the run has used its budget of {limit} {what}"));
            found.push(finding.by("budgets", &budgets.source));
        }
    };
    let met = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
    let total = usage.total();
    check(budgets.calls, met(budgets.calls, total.calls), Code::BudgetCalls, "calls");
    let millis = total.micros / 1_000;
    check(budgets.wall_ms, met(budgets.wall_ms, millis), Code::BudgetWall, "milliseconds");
    if let Action::Write { bytes, .. } | Action::Edit { bytes, .. } = case.action {
        let before = bytes_of(case, "fs.write").saturating_add(bytes_of(case, "fs.edit"));
        let after = before.saturating_add(*bytes);
        let over = budgets.written.is_some_and(|limit| after > limit);
        check(budgets.written, over, Code::BudgetWritten, "bytes written");
    }
    if let Action::Fetch { .. } = case.action {
        let is_met = met(budgets.fetched, bytes_of(case, "http.get"));
        check(budgets.fetched, is_met, Code::BudgetFetched, "bytes fetched");
    }
    found.extend(circles(policy, case));
    found
}

/// A run that goes round in circles ends, or waits for a person to say that it goes on.
fn circles(policy: &Policy, case: &Case<'_>) -> Vec<Finding> {
    let (budgets, usage) = (&policy.budgets, case.usage);
    let same = usage.same(case.tool, case.call);
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
        let finding = match budgets.pauses {
            true => Finding::word(Verdict::AskEach, format!("{reason}, and asks whether to go on")),
            false => Finding::deny(code, reason),
        };
        found.push(finding.by("budgets", &budgets.source));
    }
    found
}

fn bytes_of(case: &Case<'_>, tool: &str) -> u64 {
    case.usage.of(&ToolName::asked(tool)).map_or(0, |used| used.bytes)
}

/// The bytes that the run may still fetch.
pub(super) fn fetch_left(policy: &Policy, case: &Case<'_>) -> u64 {
    let used = bytes_of(case, "http.get");
    policy.budgets.fetched.map_or(u64::MAX, |limit| limit.saturating_sub(used))
}
