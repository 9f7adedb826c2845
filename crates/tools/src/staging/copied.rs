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

use capsule_core::code::Code;
use capsule_core::digest::Digest;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::WorkspacePath;
use capsule_core::spelling::Spelling;
use rustix::fs::{AtFlags, FileType, Stat, statat, unlinkat};
use rustix::io::Errno;

use super::copy::{Copy, Shut};
use super::scan::{entries, told};
use super::{Staging, apart, too_many};
use crate::making::opened;
use crate::node;
use crate::workspace::{NotFound, kind, not_found};

/// The slowest tick of a file system's clock: a change in the tick of the copy would leave no trace.
const TICK: Duration = Duration::from_millis(20);
/// That of a file system that counts whole seconds.
const WHOLE_SECONDS: Duration = Duration::from_millis(1_010);

/// A copy of the workspace, in which the run changes something.
#[derive(Debug)]
pub(super) struct Copied {
    /// Why no changes could be laid over the workspace.
    pub why: String,
    /// What was copied, and how it looked then.
    noted: BTreeMap<OsString, Noted>,
    /// The digests of the files that were copied, where looks do not tell everything.
    digests: Option<BTreeMap<OsString, Option<Digest>>>,
    copy: Copy,
    /// What was copied, by the one spelling that stands for all of a path's.
    spelled: OnceCell<BTreeMap<WorkspacePath, WorkspacePath>>,
}

/// By what something is known to be as it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// A folder, with its permissions: what is in it is noted for itself.
    Folder(u32),
    /// Anything else. Whatever is done to it changes this.
    Other(node::Looks),
}

impl Noted {
    fn of(stat: &Stat) -> Self {
        match kind(stat) {
            FileType::Directory => Self::Folder(stat.st_mode),
            _ => Self::Other(node::looks(stat)),
        }
    }
}

/// How a path differs from what was copied.
pub(super) enum Differs {
    /// Something else stands there.
    Stands,
    /// Nothing stands there any more.
    Gone,
    /// It is a folder that cannot be looked into.
    Closed(String),
}

/// What is seen at a path of the folder of changes.
pub(super) enum Seen<'s> {
    /// Something stands there.
    Stands(&'s Stat),
    /// It is a folder that cannot be looked into.
    Closed(String),
    /// It is a folder with more names in it than are read.
    Endless,
}

