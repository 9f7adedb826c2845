//! The repository of a workspace that is a working tree and holds only a `.git` file: a linked working tree
//! (`git worktree add`) and a submodule. Its directory lies outside of the workspace.
//!
//! Anybody may write a `.git` file, so none is believed alone: the directory that it names must name this very
//! workspace in turn, belong to the user to whom the workspace belongs, and be a repository.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use capsule_base::limits;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::geteuid;

use crate::control_files::git_pointer::{COMMONDIR, git_path, gitdir_in};
use crate::control_files::{GIT_NAME, has_repository_parts};
use crate::git_config::{self, KeyJudgement, Setting};
use crate::repository::is_shown_outside;
use crate::resolve::{Workspace, file_type};
use crate::system::{PATH_ONLY, fstat};

/// The configuration of a repository.
const CONFIG: &str = "config";
/// The part of it that belongs to one working tree.
const WORKTREE_CONFIG: &str = "config.worktree";
/// Where the working trees of a repository have a directory each.
const WORKTREES: &str = "worktrees";
/// What names the `.git` file of a working tree in its directory.
const GITDIR: &str = "gitdir";

/// Settings of a repository that say how it is built, or with what its branches are compared.
const STRUCTURE: [(&str, &str); 16] = [
    ("branch", "merge"),
    ("branch", "rebase"),
    ("core", "bare"),
    ("core", "filemode"),
    ("core", "ignorecase"),
    ("core", "logallrefupdates"),
    ("core", "precomposeunicode"),
    ("core", "repositoryformatversion"),
    ("core", "sharedrepository"),
    ("core", "sparsecheckout"),
    ("core", "sparsecheckoutcone"),
    ("core", "symlinks"),
    ("core", "worktree"),
    ("extensions", "objectformat"),
    ("extensions", "refstorage"),
    ("remote", "fetch"),
];

/// A repository outside of the workspace, whose working tree the workspace is.
#[derive(Debug)]
pub struct OutsideRepository {
    /// Its directory, which its working trees share.
    pub path: PathBuf,
    /// The same, opened.
    pub directory: OwnedFd,
    /// Paths in it that commands do not see: hooks, other repositories, and files that git does not know.
    pub hidden: Vec<PathBuf>,
    /// The part of its configuration that starts nothing and holds no secret.
    settings: Vec<Setting>,
}

impl OutsideRepository {
    /// Finds the repository of a workspace. None where the workspace holds a repository itself, or none at all.
    ///
    /// # Errors
    /// Why the directory that the `.git` file names is not believed to be its repository.
    pub fn find(workspace: &Workspace) -> Result<Option<Self>, &'static str> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = workspace.open_plain(workspace.root(), OsStr::new(GIT_NAME), flags).ok();
        let root = workspace.path();
        let Some(named) = opened.and_then(gitdir_in) else { return Ok(None) };
        let is_moved = Path::new(workspace.root_names().mount()) != root;
        if named.is_relative() && is_moved {
            return Err("its path is relative, and `sandbox.mount` shows the workspace elsewhere");
        }
        let git_dir = root.join(named).canonicalize().map_err(|_| "it is not there")?;
        match git_dir.starts_with(root) {
            true => Ok(None),
            false => Self::verify(root, &git_dir).map(Some),
        }
    }

    /// The path of its configuration.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// The configuration that commands get in its place. `mount` is where they see the workspace.
    #[must_use]
    pub fn config_text(&self, mount: &Path) -> Vec<u8> {
        let written = |setting: &Setting| match setting.is("core", "worktree") {
            true => {
                let value = Some(mount.as_os_str().as_bytes().to_vec());
                Setting { value, ..setting.clone() }.written()
            }
            false => setting.written(),
        };
        self.settings.iter().flat_map(written).collect()
    }

    fn verify(root: &Path, git_dir: &Path) -> Result<Self, &'static str> {
        let (path, settings) = linked(root, git_dir)?;
        if !has_repository_parts(|part| fs::symlink_metadata(path.join(part)).is_ok()) {
            return Err("it is no repository");
        }
        let evidence = [GITDIR, CONFIG].map(|name| git_dir.join(name));
        let evidence = evidence.into_iter().filter(|file| fs::symlink_metadata(file).is_ok());
        let places = [path.clone(), git_dir.to_owned(), path.join(CONFIG)];
        belong_to_owner(root, places.into_iter().chain(evidence))?;
        if root.starts_with(&path) {
            return Err("the workspace lies in the directory of its repository");
        }
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|_| "it is closed")?;
        let hidden = hidden_parts(&path).ok_or("it holds too much that git does not know")?;
        let settings = settings.into_iter().filter(is_shown).collect();
        Ok(Self { path, directory, hidden, settings })
    }
}

