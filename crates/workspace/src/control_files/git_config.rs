//! What the configuration of a repository names: hooks, more configuration, attributes, and commands that
//! lie in the workspace. Each goes by the name of the place whose orders it gives: a folder of hooks by
//! `.git/hooks`, and whatever a key names by that of the configuration.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::outcome::CodedError;
use capsule_redact::excerpt;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::collector::AliasCollector;
use super::link_trace::TraceEnd;
use super::repository::GIT_NAME;
use super::user::home_of;
use crate::git_config;
use crate::git_config::Named;
use crate::resolve::{LookupError, file_type, workspace_path};
use crate::system::{Stat, fstat};

/// The files of a repository.
const REPOSITORY_CONFIGS: [&str; 2] = ["config", "config.worktree"];

/// Words behind which a command line names the directory that it enters.
const ENTERING: [&[u8]; 3] = [b"cd", b"pushd", b"-C"];

/// A repository whose configuration is read.
struct Repository<'r> {
    /// The name that rules know it by.
    name: WorkspacePath,
    /// Its folder.
    directory: &'r Path,
    /// The folders that git runs commands in: working trees.
    working_trees: BTreeSet<PathBuf>,
    /// What was read of it, as it is named, and how deep that is included.
    pending_files: Vec<(PathBuf, usize)>,
    read_files: BTreeSet<PathBuf>,
}

