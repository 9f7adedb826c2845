//! Commands that are typed into a chat. Each is the command of the program of the same name, about this chat's run.

use capsule_base::suggestion::closest;
use clap::Parser as _;

use crate::args::{Arguments, Globals};
use crate::failure::{Failure, usage_failure};
use crate::screen::Screen;

/// The action of a command of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlashKind {
    /// Runs this command of the program; `{run}` is the chat's run, `{policy}` and `{profile}` what it is judged by.
    /// More words are added.
    Program(&'static [&'static str]),
    /// Lists the commands.
    Help,
    /// Says which model is asked, or has another one asked.
    Model,
    /// Has a file go with the next message.
    Attach,
    /// Ends a turn.
    Stop,
    /// Ends the chat.
    Quit,
}

/// A command of a chat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    /// The words that may follow.
    words: &'static str,
    about: &'static str,
    pub(crate) kind: SlashKind,
    /// Whether it needs a run, which there is once something was said.
    needs_run: bool,
    /// Whether it takes the session's lock.
    pub(crate) takes_session: bool,
}

const fn local(name: &'static str, about: &'static str, kind: SlashKind) -> SlashCommand {
    SlashCommand { name, words: "", about, kind, needs_run: false, takes_session: false }
}

const fn of_run(
    name: &'static str,
    words: &'static str,
    about: &'static str,
    program: &'static [&'static str],
) -> SlashCommand {
    let kind = SlashKind::Program(program);
    SlashCommand { name, words, about, kind, needs_run: true, takes_session: false }
}

const fn of_session(command: SlashCommand) -> SlashCommand {
    SlashCommand { takes_session: true, ..command }
}

const COMMANDS: &[SlashCommand] = &[
    local("help", "lists these commands", SlashKind::Help),
    SlashCommand {
        needs_run: false,
        ..of_run(
            "policy",
            "",
            "shows the rules that hold here",
            &["policy", "show", "--resolved", "--policy={policy}", "--profile={profile}"],
        )
    },
    SlashCommand {
        needs_run: false,
        ..of_run(
            "grants",
            "[revoke ID | clear]",
            "shows what you allowed beyond a call",
            &["grants"],
        )
    },
    of_run("changes", "[--diff]", "shows what was changed", &["changes", "{run}"]),
    of_session(of_run(
        "apply",
        "[--with PATH] [--without PATH]",
        "makes the staged changes in the workspace",
        &["apply", "{run}"],
    )),
    of_session(of_run("discard", "", "drops the staged changes", &["discard", "{run}"])),
    of_session(of_run(
        "undo",
        "[--dry-run]",
        "brings back what was there before",
        &["undo", "{run}"],
    )),
    of_run("report", "[--format json]", "shows all that happened", &["report", "{run}"]),
    of_run("export", "FILE", "writes the record into a file", &["audit", "export", "--out"]),
    SlashCommand {
        words: "PATH",
        ..local("attach", "gives the model a file with your next message", SlashKind::Attach)
    },
    SlashCommand {
        words: "[NAME]",
        ..local("model", "says which model is asked, or asks another one", SlashKind::Model)
    },
    local("stop", "ends a turn, as Esc does", SlashKind::Stop),
    local("quit", "ends the chat, as Ctrl+D does", SlashKind::Quit),
];

/// A line that is a command: the command and its words. None where it is a message.
///
/// # Errors
/// When it is none of the commands.
pub(crate) fn parse(line: &str) -> Option<Result<(SlashCommand, Vec<String>), Failure>> {
    let mut words = line.trim().strip_prefix('/')?.split_whitespace();
    let name = words.next().unwrap_or_default();
    // A path that begins a message is no command.
    if name.contains('/') {
        return None;
    }
    let known = COMMANDS.iter().find(|command| command.name == name);
    let words: Vec<String> = words.map(str::to_owned).collect();
    Some(known.map(|command| (*command, words)).ok_or_else(|| unknown(name)))
}

fn unknown(name: &str) -> Failure {
    let names = COMMANDS.iter().map(|command| command.name);
    let message = format!("`/{name}` is no command of a chat");
    match closest(name, names) {
        Some(near) => usage_failure(format!("{message}: did you mean `/{near}`?")),
        None => usage_failure(format!("{message}; `/help` lists them")),
    }
}

