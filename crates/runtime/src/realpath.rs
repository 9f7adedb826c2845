//! Where files really lie, and by which links they are reached.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links the kernel follows on the way to a file.
const MAX_LINKS: usize = 40;

/// A place as it really is, behind its links; as it was named where that cannot be told.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The same for many, most of which lie side by side: each folder is looked at once. One that is not
/// there is named in its folder as that really is.
pub(crate) fn real_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut last: Option<(&Path, Option<PathBuf>)> = None;
    let mut one = |path| -> PathBuf {
        let (Some(folder), Some(name)) = (Path::parent(path), path.file_name()) else {
            return real_path(path);
        };
        if last.as_ref().is_none_or(|(path, _)| *path != folder) {
            last = Some((folder, folder.canonicalize().ok()));
        }
        let folder = last.as_ref().and_then(|(_, folder)| folder.as_ref());
        match folder.map(|folder| folder.join(name)) {
            // Only a link leads elsewhere.
            Some(place) if place.read_link().is_err() => place,
            _ => real_path_of_missing(path),
        }
    };
    paths.iter().map(|path| one(path)).collect()
}

/// The same for a file that may not be there, in folders that may not be there.
pub(crate) fn real_path_of_missing(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(folder), Some(name)) => real_path_of_missing(folder).join(name),
        _ => path.to_owned(),
    }
}

/// Every link on the way to a file, as it lies. Whoever can replace one of them puts another file in the
/// place of the one that is meant. `path` is absolute; nothing has to be there.
pub(crate) fn links_to(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    if path.canonicalize().is_ok_and(|real| real == path) {
        return links;
    }
    let names = |path: &Path| -> Vec<OsString> {
        path.components().map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut ahead: VecDeque<OsString> = names(path).into();
    let mut place = PathBuf::new();
    while let Some(name) = ahead.pop_front() {
        match Path::new(&name).components().next() {
            Some(Component::ParentDir) => drop(place.pop()),
            Some(Component::Normal(_)) => match place.join(&name).read_link() {
                Ok(target) if links.len() < MAX_LINKS => {
                    links.push(place.join(name));
                    names(&target).into_iter().rev().for_each(|name| ahead.push_front(name));
                }
                _ => place.push(name),
            },
            Some(Component::CurDir) => {}
            // The root, from which a link may begin anew.
            _ => place.push(name),
        }
    }
    links
}

/// The paths by which a root was named: as it was written, and seen from the current folder as the
/// shell spells that.
pub(crate) fn spellings(root: &Path, cwd: &Path, shell_cwd: Option<&Path>) -> Vec<PathBuf> {
    let rest = root.strip_prefix(cwd).ok();
    let seen = shell_cwd.zip(rest).map(|(shell, rest)| shell.join(rest));
    [Some(root.to_owned()), seen].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Whoever protects a file protects what its name leads to, also where it is yet to be made.
    #[test]
    fn files_are_named_as_they_really_are() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::fs::write(top.join("real/file"), "").unwrap();
        std::fs::write(top.join("elsewhere"), "").unwrap();
        symlink("real", top.join("link")).unwrap();
        symlink("../elsewhere", top.join("real/away")).unwrap();
        symlink("nowhere", top.join("real/dangling")).unwrap();
        let cases = [
            ("link/file", "real/file"),
            ("link/away", "elsewhere"),
            ("link/missing", "real/missing"),
            ("link/dangling", "real/dangling"),
            ("link/none/missing", "real/none/missing"),
            ("real/../link/file", "real/file"),
            ("link/file/", "real/file"),
            ("link", "real"),
        ];
        let paths: Vec<PathBuf> = cases.iter().map(|(path, _)| top.join(path)).collect();
        let expected: Vec<PathBuf> = cases.iter().map(|(_, real)| top.join(real)).collect();
        assert_eq!(real_paths(&paths), expected);
        let relative = real_paths(&[PathBuf::from("Cargo.toml")]);
        assert_eq!(relative, [Path::new("Cargo.toml").canonicalize().unwrap()]);
    }

    /// In every folder on the way, and of links to links each.
    #[test]
    fn links_on_the_way_are_found() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("real/deep")).unwrap();
        std::fs::write(top.join("real/deep/file"), "").unwrap();
        for (target, link) in [
            ("real", "folder"),
            ("../folder/deep/file", "real/by-way"),
            (top.join("real/by-way").to_str().unwrap(), "again"),
            ("turning", "turning"),
            ("nowhere/none", "dangling"),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        let cases: [(&str, &[&str]); 7] = [
            ("real/deep/file", &[]),
            ("real/none", &[]),
            ("folder/deep/../deep/file", &["folder"]),
            ("real/../again", &["again", "real/by-way", "folder"]),
            ("folder/none/at/all", &["folder"]),
            ("dangling", &["dangling"]),
            ("./real/./by-way", &["real/by-way", "folder"]),
        ];
        for (path, expected) in cases {
            let expected: Vec<PathBuf> = expected.iter().map(|link| top.join(link)).collect();
            assert_eq!(links_to(&top.join(path)), expected, "{path}");
        }
        assert_eq!(links_to(&top.join("turning")).len(), MAX_LINKS);
    }
}
