//! Reads what a policy says about risk, and how much one run may do in all.

use alloc::format;
use alloc::string::ToString;

use crate::language::{BUDGETS, CAPABILITY, ESCALATION, LOOPS, RISK, RUN};
use crate::parse::approval;
use crate::parse::context::Context;
use capsule_base::code::Code;
use capsule_base::units::millis;
use capsule_base::yaml::{Section, YamlNode, key};
use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::policy::Budgets;
use capsule_core::policy::{Hazard, RiskPolicy};
use capsule_core::risk::Risk;

/// What the sections `capabilities` and `risk` say.
pub(super) fn risk_policy(context: &mut Context<'_>, top: &Section<'_>) -> RiskPolicy {
    let mut stakes = RiskPolicy::default();
    if let Some(node) = top.get("capabilities") {
        capabilities(context, node, &mut stakes);
        stakes.source = context.layer.map(|_| context.source(node));
    }
    let Some(node) = top.get("risk") else { return stakes };
    let Some(section) = context.section(node, "`risk`", &RISK) else { return stakes };
    stakes.source = Some(context.source(node));
    if let Some(node) = section.get("escalate") {
        escalate(context, node, &mut stakes);
    }
    if let Some(node) = section.get("block_at") {
        stakes.source = Some(context.source(node));
        stakes.block_at = match context.reader.keyword(node, &["high", "medium", "none"]) {
            Some("none") => None,
            Some("medium") => Some(Risk::Medium),
            _ => Some(Risk::High),
        };
    }
    if let Some(node) = section.get("unknown") {
        let words = ["ask", "ask-each", "deny"];
        stakes.unknown = context.reader.keyword(node, &words).and_then(Verdict::from_word);
    }
    stakes
}

fn level(context: &mut Context<'_>, node: &YamlNode) -> Option<Risk> {
    context.reader.keyword(node, &Risk::WORDS).and_then(Risk::from_word)
}

/// The least risk that each capability carries, and the author's words for it.
fn capabilities(context: &mut Context<'_>, node: &YamlNode, risk_policy: &mut RiskPolicy) {
    let keys = Capability::WORDS.map(key);
    let Some(map) = context.reader.section(node, "`capabilities`", &keys) else { return };
    for (name, _, node) in map.entries() {
        let Some(capability) = Capability::from_word(name) else { continue };
        let what = format!("`{name}`");
        let Some(section) = context.section(node, &what, &CAPABILITY) else { continue };
        if let Some(risk) = section.get("risk").and_then(|node| level(context, node)) {
            risk_policy.floors.push((capability, risk));
        }
        if let Some(label) = section.get("label").and_then(|node| context.reader.line(node)) {
            risk_policy.labels.push((capability, label.to_string()));
        }
    }
}

/// What raises the risk; the list takes the place of the one that holds without it.
fn escalate(context: &mut Context<'_>, node: &YamlNode, risk_policy: &mut RiskPolicy) {
    let Some(items) = context.reader.list(node, "a list of what raises the risk") else { return };
    risk_policy.escalate.clear();
    for item in items {
        let what = "an escalation";
        let Some(section) = context.section(item, what, &ESCALATION) else {
            continue;
        };
        let when = context.reader.required(&section, "when", what);
        let to = context.reader.required(&section, "to", what);
        let hazard = when
            .and_then(|node| context.reader.keyword(node, &Hazard::WORDS))
            .and_then(Hazard::from_word);
        let risk = to.and_then(|node| level(context, node));
        let (Some(hazard), Some(risk)) = (hazard, risk) else { continue };
        if risk_policy.raised_by(hazard).is_some() {
            let message = format!("`{}` stands twice", hazard.keyword());
            context.error(Code::PolicyDuplicateKey, item, message);
        }
        risk_policy.escalate.push((hazard, risk));
    }
}

/// The budgets of a run.
pub(super) fn budgets(context: &mut Context<'_>, node: &YamlNode) -> Budgets {
    let mut budgets = Budgets { source: context.source(node), ..Budgets::default() };
    let Some(section) = context.section(node, "`budgets`", &BUDGETS) else { return budgets };
    if let Some(run) = section.get("run").and_then(|node| context.section(node, "`run`", &RUN)) {
        budgets.calls = run.get("calls").and_then(|node| context.reader.number(node));
        budgets.wall_ms =
            run.get("wall").and_then(|node| context.reader.duration(node)).map(millis);
        budgets.written = run.get("written").and_then(|node| context.reader.size(node));
        budgets.fetched = run.get("fetched").and_then(|node| context.reader.size(node));
        budgets.llm_tokens = run.get("llm_tokens").and_then(|node| context.reader.number(node));
        budgets.llm_cost = run.get("llm_cost_usd").and_then(|node| context.reader.dollars(node));
    }
    let attention = section.get("attention");
    budgets.attention = attention.and_then(|node| approval::attention(context, node));
    let loops = section.get("loops");
    if let Some(section) = loops.and_then(|node| context.section(node, "`loops`", &LOOPS)) {
        budgets.same_call = section.get("same_call").and_then(|node| at_least_one(context, node));
        budgets.denied_in_a_row =
            section.get("denied_in_a_row").and_then(|node| at_least_one(context, node));
        budgets.denied_total =
            section.get("denied_total").and_then(|node| at_least_one(context, node));
        if let Some(node) = section.get("then") {
            budgets.asks_when_looping =
                context.reader.keyword(node, &["stop", "pause"]) == Some("pause");
        }
    }
    budgets
}

/// A bound that lets the first call through.
fn at_least_one(context: &mut Context<'_>, node: &YamlNode) -> Option<u64> {
    let number = context.reader.number(node)?;
    if number == 0 {
        context.error(Code::PolicyValue, node, "with 0, no call could be made at all");
        return None;
    }
    Some(number)
}
