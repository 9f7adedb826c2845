//! Reads what a policy says about risk, and how much one run may do in all.

use alloc::format;
use alloc::string::ToString;

use crate::capability::Capability;
use crate::code::Code;
use crate::decision::Verdict;
use crate::policy::budget::Budgets;
use crate::policy::parse::tool::millis;
use crate::policy::parse::{Context, approval};
use crate::policy::stakes::{Hazard, Stakes};
use crate::risk::Risk;
use crate::yaml::{Key, Node, Section, key, later};

const CAPABILITY: &[Key] = &[key("risk"), key("label")];
const RISK: &[Key] = &[key("escalate"), key("block_at"), key("unknown")];
const BUDGETS: &[Key] = &[key("run"), key("loops"), key("attention")];
const RUN: &[Key] = &[
    key("calls"),
    key("wall"),
    key("written"),
    key("fetched"),
    later("llm_tokens"),
    later("llm_cost_usd"),
];
const LOOPS: &[Key] = &[key("same_call"), key("denied_in_a_row"), key("denied_total"), key("then")];

/// What the sections `capabilities` and `risk` say.
pub(super) fn stakes(context: &mut Context<'_>, top: &Section<'_>) -> Stakes {
    let mut stakes = Stakes::default();
    if let Some(node) = top.get("capabilities") {
        capabilities(context, node, &mut stakes);
        stakes.source = context.layer.map(|_| context.source(node));
    }
    let Some(node) = top.get("risk") else { return stakes };
    let Some(section) = context.reader.section(node, "`risk`", RISK) else { return stakes };
    stakes.source = Some(context.source(node));
    if let Some(node) = section.get("escalate") {
        escalate(context, node, &mut stakes);
    }
    if let Some(node) = section.get("block_at") {
        stakes.source = Some(context.source(node));
        stakes.block_at = match context.reader.word(node, &["high", "medium", "none"]) {
            Some("none") => None,
            Some("medium") => Some(Risk::Medium),
            _ => Some(Risk::High),
        };
    }
    if let Some(node) = section.get("unknown") {
        let words = ["ask", "ask-each", "deny"];
        stakes.unknown = context.reader.word(node, &words).and_then(Verdict::from_word);
    }
    stakes
}

fn level(context: &mut Context<'_>, node: &Node) -> Option<Risk> {
    let levels = [Risk::Low, Risk::Medium, Risk::High];
    let word = context.reader.word(node, &levels.map(Risk::name))?;
    levels.into_iter().find(|own| own.name() == word)
}

/// The least risk that each capability carries, and the author's words for it.
fn capabilities(context: &mut Context<'_>, node: &Node, stakes: &mut Stakes) {
    let keys = Capability::ALL.map(|own| key(own.name()));
    let Some(map) = context.reader.section(node, "`capabilities`", &keys) else { return };
    for (name, _, node) in map.entries() {
        let Some(capability) = Capability::from_name(name) else { continue };
        let what = format!("`{name}`");
        let Some(section) = context.reader.section(node, &what, CAPABILITY) else { continue };
        if let Some(risk) = section.get("risk").and_then(|node| level(context, node)) {
            stakes.floors.push((capability, risk));
        }
        if let Some(label) = section.get("label").and_then(|node| context.reader.line(node)) {
            stakes.labels.push((capability, label.to_string()));
        }
    }
}

/// What raises the risk; the list takes the place of the one that holds without it.
fn escalate(context: &mut Context<'_>, node: &Node, stakes: &mut Stakes) {
    let Some(items) = context.reader.list(node, "a list of what raises the risk") else { return };
    stakes.escalate.clear();
    for item in items {
        let what = "an escalation";
        let Some(section) = context.reader.section(item, what, &[key("when"), key("to")]) else {
            continue;
        };
        let when = context.reader.need(&section, "when", what);
        let to = context.reader.need(&section, "to", what);
        let hazard = when
            .and_then(|node| context.reader.word(node, &Hazard::ALL.map(Hazard::word)))
            .and_then(Hazard::from_word);
        let risk = to.and_then(|node| level(context, node));
        let (Some(hazard), Some(risk)) = (hazard, risk) else { continue };
        if stakes.raised(hazard).is_some() {
            let message = format!("`{}` stands twice", hazard.word());
            context.error(Code::PolicyDuplicateKey, item, message);
        }
        stakes.escalate.push((hazard, risk));
    }
}

/// The budgets of a run.
pub(super) fn budgets(context: &mut Context<'_>, node: &Node) -> Budgets {
    let mut budgets = Budgets { source: context.source(node), ..Budgets::default() };
    let Some(section) = context.reader.section(node, "`budgets`", BUDGETS) else { return budgets };
    if let Some(run) = section.get("run").and_then(|own| context.reader.section(own, "`run`", RUN))
    {
        budgets.calls = run.get("calls").and_then(|node| context.reader.number(node));
        budgets.wall_ms =
            run.get("wall").and_then(|node| context.reader.duration(node)).map(millis);
        budgets.written = run.get("written").and_then(|node| context.reader.size(node));
        budgets.fetched = run.get("fetched").and_then(|node| context.reader.size(node));
    }
    let attention = section.get("attention");
    budgets.attention = attention.and_then(|own| approval::attention(context, own));
    let loops = section.get("loops");
    if let Some(own) = loops.and_then(|own| context.reader.section(own, "`loops`", LOOPS)) {
        budgets.same_call = own.get("same_call").and_then(|node| at_least_one(context, node));
        budgets.denied_in_a_row =
            own.get("denied_in_a_row").and_then(|node| at_least_one(context, node));
        budgets.denied_total = own.get("denied_total").and_then(|node| at_least_one(context, node));
        if let Some(node) = own.get("then") {
            budgets.pauses = context.reader.word(node, &["stop", "pause"]) == Some("pause");
        }
    }
    budgets
}

/// A bound that lets the first call through.
fn at_least_one(context: &mut Context<'_>, node: &Node) -> Option<u64> {
    let number = context.reader.number(node)?;
    if number == 0 {
        context.error(Code::PolicyValue, node, "with 0, no call could be made at all");
        return None;
    }
    Some(number)
}
