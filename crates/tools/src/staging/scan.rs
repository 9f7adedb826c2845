//! Reads changes out of the folder that the kernel lays over a workspace.
//!
//! What the kernel puts there is described in its `Documentation/filesystems/overlayfs.rst`: a file
//! that differs lies there whole, a name that is gone is a character device 0/0, and a folder that
//! took the place of another is marked as opaque. Nobody writes to it meanwhile: every process of
//! the call has ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use capsule_core::change::{Change, Changes, Node};
use capsule_core::code::Code;
use capsule_core::limits;
use capsule_core::outcome::Problem;
use rustix::fs::{Dir, FileType, Stat, fgetxattr};
use rustix::io::Errno;

use super::{First, Since, Staging, join, node, open_folder, too_many};
use crate::workspace::NotFound;

/// Marks a folder that hides what lies beneath it.
const OPAQUE: &str = "user.overlay.opaque";

/// One look at all changes.
pub(super) struct Scan<'s> {
    staging: &'s Staging,
    since: Since,
    found: Changes,
    bytes: u64,
    /// Folders of the changes that are still to be read.
    waiting: Vec<String>,
}

impl<'s> Scan<'s> {
    pub(super) fn of(staging: &'s Staging, since: Since) -> Self {
        Self { staging, since, found: Changes::default(), bytes: 0, waiting: vec![String::new()] }
    }

    /// What differs from the workspace now.
    ///
    /// # Errors
    /// [`Code::ChangeTooMany`] where more changed than may be staged, [`Code::FileSystem`] where the
    /// changes cannot be read.
    pub(super) fn run(mut self) -> Result<Changes, Problem> {
        while let Some(path) = self.waiting.pop() {
            self.folder(&path)?;
        }
        Ok(self.found)
    }

