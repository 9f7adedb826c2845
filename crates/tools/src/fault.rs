//! The problems that are faults of this program.

use capsule_base::code::Code;
use capsule_core::outcome::{CodedError, Outcome};

/// A fault of ours: the action is another tool's.
pub(crate) fn wrong_action_problem() -> CodedError {
    CodedError::new(Code::EngineFault, "the action belongs to another tool")
}

/// A fault of ours: the permit is for something else than what was prepared.
pub(crate) fn wrong_permit_outcome() -> Outcome {
    Outcome::failed(CodedError::new(Code::EngineFault, "the permit is for another kind of action"))
}
