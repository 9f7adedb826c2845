//! Reads what a policy says about prompts: what they may offer, and how many there may be.

use alloc::format;
use alloc::vec::Vec;

use crate::language::{ATTENTION, COMPOSITES, EXPIRE, GRANTS};
use crate::parse::context::Context;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::units::millis;
use capsule_base::yaml::YamlNode;
use capsule_core::approval::{GrantLifetime, GrantPolicy, PromptBudget};

/// What a prompt may offer.
pub(super) fn grants(context: &mut Context<'_>, node: &YamlNode) -> GrantPolicy {
    let mut grants = GrantPolicy { source: Some(context.source(node)), ..GrantPolicy::default() };
    let Some(section) = context.section(node, "`grants`", &GRANTS) else { return grants };
    if let Some(node) = section.get("offer") {
        let items = context.reader.list(node, "a list of scopes").unwrap_or_default();
        let scopes = items.iter().filter_map(|item| lifetime(context, item));
        let mut offer: Vec<GrantLifetime> = scopes.collect();
        // Leave for the one call is what a prompt is for.
        if !offer.contains(&GrantLifetime::Once) {
            offer.push(GrantLifetime::Once);
        }
        offer.sort();
        offer.dedup();
        grants.offer = offer;
    }
    if let Some(node) = section.get("default") {
        // What is chosen without reading must not be more than what was asked.
        context.reader.only_supported(node, "once", &["task", "session"]);
    }
    if let Some(node) = section.get("expire")
        && let Some(expire) = context.section(node, "`expire`", &EXPIRE)
    {
        if let Some(node) = expire.get("uses")
            && let Some(uses) = context.reader.number(node)
        {
            grants.uses = at_most(context, node, uses, limits::GRANT_USES_MAX);
        }
        if let Some(node) = expire.get("after")
            && let Some(after) = context.reader.duration(node)
        {
            grants.expires_after_ms =
                at_most(context, node, millis(after), millis(limits::GRANT_TIME_MAX));
        }
    }
    if let Some(node) = section.get("always") {
        context.reader.only_supported(node, "policy-patch", &[]);
    }
    grants
}

fn lifetime(context: &mut Context<'_>, node: &YamlNode) -> Option<GrantLifetime> {
    context.reader.keyword(node, &GrantLifetime::WORDS).and_then(GrantLifetime::from_word)
}

/// At least one, and no more than this.
fn at_most(context: &mut Context<'_>, node: &YamlNode, value: u64, most: u64) -> u64 {
    if value == 0 || value > most {
        let message = format!("the value is at least 1 and at most {most}");
        context.error(Code::PolicyValue, node, message);
    }
    value.clamp(1, most)
}

/// Pipelines and lists are judged as a whole before any of it runs, and with this so are plans; what
/// is beyond that is asked. Nothing else is known.
pub(super) fn composites(context: &mut Context<'_>, node: &YamlNode) -> bool {
    let Some(section) = context.section(node, "`composites`", &COMPOSITES) else {
        return false;
    };
    if let Some(node) = section.get("overflow") {
        context.reader.only_supported(node, "ask", &["deny"]);
    }
    let preflight = section.get("preflight");
    if let Some(node) = preflight {
        context.reader.only_supported(node, "union", &[]);
    }
    preflight.is_some()
}

/// How many prompts a person may be shown; those behind are as if nobody were there.
pub(super) fn attention(context: &mut Context<'_>, node: &YamlNode) -> Option<PromptBudget> {
    let section = context.section(node, "`attention`", &ATTENTION)?;
    let prompts = context.reader.required(&section, "prompts", "`attention`")?;
    let prompts = context.reader.number(prompts)?;
    let per = context.reader.required(&section, "per", "`attention`")?;
    let per_ms = millis(context.reader.duration(per)?);
    if let Some(node) = section.get("then") {
        context.reader.only_supported(node, "pause", &["deny"]);
    }
    Some(PromptBudget { prompts, per_ms })
}
