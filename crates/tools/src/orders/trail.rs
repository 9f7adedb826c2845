//! Where a path leads for a program of the host, and through what. Unlike a tool of ours, such a program
//! follows links wherever they lead, also out of the workspace and back, and also to what is not there
//! yet: whoever makes that has made what the link names.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::read_link;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use capsule_core::limits;
use rustix::fs::{AtFlags, FileType, readlinkat, statat};

use crate::orders::mounts::Mounts;
use crate::workspace::kind;

/// The workspace as the host has it.
#[derive(Clone, Copy)]
pub(super) struct Host<'h> {
    /// Its folder.
    pub root: BorrowedFd<'h>,
    /// Where that stands.
    pub path: &'h Path,
    /// Where else what is in it may stand.
    pub mounts: &'h Mounts,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// To this path beneath the workspace, whether something stands there or not.
    Inside(PathBuf),
    /// To this path elsewhere.
    Outside(PathBuf),
    /// Nowhere: through too many links.
    Nowhere,
}

/// Where a path leads, and what it leads through, beneath the workspace.
pub(super) struct Trail {
    pub end: End,
    /// Links, folders, and whatever else stands, or could stand, where a folder is looked for.
    pub through: BTreeSet<PathBuf>,
    /// The names that it goes by on its way: those with a link in them, where it would lead if that was
    /// a folder.
    pub steps: BTreeSet<PathBuf>,
}

impl Trail {
    /// Notes a link, and the names that are left behind it, last first.
    fn pass(&mut self, link: &Path, left: &[OsString]) {
        self.through.insert(link.to_owned());
        if !left.iter().any(|name| name == "..") {
            let step = link.iter().chain(left.iter().rev().map(OsString::as_os_str)).collect();
            self.steps.insert(step);
        }
    }
}

impl Host<'_> {
    /// Follows a path that is relative to a folder of the workspace, or absolute.
    pub(super) fn follow(self, folder: &Path, path: &Path) -> Trail {
        let (through, steps) = (BTreeSet::new(), BTreeSet::new());
        let mut trail = Trail { end: End::Nowhere, through, steps };
        trail.end = self.end(&folder.join(path), &mut trail);
        trail
    }

    fn end(self, path: &Path, trail: &mut Trail) -> End {
        let mut here = PathBuf::new();
        let mut left = names(path);
        let mut links = 0;
        if path.is_absolute() {
            match self.beneath(path) {
                Ok(inside) => left = names(&inside),
                Err(outside) => return End::Outside(outside),
            }
        }
        while let Some(name) = left.pop() {
            if name == ".." {
                if here.pop() {
                    continue;
                }
                let rest: PathBuf = left.iter().rev().collect();
                match self.beneath(&self.path.parent().unwrap_or(self.path).join(rest)) {
                    Ok(inside) => left = names(&inside),
                    Err(outside) => return End::Outside(outside),
                }
                links += 1;
            } else {
                here.push(&name);
                match self.kind(&here) {
                    Some(FileType::Symlink) => {
                        links += 1;
                        let target = self.target(&here).unwrap_or_default();
                        trail.pass(&here, &left);
                        let _own = here.pop();
                        if target.is_absolute() {
                            let rest: PathBuf = left.iter().rev().collect();
                            here = PathBuf::new();
                            match self.beneath(&target.join(rest)) {
                                Ok(inside) => left = names(&inside),
                                Err(outside) => return End::Outside(outside),
                            }
                        } else {
                            left.extend(names(&target));
                        }
                    }
                    Some(FileType::Directory) => drop(trail.through.insert(here.clone())),
                    // Whoever makes a link here leads it elsewhere.
                    _ if !left.is_empty() => drop(trail.through.insert(here.clone())),
                    _ => {}
                }
            }
            if links > limits::SYMLINK_HOPS {
                return End::Nowhere;
            }
        }
        End::Inside(here)
    }

    /// An absolute path as one beneath the workspace; without links where it lies elsewhere. `..` is left in
    /// what is beneath: what it means is known once the links before it are followed.
    fn beneath(self, path: &Path) -> Result<PathBuf, PathBuf> {
        let (mut here, mut left, mut links) = (PathBuf::from("/"), names(path), 0);
        loop {
            if let Some(inside) = self.inside(&here) {
                return Ok(left.iter().rev().fold(inside, |inside, name| inside.join(name)));
            }
            let Some(name) = left.pop() else { return Err(here) };
            if name == ".." {
                let _own = here.pop();
                continue;
            }
            here.push(&name);
            // Also a link to what is not there.
            let Ok(target) = read_link(&here) else { continue };
            links += 1;
            if links > limits::SYMLINK_HOPS {
                return Err(here);
            }
            let _own = here.pop();
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            left.extend(names(&target));
        }
    }

    /// A path without links as one beneath the workspace, if it is.
    pub(super) fn inside(self, path: &Path) -> Option<PathBuf> {
        let inside = path.strip_prefix(self.path).ok().map(Path::to_owned);
        inside.or_else(|| self.mounts.beneath(path))
    }

    pub(super) fn kind(self, path: &Path) -> Option<FileType> {
        let path = if path == Path::new("") { Path::new(".") } else { path };
        let stat = statat(self.root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(kind(&stat))
    }

    fn target(self, path: &Path) -> Option<PathBuf> {
        let target = readlinkat(self.root, path, Vec::new()).ok()?;
        Some(OsString::from_vec(target.into_bytes()).into())
    }
}

