//! What differs in a copy of the workspace from what was copied.
//!
//! When the copy was made, it was noted how each path looked. What still looks the same is not read.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_core::outcome::CodedError;
use rustix::fs::{AtFlags, FileType, unlinkat};
use rustix::io::Errno;

use super::layers::StagingLayers;
use super::refusals::{not_found_text, too_many_problem};
use super::workspace_copy::{CopyResult, Omission};
use crate::change_path::{split_os_path, with_writable_directory};
use crate::directory_entries::entry_names;
use crate::node;
use crate::resolve::{LookupError, file_type, lookup_error};
use crate::system::{Stat, statat};

/// The slowest tick of a file system's clock: a change in the tick of the copy would leave no trace.
const CLOCK_TICK: Duration = Duration::from_millis(20);
/// That of a file system that counts whole seconds.
const SLOW_CLOCK_TICK: Duration = Duration::from_millis(1_010);

/// A copy of the workspace, in which the run changes something.
#[derive(Debug)]
pub(super) struct CopiedWorkspace {
    /// Why no changes could be laid over the workspace.
    pub why: String,
    /// What was copied, and how it looked then.
    stamps: BTreeMap<OsString, CopyStamp>,
    /// The digests of the files that were copied, where looks do not tell everything.
    digests: Option<BTreeMap<OsString, Option<Digest>>>,
    copy: CopyResult,
    /// What was copied, by the one spelling that stands for all of a path's.
    spelled: OnceCell<BTreeMap<WorkspacePath, WorkspacePath>>,
}

/// By what something is known to be as it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyStamp {
    /// A folder, with its permissions: what is in it is noted for itself.
    Directory(u32),
    /// Anything else. Whatever is done to it changes this.
    Other(node::FileStamp),
}

impl CopyStamp {
    fn from_stat(stat: &Stat) -> Self {
        match file_type(stat) {
            FileType::Directory => Self::Directory(stat.st_mode),
            _ => Self::Other(node::file_stamp(stat)),
        }
    }
}

/// How a path differs from what was copied.
pub(super) enum CopyDifference {
    /// Something else stands there.
    Replaced,
    /// Nothing stands there any more.
    Removed,
    /// It is a folder that cannot be looked into.
    Unreadable(String),
}

/// What is seen at a path of the folder of changes.
pub(super) enum WalkEntry<'s> {
    /// Something stands there.
    Present(&'s Stat),
    /// It is a folder that cannot be looked into.
    Unreadable(String),
    /// It is a folder with more names in it than are read.
    TooManyNames,
}

