//! What a command may change in the workspace itself: the places that its rule names, without what
//! an invariant protects in them.
//!
//! Mounts bound it while it runs, and mounts know only what is there. So the workspace is walked
//! before, for what has to be held, and looked at again afterwards, for what was made meanwhile. A
//! mount is lost where somebody else replaces what it lies on, so that is looked at as well.

mod protection;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::policy::PathScope;
use capsule_redact::excerpt;
use capsule_sandbox::{DirectWrites, HiddenPath};
use capsule_workspace::system::fstat;
use capsule_workspace::{
    HiddenPaths, HiddenPathsError, LinkChain, Protects, RepositorySnapshot, Visitor, WalkStep,
    WalkedEntry, Workspace, walk,
};
use rustix::fs::{FileType, OFlags};

use crate::command::unchanged::{FileExpectation, UnchangedGuard, is_store_sibling};
use protection::{Noted, ProtectedPaths, locked, protection_scan};

/// The workspace as one command may change it.
pub(crate) struct DirectWriteGuard<'w> {
    workspace: &'w Workspace,
    /// The places that its rule names.
    writable: Vec<OsString>,
    /// What is held.
    protected: Arc<ProtectedPaths>,
    /// Finds it.
    scan: HiddenPaths,
    /// What else the veil finds.
    noted: Arc<Noted>,
    /// What was held or had to stay when the command began.
    initial: ProtectionState,
    /// What stood there then.
    unchanged: UnchangedGuard<'w>,
    /// The repositories that it can change, as they were then.
    repositories: RepositorySnapshot,
}

/// What has to be as it is.
#[derive(Default)]
struct ProtectionState {
    /// What nobody may change, and what nobody can look into.
    read_only: BTreeSet<OsString>,
    /// The folders that can be written to and have to stay. None of them is held: a folder that is
    /// held by now is not the one that only had to stay.
    pinned: BTreeSet<OsString>,
    /// What a person would be asked about if it was new.
    asked: BTreeSet<OsString>,
}

impl<'w> DirectWriteGuard<'w> {
    /// Finds out what is open and what is held.
    ///
    /// # Errors
    /// When a place that the rule names is not there, what must be held cannot be known, or names
    /// can be made beside the store of this run.
    pub(crate) fn survey(
        workspace: &'w Workspace,
        writes: &PathScope,
        (hidden_paths, aliases): (&HiddenPaths, PathAliases),
        store: &Path,
    ) -> Result<Self, CodedError> {
        let open = open_writable_paths(workspace, writes)?;
        let places = Arc::new(ProtectedPaths { write_scope: writes.clone(), aliases });
        let repositories = hidden_paths.repositories(workspace);
        let (hidden_paths, noted) = protection_scan(&places);
        let (before, still) = (ProtectionState::default(), UnchangedGuard::new(workspace));
        let none = RepositorySnapshot::default();
        let mut ground = Self {
            workspace,
            writable: open,
            protected: places,
            scan: hidden_paths,
            noted,
            initial: before,
            unchanged: still,
            repositories: none,
        };
        let touched = repositories
            .into_iter()
            .filter(|repository| ground.overlaps_writable(OsStr::new(repository)));
        ground.repositories = RepositorySnapshot::new(workspace, touched.collect());
        ground.initial = ground.protection_state().map_err(HiddenPathsError::problem)?;
        match store_directories(workspace, store)
            .into_iter()
            .find(|folder| ground.can_create_in(folder))
        {
            Some(folder) => Err(beside_store_problem(&folder)),
            None => Ok(ground),
        }
    }

    /// Whether the command can make names in a folder.
    fn can_create_in(&self, folder: &Path) -> bool {
        let is_held = |above: &Path| self.initial.read_only.contains(above.as_os_str());
        self.writable.iter().any(|open| folder.starts_with(open))
            && !folder.ancestors().any(is_held)
    }

