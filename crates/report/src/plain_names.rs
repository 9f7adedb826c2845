//! Names of programs and rules, without what a caller could put into them.

use capsule_command::specs;

/// How long a program's name may be.
const MAX_NAME_CHARS: usize = 40;
/// What stands for a name that could be anything.
const OTHER_NAME: &str = "(other)";

/// A name of a tool or program; the caller may have put anything there.
pub(crate) fn known_name(name: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    match !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_plain) {
        true => name,
        false => OTHER_NAME,
    }
}

/// A rule's name. Where `*` stands for a subcommand the rule goes by the word of the call, which is
/// shown only if the table of programs has it.
pub(crate) fn plain_rule(rule: &str) -> String {
    let Some((tool, inner)) = rule.split_once('/').filter(|(tool, _)| *tool == "shell.run") else {
        return rule.to_owned();
    };
    let mut words = inner.split('.');
    let name = known_name(words.next().unwrap_or(inner));
    let mut shown = format!("{tool}/{name}");
    let mut known = specs::find_spec(name);
    for word in words {
        known = known.and_then(|spec| spec.subcommand(word));
        let is_shown = known.is_some() || inner.starts_with("effects.");
        shown = format!("{shown}.{}", if is_shown { word } else { "*" });
    }
    shown
}
