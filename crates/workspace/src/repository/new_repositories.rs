//! Repositories that a run makes (`git init`, `git clone`) and that give git no orders.
//!
//! The names in `.git` are protected, since git takes orders from what is there. A repository that was not there
//! before the run gives none where its configuration only holds data, its hooks are the samples that git does not run,
//! and nothing in it leads elsewhere. What git writes for it is then judged as a plain file beside it, and its history
//! is compared as that of any other repository.

use std::collections::BTreeSet;

use capsule_base::limits;
use capsule_core::change::{Change, FileState};

use super::files::Files;
use super::linked_trees::PLAIN;
use crate::change_path::join;
use crate::control_files::GIT_NAME;
use crate::control_files::git_pointer::COMMONDIR;
use crate::git_config::{KeyJudgement, Setting, judge, settings};

/// What git takes orders from, or goes elsewhere for them.
const LEADS_ELSEWHERE: [&str; 4] = [COMMONDIR, "gitdir", "config.worktree", "worktrees"];
/// What hooks end with that git does not run.
const SAMPLE: &str = ".sample";

/// The paths that git writes for such repositories, each with the one by which rules judge it: `files` are those
/// before the run and after it.
pub(super) fn find_judged_paths(
    (before, after): (&dyn Files, &dyn Files),
    changes: &[Change],
) -> Vec<(String, String)> {
    let directories: BTreeSet<&str> =
        changes.iter().filter_map(|change| git_directory(&change.path)).collect();
    let is_new = |directory: &&str| !before.exists(directory) && is_inert(after, directory);
    let directories: BTreeSet<&str> = directories.into_iter().filter(is_new).collect();
    let judged = changes.iter().filter_map(|change| {
        let directory = git_directory(&change.path).filter(|path| directories.contains(path))?;
        let rest = change.path.get(directory.len()..)?.trim_start_matches('/');
        is_written_by_git(rest, change.after.as_ref())
            .then(|| (change.path.clone(), join(directory, PLAIN)))
    });
    judged.collect()
}

/// The outermost directory `.git` that a path is, or lies in.
fn git_directory(path: &str) -> Option<&str> {
    let mut end = 0;
    for part in path.split('/') {
        end += part.len();
        if part == GIT_NAME {
            return path.get(..end);
        }
        end += 1;
    }
    None
}

/// Whether what is at a path in `.git` is what git makes there, of those that are protected.
fn is_written_by_git(rest: &str, after: Option<&FileState>) -> bool {
    match (rest, after) {
        ("" | "hooks" | "branches", Some(FileState::Directory { .. }))
        | ("config", Some(FileState::File { .. })) => true,
        (hook, Some(FileState::File { .. })) => {
            hook.strip_prefix("hooks/").is_some_and(|name| name.ends_with(SAMPLE))
        }
        _ => false,
    }
}

/// Whether a repository gives no orders.
fn is_inert(files: &dyn Files, directory: &str) -> bool {
    let names = |name: &str| files.list(&join(directory, name));
    let text = files.read(&join(directory, "config"), limits::CONFIG_BYTES).ok().flatten();
    let settings = text.and_then(|text| settings(&text).ok());
    settings.is_some_and(|all| all.iter().all(is_data))
        && names("hooks").is_ok_and(|all| all.iter().all(|(name, _)| name.ends_with(SAMPLE)))
        && names("branches").is_ok_and(|all| all.is_empty())
        && !LEADS_ELSEWHERE.iter().any(|name| files.exists(&join(directory, name)))
}

/// Whether a setting names no program and no file: data, or the address of another repository by one of the ways that
/// git itself knows.
fn is_data(setting: &Setting) -> bool {
    match judge(&setting.name()) {
        Some(KeyJudgement::Data | KeyJudgement::Preference) => true,
        Some(KeyJudgement::Address) => {
            setting.section == "remote" && {
                let address = setting.value.as_deref().unwrap_or_default();
                !address.starts_with(b"-") && !address.windows(2).any(|pair| pair == b"::")
            }
        }
        _ => false,
    }
}
