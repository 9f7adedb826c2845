//! The problems that are reported of a path, and the lookups that end in one.

use std::io;

use capsule_base::code::Code;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_core::action::FileKind;
use capsule_core::outcome::CodedError;
use rustix::io::Errno;

use crate::resolve::{FoundPath, LookupError, PathLookup, Workspace};

/// An error of the system, as a problem with a path. What the path really is, and whether more is
/// there, is not told.
pub fn system_problem(path: &WorkspacePath, errno: Errno) -> CodedError {
    let code = match errno {
        Errno::NOENT | Errno::NOTDIR => return missing_problem(path),
        Errno::AGAIN => {
            let message = format!("`{path}` keeps changing while it is read");
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

/// The problem with a path where there is nothing.
pub fn missing_problem(path: &WorkspacePath) -> CodedError {
    CodedError::new(Code::FileNotFound, format!("there is nothing at `{path}`"))
        .with_suggestion("check the spelling, and which names there are")
}

/// What a path leads to now, compared with what was judged.
///
/// # Errors
/// It leads elsewhere, or cannot be resolved.
pub fn require_unchanged(
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

/// The problem with a path whose file is another one than was judged.
pub fn changed_problem(path: &WorkspacePath) -> CodedError {
    CodedError::new(
        Code::ApprovalChangedAfter,
        format!("`{path}` changed after the call was judged"),
    )
    .with_suggestion("submit the call again")
}

/// The file or folder that was found at a path, or why there is none.
///
/// # Errors
/// There is nothing that can be opened.
pub fn require_found(path: &WorkspacePath, stands: PathLookup) -> Result<FoundPath, CodedError> {
    match stands {
        PathLookup::Found(found) => Ok(found),
        PathLookup::Missing(_) => Err(missing_problem(path)),
        PathLookup::Refused(_, errno) => Err(system_problem(path, errno)),
        PathLookup::Outside(problem) => Err(outside_problem(path, problem)),
    }
}

/// The folder that was found at a path.
///
/// # Errors
/// There is none.
pub fn require_directory(
    path: &WorkspacePath,
    stands: PathLookup,
) -> Result<FoundPath, CodedError> {
    let found = require_found(path, stands)?;
    if found.kind() == FileKind::Directory {
        return Ok(found);
    }
    Err(CodedError::new(Code::FileNotFolder, format!("`{path}` is not a folder")))
}

/// The regular file that was found at a path.
///
/// # Errors
/// There is none.
pub fn require_file(path: &WorkspacePath, stands: PathLookup) -> Result<FoundPath, CodedError> {
    let found = require_found(path, stands)?;
    if found.kind() == FileKind::File {
        return Ok(found);
    }
    Err(CodedError::new(Code::FileNotRegular, format!("`{path}` is not a regular file")))
}

/// The problem with a path that could not be opened.
pub fn not_found_problem(path: &WorkspacePath, why: LookupError) -> CodedError {
    match why {
        LookupError::Missing => missing_problem(path),
        LookupError::Refused(errno) => system_problem(path, errno),
        LookupError::Outside(problem) => outside_problem(path, problem),
    }
}

/// The policy denies these before anything runs; should it not, nothing runs either.
pub fn outside_problem(path: &WorkspacePath, problem: PathProblem) -> CodedError {
    CodedError::new(Code::PathOutside, format!("`{path}` {}", problem.reason()))
}
