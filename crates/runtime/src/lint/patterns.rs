//! Patterns for paths that mean less here than in gitignore or in a regular expression.

use capsule_core::decision::Verdict;
use capsule_core::diagnostic::Diagnostics;
use capsule_core::policy::{Constraint, FileRule, PathPattern, Policy};

use super::note;

/// What a list of patterns does with what they name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// It is closed; what the author wanted closed besides stays open.
    Closes,
    /// It is opened.
    Opens,
}

/// Looks at every list of patterns that the user wrote.
pub(super) fn lint(policy: &Policy, notes: &mut Diagnostics) {
    for never in policy.hard_denies.iter().filter(|never| !never.source.at.starts_with("builtin:"))
    {
        each(&never.paths, List::Closes, notes);
        each(&never.except, List::Opens, notes);
    }
    for rule in policy.tools.values() {
        match &rule.constraint {
            Constraint::Files(files) => files_rule(files, notes),
            Constraint::Exec(exec) => {
                for program in &exec.programs {
                    each(program.command.paths(), List::Opens, notes);
                }
            }
            Constraint::Fetch(_) | Constraint::Git(_) | Constraint::Test(_) | Constraint::Apply => {
            }
        }
    }
}

fn files_rule(files: &FileRule, notes: &mut Diagnostics) {
    each(&files.allow, List::Opens, notes);
    each(&files.deny, List::Closes, notes);
    for nested in &files.rules {
        let closes = nested.decision.is_some_and(|verdict| verdict != Verdict::Allow);
        each(&nested.paths, if closes { List::Closes } else { List::Opens }, notes);
    }
}

fn each<'p>(
    patterns: impl IntoIterator<Item = &'p PathPattern>,
    list: List,
    notes: &mut Diagnostics,
) {
    for pattern in patterns.into_iter().filter(|own| !own.source.at.starts_with("builtin:")) {
        if let Some((message, hint)) = misread(&pattern.text, list) {
            notes.push(note(&pattern.source, message).hint(hint));
        } else if list == List::Closes && pattern.text.starts_with('/') && !pattern.reaches() {
            let message = format!(
                "`{}` counts from the root of the file system and closes nothing in the workspace",
                pattern.text
            );
            let hint =
                format!("write `{}` for the workspace's own", pattern.text.trim_start_matches('/'));
            notes.push(note(&pattern.source, message).hint(hint));
        }
    }
}

/// What a pattern means that its author may have meant otherwise, and how the other is written.
fn misread(text: &str, list: List) -> Option<(String, String)> {
    let hidden = |(head, last): &(&str, &str)| *last == ".*" && !head.ends_with("/.");
    if let Some((head, last)) = text.rsplit_once('/').filter(hidden) {
        let message =
            format!("`{text}` names what begins with a dot in `{head}`, and nothing else");
        return Some((message, format!("write `{head}/**` for all, `{head}/./{last}` for that")));
    }
    if let Some((before, _)) =
        text.split_once("\\*").filter(|(before, _)| before.ends_with(|c: char| c.is_alphanumeric()))
    {
        let message =
            format!("`\\*` in `{text}` names the character `*`, and no folder `{before}`");
        return Some((message, format!("write `{}` for that", text.replace('\\', "/"))));
    }
    if text.contains(", ") {
        let message = format!("`{text}` is one pattern, which names a comma");
        return Some((message, "make a pattern of each".into()));
    }
    let name = text.trim_end_matches('/');
    let top = !name.is_empty() && !name.contains('/') && !matches!(name, "**" | "~" | ".");
    let wild = name.contains(['*', '?', '[']);
    // Whoever opens one file by its name means that one.
    if !top || list == List::Opens && !wild {
        return None;
    }
    let message = format!("`{text}` is looked for at the top of the workspace only");
    Some((message, format!("write `**/{text}` for any folder, or `./{text}` for the top")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_meant_otherwise_is_told() {
        use List::{Closes, Opens};
        for (text, list, expected) in [
            ("*.env", Closes, Some("`**/*.env`")),
            ("*.env", Opens, Some("`**/*.env`")),
            (".env", Closes, Some("`**/.env`")),
            ("secrets/", Closes, Some("`**/secrets/`")),
            ("node_modules", Closes, Some("`./node_modules`")),
            ("README.md", Opens, None),
            ("docs/", Opens, None),
            ("**", Closes, None),
            ("**/*.env", Closes, None),
            ("./*.env", Closes, None),
            ("/etc", Closes, None),
            ("secrets/**", Closes, None),
            ("~", Closes, None),
            ("secrets/.*", Closes, Some("`secrets/**`")),
            ("secrets/./.*", Closes, None),
            ("secrets\\*", Closes, Some("`secrets/*`")),
            ("a/**, b/**", Closes, Some("of each")),
        ] {
            let told = misread(text, list).map(|(message, hint)| format!("{message}; {hint}"));
            let is_told =
                told.as_deref().zip(expected).is_some_and(|(own, part)| own.contains(part));
            assert!(is_told || told.is_none() && expected.is_none(), "{text}: {told:?}");
        }
    }
}
