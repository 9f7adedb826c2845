//! Toolchains and package caches that commands see: which directories, which programs, which variables.
//!
//! A policy names them under `toolchains`. They are looked for when a run begins, each is checked, and what
//! is shown is recorded. Commands cannot change them; what they write into a cache vanishes with the call.

mod checks;
mod context;
mod known;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use capsule_base::suggestion::closest;
use capsule_sandbox::{Executor, SandboxBackend as _};

use checks::Checks;
use context::Refusal;
pub use context::ToolchainContext;
use known::{KNOWN, KnownToolchain};

/// The entry for every known toolchain that is there.
pub const WELL_KNOWN: &str = "well-known";

/// The toolchains of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolchains {
    directories: Vec<ToolchainDirectory>,
    /// The home directories of which parts are shown.
    homes: BTreeSet<PathBuf>,
    /// Where programs are looked for, before and behind the directories of the system.
    search: [Vec<PathBuf>; 2],
    variables: BTreeMap<String, String>,
}

/// A directory or file of a toolchain that commands see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolchainDirectory {
    /// Its path as it is named.
    pub path: PathBuf,
    /// Where that really is; shown there, too.
    pub real: PathBuf,
    /// Whether commands may write there, which vanishes with the call.
    pub discards_writes: bool,
    /// The hidden paths in it, relative to it.
    pub hidden: Vec<PathBuf>,
}

/// A problem with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolchainProblem {
    /// Where it is written in the policy.
    pub span: Range<usize>,
    /// Whether nothing runs by it; else it is only noted.
    pub is_error: bool,
    /// The problem.
    pub message: String,
    /// The way forward.
    pub hint: String,
}

/// A known toolchain that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundToolchain {
    /// Its name in a policy.
    pub name: &'static str,
    /// Its home directory.
    pub home: PathBuf,
    /// The paths that are shown of it, or the reason why none is.
    pub shown: Result<Vec<PathBuf>, String>,
}

impl Toolchains {
    /// Looks for the toolchains that the entries of a policy name.
    #[must_use]
    pub fn resolve(
        entries: &[(String, Range<usize>)],
        context: &ToolchainContext<'_>,
    ) -> (Self, Vec<ToolchainProblem>) {
        let mut toolchains = Self::default();
        let mut problems = Vec::new();
        let checks = Checks::of(context);
        for (entry, span) in entries {
            let added = match entry.as_str() {
                WELL_KNOWN => {
                    for known in KNOWN {
                        // `capsule doctor` names those that cannot be shown.
                        let _ = toolchains.add_known(known, context, &checks);
                    }
                    Ok(())
                }
                path if path.starts_with(['/', '~']) => {
                    toolchains.add_directory(path, context, &checks)
                }
                name => match known::find(name) {
                    Some(known) => toolchains.add_known(known, context, &checks),
                    None => Err(unknown_name(name)),
                },
            };
            if let Err(Refusal { is_error, message, hint }) = added {
                problems.push(ToolchainProblem { span: span.clone(), is_error, message, hint });
            }
        }
        let shown = |path: &Path| path.canonicalize().is_ok_and(|real| toolchains.show(&real));
        let [others, _] = &toolchains.search;
        let user_path = (context.variable)("PATH").unwrap_or_default();
        toolchains.search = search::in_order(others, &user_path, &shown);
        (toolchains, problems)
    }

