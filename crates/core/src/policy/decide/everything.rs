//! What would remove the whole workspace.

use alloc::format;
use alloc::vec::Vec;

use crate::code::Code;
use crate::policy::decide::Finding;
use crate::policy::decide::command::{Command, Named};
use crate::programs::{Effect, Effects};

/// What would remove the workspace itself, or all that is in it.
pub(super) fn everything(word: &str) -> Finding {
    let reason = format!("`{word}` is the whole workspace");
    let hint = "name the files or the folder that shall go";
    Finding::deny(Code::PathWorkspace, reason).suggest(Some(hint))
}

/// A walk over the whole workspace that removes whatever it finds.
pub(super) fn whole_walk(own: &Command<'_>) -> Option<Finding> {
    let walks = own.line.readings().any(|reading| reading.walks_all);
    let removes = own.line.effects().meets(Effects::of(Effect::Deletes));
    let root =
        |place: &Result<Vec<Named<'_>>, _>| place.iter().flatten().any(|(path, _)| path.is_root());
    let named = own.line.readings().any(|reading| !reading.paths.is_empty());
    let all = !named || own.words().any(|word| root(&word.places));
    (walks && removes && all).then(|| everything(&own.line.shown()))
}