/// The commands that begin like what was typed.
pub(crate) fn completions(typed: &str) -> Vec<String> {
    let Some(begun) = typed.strip_prefix('/') else { return Vec::new() };
    let names = COMMANDS.iter().map(|command| command.name).filter(|name| name.starts_with(begun));
    names.map(|name| format!("/{name} ")).collect()
}

/// The lines of `/help`.
pub(crate) fn help_lines() -> Vec<String> {
    let mut lines: Vec<String> = COMMANDS
        .iter()
        .map(|SlashCommand { name, words, about, .. }| {
            let named = format!("/{name} {words}");
            format!("  {:<18} {about}", named.trim_end())
        })
        .collect();
    lines
        .push("  a line that ends with \\ goes on in the next one; a paste keeps its lines".into());
    lines.push(
        "  Esc or Ctrl+C ends a turn · Ctrl+D ends the chat · ↑ brings back what you said".into(),
    );
    lines
}

/// Runs a command of the program; gives its exit status.
pub(crate) type RunCommand = fn(&Arguments, &Screen) -> Result<u8, Failure>;

/// The values of the placeholders in a command.
pub(crate) struct SlashSubject<'s> {
    /// The chat's run, once there is one.
    pub(crate) run: Option<&'s str>,
    pub(crate) policy: &'s str,
    pub(crate) profile: &'s str,
}

/// Runs the command of the program that a command of the chat names.
///
/// # Errors
/// As that command; when the chat has no run yet, or the words make no sense.
pub(crate) fn run_program(
    command: &SlashCommand,
    program: &[&str],
    words: &[String],
    subject: &SlashSubject<'_>,
    (globals, screen, run_command): (&Globals, &Screen, RunCommand),
) -> Result<(), Failure> {
    if command.needs_run && subject.run.is_none() {
        return Err(usage_failure("nothing was said yet, so there is no run"));
    }
    let run = subject.run.unwrap_or_default();
    let fill = |word: &&str| {
        let word = word.replace("{run}", run).replace("{policy}", subject.policy);
        word.replace("{profile}", subject.profile)
    };
    let mut all: Vec<String> = std::iter::once("capsule".to_owned()).collect();
    all.extend(program.iter().map(fill));
    let words = match (command.name, words) {
        ("grants", []) => vec!["list".to_owned()],
        _ => words.to_vec(),
    };
    all.extend(words);
    let read = match Arguments::try_parse_from(all) {
        Ok(read) => read,
        Err(error) => {
            let rendered = error.render().to_string();
            let first = rendered.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            let usage = format!("{first}; usage: /{} {}", command.name, command.words);
            return Err(usage_failure(usage.trim_end()));
        }
    };
    let arguments = Arguments { globals: globals.clone(), ..read };
    run_command(&arguments, screen).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        for message in ["hello", "", "/home/me/a.txt is mine", " // x"] {
            assert!(parse(message).is_none(), "{message}");
        }
        let (command, words) = parse(" /changes  --diff ").unwrap().unwrap();
        assert_eq!((command.name, words.as_slice()), ("changes", ["--diff".to_owned()].as_slice()));
        for (line, hint) in [("/aply", "`/apply`"), ("/frobnicate", "`/help`"), ("/", "`/help`")] {
            let Failure::Problem(problem) = parse(line).unwrap().unwrap_err() else {
                panic!("{line}")
            };
            assert!(problem.message.contains(hint), "{}", problem.message);
        }
        assert_eq!(completions("/re"), ["/report "]);
        assert!(completions("re").is_empty());
    }

    /// Each command of the program that one of the chat runs can be read.
    #[test]
    fn commands_are_those_of_the_program() {
        for command in COMMANDS {
            let SlashKind::Program(program) = command.kind else { continue };
            let more = match command.name {
                "grants" => &["list"][..],
                "export" => &["x.db"][..],
                _ => &[],
            };
            let words = [&["capsule"], program, more].concat();
            assert!(Arguments::try_parse_from(words).is_ok(), "{}", command.name);
        }
    }
}
