//! Why a path leads to nothing.

use capsule_base::path::PathProblem;
use rustix::io::Errno;

/// Why nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// There is nothing at the path.
    Missing,
    /// The path leads out.
    Outside(PathProblem),
    /// The system refuses.
    Refused(Errno),
}

/// What an error of the system means for a path.
pub(crate) fn lookup_error(errno: Errno) -> LookupError {
    match errno {
        Errno::NOENT | Errno::NOTDIR => LookupError::Missing,
        Errno::XDEV => LookupError::Outside(PathProblem::Escapes),
        Errno::LOOP => LookupError::Outside(PathProblem::Escapes),
        Errno::NAMETOOLONG => LookupError::Outside(PathProblem::TooLong),
        other => LookupError::Refused(other),
    }
}
