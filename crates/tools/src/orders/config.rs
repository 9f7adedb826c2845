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

use capsule_core::code::Code;
use capsule_core::git_config::{self, Named};
use capsule_core::limits;
use capsule_core::outcome::Problem;
use capsule_core::path::WorkspacePath;
use capsule_redact::excerpt;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, major, minor};
use rustix::io::Errno;

use super::trail::End;
use super::{GIT, Gather};
use crate::workspace::{NotFound, kind, told};

/// The files that give orders to every repository, beside those in the user's home.
const SYSTEM: &str = "/etc/gitconfig";
/// Those in the user's home.
const HOME: [&str; 2] = [".gitconfig", ".config/git/config"];
/// Those of a repository.
const OWN: [&str; 2] = ["config", "config.worktree"];

/// A repository whose configuration is read.
struct Repository<'r> {
    /// The name that rules know it by.
    name: WorkspacePath,
    /// Its folder.
    folder: &'r Path,
    /// The folders that git runs commands in: working trees.
    trees: BTreeSet<PathBuf>,
    /// What was read of it, as it is named, and how deep that is included.
    waiting: Vec<(PathBuf, usize)>,
    read: BTreeSet<PathBuf>,
}

impl Gather<'_> {
    /// Reads the configuration of a repository, and notes what it names.
    ///
    /// # Errors
    /// [`Code::PathOrders`] where it cannot be read.
    pub(super) fn config(&mut self, folder: &Path) -> Result<(), Problem> {
        let Ok(own) = told(folder.as_os_str()) else { return Ok(()) };
        let mut trees = self.trees.get(folder).cloned().unwrap_or_default();
        let name = match own.name() {
            Some(GIT) => {
                trees.extend(folder.parent().map(Path::to_owned));
                own
            }
            _ => own.join(GIT),
        };
        self.config_of(folder, name, trees)
    }

    /// The same, of a repository by the name that rules know, with its working trees.
    ///
    /// # Errors
    /// [`Code::PathOrders`] where it cannot be read.
    pub(super) fn config_of(
        &mut self,
        folder: &Path,
        name: WorkspacePath,
        trees: BTreeSet<PathBuf>,
    ) -> Result<(), Problem> {
        let home = self.home.iter().flat_map(|home| HOME.map(|file| home.join(file)));
        let shared = self.shared(folder).map(|shared| shared.join(OWN[0]));
        let own = OWN.map(|file| folder.join(file)).into_iter().chain(shared);
        let all = home.chain(own).chain([PathBuf::from(SYSTEM)]);
        let waiting = all.map(|file| (file, 0)).collect();
        let mut repository = Repository { name, folder, trees, waiting, read: BTreeSet::new() };
        while let Some((file, depth)) = repository.waiting.pop() {
            if !repository.read.insert(file.clone()) {
                continue;
            }
            if depth > limits::CONFIG_DEPTH || repository.read.len() > limits::CONFIG_FILES {
                return Err(unread(&file, "too much is included", "have it include less"));
            }
            let Some(text) = self.text(&file)? else { continue };
            let named = git_config::read(&text).map_err(|broken| {
                let line = broken.line;
                let mend = format!("mend line {line}");
                unread(&file, &format!("line {line} is broken"), &mend)
            })?;
            let trees = named.iter().filter_map(|own| match own {
                Named::Worktree(path) => Some(folder.join(OsStr::from_bytes(path))),
                _ => None,
            });
            repository.trees.extend(trees);
            for own in named {
                self.named(&mut repository, own, (&file, depth))?;
            }
        }
        Ok(())
    }

    fn named(
        &mut self,
        repository: &mut Repository<'_>,
        named: Named,
        (file, depth): (&Path, usize),
    ) -> Result<(), Problem> {
        let name = &repository.name;
        match named {
            Named::Hooks(path) => {
                // Some hooks run in the repository itself.
                let own = repository.trees.iter().map(PathBuf::as_path).chain([repository.folder]);
                let name = name.join("hooks");
                own.clone().try_for_each(|folder| self.leads_from(&name, folder, &path))
            }
            Named::Attributes(path) => {
                let name = name.join("info").join("attributes");
                let folders = folders(repository);
                folders.iter().try_for_each(|folder| self.leads_from(&name, folder, &path))
            }
            Named::Config(path) => {
                let folder = file.parent().unwrap_or(Path::new("")).to_owned();
                self.leads_from(&name.join(OWN[0]), &folder, &path)?;
                if let Some(path) = self.expanded(&path) {
                    repository.waiting.push((folder.join(path), depth + 1));
                }
                Ok(())
            }
            Named::Command(key, words) => {
                let name = name.join(OWN[0]).join(&key);
                let folders = folders(repository);
                for (at, word) in words.iter().enumerate() {
                    for folder in &folders {
                        self.command(&name, folder, (word, at == 0))?;
                    }
                }
                Ok(())
            }
            Named::Worktree(_) => Ok(()),
        }
    }

    /// A word of a command names a file: one that is there, or the program, which somebody could make.
    fn command(
        &mut self,
        name: &WorkspacePath,
        folder: &Path,
        (word, first): (&[u8], bool),
    ) -> Result<(), Problem> {
        let Some(path) = self.expanded(word) else { return Ok(()) };
        let End::Inside(end) = self.host.follow(folder, &path).end else { return Ok(()) };
        let is_order = match self.host.kind(&end) {
            Some(kind) => kind == FileType::RegularFile,
            None => first && word.contains(&b'/'),
        };
        if is_order { self.leads_from(name, folder, word) } else { Ok(()) }
    }

    /// A name leads where a configuration says.
    fn leads_from(
        &mut self,
        name: &WorkspacePath,
        folder: &Path,
        path: &[u8],
    ) -> Result<(), Problem> {
        match self.expanded(path) {
            Some(path) => self.leads(name, &folder.join(path)),
            None => Ok(()),
        }
    }

    /// A path as git takes it: `~/` is the user's home.
    fn expanded(&self, path: &[u8]) -> Option<PathBuf> {
        let plain = || Path::new(OsStr::from_bytes(path)).to_owned();
        match path.strip_prefix(b"~/") {
            _ if path.is_empty() || path.contains(&0) || path.len() > limits::PATH_BYTES => None,
            Some(rest) => Some(self.home.as_ref()?.join(OsStr::from_bytes(rest))),
            None => Some(plain()),
        }
    }

    /// A file, wherever its path leads; none where there is none.
    pub(super) fn opened(&self, file: &Path) -> Result<Option<OwnedFd>, Errno> {
        let opened = match self.host.follow(Path::new(""), file).end {
            End::Inside(path) => self.open(&path),
            End::Outside(path) => open(&path),
            End::Nowhere => return Ok(None),
        };
        match opened {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// What stands in a configuration; none where there is none.
    fn text(&self, file: &Path) -> Result<Option<Vec<u8>>, Problem> {
        let unread = |why: &str| unread(file, why, "make it a file that you can read");
        let opened = self.opened(file).map_err(|errno| unread(&errno.to_string()))?;
        let Some(opened) = opened else { return Ok(None) };
        let stat = fstat(&opened).map_err(|errno| unread(&errno.to_string()))?;
        if is_null(&stat) {
            return Ok(None);
        }
        let is_file = kind(&stat) == FileType::RegularFile;
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

    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let opened = self.workspace.open_plain(self.host.root, path.as_os_str(), FLAGS);
        opened.map_err(|why| match why {
            NotFound::Missing => Errno::NOENT,
            NotFound::Refused(errno) => errno,
            // Another file system: read by its own name.
            NotFound::Outside(_) => Errno::XDEV,
        })
    }
}

/// How a configuration is opened: nothing waits for a pipe.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Whether it is `/dev/null`, by which containers say that there is no configuration.
fn is_null(stat: &Stat) -> bool {
    let device = stat.st_rdev;
    kind(stat) == FileType::CharacterDevice && (major(device), minor(device)) == (1, 3)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, FLAGS, Mode::empty())
}

/// The folders that a repository's commands run in.
fn folders(repository: &Repository<'_>) -> Vec<PathBuf> {
    match repository.trees.is_empty() {
        true => vec![repository.folder.to_owned()],
        false => repository.trees.iter().cloned().collect(),
    }
}

/// A configuration that cannot be read, why, and what could be done about it. Its name is told as it is
/// looked for: beneath the workspace, or from the root of the system.
fn unread(file: &Path, why: &str, mend: &str) -> Problem {
    let shown = file.to_string_lossy();
    let shown = excerpt(&shown, limits::QUOTED_CHARS);
    let message = format!("git's configuration `{shown}` cannot be read: {why}");
    Problem::new(Code::PathOrders, message)
        .suggest(format!("{mend}, or take `{shown}` away; until then nothing is changed here"))
}
