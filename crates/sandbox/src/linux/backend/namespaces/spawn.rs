//! Starting a command, as the executor sees it.
//!
//! The first process of a call is made while the call before still runs: it builds its mounts and
//! raises its walls, and then stands by for an order. A command that comes finds everything ready.
//! No process serves two commands.

use std::os::fd::AsFd as _;

use capsule_core::confinement::ProcessLimits;
use rustix::io::Errno;

use super::NamespaceSandbox;
use super::{hidden_paths, init_process};
use crate::linux::backend::init_process::{
    CommandPaths, EndMethod, InitOptions, InitProcess, Streams, control_sockets,
};
use crate::linux::kernel::{self, CloneRequest, ForkResult};
use crate::linux::protocol::{
    AtStep as _, CommandMessage, DirectPaths, ExecutorError, SetupError, Step,
};

/// The namespaces of a call.
const NAMESPACES: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// The first process of a call counts, and the one that stands by for the next call.
const OWN_PROCESSES: u64 = 2;

/// A first process without an order yet.
pub(super) struct StandbyInit {
    process: InitProcess,
    /// What was built into it, and must be what the order asks for.
    options: InitOptions,
}

impl NamespaceSandbox {
    /// Starts a command from which these paths are hidden, and to which others may be open.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        CommandPaths { hidden: masks, direct }: CommandPaths<'_>,
        run: &CommandMessage,
        built: InitOptions,
        streams: &Streams,
    ) -> Result<InitProcess, ExecutorError> {
        let hidden = hidden_paths::hide(&self.root.cover, self.workspace.as_fd(), masks);
        if !matches!(hidden, Ok(false)) {
            // What stands by still sees what is, or should be, hidden now.
            self.standby = None;
        }
        let _any = hidden?;
        // The content of `/tmp` counts for the group, and not for this command.
        let memory_bytes =
            run.limits.memory_bytes.saturating_add(init_process::tmp_memory().at(Step::Tmp)?);
        let limits = ProcessLimits { memory_bytes, ..run.limits };
        self.cgroups.set_limits(&limits, OWN_PROCESSES).at(Step::Cgroup)?;
        if built.writes && !self.staged || direct.is_some() && self.staged {
            return Err(SetupError { step: Step::Staging, errno: Errno::ROFS }.into());
        }
        let fits = |standby: &StandbyInit| standby.options == built && !standby.process.has_ended();
        // What is open to one command is built for it alone.
        let standby = if direct.is_none() { self.standby.take().filter(fits) } else { None };
        let first = match standby {
            Some(standby) => standby.process,
            None => {
                self.wait_for_previous();
                self.fork_init(built, direct)?
            }
        };
        first.send_request(run, streams, &self.empty_stdin)?;
        self.wait_for_previous();
        Ok(first)
    }

    /// Makes the first process of the next call. Should that fail, the next call tries again, and
    /// says so if it fails again.
    pub(crate) fn prepare_next(&mut self, built: InitOptions) {
        if self.standby.is_none() {
            self.standby = self
                .fork_init(built, None)
                .ok()
                .map(|first| StandbyInit { process: first, options: built });
        }
    }

    /// Waits for the first process of the last call to be gone. Before another one is made, lest there be
    /// more of them than those that are counted.
    fn wait_for_previous(&mut self) {
        self.previous = None;
    }

    fn fork_init(
        &self,
        built: InitOptions,
        direct: Option<&DirectPaths>,
    ) -> Result<InitProcess, SetupError> {
        let (line, other_end) = control_sockets()?;
        let request = CloneRequest {
            namespaces: u64::try_from(NAMESPACES).unwrap_or_default(),
            cgroup: self.cgroups.clone_target(),
        };
        match kernel::clone_process(&request).at(Step::Birth)? {
            ForkResult::Child => init_process::run_init(self, &line, &other_end, (built, direct)),
            ForkResult::Parent(pid, handle) => {
                Ok(InitProcess::new(pid, handle, line, EndMethod::Killed))
            }
        }
    }
}
