//! Words that name files in the `/tmp` that the calls of a run share, and the host never sees.

use alloc::vec::Vec;

use crate::policy::decide::check::Finding;
use crate::policy::decide::files::outside_finding;
use capsule_base::code::Code;
use capsule_base::path::PathProblem;
use capsule_base::root_names::RootNames;
use capsule_command::specs::{CommandLine, Effects, ParsedArgv, PathAccess, PathUse, base_name};

/// The reason why a word may not name a path in `/tmp`, if there is one: a directory that a program is told to work in may
/// hold orders to it.
pub(super) fn check_path(temporary: &str, used: &PathUse) -> Option<Finding> {
    let is_whole = temporary == "/tmp" && used.access == PathAccess::Delete;
    let is_refused = used.is_work_directory || is_whole;
    is_refused.then(|| outside_finding(&used.path, PathProblem::Absolute))
}

/// The reason why a command line may not name a path in `/tmp`, if there is one: a program that lies there, or is told by an
/// option to follow a file there; one that moves files of the workspace there, where they are lost with it; and one that
/// another program starts, which may put other words into the path.
pub(super) fn check_line(line: &CommandLine<'_>, names: &RootNames) -> Option<Finding> {
    let temporary = |used: &&PathUse| used.is_temporary(names);
    let inner = line.with_nested().into_iter().skip(1).flat_map(CommandLine::parsed_argvs);
    let runs = |argv: &&ParsedArgv| argv.effects().intersects(Effects::BY_FILES);
    let program = line.argv.first()?;
    let is_order = |used: &&PathUse| {
        let is_option = used.is_option_value && base_name(program) != "git";
        let is_read = matches!(used.access, PathAccess::Read | PathAccess::ReadTree);
        is_read && (is_option || *program == used.path)
    };
    let orders = line.parsed_argvs().filter(runs).flat_map(certain_paths).filter(is_order);
    if let Some(used) = inner.flat_map(certain_paths).chain(orders).find(temporary) {
        return Some(outside_finding(&used.path, PathProblem::Absolute));
    }
    let paths: Vec<&PathUse> = line.parsed_argvs().flat_map(certain_paths).collect();
    let is_target = |used: &&&PathUse| used.is_option_value || paths.last() == Some(*used);
    let moves = base_name(program) == "mv"
        && !paths.iter().all(temporary)
        && paths.iter().filter(is_target).any(temporary);
    let reason = "it would move files of the workspace to `/tmp`, where they are lost";
    let finding = moves.then(|| Finding::deny(Code::PathOutside, reason));
    finding.map(|finding| finding.with_suggestion(Some("copy the files with `cp`")))
}

/// The paths that words name, and not only a program text.
fn certain_paths(argv: &ParsedArgv) -> impl Iterator<Item = &PathUse> {
    argv.paths.iter().filter(|used| !used.guessed)
}
