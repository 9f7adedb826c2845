//! Backends, which act: the live one, and the one of a recording.

mod answers;
mod hosted;
mod live;
mod replayed;
mod system_host;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use capsule_core::approval::Approver;
use capsule_core::call::ToolCall;
use capsule_core::lifecycle::PreflightReport;
use capsule_core::outcome::CodedError;
use capsule_tools::{NullSink, Sink};
use capsule_workspace::{HiddenPaths, Workspace};

pub use live::LiveBackend;
pub(crate) use replayed::ReplayBackend;
pub(crate) use system_host::secret_values;
pub use system_host::{EnvLookup, SystemHost};

/// A workspace with what is hidden in it.
pub(crate) type ScriptWorkspace = (Rc<Workspace>, Rc<RefCell<HiddenPaths>>);

/// What acts.
pub trait CallBackend {
    /// What a call means, what is found about it, and what could carry it out.
    ///
    /// # Errors
    /// When the call cannot be understood.
    fn preflight(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError>;

    /// The same for a call that a plan will come to, before the plan begins. None where nobody looks
    /// ahead: what came of that is in the record.
    fn preflight_ahead(&mut self, call: &ToolCall) -> Option<Result<PreflightReport, CodedError>>;

    /// The same for a call that was understood before and waited since.
    ///
    /// # Errors
    /// When it cannot be understood any more.
    fn preflight_again(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError>;

    /// The workspace and what is hidden in it, where scripts of it are read to be judged; none where that is done already, as in what is recorded.
    fn script_workspace(&self) -> Option<ScriptWorkspace> {
        None
    }

    /// Who is asked where the policy asks.
    fn approver(&mut self) -> &mut dyn Approver;

    /// Waits before another attempt.
    fn pause(&mut self, time: Duration);

    /// Says whether what the next calls print is kept for a variable: then it is not shown.
    fn capture_output(&mut self, _captures: bool) {}

    /// Where output is shown while it comes; nowhere in a replay.
    fn sink(&self) -> Rc<dyn Sink> {
        Rc::new(NullSink)
    }

    /// Ends what a list still runs in the background, now that it is over.
    fn end_jobs(&mut self) {}

    /// Whether to end the run.
    fn interrupted(&mut self) -> bool;
}
