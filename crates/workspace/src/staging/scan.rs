//! Reads changes out of the folder that the kernel lays over a workspace.
//!
//! What the kernel puts there is described in its `Documentation/filesystems/overlayfs.rst`: a file
//! that differs lies there whole, a name that is gone is a character device 0/0, and a folder that
//! took the place of another is marked as opaque. Where it is a copy of the workspace instead, what
//! differs is found by [`super::copy_changes`]. Nobody writes to it meanwhile: every process of
//! the call has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::PathProblem;
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::CodedError;
use rustix::fs::{FileType, fgetxattr};
use rustix::io::Errno;

use super::copy_changes::{CopyDifference, WalkEntry, walk_changes};
use super::refusals::{CHANGED_MEANWHILE, UNREADABLE_LINK, not_found_text, too_many_problem};
use super::state::{OriginalNode, Staging};
use crate::change_path::{join, split_parent};
use crate::change_set::ChangeSet;
use crate::directory_entries::entry_names;
use crate::hidden_paths::HiddenPaths;
use crate::node;
use crate::resolve::{LookupError, Workspace, file_type};
use crate::system::{Stat, fstat};

/// Marks a folder that hides what lies beneath it.
const OPAQUE_ATTRIBUTE: &str = "user.overlay.opaque";

/// One look at all changes.
pub(super) struct ChangeScan<'s> {
    pub(super) staging: &'s Staging,
    found: ChangeSet,
    /// What knows the folders of the workspace, and the workspace as it is seen.
    view: (&'s HiddenPaths, &'s Workspace),
    /// Whether folders of the workspace are others than when the run began.
    moved_directories: BTreeMap<String, bool>,
    bytes: u64,
    /// Folders of the changes that are still to be read, and whether one above them hides what lies
    /// beneath: the kernel marks only the uppermost.
    pending_directories: Vec<(String, bool)>,
}

impl<'s> ChangeScan<'s> {
    pub(super) fn new(staging: &'s Staging, seen: (&'s HiddenPaths, &'s Workspace)) -> Self {
        let (found, moved) = (ChangeSet::default(), BTreeMap::new());
        Self {
            staging,
            found,
            view: seen,
            moved_directories: moved,
            bytes: 0,
            pending_directories: vec![(String::new(), false)],
        }
    }

