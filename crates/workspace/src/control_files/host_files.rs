//! Files outside of the workspace from which programs of the host take orders, and what of the workspace they
//! are: by a link, by a hard link, by a bind mount, or because the home directory lies here. Which files those are
//! is a table ([`control_files`](capsule_core::control_files)); variables of the environment name others in
//! their place.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::control_files::{COMMANDS, From, PLACES, Place};
use capsule_core::outcome::CodedError;
use rustix::fs::{AtFlags, FileType as Kind};
use rustix::process::geteuid;

use super::collector::{AliasCollector, too_many_problem};
use super::link_trace::TraceEnd;
use super::user::{Account, Variables, accounts};
use crate::command_words::CommandWords;
use crate::resolve::workspace_path;
use crate::system::statat;
use crate::walk::{Visitor, WalkStep, WalkedEntry, walk};

/// The name that rules know the home directory by, for what is not in the table.
const HOME: &str = "$HOME";
/// And the directories in which the shell looks for programs.
pub(crate) const PATH: &str = "$PATH";
/// And what variables name that are not in the table.
pub(crate) const VARIABLES: &str = "$ENV";
/// Variables by which a program that starts another only tells of itself.
const TOLD: [&str; 3] = ["_", "CARGO_MANIFEST_PATH", "npm_package_json"];
/// The directory of the home directory in which everything is configuration, hidden or not.
const CONFIG: &str = ".config";
/// The variable that names another one.
const CONFIG_VARIABLE: &str = "XDG_CONFIG_HOME";
/// Hidden directories of a home directory that hold no configuration.
const CACHES: [&str; 2] = [".cache", ".local"];
/// Directories in which agents keep working trees: who works in one does not configure the agent.
const APART: [&str; 3] = ["~/.claude/worktrees", "~/.cursor/worktrees", "~/.codex/worktrees"];

/// Up to how many names of a directory are kept.
const FEW: usize = 4_096;

/// What was found on the way.
#[derive(Default)]
struct Search {
    /// What stands at paths that others lie beneath.
    standing: BTreeMap<PathBuf, Option<FileType>>,
    /// The names in directories, as far as they are few.
    names: BTreeMap<PathBuf, Option<BTreeSet<OsString>>>,
    /// Files with several names, by their inode: one of them may be in the workspace.
    linked: BTreeMap<u64, BTreeSet<WorkspacePath>>,
    /// How many entries of directories were seen.
    seen: usize,
}

impl Search {
    fn standing(&mut self, path: &Path) -> Option<FileType> {
        if let Some(known) = self.standing.get(path) {
            return *known;
        }
        let kind = kind(path);
        self.standing.insert(path.to_owned(), kind);
        kind
    }

    /// Whether anything stands at a path. Most are looked for in few directories.
    fn is_there(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return true };
        if !self.names.contains_key(folder) {
            self.names.insert(folder.to_owned(), few_names(folder));
        }
        match self.names.get(folder) {
            Some(Some(names)) => names.contains(name),
            _ => kind(path).is_some(),
        }
    }
}

fn kind(path: &Path) -> Option<FileType> {
    fs::symlink_metadata(path).ok().map(|facts| facts.file_type())
}

fn few_names(folder: &Path) -> Option<BTreeSet<OsString>> {
    let names = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let names: BTreeSet<OsString> = names.take(FEW + 1).collect();
    (names.len() <= FEW).then_some(names)
}