/// Looks at everything in the folder of changes until it was enough.
pub(super) fn walk_changes(
    layers: &StagingLayers,
    see: &mut dyn FnMut(&OsStr, &WalkEntry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut waiting = vec![OsString::new()];
    while let Some(path) = waiting.pop() {
        let folder = match layers.open_upper(&path) {
            Ok(folder) => folder,
            // It is gone by now.
            Err(LookupError::Missing) => continue,
            Err(why) => {
                see(&path, &WalkEntry::Unreadable(not_found_text(why)))?;
                continue;
            }
        };
        let names = match entry_names(&folder) {
            Ok(names) => names,
            Err(Errno::OVERFLOW) => {
                see(&path, &WalkEntry::TooManyNames)?;
                continue;
            }
            Err(errno) => {
                see(&path, &WalkEntry::Unreadable(not_found_text(LookupError::Refused(errno))))?;
                continue;
            }
        };
        for name in names {
            let stat = match statat(&folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Its names can be read, and nothing else.
                Err(errno @ Errno::ACCESS) => {
                    see(
                        &path,
                        &WalkEntry::Unreadable(not_found_text(LookupError::Refused(errno))),
                    )?;
                    break;
                }
                // It is gone by now.
                Err(_) => continue,
            };
            let inner = Path::new(&path).join(&name).into_os_string();
            see(&inner, &WalkEntry::Present(&stat))?;
            if file_type(&stat) == FileType::Directory {
                waiting.push(inner);
            }
        }
    }
    ControlFlow::Continue(())
}

/// The digest of a file in the folder of changes, if it is one and can be read.
fn staged_digest(layers: &StagingLayers, path: &OsStr, stat: &Stat) -> Option<Digest> {
    if file_type(stat) != FileType::RegularFile {
        return None;
    }
    let (folder, name) = split_os_path(path);
    let folder = layers.open_upper(folder).ok()?;
    let mut file = node::open_regular(folder.as_fd(), name, stat).ok()?;
    Digest::of_reader(|buffer| file.read(buffer)).ok()
}

impl CopiedWorkspace {
    /// Notes how everything looks that was just copied.
    pub(super) fn new(layers: &StagingLayers, copy: CopyResult, why: String) -> Self {
        let mut noted = BTreeMap::new();
        let mut digests = (!layers.stamps_are_reliable).then(BTreeMap::new);
        let mut tick = SLOW_CLOCK_TICK;
        let _ = walk_changes(layers, &mut |path, seen| {
            if let WalkEntry::Present(stat) = seen {
                if stat.st_ctime_nsec > 0 {
                    tick = CLOCK_TICK;
                }
                noted.insert(path.to_owned(), CopyStamp::from_stat(stat));
                if let Some(digests) = &mut digests {
                    digests.insert(path.to_owned(), staged_digest(layers, path, stat));
                }
            }
            ControlFlow::Continue(())
        });
        if !noted.is_empty() {
            std::thread::sleep(tick);
        }
        Self { why, stamps: noted, digests, copy, spelled: OnceCell::new() }
    }

    /// Whether what is seen is as it was copied.
    pub(super) fn is_same(&self, path: &OsStr, seen: &WalkEntry<'_>) -> bool {
        match seen {
            WalkEntry::Present(stat) => self.stamps.get(path) == Some(&CopyStamp::from_stat(stat)),
            WalkEntry::Unreadable(_) => self.copy.omitted.contains_key(path),
            WalkEntry::TooManyNames => false,
        }
    }

    /// Whether a file that looks as it was copied holds what was copied.
    fn has_same_content(&self, layers: &StagingLayers, path: &OsStr, seen: &WalkEntry<'_>) -> bool {
        match (&self.digests, seen) {
            (Some(digests), WalkEntry::Present(stat)) => {
                digests.get(path) == Some(&staged_digest(layers, path, stat))
            }
            _ => true,
        }
    }

    /// Everything that differs.
    ///
    /// # Errors
    /// It is more than may be staged.
    pub(super) fn differences(
        &self,
        layers: &StagingLayers,
    ) -> Result<Vec<(OsString, CopyDifference)>, CodedError> {
        let mut missing: BTreeSet<&OsStr> = self.stamps.keys().map(OsString::as_os_str).collect();
        let (mut found, mut closed) = (Vec::new(), BTreeSet::new());
        let most = layers.limits.get();
        let walked = walk_changes(layers, &mut |path, seen| {
            if let WalkEntry::Present(_) = seen {
                missing.remove(path);
            }
            if !self.is_same(path, seen) || !self.has_same_content(layers, path, seen) {
                let differs = match seen {
                    WalkEntry::Present(_) => CopyDifference::Replaced,
                    WalkEntry::Unreadable(why) => {
                        closed.insert(path.to_owned());
                        CopyDifference::Unreadable(why.clone())
                    }
                    WalkEntry::TooManyNames => return ControlFlow::Break(()),
                };
                found.push((path.to_owned(), differs));
            }
            match u64::try_from(found.len()).unwrap_or(u64::MAX) > most.paths {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if walked.is_break() {
            return Err(too_many_problem(most));
        }
        // What was in a folder that is gone, is gone with it. What is in a closed one, nobody knows.
        let is_unknown = |path: &OsStr| {
            Path::new(path).ancestors().any(|ancestor| closed.contains(ancestor.as_os_str()))
        };
        let is_told =
            |path: &&&OsStr| !missing.contains(split_os_path(path).0) && !is_unknown(path);
        let gone = missing.iter().filter(is_told);
        found.extend(gone.map(|path| ((*path).to_owned(), CopyDifference::Removed)));
        Ok(found)
    }

    /// How one path differs, if it does.
    pub(super) fn difference(&self, layers: &StagingLayers, path: &str) -> Option<CopyDifference> {
        let path = OsStr::new(path);
        let (folder, name) = split_os_path(path);
        let stat = layers.open_upper(folder).and_then(|folder| {
            statat(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).map_err(lookup_error)
        });
        match stat {
            Ok(stat) => {
                let seen = WalkEntry::Present(&stat);
                let same = self.is_same(path, &seen) && self.has_same_content(layers, path, &seen);
                (!same).then_some(CopyDifference::Replaced)
            }
            Err(LookupError::Missing) => {
                self.stamps.contains_key(path).then_some(CopyDifference::Removed)
            }
            Err(why) => Some(CopyDifference::Unreadable(not_found_text(why))),
        }
    }

    /// Why a change cannot be applied: what stands there in the workspace was not copied.
    pub(super) fn refusal(&self, path: &str, is_gone: bool) -> Option<String> {
        let (_, shut) = self.omission_at(path)?;
        // It goes with the folder that it is in.
        let is_fine = shut == Omission::SpecialFile && is_gone;
        (!is_fine).then(|| shut.reason().into())
    }

    /// What was not copied at a path, or at a folder above it, if something was not.
    fn omission_at<'p>(&self, path: &'p str) -> Option<(&'p Path, Omission)> {
        let mut above = Path::new(path).ancestors();
        above.find_map(|path| Some((path, *self.copy.omitted.get(path.as_os_str())?)))
    }

    /// What was copied that is the same path to the file system of the workspace, in another spelling.
    pub(super) fn twin(&self, path: &str, spelling: Spelling) -> Option<&WorkspacePath> {
        if spelling.is_exact() || self.copy.original_stamps.contains_key(OsStr::new(path)) {
            return None;
        }
        let one =
            |path: WorkspacePath| (spelling.path(&path).unwrap_or_else(|| path.clone()), path);
        let paths = self
            .copy
            .original_stamps
            .keys()
            .filter_map(|key| WorkspacePath::from_fs_name(key.to_str()?));
        let spelled = self.spelled.get_or_init(|| paths.map(one).collect());
        spelled.get(&one(WorkspacePath::from_fs_name(path)?).0)
    }

    /// Whether nothing may be told of what stands at a path in the workspace, or of what is in it:
    /// no command sees more of it than its name.
    pub(super) fn is_opaque(&self, path: &str) -> bool {
        self.omission_at(path).is_some_and(|(_, shut)| shut != Omission::SpecialFile)
    }

    /// Whether no command sees even the name.
    pub(super) fn is_hidden(&self, path: &str) -> bool {
        self.omission_at(path).is_some_and(|(omitted, _)| omitted != Path::new(path))
    }

    /// Whether what stands in the workspace is another than what was copied.
    pub(super) fn is_replaced(&self, path: &str, stat: Option<&Stat>) -> bool {
        self.copy.original_stamps.get(OsStr::new(path)).copied() != stat.map(node::file_stamp)
    }

    /// Removes from the copy what is as it was copied: nobody needs it any more. What cannot be
    /// removed goes with the rest later.
    pub(super) fn prune(&self, layers: &StagingLayers) -> Result<(), CodedError> {
        let differs: BTreeSet<OsString> =
            self.differences(layers)?.into_iter().map(|(path, _)| path).collect();
        let mut at: Option<(&OsStr, OwnedFd)> = None;
        // What is in a folder comes before it.
        for (path, noted) in self.stamps.iter().rev().filter(|(path, _)| !differs.contains(*path)) {
            let (folder, name) = split_os_path(path);
            if at.as_ref().is_none_or(|(name, _)| *name != folder) {
                at = layers.open_upper(folder).ok().map(|opened| (folder, opened));
            }
            let Some((_, above)) = &at else { continue };
            let flags = match noted {
                CopyStamp::Directory(_) => AtFlags::REMOVEDIR,
                CopyStamp::Other(_) => AtFlags::empty(),
            };
            let _: Result<(), Errno> =
                with_writable_directory(above, || unlinkat(above.as_fd(), name.as_bytes(), flags));
        }
        Ok(())
    }
}
