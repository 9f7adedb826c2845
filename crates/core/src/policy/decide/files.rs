//! Constraints on paths.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::action::{Action, FileKind, PathFact, PathTarget, Place};
use crate::code::Code;
use crate::limits;
use crate::path::{PathProblem, WorkspacePath};
use crate::policy::decide::{Case, Finding, because, words};
use crate::policy::model::{FileRule, PathRule, ToolRule};
use crate::policy::patterns::PathPattern;
use crate::programs::{PathUse, Use};
use crate::redact::excerpt;

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
    let names = |nested: &&PathRule| nested.paths.iter().any(|pattern| pattern.matches(seen));
    files.rules.iter().filter(names).filter_map(|nested| nested_word(nested, case)).collect()
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
    let shown = excerpt(asked, limits::QUOTED_CHARS);
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
pub(crate) fn any_child(folder: &WorkspacePath) -> WorkspacePath {
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
    denied(files, path, real).map(|pattern| Shut::Denied(pattern).finding(files, path))
}

fn denied<'r>(
    files: &'r FileRule,
    path: &WorkspacePath,
    real: Option<&WorkspacePath>,
) -> Option<&'r PathPattern> {
    let mut each = core::iter::once(path).chain(real);
    each.find_map(|path| files.deny.iter().find(|pattern| pattern.covers(path)))
}

/// What closes a path to a tool, if anything does.
pub(super) fn closed(
    files: &FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    looks: bool,
) -> Option<Finding> {
    shut(files, path, fact, looks).map(|why| why.finding(files, path))
}

/// Whether a path may be shown by a tool that looks around. Asked for every entry of a walk.
pub(crate) fn open_to(files: &FileRule, path: &WorkspacePath) -> bool {
    shut(files, path, None, true).is_none()
}

/// Why a path is closed to a tool.
enum Shut<'r> {
    Outside(PathProblem),
    Hidden,
    Link,
    Denied(&'r PathPattern),
    Unopened,
}

fn shut<'r>(
    files: &'r FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    looks: bool,
) -> Option<Shut<'r>> {
    if let Some(PathFact { real: Place::Outside(problem), .. }) = fact {
        return Some(Shut::Outside(*problem));
    }
    let real = fact.and_then(real);
    let mut each = core::iter::once(path).chain(real);
    if !files.hidden && each.any(WorkspacePath::is_hidden) {
        return Some(Shut::Hidden);
    }
    if !files.links && real.is_some_and(|real| real != path) {
        return Some(Shut::Link);
    }
    if let Some(pattern) = denied(files, path, real) {
        return Some(Shut::Denied(pattern));
    }
    let seen = real.unwrap_or(path);
    // A folder above an open path is open for looking; what is shown of it is filtered.
    let is_folder = fact.is_none_or(|fact| fact.kind != FileKind::File);
    let open = files.allow.iter().any(|pattern| {
        pattern.matches(seen) || (looks && is_folder && pattern.reaches_beneath(seen))
    });
    (!open).then_some(Shut::Unopened)
}

impl Shut<'_> {
    /// In words, which say nothing about whether the file exists or where a link leads.
    fn finding(self, files: &FileRule, path: &WorkspacePath) -> Finding {
        let (code, why, hint) = match self {
            Self::Outside(problem) => return outside(path.as_str(), problem),
            Self::Hidden => (
                Code::PathHidden,
                "is hidden, and hidden files are denied".into(),
                "leave hidden files alone, or set `hidden: allow` for this tool".into(),
            ),
            Self::Link => (
                Code::PathSymlink,
                "goes through a link, and links are denied".into(),
                "name the real path".into(),
            ),
            Self::Denied(pattern) => (
                Code::PathNotAllowed,
                format!("is closed by `paths.deny: {}`", pattern.text),
                "leave it alone, or take it out of `paths.deny` if it is needed".into(),
            ),
            Self::Unopened => {
                let allowed: Vec<&str> =
                    files.allow.iter().map(|pattern| pattern.text.as_str()).collect();
                let hint = match allowed.as_slice() {
                    [] => "no path is open to this tool".into(),
                    allowed => format!("open are `{}`", allowed.join("`, `")),
                };
                (Code::PathNotAllowed, "is not among the paths that are open".to_string(), hint)
            }
        };
        Finding::deny(code, format!("`{path}` {why}")).suggest(Some(hint))
    }
}
