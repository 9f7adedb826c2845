//! The sign at the head of a line of the timeline.

use anstyle::Style;
use capsule_core::journal::StepEnding;
use capsule_core::outcome::Status;

use crate::call_view::CallView;
use crate::run_view::StepView;
use crate::style::{DIMMED, ERROR, SUCCESS, WARNING};

/// An icon, and always a word with it.
pub(super) struct Sign {
    /// The icon, left out in plain text.
    pub(super) icon: &'static str,
    /// The word.
    pub(super) word: &'static str,
    /// The style of both.
    pub(super) style: Style,
}

impl Sign {
    const fn new(icon: &'static str, word: &'static str, style: Style) -> Self {
        Self { icon, word, style }
    }

    /// The sign of a step that ended.
    pub(super) fn of_step(step: &StepView) -> Self {
        match step.ended.ending {
            StepEnding::Ok => Self::new("✔", "ok", SUCCESS),
            StepEnding::DeniedAsExpected => Self::new("✔", "denied", SUCCESS),
            StepEnding::FailedAsExpected => Self::new("✔", "failed", SUCCESS),
            StepEnding::Denied if step.lacked_approval() => Self::new("?", "ASKED", WARNING),
            StepEnding::Denied => Self::new("✖", "DENIED", ERROR),
            StepEnding::Failed if step.was_cancelled() => Self::new("⊘", "CANCELLED", WARNING),
            StepEnding::Failed if step.ended.goes_on => Self::new("⚠", "failed", WARNING),
            StepEnding::Failed => Self::new("✖", "FAILED", ERROR),
            StepEnding::Skipped => Self::new("↷", "skipped", DIMMED),
            StepEnding::NotReached => Self::new("·", "not run", DIMMED),
        }
    }

    /// The sign of a call.
    pub(super) fn of_call(call: &CallView) -> Self {
        match call.status() {
            _ if call.is_waiting() => Self::new("?", "WAITS", WARNING),
            _ if call.lacked_approval() => Self::new("?", "ASKED", WARNING),
            _ if call.was_cancelled() => Self::new("⊘", "CANCELLED", WARNING),
            // Its parts follow, each with its own end.
            _ if call.is_list() => Self::new("·", "list", DIMMED),
            Some(Status::Ok) => Self::new("✔", "ok", SUCCESS),
            Some(Status::Denied) => Self::new("✖", "DENIED", ERROR),
            Some(Status::ToolError | Status::RuntimeError) => Self::new("✖", "FAILED", ERROR),
            None if call.is_unknown() => Self::new("?", "UNKNOWN", WARNING),
            None => Self::new("…", "running", DIMMED),
        }
    }
}
