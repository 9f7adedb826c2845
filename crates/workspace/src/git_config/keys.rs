//! What the value of a key is to git: one table, with a reason for each.

use std::sync::LazyLock;

/// The table; what it says stands at its top.
const TABLE: &str = include_str!("keys.txt");

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyJudgement {
    /// No program, and no file that git takes orders from.
    Data,
    /// Data which says how a person works.
    Preference,
    /// A program, or a command for a shell.
    Command,
    /// A command where it begins with `!`.
    Alias,
    /// Where a repository is; a command behind `ext::`.
    Address,
    /// A folder: what lies in it is run, or copied to where it is run.
    Directory,
    /// A file that says whom to believe.
    Trust,
    /// A folder of hooks.
    Hooks,
    /// More configuration.
    Config,
    /// A file of attributes.
    Attributes,
    /// A working tree.
    Worktree,
}

/// A line of the table.
struct Line {
    key: &'static str,
    judgement: KeyJudgement,
}

/// What the value of a key is, written `section.key` or `section.subsection.key`, in small letters but for
/// the subsection; none where the table does not know the key.
#[must_use]
pub fn judge(key: &str) -> Option<KeyJudgement> {
    static LINES: LazyLock<Vec<Line>> = LazyLock::new(|| TABLE.lines().filter_map(line).collect());
    LINES.iter().find(|line| fits(line.key, key)).map(|line| line.judgement)
}

fn line(text: &'static str) -> Option<Line> {
    let mut columns = text.split('|').map(str::trim);
    let (key, judgement) = (columns.next()?, columns.next()?);
    let judgement = match judgement {
        "data" => KeyJudgement::Data,
        "preference" => KeyJudgement::Preference,
        "command" => KeyJudgement::Command,
        "alias" => KeyJudgement::Alias,
        "address" => KeyJudgement::Address,
        "directory" => KeyJudgement::Directory,
        "trust" => KeyJudgement::Trust,
        "hooks" => KeyJudgement::Hooks,
        "config" => KeyJudgement::Config,
        "attributes" => KeyJudgement::Attributes,
        "worktree" => KeyJudgement::Worktree,
        _ => return None,
    };
    Some(Line { key, judgement })
}

/// Whether a key is what a line names, in which a `*` stands for anything.
fn fits(line: &str, key: &str) -> bool {
    let mut parts = line.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = key.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line has a key, a judgement that there is, a source and a reason, and none is hidden by another.
    #[test]
    fn the_table_is_whole() {
        let mut known: Vec<&str> = Vec::new();
        let rows = TABLE.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
        for row in rows {
            let columns: Vec<&str> = row.split('|').map(str::trim).collect();
            assert_eq!(columns.len(), 4, "{row}");
            assert!(columns.iter().all(|own| !own.is_empty()), "{row}");
            let line = line(row).unwrap_or_else(|| panic!("{row}"));
            assert_eq!(line.key, line.key.to_lowercase(), "{row}");
            let example: String = line.key.replace('*', "x");
            assert!(!known.iter().any(|key| fits(key, &example)), "{row}");
            known.push(line.key);
        }
    }

    #[test]
    fn keys_are_judged() {
        use KeyJudgement::{
            Address, Alias, Command, Config, Data, Directory, Hooks, Preference, Trust,
        };
        for (key, judgement) in [
            ("core.hookspath", Some(Hooks)),
            ("core.fsmonitor", Some(Command)),
            ("core.excludesfile", Some(Data)),
            ("filter.a.b.clean", Some(Command)),
            ("filter.a.b.required", Some(Data)),
            ("alias.st", Some(Alias)),
            ("submodule.lib.update", Some(Alias)),
            ("submodule.lib.url", Some(Address)),
            ("url.ssh://x/.insteadof", Some(Address)),
            ("init.templatedir", Some(Directory)),
            ("includeif.gitdir:~/x.path", Some(Config)),
            ("http.sslcainfo", Some(Trust)),
            ("http.https://x/.sslcainfo", Some(Trust)),
            ("sendemail.tocmd", Some(Command)),
            ("sendemail.work.tocmd", Some(Command)),
            ("sendemail.to", Some(Data)),
            ("user.name", Some(Preference)),
            ("user.signingkey", Some(Data)),
            ("help.autocorrect", Some(Data)),
            ("core.newkey", None),
            ("else.x", None),
        ] {
            assert_eq!(judge(key), judgement, "{key}");
        }
    }
}
