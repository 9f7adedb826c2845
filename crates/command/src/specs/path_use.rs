//! A path that a command line uses, and what is done with it.

use alloc::format;
use alloc::string::{String, ToString};

use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;

/// A path that a word names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathUse {
    /// The path.
    pub path: String,
    /// What would be done with it.
    pub access: PathAccess,
    /// Where it is seen from.
    pub origin: PathOrigin,
    /// Whether it surely is a path. One that may be something else counts where it is there.
    pub is_certain: bool,
    /// Whether it is the value of an option.
    pub is_option_value: bool,
    /// Whether it is a folder that the command works in.
    pub is_work_directory: bool,
    /// Whether it is a name or a pattern for names, wherever they are.
    pub is_name: bool,
    /// Whether it only stands in a program text.
    pub guessed: bool,
}

/// What would be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// It is read.
    Read,
    /// It is read, with all that is beneath it.
    ReadTree,
    /// It is written.
    Write,
    /// What is beneath it may be changed or removed.
    Change,
    /// It is removed, with all that is beneath it.
    Delete,
}

/// Where a path is seen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOrigin {
    /// The folder that the command runs in.
    WorkDirectory,
    /// That folder or any above it: the top of a repository, wherever that is.
    AnyAncestor,
}

impl PathUse {
    /// Whether it lies in the `/tmp` that commands share.
    #[must_use]
    pub fn is_temporary(&self, names: &RootNames) -> bool {
        let path = WorkspacePath::root().resolve_named(&self.path, names);
        path.is_ok_and(|path| path.as_temporary().is_some())
    }

    /// A path that is read, found from the working directory.
    #[must_use]
    pub fn read(path: &str) -> Self {
        Self {
            path: path.to_string(),
            access: PathAccess::Read,
            origin: PathOrigin::WorkDirectory,
            is_certain: true,
            is_option_value: false,
            is_work_directory: false,
            is_name: false,
            guessed: false,
        }
    }

    /// A place that a command changes without naming it.
    pub(super) fn touched(place: &str) -> Self {
        Self { access: PathAccess::Write, origin: PathOrigin::AnyAncestor, ..Self::read(place) }
    }

    /// A word of which nothing is known, if it surely leads somewhere else than beneath this folder.
    #[must_use]
    pub fn outside(text: &str) -> Option<Self> {
        let away = text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..");
        (away && text != "/dev/null" && !text.starts_with("//")).then(|| Self::read(text))
    }

    /// The same for a word that leads somewhere on the machine, where it may as well be an address of
    /// a program's own, such as `/api/users`.
    pub(super) fn absolute(text: &str) -> Option<Self> {
        Self::outside(text).filter(|_| is_system_path(text))
    }

    /// A path that is read with all that is beneath it.
    pub(super) fn tree(path: &str, sure: bool) -> Self {
        Self { access: PathAccess::ReadTree, is_certain: sure, ..Self::read(path) }
    }

    /// The same, seen from a folder that an option named.
    pub(super) fn in_directory(self, folder: Option<&str>) -> Self {
        Self { path: join_directory(folder, &self.path), ..self }
    }
}

/// A path seen from a folder that an option named.
pub(super) fn join_directory(folder: Option<&str>, path: &str) -> String {
    match folder {
        Some(folder) if !path.starts_with(['/', '~', '$']) => format!("{folder}/{path}"),
        _ => path.to_string(),
    }
}

/// Whether a word can only mean a place of the machine. `/api` may be a route, `/static/` an address.
fn is_system_path(text: &str) -> bool {
    const ROOTS: [&str; 20] = [
        "Users", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt",
        "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var",
    ];
    match text.strip_prefix('/') {
        Some(rest) => ROOTS.contains(&rest.split('/').next().unwrap_or_default()),
        None => true,
    }
}
