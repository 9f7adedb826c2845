//! Reads changes out of the folder that the kernel lays over a workspace.
//!
//! What the kernel puts there is described in its `Documentation/filesystems/overlayfs.rst`: a file
//! that differs lies there whole, a name that is gone is a character device 0/0, and a folder that
//! took the place of another is marked as opaque. Where it is a copy of the workspace instead, what
//! differs is found by [`super::copied`]. Nobody writes to it meanwhile: every process of
//! the call has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use capsule_core::change::{Change, ChangeSet, FileState};
use capsule_core::code::Code;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::PathProblem;
use rustix::fs::{Dir, FileType, Stat, fgetxattr, fstat};
use rustix::io::Errno;

use super::copied::{Differs, Seen, walk};
use super::{First, Staging, join, too_many};
use crate::node;
use crate::veil::Veil;
use crate::workspace::{NotFound, Workspace, kind};

/// Marks a folder that hides what lies beneath it.
const OPAQUE: &str = "user.overlay.opaque";

/// One look at all changes.
pub(super) struct Scan<'s> {
    pub(super) staging: &'s Staging,
    found: ChangeSet,
    /// What knows the folders of the workspace, and the workspace as it is seen.
    seen: (&'s Veil, &'s Workspace),
    /// Whether folders of the workspace are others than when the run began.
    moved: BTreeMap<String, bool>,
    bytes: u64,
    /// Folders of the changes that are still to be read, and whether one above them hides what lies
    /// beneath: the kernel marks only the uppermost.
    waiting: Vec<(String, bool)>,
}

impl<'s> Scan<'s> {
    pub(super) fn of(staging: &'s Staging, seen: (&'s Veil, &'s Workspace)) -> Self {
        let (found, moved) = (ChangeSet::default(), BTreeMap::new());
        Self { staging, found, seen, moved, bytes: 0, waiting: vec![(String::new(), false)] }
    }

    /// What differs from the workspace now.
    ///
    /// # Errors
    /// [`Code::ChangeTooMany`] where more changed than may be staged, [`Code::FileSystem`] where the
    /// changes cannot be read.
    pub(super) fn run(mut self) -> Result<ChangeSet, CodedError> {
        self.staging.closed.set(false);
        if let Some(copied) = &self.staging.copied {
            for (path, differs) in copied.differences(self.staging)? {
                self.differing(path, &differs)?;
            }
        } else {
            while let Some((path, hidden)) = self.waiting.pop() {
                self.folder(&path, hidden)?;
            }
        }
        self.staging.weight.set(self.bytes);
        Ok(self.found)
    }

    /// What differs at one path, beneath it, and in the folders above it: all that a tool can have changed
    /// which writes or deletes there. None where that is not sure without a look at everything.
    ///
    /// # Errors
    /// As above.
    pub(super) fn run_at(mut self, path: &str) -> Result<Option<ChangeSet>, CodedError> {
        let closed = self.staging.closed.replace(false);
        self.waiting.clear();
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for own in ends.filter_map(|end| path.get(..end)) {
            self.at(own)?;
        }
        let weight = self.staging.weight.get().saturating_add(self.bytes);
        let unsure = self.staging.closed.get() || weight > limits::STAGED_BYTES;
        self.staging.closed.set(closed || self.staging.closed.get());
        if unsure {
            return Ok(None);
        }
        self.staging.weight.set(weight);
        Ok(Some(self.found))
    }

    /// One path, with what is beneath it where it is gone.
    fn at(&mut self, path: &str) -> Result<(), CodedError> {
        let (folder, name) = super::split(path);
        if let Some(copied) = &self.staging.copied {
            return match copied.difference(self.staging, path) {
                Some(differs) => self.differing(path.into(), &differs),
                None => Ok(()),
            };
        }
        match self.staging.upper_folder(folder) {
            Ok(changed) => {
                let beneath = self.staging.lower_folder(folder).ok();
                self.entry(folder, name, changed.as_fd(), beneath.as_ref()).map(drop)
            }
            // Nothing was changed there, or no longer is.
            Err(NotFound::Missing) => Ok(()),
            Err(why) => self.closed(folder, &told(why)),
        }
    }

    /// A path of a copy of the workspace that is not as it was copied.
    fn differing(&mut self, path: OsString, differs: &Differs) -> Result<(), CodedError> {
        let path = match path.into_string() {
            Ok(path) => path,
            Err(path) => return self.unnamed("", &path),
        };
        let (folder, name) = super::split(&path);
        match differs {
            Differs::Gone => self.removed(path),
            Differs::Closed(why) => self.closed(&path, why),
            Differs::Stands => match self.staging.upper_folder(folder) {
                Ok(changed) => {
                    let beneath = self.staging.lower_folder(folder).ok();
                    self.entry(folder, name, changed.as_fd(), beneath.as_ref()).map(drop)
                }
                Err(why) => self.closed(folder, &told(why)),
            },
        }
    }

