//! Patterns for paths that mean less here than in gitignore or in a regular expression.

use capsule_base::diagnostic::Diagnostics;
use capsule_core::decision::Verdict;
use capsule_core::policy::{Constraint, FileRule, PathPattern, Policy};

use super::note::lint_note;

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
            Constraint::Fetch(_)
            | Constraint::Git(_)
            | Constraint::Test(_)
            | Constraint::Person => {}
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
    for pattern in patterns.into_iter().filter(|pattern| !pattern.source.at.starts_with("builtin:"))
    {
        if let Some((message, hint)) = misread(&pattern.text, list) {
            notes.push(lint_note(&pattern.source, message).hint(hint));
        } else if list == List::Closes && pattern.text.starts_with('/') && !pattern.reaches() {
            let message = format!(
                "`{}` counts from the root of the file system and closes nothing in the workspace",
                pattern.text
            );
            let hint =
                format!("write `{}` for the workspace's own", pattern.text.trim_start_matches('/'));
            notes.push(lint_note(&pattern.source, message).hint(hint));
        }
    }
}

/// What a pattern means that its author may have meant otherwise, and how the other is written. Where a list
/// opens, nothing wider is advised.
fn misread(text: &str, list: List) -> Option<(String, String)> {
    let closes = list == List::Closes;
    let advice = |wider: String, same: &str| if closes { wider } else { same.to_owned() };
    if let Some((sign, rest)) = operator(text) {
        let message =
            format!("`{sign}` takes nothing out of a list: `{text}` is a name as it stands");
        let taken_out = format!("write `{rest}` under `deny` of the tool's `paths` to close it");
        return Some((message, advice(format!("write `{rest}` to close it"), &taken_out)));
    }
    let hidden = |(head, last): &(&str, &str)| *last == ".*" && !head.ends_with("/.");
    if let Some((head, last)) = text.rsplit_once('/').filter(hidden) {
        let message =
            format!("`{text}` names what begins with a dot in `{head}`, and nothing else");
        let same = format!("write `{head}/./{last}` for that");
        return Some((
            message,
            advice(format!("write `{head}/**` for all, `{head}/./{last}` for that"), &same),
        ));
    }
    if let Some((before, _)) =
        text.split_once("\\*").filter(|(before, _)| before.ends_with(|c: char| c.is_alphanumeric()))
    {
        let message =
            format!("`\\*` in `{text}` names the character `*`, and no folder `{before}`");
        let wider = format!("write `{}` for that", text.replace('\\', "/"));
        return Some((message, advice(wider, "leave it out if no name has that character")));
    }
    if text.contains(", ") {
        let message = format!("`{text}` is one pattern, which names a comma");
        let same = "leave it out if no name has a comma";
        return Some((message, advice("make a pattern of each".into(), same)));
    }
    let name = text.trim_end_matches('/');
    let top = !name.is_empty() && !name.contains('/') && !matches!(name, "**" | "~" | ".");
    let wild = name.contains(['*', '?', '[']) || name != text;
    // Whoever opens one file by its name means that one.
    if !top || !closes && !wild {
        return None;
    }
    let message = format!("`{text}` is looked for at the top of the workspace only");
    let same = format!("write `./{text}` if the top is meant");
    let wider = format!("write `**/{text}` for any folder, or `./{text}` for the top");
    Some((message, advice(wider, &same)))
}

/// A sign or a word by which other programs take out what follows: `- x` and `-x`, `not x`, `exclude: x`. A name
/// may begin so, and a pattern that says it plainly begins with `./`.
fn operator(text: &str) -> Option<(&str, &str)> {
    const WORDS: [&str; 16] = [
        "not",
        "no",
        "except",
        "exclude",
        "excluding",
        "ignore",
        "without",
        "deny",
        "unless",
        "and",
        "or",
        "include",
        "including",
        "allow",
        "only",
        "but",
    ];
    let first = text.chars().next()?;
    if matches!(first, '-' | '+' | '^' | '#' | '=') {
        let (sign, rest) = text.split_at(first.len_utf8());
        // `--exclude=secrets/**`
        let value = rest.strip_prefix('-').and_then(|text| text.split_once(['=', ' ']));
        let rest = value.map_or(rest, |(_, value)| value).trim_start();
        return (!rest.is_empty()).then_some((sign, rest));
    }
    let (word, rest) = text.split_once([' ', ':', '(', '='])?;
    let is_operator = WORDS.iter().any(|text| text.eq_ignore_ascii_case(word));
    let rest = rest.trim_matches([' ', ':', '(', ')']);
    (is_operator && !rest.is_empty()).then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_meant_otherwise_is_told() {
        use List::{Closes, Opens};
        for (text, list, expected) in [
            ("*.env", Closes, Some("`**/*.env`")),
            ("*.env", Opens, Some("`./*.env` if the top")),
            (".env", Closes, Some("`**/.env`")),
            ("secrets/", Closes, Some("`**/secrets/`")),
            ("node_modules", Closes, Some("`./node_modules`")),
            ("README.md", Opens, None),
            ("docs/", Opens, Some("`./docs/` if the top")),
            ("./docs/", Opens, None),
            ("docs/gen/", Opens, None),
            ("secrets\\*", Opens, Some("leave it out")),
            ("secrets/.*", Opens, Some("`secrets/./.*`")),
            ("-secrets/**", Closes, Some("write `secrets/**` to close")),
            ("-secrets/**", Opens, Some("under `deny`")),
            ("- secrets/**", Closes, Some("write `secrets/**` to close")),
            ("+ secrets/**", Closes, Some("write `secrets/**` to close")),
            ("#secrets/**", Closes, Some("write `secrets/**` to close")),
            ("--exclude=secrets/**", Closes, Some("write `secrets/**` to close")),
            ("not secrets/**", Closes, Some("write `secrets/**` to close")),
            ("NOT secrets/**", Opens, Some("under `deny`")),
            ("not(secrets/**)", Closes, Some("write `secrets/**` to close")),
            ("exclude: secrets/**", Closes, Some("write `secrets/**` to close")),
            ("./-secrets/**", Closes, None),
            ("./not secrets/**", Closes, None),
            ("notes/**", Closes, None),
            ("no-go/**", Closes, None),
            ("@types/**", Opens, None),
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
                told.as_deref().zip(expected).is_some_and(|(text, part)| text.contains(part));
            assert!(is_told || told.is_none() && expected.is_none(), "{text}: {told:?}");
        }
    }

    /// A list that opens gets no advice to open more, whatever the pattern.
    #[test]
    fn no_note_advises_to_open_more() {
        for text in [
            "*.env",
            "docs/",
            "docs/.*",
            "docs\\*",
            "a/**, b/**",
            "-docs/**",
            "not docs/**",
            "*",
            "[ab].md",
        ] {
            let (_, hint) = misread(text, List::Opens).unwrap();
            assert!(!hint.contains("**/") && !hint.contains("for all"), "{text}: {hint}");
            assert!(!hint.contains("a pattern of each"), "{text}: {hint}");
            assert!(!hint.contains("/**") || hint.contains("under `deny`"), "{text}: {hint}");
        }
    }
}