impl AliasCollector<'_> {
    /// Notes from what of the workspace programs of the host take orders by names outside of it; `names` are
    /// those of all variables.
    ///
    /// # Errors
    /// [`Code::PathOrders`] where that is too much to be told.
    pub(super) fn host_files(
        &mut self,
        names: &[OsString],
        variables: Variables<'_>,
    ) -> Result<(), CodedError> {
        let (mut search, homes) = (Search::default(), self.homes());
        self.unlisted(&homes, variables, &mut search)?;
        // All of them go by names of two kinds; where no rule has these as a whole, each may have its own.
        let [home, system] =
            ["~/any", "file:/any"].map(|name| self.invariants.protects(&named(name)));
        for place in PLACES {
            let name = named(place.name);
            let is_home = name.components().next() == Some("~");
            if is_home && home || !is_home && system || self.invariants.protects(&name) {
                for path in paths(place, &homes, variables) {
                    self.host_file(&name, &path, place.levels, &mut search)?;
                }
            }
        }
        for variable in COMMANDS {
            let name = named(&format!("env:{variable}"));
            if let Some(value) = variables(variable).filter(|_| self.invariants.protects(&name)) {
                self.command_line(&name, &value)?;
            }
        }
        self.named_by_variables(names, variables)?;
        self.programs(&variables("PATH").unwrap_or_default());
        self.hard_links(search.linked);
        Ok(())
    }

    /// The home directories that count: that of the environment, and those of the accounts of this process and
    /// of the owner of the workspace.
    fn homes(&self) -> BTreeSet<PathBuf> {
        let owner = statat(self.host.root, ".", AtFlags::empty()).map(|stat| stat.st_uid);
        let users = BTreeSet::from([geteuid().as_raw(), owner.unwrap_or_default()]);
        let is_own = |account: &Account| account.id.is_some_and(|id| users.contains(&id));
        let homes = accounts().into_iter().filter(is_own).map(|account| account.home);
        let homes = homes.chain(self.home.clone());
        // Services have the root of the system for a home.
        homes.filter(|home| home.is_absolute() && home.parent().is_some()).collect()
    }

    /// What is hidden in home directories, listed or not: all of it where one lies in the workspace, and what its
    /// links lead to.
    fn unlisted(
        &mut self,
        homes: &BTreeSet<PathBuf>,
        variables: Variables<'_>,
        search: &mut Search,
    ) -> Result<(), CodedError> {
        let (name, config) = (named(HOME), named(HOME).join(CONFIG));
        if !self.invariants.protects(&config) {
            return Ok(());
        }
        let item = homes.iter().map(|home| (name.clone(), home.clone()));
        let inner = homes
            .iter()
            .map(|home| home.join(CONFIG))
            .chain(variables(CONFIG_VARIABLE).map(PathBuf::from));
        let all: Vec<_> = item.chain(inner.map(|path| (config.clone(), path))).collect();
        for (name, folder) in all {
            if let TraceEnd::Inside(place) = self.noted(&name, &folder) {
                if let Ok(place) = workspace_path(place.as_os_str()) {
                    self.aliases.add_alias(&name, &place);
                }
                continue;
            }
            let hidden_only = name != config;
            self.unlisted_in(&name, &folder, hidden_only, search)?;
        }
        Ok(())
    }

    /// Follows the links of a directory of configuration, and those of the directories in it.
    fn unlisted_in(
        &mut self,
        name: &WorkspacePath,
        folder: &Path,
        hidden_only: bool,
        search: &mut Search,
    ) -> Result<(), CodedError> {
        for (entry, kind) in entries(folder, search)? {
            let is_cache = CACHES.iter().any(|cache| entry == *cache);
            let is_hidden = entry.as_bytes().starts_with(b".") && !is_cache;
            // What is in `.config` is looked at by itself.
            if hidden_only && (!is_hidden || entry == CONFIG && kind.is_dir()) {
                continue;
            }
            let (name, path) = (name.join(&entry.to_string_lossy()), folder.join(&entry));
            if kind.is_symlink() {
                self.unlisted_link(&name, &path)?;
            } else if kind.is_dir() {
                for (entry, _) in
                    entries(&path, search)?.iter().filter(|entry| entry.1.is_symlink())
                {
                    self.unlisted_link(&name.join(&entry.to_string_lossy()), &path.join(entry))?;
                }
            }
        }
        Ok(())
    }

    fn unlisted_link(&mut self, name: &WorkspacePath, link: &Path) -> Result<(), CodedError> {
        match self.host.trace(Path::new(""), link).end {
            // All of the workspace is no configuration that nobody knows.
            TraceEnd::Inside(place) if place.parent().is_some() => self.add_target(name, link),
            _ => Ok(()),
        }
    }

    /// A place of the table, or a link or a directory in one.
    fn host_file(
        &mut self,
        name: &WorkspacePath,
        path: &Path,
        levels: u8,
        search: &mut Search,
    ) -> Result<(), CodedError> {
        if path.is_absolute() && !self.stands(path, search) {
            return Ok(());
        }
        match self.noted(name, path) {
            TraceEnd::Inside(place) => self.add_alias(name, &place),
            TraceEnd::Outside(real) => self.search(name, &real, levels, search),
            TraceEnd::TooManyLinks => Ok(()),
        }
    }

    /// Whether something stands at a path, or could without anybody changing what lies outside: the way there
    /// goes through a link or through the workspace.
    fn stands(&self, path: &Path, search: &mut Search) -> bool {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        for item in above {
            let kind = search.standing(item);
            if self.host.inside(item).is_some() || kind.is_some_and(|kind| kind.is_symlink()) {
                return true;
            }
            if kind.is_none() {
                return false;
            }
        }
        self.host.inside(path).is_some() || search.is_there(path)
    }

    /// Looks in what lies outside for what leads into the workspace.
    fn search(
        &mut self,
        name: &WorkspacePath,
        path: &Path,
        levels: u8,
        search: &mut Search,
    ) -> Result<(), CodedError> {
        let Ok(facts) = fs::symlink_metadata(path) else { return Ok(()) };
        self.note_links(name, &facts, search);
        if !facts.is_dir() || levels == 0 {
            return Ok(());
        }
        for (entry, kind) in entries(path, search)? {
            let (name, path) = (name.join(&entry.to_string_lossy()), path.join(&entry));
            if kind.is_symlink() || kind.is_dir() && levels > 1 && !APART.contains(&name.as_str()) {
                self.host_file(&name, &path, levels - 1, search)?;
            } else if kind.is_file()
                && facts.dev() == self.workspace.device()
                && let Ok(facts) = fs::symlink_metadata(&path)
            {
                self.note_links(&name, &facts, search);
            }
        }
        Ok(())
    }

    fn note_links(&self, name: &WorkspacePath, facts: &Metadata, search: &mut Search) {
        if facts.is_file() && facts.nlink() > 1 && facts.dev() == self.workspace.device() {
            search.linked.entry(facts.ino()).or_default().insert(name.clone());
        }
    }

    /// A command line names files of the workspace: those that are there, and those that could be made.
    fn command_line(&mut self, name: &WorkspacePath, value: &OsStr) -> Result<(), CodedError> {
        self.files_among(value).iter().try_for_each(|(path, _)| self.add_target(name, path))
    }

    /// The words of a value that name a file of the workspace, or a place for one, each with where that is.
    fn files_among(&self, value: &OsStr) -> Vec<(PathBuf, PathBuf)> {
        let mut files = Vec::new();
        for word in CommandWords::read(value.as_bytes()).words.iter().filter(|word| is_path(word)) {
            let path = self.expand(Path::new(OsStr::from_bytes(word)));
            if let TraceEnd::Inside(place) = self.host.trace(Path::new(""), &path).end
                && matches!(self.host.kind(&place), Some(Kind::RegularFile) | None)
            {
                files.push((path, place));
            }
        }
        files
    }

    /// Files of the workspace that any other variable names, whether they are there or not: a program that is
    /// not listed may obey them. A word without a slash is a path by chance alone; a directory is none of them, and
    /// what lies beneath a path goes by no name of it.
    fn named_by_variables(
        &mut self,
        names: &[OsString],
        variables: Variables<'_>,
    ) -> Result<(), CodedError> {
        let name = named(VARIABLES);
        if !self.invariants.protects(&name.join(VARIABLES)) {
            return Ok(());
        }
        for variable in names {
            let shown = variable.to_string_lossy();
            let Some(value) = variables(&shown).filter(|_| !TOLD.contains(&&*shown)) else {
                continue;
            };
            let name = name.join(&shown);
            for (path, place) in self.files_among(&value) {
                if let Ok(place) = workspace_path(place.as_os_str()) {
                    let _end = self.noted(&name, &path);
                    self.aliases.add_exact_alias(&name, &place);
                }
                if self.aliases.count() > limits::PATH_ALIASES {
                    return Err(too_many_problem());
                }
            }
        }
        Ok(())
    }

    /// The directories in which the shell looks for programs; a relative one counts from the workspace.
    fn programs(&mut self, value: &OsStr) {
        let name = named(PATH);
        if !self.invariants.protects(&name.join(PATH)) {
            return;
        }
        for folder in value.as_bytes().split(|byte| *byte == b':') {
            let folder = self.expand(Path::new(OsStr::from_bytes(folder)));
            if let TraceEnd::Inside(place) = self.noted(&name, &folder)
                && let Ok(place) = workspace_path(place.as_os_str())
            {
                self.aliases.list(&name, &place);
            }
        }
    }

    fn expand(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }

    /// Finds the names in the workspace of files that have others outside.
    fn hard_links(&mut self, linked: BTreeMap<u64, BTreeSet<WorkspacePath>>) {
        if linked.is_empty() {
            return;
        }
        let finder = Finder { gather: self, linked, found: Mutex::default() };
        walk(self.workspace, vec![(OsString::new(), false)], &finder);
        let found = finder.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (name, path) in found {
            self.aliases.add_alias(&name, &path);
        }
    }
}