/// The names of a path, last first; none for `.`.
fn names(path: &Path) -> Vec<OsString> {
    let parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    let parts = parts.filter(|part| !matches!(*part, b"" | b"."));
    parts.rev().map(|part| OsStr::from_bytes(part).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_are_followed_as_the_host_does() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap().join("ws");
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("../../lib", root.join("a/b/up")).unwrap();
        symlink(root.join("a"), root.join("absolute")).unwrap();
        symlink("../ws/a", root.join("around")).unwrap();
        symlink("../other", root.join("out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("missing/deep", root.join("dangling")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a/b", root.join("deep")).unwrap();
        symlink(root.join("deep/../c"), root.join("turned")).unwrap();
        symlink(root.join("later"), outer.path().join("apart")).unwrap();
        symlink("apart", outer.path().join("further")).unwrap();
        let held = fs::File::open(&root).unwrap();
        let mounts = Mounts::default();
        let host = Host { root: held.as_fd(), path: &root, mounts: &mounts };
        for (asked, end, through) in [
            ("a/b", "a/b", "a a/b"),
            ("a/b/up/x", "lib/x", "a a/b a/b/up lib"),
            ("absolute/b/new", "a/b/new", "a a/b absolute"),
            ("around/b", "a/b", "a a/b around"),
            ("dangling/x", "missing/deep/x", "dangling missing missing/deep"),
            ("a/../c", "c", "a"),
            ("none/../c", "c", "none"),
            ("a/b/file/x", "a/b/file/x", "a a/b a/b/file"),
            ("turned", "a/c", "a a/b deep turned"),
        ] {
            let trail = host.follow(Path::new(""), Path::new(asked));
            assert_eq!(trail.end, End::Inside(end.into()), "{asked}");
            let told: Vec<_> = trail.through.iter().map(|own| own.to_string_lossy()).collect();
            assert_eq!(told.join(" "), through, "{asked}");
        }
        let steps = host.follow(Path::new(""), Path::new("dangling/x")).steps;
        assert_eq!(steps, BTreeSet::from(["dangling/x".into()]));
        let end = |asked: &str| host.follow(Path::new("a"), Path::new(asked)).end;
        assert_eq!(end("../loop"), End::Nowhere);
        let outer = root.parent().unwrap();
        for (asked, inside) in [("further/x", "later/x"), ("further/../x", "x")] {
            let trail = host.follow(Path::new(""), &outer.join(asked));
            assert_eq!(trail.end, End::Inside(inside.into()), "{asked}: to what is not there yet");
        }
        let elsewhere = outer.join("other/x");
        assert_eq!(end("../out/x"), End::Outside(elsewhere));
        assert_eq!(end(root.join("a/x").to_str().unwrap()), End::Inside("a/x".into()));
    }
}
