//! What a policy says about risk, budgets and prompts, in words.

use capsule_base::units::{counted, show_size, show_span, show_usd};
use capsule_core::approval::GrantPolicy;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::policy::{Budgets, Policy, RiskPolicy, SourceLocation};

use crate::rule_line::RuleLine;

/// A line for the risk, one for the budgets, one for what prompts offer.
pub(crate) fn risk_rules(policy: &Policy, place: &dyn Fn(&str) -> SourceLocation) -> [RuleLine; 3] {
    [
        risk_rule(&policy.risk_policy, place),
        budgets_rule(&policy.budgets),
        grants_rule(&policy.grants, place),
    ]
}

fn grants_rule(grants: &GrantPolicy, place: &dyn Fn(&str) -> SourceLocation) -> RuleLine {
    let GrantPolicy { offer, uses, expires_after_ms: after_ms, source } = grants;
    let source = source.clone().unwrap_or_else(|| place("grants"));
    let after = show_span(*after_ms);
    RuleLine::new("grants", "grants", &source)
        .with("offer", offer.iter().map(|scope| scope.keyword()))
        .with("expire", [counted(*uses, "use"), after])
}

fn risk_rule(stakes: &RiskPolicy, place: &dyn Fn(&str) -> SourceLocation) -> RuleLine {
    let RiskPolicy { source, floors: _, labels, escalate, block_at, unknown } = stakes;
    let floors = Capability::ALL.map(|capability| {
        format!("{capability} {}", stakes.floor(Capabilities::of(capability)).name())
    });
    let escalate =
        escalate.iter().map(|(hazard, to)| format!("{} {}", hazard.keyword(), to.name()));
    let source = source.clone().unwrap_or_else(|| place("capabilities"));
    RuleLine::new("risk", "risk", &source)
        .with("floors", floors)
        .with("labels", labels.iter().map(|(capability, text)| format!("{capability}: {text}")))
        .with("escalate", escalate)
        .with("block_at", [block_at.map_or("none", |risk| risk.name())])
        .with("unknown", unknown.map(|verdict| verdict.keyword()))
}

fn budgets_rule(budgets: &Budgets) -> RuleLine {
    let Budgets {
        source,
        calls,
        wall_ms,
        written,
        fetched,
        llm_tokens,
        llm_cost,
        same_call,
        denied_in_a_row,
        denied_total,
        asks_when_looping: pauses,
        attention,
    } = budgets;
    let wall = wall_ms.map(show_span);
    let run = [
        calls.map(|call| counted(call, "call")),
        wall,
        written.map(|written| format!("{} written", show_size(written))),
        fetched.map(|fetched| format!("{} fetched", show_size(fetched))),
        llm_tokens.map(|tokens| format!("{tokens} tokens of models")),
        llm_cost.map(|cost| format!("{} for models", show_usd(cost))),
    ];
    let loops = [
        same_call.map(|same_call| format!("{same_call} of the same call")),
        denied_in_a_row.map(|denied_in_a_row| format!("{denied_in_a_row} denied in a row")),
        denied_total.map(|denied_total| format!("{denied_total} denied in all")),
        pauses.then(|| "then a person is asked".into()),
    ];
    let attention = attention.map(|budget| {
        let per = show_span(budget.per_ms);
        format!("{} in {per}", counted(budget.prompts, "prompt"))
    });
    RuleLine::new("budgets", "budgets", source)
        .with("run", run.into_iter().flatten())
        .with("loops", loops.into_iter().flatten())
        .with("attention", attention)
}
