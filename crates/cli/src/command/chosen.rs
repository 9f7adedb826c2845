//! Which changes of a run are applied: all of them, without those that a person leaves out. What a person is
//! asked about is applied only where they say so, on the command line or at the terminal.

use std::collections::BTreeSet;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::change::Change;
use capsule_core::outcome::CodedError;
use capsule_runtime::{SplitRepositories, StagedRun};

use crate::args::Apply;
use crate::card;
use crate::failure::Failure;
use crate::screen::Screen;

/// How many paths that are asked about are named.
const NAMED: usize = 10;

/// The changes that are applied, and the paths that are left out.
pub(super) fn chosen(
    subject: &StagedRun,
    label: &str,
    args: &Apply,
    screen: &Screen,
) -> Result<(Vec<Change>, Vec<String>), Failure> {
    let all = || subject.changes.0.values();
    for path in args.with.iter().chain(&args.without) {
        if !all().any(|change| covers(path, change)) {
            let message = format!("the run changed nothing at `{}`", escape::line(path));
            let hint = format!("`capsule changes {label}` lists what it changed");
            return Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into());
        }
    }
    let is_named =
        |paths: &[String], change: &Change| paths.iter().any(|path| covers(path, change));
    let (left_out, mut chosen): (Vec<Change>, Vec<Change>) =
        all().cloned().partition(|change| is_named(&args.without, change));
    let mut left_out: Vec<String> = left_out.into_iter().map(|change| change.path).collect();
    for change in chosen.iter_mut().filter(|change| is_named(&args.with, change)) {
        change.asked = None;
    }
    let (refused, rest): (Vec<&Change>, Vec<&Change>) =
        chosen.iter().partition(|change| change.refused.is_some());
    let command = Command::new(label, args);
    if let (Some(first), Some(rest)) = (refused.first(), command.rest(&refused, &rest)) {
        return Err(some_refused(first, &rest, label).into());
    }
    let dropped: Vec<&Change> = all().filter(|change| is_named(&args.without, change)).collect();
    if let Some(directory) =
        SplitRepositories::find(rest.iter().copied(), dropped).directories().next()
    {
        return Err(split_repository(directory, label).into());
    }
    let (asked, rest): (Vec<&Change>, Vec<&Change>) =
        rest.into_iter().partition(|change| change.asked.is_some());
    if refused.is_empty() && !asked.is_empty() {
        let question = question(&asked);
        match card::choose(screen, &format!("{question}\n{ANSWERS}")).as_deref() {
            Some("y") => chosen.iter_mut().for_each(|change| change.asked = None),
            Some("w") => {
                let (asked, rest) = chosen.into_iter().partition(|change| change.asked.is_some());
                chosen = rest;
                left_out.extend(
                    Vec::from_iter::<Vec<Change>>(asked).into_iter().map(|change| change.path),
                );
            }
            _ => return Err(unanswered(&asked, question, &command, &rest).into()),
        }
    }
    if chosen.is_empty() && !left_out.is_empty() {
        let problem = CodedError::new(Code::ChangeNone, "nothing is left to be applied");
        return Err(problem
            .with_suggestion(format!("`capsule discard {label}` drops all of it"))
            .into());
    }
    Ok((chosen, left_out))
}

/// What can be typed at the terminal.
const ANSWERS: &str =
    "y: apply all · w: apply the rest without them · anything else: apply nothing ";

/// Whether a path is that of a change, or of a directory above it.
fn covers(path: &str, change: &Change) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let beneath = change.path.strip_prefix(path);
    path == "." || beneath.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The reasons, each once, with how many paths have it.
fn question(asked: &[&Change]) -> String {
    let reasons: BTreeSet<&str> =
        asked.iter().filter_map(|change| change.asked.as_deref()).collect();
    let mut lines: Vec<String> =
        reasons.iter().take(NAMED).map(|why| escape::line(why).into_owned()).collect();
    if let Some(more) = reasons.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn unanswered(
    asked: &[&Change],
    question: String,
    command: &Command<'_>,
    others: &[&Change],
) -> CodedError {
    let all = named("--with", asked).unwrap_or_else(|| " --with .".into());
    let drop = || format!("`capsule discard {}` drops it", command.label);
    let rest = command.rest(asked, others).unwrap_or_else(drop);
    let hint = format!("`{}{all}` applies all of it; {rest}", command.line);
    CodedError::new(Code::ChangeAsked, question.replace('\n', "; ")).with_suggestion(hint)
}

/// A part of what belongs together is left out.
fn split_repository(directory: &str, label: &str) -> CodedError {
    let message = format!(
        "without a part of what the run made of `{directory}`, git could neither go on there nor go back"
    );
    CodedError::new(Code::ChangeRefused, message).with_suggestion(format!(
        "leave out the repository with its files, or nothing of it; `capsule discard {label}` drops all of it"
    ))
}

/// Some changes can be applied, and some cannot.
fn some_refused(first: &Change, rest: &str, label: &str) -> CodedError {
    let why = first.refused.as_deref().unwrap_or_default();
    let hint = format!("{rest}; `capsule discard {label}` drops all of it");
    CodedError::new(Code::ChangeRefused, format!("`{}`: {why}", first.path)).with_suggestion(hint)
}

/// The command as it was given, for suggestions to add to.
struct Command<'c> {
    label: &'c str,
    line: String,
}

impl<'c> Command<'c> {
    fn new(label: &'c str, args: &Apply) -> Self {
        let flags = |flag: &'static str, paths: &[String]| {
            paths.iter().map(|path| format!(" {flag} {}", shown(path))).collect::<String>()
        };
        let given = flags("--with", &args.with) + &flags("--without", &args.without);
        Self { label, line: format!("capsule apply {label}{given}") }
    }

    /// How others are applied without some changes, if any of them would be left.
    fn rest(&self, changes: &[&Change], others: &[&Change]) -> Option<String> {
        let Self { label, line } = self;
        let tops = topmost(changes);
        let is_covered = |other: &Change| tops.iter().any(|top| covers(top, other));
        let (dropped, rest): (Vec<&Change>, Vec<&Change>) =
            changes.iter().chain(others).partition(|other| is_covered(other));
        let split = SplitRepositories::find(rest.iter().copied(), dropped);
        let is_left = !rest.is_empty() && split.directories().next().is_none();
        is_left.then(|| match named("--without", changes) {
            Some(flags) => format!("`{line}{flags}` applies the rest"),
            None => format!(
                "with `--without PATH` for each, `{line}` applies the rest; `capsule changes {label}` lists them"
            ),
        })
    }
}

/// The paths that are above the others.
fn topmost<'c>(changes: &[&'c Change]) -> Vec<&'c str> {
    let mut tops: Vec<&str> = Vec::new();
    for change in changes {
        if !tops.iter().any(|top| covers(top, change)) {
            tops.push(&change.path);
        }
    }
    tops
}

/// A flag for each of the topmost paths, where they are few.
fn named(flag: &str, changes: &[&Change]) -> Option<String> {
    let tops = topmost(changes);
    let flags = tops.iter().map(|top| format!(" {flag} {}", shown(top)));
    (tops.len() <= NAMED).then(|| flags.collect())
}

/// A path as a shell takes it.
fn shown(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-+@".contains(c);
    match path.chars().all(is_plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", escape::line(path).replace('\'', "'\\''")),
    }
}
