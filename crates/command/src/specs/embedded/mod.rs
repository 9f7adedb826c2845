//! The small languages that stand in words of command lines: scripts of `sed`, programs of `awk`,
//! statements in SQL, addresses. Each is read just far enough to tell printing from the rest; what
//! cannot be told is unknown.

mod awk;
mod code;
mod sed;
mod setting;
mod sql;
mod words;

use alloc::string::String;
use alloc::vec::Vec;

use crate::specs::path_use::{PathAccess, PathUse};
use crate::specs::{ArgKind, Effect};
use capsule_base::url::HttpUrl;

/// What a text does besides reading and printing, each with its reason.
pub fn effects_of_text(kind: ArgKind, text: &str) -> Vec<(Effect, &'static str)> {
    match kind {
        ArgKind::Sed => sed::parse(text).map_or_else(
            || alloc::vec![(Effect::Unknown, "is a script that cannot be read here")],
            |script| script.effects,
        ),
        ArgKind::Awk => awk::effects(text),
        ArgKind::Code => code::effects(text),
        ArgKind::Setting => setting::effects(text),
        ArgKind::Define => setting::defined(text),
        ArgKind::Sql => sql::effects(text),
        ArgKind::Url if HttpUrl::is_metadata_service(text) => {
            alloc::vec![(Effect::Secrets, "hands out the credentials of the machine")]
        }
        _ => Vec::new(),
    }
}

/// The files that a script of `sed` names.
pub(super) fn sed_paths(text: &str) -> Vec<PathUse> {
    let Some(script) = sed::parse(text) else { return Vec::new() };
    let named = script.files.into_iter().map(|(path, written)| {
        let usage = if written { PathAccess::Write } else { PathAccess::Read };
        PathUse { access: usage, ..PathUse::read(&path) }
    });
    named
        .filter(|named| !matches!(named.path.as_str(), "/dev/stdout" | "/dev/stderr" | "/dev/null"))
        .collect()
}

/// The files that a program of `awk` names in plain text.
pub(super) fn awk_paths(text: &str) -> Vec<PathUse> {
    let named = awk::files(text).into_iter().map(|(path, written)| {
        let usage = if written { PathAccess::Write } else { PathAccess::Read };
        PathUse { access: usage, ..PathUse::read(&path) }
    });
    named.filter(|named| !named.path.starts_with("/dev/std") && named.path != "/dev/null").collect()
}

/// The files that statements in SQL name in quotes, where they reach files. One that leads nowhere else may
/// be something else, such as a pattern.
pub(super) fn sql_paths(text: &str) -> Vec<PathUse> {
    let named = sql::files(text).into_iter().filter_map(|(path, written)| {
        let path =
            path.strip_prefix("file:").map_or(path.as_str(), |text| text.trim_start_matches("//"));
        let usage = if written { PathAccess::Write } else { PathAccess::Read };
        let sure = PathUse::outside(path).is_some();
        (!path.is_empty()).then(|| PathUse {
            access: usage,
            is_certain: sure,
            ..PathUse::read(path)
        })
    });
    named.collect()
}

/// The paths that a command line names which stands in the words of a build.
pub(super) fn setting_paths(text: &str) -> Vec<PathUse> {
    setting::paths(text)
}

/// The program of such a command line.
pub(super) fn setting_program(text: &str) -> Option<String> {
    setting::program(text)
}

/// The files outside of the workspace that a program text names.
pub(super) fn code_paths(text: &str) -> Vec<PathUse> {
    code::outside_paths(text).iter().map(|path| PathUse::read(path)).collect()
}
