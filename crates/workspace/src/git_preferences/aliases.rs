//! Names that a user gave to subcommands of git.

use std::collections::BTreeMap;

use crate::git_config::{Setting, is_harmless_subcommand};

/// How often an alias may name another one.
const DEPTH: usize = 8;
/// Subcommands of git besides the harmless ones: git passes over an alias with such a name.
const SUBCOMMANDS: [&str; 34] = [
    "am",
    "apply",
    "archive",
    "bisect",
    "bundle",
    "cat-file",
    "cherry",
    "clone",
    "config",
    "diff-tree",
    "difftool",
    "fetch",
    "filter-branch",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "help",
    "init",
    "ls-remote",
    "ls-tree",
    "maintenance",
    "mergetool",
    "notes",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "remote",
    "repack",
    "revert",
    "rev-list",
    "submodule",
    "worktree",
];

/// The aliases that are made of words for git.
#[derive(Clone, Debug, Default)]
pub struct GitAliases(BTreeMap<String, Vec<String>>);

impl GitAliases {
    /// Notes an alias, or forgets one of the same name that this one replaces.
    pub(super) fn add(&mut self, setting: &Setting) {
        let name = match (&setting.subsection, setting.key.as_str()) {
            (None, name) => Some(name.to_owned()),
            (Some(name), "command") => String::from_utf8(name.clone()).ok(),
            _ => None,
        };
        let Some(name) = name.filter(|name| !is_subcommand(name)) else { return };
        match setting.value.as_deref().and_then(words) {
            Some(words) => drop(self.0.insert(name, words)),
            None => drop(self.0.remove(&name)),
        }
    }

    /// Those that begin with a subcommand which starts nothing, as settings.
    pub(super) fn harmless(&self) -> Vec<Setting> {
        let is_harmless =
            |words: &&Vec<String>| words.first().is_some_and(|word| is_harmless_subcommand(word));
        let one = |(name, words): (&String, &Vec<String>)| {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            let is_key = is_plain && name.starts_with(|first: char| first.is_ascii_alphabetic());
            (is_key && is_harmless(&words))
                .then(|| Setting::plain("alias", name, words.join(" ").into_bytes()))
        };
        self.0.iter().filter_map(one).collect()
    }

    /// The words for git behind an alias, of which these are the words behind `git`: the place of the alias among
    /// them, and the words that replace it. None where there is none.
    #[must_use]
    pub fn expansion(&self, arguments: &[&str]) -> Option<(usize, Vec<String>)> {
        let at = subcommand_index(arguments)?;
        let mut words = self.0.get(*arguments.get(at)?)?.clone();
        for _ in 0..DEPTH {
            let Some(inner) = words.first().and_then(|first| self.0.get(first)) else {
                return Some((at, words));
            };
            words.splice(..1, inner.iter().cloned());
        }
        None
    }
}

/// The place of the subcommand among the words behind `git`: options before it are passed over.
fn subcommand_index(arguments: &[&str]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *arguments.get(at)? {
            "-C" | "-c" => at += 2,
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" => at += 1,
            word if word.starts_with('-') => return None,
            _ => return Some(at),
        }
    }
}

fn is_subcommand(name: &str) -> bool {
    is_harmless_subcommand(name) || SUBCOMMANDS.contains(&name)
}

/// The words of an alias; none where it is a command for a shell, or is quoted.
fn words(value: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(value).ok()?;
    let is_plain =
        !text.contains(['\'', '"', '\\', '\0', '\n']) && !text.trim_start().starts_with('!');
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    (is_plain && words.first().is_some_and(|first| !first.starts_with('-'))).then_some(words)
}