    /// What differs from the workspace now.
    ///
    /// # Errors
    /// [`Code::ChangeTooMany`] where more changed than may be staged, [`Code::FileSystem`] where the
    /// changes cannot be read.
    pub(super) fn run(mut self) -> Result<ChangeSet, CodedError> {
        self.staging.has_unreadable.set(false);
        if let Some(copied) = &self.staging.copied {
            for (path, differs) in copied.differences(&self.staging.layers)? {
                self.add_difference(path, &differs)?;
            }
        } else {
            while let Some((path, hidden)) = self.pending_directories.pop() {
                self.scan_directory(&path, hidden)?;
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
        let closed = self.staging.has_unreadable.replace(false);
        self.pending_directories.clear();
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for text in ends.filter_map(|end| path.get(..end)) {
            self.at(text)?;
        }
        let weight = self.staging.weight.get().saturating_add(self.bytes);
        let unsure =
            self.staging.has_unreadable.get() || weight > self.staging.layers.limits.get().bytes;
        self.staging.has_unreadable.set(closed || self.staging.has_unreadable.get());
        if unsure {
            return Ok(None);
        }
        self.staging.weight.set(weight);
        Ok(Some(self.found))
    }

    /// One path, with what is beneath it where it is gone.
    fn at(&mut self, path: &str) -> Result<(), CodedError> {
        let (folder, name) = split_parent(path);
        if let Some(copied) = &self.staging.copied {
            return match copied.difference(&self.staging.layers, path) {
                Some(differs) => self.add_difference(path.into(), &differs),
                None => Ok(()),
            };
        }
        match self.staging.open_upper(folder) {
            Ok(changed) => {
                let beneath = self.staging.open_lower(folder).ok();
                self.scan_entry(folder, name, changed.as_fd(), beneath.as_ref()).map(drop)
            }
            // Nothing was changed there, or no longer is.
            Err(LookupError::Missing) => Ok(()),
            Err(why) => self.add_closed(folder, &not_found_text(why)),
        }
    }

    /// A path of a copy of the workspace that is not as it was copied.
    fn add_difference(
        &mut self,
        path: OsString,
        differs: &CopyDifference,
    ) -> Result<(), CodedError> {
        let path = match path.into_string() {
            Ok(path) => path,
            Err(path) => return self.add_unnamed("", &path),
        };
        let (folder, name) = split_parent(&path);
        match differs {
            CopyDifference::Removed => self.add_removed(path),
            CopyDifference::Unreadable(why) => self.add_closed(&path, why),
            CopyDifference::Replaced => match self.staging.open_upper(folder) {
                Ok(changed) => {
                    let beneath = self.staging.open_lower(folder).ok();
                    self.scan_entry(folder, name, changed.as_fd(), beneath.as_ref()).map(drop)
                }
                Err(why) => self.add_closed(folder, &not_found_text(why)),
            },
        }
    }

    fn scan_directory(&mut self, path: &str, hidden: bool) -> Result<(), CodedError> {
        let staging = self.staging;
        let changed = match staging.open_upper(path) {
            Ok(folder) => folder,
            Err(why) => return self.add_closed(path, &not_found_text(why)),
        };
        let beneath = staging.open_lower(path).ok();
        let opaque = hidden || is_opaque(&changed);
        let mut names = BTreeSet::new();
        let listed = match entry_names(&changed) {
            Err(errno @ Errno::ACCESS) => {
                return self.add_closed(path, &not_found_text(LookupError::Refused(errno)));
            }
            listed => listed.map_err(|errno| scan_problem(path, errno))?,
        };
        for name in listed {
            match name.into_string() {
                Ok(name) => {
                    if self.scan_entry(path, &name, changed.as_fd(), beneath.as_ref())? {
                        self.pending_directories.push((join(path, &name), opaque));
                    }
                    names.insert(name);
                }
                Err(name) => self.add_unnamed(path, &name)?,
            }
        }
        let Some(beneath) = beneath.filter(|_| opaque) else { return Ok(()) };
        for name in entry_names(&beneath).map_err(|errno| scan_problem(path, errno))? {
            match name.into_string() {
                Ok(name) if names.contains(&name) => {}
                Ok(name) => self.add_removed(join(path, &name))?,
                Err(name) => self.add_unnamed(path, &name)?,
            }
        }
        Ok(())
    }

    /// One name; says whether it is a folder now.
    fn scan_entry(
        &mut self,
        folder: &str,
        name: &str,
        changed: BorrowedFd<'_>,
        beneath: Option<&OwnedFd>,
    ) -> Result<bool, CodedError> {
        let path = join(folder, name);
        let stat = match node::stat_optional(changed, name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(false),
            // Its names can be read, and nothing else.
            Err(errno @ Errno::ACCESS) => {
                let why = not_found_text(LookupError::Refused(errno));
                return self.add_closed(folder, &why).map(|()| false);
            }
            Err(errno) => return Err(scan_problem(&path, errno)),
        };
        if self.staging.copied.is_none() && is_whiteout(&stat) {
            return self.add_removed(path).map(|()| false);
        }
        let (after, why) = match self.current_node(&path, name, changed, &stat)? {
            Ok(FileState::Special) if file_type(&stat) == FileType::Symlink => {
                (FileState::Special, Some(UNREADABLE_LINK.to_owned()))
            }
            Ok(node) => (node, None),
            Err(errno) => (FileState::Special, Some(format!("it cannot be read ({errno})"))),
        };
        let mut before = self.original_node(&path, name, beneath.map(AsFd::as_fd))?;
        // The process that listened there has ended with the call: it is no part of what the call leaves.
        if file_type(&stat) == FileType::Socket && before.node.is_none() {
            return Ok(false);
        }
        before.refusal = before.refusal.or(why);
        let after = match &before.node {
            Some(known) if *known != after && self.is_same_index(&path, known, changed, &stat) => {
                known.clone()
            }
            _ => after,
        };
        if matches!(before.node, Some(FileState::Directory { .. })) && !is_directory(&after) {
            self.add_removed_children(&path)?;
        }
        let folder = is_directory(&after);
        self.add_change(path, before, Some(after));
        Ok(folder)
    }

    /// What stands there now. The digest of a file that still looks the same is not taken again.
    fn current_node(
        &mut self,
        path: &str,
        name: &str,
        folder: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<Result<FileState, Errno>, CodedError> {
        if file_type(stat) != FileType::RegularFile {
            return Ok(node::read_node(folder, name, stat));
        }
        self.count_size(stat)?;
        let looks = node::file_stamp(stat);
        let mut digests = self.staging.digests.borrow_mut();
        let is_same =
            |item: &node::FileStamp| self.staging.layers.stamps_are_reliable && *item == looks;
        if let Some((_, known)) = digests.get(path).filter(|(item, _)| is_same(item)) {
            return Ok(Ok(known.clone()));
        }
        let read = node::read_node(folder, name, stat);
        if let Ok(node) = &read {
            digests.insert(path.to_owned(), (looks, node.clone()));
        }
        Ok(read)
    }

    /// Counts a file that is to be read.
    fn count_size(&mut self, stat: &Stat) -> Result<(), CodedError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        let most = self.staging.layers.limits.get();
        if self.bytes > most.bytes { Err(too_many_problem(most)) } else { Ok(()) }
    }

    /// What stood in the workspace when the path was first seen among the changes.
    fn original_node(
        &mut self,
        path: &str,
        name: &str,
        folder: Option<BorrowedFd<'_>>,
    ) -> Result<OriginalNode, CodedError> {
        let staging = self.staging;
        let mut first = staging.originals.borrow_mut();
        if let Some(known) = first.get(path) {
            return Ok(known.clone());
        }
        let most = staging.layers.limits.get();
        if most.is_full(first.len()) {
            return Err(too_many_problem(most));
        }
        let look = |folder| {
            node::refresh(folder, name);
            node::stat_optional(folder, name)
        };
        let stat = match folder.map(look).transpose() {
            Ok(stat) => stat.flatten(),
            Err(errno) => return Err(scan_problem(path, errno)),
        };
        let copied = staging.copied.as_ref();
        let item = match (folder, stat) {
            _ if copied.is_some_and(|workspace| workspace.is_hidden(path)) => {
                OriginalNode { node: None, refusal: None }
            }
            _ if let Some(why) = staging.other_spelling(path) => {
                OriginalNode { node: None, refusal: Some(why) }
            }
            (_, Some(stat)) if copied.is_some_and(|workspace| workspace.is_opaque(path)) => {
                OriginalNode { node: Some(node::opaque_node(&stat)), refusal: None }
            }
            (Some(folder), Some(stat)) => self.read_original(path, folder, (name, &stat))?,
            _ => {
                let meanwhile = copied.is_some_and(|workspace| workspace.is_replaced(path, None));
                OriginalNode {
                    node: None,
                    refusal: meanwhile.then(|| CHANGED_MEANWHILE.to_owned()),
                }
            }
        };
        first.insert(path.to_owned(), item.clone());
        Ok(item)
    }

    /// Reads a file, folder or link of the workspace for the first time.
    fn read_original(
        &mut self,
        path: &str,
        folder: BorrowedFd<'_>,
        (name, stat): (&str, &Stat),
    ) -> Result<OriginalNode, CodedError> {
        if file_type(stat) == FileType::RegularFile {
            self.count_size(stat)?;
        }
        // Commands may see what stood there when it was first looked up: the kernel does not
        // notice what becomes of a workspace beneath the changes.
        let copied = self.staging.copied.as_ref();
        let meanwhile = node::change_time(stat) >= self.staging.created_at
            || copied.is_some_and(|workspace| workspace.is_replaced(path, Some(stat)));
        let (node, why) = match node::read_node(folder, name, stat) {
            Ok(node) => (node, None),
            Err(errno) => (FileState::Special, Some(format!("it could not be read ({errno})"))),
        };
        let meanwhile = meanwhile && !self.is_refreshed(path, folder, (name, stat));
        self.keep_index(path, folder, (name, stat, &node));
        let refused = meanwhile.then(|| CHANGED_MEANWHILE.to_owned()).or(why);
        Ok(OriginalNode { node: Some(node), refusal: refused })
    }

    /// A name that is gone, and everything beneath it.
    fn add_removed(&mut self, path: String) -> Result<(), CodedError> {
        let mut gone = vec![path];
        while let Some(path) = gone.pop() {
            let (folder, name) = split_parent(&path);
            let opened = self.staging.open_lower(folder).ok();
            let before = self.original_node(&path, name, opened.as_ref().map(AsFd::as_fd))?;
            if matches!(before.node, Some(FileState::Directory { .. })) {
                gone.extend(self.child_names(&path)?);
            }
            self.add_change(path, before, None);
        }
        Ok(())
    }

    fn add_removed_children(&mut self, path: &str) -> Result<(), CodedError> {
        self.child_names(path)?.into_iter().try_for_each(|inner| self.add_removed(inner))
    }

    fn child_names(&mut self, path: &str) -> Result<Vec<String>, CodedError> {
        if self.staging.copied.as_ref().is_some_and(|copied| copied.is_opaque(path)) {
            return Ok(Vec::new());
        }
        let folder = match self.staging.open_lower(path) {
            Ok(folder) => folder,
            // It went away meanwhile, or became another thing: that is found when it is applied.
            Err(LookupError::Missing | LookupError::Outside(_)) => return Ok(Vec::new()),
            Err(LookupError::Refused(errno)) => return Err(scan_problem(path, errno)),
        };
        let mut paths = Vec::new();
        for name in entry_names(&folder).map_err(|errno| scan_problem(path, errno))? {
            match name.into_string() {
                Ok(name) => paths.push(join(path, &name)),
                Err(name) => self.add_unnamed(path, &name)?,
            }
        }
        Ok(paths)
    }

    fn add_change(&mut self, path: String, before: OriginalNode, after: Option<FileState>) {
        let OriginalNode { node: before, refusal: mut refused } = before;
        if before != after {
            if refused.is_none() && self.directory_moved(split_parent(&path).0) {
                refused = Some(CHANGED_MEANWHILE.to_owned());
            }
            let copied = self.staging.copied.as_ref();
            let refused = refused
                .or_else(|| copied.and_then(|workspace| workspace.refusal(&path, after.is_none())));
            let change = Change { path: path.clone(), before, after, refused, ..Change::default() };
            self.found.0.insert(path, change);
        }
    }

    /// Whether the folder, or one above it, is another than when the run began.
    fn directory_moved(&mut self, path: &str) -> bool {
        let ((hidden_paths, workspace), staging) = (self.view, self.staging);
        let ends_at_a_link = |path: &str| {
            matches!(staging.open_lower(path), Err(LookupError::Outside(PathProblem::Escapes)))
        };
        let ask = || {
            let mut way = path;
            // No folder lies beneath a link, so none was moved there: what it leads to is another path.
            while ends_at_a_link(split_parent(way).0) {
                way = split_parent(way).0;
            }
            hidden_paths.directory_moved(workspace, OsStr::new(way), true)
        };
        *self.moved_directories.entry(path.to_owned()).or_insert_with(ask)
    }

    /// A name that is not text: no record holds it and no call can name it.
    fn add_unnamed(&mut self, folder: &str, name: &OsString) -> Result<(), CodedError> {
        self.add_unreadable(&join(folder, &name.to_string_lossy()), "its name is not text")
    }

    fn add_unreadable(&mut self, path: &str, why: &str) -> Result<(), CodedError> {
        let most = self.staging.layers.limits.get();
        if most.is_full(self.found.0.len()) {
            return Err(too_many_problem(most));
        }
        let before = OriginalNode { node: None, refusal: Some(why.to_owned()) };
        self.add_change(path.to_owned(), before, Some(FileState::Special));
        Ok(())
    }

    /// A folder that cannot be looked into. What became of itself is known, and what is in it is not.
    fn add_closed(&mut self, path: &str, why: &str) -> Result<(), CodedError> {
        self.staging.has_unreadable.set(true);
        if let Some(known) = self.found.0.get_mut(path) {
            known.refused.get_or_insert_with(|| why.to_owned());
            return Ok(());
        }
        let staging = self.staging;
        let (path, before, after) = if path.is_empty() {
            let item = |folder| fstat(folder).ok().map(|stat| node::opaque_node(&stat));
            (".", item(staging.layers.lower.root()), item(staging.layers.upper.as_fd()))
        } else {
            let first = staging.originals.borrow().get(path).and_then(|node| node.node.clone());
            (path, first.clone(), first)
        };
        // It is as it was, and yet nobody can say so of what is in it.
        let after =
            after.filter(|state| Some(state) != before.as_ref()).unwrap_or(FileState::Special);
        let before = OriginalNode { node: before, refusal: Some(why.to_owned()) };
        self.add_change(path.to_owned(), before, Some(after));
        Ok(())
    }
}

fn is_directory(node: &FileState) -> bool {
    matches!(node, FileState::Directory { .. })
}

fn is_whiteout(stat: &Stat) -> bool {
    file_type(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0_u8; 1];
    // A value of another length is another mark, which only lower layers have.
    fgetxattr(folder, OPAQUE_ATTRIBUTE, &mut value[..]) == Ok(1) && value == *b"y"
}

fn scan_problem(path: &str, errno: Errno) -> CodedError {
    if errno == Errno::OVERFLOW {
        let message = format!("`{path}` holds more than {} names", limits::LIST_SCAN);
        return CodedError::new(Code::ChangeTooMany, message);
    }
    let message = format!("what was changed at `{path}` cannot be read: {errno}");
    CodedError::new(Code::FileSystem, message)
}

/// Whether more lies among the changes than may be staged: a look at sizes, while a command runs. A folder
/// that is closed is passed over: programs close one and open it again. What it hides is found by the
/// space that it takes, and once the command has ended.
pub(super) fn exceeds_limits(staging: &Staging) -> bool {
    let (mut paths, mut blocks) = (0_u64, 0_u64);
    let most = staging.layers.limits.get();
    let full = walk_changes(&staging.layers, &mut |path, seen| {
        if staging.copied.as_ref().is_some_and(|copied| copied.is_same(path, seen)) {
            return ControlFlow::Continue(());
        }
        let stat = match seen {
            WalkEntry::Present(stat) => stat,
            WalkEntry::Unreadable(_) => return ControlFlow::Continue(()),
            WalkEntry::TooManyNames => return ControlFlow::Break(()),
        };
        paths += 1;
        blocks = blocks.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0));
        match paths > most.paths || blocks > most.bytes / 512 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    full.is_break()
}