/// Finds files of the workspace by their inode.
struct Finder<'f, 'g> {
    gather: &'f AliasCollector<'g>,
    linked: BTreeMap<u64, BTreeSet<WorkspacePath>>,
    found: Mutex<Vec<(WorkspacePath, WorkspacePath)>>,
}

impl Visitor for Finder<'_, '_> {
    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        if entry.kind != Kind::RegularFile {
            return WalkStep::Enter;
        }
        // Asked for in the workspace itself: changes that are laid over it have inodes of their own.
        let facts = statat(self.gather.host.root, entry.path, AtFlags::SYMLINK_NOFOLLOW);
        let stat = facts
            .ok()
            .filter(|fact| fact.st_nlink > 1 && fact.st_dev == self.gather.workspace.device());
        if let Some(names) = stat.and_then(|stat| self.linked.get(&stat.st_ino))
            && let Ok(path) = workspace_path(entry.path)
        {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.extend(names.iter().map(|name| (name.clone(), path.clone())));
        }
        WalkStep::Enter
    }

    fn should_stop(&self) -> bool {
        false
    }
}

/// Whether a word is one that the system takes for a path.
fn is_path(word: &[u8]) -> bool {
    word.contains(&b'/') && !word.contains(&0) && word.len() <= limits::PATH_BYTES
}

