//! What a command may open, as Landlock rules.
//!
//! A rule holds for a folder and everything beneath it, and no rule takes anything away. So where
//! something is hidden beneath a folder, that folder gets no rule that lets files be read; each of
//! its entries gets one instead, but for what is hidden. Entries that come later are not readable
//! there. Names can be listed in either case.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::linux::backend::system::{CONFIGURATION, COVERED, DEVICES, DIRECTORIES};
use crate::linux::landlock::LandlockAccess;

/// How many entries are named one by one before it is given up: each takes the kernel some memory.
const MAX_ENTRIES: usize = 200_000;

/// Where rules go: a file or folder, and what may be done with it.
pub(super) trait RuleSink: FnMut(&OwnedFd, LandlockAccess) -> Result<(), Errno> {}

impl<F: FnMut(&OwnedFd, LandlockAccess) -> Result<(), Errno>> RuleSink for F {}

/// What is hidden beneath a folder, by name; a name without anything beneath it is hidden itself.
#[derive(Default)]
pub(super) struct HiddenTree(BTreeMap<Vec<u8>, HiddenTree>);

impl HiddenTree {
    /// Hides a path.
    pub(super) fn add(&mut self, path: &Path) {
        let mut names: Vec<&OsStr> = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::ParentDir => drop(names.pop()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        let mut at = self;
        let mut known = false;
        for name in names {
            if known && at.0.is_empty() {
                return; // something above it is hidden
            }
            known = at.0.contains_key(name.as_bytes());
            at = at.0.entry(name.as_bytes().to_vec()).or_default();
        }
        at.0.clear();
    }

    /// What is hidden beneath an entry; none if it is hidden itself.
    fn child(&self, name: &[u8]) -> Option<&Self> {
        match self.0.get(name) {
            Some(hidden) if hidden.0.is_empty() => None,
            Some(hidden) => Some(hidden),
            None => Some(&NOTHING_HIDDEN),
        }
    }
}

static NOTHING_HIDDEN: HiddenTree = HiddenTree(BTreeMap::new());

/// What every command may open of the system, but for places in it that are judged on their own.
///
/// # Errors
/// Something that is there cannot be opened to be named in a rule.
pub(super) fn allow_system(allow: &mut impl RuleSink, judged: &[PathBuf]) -> Result<(), Errno> {
    for folder in DIRECTORIES {
        let mut hidden = HiddenTree::default();
        let covered = COVERED.iter().map(|covered| Path::new(covered.path));
        for covered in covered.chain(judged.iter().map(PathBuf::as_path)) {
            match covered.strip_prefix(folder.path) {
                // All of a system folder is the workspace.
                Ok(path) if path.as_os_str().is_empty() => return Err(Errno::OPNOTSUPP),
                Ok(path) => hidden.add(path),
                Err(_) => {}
            }
        }
        allow_read(allow, Path::new(folder.path), &hidden)?;
    }
    let names = fs::read_dir("/etc").into_iter().flatten().flatten();
    let names: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    for shown in CONFIGURATION {
        match shown.path.strip_suffix('*') {
            None => allow_read(allow, Path::new(shown.path), &NOTHING_HIDDEN)?,
            Some(start) => {
                let begins =
                    |path: &&PathBuf| path.as_os_str().as_bytes().starts_with(start.as_bytes());
                names
                    .iter()
                    .filter(begins)
                    .try_for_each(|path| allow_read(allow, path, &NOTHING_HIDDEN))?;
            }
        }
    }
    for device in DEVICES {
        if let Some(device) = open_optional(CWD, OsStr::new(device.path))? {
            allow(&device, LandlockAccess::Device)?;
        }
    }
    Ok(())
}

/// Lets a file of the host be read and executed, or everything beneath a folder that is not hidden.
/// What is not there, and links, are left out.
///
/// # Errors
/// A folder cannot be listed, or there are too many entries to name.
pub(super) fn allow_read(
    allow: &mut impl RuleSink,
    place: &Path,
    hidden: &HiddenTree,
) -> Result<(), Errno> {
    match open_optional(CWD, place.as_os_str())? {
        Some(place) => allow_read_open(allow, place, hidden),
        None => Ok(()),
    }
}

/// Lets everything be done beneath a folder of the host but making devices.
///
/// # Errors
/// It is not there.
pub(super) fn allow_change(allow: &mut impl RuleSink, folder: &Path) -> Result<(), Errno> {
    let folder = open_optional(CWD, folder.as_os_str())?.ok_or(Errno::NOENT)?;
    allow(&folder, LandlockAccess::Change)
}

/// As [`grant`] does, for an open file or folder.
///
/// # Errors
/// As [`grant`].
pub(super) fn allow_read_open(
    allow: &mut impl RuleSink,
    place: OwnedFd,
    hidden: &HiddenTree,
) -> Result<(), Errno> {
    let mut count = 0_usize;
    let place = Rc::new(place);
    // Folders above something hidden. Opened when their turn comes, so that only those on one way
    // down are open at once.
    let mut waiting: Vec<(Rc<OwnedFd>, Vec<u8>, &HiddenTree)> =
        vec![(place, b".".to_vec(), hidden)];
    while let Some((above, name, hidden)) = waiting.pop() {
        let place = match name.as_slice() {
            b"." => above,
            name => match open_optional(above.as_fd(), OsStr::from_bytes(name))? {
                Some(place) => Rc::new(place),
                None => continue,
            },
        };
        count += 1;
        if count > MAX_ENTRIES {
            return Err(Errno::TOOBIG);
        }
        match FileType::from_raw_mode(fstat(&place)?.st_mode) {
            FileType::Directory if hidden.0.is_empty() => allow(&place, LandlockAccess::Read)?,
            FileType::Directory => {
                allow(&place, LandlockAccess::List)?;
                for name in entry_names(&place)? {
                    if let Some(beneath) = hidden.child(&name) {
                        waiting.push((Rc::clone(&place), name, beneath));
                    }
                }
            }
            FileType::RegularFile => allow(&place, LandlockAccess::ReadFile)?,
            // A link is judged by what it leads to; pipes, sockets and devices lead elsewhere.
            _ => {}
        }
    }
    Ok(())
}

/// Opens something to be named, if it is there.
fn open_optional(at: BorrowedFd<'_>, path: &OsStr) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(at, path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error),
    }
}

