//! What a command does, against the words that a policy has for it.

use alloc::format;
use alloc::string::ToString;

use crate::decision::Verdict;
use crate::policy::commands::EffectRule;
use crate::policy::decide::Finding;
use crate::programs::{Added, Effect};
use capsule_redact::excerpt;

/// The strictest word for what a program does that no rule names.
pub(super) fn by_effects<'r>(
    rule: &EffectRule,
    reasons: impl Iterator<Item = &'r Added>,
    shown: &str,
    id: &str,
) -> Option<Finding> {
    let each = reasons.flat_map(|added| added.effects.iter().map(move |effect| (effect, added)));
    let (effect, added) = each.max_by_key(|(effect, _)| (rule.word(*effect).0, *effect))?;
    let (verdict, source) = rule.word(effect);
    let reason = match shown.ends_with(added.word.as_str()) {
        true => format!("`{shown}` {}", added.why),
        false => format!("`{shown}`: `{}` {}", excerpt(&added.word, QUOTED), added.why),
    };
    let suggestion = match verdict {
        Verdict::Allow => None,
        _ => Some(added.instead.clone().unwrap_or_else(|| instead(effect).to_string())),
    };
    let id = format!("{id}/effects.{}", effect.name());
    Some(Finding::word(verdict, reason).by(id, source).suggest(suggestion))
}

/// What to do instead of a command with this effect, where the table of programs knows nothing
/// better.
const fn instead(effect: Effect) -> &'static str {
    match effect {
        Effect::Reads | Effect::Opens => "read the file with `fs.read`",
        Effect::Writes => "write the file with `fs.write` or `fs.edit`",
        Effect::Deletes => "name what shall go, and let the user decide",
        Effect::Runs => "run the project's own tests or build by their usual command",
        Effect::Starts => "leave the option out; the program does its own work without it",
        Effect::Code => "write the program to a file of the project, and run that",
        Effect::Interactive => "use a command that asks nothing and ends by itself",
        Effect::Network => {
            "use `http.get` for an address that the policy names, or ask the user to fetch it"
        }
        Effect::Publishes => "say what is ready; the user sends it from the host",
        Effect::System => "tell the user what has to be changed on the machine, and why",
        Effect::Destroys => "tell the user what would be lost, and let them do it",
        Effect::Secrets => "ask the user for the one value that is needed",
        Effect::Shell => "run the program itself; pipelines and lists need no shell",
        Effect::Unknown => {
            "use a program and options that are known, or let the policy name this one"
        }
    }
}

/// How many characters of a word are quoted.
const QUOTED: usize = 60;
