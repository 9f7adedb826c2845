//! The built-in tools, one file each.

mod changes;
pub mod changes_apply;
pub mod changes_undo;
pub mod fs_delete;
pub mod fs_edit;
pub mod fs_list;
pub mod fs_read;
pub mod fs_search;
pub mod fs_write;
mod git;
pub mod git_diff;
pub mod git_log;
pub mod git_status;
pub mod http_get;
pub mod shell_run;
pub mod test_run;

use std::io;

use capsule_base::code::Code;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_core::action::FileKind;
use capsule_core::outcome::{CodedError, Outcome};
use rustix::io::Errno;
use serde_json::{Map, Value};

use crate::workspace::{FoundPath, LookupError, PathLookup, Workspace};

/// A text argument.
fn text_arg<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

/// A number argument.
fn number_arg(args: &Map<String, Value>, name: &str) -> Option<u64> {
    args.get(name).and_then(Value::as_u64)
}

/// A flag argument; no if left out.
fn flag_arg(args: &Map<String, Value>, name: &str) -> bool {
    args.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// A size argument: a number of bytes, or text with a unit.
fn size_arg(args: &Map<String, Value>, name: &str) -> Result<Option<u64>, CodedError> {
    let Some(value) = args.get(name) else { return Ok(None) };
    let size = value.as_u64().or_else(|| capsule_base::units::parse_size(value.as_str()?));
    size.map(Some).ok_or_else(|| invalid_args(format!("`{name}` is a size such as `10KB`")))
}

fn invalid_args(message: impl Into<String>) -> CodedError {
    CodedError::new(Code::ArgsInvalid, message)
}

/// An error of the system, as a problem with a path. What the path really is, and whether more is
/// there, is not told.
pub(crate) fn system_problem(path: &WorkspacePath, errno: Errno) -> CodedError {
    let code = match errno {
        Errno::NOENT | Errno::NOTDIR => return missing_problem(path),
        Errno::AGAIN => {
            let message = format!("`{path}` changes while it is looked at");
            return CodedError::new(Code::FileSystem, message)
                .with_suggestion("submit the call again");
        }
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Code::FilePermission,
        Errno::EXIST => Code::FileExists,
        Errno::ISDIR => Code::FileNotRegular,
        _ => Code::FileSystem,
    };
    CodedError::new(code, format!("`{path}`: {}", error_text(errno)))
}

/// The system's own words for an error.
fn error_text(errno: Errno) -> String {
    let text = io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

fn missing_problem(path: &WorkspacePath) -> CodedError {
    CodedError::new(Code::FileNotFound, format!("there is nothing at `{path}`"))
        .with_suggestion("check the spelling, and which names there are")
}

/// What a path leads to now, compared with what was judged.
pub(crate) fn require_unchanged(
    workspace: &Workspace,
    path: &WorkspacePath,
    judged: &FoundPath,
) -> Result<(), CodedError> {
    match workspace.resolve(path) {
        Ok(now) if now.is_unchanged(judged) => Ok(()),
        Ok(_) => Err(changed_problem(path)),
        Err(LookupError::Refused(errno)) => Err(system_problem(path, errno)),
        Err(_) => Err(changed_problem(path)),
    }
}

pub(crate) fn changed_problem(path: &WorkspacePath) -> CodedError {
    CodedError::new(
        Code::ApprovalChangedAfter,
        format!("`{path}` is not what it was when it was judged"),
    )
    .with_suggestion("submit the call again")
}

/// Hands that can only say what is wrong: what was found leaves nothing to do.
pub(crate) struct FailedOperation(pub(crate) CodedError);

impl capsule_core::lifecycle::Operation for FailedOperation {
    fn run(self: Box<Self>, _: capsule_core::lifecycle::Permit<'_>) -> Outcome {
        Outcome::failed(self.0)
    }
}

/// The file or folder that was found at a path, or why there is none.
fn require_found(path: &WorkspacePath, stands: PathLookup) -> Result<FoundPath, CodedError> {
    match stands {
        PathLookup::Found(found) => Ok(found),
        PathLookup::Missing(_) => Err(missing_problem(path)),
        PathLookup::Refused(_, errno) => Err(system_problem(path, errno)),
        PathLookup::Outside(problem) => Err(outside_problem(path, problem)),
    }
}

/// The folder that was found at a path.
fn require_directory(path: &WorkspacePath, stands: PathLookup) -> Result<FoundPath, CodedError> {
    let found = require_found(path, stands)?;
    if found.kind() == FileKind::Directory {
        return Ok(found);
    }
    Err(CodedError::new(Code::FileNotFolder, format!("`{path}` is not a folder")))
}

/// The regular file that was found at a path.
pub(crate) fn require_file(
    path: &WorkspacePath,
    stands: PathLookup,
) -> Result<FoundPath, CodedError> {
    let found = require_found(path, stands)?;
    if found.kind() == FileKind::File {
        return Ok(found);
    }
    Err(CodedError::new(Code::FileNotRegular, format!("`{path}` is not a regular file")))
}

/// The problem with a path that could not be opened.
pub(crate) fn not_found_problem(path: &WorkspacePath, why: LookupError) -> CodedError {
    match why {
        LookupError::Missing => missing_problem(path),
        LookupError::Refused(errno) => system_problem(path, errno),
        LookupError::Outside(problem) => outside_problem(path, problem),
    }
}

/// The policy denies these before anything runs; should it not, nothing runs either.
fn outside_problem(path: &WorkspacePath, problem: PathProblem) -> CodedError {
    CodedError::new(Code::PathOutside, format!("`{path}` {}", problem.reason()))
}

/// A fault of ours: the action is another tool's.
fn wrong_action_problem() -> CodedError {
    CodedError::new(Code::EngineFault, "the action belongs to another tool")
}

/// A fault of ours: the permit is for something else than what was prepared.
fn wrong_permit_outcome() -> Outcome {
    Outcome::failed(CodedError::new(Code::EngineFault, "the permit is for another kind of action"))
}
