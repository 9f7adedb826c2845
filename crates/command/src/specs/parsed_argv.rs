//! A command line, read with what is known about its program.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::specs::effect::matched_effect;
use crate::specs::{Effect, Effects, MatchedEffect, PathUse, combined_effects};

/// A command line, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedArgv {
    /// The program first, then its subcommand, then that one's.
    pub levels: Vec<CommandLevel>,
    /// Whether an option of unknown arity stands before a word that could be a subcommand.
    pub ambiguous: bool,
    /// The words that stand for paths.
    pub paths: Vec<PathUse>,
    /// A word that names files in a way that cannot be judged.
    pub unclear_argument: Option<String>,
    /// What the command does by its nature, without its options.
    pub base_effects: Vec<MatchedEffect>,
    /// What its words add.
    pub argument_effects: Vec<MatchedEffect>,
    /// The words that are a command line of their own, by their places.
    pub nested: Vec<Range<usize>>,
    /// Whether it walks a folder and no option makes it mean less than all that is in it.
    pub walks_all: bool,
    /// Whether it opens nothing but what its words name.
    pub opens_named_only: bool,
    /// Whether its words name the script that it runs.
    pub names_script: bool,
    /// The files that its options name to be run or followed.
    pub scripts: Vec<String>,
    /// The programs that it runs by the names of their modules, or that the value of a setting names.
    pub modules: Vec<String>,
    /// The variables that its words set for a command line of its own, with their values.
    pub variables: Vec<(String, String)>,
}

/// A program or subcommand on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLevel {
    /// Its name as written.
    pub name: String,
    /// Whether it is known.
    pub known: bool,
    /// Its options.
    pub flags: Vec<ParsedFlag>,
    /// Its words that are neither options nor a subcommand.
    pub operands: Vec<String>,
}

impl CommandLevel {
    /// Whether the only option asks what the command is or does: without an operand it says that and
    /// ends. These two long options have no other meaning anywhere; of the short ones this cannot be
    /// said.
    pub(super) fn asks_for_help(&self) -> bool {
        matches!(self.flags.as_slice(), [ParsedFlag { spelled, names, value: None, effect: None }]
            if !names.is_empty() && matches!(spelled.as_str(), "--help" | "--version"))
    }
}

/// An option on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedFlag {
    /// Its name as written, without a value: `--out`, `-o`, `-rf`.
    pub spelled: String,
    /// All its names, where the program is known to have it.
    pub names: Vec<String>,
    /// Its value, where it is known to have one.
    pub value: Option<String>,
    /// What it adds, where that is known.
    pub effect: Option<MatchedEffect>,
}

impl ParsedFlag {
    /// `--no-x`: known to do nothing of its own.
    pub(super) fn taken_back(spelled: &str) -> Self {
        let names = alloc::vec![String::from(spelled)];
        Self { spelled: spelled.into(), names, value: None, effect: None }
    }

    /// Whether this could be the option `name`: by one of its names, as the beginning of a long
    /// name, or as a letter among several behind one dash. Used where a match denies.
    #[must_use]
    pub fn could_be(&self, name: &str) -> bool {
        if !self.names.is_empty() {
            return self.names.iter().any(|text| text == name);
        }
        self.spelled == name
            || (self.spelled.starts_with("--") && name.starts_with(&self.spelled))
            || self.letters().any(|letter| name.strip_prefix('-') == Some(letter))
            || self.letters().next().is_some() && attached_value(&self.spelled, name)
    }

    /// Whether this surely is the option `name`. Used where a match allows.
    #[must_use]
    pub fn is_certainly(&self, name: &str) -> bool {
        if self.names.is_empty() {
            self.spelled == name
        } else {
            self.names.iter().any(|text| text == name)
        }
    }

    /// The letters of `-rf`, each as text.
    fn letters(&self) -> impl Iterator<Item = &str> {
        let cluster = match self.spelled.strip_prefix('-') {
            Some(cluster) if !cluster.starts_with('-') && cluster.len() > 1 => cluster,
            _ => "",
        };
        cluster.split("").filter(|letter| !letter.is_empty())
    }
}

/// Whether `-ofile` could be `-o` with its value attached.
fn attached_value(spelled: &str, name: &str) -> bool {
    name.len() == 2 && name.starts_with('-') && spelled.starts_with(name)
}

impl ParsedArgv {
    /// Whether the program is known.
    #[must_use]
    pub fn known(&self) -> bool {
        self.levels.first().is_some_and(|level| level.known)
    }

    /// The last level: the subcommand if there is one, else the program.
    #[must_use]
    pub fn last_level(&self) -> Option<&CommandLevel> {
        self.levels.last()
    }

    /// The program is a file that a word names by its path: what it is called says little. Where it is a link to a
    /// known program outside of the workspace, it is that one, in an environment of the project.
    pub(super) fn mark_workspace_program(&mut self, word: &str, is_known: bool) {
        self.paths.push(PathUse::read(word));
        let (effect, why) = match is_known {
            true => (Effect::Runs, "runs in an environment of the project"),
            false => (Effect::Code, "is a file that can be any program"),
        };
        let added = matched_effect(effect, word);
        self.base_effects.push(MatchedEffect { why: why.into(), ..added });
    }

    /// All that the command does, without what command lines of their own among its words do.
    #[must_use]
    pub fn effects(&self) -> Effects {
        combined_effects(&self.base_effects).union(combined_effects(&self.argument_effects))
    }

    /// What the command does, word by word.
    pub fn matched_effects(&self) -> impl Iterator<Item = &MatchedEffect> {
        self.base_effects.iter().chain(&self.argument_effects)
    }
}