    fn folder(&mut self, path: &str) -> Result<(), Problem> {
        let staging = self.staging;
        let changed = match open_folder(&staging.beneath, staging.root(), path) {
            Ok(folder) => folder,
            Err(why) => return self.unreadable(path, &told(why)),
        };
        let beneath = open_folder(&staging.beneath, staging.beneath.root(), path).ok();
        let mut names = BTreeSet::new();
        for name in entries(&changed).map_err(|errno| failed(path, errno))? {
            match name.into_string() {
                Ok(name) => {
                    self.entry(path, &name, changed.as_fd(), beneath.as_ref())?;
                    names.insert(name);
                }
                Err(name) => self.unnamed(path, &name)?,
            }
        }
        let Some(beneath) = beneath.filter(|_| is_opaque(&changed)) else { return Ok(()) };
        for name in entries(&beneath).map_err(|errno| failed(path, errno))? {
            match name.into_string() {
                Ok(name) if names.contains(&name) => {}
                Ok(name) => self.removed(join(path, &name))?,
                Err(name) => self.unnamed(path, &name)?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        folder: &str,
        name: &str,
        changed: BorrowedFd<'_>,
        beneath: Option<&OwnedFd>,
    ) -> Result<(), Problem> {
        let path = join(folder, name);
        let stat = node::stat_at(changed, name).map_err(|errno| failed(&path, errno))?;
        let Some(stat) = stat else { return Ok(()) };
        if is_whiteout(&stat) {
            return self.removed(path);
        }
        let (after, why) = match self.now(&path, name, changed, &stat)? {
            Ok(node) => (node, None),
            Err(errno) => (Node::Special, Some(format!("it cannot be read ({errno})"))),
        };
        let mut before = self.before(&path, name, beneath.map(AsFd::as_fd))?;
        before.refused = before.refused.or(why);
        if matches!(before.node, Some(Node::Folder { .. })) && !is_folder(&after) {
            self.removed_beneath(&path)?;
        }
        if is_folder(&after) {
            self.waiting.push(path.clone());
        }
        self.note(path, before, Some(after));
        Ok(())
    }

    /// What stands there now. The digest of a file that still looks the same is not taken again.
    fn now(
        &mut self,
        path: &str,
        name: &str,
        folder: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<Result<Node, Errno>, Problem> {
        if node::kind(stat) != FileType::RegularFile {
            return Ok(node::read(folder, name, stat));
        }
        self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        if self.bytes > limits::STAGED_BYTES {
            return Err(too_many());
        }
        let looks = node::looks(stat);
        let mut digests = self.staging.digests.borrow_mut();
        if let Some((_, known)) = digests.get(path).filter(|(own, _)| *own == looks) {
            return Ok(Ok(known.clone()));
        }
        let read = node::read(folder, name, stat);
        if let Ok(node) = &read {
            digests.insert(path.to_owned(), (looks, node.clone()));
        }
        Ok(read)
    }

    /// What stood in the workspace when the path was first seen among the changes.
    fn before(
        &mut self,
        path: &str,
        name: &str,
        folder: Option<BorrowedFd<'_>>,
    ) -> Result<First, Problem> {
        let mut first = self.staging.first.borrow_mut();
        if let Some(known) = first.get(path) {
            return Ok(known.clone());
        }
        if first.len() >= limits::STAGED_PATHS {
            return Err(too_many());
        }
        let stat = match folder.map(|folder| node::stat_at(folder, name)).transpose() {
            Ok(stat) => stat.flatten(),
            Err(errno) => return Err(failed(path, errno)),
        };
        let own = match (folder, stat) {
            (Some(folder), Some(stat)) => {
                if node::kind(&stat) == FileType::RegularFile {
                    self.bytes =
                        self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
                    if self.bytes > limits::STAGED_BYTES {
                        return Err(too_many());
                    }
                }
                let nanos = i64::try_from(stat.st_ctime_nsec).unwrap_or(i64::MAX);
                let meanwhile = node::kind(&stat) != FileType::Directory
                    && (stat.st_ctime, nanos) >= self.since;
                let (node, why) = match node::read(folder, name, &stat) {
                    Ok(node) => (node, None),
                    Err(errno) => (Node::Special, Some(format!("it could not be read ({errno})"))),
                };
                let refused = meanwhile.then(|| MEANWHILE.to_owned()).or(why);
                First { node: Some(node), refused }
            }
            _ => First { node: None, refused: None },
        };
        first.insert(path.to_owned(), own.clone());
        Ok(own)
    }

    /// A name that is gone, and everything beneath it.
    fn removed(&mut self, path: String) -> Result<(), Problem> {
        let mut gone = vec![path];
        while let Some(path) = gone.pop() {
            let (folder, name) = super::split(&path);
            let beneath = &self.staging.beneath;
            let opened = open_folder(beneath, beneath.root(), folder).ok();
            let before = self.before(&path, name, opened.as_ref().map(AsFd::as_fd))?;
            if matches!(before.node, Some(Node::Folder { .. })) {
                gone.extend(self.names_beneath(&path)?);
            }
            self.note(path, before, None);
        }
        Ok(())
    }

    fn removed_beneath(&mut self, path: &str) -> Result<(), Problem> {
        self.names_beneath(path)?.into_iter().try_for_each(|inner| self.removed(inner))
    }

    fn names_beneath(&mut self, path: &str) -> Result<Vec<String>, Problem> {
        let beneath = &self.staging.beneath;
        let folder = match open_folder(beneath, beneath.root(), path) {
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

    fn note(&mut self, path: String, before: First, after: Option<Node>) {
        let First { node: before, refused } = before;
        if before != after {
            self.found.put(Change { path, before, after, refused });
        }
    }

    /// A name that is not text: no record holds it and no call can name it.
    fn unnamed(&mut self, folder: &str, name: &OsString) -> Result<(), Problem> {
        self.unreadable(&join(folder, &name.to_string_lossy()), "its name is not text")
    }

    fn unreadable(&mut self, path: &str, why: &str) -> Result<(), Problem> {
        if self.found.len() >= limits::STAGED_PATHS {
            return Err(too_many());
        }
        let before = First { node: None, refused: Some(why.to_owned()) };
        let path = if path.is_empty() { "." } else { path };
        self.note(path.to_owned(), before, Some(Node::Special));
        Ok(())
    }
}

/// Why a change is refused whose file somebody wrote to under the command's hands.
const MEANWHILE: &str = "somebody changed it in the workspace while the command ran";

fn is_folder(node: &Node) -> bool {
    matches!(node, Node::Folder { .. })
}

fn is_whiteout(stat: &Stat) -> bool {
    node::kind(stat) == FileType::CharacterDevice && stat.st_rdev == 0
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

fn told(why: NotFound) -> String {
    match why {
        NotFound::Missing => "it is not there".into(),
        NotFound::Outside(problem) => problem.reason().into(),
        NotFound::Refused(errno) => format!("it cannot be read ({errno})"),
    }
}

fn failed(path: &str, errno: Errno) -> Problem {
    if errno == Errno::OVERFLOW {
        return too_many();
    }
    let message = format!("what was changed at `{path}` cannot be read: {errno}");
    Problem::new(Code::FileSystem, message)
}

/// Whether more lies among the changes than may be staged: a look at sizes, while a command runs.
pub(super) fn is_full(staging: &Staging) -> bool {
    let (mut paths, mut blocks) = (0_usize, 0_u64);
    let mut waiting = vec![String::new()];
    while let Some(path) = waiting.pop() {
        // What cannot be looked into now is found when the command has ended.
        let Ok(folder) = open_folder(&staging.beneath, staging.root(), &path) else { continue };
        let Ok(names) = entries(&folder) else { return true };
        for name in names.into_iter().filter_map(|name| name.into_string().ok()) {
            let Ok(Some(stat)) = node::stat_at(folder.as_fd(), &name) else { continue };
            paths += 1;
            blocks = blocks.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0));
            if paths > limits::STAGED_PATHS || blocks > limits::STAGED_BYTES / 512 {
                return true;
            }
            if node::kind(&stat) == FileType::Directory {
                waiting.push(join(&path, &name));
            }
        }
    }
    false
}
