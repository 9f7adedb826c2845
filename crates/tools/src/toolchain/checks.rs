//! Reasons for which a directory is not shown as a toolchain.

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::policy::Policy;
use capsule_sandbox::{Executor, SandboxBackend as _};
use rustix::process::geteuid;

use super::context::{Refusal, ToolchainContext};

/// How many entries of a directory are looked at for credentials.
const MAX_ENTRIES: usize = 200_000;
/// How deep directories may lie in one another.
const MAX_DEPTH: usize = 64;

/// The places of the machine that toolchains are compared with.
pub(super) struct Checks<'c> {
    /// The real paths that a toolchain may neither hold nor lie in, each with what it is.
    closed: Vec<(PathBuf, &'static str)>,
    /// The real paths that a toolchain may not hold.
    held: Vec<(PathBuf, &'static str)>,
    home: &'c Path,
    /// Where that really is.
    real_home: PathBuf,
    read_base: &'c dyn Fn() -> Option<Policy>,
    /// The base policy as it sees paths from the root on.
    base: OnceCell<Option<Policy>>,
}

impl<'c> Checks<'c> {
    pub(super) fn of(context: &ToolchainContext<'c>) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let closed = context.workspace.map(|path| (real(path), "the workspace"));
        let runtime = context.runtime_files.iter().map(|path| (real(path), "Capsule's own files"));
        let real_home = real(context.home);
        let held = [(real_home.clone(), "the home directory")].into_iter().chain(runtime);
        Self {
            closed: closed.into_iter().collect(),
            held: held.collect(),
            home: context.home,
            real_home,
            read_base: context.base_policy,
            base: OnceCell::new(),
        }
    }

    /// Checks a part of a known toolchain. Where a link leads elsewhere, what is there is checked as any
    /// directory is.
    pub(super) fn check_known(&self, path: &Path, real: &Path) -> Result<(), Refusal> {
        self.check_place(path, real)?;
        let is_plain = path == real
            || path.strip_prefix(self.home).ok() == real.strip_prefix(&self.real_home).ok();
        if !is_plain && is_concealed(self.base(real)?, real) {
            return Err(concealed(path, real));
        }
        Ok(())
    }

    /// Checks a directory that a policy names; gives what is to be hidden in it.
    pub(super) fn check_directory(
        &self,
        path: &Path,
        real: &Path,
    ) -> Result<Vec<PathBuf>, Refusal> {
        self.check_place(path, real)?;
        if !real.is_dir() {
            let message = format!("`{}` is not a directory", path.display());
            return Err(Refusal::error(
                message,
                "name the directory that holds it; a single program goes under `executables` with `path`",
            ));
        }
        let base = self.base(real)?;
        if is_concealed(base, real) {
            return Err(concealed(path, real));
        }
        concealed_paths(real, base).ok_or_else(|| {
            let message = format!("`{}` holds more than {MAX_ENTRIES} entries", path.display());
            Refusal::error(message, "name the directories in it that programs need")
        })
    }

    /// Where a directory lies, and who may change it.
    fn check_place(&self, path: &Path, real: &Path) -> Result<(), Refusal> {
        let shown = path.display();
        let refused = |why: String, hint: &str| {
            Err(Refusal::error(format!("`{shown}` is not shown to commands: {why}"), hint))
        };
        let leads = if path == real {
            String::new()
        } else {
            format!("it leads to `{}`, and ", real.display())
        };
        let in_tmp = real.starts_with("/tmp") && real != Path::new("/tmp");
        if let Some(private) = Executor::private_directory(real).filter(|_| !in_tmp) {
            return refused(
                format!("{leads}a command has another `{private}`"),
                "name another directory",
            );
        }
        let holds = |other: &Path| other.starts_with(real);
        let within = |other: &Path| real.starts_with(other);
        let all = self.closed.iter().chain(&self.held);
        if let Some((_, name)) = all.clone().find(|(other, _)| holds(other)) {
            return refused(
                format!("{leads}it holds {name}"),
                "name the directories in it that programs need",
            );
        }
        if let Some((_, name)) = self.closed.iter().find(|(other, _)| within(other)) {
            return refused(
                format!("{leads}it lies in {name}"),
                "programs of the workspace are run by their path",
            );
        }
        if let Some(why) = changeable_by_others(real) {
            return refused(
                format!("{leads}{why}"),
                "`chmod o-w`, or `chown`, what others may change",
            );
        }
        Ok(())
    }

    /// The base policy, to judge a directory by.
    fn base(&self, directory: &Path) -> Result<&Policy, Refusal> {
        self.base.get_or_init(self.read_base).as_ref().ok_or_else(|| {
            let message = format!("`{}` cannot be judged by the base policy", directory.display());
            Refusal::error(message, "name another directory")
        })
    }
}

/// Whether the base policy hides a directory, or whatever lies in it.
fn is_concealed(base: &Policy, real: &Path) -> bool {
    let reading = Capabilities::of(Capability::FsMeta).with(Capability::FsRead);
    let paths = [real.to_owned(), real.join("toolchain")];
    paths
        .iter()
        .any(|path| absolute(path).is_none_or(|path| base.forbids(&path, reading).is_some()))
}

/// An absolute path as the base policy sees it from the root on; none for a name that no path of ours has.
fn absolute(path: &Path) -> Option<WorkspacePath> {
    WorkspacePath::from_fs_name(path.strip_prefix("/").ok()?.to_str()?)
}

fn concealed(path: &Path, real: &Path) -> Refusal {
    let message = format!(
        "`{}` is not shown to commands: the base policy hides `{}`",
        path.display(),
        real.display()
    );
    Refusal::error(message, "name a directory that holds no credentials")
}

/// Tells which directory, this one or one above it, another user owns or everybody may change, so that a program in it
/// may be anybody's.
fn changeable_by_others(real: &Path) -> Option<String> {
    const STICKY: u32 = 0o1000;
    let user = geteuid().as_raw();
    for (at, path) in real.ancestors().enumerate() {
        let meta = fs::metadata(path).ok()?;
        if meta.uid() != 0 && meta.uid() != user {
            return Some(format!("`{}` belongs to another user", path.display()));
        }
        // In a directory such as /tmp nobody replaces what is not theirs.
        let is_shared = at > 0 && meta.mode() & STICKY != 0;
        if meta.mode() & 0o002 != 0 && !is_shared {
            return Some(format!("everybody may change `{}`", path.display()));
        }
    }
    None
}

/// The paths that the base policy hides in a directory; none where there is too much to look at.
fn concealed_paths(directory: &Path, base: &Policy) -> Option<Vec<PathBuf>> {
    let mut hidden = Vec::new();
    let mut seen = 0;
    let mut waiting = vec![(PathBuf::new(), 0)];
    while let Some((inner, depth)) = waiting.pop() {
        // A directory that cannot be listed cannot be read by commands either.
        for entry in fs::read_dir(directory.join(&inner)).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || depth > MAX_DEPTH || hidden.len() > limits::HIDDEN_PATHS {
                return None;
            }
            let path = inner.join(entry.file_name());
            let judged = absolute(&directory.join(&path));
            if judged.is_none_or(|judged| base.conceals(&judged)) {
                hidden.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push((path, depth + 1));
            }
        }
    }
    hidden.sort();
    Some(hidden)
}
