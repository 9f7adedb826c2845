//! Constraints on paths.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::action::{
    Action, FileKind, PathFact, PathLocation, PathTarget, SearchFilter, WriteMode,
};
use crate::decision::Verdict;
use crate::policy::decide::check::{Finding, PolicyInput, reason_or, verdict_text};
use crate::policy::model::{FileRule, PathRule, Policy, ToolRule};
use crate::policy::path_pattern::PathPattern;
use crate::policy::secrets::ReturnedMasks;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_command::specs::{PathAccess, PathUse};
use capsule_redact::excerpt;

/// What reads a file.
const READ_TOOL: &str = "fs.read";

/// Checks the path of a file tool. Nothing found means that the tool's own word decides.
pub(super) fn check(
    files: &FileRule,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    target: &PathTarget,
) -> Vec<Finding> {
    let tool = input.tool.as_str();
    let path = match &target.location {
        PathLocation::Inside(path) => path,
        PathLocation::Outside(problem) => {
            return alloc::vec![outside_finding(&target.asked, *problem)];
        }
    };
    let fact = input.facts.path_fact(path);
    let looks = matches!(input.action, Action::Search { .. } | Action::List { .. });
    if let Some(finding) = check_path(files, path, fact, looks) {
        return alloc::vec![finding.under_rule(tool, &rule.source)];
    }
    if let Action::Write { bytes, .. } | Action::Edit { bytes, .. } = input.action
        && *bytes > files.bytes_max
    {
        let reason =
            format!("{bytes} bytes are more than the {} that may be written", files.bytes_max);
        let finding = Finding::deny(Code::PathNotAllowed, reason)
            .under_rule(tool, &rule.source)
            .with_suggestion(Some(match input.action {
                Action::Edit { .. } => "put less there at once",
                _ => "write it in parts with `mode: append`",
            }));
        return alloc::vec![finding];
    }
    nested_verdicts(files, tool, resolved_path(input, path)).collect()
}

/// Checks what is to stand in a file, by what it is put in place of.
pub(super) fn check_content(policy: &Policy, input: &PolicyInput<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = check_masks(policy, input).into_iter().collect();
    match input.action {
        Action::Edit { path, .. }
        | Action::Search { path, filter: SearchFilter { content: Some(_), .. }, .. } => {
            findings.extend(check_reading(policy, input, path));
        }
        Action::Write { path, .. } if input.facts.masks > 0 => {
            findings.extend(check_reading(policy, input, path));
        }
        _ => {}
    }
    if matches!(input.action, Action::Write { .. } | Action::Edit { .. } | Action::Delete { .. }) {
        findings
            .extend(input.facts.paths.iter().filter_map(|fact| check_alias_split(policy, fact)));
    }
    findings
}

/// Whoever changes a file with several names may leave its text in a file that has none of those which
/// `fs.read` denies (ADR 42).
pub(super) fn check_alias_split(policy: &Policy, fact: &PathFact) -> Option<Finding> {
    let name = ToolName::unchecked(READ_TOOL);
    let (rule, files) = policy.tool(&name).zip(policy.file_rule(&name))?;
    let pattern = first_denied(files, fact.denied_names.iter())?;
    Some(PathDenial::Denied(pattern).finding(files, &fact.path).under_rule(READ_TOOL, &rule.source))
}

/// Refuses masks in what is to be written. Where the policy has them put back into what they stand for,
/// there has to be a file that held it.
fn check_masks(policy: &Policy, input: &PolicyInput<'_>) -> Option<Finding> {
    let replaces = match input.action {
        Action::Write { mode, .. } => *mode == WriteMode::Overwrite,
        Action::Edit { .. } => true,
        _ => return None,
    };
    let masks = input.facts.masks;
    if masks == 0 || replaces && policy.redaction.returned == ReturnedMasks::Resolve {
        return None;
    }
    let what = if masks == 1 { "a mask stands".into() } else { format!("{masks} masks stand") };
    let reason = format!("{what} in what is to be written, in place of what it hides");
    Some(
        Finding::deny(Code::MaskInContent, reason)
            .with_suggestion(Some(Code::MaskInContent.next_step())),
    )
}

