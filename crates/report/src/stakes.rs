//! What a policy says about risk, budgets and prompts, in words.

use capsule_core::approval::GrantPolicy;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::policy::{Budgets, Policy, RiskPolicy, SourceLocation};
use capsule_core::units::{counted, show_size, show_span};

use crate::policy::RuleLine;

/// A line for the risk, one for the budgets, one for what prompts offer.
pub(crate) fn lines(policy: &Policy, place: &dyn Fn(&str) -> SourceLocation) -> [RuleLine; 3] {
    [risk(&policy.risk_policy, place), budgets(&policy.budgets), grants(&policy.grants, place)]
}

fn grants(grants: &GrantPolicy, place: &dyn Fn(&str) -> SourceLocation) -> RuleLine {
    let GrantPolicy { offer, uses, expires_after_ms: after_ms, source } = grants;
    let source = source.clone().unwrap_or_else(|| place("grants"));
    let after = show_span(*after_ms);
    RuleLine::new("grants", "grants", &source)
        .says("offer", offer.iter().map(|scope| scope.keyword()))
        .says("expire", [counted(*uses, "use"), after])
}

fn risk(stakes: &RiskPolicy, place: &dyn Fn(&str) -> SourceLocation) -> RuleLine {
    let RiskPolicy { source, floors: _, labels, escalate, block_at, unknown } = stakes;
    let floors = Capability::ALL.map(|capability| {
        format!("{capability} {}", stakes.floor(Capabilities::of(capability)).name())
    });
    let escalate =
        escalate.iter().map(|(hazard, to)| format!("{} {}", hazard.keyword(), to.name()));
    let source = source.clone().unwrap_or_else(|| place("capabilities"));
    RuleLine::new("risk", "risk", &source)
        .says("floors", floors)
        .says("labels", labels.iter().map(|(capability, own)| format!("{capability}: {own}")))
        .says("escalate", escalate)
        .says("block_at", [block_at.map_or("none", |risk| risk.name())])
        .says("unknown", unknown.map(|own| own.keyword()))
}

fn budgets(budgets: &Budgets) -> RuleLine {
    let Budgets {
        source,
        calls,
        wall_ms,
        written,
        fetched,
        same_call,
        denied_in_a_row,
        denied_total,
        asks_when_looping: pauses,
        attention,
    } = budgets;
    let wall = wall_ms.map(show_span);
    let run = [
        calls.map(|own| counted(own, "call")),
        wall,
        written.map(|own| format!("{} written", show_size(own))),
        fetched.map(|own| format!("{} fetched", show_size(own))),
    ];
    let loops = [
        same_call.map(|own| format!("{own} of the same call")),
        denied_in_a_row.map(|own| format!("{own} denied in a row")),
        denied_total.map(|own| format!("{own} denied in all")),
        pauses.then(|| "then a person is asked".into()),
    ];
    let attention = attention.map(|own| {
        let per = show_span(own.per_ms);
        format!("{} in {per}", counted(own.prompts, "prompt"))
    });
    RuleLine::new("budgets", "budgets", source)
        .says("run", run.into_iter().flatten())
        .says("loops", loops.into_iter().flatten())
        .says("attention", attention)
}
