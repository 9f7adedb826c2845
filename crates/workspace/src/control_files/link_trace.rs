//! Where a path leads for a program of the host, and through what. Unlike a tool of ours, such a program
//! follows links wherever they lead, also out of the workspace and back, and also to what is not there
//! yet: whoever makes that has made what the link names.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::read_link;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use capsule_base::limits;
use rustix::fs::{AtFlags, FileType, readlinkat};

use crate::control_files::mounts::Mounts;
use crate::resolve::file_type;
use crate::system::statat;

/// The workspace as the host has it.
#[derive(Clone, Copy)]
pub(super) struct HostView<'h> {
    /// Its folder.
    pub root: BorrowedFd<'h>,
    /// Where that stands.
    pub root_path: &'h Path,
    /// Where else what is in it may stand.
    pub mounts: &'h Mounts,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TraceEnd {
    /// To this path beneath the workspace, whether something stands there or not.
    Inside(PathBuf),
    /// To this path elsewhere.
    Outside(PathBuf),
    /// Nowhere: through too many links.
    TooManyLinks,
}

/// Where a path leads, and what it leads through, beneath the workspace.
pub(super) struct LinkTrace {
    pub end: TraceEnd,
    /// Links, folders, and whatever else stands, or could stand, where a folder is looked for.
    pub intermediate: BTreeSet<PathBuf>,
    /// The names that it goes by on its way: those with a link in them, where it would lead if that was
    /// a folder.
    pub names: BTreeSet<PathBuf>,
}

impl LinkTrace {
    /// Notes a link, and the names that are left behind it, last first.
    fn add_link(&mut self, link: &Path, left: &[OsString]) {
        self.intermediate.insert(link.to_owned());
        if !left.iter().any(|name| name == "..") {
            let step = link.iter().chain(left.iter().rev().map(OsString::as_os_str)).collect();
            self.names.insert(step);
        }
    }
}

impl HostView<'_> {
    /// Follows a path that is relative to a folder of the workspace, or absolute.
    pub(super) fn trace(self, folder: &Path, path: &Path) -> LinkTrace {
        let (through, steps) = (BTreeSet::new(), BTreeSet::new());
        let mut trace =
            LinkTrace { end: TraceEnd::TooManyLinks, intermediate: through, names: steps };
        trace.end = self.trace_end(&folder.join(path), &mut trace);
        trace
    }

    fn trace_end(self, path: &Path, trace: &mut LinkTrace) -> TraceEnd {
        let mut here = PathBuf::new();
        let mut left = reversed_names(path);
        let mut links = 0;
        if path.is_absolute() {
            match self.strip_root(path) {
                Ok(inside) => left = reversed_names(&inside),
                Err(outside) => return TraceEnd::Outside(outside),
            }
        }
        while let Some(name) = left.pop() {
            if name == ".." {
                if here.pop() {
                    continue;
                }
                let rest: PathBuf = left.iter().rev().collect();
                match self.strip_root(&self.root_path.parent().unwrap_or(self.root_path).join(rest))
                {
                    Ok(inside) => left = reversed_names(&inside),
                    Err(outside) => return TraceEnd::Outside(outside),
                }
                links += 1;
            } else {
                here.push(&name);
                match self.kind(&here) {
                    Some(FileType::Symlink) => {
                        links += 1;
                        let target = self.target(&here).unwrap_or_default();
                        trace.add_link(&here, &left);
                        let _own = here.pop();
                        if target.is_absolute() {
                            let rest: PathBuf = left.iter().rev().collect();
                            here = PathBuf::new();
                            match self.strip_root(&target.join(rest)) {
                                Ok(inside) => left = reversed_names(&inside),
                                Err(outside) => return TraceEnd::Outside(outside),
                            }
                        } else {
                            left.extend(reversed_names(&target));
                        }
                    }
                    Some(FileType::Directory) => drop(trace.intermediate.insert(here.clone())),
                    // Whoever makes a link here leads it elsewhere.
                    _ if !left.is_empty() => drop(trace.intermediate.insert(here.clone())),
                    _ => {}
                }
            }
            if links > limits::SYMLINK_HOPS {
                return TraceEnd::TooManyLinks;
            }
        }
        TraceEnd::Inside(here)
    }

    /// An absolute path as one beneath the workspace; without links where it lies elsewhere. `..` is left in
    /// what is beneath: what it means is known once the links before it are followed.
    fn strip_root(self, path: &Path) -> Result<PathBuf, PathBuf> {
        let (mut here, mut left, mut links) = (PathBuf::from("/"), reversed_names(path), 0);
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
            left.extend(reversed_names(&target));
        }
    }

    /// A path without links as one beneath the workspace, if it is.
    pub(super) fn inside(self, path: &Path) -> Option<PathBuf> {
        let inside = path.strip_prefix(self.root_path).ok().map(Path::to_owned);
        inside.or_else(|| self.mounts.beneath(path))
    }

    pub(super) fn kind(self, path: &Path) -> Option<FileType> {
        let path = if path == Path::new("") { Path::new(".") } else { path };
        let stat = statat(self.root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(file_type(&stat))
    }

    fn target(self, path: &Path) -> Option<PathBuf> {
        let target = readlinkat(self.root, path, Vec::new()).ok()?;
        Some(OsString::from_vec(target.into_bytes()).into())
    }
}

/// The names of a path, last first; none for `.`.
fn reversed_names(path: &Path) -> Vec<OsString> {
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
        let host = HostView { root: held.as_fd(), root_path: &root, mounts: &mounts };
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
            let trace = host.trace(Path::new(""), Path::new(asked));
            assert_eq!(trace.end, TraceEnd::Inside(end.into()), "{asked}");
            let told: Vec<_> =
                trace.intermediate.iter().map(|path| path.to_string_lossy()).collect();
            assert_eq!(told.join(" "), through, "{asked}");
        }
        let steps = host.trace(Path::new(""), Path::new("dangling/x")).names;
        assert_eq!(steps, BTreeSet::from(["dangling/x".into()]));
        let end = |asked: &str| host.trace(Path::new("a"), Path::new(asked)).end;
        assert_eq!(end("../loop"), TraceEnd::TooManyLinks);
        let outer = root.parent().unwrap();
        for (asked, inside) in [("further/x", "later/x"), ("further/../x", "x")] {
            let trace = host.trace(Path::new(""), &outer.join(asked));
            assert_eq!(
                trace.end,
                TraceEnd::Inside(inside.into()),
                "{asked}: to what is not there yet"
            );
        }
        let elsewhere = outer.join("other/x");
        assert_eq!(end("../out/x"), TraceEnd::Outside(elsewhere));
        assert_eq!(end(root.join("a/x").to_str().unwrap()), TraceEnd::Inside("a/x".into()));
    }
}
