//! Why a session is not taken up.

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_store::StoreError;

use crate::changes_error::ChangesError;
use crate::replay::ReplayError;

/// Why a session is not taken up.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What a killed process left cannot be read from the record.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The changes of the session cannot be read from the record.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// Another problem prevents it.
    #[error("{}", .0.message)]
    Problem(CodedError),
}

impl From<CodedError> for SessionError {
    fn from(problem: CodedError) -> Self {
        Self::Problem(problem)
    }
}

impl SessionError {
    pub(crate) fn unknown(asked: &str) -> Self {
        CodedError::new(Code::SessionUnknown, format!("`{asked}` is no open session"))
            .with_suggestion("`capsule session list` shows those that are open")
            .into()
    }

    pub(crate) fn changed(label: &str) -> Self {
        let message = format!(
            "the session {label} was opened with another policy, profile, workspace or set of tools"
        );
        CodedError::new(Code::SessionChanged, message)
            .with_suggestion(format!("`capsule session end {label}`, or leave `--session` out"))
            .into()
    }

    pub(crate) fn file(error: &std::io::Error) -> Self {
        let message = format!("what the session remembers cannot be written: {error}");
        CodedError::new(Code::StoreWrite, message).into()
    }
}
