//! The reasons, in words, why a scan refuses changes.

use capsule_base::code::Code;
use capsule_base::units::show_size;
use capsule_core::confinement::ChangeLimits;
use capsule_core::outcome::CodedError;
use rustix::io::Errno;

use crate::resolve::LookupError;

/// The reason where another process wrote to a path in the workspace during the run.
pub(super) const CHANGED_MEANWHILE: &str =
    "it was changed in the workspace while the run was going on";

/// The reason where the permissions of a folder keep its entries from being read.
const UNREADABLE_DIRECTORY: &str =
    "its permissions do not allow reading it, so its content is not known";

/// The reason where the target of a link is not text.
pub(super) const UNREADABLE_LINK: &str =
    "it is a link to a name that is not text, which no record holds";

/// The reason where a path cannot be opened.
pub(super) fn not_found_text(why: LookupError) -> String {
    match why {
        LookupError::Missing => "it is not there".into(),
        LookupError::Outside(problem) => format!("its path {}", problem.reason()),
        LookupError::Refused(Errno::ACCESS) => UNREADABLE_DIRECTORY.into(),
        LookupError::Refused(errno) => format!("it cannot be read ({errno})"),
    }
}

/// The problem where more changed than may be staged.
pub(super) fn too_many_problem(limits: ChangeLimits) -> CodedError {
    let ChangeLimits { paths, bytes } = limits;
    let bytes = show_size(bytes);
    let message = format!("more than {paths} paths or {bytes} would be staged");
    CodedError::new(Code::ChangeTooMany, message)
}
