//! The configuration of a repository, as far as it names files that git takes orders from.
//!
//! It is read as git reads it ([`settings`]), and what it would refuse is refused here. What the value of a
//! key is to git says a table ([`judge`]); the value of a key that it does not know is taken for a command.

mod keys;
mod lexer;

pub use keys::{KeyJudgement, judge};
pub use lexer::{Setting, settings};

use crate::command_words::CommandWords;

/// What an entry of a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A folder of hooks.
    Hooks(Vec<u8>),
    /// More configuration, as a path from where this one lies.
    Config(Vec<u8>),
    /// A file of attributes, by which files get drivers.
    Attributes(Vec<u8>),
    /// A working tree, as a path from the repository.
    Worktree(Vec<u8>),
    /// A file or a folder, whose content counts: the key and the path.
    Path(String, Vec<u8>),
    /// A command, or anything else that could be one: the key and the words that could name files.
    Command(String, Vec<Vec<u8>>),
}

/// A text that git would not read either, and the line where it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from one.
    pub line: usize,
}

/// What keys that no table knows have in their names where a folder that they name holds programs.
const PROGRAMS: [&str; 10] =
    ["hook", "template", "script", "plugin", "exec", "bin", "tool", "module", "driver", "helper"];

/// How deep settings are read that stand in aliases of others: `-c alias.x='-c ...'`.
const DEPTH: usize = 4;
/// Subcommands of git that start no program and read no configuration which their words name.
const HARMLESS: [&str; 24] = [
    "add",
    "blame",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "describe",
    "diff",
    "log",
    "ls-files",
    "merge",
    "mv",
    "reflog",
    "reset",
    "restore",
    "rev-parse",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];
/// Options of git by which an alias names directories of programs.
const DIRECTORIES: [&str; 2] = ["--exec-path=", "--template="];