    /// What the sandbox is told. Pipes and sockets that stand in an open place lead to processes of
    /// the host: they are hidden. No mask hides a link: those among them, and what they lead through,
    /// are held, or they would lead elsewhere by the next call, and what they lead to now be seen.
    ///
    /// # Errors
    /// When it is more than can be held or hidden.
    pub(crate) fn direct_writes(
        &mut self,
        masks: &mut Vec<HiddenPath>,
        link_chain: LinkChain,
    ) -> Result<DirectWrites, CodedError> {
        let too_many = || HiddenPathsError::TooMany.problem();
        let special = SpecialFileFinder::default();
        let from = self.writable.iter().map(|path| (path.clone(), false)).collect();
        walk(self.workspace, from, &special);
        for path in special.found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let mask = HiddenPath { path };
            if !masks.contains(&mask) {
                masks.push(mask);
            }
        }
        let held = self
            .initial
            .read_only
            .iter()
            .chain(&link_chain.links)
            .filter(|name| self.overlaps_writable(name));
        let held: BTreeSet<OsString> = held.cloned().collect();
        let stays = |name: &&OsString| self.overlaps_writable(name) && !held.contains(*name);
        let pinned = self.initial.pinned.iter().chain(&link_chain.left_directories).filter(stays);
        let pinned: BTreeSet<OsString> = pinned.cloned().collect();
        if masks.len() > limits::HIDDEN_PATHS
            || held.len() + pinned.len() + self.writable.len() > limits::HIDDEN_PATHS
        {
            return Err(too_many());
        }
        self.note_mounts(&held, &pinned, masks);
        let (held, pinned) = (held.into_iter().collect(), pinned.into_iter().collect());
        Ok(DirectWrites { writable: self.writable.clone(), read_only: held, pinned })
    }

    /// Notes what stands where a mount is going to lie.
    fn note_mounts(
        &mut self,
        held: &BTreeSet<OsString>,
        pinned: &BTreeSet<OsString>,
        masks: &[HiddenPath],
    ) {
        held.iter().for_each(|path| self.unchanged.note(path, FileExpectation::Unmodified));
        pinned.iter().for_each(|path| self.unchanged.note(path, FileExpectation::SameFile));
        let hidden: BTreeSet<&OsStr> = masks.iter().map(|mask| mask.path.as_os_str()).collect();
        for path in
            hidden.iter().filter(|path| !is_store_sibling(path, |name| hidden.contains(name)))
        {
            self.unchanged.note(path, FileExpectation::SameFile);
        }
    }

    /// Whether the command must not go on: a mount that held or hid something is lost.
    pub(crate) fn lost_mount(&self) -> bool {
        self.unchanged.any_replaced()
    }

    /// The end of the command, with what it made although an invariant protects it: no mount keeps a
    /// name from being made. What names lead to by now counts as well.
    pub(crate) fn judge_outcome(
        mut self,
        outcome: Outcome,
        (hidden_paths, aliases): (&HiddenPaths, Result<Rc<PathAliases>, CodedError>),
    ) -> Outcome {
        let changed = first_of_paths(&self.unchanged.changed_paths()).map(|changed| {
            format!(
                "{changed} was changed while the command ran, by it or by somebody else: it has to \
                 stay what it is, and nothing may have held or hidden what stood there since"
            )
        });
        let reviewed = aliases.as_ref().map(|aliases| {
            let by = (aliases.as_ref(), &hidden_paths.protecting(aliases) as &dyn Protects);
            self.repositories.review(self.workspace, by)
        });
        let reviewed = reviewed.ok().and_then(|reviewed| reviewed.into_iter().next());
        let reviewed = reviewed.map(|(path, why)| format!("`{path}` was changed: {why}"));
        let now = aliases.and_then(|aliases| {
            self.rescan(&aliases);
            self.protection_state().map_err(HiddenPathsError::problem)
        });
        let (made, asked) = match now {
            Ok(now) => (self.told_made(&now), self.told_asked(&now)),
            Err(problem) => (Some(problem.message), None),
        };
        let code = match (&changed, &made, &reviewed) {
            (None, None, None) => Code::ChangeAsked,
            _ => Code::ChangeProtected,
        };
        let told: Vec<String> =
            changed.into_iter().chain(made).chain(reviewed).chain(asked).collect();
        if told.is_empty() {
            return outcome;
        }
        let message = told.join("; ");
        let message = match &outcome.problem {
            Some(first) => format!("{message}; {}", first.message),
            None => message,
        };
        outcome.with_end(CodedError::new(code, message))
    }

    /// What was made although it is protected, in words.
    fn told_made(&self, now: &ProtectionState) -> Option<String> {
        let made = self
            .newly_protected(now)
            .into_iter()
            .filter(|name| !self.protected.is_only_asked(name));
        let made = first_of_paths(&made.collect())?;
        Some(format!(
            "{made} was made or closed meanwhile: an invariant protects it, or nobody can look into it"
        ))
    }

    /// What was made that a person would have been asked about, in words.
    fn told_asked(&self, now: &ProtectionState) -> Option<String> {
        let asked = now.asked.difference(&self.initial.asked).cloned();
        let made =
            self.newly_protected(now).into_iter().filter(|name| self.protected.is_only_asked(name));
        let made = first_of_paths(
            &asked.chain(made).filter(|name| self.overlaps_writable(name)).collect(),
        )?;
        Some(format!(
            "{made} is new: programs of this machine may take orders from it; look at what stands there"
        ))
    }

    /// What has to be as it is by now, and had not when the command began.
    fn newly_protected(&self, now: &ProtectionState) -> BTreeSet<OsString> {
        let held = now.read_only.difference(&self.initial.read_only);
        let pinned = now.pinned.difference(&self.initial.pinned);
        let made = held.chain(pinned.filter(|name| !self.protected.may_create(name)));
        made.filter(|name| self.overlaps_writable(name)).cloned().collect()
    }

    /// Has everything looked at again, if names lead elsewhere than they did.
    fn rescan(&mut self, aliases: &PathAliases) {
        if *aliases != self.protected.aliases {
            let scope = self.protected.write_scope.clone();
            self.protected =
                Arc::new(ProtectedPaths { write_scope: scope, aliases: aliases.clone() });
            (self.scan, self.noted) = protection_scan(&self.protected);
        }
    }

    /// What is held now, and the folders that have to stay.
    fn protection_state(&self) -> Result<ProtectionState, HiddenPathsError> {
        let hidden = self.scan.hidden_now(self.workspace)?;
        let LinkChain { links, left_directories: left } = self.scan.link_chain();
        let held: BTreeSet<_> = hidden.into_iter().chain(links).collect();
        let pinned = locked(&self.noted.pinned);
        let pinned = pinned.union(&left).filter(|name| !held.contains(*name)).cloned().collect();
        Ok(ProtectionState { read_only: held, pinned, asked: locked(&self.noted.asked).clone() })
    }

    /// Whether a path lies in an open place, or an open place in it.
    fn overlaps_writable(&self, path: &OsStr) -> bool {
        let path = Path::new(path);
        self.writable.iter().any(|open| path.starts_with(open) || Path::new(open).starts_with(path))
    }
}