impl AliasCollector<'_> {
    /// Reads the configuration of a repository, and notes what it names.
    ///
    /// # Errors
    /// [`Code::PathOrders`] where it cannot be read.
    pub(super) fn add_config(&mut self, folder: &Path) -> Result<(), CodedError> {
        let Ok(path) = workspace_path(folder.as_os_str()) else { return Ok(()) };
        let mut trees = self.working_trees.get(folder).cloned().unwrap_or_default();
        let name = match path.name() {
            Some(GIT_NAME) => {
                trees.extend(folder.parent().map(Path::to_owned));
                path
            }
            _ => path.join(GIT_NAME),
        };
        self.add_config_as(folder, name, trees)
    }

    /// The same, of a repository by the name that rules know, with its working trees.
    ///
    /// # Errors
    /// [`Code::PathOrders`] where it cannot be read.
    pub(super) fn add_config_as(
        &mut self,
        folder: &Path,
        name: WorkspacePath,
        trees: BTreeSet<PathBuf>,
    ) -> Result<(), CodedError> {
        let shared = self.shared_directory(folder).map(|shared| shared.join(REPOSITORY_CONFIGS[0]));
        let item = REPOSITORY_CONFIGS.map(|file| folder.join(file)).into_iter().chain(shared);
        self.lenders(folder, &name)?;
        let all = self.user.files.iter().cloned().chain(item);
        let waiting = all.map(|file| (file, 0)).collect();
        let mut repository = Repository {
            name,
            directory: folder,
            working_trees: trees,
            pending_files: waiting,
            read_files: BTreeSet::new(),
        };
        for setting in self.user.settings.clone() {
            self.add_named(&mut repository, setting, (folder, 0))?;
        }
        while let Some((file, depth)) = repository.pending_files.pop() {
            if !repository.read_files.insert(file.clone()) {
                continue;
            }
            if depth > limits::CONFIG_DEPTH || repository.read_files.len() > limits::CONFIG_FILES {
                return Err(unreadable_problem(
                    &file,
                    "too much is included",
                    "have it include less",
                ));
            }
            let Some(text) = self.read_config(&file)? else { continue };
            let named = git_config::read(&text).map_err(|broken| {
                let line = broken.line;
                let mend = format!("mend line {line}");
                unreadable_problem(&file, &format!("line {line} is broken"), &mend)
            })?;
            let trees = named.iter().filter_map(|named| match named {
                Named::Worktree(path) => Some(folder.join(OsStr::from_bytes(path))),
                _ => None,
            });
            repository.working_trees.extend(trees);
            for item in named {
                self.add_named(&mut repository, item, (&file, depth))?;
            }
        }
        Ok(())
    }

    /// Folders that a repository borrows objects from are its own.
    fn lenders(&mut self, folder: &Path, name: &WorkspacePath) -> Result<(), CodedError> {
        let objects = folder.join("objects");
        let named = self.read_config(&objects.join("info/alternates"))?.unwrap_or_default();
        for line in named.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let Some(path) = self.expand_home(line) {
                self.add_target(&name.join("objects"), &objects.join(path))?;
            }
        }
        Ok(())
    }

    fn add_named(
        &mut self,
        repository: &mut Repository<'_>,
        named: Named,
        (file, depth): (&Path, usize),
    ) -> Result<(), CodedError> {
        let name = &repository.name;
        match named {
            Named::Hooks(path) => {
                // Some hooks run in the repository itself.
                let item = repository
                    .working_trees
                    .iter()
                    .map(PathBuf::as_path)
                    .chain([repository.directory]);
                let name = name.join("hooks");
                item.clone().try_for_each(|folder| self.add_config_target(&name, folder, &path))
            }
            Named::Attributes(path) => {
                let name = name.join("info").join("attributes");
                let folders = command_directories(repository);
                folders.iter().try_for_each(|folder| self.add_config_target(&name, folder, &path))
            }
            Named::Config(path) => {
                let folder = file.parent().unwrap_or(Path::new("")).to_owned();
                self.add_config_target(&name.join(REPOSITORY_CONFIGS[0]), &folder, &path)?;
                if let Some(path) = self.expand_home(&path) {
                    repository.pending_files.push((folder.join(path), depth + 1));
                }
                Ok(())
            }
            Named::Command(key, words) => {
                let name = name.join(REPOSITORY_CONFIGS[0]).join(&key);
                let mut folders = command_directories(repository);
                let entered: Vec<_> =
                    folders.iter().flat_map(|folder| self.entered(folder, &words)).collect();
                folders.extend(entered);
                for (at, word) in words.iter().enumerate() {
                    for folder in &folders {
                        self.add_command_argument(&name, folder, (word, at == 0))?;
                    }
                }
                Ok(())
            }
            Named::Path(key, path) => {
                let name = name.join(REPOSITORY_CONFIGS[0]).join(&key);
                let folders = command_directories(repository);
                folders.iter().try_for_each(|folder| self.content(&name, folder, &path))
            }
            Named::Worktree(_) => Ok(()),
        }
    }

    /// A path names a file or a folder whose content counts. A folder that holds the workspace, or the working
    /// tree that names it, holds more than that.
    fn content(
        &mut self,
        name: &WorkspacePath,
        folder: &Path,
        path: &[u8],
    ) -> Result<(), CodedError> {
        let Some(expanded) = self.expand_home(path) else { return Ok(()) };
        match self.host.trace(folder, &expanded).end {
            TraceEnd::Inside(end) if !folder.starts_with(&end) => {
                self.add_config_target(name, folder, path)
            }
            _ => Ok(()),
        }
    }

    /// The directories that a command line enters, beneath the one that it is run in.
    fn entered(&self, folder: &Path, words: &[Vec<u8>]) -> Vec<PathBuf> {
        let pairs = words.iter().zip(words.iter().skip(1));
        let entered = pairs.filter(|(word, _)| ENTERING.contains(&word.as_slice()));
        let folders = entered.filter_map(|(_, word)| Some(folder.join(self.expand_home(word)?)));
        folders.filter(|path| path != folder).collect()
    }

    /// A word of a command names a file: one that is there, or one that could be made. A word without a slash
    /// names what is there alone; as the program, it is looked for elsewhere.
    fn add_command_argument(
        &mut self,
        name: &WorkspacePath,
        folder: &Path,
        (word, first): (&[u8], bool),
    ) -> Result<(), CodedError> {
        let has_slash = word.contains(&b'/');
        let Some(path) = self.expand_home(word).filter(|_| has_slash || !first) else {
            return Ok(());
        };
        let TraceEnd::Inside(end) = self.host.trace(folder, &path).end else { return Ok(()) };
        let is_order = match self.host.kind(&end) {
            Some(kind) => kind == FileType::RegularFile,
            None => has_slash,
        };
        if is_order { self.add_config_target(name, folder, word) } else { Ok(()) }
    }

    /// A name leads where a configuration says.
    fn add_config_target(
        &mut self,
        name: &WorkspacePath,
        folder: &Path,
        path: &[u8],
    ) -> Result<(), CodedError> {
        match self.expand_home(path) {
            Some(path) => self.add_target(name, &folder.join(path)),
            None => Ok(()),
        }
    }

    /// A path as git takes it: `~/` is the user's home, and `~NAME/` that of somebody.
    fn expand_home(&self, path: &[u8]) -> Option<PathBuf> {
        if path.is_empty() || path.contains(&0) || path.len() > limits::PATH_BYTES {
            return None;
        }
        let Some(named) = path.strip_prefix(b"~") else {
            return Some(Path::new(OsStr::from_bytes(path)).to_owned());
        };
        let end = named.iter().position(|byte| *byte == b'/').unwrap_or(named.len());
        let (user, rest) = named.split_at_checked(end)?;
        let rest = rest.strip_prefix(b"/").unwrap_or_default();
        let home = if user.is_empty() { self.home.clone() } else { home_of(user) };
        Some(home?.join(OsStr::from_bytes(rest)))
    }

    /// A file, wherever its path leads; none where there is none.
    pub(super) fn open_optional(&self, file: &Path) -> Result<Option<OwnedFd>, Errno> {
        let opened = match self.host.trace(Path::new(""), file).end {
            TraceEnd::Inside(path) => self.open_config(&path),
            TraceEnd::Outside(path) => open_path(&path),
            TraceEnd::TooManyLinks => return Ok(None),
        };
        match opened {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// What stands in a configuration; none where there is none.
    fn read_config(&self, file: &Path) -> Result<Option<Vec<u8>>, CodedError> {
        let unread = |why: &str| unreadable_problem(file, why, "make it a file that you can read");
        let opened = self.open_optional(file).map_err(|errno| unread(&errno.to_string()))?;
        let Some(opened) = opened else { return Ok(None) };
        let stat = fstat(&opened).map_err(|errno| unread(&errno.to_string()))?;
        if is_null(&stat) {
            return Ok(None);
        }
        let is_file = file_type(&stat) == FileType::RegularFile;
        let (mut text, most) = (Vec::new(), limits::CONFIG_BYTES);
        let read = File::from(opened).take(most + 1).read_to_end(&mut text);
        match read {
            _ if !is_file => Err(unread("it is no file")),
            Err(error) => Err(unread(&error.to_string())),
            Ok(bytes) if u64::try_from(bytes).is_ok_and(|bytes| bytes > most) => {
                Err(unread(&format!("it has more than {most} bytes")))
            }
            Ok(_) => Ok(Some(text)),
        }
    }

    fn open_config(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let opened = self.workspace.open_plain(self.host.root, path.as_os_str(), OPEN_FLAGS);
        opened.map_err(|why| match why {
            LookupError::Missing => Errno::NOENT,
            LookupError::Refused(errno) => errno,
            // Another file system: read by its own name.
            LookupError::Outside(_) => Errno::XDEV,
        })
    }
}

/// How a configuration is opened: nothing waits for a pipe.
const OPEN_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Whether it is `/dev/null`, by which containers say that there is no configuration.
fn is_null(stat: &Stat) -> bool {
    file_type(stat) == FileType::CharacterDevice && crate::system::is_null_device(stat.st_rdev)
}

fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OPEN_FLAGS, Mode::empty())
}

/// The folders that a repository's commands run in.
fn command_directories(repository: &Repository<'_>) -> Vec<PathBuf> {
    match repository.working_trees.is_empty() {
        true => vec![repository.directory.to_owned()],
        false => repository.working_trees.iter().cloned().collect(),
    }
}

/// A configuration that cannot be read, why, and what could be done about it. Its name is told as it is
/// looked for: beneath the workspace, or from the root of the system.
fn unreadable_problem(file: &Path, why: &str, mend: &str) -> CodedError {
    let shown = file.to_string_lossy();
    let shown = excerpt(&shown, limits::QUOTED_CHARS);
    let message = format!("git's configuration `{shown}` cannot be read: {why}");
    CodedError::new(Code::PathOrders, message).with_suggestion(format!(
        "{mend}, or take `{shown}` away; until then nothing is changed here"
    ))
}
