//! What acts: live hands, or those of a recording.

mod answers;
mod live;
mod recorded;

use std::time::Duration;

use capsule_core::approval::Approver;
use capsule_core::call::ToolCall;
use capsule_core::lifecycle::PreflightReport;
use capsule_core::outcome::CodedError;

pub use live::{Live, Machine, Variables};
pub(crate) use live::{now, secrets};
pub(crate) use recorded::Recorded;

/// What acts.
pub trait Hands {
    /// What a call means, what is found about it, and what could carry it out.
    ///
    /// # Errors
    /// When the call cannot be understood.
    fn preflight(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError>;

    /// The same for a call that a plan will come to, before the plan begins. None where nobody looks
    /// ahead: what came of that is in the record.
    fn foresee(&mut self, call: &ToolCall) -> Option<Result<PreflightReport, CodedError>>;

    /// The same for a call that was understood before and waited since.
    ///
    /// # Errors
    /// When it cannot be understood any more.
    fn again(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError>;

    /// Who is asked where the policy asks.
    fn approver(&mut self) -> &mut dyn Approver;

    /// Waits before another attempt.
    fn pause(&mut self, time: Duration);

    /// Whether to end the run.
    fn interrupted(&mut self) -> bool;
}
