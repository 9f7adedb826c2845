//! The configuration of the user and of the machine, read as git reads it: file after file, with what they include.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use capsule_base::glob::Glob;
use capsule_base::limits;
use rustix::fs::{FileType, Mode, OFlags};

use crate::control_files::git_pointer;
use crate::git_config::{self, Setting};
use crate::hidden_paths::UserVariables;
use crate::resolve::file_type;
use crate::system::fstat;

/// The configuration of the machine.
const MACHINE: &str = "/etc/gitconfig";

/// The settings of the user and of the machine that hold for a workspace, in the order in which they count.
pub(super) fn user_settings(user: &dyn UserVariables, root: &Path) -> Vec<Setting> {
    let mut reader =
        Reader { user, git: GitDirectory::of_workspace(root), settings: Vec::new(), files: 0 };
    for file in files(user) {
        reader.read(&file, 0);
    }
    reader.settings
}

/// The files of the machine and of the user.
fn files(user: &dyn UserVariables) -> Vec<PathBuf> {
    let named = |name: &str| user.variable(name).map(PathBuf::from);
    let skips_machine =
        user.variable("GIT_CONFIG_NOSYSTEM").is_some_and(|value| value != "0" && value != "false");
    let machine = named("GIT_CONFIG_SYSTEM").unwrap_or_else(|| MACHINE.into());
    let global = match named("GIT_CONFIG_GLOBAL") {
        Some(file) => vec![file],
        None => {
            let home = named("HOME").filter(|home| home.is_absolute());
            let plain = home.map(|home| home.join(".gitconfig"));
            user_directory(user)
                .map(|directory| directory.join("config"))
                .into_iter()
                .chain(plain)
                .collect()
        }
    };
    (!skips_machine).then_some(machine).into_iter().chain(global).collect()
}

/// The directory of the user's configuration, besides the file in the home directory.
fn user_directory(user: &dyn UserVariables) -> Option<PathBuf> {
    let named =
        |name: &str| user.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let xdg = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")));
    xdg.map(|xdg| xdg.join("git"))
}

/// Where the patterns of ignored files are if no setting says so.
pub(super) fn default_ignore(user: &dyn UserVariables) -> Option<PathBuf> {
    user_directory(user).map(|directory| directory.join("ignore"))
}

/// A path with the home directory in the place of `~`; none for the home directory of another account.
pub(super) fn expand_home(user: &dyn UserVariables, value: &[u8]) -> Option<PathBuf> {
    let value = value.strip_prefix(b":(optional)").unwrap_or(value);
    match value.strip_prefix(b"~") {
        Some(rest) => {
            let rest = rest.strip_prefix(b"/")?;
            Some(PathBuf::from(user.variable("HOME")?).join(OsStr::from_bytes(rest)))
        }
        None => Some(OsStr::from_bytes(value).into()),
    }
}

/// Opens a file; nothing waits for a pipe.
fn open_plain_file(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let is_file = file_type(&fstat(&opened).ok()?) == FileType::RegularFile;
    is_file.then(|| File::from(opened))
}

/// The content of a small file; none where there is none, or it is large.
pub(super) fn read_small(path: &Path) -> Option<Vec<u8>> {
    let most = u64::try_from(limits::GIT_PREFERENCES_BYTES).ok()?;
    read_at_most(path, most)
}

fn read_at_most(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_plain_file(path)?;
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    u64::try_from(bytes.len()).is_ok_and(|count| count <= most).then_some(bytes)
}

/// The directory of the repository that a workspace lies in, by which configuration is included.
struct GitDirectory {
    paths: Vec<PathBuf>,
    branch: Option<String>,
}

