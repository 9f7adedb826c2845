//! Constraints on paths.

use alloc::format;
use alloc::vec::Vec;

use crate::action::{Action, FileKind, PathFact, PathTarget, Place};
use crate::code::Code;
use crate::path::{PathProblem, WorkspacePath};
use crate::policy::decide::{Case, Finding, because, words};
use crate::policy::model::{FileRule, PathRule, ToolRule};
use crate::programs::{PathUse, Use};

/// Checks the path of a file tool. Nothing found means that the tool's own word decides.
pub(super) fn check(
    files: &FileRule,
    rule: &ToolRule,
    case: &Case<'_>,
    target: &PathTarget,
) -> Vec<Finding> {
    let tool = case.tool.as_str();
    let path = match &target.place {
        Place::Inside(path) => path,
        Place::Outside(problem) => return alloc::vec![outside(&target.asked, *problem)],
    };
    let fact = case.facts.at(path);
    let looks = matches!(case.action, Action::Search { .. } | Action::List { .. });
    if let Some(finding) = closed(files, path, fact, looks) {
        return alloc::vec![finding.by(tool, &rule.source)];
    }
    if let Action::Write { bytes, .. } = case.action
        && *bytes > files.bytes_max
    {
        let reason =
            format!("{bytes} bytes are more than the {} that may be written", files.bytes_max);
        let finding = Finding::deny(Code::PathNotAllowed, reason)
            .by(tool, &rule.source)
            .suggest(Some("write it in parts with `mode: append`"));
        return alloc::vec![finding];
    }
    let seen = fact.and_then(real).unwrap_or(path);
    let matching: Vec<&PathRule> = files
        .rules
        .iter()
        .filter(|nested| nested.paths.iter().any(|pattern| pattern.matches(seen)))
        .collect();
    matching.into_iter().filter_map(|nested| nested_word(nested, case)).collect()
}

fn nested_word(nested: &PathRule, case: &Case<'_>) -> Option<Finding> {
    let verdict = nested.decision?;
    let id = format!("{}/{}", case.tool, nested.id);
    let reason = because(&nested.because, || words(verdict, &format!("`{}`", nested.id)));
    Some(Finding::word(verdict, reason).by(id, &nested.source).suggest(nested.suggest.clone()))
}

/// A path that is not inside.
pub(super) fn outside(asked: &str, problem: PathProblem) -> Finding {
    let code = match problem {
        PathProblem::Invalid | PathProblem::Winds => Code::PathInvalid,
        PathProblem::TooLong => Code::PathTooLong,
        _ => Code::PathOutside,
    };
    let shown: alloc::string::String = asked.chars().take(200).collect();
    let suggestion = match problem {
        PathProblem::Invalid => "name the file plainly",
        PathProblem::TooLong => "shorten the path",
        PathProblem::Winds => "name the path without `..`, from the workspace or the real folder",
        _ => "name a path relative to the workspace, such as `src/main.rs`",
    };
    Finding::deny(code, format!("the path `{shown}` {}", problem.reason()))
        .suggest(Some(suggestion))
}

/// Where a path leads, if that is inside.
pub(super) const fn real(fact: &PathFact) -> Option<&WorkspacePath> {
    match &fact.real {
        Place::Inside(real) => Some(real),
        Place::Outside(_) => None,
    }
}

/// A path that stands for whatever is in a folder. No file is called so: names are not control
/// characters here.
pub(super) fn any_child(folder: &WorkspacePath) -> WorkspacePath {
    folder.join("\u{1}")
}

/// What closes a path that a word of a command line may name, if anything does. Where the word may
/// mean something else and nothing stands there, only what is closed by name counts.
pub(super) fn closed_argument(
    files: &FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    used: &PathUse,
) -> Option<Finding> {
    let found = fact.is_some_and(|fact| {
        fact.kind != FileKind::Missing || matches!(fact.real, Place::Outside(_))
    });
    let real = fact.and_then(real);
    let named = if used.sure || found {
        closed(files, path, fact, used.usage != Use::Write)
    } else {
        closed_by_name(files, path, real)
    };
    named.or_else(|| match used.usage {
        // Whoever reads a whole folder reads what is closed in it.
        Use::ReadTree => {
            let real = real.unwrap_or(path);
            let inner = closed_by_name(files, &any_child(path), Some(&any_child(real)))?;
            Some(Finding { reason: inner.reason.replace("/\u{1}", ""), ..inner })
        }
        Use::Read | Use::Write => None,
    })
}

fn closed_by_name(
    files: &FileRule,
    path: &WorkspacePath,
    real: Option<&WorkspacePath>,
) -> Option<Finding> {
    let mut each = core::iter::once(path).chain(real);
    let denied = |path: &WorkspacePath| files.deny.iter().find(|pattern| pattern.covers(path));
    let pattern = each.find_map(denied)?;
    let reason = format!("`{path}` is closed by `paths.deny: {}`", pattern.text);
    let hint = "leave it alone, or take it out of `paths.deny` if it is needed";
    Some(Finding::deny(Code::PathNotAllowed, reason).suggest(Some(hint)))
}

/// What closes a path to a tool, if anything does. A denial says nothing about whether the file
/// exists or where a link leads.
pub(super) fn closed(
    files: &FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    looks: bool,
) -> Option<Finding> {
    if let Some(PathFact { real: Place::Outside(problem), .. }) = fact {
        return Some(outside(path.as_str(), *problem));
    }
    let real = fact.and_then(real);
    let each = || core::iter::once(path).chain(real);
    if !files.hidden && each().any(WorkspacePath::is_hidden) {
        let reason = format!("`{path}` is hidden, and hidden files are denied");
        let hint = "leave hidden files alone, or set `hidden: allow` for this tool";
        return Some(Finding::deny(Code::PathHidden, reason).suggest(Some(hint)));
    }
    if !files.links && real.is_some_and(|real| real != path) {
        let reason = format!("`{path}` goes through a link, and links are denied");
        return Some(Finding::deny(Code::PathSymlink, reason).suggest(Some("name the real path")));
    }
    if let Some(finding) = closed_by_name(files, path, real) {
        return Some(finding);
    }
    let seen = real.unwrap_or(path);
    // A folder above an open path is open for looking; what is shown of it is filtered.
    let is_folder = fact.is_none_or(|fact| fact.kind != FileKind::File);
    let open = files.allow.iter().any(|pattern| {
        pattern.matches(seen) || (looks && is_folder && pattern.reaches_beneath(seen))
    });
    if open {
        return None;
    }
    let allowed: Vec<&str> = files.allow.iter().map(|pattern| pattern.text.as_str()).collect();
    let reason = format!("`{path}` is not among the paths that are open");
    let suggestion = match allowed.as_slice() {
        [] => "no path is open to this tool".into(),
        allowed => format!("open are `{}`", allowed.join("`, `")),
    };
    Some(Finding::deny(Code::PathNotAllowed, reason).suggest(Some(suggestion)))
}

/// Whether a path may be shown by a tool that looks around.
pub(crate) fn open_to(files: &FileRule, path: &WorkspacePath) -> bool {
    closed(files, path, None, true).is_none()
}
