//! Why a command ended without doing what it was for, and the exit code that goes with it.

use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostics;
use capsule_base::exit::Exit;
use capsule_core::outcome::CodedError;
use capsule_policy::SourceText;
use capsule_runtime::{
    AnnotationError, ChangesError, Divergence, EraseError, LayerChange, OpenError, ReplayError,
    ResumeError, SessionError,
};
use capsule_store::StoreError;

/// Why a command ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something is wrong, and a code says what.
    Problem(CodedError),
    /// A text is wrong at these places.
    InvalidText(SourceText, Diagnostics),
    /// The workspace's layer is gone, or says less.
    WeakerLayer(Box<LayerChange>),
    /// A replay met what is not in its recording.
    Diverged { label: String, divergences: Vec<Divergence> },
    /// Everything was said already, or nobody listens any more.
    Quiet(u8),
}

impl From<CodedError> for Failure {
    fn from(problem: CodedError) -> Self {
        Self::Problem(problem)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Problem(
            CodedError::new(error.code(), error.to_string()).with_suggestion(error.suggestion()),
        )
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Refused(problem) => problem.into(),
            OpenError::WeakerLayer(news) => Self::WeakerLayer(news),
            OpenError::Session(error) => error.into(),
        }
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::Replay(error) => error.into(),
            SessionError::Changes(error) => error.into(),
            SessionError::Problem(problem) => problem.into(),
        }
    }
}

impl From<EraseError> for Failure {
    fn from(error: EraseError) -> Self {
        match error {
            EraseError::Store(error) => error.into(),
            EraseError::StillNeeded(problem) | EraseError::LeftFiles(problem) => problem.into(),
        }
    }
}

impl From<ChangesError> for Failure {
    fn from(error: ChangesError) -> Self {
        match error {
            ChangesError::Store(error) => error.into(),
            ChangesError::Problem(problem) => problem.into(),
        }
    }
}

impl From<AnnotationError> for Failure {
    fn from(error: AnnotationError) -> Self {
        match error {
            AnnotationError::Store(error) => error.into(),
            AnnotationError::Problem(problem) => problem.into(),
        }
    }
}

impl From<ResumeError> for Failure {
    fn from(error: ResumeError) -> Self {
        match error {
            ResumeError::Annotation(error) => error.into(),
            ResumeError::Changes(error) => error.into(),
            ResumeError::Replay(error) => error.into(),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Diverged(divergences) => {
                Self::Diverged { label: String::new(), divergences }
            }
            ReplayError::Incomplete(_) => {
                Self::Problem(CodedError::new(Code::ReplayIncomplete, error.to_string()))
            }
            ReplayError::Store(error) => error.into(),
        }
    }
}

/// Standard output cannot be written. A reader that went away (`capsule report | head`) is no
/// failure of ours.
pub(crate) fn stdout_failure(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Quiet(0),
        _ => {
            let message = format!("standard output cannot be written: {error}");
            Failure::Problem(CodedError::new(Code::StoreWrite, message))
        }
    }
}

/// A command line that makes no sense.
pub(crate) fn usage_failure(message: impl Into<String>) -> Failure {
    Failure::Problem(CodedError::new(Code::Usage, message))
}

impl Failure {
    /// The exit status.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            // What cannot be told apart from success must not end as one.
            Self::Problem(problem) if problem.code.exit() == Exit::Ok => {
                Exit::RuntimeError.status()
            }
            Self::Problem(problem) => problem.code.exit().status(),
            Self::InvalidText(..) | Self::WeakerLayer(_) => Exit::BadUsage.status(),
            Self::Diverged { .. } => Exit::ReplayDiverged.status(),
            Self::Quiet(exit) => *exit,
        }
    }
}