impl GitDirectory {
    fn of_workspace(root: &Path) -> Self {
        let found = root.ancestors().map(|above| above.join(".git")).find(|path| path.exists());
        let directory = found.and_then(|path| match path.is_dir() {
            true => Some(path),
            false => Some(path.parent()?.join(git_pointer::gitdir_in(open_plain_file(&path)?)?)),
        });
        let head = directory
            .as_ref()
            .and_then(|path| read_at_most(&path.join("HEAD"), limits::GIT_REF_BYTES));
        let head = head.and_then(|head| String::from_utf8(head).ok());
        let branch = head
            .and_then(|head| Some(head.trim_end().strip_prefix("ref: refs/heads/")?.to_owned()));
        let real = directory.as_ref().and_then(|path| path.canonicalize().ok());
        Self { paths: directory.into_iter().chain(real).collect(), branch }
    }
}

struct Reader<'u> {
    user: &'u dyn UserVariables,
    git: GitDirectory,
    settings: Vec<Setting>,
    /// How many files were read.
    files: usize,
}

impl Reader<'_> {
    fn read(&mut self, file: &Path, depth: usize) {
        self.files += 1;
        if depth > limits::CONFIG_DEPTH || self.files > limits::CONFIG_FILES {
            return;
        }
        let text = read_at_most(file, limits::CONFIG_BYTES).unwrap_or_default();
        for setting in git_config::settings(&text).unwrap_or_default() {
            let is_included =
                match (setting.section.as_str(), &setting.subsection, setting.key.as_str()) {
                    ("include", None, "path") => true,
                    ("includeif", Some(condition), "path") => self.holds(condition, file),
                    _ => {
                        self.settings.push(setting);
                        continue;
                    }
                };
            let named = setting.value.as_deref().and_then(|value| expand_home(self.user, value));
            if let (true, Some(named)) = (is_included, named) {
                let beside = file.parent().unwrap_or(Path::new("/"));
                self.read(&beside.join(named), depth + 1);
            }
        }
    }

    /// Whether a condition for including a file holds. One that is not known does not.
    fn holds(&self, condition: &[u8], file: &Path) -> bool {
        let Ok(condition) = std::str::from_utf8(condition) else { return false };
        let Some((kind, pattern)) = condition.split_once(':') else { return false };
        match kind {
            "gitdir" | "gitdir/i" => {
                let folds = kind.ends_with("/i");
                let pattern = self.directory_pattern(pattern, file);
                self.git
                    .paths
                    .iter()
                    .any(|path| pattern.as_ref().is_some_and(|text| matches(text, path, folds)))
            }
            "onbranch" => {
                let pattern = with_everything_inside(pattern);
                self.git
                    .branch
                    .as_ref()
                    .is_some_and(|branch| matches(&pattern, Path::new(branch), false))
            }
            _ => false,
        }
    }

    /// A pattern for the directory of a repository, from the root of the system.
    fn directory_pattern(&self, pattern: &str, file: &Path) -> Option<String> {
        let absolute = if let Some(rest) = pattern.strip_prefix("~/") {
            format!("{}/{rest}", literal(Path::new(&self.user.variable("HOME")?))?)
        } else if let Some(rest) = pattern.strip_prefix("./") {
            format!("{}/{rest}", literal(&file.parent()?.canonicalize().ok()?)?)
        } else if pattern.starts_with('/') {
            pattern.to_owned()
        } else {
            format!("/**/{pattern}")
        };
        Some(with_everything_inside(&absolute))
    }
}

/// A path as a pattern that matches nothing else.
fn literal(path: &Path) -> Option<String> {
    path.to_str().map(|path| capsule_base::glob::escape(path.trim_end_matches('/')))
}

/// A pattern that ends in a slash matches everything inside.
fn with_everything_inside(pattern: &str) -> String {
    if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() }
}

fn matches(pattern: &str, path: &Path, folds: bool) -> bool {
    let Some(path) = path.to_str() else { return false };
    let fold = |text: &str| if folds { text.to_lowercase() } else { text.to_owned() };
    let (pattern, path) = (fold(pattern), fold(path));
    let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
    Glob::parse(pattern.trim_start_matches('/'))
        .is_ok_and(|glob| glob.matches_components(&components))
}
