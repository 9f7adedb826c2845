//! The small languages that stand in words of command lines: scripts of `sed`, programs of `awk`,
//! statements in SQL, addresses. Each is read just far enough to tell printing from the rest; what
//! cannot be told is unknown.

mod awk;
mod code;
mod sed;
mod setting;
mod sql;

use alloc::vec::Vec;

use crate::programs::word::{PathUse, Use};
use crate::programs::{Effect, Word};
use crate::url::Address;

/// What a text does besides reading and printing, each with its reason.
pub(crate) fn effects(kind: Word, text: &str) -> Vec<(Effect, &'static str)> {
    match kind {
        Word::Sed => sed::read(text).map_or_else(
            || alloc::vec![(Effect::Unknown, "is a script that cannot be read here")],
            |script| script.effects,
        ),
        Word::Awk => awk::effects(text),
        Word::Code => code::effects(text),
        Word::Setting => setting::effects(text),
        Word::Sql => sql::effects(text),
        Word::Url if Address::is_metadata_service(text) => {
            alloc::vec![(Effect::Secrets, "hands out the credentials of the machine")]
        }
        _ => Vec::new(),
    }
}

/// The files that a script of `sed` names.
pub(super) fn sed_paths(text: &str) -> Vec<PathUse> {
    let Some(script) = sed::read(text) else { return Vec::new() };
    let named = script.files.into_iter().map(|(path, written)| {
        let usage = if written { Use::Write } else { Use::Read };
        PathUse { usage, ..PathUse::read(&path) }
    });
    named
        .filter(|own| !matches!(own.path.as_str(), "/dev/stdout" | "/dev/stderr" | "/dev/null"))
        .collect()
}

/// The files that a program of `awk` names in plain text.
pub(super) fn awk_paths(text: &str) -> Vec<PathUse> {
    let named = awk::files(text).into_iter().map(|(path, written)| {
        let usage = if written { Use::Write } else { Use::Read };
        PathUse { usage, ..PathUse::read(&path) }
    });
    named.filter(|own| !own.path.starts_with("/dev/std") && own.path != "/dev/null").collect()
}

/// The files that statements in SQL name in quotes, where they reach files. One that leads nowhere else may
/// be something else, such as a pattern.
pub(super) fn sql_paths(text: &str) -> Vec<PathUse> {
    let named = sql::files(text).into_iter().filter_map(|(path, written)| {
        let path =
            path.strip_prefix("file:").map_or(path.as_str(), |own| own.trim_start_matches("//"));
        let usage = if written { Use::Write } else { Use::Read };
        let sure = PathUse::stray(path).is_some();
        (!path.is_empty()).then(|| PathUse { usage, sure, ..PathUse::read(path) })
    });
    named.collect()
}

/// The files outside of the workspace that a program text names.
pub(super) fn code_paths(text: &str) -> Vec<PathUse> {
    code::paths(text).iter().map(|path| PathUse::read(path)).collect()
}