/// A level of which nothing but the name was read.
pub(super) fn new_level(name: &str, known: bool) -> CommandLevel {
    CommandLevel { name: name.to_string(), known, flags: Vec::new(), operands: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specs::{Effect, find_spec};

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    fn read(line: &str) -> ParsedArgv {
        let argv = argv(line);
        ParsedArgv::parse(&argv, find_spec(&argv[0]), true)
    }

    #[test]
    fn paths_are_found_where_the_program_is_known() {
        for (line, paths) in [
            ("cat a b", &["a", "b"][..]),
            ("cat -n -- -x", &["-x"]),
            ("cat -", &[]),
            ("head -n 5 a", &["a"]),
            ("head -n5 a", &["a"]),
            ("head -5 a", &["a"]),
            ("head --lines=5 a", &["a"]),
            ("head --li 5 a", &["a"]),
            ("head -c 5 /etc/passwd", &["/etc/passwd"]),
            ("ls -la --color=auto /etc", &["/etc"]),
            ("ls -I pat x", &["x"]),
            ("git log v1.2.0..HEAD", &["v1.2.0..HEAD", "v1.2.0..HEAD"]),
            ("git -C /other status", &["/other"]),
            ("git -C a status -- b", &["a", "a/b"]),
            ("git diff --no-index /dev/null /etc/shadow", &["/etc/shadow", "/etc/shadow"]),
            ("git log -- docs", &["docs"]),
            ("git log -L1,2:docs/a", &["docs/a"]),
            ("git blame --contents=x -- y", &["x", "y"]),
            ("git merge-base a b", &[]),
            ("git diff --output=../x", &["../x"]),
        ] {
            let reading = read(line);
            let found: Vec<&str> = reading.paths.iter().map(|use_| use_.path.as_str()).collect();
            assert_eq!(found, paths, "{line}");
        }
    }

    #[test]
    fn subcommands_are_found_behind_options() {
        for (line, name) in [
            ("git log", "log"),
            ("git -c a=b push", "push"),
            ("git --git-dir x push", "push"),
            ("git --git-dir=x push origin", "push"),
            ("git --no-pager log", "log"),
        ] {
            let reading = read(line);
            assert_eq!(reading.last_level().unwrap().name, name, "{line}");
            assert!(!reading.ambiguous, "{line}");
        }
        assert!(read("git --made-up log").ambiguous);
        let unknown = ParsedArgv::parse(&argv("tool --opt push"), None, true);
        assert!(unknown.ambiguous);
        assert_eq!(unknown.last_level().unwrap().name, "push");
    }

    #[test]
    fn a_denied_flag_is_found_in_every_spelling() {
        for (line, denied, found) in [
            ("tool --output=x", "--output", true),
            ("tool --outp x", "--output", true),
            ("tool --out-of-tune", "--output", false),
            ("tool -rf", "-f", true),
            ("tool -ofile", "-o", true),
            ("tool -- --output", "--output", true),
            ("git diff --ext-di", "--ext-diff", true),
            ("git log --output x", "--output", true),
            ("git -cx=y log", "-c", true),
            ("head -5 x", "-n", false),
        ] {
            let reading = read(line);
            let got =
                reading.levels.iter().any(|l| l.flags.iter().any(|flag| flag.could_be(denied)));
            assert_eq!(got, found, "{line} {denied}");
        }
    }

    #[test]
    fn effects_add_up() {
        use Effect::{Reads, Starts, Unknown, Writes};
        for (line, effects) in [
            ("git log --oneline -5", &[Reads][..]),
            ("git log --output=x", &[Reads, Writes]),
            ("git diff --ext-diff", &[Reads, Starts]),
            ("git made-up", &[Unknown]),
            ("cat --made-up x", &[Reads, Unknown]),
            ("tool x", &[Unknown]),
        ] {
            assert_eq!(read(line).effects(), effects.iter().copied().collect(), "{line}");
        }
    }

    #[test]
    fn an_option_may_stand_for_the_first_operand() {
        use crate::specs::PathAccess;
        for (line, paths) in [
            ("grep x a", &[("a", PathAccess::Read)][..]),
            ("grep -e x a", &[("a", PathAccess::Read)]),
            ("grep -e x -e y a b", &[("a", PathAccess::Read), ("b", PathAccess::Read)]),
            ("grep -rfpats a", &[("pats", PathAccess::Read), ("a", PathAccess::Read)]),
            ("grep a -e x b", &[("a", PathAccess::Read), ("b", PathAccess::Read)]),
            ("rg src --files", &[("src", PathAccess::Read)]),
            ("sed s/x/y/ a", &[("a", PathAccess::Read)]),
            ("sed -i s/x/y/ a", &[("a", PathAccess::Write)]),
            ("sed -e s/x/y/ a -i", &[("a", PathAccess::Write)]),
            ("sed -ne s/x/y/p a", &[("a", PathAccess::Read)]),
            ("chmod 644 a", &[("a", PathAccess::Write)]),
            ("chmod -x a", &[("a", PathAccess::Write)]),
            ("install -d a b", &[("a", PathAccess::Write), ("b", PathAccess::Write)]),
        ] {
            let reading = read(line);
            let found: Vec<_> =
                reading.paths.iter().map(|path| (path.path.as_str(), path.access)).collect();
            assert_eq!(found, paths, "{line}");
            assert!(reading.unclear_argument.is_none(), "{line}");
            assert!(!reading.effects().contains(Effect::Unknown), "{line}");
        }
        assert_eq!(read("sed a -e p b").unclear_argument.as_deref(), Some("a"));
    }
}