/// The directory that is shared by the working trees of a repository, of which one has the second directory,
/// with its settings; where both name the workspace as that working tree.
fn linked(root: &Path, git_dir: &Path) -> Result<(PathBuf, Vec<Setting>), &'static str> {
    let unreadable = "its configuration cannot be read";
    let settings = |file: PathBuf| {
        let text = small_text(&file).unwrap_or_default();
        git_config::settings(&text).map_err(|_| unreadable)
    };
    let Some(shared) = small_text(&git_dir.join(COMMONDIR)) else {
        let settings = settings(git_dir.join(CONFIG))?;
        let tree = settings.iter().rfind(|setting| setting.is("core", "worktree"));
        let tree = tree.and_then(|setting| setting.value.as_deref()).map(OsStr::from_bytes);
        let tree = tree.and_then(|tree| git_dir.join(tree).canonicalize().ok());
        return match tree.as_deref() == Some(root) {
            true => Ok((git_dir.to_owned(), settings)),
            false => Err("its `core.worktree` does not name this workspace"),
        };
    };
    let shared = git_path(&shared).and_then(|named| git_dir.join(named).canonicalize().ok());
    let shared = shared.filter(|shared| git_dir.parent() == Some(&shared.join(WORKTREES)));
    let shared = shared.ok_or("it is not the directory of a working tree in a repository")?;
    let link = small_text(&git_dir.join(GITDIR)).and_then(|text| git_path(&text));
    let link = link.map(|link| git_dir.join(link)).filter(|link| link.ends_with(GIT_NAME));
    let tree = link.as_deref().and_then(Path::parent).and_then(|tree| tree.canonicalize().ok());
    if tree.as_deref() != Some(root) {
        return Err("its `gitdir` does not name this workspace");
    }
    let mut all = settings(shared.join(CONFIG))?;
    let has_worktree_config = all.iter().any(|setting| {
        setting.is("extensions", "worktreeconfig") && setting.value.as_deref() != Some(b"false")
    });
    if has_worktree_config {
        all.extend(settings(git_dir.join(WORKTREE_CONFIG))?);
    }
    Ok((shared, all))
}

/// Makes sure that all of these belong to the user to whom the workspace belongs, who runs this program unless root
/// does, and that not everybody may change them.
fn belong_to_owner(root: &Path, places: impl Iterator<Item = PathBuf>) -> Result<(), &'static str> {
    const ALL_WRITE: u32 = 0o002;
    let owner = fs::metadata(root).map_err(|_| "the workspace cannot be looked at")?.uid();
    if owner != geteuid().as_raw() && !geteuid().is_root() {
        return Err("the workspace belongs to another user");
    }
    for place in places {
        let found = fs::symlink_metadata(place).map_err(|_| "it cannot be looked at")?;
        if found.uid() != owner || found.is_symlink() || found.mode() & ALL_WRITE != 0 {
            return Err(
                "it belongs to another user than the workspace, or everybody may change it",
            );
        }
    }
    Ok(())
}

/// The paths in a repository's directory that commands do not see; none where there are too many of them, or where
/// they cannot be listed.
fn hidden_parts(directory: &Path) -> Option<Vec<PathBuf>> {
    let hidden_names = |directory: &Path| {
        let names: Vec<OsString> = fs::read_dir(directory)
            .ok()?
            .take(limits::HIDDEN_PATHS)
            .map(|entry| Some(entry.ok()?.file_name()))
            .collect::<Option<_>>()?;
        let is_hidden = |name: &OsString| {
            name.as_os_str() != CONFIG && !name.to_str().is_some_and(is_shown_outside)
        };
        let is_whole = names.len() < limits::HIDDEN_PATHS;
        is_whole.then(|| names.into_iter().filter(is_hidden).collect::<Vec<_>>())
    };
    let mut hidden: Vec<PathBuf> =
        hidden_names(directory)?.into_iter().map(PathBuf::from).collect();
    let trees = directory.join(WORKTREES);
    if fs::symlink_metadata(&trees).is_ok() {
        for tree in fs::read_dir(&trees).ok()?.take(limits::HIDDEN_PATHS) {
            let tree = Path::new(WORKTREES).join(tree.ok()?.file_name());
            let names = hidden_names(&directory.join(&tree))?;
            hidden.extend(names.into_iter().map(|name| tree.join(name)));
        }
    }
    (hidden.len() < limits::HIDDEN_PATHS).then_some(hidden)
}

/// Whether commands get a setting of a repository that they cannot change.
fn is_shown(setting: &Setting) -> bool {
    let is_structure =
        STRUCTURE.iter().any(|(section, key)| setting.section == *section && setting.key == *key);
    let is_preference = || git_config::judge(&setting.name()) == Some(KeyJudgement::Preference);
    let is_plain_address = || {
        let value = setting.value.as_deref().unwrap_or_default();
        matches!((&*setting.section, &*setting.key), ("remote", "url") | ("branch", "remote"))
            && !value.iter().any(|byte| b"@?".contains(byte))
            && !value.windows(2).any(|pair| pair == b"::")
    };
    is_structure || is_preference() || is_plain_address()
}

/// The content of a small regular file; none where there is none. Links are not followed.
fn small_text(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let is_file = file_type(&fstat(&opened).ok()?) == FileType::RegularFile;
    let mut text = Vec::new();
    let read =
        is_file.then(|| File::from(opened).take(limits::CONFIG_BYTES).read_to_end(&mut text));
    read?.ok().map(|_| text)
}