    fn folder(&mut self, path: &str, hidden: bool) -> Result<(), CodedError> {
        let staging = self.staging;
        let changed = match staging.upper_folder(path) {
            Ok(folder) => folder,
            Err(why) => return self.closed(path, &told(why)),
        };
        let beneath = staging.lower_folder(path).ok();
        let opaque = hidden || is_opaque(&changed);
        let mut names = BTreeSet::new();
        let listed = match entries(&changed) {
            Err(errno @ Errno::ACCESS) => {
                return self.closed(path, &told(NotFound::Refused(errno)));
            }
            listed => listed.map_err(|errno| failed(path, errno))?,
        };
        for name in listed {
            match name.into_string() {
                Ok(name) => {
                    if self.entry(path, &name, changed.as_fd(), beneath.as_ref())? {
                        self.waiting.push((join(path, &name), opaque));
                    }
                    names.insert(name);
                }
                Err(name) => self.unnamed(path, &name)?,
            }
        }
        let Some(beneath) = beneath.filter(|_| opaque) else { return Ok(()) };
        for name in entries(&beneath).map_err(|errno| failed(path, errno))? {
            match name.into_string() {
                Ok(name) if names.contains(&name) => {}
                Ok(name) => self.removed(join(path, &name))?,
                Err(name) => self.unnamed(path, &name)?,
            }
        }
        Ok(())
    }

    /// One name; says whether it is a folder now.
    fn entry(
        &mut self,
        folder: &str,
        name: &str,
        changed: BorrowedFd<'_>,
        beneath: Option<&OwnedFd>,
    ) -> Result<bool, CodedError> {
        let path = join(folder, name);
        let stat = match node::stat_at(changed, name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(false),
            // Its names can be read, and nothing else.
            Err(errno @ Errno::ACCESS) => {
                let why = told(NotFound::Refused(errno));
                return self.closed(folder, &why).map(|()| false);
            }
            Err(errno) => return Err(failed(&path, errno)),
        };
        if self.staging.copied.is_none() && is_whiteout(&stat) {
            return self.removed(path).map(|()| false);
        }
        let (after, why) = match self.now(&path, name, changed, &stat)? {
            Ok(FileState::Special) if kind(&stat) == FileType::Symlink => {
                (FileState::Special, Some(NAMELESS.to_owned()))
            }
            Ok(node) => (node, None),
            Err(errno) => (FileState::Special, Some(format!("it cannot be read ({errno})"))),
        };
        let mut before = self.before(&path, name, beneath.map(AsFd::as_fd))?;
        before.refused = before.refused.or(why);
        if matches!(before.node, Some(FileState::Directory { .. })) && !is_folder(&after) {
            self.removed_beneath(&path)?;
        }
        let folder = is_folder(&after);
        self.note(path, before, Some(after));
        Ok(folder)
    }

    /// What stands there now. The digest of a file that still looks the same is not taken again.
    fn now(
        &mut self,
        path: &str,
        name: &str,
        folder: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<Result<FileState, Errno>, CodedError> {
        if kind(stat) != FileType::RegularFile {
            return Ok(node::read(folder, name, stat));
        }
        self.weigh(stat)?;
        let looks = node::looks(stat);
        let mut digests = self.staging.digests.borrow_mut();
        let is_same = |own: &node::Looks| self.staging.looks_tell && *own == looks;
        if let Some((_, known)) = digests.get(path).filter(|(own, _)| is_same(own)) {
            return Ok(Ok(known.clone()));
        }
        let read = node::read(folder, name, stat);
        if let Ok(node) = &read {
            digests.insert(path.to_owned(), (looks, node.clone()));
        }
        Ok(read)
    }

    /// Counts a file that is to be read.
    fn weigh(&mut self, stat: &Stat) -> Result<(), CodedError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        if self.bytes > limits::STAGED_BYTES { Err(too_many()) } else { Ok(()) }
    }

