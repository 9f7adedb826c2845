//! Protected links, and files that name a repository: what they lead to is protected as well, and what
//! they lead through must not lead elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, FileType};

use super::HiddenPaths;
use super::error::HiddenPathsError;
use super::index::{HiddenIndex, whole_workspace};
use super::scanner::ScanPass;
use super::walked_directory::syscall_path;
use crate::control_files::GIT_NAME;
use crate::resolve::{LinkChain, Workspace, file_type};
use crate::system::{fstat, statat};

impl HiddenPaths {
    /// Hides what protected links lead to, and then every other name of what is protected.
    pub(super) fn hide_link_targets(&self, workspace: &Workspace, drawn: &mut HiddenIndex) {
        drawn.link_chain = LinkChain::default();
        let mut waiting = std::mem::take(&mut drawn.links);
        let mut followed = BTreeSet::new();
        while let Some(link) = waiting.pop_first() {
            // Each time: a link stays what it is while what it leads to changes.
            if self.hide_link_target(workspace, &link, drawn) {
                followed.insert(link);
            }
            let new = std::mem::take(&mut drawn.links);
            waiting.extend(new.into_iter().filter(|link| !followed.contains(link)));
        }
        drawn.links = followed;
        if std::mem::take(&mut drawn.has_hard_links) {
            self.walk_from(workspace, vec![whole_workspace()], ScanPass::OtherNames, drawn);
        }
    }

    /// Hides what a protected link leads to now, or a protected file that names a repository. Says
    /// whether it is still there.
    fn hide_link_target(
        &self,
        workspace: &Workspace,
        link: &OsStr,
        drawn: &mut HiddenIndex,
    ) -> bool {
        let stat = statat(workspace.root(), syscall_path(link), AtFlags::SYMLINK_NOFOLLOW);
        match stat.as_ref().map(file_type) {
            Ok(FileType::Symlink) => self.hide_target(workspace, link, false, drawn),
            Ok(FileType::RegularFile) => {
                for named in workspace.repository_paths(link) {
                    self.hide_target(workspace, &named, true, drawn);
                }
            }
            _ => return false,
        }
        true
    }

    /// Hides what a path leads to now, if that is inside, and notes what it leads through. The path
    /// of a repository is `named` in a file.
    fn hide_target(
        &self,
        workspace: &Workspace,
        path: &OsStr,
        named: bool,
        drawn: &mut HiddenIndex,
    ) {
        let LinkChain { links, left_directories: left } = workspace.link_chain(path);
        drawn.link_chain.links.extend(links);
        drawn.link_chain.left_directories.extend(left);
        let Ok(end) = workspace.open_handle(path) else { return };
        let (Some(target), Ok(stat)) = (workspace.path_of(end.as_fd()), fstat(&end)) else {
            return;
        };
        let name = target.file_name().and_then(OsStr::to_str).map(str::to_owned);
        let is_git = || name.is_some_and(|name| workspace.spelling().is_same(&name, GIT_NAME));
        if named && file_type(&stat) == FileType::Directory && is_git() {
            // Protected by its own name, as far as it is.
            return;
        }
        let target = target.into_os_string();
        if target.is_empty() {
            drawn.error = Some(HiddenPathsError::Unlisted);
        }
        let is_new = !drawn.hidden.contains(&target);
        drawn.hide(&target);
        match file_type(&stat) {
            FileType::Directory if is_new => {
                self.walk_from(workspace, vec![(target, true)], ScanPass::ByName, drawn);
            }
            FileType::RegularFile => drawn.add_protected(&target, &stat),
            _ => {}
        }
    }
}