/// The folders of the workspace that a store lies in: by its name, and by the name that it leads to.
fn store_directories(workspace: &Workspace, store: &Path) -> Vec<PathBuf> {
    // By its identity: it may be reached by other names than its own.
    let is_workspace = |folder: &Path| {
        let item = (workspace.device(), workspace.inode());
        folder.metadata().is_ok_and(|facts| (facts.dev(), facts.ino()) == item)
    };
    let folder =
        store.parent().map(|path| if path == Path::new("") { Path::new(".") } else { path });
    let real = store.canonicalize().ok();
    let folders = [folder, real.as_deref().and_then(Path::parent)].into_iter().flatten();
    let folders = folders.filter_map(|folder| folder.canonicalize().ok());
    let within = |folder: PathBuf| {
        let root = folder.ancestors().find(|above| is_workspace(above))?;
        folder.strip_prefix(root).ok().map(Path::to_owned)
    };
    folders.filter_map(within).collect()
}

fn beside_store_problem(folder: &Path) -> CodedError {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let folder = excerpt(&folder.to_string_lossy(), limits::QUOTED_CHARS).into_owned();
    let message = format!(
        "the record of this run is kept in `{folder}`, which the rule's `writes` opens: whoever makes \
         files beside a record can forge it"
    );
    let hint = "keep the record elsewhere (`--store`), or name less under `writes`";
    CodedError::new(Code::SandboxFailed, message).with_suggestion(hint)
}

/// The first of some paths as a message names it, and how many more there are. None if there is none.
fn first_of_paths(paths: &BTreeSet<OsString>) -> Option<String> {
    let shown = paths.first()?.to_string_lossy();
    let shown = excerpt(&shown, limits::QUOTED_CHARS);
    Some(match paths.len() - 1 {
        0 => format!("`{shown}`"),
        more => format!("`{shown}` (and {more} more)"),
    })
}