/// Looks at everything in the folder of changes until it was enough.
pub(super) fn walk(
    staging: &Staging,
    see: &mut dyn FnMut(&OsStr, &Seen<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut waiting = vec![OsString::new()];
    while let Some(path) = waiting.pop() {
        let folder = match staging.upper_folder(&path) {
            Ok(folder) => folder,
            // It is gone by now.
            Err(NotFound::Missing) => continue,
            Err(why) => {
                see(&path, &Seen::Closed(told(why)))?;
                continue;
            }
        };
        let names = match entries(&folder) {
            Ok(names) => names,
            Err(Errno::OVERFLOW) => {
                see(&path, &Seen::Endless)?;
                continue;
            }
            Err(errno) => {
                see(&path, &Seen::Closed(told(NotFound::Refused(errno))))?;
                continue;
            }
        };
        for name in names {
            let stat = match statat(&folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Its names can be read, and nothing else.
                Err(errno @ Errno::ACCESS) => {
                    see(&path, &Seen::Closed(told(NotFound::Refused(errno))))?;
                    break;
                }
                // It is gone by now.
                Err(_) => continue,
            };
            let inner = Path::new(&path).join(&name).into_os_string();
            see(&inner, &Seen::Stands(&stat))?;
            if kind(&stat) == FileType::Directory {
                waiting.push(inner);
            }
        }
    }
    ControlFlow::Continue(())
}

/// The digest of a file in the folder of changes, if it is one and can be read.
fn digest(staging: &Staging, path: &OsStr, stat: &Stat) -> Option<Digest> {
    if kind(stat) != FileType::RegularFile {
        return None;
    }
    let (folder, name) = apart(path);
    let folder = staging.upper_folder(folder).ok()?;
    let mut file = node::open(folder.as_fd(), name, stat).ok()?;
    Digest::of_reader(|buffer| file.read(buffer)).ok()
}

impl Staging {
    /// Whether what stands at a path in the workspace stands in a copy of it, too. A tool would see nothing
    /// there, or an empty file, and once it had changed that, nothing of the run could be applied.
    ///
    /// # Errors
    /// [`Code::ChangeRefused`] where it was not copied.
    pub(crate) fn shows(&self, path: &WorkspacePath) -> Result<(), CodedError> {
        let refusal = self.copied.as_ref().and_then(|own| own.refusal(path.as_str(), false));
        let Some(why) = refusal else { return Ok(()) };
        let message = format!("`{path}` cannot be changed in the copy of the workspace: {why}");
        Err(CodedError::new(Code::ChangeRefused, message).with_suggestion("choose another path"))
    }
}

impl Copied {
    /// Notes how everything looks that was just copied.
    pub(super) fn note(staging: &Staging, copy: Copy, why: String) -> Self {
        let mut noted = BTreeMap::new();
        let mut digests = (!staging.looks_tell).then(BTreeMap::new);
        let mut tick = WHOLE_SECONDS;
        let _ = walk(staging, &mut |path, seen| {
            if let Seen::Stands(stat) = seen {
                if stat.st_ctime_nsec > 0 {
                    tick = TICK;
                }
                noted.insert(path.to_owned(), Noted::of(stat));
                if let Some(digests) = &mut digests {
                    digests.insert(path.to_owned(), digest(staging, path, stat));
                }
            }
            ControlFlow::Continue(())
        });
        if !noted.is_empty() {
            std::thread::sleep(tick);
        }
        Self { why, noted, digests, copy, spelled: OnceCell::new() }
    }

    /// Whether what is seen is as it was copied.
    pub(super) fn is_same(&self, path: &OsStr, seen: &Seen<'_>) -> bool {
        match seen {
            Seen::Stands(stat) => self.noted.get(path) == Some(&Noted::of(stat)),
            Seen::Closed(_) => self.copy.shut.contains_key(path),
            Seen::Endless => false,
        }
    }

    /// Whether a file that looks as it was copied holds what was copied.
    fn holds_same(&self, staging: &Staging, path: &OsStr, seen: &Seen<'_>) -> bool {
        match (&self.digests, seen) {
            (Some(digests), Seen::Stands(stat)) => {
                digests.get(path) == Some(&digest(staging, path, stat))
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
        staging: &Staging,
    ) -> Result<Vec<(OsString, Differs)>, CodedError> {
        let mut missing: BTreeSet<&OsStr> = self.noted.keys().map(OsString::as_os_str).collect();
        let (mut found, mut closed) = (Vec::new(), BTreeSet::new());
        let walked = walk(staging, &mut |path, seen| {
            if let Seen::Stands(_) = seen {
                missing.remove(path);
            }
            if !self.is_same(path, seen) || !self.holds_same(staging, path, seen) {
                let differs = match seen {
                    Seen::Stands(_) => Differs::Stands,
                    Seen::Closed(why) => {
                        closed.insert(path.to_owned());
                        Differs::Closed(why.clone())
                    }
                    Seen::Endless => return ControlFlow::Break(()),
                };
                found.push((path.to_owned(), differs));
            }
            match found.len() > limits::STAGED_PATHS {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if walked.is_break() {
            return Err(too_many());
        }
        // What was in a folder that is gone, is gone with it. What is in a closed one, nobody knows.
        let is_unknown =
            |path: &OsStr| Path::new(path).ancestors().any(|own| closed.contains(own.as_os_str()));
        let is_told = |path: &&&OsStr| !missing.contains(apart(path).0) && !is_unknown(path);
        let gone = missing.iter().filter(is_told);
        found.extend(gone.map(|path| ((*path).to_owned(), Differs::Gone)));
        Ok(found)
    }

    /// How one path differs, if it does.
    pub(super) fn difference(&self, staging: &Staging, path: &str) -> Option<Differs> {
        let path = OsStr::new(path);
        let (folder, name) = apart(path);
        let stat = staging.upper_folder(folder).and_then(|folder| {
            statat(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).map_err(not_found)
        });
        match stat {
            Ok(stat) => {
                let seen = Seen::Stands(&stat);
                let same = self.is_same(path, &seen) && self.holds_same(staging, path, &seen);
                (!same).then_some(Differs::Stands)
            }
            Err(NotFound::Missing) => self.noted.contains_key(path).then_some(Differs::Gone),
            Err(why) => Some(Differs::Closed(told(why))),
        }
    }

    /// Why a change cannot be applied: what stands there in the workspace was not copied.
    pub(super) fn refusal(&self, path: &str, is_gone: bool) -> Option<String> {
        let (_, shut) = self.shut_at(path)?;
        // It goes with the folder that it is in.
        let is_fine = shut == Shut::LeftOut && is_gone;
        (!is_fine).then(|| shut.why().into())
    }

    /// What was not copied at a path, or at a folder above it, if something was not.
    fn shut_at<'p>(&self, path: &'p str) -> Option<(&'p Path, Shut)> {
        let mut above = Path::new(path).ancestors();
        above.find_map(|own| Some((own, *self.copy.shut.get(own.as_os_str())?)))
    }

    /// What was copied that is the same path to the file system of the workspace, in another spelling.
    fn twin(&self, path: &str, spelling: Spelling) -> Option<&WorkspacePath> {
        if spelling.is_exact() || self.copy.originals.contains_key(OsStr::new(path)) {
            return None;
        }
        let one =
            |path: WorkspacePath| (spelling.path(&path).unwrap_or_else(|| path.clone()), path);
        let paths =
            self.copy.originals.keys().filter_map(|own| WorkspacePath::from_fs_name(own.to_str()?));
        let spelled = self.spelled.get_or_init(|| paths.map(one).collect());
        spelled.get(&one(WorkspacePath::from_fs_name(path)?).0)
    }

    /// Whether nothing may be told of what stands at a path in the workspace, or of what is in it:
    /// no command sees more of it than its name.
    pub(super) fn is_untold(&self, path: &str) -> bool {
        self.shut_at(path).is_some_and(|(_, shut)| shut != Shut::LeftOut)
    }

    /// Whether no command sees even the name.
    pub(super) fn is_unnamed(&self, path: &str) -> bool {
        self.shut_at(path).is_some_and(|(own, _)| own != Path::new(path))
    }

    /// Whether what stands in the workspace is another than what was copied.
    pub(super) fn is_another(&self, path: &str, stat: Option<&Stat>) -> bool {
        self.copy.originals.get(OsStr::new(path)).copied() != stat.map(node::looks)
    }

    /// Removes from the copy what is as it was copied: nobody needs it any more. What cannot be
    /// removed goes with the rest later.
    pub(super) fn prune(&self, staging: &Staging) -> Result<(), CodedError> {
        let differs: BTreeSet<OsString> =
            self.differences(staging)?.into_iter().map(|(path, _)| path).collect();
        let mut at: Option<(&OsStr, OwnedFd)> = None;
        // What is in a folder comes before it.
        for (path, noted) in self.noted.iter().rev().filter(|(path, _)| !differs.contains(*path)) {
            let (folder, name) = apart(path);
            if at.as_ref().is_none_or(|(own, _)| *own != folder) {
                at = staging.upper_folder(folder).ok().map(|opened| (folder, opened));
            }
            let Some((_, above)) = &at else { continue };
            let flags = match noted {
                Noted::Folder(_) => AtFlags::REMOVEDIR,
                Noted::Other(_) => AtFlags::empty(),
            };
            let _: Result<(), Errno> =
                opened(above, || unlinkat(above.as_fd(), name.as_bytes(), flags));
        }
        Ok(())
    }
}

impl Staging {
    /// Why nothing may be told of a path that is another spelling of one which was copied.
    pub(super) fn other_spelling(&self, path: &str) -> Option<String> {
        let twin = self.copied.as_ref()?.twin(path, self.lower.spelling())?;
        Some(format!("it is another spelling of `{twin}`, which is the same name there"))
    }
}
