//! What a stage runs: a program that is named, and not a word that a shell keeps for itself.

use alloc::vec::Vec;

use super::construct::Construct;
use super::refusal::Refusal;
use super::shell_words::FIRST_WORDS;
use super::tree::{Redirect, Span, Stage, Stream, Word};

/// Puts the program in the place of what a shell has in itself and does the same: `true` for `:`, and
/// `which NAME` for `command -v NAME` and `type NAME`. Nothing else that these two can do is of this language.
pub(super) fn replace_builtin(stage: &mut Stage) {
    if let Some(first) = stage.words.first_mut().filter(|word| word.plain() == Some(":")) {
        first.pieces = Word::text("true").pieces;
    }
    if !stage.variables.is_empty() {
        return;
    }
    let plain: Vec<Option<&str>> = stage.words.iter().map(Word::plain).collect();
    let (all, names) = match plain.as_slice() {
        [Some("command"), Some("-v" | "-V"), names @ ..] => (false, names),
        [Some("type"), Some("-a"), names @ ..] => (true, names),
        [Some("type"), Some("-p" | "-P"), names @ ..] | [Some("type"), names @ ..] => {
            (false, names)
        }
        _ => return,
    };
    if names.is_empty() || !names.iter().all(|name| name.is_some_and(is_name)) {
        return;
    }
    let kept = stage.words.len() - names.len();
    let span = stage.words.first().map(|first| first.span.clone()).unwrap_or_default();
    let asked = [Some("which"), all.then_some("-a")].into_iter().flatten();
    let asked: Vec<Word> =
        asked.map(|text| Word { span: span.clone(), ..Word::text(text) }).collect();
    stage.words.splice(..kept, asked);
}

/// Whether a word is the plain name of a program, and none that a shell knows by itself.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['/', ' '])
        && !name.starts_with('-')
        && !FIRST_WORDS.iter().any(|(own, ..)| own.contains(&name))
        && !matches!(
            name,
            "echo" | "printf" | "test" | "[" | "pwd" | "kill" | "true" | "false" | "cd" | ":"
        )
}

/// Refuses a stage whose first word means something else to a shell than the program of that name.
pub(super) fn check(stage: &Stage, stages: usize) -> Result<(), Refusal> {
    let Some(first) = stage.words.first() else {
        return Err(Refusal::of(Construct::NoProgram, stage.span.clone()));
    };
    let Some(name) = first.plain() else {
        return Err(Refusal::of(Construct::ProgramPattern, first.span.clone()));
    };
    let refuse = |construct, why: &str, instead: &str| {
        Err(Refusal::because(construct, first.span.clone(), why, instead))
    };
    if name.starts_with('%') {
        let why = "this names a job of a shell";
        return refuse(Construct::Builtin, why, "leave it out; nothing runs in the background");
    }
    if let Some((_, construct, instead)) = FIRST_WORDS.iter().find(|(own, ..)| own.contains(&name))
    {
        let why = match construct {
            Construct::Builtin => alloc::format!("`{name}` exists only inside of a shell"),
            Construct::Keyword => alloc::format!("`{name}` is a word of a shell's own language"),
            other => other.message().into(),
        };
        return refuse(*construct, &why, instead);
    }
    if name == "time" { check_time(stage, stages, &first.span) } else { Ok(()) }
}

/// Bash measures a whole pipeline and says so on its own standard error; elsewhere `time` is a
/// program. They do the same before one plain program.
fn check_time(stage: &Stage, stages: usize, place: &Span) -> Result<(), Refusal> {
    let next = stage.words.get(1).and_then(Word::plain).unwrap_or_default();
    let is_kept = |own: &(&[&str], Construct, &str)| own.0.contains(&next);
    let is_program = !next.is_empty()
        && !next.starts_with(['-', '%'])
        && !next.contains('=')
        && !matches!(next, "time" | "cd" | ":")
        && !FIRST_WORDS.iter().any(is_kept);
    let is_err = |own: &Redirect| match own {
        Redirect::File { stream, .. } => *stream == Stream::Err,
        Redirect::Same { stream, target } => [*stream, *target].contains(&Stream::Err),
        _ => false,
    };
    if stages > 1 || !is_program || stage.redirects.iter().any(is_err) {
        return Err(Refusal::of(Construct::Time, place.clone()));
    }
    Ok(())
}