/// Whether a subcommand of git starts no program and reads no configuration which its words name.
pub(crate) fn is_harmless_subcommand(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// What a configuration names.
///
/// # Errors
/// [`Broken`] where git would not read it.
pub fn read(text: &[u8]) -> Result<Vec<Named>, Broken> {
    Ok(settings(text)?.iter().flat_map(Setting::names).collect())
}

impl Setting {
    /// What it names.
    #[must_use]
    pub fn names(&self) -> Vec<Named> {
        self.names_within(DEPTH)
    }

    /// The same of a setting that stands in an alias, with how deep others may stand in it.
    fn names_within(&self, depth: usize) -> Vec<Named> {
        let Self { section, subsection, key, value } = self;
        if section.is_empty() {
            return Vec::new();
        }
        let whole = self.name();
        // What it is called in a rule's terms: names of one's own say nothing about what it means.
        let short = format!("{section}.{key}");
        let value = value.as_deref().unwrap_or_default();
        let path = || value.strip_prefix(b":(optional)").unwrap_or(value).to_vec();
        let path_of = |named: fn(Vec<u8>) -> Named| vec![named(path())];
        match judge(&whole) {
            Some(KeyJudgement::Data | KeyJudgement::Preference) => Vec::new(),
            Some(KeyJudgement::Hooks) => path_of(Named::Hooks),
            Some(KeyJudgement::Config) => path_of(Named::Config),
            Some(KeyJudgement::Attributes) => path_of(Named::Attributes),
            Some(KeyJudgement::Worktree) => path_of(Named::Worktree),
            Some(KeyJudgement::Directory | KeyJudgement::Trust) => vec![Named::Path(short, path())],
            Some(KeyJudgement::Alias) => match value.strip_prefix(b"!") {
                Some(value) => command(&short, value),
                None if section == "alias" => alias(&short, value, depth),
                None => Vec::new(),
            },
            Some(KeyJudgement::Address) => {
                // What an address is replaced by is what its section is about.
                let address = if section == "url" { subsection.as_deref() } else { Some(value) };
                let value = address.and_then(|address| address.strip_prefix(b"ext::"));
                value.map(|value| command(&short, value)).unwrap_or_default()
            }
            Some(KeyJudgement::Command) => command(&short, value),
            None => unknown(&short, path(), value),
        }
    }
}

/// What the value of a key could name that no table knows: a command, and where its name says so a folder
/// of programs.
fn unknown(key: &str, path: Vec<u8>, value: &[u8]) -> Vec<Named> {
    let holds_programs = PROGRAMS.iter().any(|program| key.contains(program));
    let folder = holds_programs.then(|| Named::Path(key.into(), path));
    folder.into_iter().chain(command(key, value)).collect()
}

/// What a command line names: its words, and directories of programs whose names cannot be read.
#[must_use]
pub fn command(key: &str, value: &[u8]) -> Vec<Named> {
    named_by_words(key, CommandWords::read(value))
}

/// The same of words that were read.
fn named_by_words(key: &str, CommandWords { words, directories }: CommandWords) -> Vec<Named> {
    let directories = directories.into_iter().map(|directory| Named::Path(key.into(), directory));
    directories.chain((!words.is_empty()).then(|| Named::Command(key.into(), words))).collect()
}

/// What an alias names that is made of words for git. Options of git and of some of its subcommands start programs,
/// set keys, and name directories of programs.
fn alias(key: &str, value: &[u8], depth: usize) -> Vec<Named> {
    let subcommand = value.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    let text = |word: &[u8]| std::str::from_utf8(word).is_ok_and(is_harmless_subcommand);
    if subcommand.is_none_or(text) {
        return Vec::new();
    }
    let read = CommandWords::read(value);
    let mut named = Vec::new();
    for word in &read.words {
        let option = |option: &&str| word.strip_prefix(option.as_bytes());
        let directory = DIRECTORIES.iter().find_map(option);
        named.extend(directory.map(|directory| Named::Path(key.into(), directory.to_vec())));
        if let Some(depth) = depth.checked_sub(1) {
            let setting = Setting::parse(word).filter(Setting::is_plain);
            named.extend(setting.into_iter().flat_map(|setting| setting.names_within(depth)));
        }
    }
    named.extend(named_by_words(key, read));
    named
}

impl Setting {
    /// A setting by its whole key.
    #[must_use]
    pub fn of(key: &[u8], value: Vec<u8>) -> Option<Self> {
        let first = key.iter().position(|byte| *byte == b'.')?;
        let last = key.iter().rposition(|byte| *byte == b'.')?;
        let lower = |text: &[u8]| String::from_utf8_lossy(text).to_lowercase();
        let subsection = key.get(first + 1..last).map(<[u8]>::to_vec);
        let (section, key) = (lower(key.get(..first)?), lower(key.get(last + 1..)?));
        Some(Self { section, subsection, key, value: Some(value) })
    }

    /// A setting in one word: `KEY=VALUE`.
    #[must_use]
    pub fn parse(word: &[u8]) -> Option<Self> {
        let equals = word.iter().position(|byte| *byte == b'=')?;
        Self::of(word.get(..equals)?, word.get(equals + 1..)?.to_vec())
    }

    /// A setting without a subsection.
    pub(crate) fn plain(section: &str, key: &str, value: Vec<u8>) -> Self {
        Self { section: section.into(), subsection: None, key: key.into(), value: Some(value) }
    }

    /// The name of its key, as [`judge`] takes it.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { section, key, .. } = self;
        match self.subsection.as_deref().map(String::from_utf8_lossy) {
            Some(about) => format!("{section}.{about}.{key}"),
            None => format!("{section}.{key}"),
        }
    }

    /// The setting as text of a configuration, with its section.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        let quoted = |text: &[u8]| {
            let mut quoted = Vec::from(*b"\"");
            for byte in text {
                match byte {
                    b'"' | b'\\' => quoted.extend([b'\\', *byte]),
                    b'\n' => quoted.extend(*b"\\n"),
                    _ => quoted.push(*byte),
                }
            }
            quoted.push(b'"');
            quoted
        };
        let mut text = format!("[{}", self.section).into_bytes();
        if let Some(about) = &self.subsection {
            text.push(b' ');
            text.extend(quoted(about));
        }
        text.extend(format!("]\n\t{}", self.key).into_bytes());
        if let Some(value) = &self.value {
            text.extend(*b" = ");
            text.extend(quoted(value));
        }
        text.push(b'\n');
        text
    }

    /// Whether its names are ones that git takes, so that a word is a setting and no other option.
    fn is_plain(&self) -> bool {
        let is_name =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !self.key.is_empty() && is_name(&self.section) && is_name(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
        let show = |named: &Named| match named {
            Named::Hooks(path) => format!("hooks {}", text_of(path)),
            Named::Config(path) => format!("config {}", text_of(path)),
            Named::Attributes(path) => format!("attributes {}", text_of(path)),
            Named::Worktree(path) => format!("worktree {}", text_of(path)),
            Named::Path(key, path) => format!("path {key} {}", text_of(path)),
            Named::Command(key, words) => {
                let words: Vec<_> = words.iter().map(|word| text_of(word)).collect();
                format!("{key} {}", words.join(","))
            }
        };
        read(text.as_bytes()).unwrap().iter().map(show).collect()
    }

    #[test]
    fn what_names_files_is_read() {
        for (text, expected) in [
            ("[core]\n\thooksPath = .githooks\n", vec!["hooks .githooks"]),
            ("[CORE]HooksPath=a b ; more\n", vec!["hooks a b"]),
            ("[core]\nhookspath = \"a # b \" # c", vec!["hooks a # b "]),
            ("[core]\r\nhookspath = x\\\r\n  y\r\n", vec!["hooks x  y"]),
            ("\u{feff}[core] ; c\nhookspath=a\\\\b\\\"c", vec!["hooks a\\b\"c"]),
            ("[include]\npath = ../.gitconfig", vec!["config ../.gitconfig"]),
            ("[includeIf \"gitdir:~/x]\\\"\"]\npath = p", vec!["config p"]),
            (
                "[core]\nattributesFile = :(optional)at\nworktree = ..",
                vec!["attributes at", "worktree .."],
            ),
            (
                "[filter \"x\"]\nclean = ./c.sh %f\nrequired",
                vec!["filter.clean ./c.sh,%f,./c.sh %f"],
            ),
            ("[alias]\nst = \"!sh -c './x;y'\"", vec!["alias.st sh,-c,./x,y,sh -c './x;y',./x;y"]),
            (
                "[alias]\nst = \"!$(top)/a/b.sh $X/c\"",
                vec!["alias.st top,/a/b.sh,X/c,a/b.sh,c,$(top)/a/b.sh $X/c"],
            ),
            ("[alias]\nst = status src", vec![]),
            ("[alias]\nlg = log --oneline\nco = checkout\nd = diff -- src/main.rs", vec![]),
            (
                "[alias]\nd = difftool -y -x ./d",
                vec!["alias.d difftool,-y,-x,./d,difftool -y -x ./d"],
            ),
            ("[branch \"b\"]\nmerge = refs/heads/b\n[remote \"o\"]\nurl = ../o", vec![]),
            ("[remote \"o\"]\nuploadpack = ./up", vec!["remote.uploadpack ./up"]),
            ("[remote \"o\"]\nurl = ext::./x y", vec!["remote.url ./x,y,./x y"]),
            ("[url \"ext::./x\"]\ninsteadOf = a", vec!["url.insteadof ./x"]),
            ("[submodule \"s\"]\nupdate = !./x\nurl = ../y", vec!["submodule.update ./x"]),
            ("[submodule \"s\"]\nupdate = rebase", vec![]),
            ("[init]\ntemplateDir = t", vec!["path init.templatedir t"]),
            ("[gpg \"ssh\"]\nallowedSignersFile = s", vec!["path gpg.allowedsignersfile s"]),
            ("[tool]\nhooksDir = h", vec!["path tool.hooksdir h", "tool.hooksdir h"]),
            ("[core]\nnewKey = ./x", vec!["core.newkey ./x"]),
            ("hookspath = x\n[core]\nhookspath = y", vec!["hooks y"]),
            ("# nothing\n; at all\n[core]\n\n", vec![]),
            ("[core]\nhookspath =\n", vec!["hooks "]),
            ("[core]\nhookspath = \u{c}x\u{c}\n", vec!["hooks \u{c}x\u{c}"]),
        ] {
            assert_eq!(told(text), expected, "{text:?}");
        }
    }

    #[test]
    fn settings_in_an_alias_are_judged_as_settings() {
        for (alias, expected) in [
            ("-c core.hooksPath=tools/h commit", "hooks tools/h"),
            ("-c include.path=tools/c x", "config tools/c"),
            ("-c init.templateDir=t clone", "path init.templatedir t"),
            ("clone -cinit.templateDir=t", "path init.templatedir t"),
            ("clone --config=init.templateDir=t", "path init.templatedir t"),
            ("-c alias.y='-c core.hooksPath=h commit' y", "hooks h"),
            ("--exec-path=tools x", "path alias.x tools"),
            ("clone --template=t", "path alias.x t"),
        ] {
            let told = told(&format!("[alias]\nx = \"{alias}\""));
            assert!(told.iter().any(|own| own == expected), "{alias}: {told:?}");
        }
        let deep = "-calias.a=".repeat(10_000);
        assert!(!told(&format!("[alias]\nx = {deep}./d")).is_empty());
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for (text, line) in [
            ("as it was", 1),
            ("[core\nx = 1", 2),
            ("[core]\nx = \"open\n", 3),
            ("[core]\nx = \\q\n", 2),
            ("[core]\nx y = 1", 2),
            ("[core \"a\nb\"]", 2),
            ("[core \"a\"x]", 1),
            ("[]\nx = 1", 1),
            ("[core]\n= 1", 2),
            ("[core]\n1x = 1", 2),
            ("[core]\n\u{c}x = 1", 2),
            ("[core]\nx = a\0b", 2),
            ("[core \"a\0b\"]\nx = a", 1),
        ] {
            assert_eq!(read(text.as_bytes()), Err(Broken { line }), "{text:?}");
        }
    }
}
