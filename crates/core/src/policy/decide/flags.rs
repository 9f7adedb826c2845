//! Checks the flags of a command against the rules of its program.

use alloc::format;

use crate::decision::Verdict;
use crate::policy::commands::{CommandRule, EffectRule, FlagRule, ProgramRule};
use crate::policy::decide::check::Finding;
use capsule_base::code::Code;
use capsule_command::specs::{
    CommandLevel, Effect, Effects, ParsedArgv, ParsedFlag, combined_effects,
};

/// The first flag that the rule denies, or does not list.
pub(super) fn check_flags(rule: &FlagRule, level: &CommandLevel, id: &str) -> Option<Finding> {
    let name = &level.name;
    level.flags.iter().find_map(|flag| {
        if let Some((denied, source)) = rule.deny.iter().find(|(text, _)| flag.could_be(text)) {
            let reason = if *denied == flag.spelled {
                format!("the flag `{denied}` is denied for `{name}`")
            } else {
                format!(
                    "the flag `{}` could be `{denied}`, which is denied for `{name}`",
                    flag.spelled
                )
            };
            let hint = format!("drop `{}`", flag.spelled);
            return Some(
                Finding::deny(Code::ExecFlag, reason)
                    .under_rule(id, source)
                    .with_suggestion(Some(hint)),
            );
        }
        let listed = rule.allow.as_ref()?;
        if listed.iter().any(|text| flag.is_certainly(text)) {
            return None;
        }
        let reason = format!("the flag `{}` is not among those allowed for `{name}`", flag.spelled);
        let hint = format!("allowed are `{}`", listed.join("`, `"));
        Some(
            Finding::deny(Code::ExecFlag, reason)
                .under_rule(id, &rule.source)
                .with_suggestion(Some(hint)),
        )
    })
}

/// A flag that makes a program do more than its rule lets on, and that the rule does not name.
pub(super) fn check_flag_effect(
    program: &ProgramRule,
    rule: &CommandRule,
    reading: &ParsedArgv,
    id: &str,
    effects: Option<&EffectRule>,
) -> Option<Finding> {
    let listed = |flag: &ParsedFlag| {
        [&program.global_flags, &rule.flags]
            .into_iter()
            .filter_map(|flags| flags.allow.as_ref())
            .flatten()
            .any(|text| flag.is_certainly(text))
    };
    // A program that runs others by its nature does no more with an option that says which.
    let nature = combined_effects(&reading.base_effects);
    let runs =
        nature.intersects(Effects::of(Effect::Runs).with(Effect::Code).with(Effect::Unknown));
    let harmless = match runs {
        true => {
            nature.with(Effect::Code).with(Effect::Runs).with(Effect::Reads).with(Effect::Opens)
        }
        false => Effects::of(Effect::Reads),
    };
    let flags = reading.levels.iter().flat_map(|level| &level.flags);
    flags.into_iter().find_map(|flag| {
        let why = match &flag.effect {
            Some(added) if added.effects.is_subset_of(harmless) => return None,
            Some(added) => added.why.as_str(),
            None if runs => return None,
            // What a known program is not known to have could do anything that the program can.
            None if flag.names.is_empty() && reading.known() => {
                "is not known, so what it does is not known either"
            }
            None => return None,
        };
        if listed(flag) {
            return None;
        }
        let reason = format!("the flag `{}` {why}", flag.spelled);
        let hint = format!("drop `{}`", flag.spelled);
        let word = |words: &EffectRule| {
            let added = flag.effect.as_ref().map(|added| added.effects.iter());
            let each = added.into_iter().flatten().map(|effect| words.verdict(effect).0);
            each.max().unwrap_or_else(|| words.verdict(Effect::Unknown).0)
        };
        let finding = match effects.map(word) {
            Some(Verdict::Allow) => return None,
            Some(verdict @ (Verdict::Ask | Verdict::AskEach)) => {
                Finding::with_verdict(verdict, reason)
            }
            Some(Verdict::Deny) | None => Finding::deny(Code::ExecFlagEffect, reason),
        };
        Some(finding.under_rule(id, &rule.source).with_suggestion(Some(hint)))
    })
}