/// The places that the rule names, as they are there.
fn open_writable_paths(
    workspace: &Workspace,
    writes: &PathScope,
) -> Result<Vec<OsString>, CodedError> {
    let mut open = Vec::new();
    for (path, beneath) in intersect_paths(writes.literal_paths()) {
        match (path.as_str(), beneath) {
            // The workspace's own folder, and nothing in it.
            ("", false) => {}
            ("", true) if writes.protects_children(&WorkspacePath::root()) => {
                let message = "an invariant protects whatever is made in the workspace";
                return Err(CodedError::new(Code::SandboxFailed, message));
            }
            ("", true) => open.push(OsString::new()),
            (name, _) => {
                require_existing(workspace, name, beneath)?;
                open.push(path.into());
            }
        }
    }
    Ok(open)
}

/// A place that a rule names, and whether all beneath it is meant.
type WritePath = (String, bool);

/// The places that every reading of a command line names, none within another.
fn intersect_paths(readings: impl Iterator<Item = Vec<WritePath>>) -> BTreeSet<WritePath> {
    let mut all = BTreeSet::from([(String::new(), true)]);
    for reading in readings {
        let narrower = |one| reading.iter().filter_map(move |other| narrower_path(one, other));
        all = all.iter().flat_map(narrower).cloned().collect();
    }
    let wider = |one: &WritePath| all.iter().any(|other| other != one && is_within(one, other));
    all.iter().filter(|item| !wider(item)).cloned().collect()
}

/// The one of two places that lies within the other, if one does.
fn narrower_path<'p>(one: &'p WritePath, other: &'p WritePath) -> Option<&'p WritePath> {
    [(one, other), (other, one)]
        .into_iter()
        .find(|(item, wide)| is_within(item, wide))
        .map(|item| item.0)
}

fn is_within(one: &WritePath, other: &WritePath) -> bool {
    one == other || other.1 && Path::new(&one.0).starts_with(&other.0)
}

/// A mount needs something to lie on.
fn require_existing(workspace: &Workspace, path: &str, folder: bool) -> Result<(), CodedError> {
    let flags = capsule_workspace::system::PATH_ONLY | OFlags::CLOEXEC;
    let found = workspace.open_plain(workspace.root(), OsStr::from_bytes(path.as_bytes()), flags);
    let kind = found.ok().and_then(|file| fstat(file.as_fd()).ok());
    let kind = kind.map(|facts| capsule_workspace::system::file_type(facts.st_mode));
    let missing = |what: &str, hint: String| {
        let message =
            format!("the rule's `writes` opens `{path}`, and there is no {what} of that name");
        Err(CodedError::new(Code::FileNotFound, message).with_suggestion(hint))
    };
    let make = "make it first: `workspace: direct` opens only what is there; `staged` opens names";
    match (kind, folder) {
        (Some(FileType::Directory), true) | (Some(FileType::RegularFile), false) => Ok(()),
        (Some(FileType::Directory), false) => {
            missing("file", format!("write `{path}/**` for what is in the folder"))
        }
        (_, true) => missing("folder", make.into()),
        (_, false) => missing("file", make.into()),
    }
}

/// Finds pipes, sockets and devices.
#[derive(Default)]
struct SpecialFileFinder {
    found: Mutex<BTreeSet<OsString>>,
}

impl Visitor for SpecialFileFinder {
    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        if !matches!(entry.kind, FileType::Directory | FileType::RegularFile | FileType::Symlink) {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            // One more than can be hidden is enough to say so.
            if found.len() <= limits::HIDDEN_PATHS {
                found.insert(entry.path.to_owned());
            }
        }
        WalkStep::Enter
    }

    fn should_stop(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text for each reading, places apart by spaces; `dir/` is a folder with all in it.
    fn check(readings: &[&str], expected: &[&str]) {
        let place = |text: &str| (text.trim_end_matches('/').to_owned(), text.ends_with('/'));
        let item = readings.iter().map(|reading| reading.split(' ').map(place).collect());
        let expected: BTreeSet<WritePath> =
            expected.iter().map(|expected| place(expected)).collect();
        assert_eq!(intersect_paths(item), expected, "{readings:?}");
    }

    #[test]
    fn all_readings_agree_on_a_place() {
        check(&[], &["/"]);
        check(&["/"], &["/"]);
        check(&["out/ a"], &["out/", "a"]);
        check(&["out/ out/deep/ out/file out"], &["out/"]);
        check(&["out/ outer/"], &["out/", "outer/"]);
        check(&["/", "out/"], &["out/"]);
        check(&["out/ a", "out/deep/ a b"], &["out/deep/", "a"]);
        check(&["out/", "out"], &["out"]);
        check(&["out/", "src/"], &[]);
    }
}