/// Checks what is deleted: it, and everything that goes with it. What no nested rule has a word for
/// has the tool's `own`.
pub(super) fn check_tree(
    files: &FileRule,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    target: &PathTarget,
    default: impl FnOnce() -> Finding,
) -> Vec<Finding> {
    let tool = input.tool.as_str();
    if target.inside().is_some_and(WorkspacePath::is_root) {
        let finding = Finding::deny(Code::PathNotAllowed, "the workspace itself is never deleted");
        return alloc::vec![finding.with_suggestion(Some("name what is to be deleted in it"))];
    }
    let mut findings = check(files, rule, input, target);
    let mut is_silent = findings.is_empty();
    let Some(path) = target.inside() else { return findings };
    for fact in input.facts.paths.iter().filter(|fact| fact.path != *path) {
        if let Some(finding) = check_path(files, &fact.path, Some(fact), false) {
            // Which of it is closed is not told.
            let reason = format!("`{path}` holds something that is closed to this tool");
            let finding = Finding { reason, ..finding }.under_rule(tool, &rule.source);
            return alloc::vec![finding.with_suggestion(Some("delete only what is open to it"))];
        }
        let before = findings.len();
        findings.extend(nested_verdicts(files, tool, real_path(fact).unwrap_or(&fact.path)));
        is_silent |= findings.len() == before;
    }
    findings.extend(is_silent.then(default));
    findings
}

/// Whether the policy says which files may be read. An edit of one that may not be was denied before; where
/// the policy says nothing, none is open.
pub(super) fn names_reading(policy: &Policy) -> bool {
    policy.file_rule(&ToolName::unchecked(READ_TOOL)).is_some()
}

/// Checks that what is edited or searched may be read, where the policy says what may be: the errors of an edit
/// tell what is in a file, and so do those of putting masks back and the lines that a search finds.
fn check_reading(policy: &Policy, input: &PolicyInput<'_>, target: &PathTarget) -> Vec<Finding> {
    let name = ToolName::unchecked(READ_TOOL);
    let (Some(rule), Some(files), Some(path)) =
        (policy.tool(&name), policy.file_rule(&name), target.inside())
    else {
        // A policy may allow edits without a word about reading; then no answer quotes the file.
        let is_edit = matches!(input.action, Action::Edit { .. });
        let reason =
            format!("the policy does not name `{READ_TOOL}`, which this call needs as well");
        return (!is_edit).then(|| Finding::deny(Code::NoRule, reason)).into_iter().collect();
    };
    let looks = matches!(input.action, Action::Search { .. });
    if let Some(finding) = check_path(files, path, input.facts.path_fact(path), looks) {
        return alloc::vec![finding.under_rule(READ_TOOL, &rule.source)];
    }
    let mut findings: Vec<Finding> =
        nested_verdicts(files, READ_TOOL, resolved_path(input, path)).collect();
    if let (true, Some(verdict)) = (findings.is_empty(), rule.decision) {
        let reason =
            reason_or(&rule.because, || verdict_text(verdict, "reading, which this needs,"));
        findings.push(Finding::with_verdict(verdict, reason).under_rule(READ_TOOL, &rule.source));
    }
    findings
}

/// Where a path leads, as far as that is known.
pub(super) fn resolved_path<'c>(
    input: &'c PolicyInput<'_>,
    path: &'c WorkspacePath,
) -> &'c WorkspacePath {
    input.facts.path_fact(path).and_then(real_path).unwrap_or(path)
}

/// What the rules for some of the paths say about one.
fn nested_verdicts<'r>(
    files: &'r FileRule,
    tool: &'r str,
    seen: &'r WorkspacePath,
) -> impl Iterator<Item = Finding> + 'r {
    // What only opens is meant as it is spelled.
    let names = |nested: &&PathRule| {
        let closes = nested.decision > Some(Verdict::Allow);
        nested.paths.iter().any(|path| if closes { path.names(seen) } else { path.matches(seen) })
    };
    files.rules.iter().filter(names).filter_map(|nested| nested_verdict(nested, tool))
}

/// The word for a way of writing, where no rule has one for the path.
pub(super) fn mode_verdict(
    files: &FileRule,
    rule: &ToolRule,
    tool: &str,
    mode: WriteMode,
) -> Option<Finding> {
    let (_, verdict, source) = files.modes.iter().find(|(candidate, ..)| *candidate == mode)?;
    let reason = reason_or(&rule.because, || {
        verdict_text(*verdict, &format!("`{tool}` with `{}`", mode.keyword()))
    });
    let id = format!("{tool}/modes.{}", mode.keyword());
    Some(
        Finding::with_verdict(*verdict, reason)
            .under_rule(id, source)
            .with_suggestion(rule.suggest.clone()),
    )
}