    /// What stood in the workspace when the path was first seen among the changes.
    fn before(
        &mut self,
        path: &str,
        name: &str,
        folder: Option<BorrowedFd<'_>>,
    ) -> Result<First, CodedError> {
        let staging = self.staging;
        let mut first = staging.first.borrow_mut();
        if let Some(known) = first.get(path) {
            return Ok(known.clone());
        }
        if first.len() >= limits::STAGED_PATHS {
            return Err(too_many());
        }
        let look = |folder| {
            node::refresh(folder, name);
            node::stat_at(folder, name)
        };
        let stat = match folder.map(look).transpose() {
            Ok(stat) => stat.flatten(),
            Err(errno) => return Err(failed(path, errno)),
        };
        let copied = staging.copied.as_ref();
        let own = match (folder, stat) {
            _ if copied.is_some_and(|own| own.is_unnamed(path)) => {
                First { node: None, refused: None }
            }
            _ if let Some(why) = staging.other_spelling(path) => {
                First { node: None, refused: Some(why) }
            }
            (_, Some(stat)) if copied.is_some_and(|own| own.is_untold(path)) => {
                First { node: Some(node::untold(&stat)), refused: None }
            }
            (Some(folder), Some(stat)) => {
                if kind(&stat) == FileType::RegularFile {
                    self.weigh(&stat)?;
                }
                // Commands may see what stood there when it was first looked up: the kernel does not
                // notice what becomes of a workspace beneath the changes.
                let meanwhile = node::changed(&stat) >= staging.laid
                    || copied.is_some_and(|own| own.is_another(path, Some(&stat)));
                let (node, why) = match node::read(folder, name, &stat) {
                    Ok(node) => (node, None),
                    Err(errno) => {
                        (FileState::Special, Some(format!("it could not be read ({errno})")))
                    }
                };
                let meanwhile = meanwhile && !self.is_refreshed(path, folder, (name, &stat));
                self.keep_index(path, folder, (name, &stat, &node));
                let refused = meanwhile.then(|| MEANWHILE.to_owned()).or(why);
                First { node: Some(node), refused }
            }
            _ => {
                let meanwhile = copied.is_some_and(|own| own.is_another(path, None));
                First { node: None, refused: meanwhile.then(|| MEANWHILE.to_owned()) }
            }
        };
        first.insert(path.to_owned(), own.clone());
        Ok(own)
    }

    /// A name that is gone, and everything beneath it.
    fn removed(&mut self, path: String) -> Result<(), CodedError> {
        let mut gone = vec![path];
        while let Some(path) = gone.pop() {
            let (folder, name) = super::split(&path);
            let opened = self.staging.lower_folder(folder).ok();
            let before = self.before(&path, name, opened.as_ref().map(AsFd::as_fd))?;
            if matches!(before.node, Some(FileState::Directory { .. })) {
                gone.extend(self.names_beneath(&path)?);
            }
            self.note(path, before, None);
        }
        Ok(())
    }

    fn removed_beneath(&mut self, path: &str) -> Result<(), CodedError> {
        self.names_beneath(path)?.into_iter().try_for_each(|inner| self.removed(inner))
    }

    fn names_beneath(&mut self, path: &str) -> Result<Vec<String>, CodedError> {
        if self.staging.copied.as_ref().is_some_and(|copied| copied.is_untold(path)) {
            return Ok(Vec::new());
        }
        let folder = match self.staging.lower_folder(path) {
            Ok(folder) => folder,
            // It went away meanwhile, or became another thing: that is found when it is applied.
            Err(NotFound::Missing | NotFound::Outside(_)) => return Ok(Vec::new()),
            Err(NotFound::Refused(errno)) => return Err(failed(path, errno)),
        };
        let mut paths = Vec::new();
        for name in entries(&folder).map_err(|errno| failed(path, errno))? {
            match name.into_string() {
                Ok(name) => paths.push(join(path, &name)),
                Err(name) => self.unnamed(path, &name)?,
            }
        }
        Ok(paths)
    }

    fn note(&mut self, path: String, before: First, after: Option<FileState>) {
        let First { node: before, mut refused } = before;
        if before != after {
            if refused.is_none() && self.was_moved(super::split(&path).0) {
                refused = Some(MEANWHILE.to_owned());
            }
            let copied = self.staging.copied.as_ref();
            let refused =
                refused.or_else(|| copied.and_then(|own| own.refusal(&path, after.is_none())));
            let change = Change { path: path.clone(), before, after, refused, asked: None };
            self.found.0.insert(path, change);
        }
    }