fn entry_names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match openat(folder, ".", flags, Mode::empty()) {
        // Nobody who may not list it needs to be let into it by name.
        Err(Errno::ACCESS) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut names = Vec::new();
    for entry in Dir::new(opened)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    fn granted(hidden: &[&str]) -> Vec<(String, LandlockAccess)> {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a/b/secret", "a/b/open", "a/other", "top", "c/d/e"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("a/b/secret", folder.path().join("link")).unwrap();
        let mut all = HiddenTree::default();
        for path in hidden {
            all.add(Path::new(path));
        }
        let root = folder.path().canonicalize().unwrap();
        let mut named = Vec::new();
        let mut allow = |file: &OwnedFd, reach| {
            let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
            named.push((path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), reach));
            Ok(())
        };
        allow_read(&mut allow, folder.path(), &all).unwrap();
        named.sort_by(|one, other| one.0.cmp(&other.0));
        named
    }

    fn own(path: &str, reach: LandlockAccess) -> (String, LandlockAccess) {
        (path.to_owned(), reach)
    }

    #[test]
    fn a_folder_with_nothing_hidden_is_one_rule() {
        assert_eq!(granted(&[]), [own("", LandlockAccess::Read)]);
    }

    #[test]
    fn what_is_hidden_and_what_is_above_it_is_not_readable_as_a_whole() {
        assert_eq!(
            granted(&["a/b/secret"]),
            [
                own("", LandlockAccess::List),
                own("a", LandlockAccess::List),
                own("a/b", LandlockAccess::List),
                own("a/b/open", LandlockAccess::ReadFile),
                own("a/other", LandlockAccess::ReadFile),
                own("c", LandlockAccess::Read),
                own("top", LandlockAccess::ReadFile),
            ]
        );
    }

    #[test]
    fn whatever_order_hidden_paths_come_in_the_upper_one_counts() {
        let upper = granted(&["a"]);
        assert!(upper.iter().all(|(path, _)| !path.starts_with('a')), "{upper:?}");
        assert_eq!(granted(&["a", "a/b/secret"]), upper);
        assert_eq!(granted(&["a/b/secret", "a"]), upper);
        assert_eq!(granted(&["a/b/secret", "a/b", "a"]), upper);
    }

    #[test]
    fn what_is_not_there_hides_nothing_else() {
        let rules = granted(&["a/missing", "./x/../y"]);
        assert!(rules.contains(&own("a/b", LandlockAccess::Read)), "{rules:?}");
        assert!(rules.contains(&own("c", LandlockAccess::Read)), "{rules:?}");
    }
}