    /// Every known toolchain that is there, and what would be shown of it.
    #[must_use]
    pub fn survey(context: &ToolchainContext<'_>) -> Vec<FoundToolchain> {
        let checks = Checks::of(context);
        let look = |known: &'static KnownToolchain| {
            let home = home_of(known, context);
            let mut toolchains = Self::default();
            let shown = match toolchains.add_known(known, context, &checks) {
                Ok(()) => Ok(toolchains.paths().map(Path::to_owned).collect()),
                Err(refusal) if refusal.is_error => Err(refusal.message),
                Err(_) => return None,
            };
            Some(FoundToolchain { name: known.name, home, shown })
        };
        KNOWN.iter().filter_map(look).collect()
    }

    /// The directories and files that are shown.
    #[must_use]
    pub fn directories(&self) -> &[ToolchainDirectory] {
        &self.directories
    }

    /// The home directories of which parts are shown. Tools write into them, which vanishes with the call.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &Path> {
        self.homes.iter().map(PathBuf::as_path)
    }

    /// The paths that are shown, as they are named.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(|shown| shown.path.as_path())
    }

    /// The real paths that are shown, as they are recorded.
    #[must_use]
    pub fn real_paths(&self) -> Vec<String> {
        let real = self.directories.iter().map(|shown| shown.real.to_string_lossy().into_owned());
        real.collect()
    }

    /// The real paths of the directories and files in which nothing is hidden: whatever lies in them,
    /// commands see.
    #[must_use]
    pub fn real_directories(&self) -> Vec<PathBuf> {
        let open = self.directories.iter().filter(|shown| shown.hidden.is_empty());
        open.map(|shown| shown.real.clone()).collect()
    }

    /// Whether commands see a resolved path because it lies in a toolchain.
    #[must_use]
    pub fn show(&self, real: &Path) -> bool {
        self.directories.iter().any(|shown| {
            let inner = real.strip_prefix(&shown.real).ok();
            inner.is_some_and(|inner| !shown.hidden.iter().any(|hidden| inner.starts_with(hidden)))
        })
    }

    /// Where a command's programs are looked for, in order.
    pub(crate) fn search_path<'s>(&'s self, system: &'s str) -> impl Iterator<Item = &'s Path> {
        let [before, behind] = &self.search;
        let system = system.split(':').map(Path::new);
        before.iter().map(PathBuf::as_path).chain(system).chain(behind.iter().map(PathBuf::as_path))
    }

    /// Variables that the toolchains need.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn add_known(
        &mut self,
        known: &KnownToolchain,
        context: &ToolchainContext<'_>,
        checks: &Checks<'_>,
    ) -> Result<(), Refusal> {
        let home = home_of(known, context);
        let mut found = Vec::new();
        // Most toolchains are not there, and each part of one would be looked for from the root on.
        let parts = if home.exists() { known.parts } else { &[] };
        for part in parts {
            let path = if part.path == "." { home.clone() } else { home.join(part.path) };
            let Ok(real) = path.canonicalize() else { continue };
            checks.check_known(&path, &real)?;
            let hidden = part.hidden.iter().flat_map(|pattern| matching(&real, pattern)).collect();
            let discards_writes = part.discards_writes;
            found.push(ToolchainDirectory { path, real, discards_writes, hidden });
        }
        if found.is_empty() {
            let message =
                format!("`{}` is not there: nothing of it is in `{}`", known.name, home.display());
            let hint =
                "nothing is shown of it; `capsule doctor` lists the toolchains that are there";
            return Err(Refusal::note(message, hint));
        }
        if found.iter().all(|shown| shown.path != home) {
            self.homes.insert(home.clone());
        }
        for shown in found {
            self.add(shown);
        }
        for (name, value) in known.variables {
            let value = value.replace("{}", &home.to_string_lossy());
            // A path that is not there would mislead the tool.
            if !value.starts_with('/') || Path::new(&value).exists() {
                self.variables.entry((*name).to_owned()).or_insert(value);
            }
        }
        self.search[0].extend(search::program_directories(known, &home));
        Ok(())
    }

    fn add_directory(
        &mut self,
        text: &str,
        context: &ToolchainContext<'_>,
        checks: &Checks<'_>,
    ) -> Result<(), Refusal> {
        let path = match text.strip_prefix("~/") {
            Some(rest) => context.home.join(rest),
            None if text == "~" => context.home.to_owned(),
            None => PathBuf::from(text),
        };
        if !path.is_absolute() || path.components().any(|part| part.as_os_str() == "..") {
            let message = format!(
                "`{text}` does not name a directory: an absolute path, or one that begins with `~/`, without `..` is needed"
            );
            return Err(Refusal::error(message, "name the directory in full"));
        }
        if !context.allows_paths {
            let message = format!("`{text}` is named by a policy that lies in the workspace");
            return Err(Refusal::error(
                message,
                "name a known toolchain (`capsule doctor` lists them), or keep the policy outside of the workspace",
            ));
        }
        let Ok(real) = path.canonicalize() else {
            let message = format!("the directory `{text}` is not there");
            return Err(Refusal::note(message, "nothing is shown of it"));
        };
        let hidden = checks.check_directory(&path, &real)?;
        let bin = path.join("bin");
        self.search[0].push(if bin.is_dir() { bin } else { path.clone() });
        self.add(ToolchainDirectory { path, real, discards_writes: false, hidden });
        Ok(())
    }

    /// Adds a directory, unless commands see it already.
    fn add(&mut self, shown: ToolchainDirectory) {
        let is_known = self.directories.iter().any(|known| {
            known.path == shown.path || (known.real == shown.real && shown.path == shown.real)
        });
        let is_seen =
            Executor::is_system_path(&shown.real) && Executor::is_system_path(&shown.path);
        if !is_known && !is_seen {
            self.directories.push(shown);
            // A directory is shown before what lies in it.
            self.directories.sort_by(|one, other| one.path.cmp(&other.path));
        }
    }
}

fn unknown_name(name: &str) -> Refusal {
    let names = KNOWN.iter().map(|known| known.name).chain([WELL_KNOWN]);
    let hint = match closest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name a directory by an absolute path or `~/…`; `capsule doctor` lists the known toolchains that are there".to_owned(),
    };
    Refusal { is_error: true, message: format!("no toolchain is called `{name}`"), hint }
}

/// The paths in a directory that a pattern means, with `*` for the rest of a name.
fn matching(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.split('/') {
        let next = |above: &PathBuf| -> Vec<PathBuf> {
            let Some(start) = part.strip_suffix('*') else { return vec![above.join(part)] };
            let entries = std::fs::read_dir(directory.join(above)).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name());
            let names = names.filter(|name| name.as_encoded_bytes().starts_with(start.as_bytes()));
            names.map(|name| above.join(name)).collect()
        };
        found = found.iter().flat_map(next).collect();
    }
    found.retain(|path| directory.join(path).symlink_metadata().is_ok());
    found
}

/// The home directory of a known toolchain. A variable counts where it names an absolute path.
fn home_of(known: &KnownToolchain, context: &ToolchainContext<'_>) -> PathBuf {
    let named = known.variable.and_then(|name| (context.variable)(name)).map(PathBuf::from);
    named.filter(|path| path.is_absolute()).unwrap_or_else(|| context.home.join(known.home))
}
