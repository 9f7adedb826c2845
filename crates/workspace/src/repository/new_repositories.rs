//! Repositories that a run makes (`git init`, `git clone`) and that give git no orders.
//!
//! The names in `.git` are protected, since git takes orders from what is there. A repository that was not there
//! before the run gives none where its configuration holds only what `git init` and `git clone` write, its hooks are the samples
//! that git does not run, nothing in it leads elsewhere, and nothing in its working tree is what the user's own configuration
//! has git run. What git writes for it is then judged as a plain file beside it, and its history
//! is compared as that of any other repository.

use std::collections::BTreeSet;
use std::path::PathBuf;

use capsule_base::limits;
use capsule_core::change::{Change, FileState};

use super::compare::Protects;
use super::files::Files;
use super::linked_trees::PLAIN;
use crate::change_path::{inner_path, join, split_parent};
use crate::control_files::GIT_NAME;
use crate::control_files::git_pointer::COMMONDIR;
use crate::git_config::{Setting, settings};

/// What git takes orders from, or goes elsewhere for them.
const LEADS_ELSEWHERE: [&str; 4] = [COMMONDIR, "gitdir", "config.worktree", "worktrees"];
/// Keys of `core` that say what kind of repository it is.
const CORE_KEYS: [&str; 7] = [
    "bare",
    "filemode",
    "ignorecase",
    "logallrefupdates",
    "precomposeunicode",
    "repositoryformatversion",
    "symlinks",
];
/// The schemes of addresses that git knows without a helper of another name.
const SCHEMES: [&str; 5] = ["file", "git", "http", "https", "ssh"];
/// What hooks end with that git does not run.
const SAMPLE: &str = ".sample";

/// The paths that git writes for such repositories, each with the one by which rules judge it: `files` are those
/// before the run and after it.
pub(super) fn find_judged_paths(
    (before, after): (&dyn Files, &dyn Files),
    changes: &[Change],
    protects: &dyn Protects,
) -> Vec<(String, String)> {
    let directories: BTreeSet<&str> =
        changes.iter().filter_map(|change| git_directory(&change.path)).collect();
    let is_new = |directory: &&str| !before.exists(directory) && is_inert(after, directory);
    let mut directories: BTreeSet<&str> = directories.into_iter().filter(is_new).collect();
    if directories.is_empty() {
        return Vec::new();
    }
    match protects.relative_orders() {
        Some(orders) => directories.retain(|directory| !holds_orders(after, directory, &orders)),
        None => directories.clear(),
    }
    let judged = changes.iter().filter_map(|change| {
        let directory = git_directory(&change.path).filter(|path| directories.contains(path))?;
        let rest = change.path.get(directory.len()..)?.trim_start_matches('/');
        is_written_by_git(rest, change.after.as_ref())
            .then(|| (change.path.clone(), join(directory, PLAIN)))
    });
    judged.collect()
}

/// Whether something is in a new working tree, or in its repository, that the user's configuration has git run.
fn holds_orders(files: &dyn Files, directory: &str, orders: &[PathBuf]) -> bool {
    let places = [split_parent(directory).0, directory];
    places.iter().any(|place| {
        let mut paths = orders.iter().filter_map(|order| inner_path(place, order));
        paths.any(|path| files.exists(&path))
    })
}

/// The outermost directory `.git` that a path is, or lies in.
pub(super) fn git_directory(path: &str) -> Option<&str> {
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
    settings.is_some_and(|all| all.iter().all(|one| is_written_setting(one, &all)))
        && names("hooks").is_ok_and(|all| all.iter().all(|(name, _)| name.ends_with(SAMPLE)))
        && names("branches").is_ok_and(|all| all.is_empty())
        && !LEADS_ELSEWHERE.iter().any(|name| files.exists(&join(directory, name)))
}

/// Whether a setting is one that git writes into a new repository, and says nothing but what the repository is, where it
/// came from and what its branches follow. Other keys name programs and files, send requests or open protocols.
fn is_written_setting(setting: &Setting, all: &[Setting]) -> bool {
    let Setting { section, subsection, key, value } = setting;
    let value = value.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    match (section.as_str(), subsection.is_some(), key.as_str()) {
        ("core", false, key) => CORE_KEYS.contains(&key),
        ("extensions", false, "objectformat" | "refstorage")
        | ("submodule", false, "active")
        | ("user", false, "name" | "email")
        | ("remote", true, "fetch" | "tagopt")
        | ("branch", true, "merge") => true,
        ("branch", true, "remote") => all.iter().any(|other| {
            let name = other.subsection.as_deref().map(String::from_utf8_lossy);
            other.section == "remote"
                && other.key == "url"
                && name.is_some_and(|name| name == value)
        }),
        ("remote", true, "url") => is_plain_address(&value),
        _ => false,
    }
}

/// Whether git fetches from an address itself, and starts no helper of another name for it.
fn is_plain_address(address: &str) -> bool {
    let is_scheme = |scheme: &str| SCHEMES.contains(&scheme);
    !address.starts_with('-')
        && !address.contains("::")
        && address.split_once("://").is_none_or(|(scheme, _)| is_scheme(scheme))
}
