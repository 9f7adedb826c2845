//! Protected links, and files that name a repository: what they lead to is protected as well, and what
//! they lead through must not lead elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, FileType, fstat, statat};

use super::{Drawn, GIT, Pass, Veil, VeilError, everything, here};
use crate::workspace::{Way, Workspace, kind};

impl Veil {
    /// Hides what protected links lead to, and then every other name of what is protected.
    pub(super) fn follow_up(&self, workspace: &Workspace, drawn: &mut Drawn) {
        drawn.way = Way::default();
        let mut waiting = std::mem::take(&mut drawn.links);
        let mut followed = BTreeSet::new();
        while let Some(link) = waiting.pop_first() {
            // Each time: a link stays what it is while what it leads to changes.
            if self.follow(workspace, &link, drawn) {
                followed.insert(link);
            }
            let new = std::mem::take(&mut drawn.links);
            waiting.extend(new.into_iter().filter(|link| !followed.contains(link)));
        }
        drawn.links = followed;
        if std::mem::take(&mut drawn.linked) {
            self.look(workspace, vec![everything()], Pass::Links, drawn);
        }
    }

    /// Hides what a protected link leads to now, or a protected file that names a repository. Says
    /// whether it is still there.
    fn follow(&self, workspace: &Workspace, link: &OsStr, drawn: &mut Drawn) -> bool {
        let own = statat(workspace.root(), here(link), AtFlags::SYMLINK_NOFOLLOW);
        match own.as_ref().map(kind) {
            Ok(FileType::Symlink) => self.follow_to(workspace, link, false, drawn),
            Ok(FileType::RegularFile) => {
                for named in workspace.repository(link) {
                    self.follow_to(workspace, &named, true, drawn);
                }
            }
            _ => return false,
        }
        true
    }

    /// Hides what a path leads to now, if that is inside, and notes what it leads through. The path
    /// of a repository is `named` in a file.
    fn follow_to(&self, workspace: &Workspace, path: &OsStr, named: bool, drawn: &mut Drawn) {
        let Way { links, left } = workspace.way(path);
        drawn.way.links.extend(links);
        drawn.way.left.extend(left);
        let Ok(end) = workspace.hold(path) else { return };
        let (Some(target), Ok(stat)) = (workspace.place_of(end.as_fd()), fstat(&end)) else {
            return;
        };
        let name = target.file_name().and_then(OsStr::to_str).map(str::to_owned);
        let is_git = || name.is_some_and(|own| workspace.spelling().is_same(&own, GIT));
        if named && kind(&stat) == FileType::Directory && is_git() {
            // Protected by its own name, as far as it is.
            return;
        }
        let target = target.into_os_string();
        if target.is_empty() {
            drawn.error = Some(VeilError::Unlisted);
        }
        let is_new = !drawn.hidden.contains(&target);
        drawn.hide(&target);
        match kind(&stat) {
            FileType::Directory if is_new => {
                self.look(workspace, vec![(target, true)], Pass::Names, drawn);
            }
            FileType::RegularFile => drawn.protect(&target, &stat),
            _ => {}
        }
    }
}
