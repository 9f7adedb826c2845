//! What a stage runs: a program that is named, and not a word that a shell keeps for itself.

use alloc::vec::Vec;

use super::ast::{PipelineStage, Redirection, ShellWord, Span, StdStream};
use super::refusal::SyntaxRefusal;
use super::reserved_words::RESERVED_COMMANDS;
use super::unsupported::UnsupportedSyntax;

/// Puts the program in the place of what a shell has in itself and does the same: `true` for `:`, and
/// `which NAME` for `command -v NAME` and `type NAME`. Nothing else that these two can do is of this language.
pub(super) fn replace_builtin(stage: &mut PipelineStage) {
    if let Some(first) = stage.words.first_mut().filter(|word| word.literal() == Some(":")) {
        first.pieces = ShellWord::text("true").pieces;
    }
    if !stage.variables.is_empty() {
        return;
    }
    let plain: Vec<Option<&str>> = stage.words.iter().map(ShellWord::literal).collect();
    let (all, names) = match plain.as_slice() {
        [Some("command"), Some("-v" | "-V"), names @ ..] => (false, names),
        [Some("type"), Some("-a"), names @ ..] => (true, names),
        [Some("type"), Some("-p" | "-P"), names @ ..] | [Some("type"), names @ ..] => {
            (false, names)
        }
        _ => return,
    };
    if names.is_empty() || !names.iter().all(|name| name.is_some_and(is_program_name)) {
        return;
    }
    let kept = stage.words.len() - names.len();
    let span = stage.words.first().map(|first| first.span.clone()).unwrap_or_default();
    let asked = [Some("which"), all.then_some("-a")].into_iter().flatten();
    let asked: Vec<ShellWord> =
        asked.map(|text| ShellWord { span: span.clone(), ..ShellWord::text(text) }).collect();
    stage.words.splice(..kept, asked);
}

/// Whether a word is the plain name of a program, and none that a shell knows by itself.
fn is_program_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['/', ' '])
        && !name.starts_with('-')
        && !RESERVED_COMMANDS.iter().any(|(item, ..)| item.contains(&name))
        && !matches!(
            name,
            "echo" | "printf" | "test" | "[" | "pwd" | "kill" | "true" | "false" | "cd" | ":"
        )
}

/// Whether a stage is `wait`, `jobs`, or a `kill` of a background part of the list, and so no program.
#[must_use]
pub fn is_about_jobs(stage: &PipelineStage) -> bool {
    let mut words = stage.words.iter().filter_map(ShellWord::literal);
    match words.next() {
        Some("wait" | "jobs") => true,
        Some("kill") => words.any(|word| word.starts_with('%')),
        _ => false,
    }
}

/// Refuses a stage whose first word means something else to a shell than the program of that name.
pub(super) fn check_command_name(
    stage: &PipelineStage,
    stages: usize,
    has_jobs: bool,
) -> Result<(), SyntaxRefusal> {
    let Some(first) = stage.words.first() else {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::NoProgram, stage.span.clone()));
    };
    let Some(name) = first.literal() else {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::ProgramPattern, first.span.clone()));
    };
    let refuse = |construct, why: &str, instead: &str| {
        Err(SyntaxRefusal::with_reason(construct, first.span.clone(), why, instead))
    };
    match is_about_jobs(stage) {
        true if stages == 1 && has_jobs => return Ok(()),
        is_about if is_about || name.starts_with('%') => {
            let why = "no background part of this list is meant";
            let hint = "start one by `CMD &` before it; `wait`, `jobs` and `kill %1` take no pipe and no group";
            return refuse(UnsupportedSyntax::Builtin, why, hint);
        }
        _ => {}
    }
    if let Some((_, construct, instead)) =
        RESERVED_COMMANDS.iter().find(|(item, ..)| item.contains(&name))
    {
        let why = match construct {
            UnsupportedSyntax::Builtin => alloc::format!("`{name}` exists only inside of a shell"),
            UnsupportedSyntax::Keyword => {
                alloc::format!("`{name}` is a word of a shell's own language")
            }
            other => other.message().into(),
        };
        return refuse(*construct, &why, instead);
    }
    if name == "time" { check_time(stage, stages, &first.span) } else { Ok(()) }
}

/// Bash measures a whole pipeline and says so on its own standard error; elsewhere `time` is a
/// program. They do the same before one plain program.
fn check_time(stage: &PipelineStage, stages: usize, place: &Span) -> Result<(), SyntaxRefusal> {
    let next = stage.words.get(1).and_then(ShellWord::literal).unwrap_or_default();
    let is_kept = |item: &(&[&str], UnsupportedSyntax, &str)| item.0.contains(&next);
    let is_program = !next.is_empty()
        && !next.starts_with(['-', '%'])
        && !next.contains('=')
        && !matches!(next, "time" | "cd" | ":")
        && !RESERVED_COMMANDS.iter().any(is_kept);
    let is_err = |redirection: &Redirection| match redirection {
        Redirection::File { stream, .. } => *stream == StdStream::Err,
        Redirection::Duplicate { stream, target } => [*stream, *target].contains(&StdStream::Err),
        _ => false,
    };
    if stages > 1 || !is_program || stage.redirects.iter().any(is_err) {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::Time, place.clone()));
    }
    Ok(())
}
