//! The regular files of a directory by their names, as far as the policy shows them.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use capsule_base::glob::Glob;
use capsule_base::path::WorkspacePath;
use capsule_core::policy::ListingScope;
use capsule_workspace::system::fstat;
use capsule_workspace::{
    Cancel, FoundPath, Visitor, WalkStep, WalkedEntry, Workspace, same_file, walk,
};
use rustix::fs::FileType;
use rustix::io::Errno;

/// A pattern for the name of a file, or for its path if it holds a slash.
pub(super) struct NamePattern {
    glob: Glob,
    whole_path: bool,
}

impl NamePattern {
    /// Reads a pattern; one that is none was refused when the call was described.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let whole_path = text.contains('/');
        Glob::parse(text).ok().map(|glob| Self { glob, whole_path })
    }

    fn matches(&self, entry: &WalkedEntry<'_>) -> bool {
        if self.whole_path {
            let path = entry.path.to_string_lossy();
            self.glob.matches_components(&path.split('/').collect::<Vec<&str>>())
        } else {
            self.glob.matches_components(&[&entry.name.to_string_lossy()])
        }
    }
}

/// Which files are looked for.
pub(super) struct FileQuery<'q> {
    /// The directory that was judged.
    pub root: &'q FoundPath,
    /// What may be shown, and entered.
    pub scope: &'q ListingScope,
    /// Which names count; all where there is none.
    pub pattern: Option<NamePattern>,
    /// Which of the directories that may be entered are.
    pub enters: &'q (dyn Fn(&WalkedEntry<'_>, &WorkspacePath) -> bool + Sync),
    /// How many files are enough. One more ends the walk, so that it is known whether there are more.
    pub limit: usize,
    /// When the walk ends whatever was found.
    pub deadline: Instant,
    /// Whether to stop.
    pub cancel: &'q Cancel,
}

/// How a walk ended.
#[derive(Debug, Default)]
pub(super) struct WalkEnd {
    /// Whether it ended before it had seen everything, or could not see something.
    pub partial: bool,
    /// Whether there is another directory where the judged one was.
    pub changed: bool,
}

/// Gives every file that counts to `take`, in no order and from several threads; `take` says whether it keeps
/// the file.
pub(super) fn walk_files(
    workspace: &Workspace,
    query: &FileQuery<'_>,
    take: &(dyn Fn(&WalkedEntry<'_>, WorkspacePath) -> bool + Sync),
) -> WalkEnd {
    let (count, partial, changed) = Default::default();
    let files = Files { query, take, count, partial, changed };
    walk(workspace, vec![(query.root.real_path.as_str().into(), false)], &files);
    WalkEnd { partial: files.partial.into_inner(), changed: files.changed.into_inner() }
}

struct Files<'f> {
    query: &'f FileQuery<'f>,
    take: &'f (dyn Fn(&WalkedEntry<'_>, WorkspacePath) -> bool + Sync),
    count: AtomicUsize,
    partial: AtomicBool,
    changed: AtomicBool,
}

/// A walked path, for asking the policy about it.
fn walked_path(path: &OsStr) -> WorkspacePath {
    WorkspacePath::root().join(&path.to_string_lossy())
}

impl Visitor for Files<'_> {
    fn directory(&self, path: &OsStr, directory: BorrowedFd<'_>, _: bool) {
        let root = self.query.root;
        let judged = path != OsStr::new(root.real_path.as_str())
            || fstat(directory).is_ok_and(|now| same_file(&now, &root.stat));
        if !judged {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        if self.changed.load(Ordering::Relaxed) {
            return WalkStep::Skip;
        }
        let shown = |path: &WorkspacePath| self.query.scope.shows(path);
        if entry.kind == FileType::Directory {
            let path = walked_path(entry.path);
            let is_entered = shown(&path) && (self.query.enters)(entry, &path);
            return if is_entered { WalkStep::Enter } else { WalkStep::Skip };
        }
        let is_meant = |pattern: &NamePattern| pattern.matches(entry);
        if entry.kind == FileType::RegularFile && self.query.pattern.as_ref().is_none_or(is_meant) {
            let path = walked_path(entry.path);
            if shown(&path) && (self.take)(entry, path) {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
        }
        WalkStep::Skip
    }

    fn should_stop(&self) -> bool {
        let enough = self.count.load(Ordering::Relaxed) > self.query.limit;
        if enough || self.changed.load(Ordering::Relaxed) || self.query.cancel.is_set() {
            return true;
        }
        let late = Instant::now() > self.query.deadline;
        if late {
            self.partial.store(true, Ordering::Relaxed);
        }
        late
    }

    fn unreadable(&self, _: &OsStr, _: bool, _: Errno) {
        self.partial.store(true, Ordering::Relaxed);
    }
}
