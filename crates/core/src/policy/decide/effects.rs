//! What a command does, against the words that a policy has for it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::capability::Capability;
use crate::decision::Verdict;
use crate::policy::commands::EffectRule;
use crate::policy::decide::check::Finding;
use crate::policy::decide::hosts;
use crate::policy::decide::instead::instead_of;
use crate::policy::model::{Constraint, Policy};
use crate::tool::ToolName;
use capsule_command::specs::{Effect, Effects, ParsedArgv};
use capsule_redact::excerpt;

/// The strictest word for what a program does that no rule names.
pub(super) fn check_effects<'r>(
    policy: &Policy,
    rule: &EffectRule,
    readings: impl Iterator<Item = &'r ParsedArgv>,
    (shown, id): (&str, &str),
) -> Option<Finding> {
    let each = readings.flat_map(|argv| {
        let named = hosts::check(policy, argv).filter(|hosts| hosts.verdict == Verdict::Allow);
        argv.matched_effects().flat_map(move |added| {
            let hosts = named.clone();
            let open = move |effect| hosts.clone().filter(|_| effect == Effect::Network);
            added.effects.iter().map(move |effect| (effect, added, open(effect)))
        })
    });
    // Where all that is contacted is named, the rules of hosts take the place of a question.
    let word = |effect, hosts: &Option<Finding>| match (rule.verdict(effect).0, hosts) {
        (Verdict::Ask | Verdict::AskEach, Some(hosts)) => hosts.verdict,
        (verdict, _) => verdict,
    };
    let strictest = each.max_by_key(|(effect, _, hosts)| (word(*effect, hosts), *effect))?;
    let (effect, added, hosts) = strictest;
    let (verdict, source) = rule.verdict(effect);
    if let Some(hosts) = hosts.filter(|_| verdict != Verdict::Deny) {
        return Some(hosts);
    }
    let reason = match shown.ends_with(added.argument.as_str()) {
        true => format!("`{shown}` {}", added.why),
        false => format!("`{shown}`: `{}` {}", excerpt(&added.argument, QUOTED_CHARS), added.why),
    };
    let suggestion = match verdict {
        Verdict::Allow => None,
        _ => Some(added.alternative.clone().unwrap_or_else(|| alternative(policy, effect))),
    };
    let id = format!("{id}/effects.{}", effect.name());
    Some(Finding::with_verdict(verdict, reason).under_rule(id, source).with_suggestion(suggestion))
}

/// The tools of ours that do what programs with these effects do, with the paths that the policy opens to
/// them; none where it opens none of them.
pub(super) fn tools(policy: &Policy, does: Effects) -> Option<String> {
    let tools: &[(&str, Capability)] = if does.contains(Effect::Deletes) {
        &[("fs.delete", Capability::FsDelete)]
    } else if does.contains(Effect::Writes) {
        &[("fs.edit", Capability::FsWrite), ("fs.write", Capability::FsWrite)]
    } else if does.contains(Effect::Network) {
        &[("http.get", Capability::NetEgress)]
    } else if does.is_subset_of(Effects::of(Effect::Reads).with(Effect::Opens)) {
        &[("fs.read", Capability::FsRead)]
    } else {
        return None;
    };
    let open = |(name, capability): &(&str, Capability)| {
        let rule = policy.tool(&ToolName::unchecked(name))?;
        let denied = rule.decision == Some(Verdict::Deny)
            || policy.profile.verdict_for(*capability) == Verdict::Deny;
        let paths = match &rule.constraint {
            Constraint::Files(files) => {
                files.allow.iter().map(|pattern| pattern.text.as_str()).collect()
            }
            _ => Vec::new(),
        };
        let within = match paths.as_slice() {
            [] | ["**"] => String::new(),
            some => format!(" (in `{}`)", some.join("`, `")),
        };
        (!denied).then(|| format!("`{name}`{within}"))
    };
    let open: Vec<String> = tools.iter().filter_map(open).collect();
    (!open.is_empty()).then(|| open.join(" or "))
}

/// What to do instead of a command with this effect, where the table of programs knows nothing
/// better.
fn alternative(policy: &Policy, effect: Effect) -> String {
    match (effect, tools(policy, Effects::of(effect))) {
        (Effect::Reads | Effect::Opens, Some(tools)) => format!("read the file with {tools}"),
        (Effect::Writes, Some(tools)) => format!("write the file with {tools}"),
        (Effect::Network, Some(tools)) => {
            format!("use {tools} for an address that the policy names, or ask the user to fetch it")
        }
        _ => instead_of(effect).to_string(),
    }
}

/// How many characters of a word are quoted.
const QUOTED_CHARS: usize = 60;
