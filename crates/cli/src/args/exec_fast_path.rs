//! `exec` without all the other commands: describing them takes longer than reading the words of one,
//! and it is felt where a command takes a few milliseconds.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::{Arguments, Command, ExecArgs, Globals};

/// The command line where its first word is `exec`.
#[derive(Debug, Parser)]
#[command(name = "capsule", version, max_term_width = 100, propagate_version = false)]
struct ExecOnlyArguments {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: ExecOnlyCommand,
}

#[derive(Debug, Subcommand)]
enum ExecOnlyCommand {
    /// Run one command under a policy; streams its output and ends with its status
    Exec(ExecArgs),
}

impl Arguments {
    /// Reads the words of the command line, the first of which is the program's own name.
    ///
    /// # Errors
    /// What there is to say in place of a command: help, the version, or what is wrong.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.collect();
        let is_exec = words.get(1).is_some_and(|first| first == "exec");
        // Whatever there is to say to a person, is said by the description of the whole.
        match is_exec.then(|| ExecOnlyArguments::try_parse_from(&words)) {
            Some(Ok(ExecOnlyArguments { globals, command: ExecOnlyCommand::Exec(exec) })) => {
                Ok(Self { globals, command: Command::Exec(exec) })
            }
            Some(Err(_)) | None => Self::try_parse_from(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_the_whole_would_read_it() {
        let lines: [&[&str]; 10] = [
            &["exec", "--", "ls", "-l", "--json"],
            &["exec", "--json", "--policy", "p.yaml", "--profile=x", "--", "true"],
            &["exec", "--workspace", "w", "--store", "s", "--color", "never", "--plain", "--", "a"],
            &["exec", "--cwd", "src", "--timeout", "5s", "--", "make"],
            &["exec", "--help"],
            &["exec", "-h"],
            &["exec"],
            &["exec", "ls"],
            &["exec", "--polcy", "x", "--", "ls"],
            &["--json", "exec", "--", "ls"],
        ];
        for line in lines {
            let words = || ["capsule"].iter().chain(line).map(OsString::from);
            let told = |read: Result<Arguments, clap::Error>| match read {
                Ok(arguments) => format!("{arguments:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(told(Arguments::read(words())), told(Arguments::try_parse_from(words())));
        }
    }
}
