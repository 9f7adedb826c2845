//! What acts: live hands, or those of a recording.

mod live;
mod recorded;

use std::time::Duration;

use capsule_core::call::ToolCall;
use capsule_core::evidence::Understanding;
use capsule_core::outcome::Problem;

pub(crate) use live::now;
pub use live::{Live, Machine, Variables};
pub(crate) use recorded::Recorded;

/// What acts.
pub trait Hands {
    /// What a call means, what is found about it, and what could carry it out.
    ///
    /// # Errors
    /// When the call cannot be understood.
    fn preflight(&mut self, call: &ToolCall) -> Result<Understanding, Problem>;

    /// Waits before another attempt.
    fn pause(&mut self, time: Duration);

    /// Whether to end the run.
    fn interrupted(&mut self) -> bool;
}
