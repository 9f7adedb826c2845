//! Words that name files in the `/tmp` that the calls of a run share, and the host never sees.

use alloc::vec::Vec;

use crate::policy::decide::check::Finding;
use crate::policy::decide::files::outside_finding;
use capsule_base::code::Code;
use capsule_base::path::PathProblem;
use capsule_base::root_names::RootNames;
use capsule_command::specs::{CommandLine, Effects, ParsedArgv, PathAccess, PathUse, base_name};

/// What closes a path in `/tmp` to a word, if anything does: what a program finds in a directory that it is told to work
/// in may be orders to it.
pub(super) fn check_path(temporary: &str, used: &PathUse) -> Option<Finding> {
    let is_whole = temporary == "/tmp" && used.access == PathAccess::Delete;
    let is_refused = used.is_work_directory || is_whole;
    is_refused.then(|| outside_finding(&used.path, PathProblem::Absolute))
}

/// A program that lies in `/tmp`, or is told by an option to follow a file there; one that moves files of the workspace
/// there, where they are lost with it; and one that makes a link there, by which the next one would reach what its words do
/// not name.
pub(super) fn check_program(line: &CommandLine<'_>, names: &RootNames) -> Option<Finding> {
    let paths: Vec<&PathUse> = line.parsed_argvs().flat_map(certain_paths).collect();
    let (inside, others): (Vec<&PathUse>, Vec<_>) =
        paths.iter().partition(|used| used.is_temporary(names));
    let is_target = |used: &&&PathUse| used.is_option_value || paths.last() == Some(*used);
    let runs = |argv: &ParsedArgv| argv.effects().intersects(Effects::BY_FILES);
    let orders = line.parsed_argvs().filter(|argv| runs(argv)).flat_map(certain_paths);
    let is_order = |used: &PathUse| {
        let names_program = line.argv.first() == Some(&used.path);
        let is_read = matches!(used.access, PathAccess::Read | PathAccess::ReadTree);
        is_read && (used.is_option_value || names_program) && used.is_temporary(names)
    };
    if let Some(order) = orders.into_iter().find(|used| is_order(used)) {
        return Some(outside_finding(&order.path, PathProblem::Absolute));
    }
    let reason = match base_name(line.argv.first()?) {
        "mv" if inside.iter().any(|used| is_target(&used)) && !others.is_empty() => {
            "it would move files of the workspace to `/tmp`, where they are lost"
        }
        "ln" | "link" if !inside.is_empty() => "it would make a link in `/tmp`, or to there",
        _ => return None,
    };
    let hint = "copy the files with `cp`";
    Some(Finding::deny(Code::PathOutside, reason).with_suggestion(Some(hint)))
}

/// The paths that words name, and not only a program text.
fn certain_paths(argv: &ParsedArgv) -> impl Iterator<Item = &PathUse> {
    argv.paths.iter().filter(|used| !used.guessed)
}
