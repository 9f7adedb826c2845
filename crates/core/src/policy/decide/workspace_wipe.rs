//! What would remove the whole workspace.

use alloc::format;
use alloc::vec::Vec;

use crate::policy::decide::check::Finding;
use crate::policy::decide::command_line::{LocatedCommand, LocatedPath};
use capsule_base::code::Code;
use capsule_command::specs::{Effect, Effects};

/// What would remove the workspace itself, or all that is in it.
pub(super) fn whole_workspace(word: &str) -> Finding {
    let reason = format!("`{word}` is the whole workspace");
    let hint = "name the files or the folder that shall go";
    Finding::deny(Code::PathWorkspace, reason).with_suggestion(Some(hint))
}

/// A walk over the whole workspace that removes whatever it finds.
pub(super) fn check_whole_walk(command: &LocatedCommand<'_>) -> Option<Finding> {
    let walks = command.line.parsed_argvs().any(|reading| reading.walks_all);
    let removes = command.line.effects().intersects(Effects::of(Effect::Deletes));
    let root = |place: &Result<Vec<LocatedPath<'_>>, _>| {
        place.iter().flatten().any(|(path, _)| path.is_root())
    };
    let named = command.line.parsed_argvs().any(|reading| !reading.paths.is_empty());
    let all = !named || command.path_arguments().any(|word| root(&word.locations));
    (walks && removes && all).then(|| whole_workspace(&command.line.display_name()))
}