fn nested_verdict(nested: &PathRule, tool: &str) -> Option<Finding> {
    let verdict = nested.decision?;
    let id = format!("{tool}/{}", nested.id);
    let reason = reason_or(&nested.because, || verdict_text(verdict, &format!("`{}`", nested.id)));
    Some(
        Finding::with_verdict(verdict, reason)
            .under_rule(id, &nested.source)
            .with_suggestion(nested.suggest.clone()),
    )
}

/// Whether a path is inside by its text and by where it leads; for a folder to work in or to go
/// to, whether it can be one.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_inside(target: &PathTarget, input: &PolicyInput<'_>) -> Result<(), Finding> {
    let path = match &target.location {
        PathLocation::Inside(path) => path,
        PathLocation::Outside(problem) => return Err(outside_finding(&target.asked, *problem)),
    };
    let is_folder = matches!(
        input.action,
        Action::Run { .. } | Action::Command { .. } | Action::Test { .. } | Action::List { .. }
    );
    match input.facts.path_fact(path) {
        Some(PathFact { real: PathLocation::Outside(problem), .. }) => {
            Err(outside_finding(&target.asked, *problem))
        }
        Some(PathFact { kind: FileKind::File | FileKind::Special, .. }) if is_folder => {
            let reason = format!("`{path}` is not a folder");
            let hint = "run in the folder that the file lies in, or leave `cwd` out";
            Err(Finding::deny(Code::PathInvalid, reason).with_suggestion(Some(hint)))
        }
        _ => Ok(()),
    }
}

/// A path that is not inside.
pub(super) fn outside_finding(asked: &str, problem: PathProblem) -> Finding {
    let code = match problem {
        PathProblem::Invalid | PathProblem::UncertainParent => Code::PathInvalid,
        PathProblem::TooLong => Code::PathTooLong,
        _ => Code::PathOutside,
    };
    let shown = excerpt(asked, limits::QUOTED_CHARS);
    let suggestion = match problem {
        PathProblem::Invalid => "name the file plainly",
        PathProblem::TooLong => "shorten the path",
        PathProblem::UncertainParent => {
            "name the path without `..`, from the workspace or the real folder"
        }
        _ if asked.starts_with("/tmp") => {
            "use the workspace; in the full sandbox the parts of a command share a `/tmp`, of plain files that they name themselves"
        }
        _ => "name a path in the workspace, such as `src/main.rs`",
    };
    Finding::deny(code, format!("the path `{shown}` {}", problem.reason()))
        .with_suggestion(Some(suggestion))
}

/// Where a path leads, if that is inside.
pub(super) const fn real_path(fact: &PathFact) -> Option<&WorkspacePath> {
    match &fact.real {
        PathLocation::Inside(real) => Some(real),
        PathLocation::Outside(_) => None,
    }
}

/// A path that stands for whatever is in a folder. No file is called so: names are not control
/// characters here.
pub(crate) fn child_placeholder(folder: &WorkspacePath) -> WorkspacePath {
    folder.join("\u{1}")
}

/// What closes a path that a word of a command line may name, if anything does. Where the word may
/// mean something else and nothing stands there, only what is closed by name counts.
pub(super) fn check_path_argument(
    files: &FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    used: &PathUse,
) -> Option<Finding> {
    let found = fact.is_some_and(|fact| {
        fact.kind != FileKind::Missing || matches!(fact.real, PathLocation::Outside(_))
    });
    let real = fact.and_then(real_path);
    let is_read = matches!(used.access, PathAccess::Read | PathAccess::ReadTree);
    let leads_to_program =
        |fact: &PathFact| fact.real == PathLocation::Outside(PathProblem::SystemProgram);
    let named = if is_read && fact.is_some_and(leads_to_program) {
        // The link is read, and what every command sees.
        check_names(files, path, None)
    } else if used.is_certain || found {
        check_path(files, path, fact, is_read)
    } else {
        check_names(files, path, real)
    };
    named.or_else(|| match used.access {
        // Whoever reads a whole folder reads what is closed in it.
        PathAccess::ReadTree => {
            let real = real.unwrap_or(path);
            let inner =
                check_names(files, &child_placeholder(path), Some(&child_placeholder(real)))?;
            Some(Finding { reason: inner.reason.replace("/\u{1}", ""), ..inner })
        }
        PathAccess::Read | PathAccess::Write | PathAccess::Change | PathAccess::Delete => None,
    })
}

