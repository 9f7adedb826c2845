//! Which changes of a run are applied: all of them, without those that a person leaves out. What a person is
//! asked about is applied only where they say so, on the command line or at the terminal.

use std::collections::BTreeSet;

use capsule_core::change::Change;
use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::outcome::Problem;
use capsule_runtime::Subject;

use crate::args::Apply;
use crate::card;
use crate::failure::Failure;
use crate::screen::Screen;

/// How many paths that are asked about are named.
const NAMED: usize = 10;

/// The changes that are applied, and the paths that are left out.
pub(super) fn chosen(
    subject: &Subject,
    label: &str,
    args: &Apply,
    screen: &Screen,
) -> Result<(Vec<Change>, Vec<String>), Failure> {
    let all = || subject.changes.0.values();
    for path in args.with.iter().chain(&args.without) {
        if !all().any(|change| covers(path, change)) {
            let message = format!("the run changed nothing at `{}`", escape::line(path));
            let hint = format!("`capsule changes {label}` lists what it changed");
            return Err(Problem::new(Code::Usage, message).suggest(hint).into());
        }
    }
    let is_named =
        |paths: &[String], change: &Change| paths.iter().any(|path| covers(path, change));
    let (left_out, mut chosen): (Vec<Change>, Vec<Change>) =
        all().cloned().partition(|change| is_named(&args.without, change));
    let mut left_out: Vec<String> = left_out.into_iter().map(|own| own.path).collect();
    for change in chosen.iter_mut().filter(|own| is_named(&args.with, own)) {
        change.asked = None;
    }
    let asked: Vec<&Change> = chosen.iter().filter(|own| own.asked.is_some()).collect();
    if !asked.is_empty() && !chosen.iter().any(|own| own.refused.is_some()) {
        let question = question(&asked);
        match card::choose(screen, &format!("{question}\n{ANSWERS}")).as_deref() {
            Some("y") => chosen.iter_mut().for_each(|own| own.asked = None),
            Some("w") => {
                let (asked, rest) = chosen.into_iter().partition(|own| own.asked.is_some());
                chosen = rest;
                left_out
                    .extend(Vec::from_iter::<Vec<Change>>(asked).into_iter().map(|own| own.path));
            }
            _ => return Err(unanswered(&asked, question, label).into()),
        }
    }
    if chosen.is_empty() && !left_out.is_empty() {
        let problem = Problem::new(Code::ChangeNone, "nothing is left to be applied");
        return Err(problem.suggest(format!("`capsule discard {label}` drops all of it")).into());
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
    let reasons: BTreeSet<&str> = asked.iter().filter_map(|own| own.asked.as_deref()).collect();
    let mut lines: Vec<String> =
        reasons.iter().take(NAMED).map(|why| escape::line(why).into_owned()).collect();
    if let Some(more) = reasons.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn unanswered(asked: &[&Change], question: String, label: &str) -> Problem {
    let mut tops: Vec<&str> = Vec::new();
    for change in asked {
        if !tops.iter().any(|top| covers(top, change)) {
            tops.push(&change.path);
        }
    }
    let flags = |flag: &str| {
        let named = tops.iter().take(NAMED).map(|top| format!(" {flag} {}", shown(top)));
        named.collect::<String>()
    };
    let hint = format!(
        "`capsule apply {label}{}` applies all of it, `capsule apply {label}{}` the rest",
        flags("--with"),
        flags("--without")
    );
    Problem::new(Code::ChangeAsked, question.replace('\n', "; ")).suggest(hint)
}

/// A path as a shell takes it.
fn shown(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-+@".contains(c);
    match path.chars().all(is_plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", escape::line(path).replace('\'', "'\\''")),
    }
}
