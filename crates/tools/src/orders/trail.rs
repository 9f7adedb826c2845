//! Where a path leads for a program of the host, and through what. Unlike a tool of ours, such a program
//! follows links wherever they lead, also out of the workspace and back, and also to what is not there
//! yet: whoever makes that has made what the link names.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use capsule_core::limits;
use rustix::fs::{AtFlags, FileType, readlinkat, statat};

use crate::workspace::kind;

/// The workspace as the host has it.
#[derive(Clone, Copy)]
pub(super) struct Host<'h> {
    /// Its folder.
    pub root: BorrowedFd<'h>,
    /// Where that stands.
    pub path: &'h Path,
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
            if links > limits::LINKS {
                return End::Nowhere;
            }
        }
        End::Inside(here)
    }

    /// An absolute path as one beneath the workspace; as it is where it lies elsewhere. Where a link of
    /// the host leads to the workspace, its real name says so. `..` is left in it: what it means is known
    /// once the links before it are followed.
    fn beneath(self, path: &Path) -> Result<PathBuf, PathBuf> {
        if let Ok(inside) = path.strip_prefix(self.path) {
            return Ok(inside.to_owned());
        }
        let mut real = PathBuf::from("/");
        let mut rest = path.components();
        while let Some(part) = rest.next() {
            let Ok(next) = real.join(part).canonicalize() else {
                let plain = plainly(&real.join(part).join(rest.as_path()));
                let inside = plain.strip_prefix(self.path).map(Path::to_owned);
                return inside.map_err(|_| plain);
            };
            real = next;
            if let Ok(inside) = real.strip_prefix(self.path) {
                return Ok(inside.join(rest.as_path()));
            }
        }
        Err(real)
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

/// An absolute path without `.` and `..`.
fn plainly(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
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
        let held = fs::File::open(&root).unwrap();
        let host = Host { root: held.as_fd(), path: &root };
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
        let elsewhere = root.parent().unwrap().join("other/x");
        assert_eq!(end("../out/x"), End::Outside(elsewhere));
        assert_eq!(end(root.join("a/x").to_str().unwrap()), End::Inside("a/x".into()));
    }
}