fn check_names(
    files: &FileRule,
    path: &WorkspacePath,
    real: Option<&WorkspacePath>,
) -> Option<Finding> {
    first_denied(files, [path].into_iter().chain(real))
        .map(|pattern| PathDenial::Denied(pattern).finding(files, path))
}

/// What a tool's rule denies of a path, by its name, by where it leads, or by another name of the file
/// that stands there.
pub(super) fn denied_pattern<'r>(
    files: &'r FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
) -> Option<&'r PathPattern> {
    let others =
        fact.into_iter().flat_map(|fact| real_path(fact).into_iter().chain(&fact.denied_names));
    first_denied(files, [path].into_iter().chain(others))
}

fn first_denied<'r, 'p>(
    files: &'r FileRule,
    mut names: impl Iterator<Item = &'p WorkspacePath>,
) -> Option<&'r PathPattern> {
    names.find_map(|path| files.deny.iter().find(|pattern| pattern.covers(path)))
}

/// What closes a path to a tool, if anything does.
pub(super) fn check_path(
    files: &FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    looks: bool,
) -> Option<Finding> {
    path_denial(files, path, fact, looks).map(|why| why.finding(files, path))
}

/// Whether a path may be shown by a tool that looks around. Asked for every entry of a walk.
pub(crate) fn is_listable(files: &FileRule, path: &WorkspacePath) -> bool {
    path_denial(files, path, None, true).is_none()
}

/// Why a path is closed to a tool.
enum PathDenial<'r> {
    Outside(PathProblem),
    Hidden,
    Link,
    Denied(&'r PathPattern),
    NotAllowed,
}

fn path_denial<'r>(
    files: &'r FileRule,
    path: &WorkspacePath,
    fact: Option<&PathFact>,
    looks: bool,
) -> Option<PathDenial<'r>> {
    if let Some(PathFact { real: PathLocation::Outside(problem), .. }) = fact {
        return Some(PathDenial::Outside(*problem));
    }
    let real = fact.and_then(real_path);
    let mut each = core::iter::once(path).chain(real);
    if !files.hidden && each.any(WorkspacePath::is_hidden) {
        return Some(PathDenial::Hidden);
    }
    let spelled = |path: &WorkspacePath| files.spelling.path(path).unwrap_or_else(|| path.clone());
    if !files.links && real.is_some_and(|real| real != path && spelled(real) != spelled(path)) {
        return Some(PathDenial::Link);
    }
    if let Some(pattern) = denied_pattern(files, path, fact) {
        return Some(PathDenial::Denied(pattern));
    }
    let seen = real.unwrap_or(path);
    // A folder above an open path is open for looking; what is shown of it is filtered.
    let is_folder = fact.is_none_or(|fact| fact.kind != FileKind::File);
    let open = files.allow.iter().any(|pattern| {
        pattern.matches(seen) || (looks && is_folder && pattern.can_match_beneath(seen))
    });
    (!open).then_some(PathDenial::NotAllowed)
}

impl PathDenial<'_> {
    /// In words, which say nothing about whether the file exists or where a link leads.
    fn finding(self, files: &FileRule, path: &WorkspacePath) -> Finding {
        let (code, why, hint) = match self {
            Self::Outside(problem) => return outside_finding(path.as_str(), problem),
            Self::Hidden => (
                Code::PathHidden,
                "is hidden, and hidden files are denied".into(),
                "leave hidden files alone".into(),
            ),
            Self::Link => (
                Code::PathSymlink,
                "goes through a link, and links are denied".into(),
                "name the real path".into(),
            ),
            Self::Denied(pattern) => (
                Code::PathNotAllowed,
                format!("is closed by `paths.deny: {}`", pattern.text),
                "leave it alone".into(),
            ),
            Self::NotAllowed => {
                let allowed: Vec<&str> =
                    files.allow.iter().map(|pattern| pattern.text.as_str()).collect();
                let hint = match allowed.as_slice() {
                    [] => "no path is open to this tool".into(),
                    allowed => format!("open are `{}`", allowed.join("`, `")),
                };
                (Code::PathNotAllowed, "is not among the paths that are open".to_string(), hint)
            }
        };
        Finding::deny(code, format!("`{path}` {why}")).with_suggestion(Some(hint))
    }
}
