//! Programs on disk.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_command::program::ProgramFact;
use capsule_core::action::{PathTarget, target_from};
use capsule_core::outcome::CodedError;
use capsule_sandbox as sandbox;
use capsule_sandbox::{Executor, SandboxBackend as _};
use capsule_workspace::PathLookup;
use rustix::fs::OFlags;
use sandbox::FileIdentity;

use crate::host::ToolHost;
use crate::tool::ToolContext;

/// Where programs are looked for, by us and by commands. Nothing that a run can write to is among
/// them, and every sandbox has them.
pub(super) const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A program that was found.
#[derive(Clone)]
pub(crate) struct ResolvedProgram {
    pub(crate) fact: ProgramFact,
    pub(crate) file: sandbox::Executable,
}

/// Finds the program of a command that starts in a directory of the workspace: at the place that the policy
/// names, in the system's directories, or, by its path, in the workspace.
pub(crate) fn find_command(
    name: &str,
    cwd: &PathTarget,
    context: &ToolContext<'_>,
) -> Option<ResolvedProgram> {
    let host = context.host.as_ref();
    find_program(name, host).or_else(|| find_workspace_program(name, cwd, context))
}

/// Finds a program of the workspace. It may be a link to one of the system, as in the environment of a Python
/// interpreter.
fn find_workspace_program(
    name: &str,
    cwd: &PathTarget,
    context: &ToolContext<'_>,
) -> Option<ResolvedProgram> {
    if !name.contains('/') {
        return None;
    }
    let workspace = context.workspace;
    let names = workspace.root_names();
    let target = target_from(cwd, name, names);
    let path = target.inside()?;
    let hidden = context.hidden_paths.borrow().hidden_now(workspace).ok()?;
    let is_hidden = |path: &WorkspacePath| {
        let mut above = Path::new(path.as_str()).ancestors();
        above.any(|above| hidden.iter().any(|hidden| hidden.as_os_str() == above.as_os_str()))
    };
    let (file, real) = match workspace.find_path(path) {
        PathLookup::Found(found) if !is_hidden(path) && !is_hidden(&found.real_path) => {
            (File::from(found.open(workspace, OFlags::RDONLY).ok()?), found.real_path.to_string())
        }
        PathLookup::Outside(_) if !is_hidden(path) => {
            let real = workspace.program_of_link(path)?;
            (File::open(&real).ok()?, real.to_str()?.to_owned())
        }
        _ => return None,
    };
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.mode() & 0o111 != 0)?;
    let identity = FileIdentity::from_metadata(&meta);
    let fact = ProgramFact { path: path.to_string(), real, sha256: file_digest(file)? };
    // A command knows the workspace by one of its absolute names.
    let shown = match name.starts_with('/') {
        true => Path::new(names.mount()).join(path.as_str()),
        false => PathBuf::from(name),
    };
    let file = sandbox::Executable { path: shown, identity };
    Some(ResolvedProgram { fact, file })
}

/// Finds a program: at the place that the policy names, or in the system's directories.
pub(crate) fn find_program(name: &str, host: &dyn ToolHost) -> Option<ResolvedProgram> {
    let named = host.program_path(name).map(PathBuf::from);
    let toolchains = host.toolchains();
    // In a toolchain stand links, too, and not all of them lead to what commands see.
    let is_seen = |path: &Path| {
        let in_system =
            SEARCH_PATH.split(':').any(|folder| path.parent() == Some(Path::new(folder)));
        let is_visible = |real: PathBuf| Executor::is_system_path(&real) || toolchains.show(&real);
        in_system || path.canonicalize().is_ok_and(is_visible)
    };
    let path = match named {
        Some(path) => path,
        None if name.is_empty() => return None,
        // By its path, where that is one of the directories that are searched anyway.
        None if name.contains('/') => {
            let folder = Path::new(name).parent()?;
            let known = toolchains.search_path(SEARCH_PATH).any(|part| part == folder);
            known.then(|| PathBuf::from(name)).filter(|path| path.is_file() && is_seen(path))?
        }
        None => {
            let paths = toolchains.search_path(SEARCH_PATH).map(|directory| directory.join(name));
            let is_program = |path: &PathBuf| {
                path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
            };
            paths.filter(is_program).find(|path| is_seen(path))?
        }
    };
    let is_shown =
        |real: &Path| Executor::private_directory(real).is_none() || toolchains.show(real);
    let real = path.canonicalize().ok().filter(|real| is_shown(real))?;
    let file = File::open(&real).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    // Taken before the bytes are read: whoever writes to them meanwhile changes it.
    let file_identity = FileIdentity::from_metadata(&meta);
    let sha256 = match host.known_digest(&real, &file_identity) {
        Some(digest) => digest,
        None => {
            let digest = file_digest(file)?;
            host.remember_digest(&real, &file_identity, digest);
            digest
        }
    };
    let fact = ProgramFact { path: path.to_str()?.into(), real: real.to_str()?.into(), sha256 };
    Some(ResolvedProgram {
        fact,
        file: sandbox::Executable { path: real, identity: file_identity },
    })
}

/// Why a program was not found.
pub(crate) fn missing(name: &str, host: &dyn ToolHost) -> CodedError {
    let Some(place) = host.program_path(name) else {
        let message = match name.contains('/') {
            true => format!("there is no program at `{name}` that a command may see and run"),
            false => format!("there is no program `{name}` in the directories that are searched"),
        };
        return CodedError::new(Code::ExecNotFound, message);
    };
    let real = Path::new(&place).canonicalize();
    match real.ok().and_then(|real| Executor::private_directory(&real)) {
        Some(folder) => {
            let message = format!(
                "`{place}` cannot be shown to a command, which has a `{folder}` of its own"
            );
            let hint = format!(
                "tell the user: the policy names a program beneath `{folder}`; it has to lie elsewhere"
            );
            CodedError::new(Code::ExecNotFound, message).with_suggestion(hint)
        }
        None => {
            let message =
                format!("there is no program at `{place}`, where the policy says that `{name}` is");
            CodedError::new(Code::ExecNotFound, message)
        }
    }
}

fn file_digest(mut file: File) -> Option<Digest> {
    Digest::of_reader(|buffer| file.read(buffer)).ok()
}