    /// Whether the folder, or one above it, is another than when the run began.
    fn was_moved(&mut self, path: &str) -> bool {
        let ((veil, workspace), staging) = (self.seen, self.staging);
        let ends_at_a_link = |path: &str| {
            matches!(staging.lower_folder(path), Err(NotFound::Outside(PathProblem::Escapes)))
        };
        let ask = || {
            let mut way = path;
            // No folder lies beneath a link, so none was moved there: what it leads to is another path.
            while ends_at_a_link(super::split(way).0) {
                way = super::split(way).0;
            }
            veil.was_moved(workspace, OsStr::new(way), true)
        };
        *self.moved.entry(path.to_owned()).or_insert_with(ask)
    }

    /// A name that is not text: no record holds it and no call can name it.
    fn unnamed(&mut self, folder: &str, name: &OsString) -> Result<(), CodedError> {
        self.unreadable(&join(folder, &name.to_string_lossy()), "its name is not text")
    }

    fn unreadable(&mut self, path: &str, why: &str) -> Result<(), CodedError> {
        if self.found.0.len() >= limits::STAGED_PATHS {
            return Err(too_many());
        }
        let before = First { node: None, refused: Some(why.to_owned()) };
        self.note(path.to_owned(), before, Some(FileState::Special));
        Ok(())
    }

    /// A folder that cannot be looked into. What became of itself is known, and what is in it is not.
    fn closed(&mut self, path: &str, why: &str) -> Result<(), CodedError> {
        self.staging.closed.set(true);
        if let Some(known) = self.found.0.get_mut(path) {
            known.refused.get_or_insert_with(|| why.to_owned());
            return Ok(());
        }
        let staging = self.staging;
        let (path, before, after) = if path.is_empty() {
            let own = |folder| fstat(folder).ok().map(|stat| node::untold(&stat));
            (".", own(staging.lower.root()), own(staging.upper.as_fd()))
        } else {
            let first = staging.first.borrow().get(path).and_then(|own| own.node.clone());
            (path, first.clone(), first)
        };
        // It is as it was, and yet nobody can say so of what is in it.
        let after = after.filter(|own| Some(own) != before.as_ref()).unwrap_or(FileState::Special);
        let before = First { node: before, refused: Some(why.to_owned()) };
        self.note(path.to_owned(), before, Some(after));
        Ok(())
    }
}

/// Why a change is refused whose file somebody wrote to under the run's hands.
const MEANWHILE: &str = "somebody changed it in the workspace while the run went on";

/// Why one is refused of a folder with such permissions.
const CLOSED: &str = "its permissions let nobody look into it, so what is in it is not known";

/// Why a link is refused whose target is not text.
const NAMELESS: &str = "it is a link to a name that is not text, which no record holds";

fn is_folder(node: &FileState) -> bool {
    matches!(node, FileState::Directory { .. })
}

fn is_whiteout(stat: &Stat) -> bool {
    kind(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0_u8; 1];
    // A value of another length is another mark, which only lower layers have.
    fgetxattr(folder, OPAQUE, &mut value[..]) == Ok(1) && value == *b"y"
}

/// The names in a folder, without those of itself and of the one above.
pub(super) fn entries(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
        if names.len() > limits::LIST_SCAN {
            return Err(Errno::OVERFLOW);
        }
    }
    names.sort();
    Ok(names)
}

pub(super) fn told(why: NotFound) -> String {
    match why {
        NotFound::Missing => "it is not there".into(),
        NotFound::Outside(problem) => format!("its path {}", problem.reason()),
        NotFound::Refused(Errno::ACCESS) => CLOSED.into(),
        NotFound::Refused(errno) => format!("it cannot be read ({errno})"),
    }
}

fn failed(path: &str, errno: Errno) -> CodedError {
    if errno == Errno::OVERFLOW {
        return too_many();
    }
    let message = format!("what was changed at `{path}` cannot be read: {errno}");
    CodedError::new(Code::FileSystem, message)
}

/// Whether more lies among the changes than may be staged: a look at sizes, while a command runs. A folder
/// that is closed is passed over: programs close one and open it again. What it hides is found by the
/// space that it takes, and once the command has ended.
pub(super) fn is_full(staging: &Staging) -> bool {
    let (mut paths, mut blocks) = (0_usize, 0_u64);
    let full = walk(staging, &mut |path, seen| {
        if staging.copied.as_ref().is_some_and(|copied| copied.is_same(path, seen)) {
            return ControlFlow::Continue(());
        }
        let stat = match seen {
            Seen::Stands(stat) => stat,
            Seen::Closed(_) => return ControlFlow::Continue(()),
            Seen::Endless => return ControlFlow::Break(()),
        };
        paths += 1;
        blocks = blocks.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0));
        match paths > limits::STAGED_PATHS || blocks > limits::STAGED_BYTES / 512 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    full.is_break()
}
