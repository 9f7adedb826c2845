//! What is known about programs: which of their options take a value, which words are paths, what
//! reads, writes, or starts something else.
//!
//! The knowledge is data, one file a program under `crates/core/programs/`, with a reason beside
//! whatever is not plain reading. It refines a decision and never replaces the sandbox: a program
//! that is not known is judged by its words alone, and what a program does when it runs is held by
//! the walls around it.

mod line;
mod load;
mod reading;
mod word;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use once_cell::race::OnceBox;

pub use line::{CommandLine, base_name};
pub use load::load;
pub use reading::{Flag, Level, Reading};
pub use word::{PathUse, Start, Use};

/// What a command does by its nature, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It reads and prints.
    Reads,
    /// It reads files that its words do not name, so that no rule about words can judge them.
    Opens,
    /// It may change files.
    Writes,
    /// It may start other programs, or take orders from files in the workspace.
    Runs,
    /// It may talk to other computers.
    Network,
}

/// What a word on a command line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Text.
    Text,
    /// A path that is read.
    Path,
    /// A path that is written.
    Written,
    /// A path or something else, such as a revision; or both, such as `HEAD:docs/a.md`.
    MaybePath,
    /// A folder from which the paths behind it are seen.
    Folder,
    /// A range of lines and a file, such as `1,20:docs/a.md`.
    Range,
}

/// One option of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opt {
    /// Its names with their dashes, such as `-n` and `--lines`; `-NUM` stands for `-5`.
    pub names: Vec<String>,
    /// What its value stands for, if it takes one.
    pub value: Option<Word>,
    /// Whether the value can only be attached (`--color=always`) and may be left out.
    pub attached: bool,
    /// What it adds to the command's own effect.
    pub effect: Option<Effect>,
    /// Why that effect is named.
    pub why: Option<String>,
}

/// A program or one of its subcommands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What it does by its nature.
    pub effect: Effect,
    /// What the words that are not options stand for; the last entry holds for all that follow.
    pub operands: Vec<Word>,
    /// Its options.
    pub options: Vec<Opt>,
    /// Its subcommands, by name. With any, the first word that is no option is one.
    pub subcommands: Vec<(String, Command)>,
    /// Whether the beginning of a long option stands for it, where it is unique.
    pub abbreviates: bool,
    /// Whether `--no-x` takes back what `--x` says.
    pub negates: bool,
}

impl Command {
    /// What is known of a command that is not: any word may be a path, any option anything.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            effect: Effect::Network,
            operands: alloc::vec![Word::MaybePath],
            options: Vec::new(),
            subcommands: Vec::new(),
            abbreviates: false,
            negates: false,
        }
    }

    /// Whether this takes back an option that is known. It does no more than leaving that out.
    #[must_use]
    pub fn takes_back(&self, name: &str) -> bool {
        let plain = name.strip_prefix("--no-").filter(|_| self.negates);
        plain.is_some_and(|plain| {
            let positive = alloc::format!("--{plain}");
            self.option(&positive).or_else(|| self.abbreviated(&positive)).is_some()
        })
    }

    /// The option with exactly this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&Opt> {
        self.options.iter().find(|option| option.names.iter().any(|own| own == name))
    }

    /// The option that this beginning of a long name stands for.
    #[must_use]
    pub fn abbreviated(&self, name: &str) -> Option<&Opt> {
        if !self.abbreviates || name.len() < 3 {
            return None;
        }
        let mut found = self
            .options
            .iter()
            .filter(|option| option.names.iter().any(|own| own.starts_with(name)));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The subcommand of that name.
    #[must_use]
    pub fn subcommand(&self, name: &str) -> Option<&Self> {
        self.subcommands.iter().find(|(own, _)| own == name).map(|(_, command)| command)
    }
}

/// What is known of one program: its file, and what that says, once it was asked for.
struct File {
    name: &'static str,
    text: &'static str,
    read: OnceBox<Command>,
}

const fn file(name: &'static str, text: &'static str) -> File {
    File { name, text, read: OnceBox::new() }
}

/// The files. A new program is a file and a line here.
static FILES: [File; 4] = [
    file("cat", include_str!("../../programs/cat.yaml")),
    file("git", include_str!("../../programs/git.yaml")),
    file("head", include_str!("../../programs/head.yaml")),
    file("ls", include_str!("../../programs/ls.yaml")),
];

/// The names of all programs that are known.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.name)
}

/// What is known about a program. Its file is read once: several rules of every decision ask.
#[must_use]
pub fn known(name: &str) -> Option<&'static Command> {
    let file = FILES.iter().find(|file| file.name == name)?;
    file.read.get_or_try_init(|| load(file.name, file.text).map(Box::new)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_can_be_read() {
        for File { name, text, .. } in &FILES {
            if let Err(problems) = load(name, text) {
                panic!("{name}: {problems:#?}");
            }
        }
    }

    #[test]
    fn every_effect_has_its_reason() {
        fn check(path: &str, command: &Command) {
            for option in &command.options {
                assert!(
                    option.effect.is_none() || option.why.is_some(),
                    "{path} {:?} has an effect and no reason",
                    option.names
                );
            }
            for (name, inner) in &command.subcommands {
                check(&alloc::format!("{path} {name}"), inner);
            }
        }
        for name in names() {
            check(name, known(name).unwrap());
        }
    }
}