/// A name that rules know something of the host by.
fn named(name: &str) -> WorkspacePath {
    name.split('/').fold(WorkspacePath::root(), |path, part| {
        if part.is_empty() { path } else { path.join(part) }
    })
}

/// The paths that a place of the table has on this machine.
fn paths(place: &Place, homes: &BTreeSet<PathBuf>, variables: Variables<'_>) -> Vec<PathBuf> {
    let beneath = |base: &Path| match place.path {
        "" => base.to_owned(),
        path => base.join(path),
    };
    match place.from {
        From::Home => homes.iter().map(|home| beneath(home)).collect(),
        From::Root => vec![PathBuf::from(place.path)],
        From::Variable(variable) => {
            let Some(value) = variables(variable) else { return Vec::new() };
            // Some hold a list; a path with a colon in it is one name to the others.
            let parts = value.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes);
            let all: BTreeSet<&OsStr> =
                parts.chain([value.as_os_str()]).filter(|part| !part.is_empty()).collect();
            all.into_iter().map(|name| beneath(Path::new(name))).collect()
        }
    }
}

/// The entries of a directory outside of the workspace; none where it cannot be listed.
fn entries(folder: &Path, search: &mut Search) -> Result<Vec<(OsString, FileType)>, CodedError> {
    let Ok(listed) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let entry = |entry: fs::DirEntry| Some((entry.file_name(), entry.file_type().ok()?));
    let most = limits::HOST_ENTRIES.saturating_sub(search.seen) + 1;
    let found: Vec<_> = listed.flatten().filter_map(entry).take(most).collect();
    search.seen += found.len();
    if search.seen > limits::HOST_ENTRIES {
        let folder = folder.to_string_lossy();
        let message = format!(
            "the configuration of this machine's programs has more than {} entries; the last ones looked at are \
             in `{}`",
            limits::HOST_ENTRIES,
            capsule_redact::excerpt(&folder, limits::QUOTED_CHARS)
        );
        return Err(CodedError::new(Code::PathOrders, message)
            .with_suggestion(Code::PathOrders.next_step()));
    }
    Ok(found)
}
