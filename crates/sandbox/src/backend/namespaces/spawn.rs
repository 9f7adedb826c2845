//! Starting a command, as the executor sees it.
//!
//! The first process of a call is made while the call before still runs: it builds its mounts and
//! raises its walls, and then stands by for an order. A command that comes finds everything ready.
//! No process serves two commands.

use std::os::fd::AsFd as _;

use rustix::io::Errno;

use super::View;
use super::{first, masks};
use crate::backend::first::{Built, Ending, First, Paths, Streams, line};
use crate::kernel::{self, Birth, CloneRequest};
use crate::protocol::{At as _, Direct, Failed, Refusal, Run, Step};

/// The namespaces of a call.
const NAMESPACES: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// The first process of a call counts, and the one that stands by for the next call.
const OWN_PROCESSES: u64 = 2;

/// A first process without an order yet.
pub(super) struct Standby {
    first: First,
    /// What was built into it, and must be what the order asks for.
    built: Built,
}

impl View {
    /// Starts a command from which these paths are hidden, and to which others may be open.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        Paths { masks, direct }: Paths<'_>,
        run: &Run,
        built: Built,
        streams: &Streams,
    ) -> Result<First, Refusal> {
        let hidden = masks::hide(&self.root.cover, self.workspace.as_fd(), masks);
        if !matches!(hidden, Ok(false)) {
            // What stands by still sees what is, or should be, hidden now.
            self.standby = None;
        }
        let _any = hidden?;
        self.cgroups.bound(&run.limits, OWN_PROCESSES).at(Step::Cgroup)?;
        if built.writes && !self.staged || direct.is_some() && self.staged {
            return Err(Failed { step: Step::Staging, errno: Errno::ROFS }.into());
        }
        let fits = |standby: &Standby| standby.built == built && !standby.first.has_ended();
        // What is open to one command is built for it alone.
        let standby = if direct.is_none() { self.standby.take().filter(fits) } else { None };
        let first = match standby {
            Some(standby) => standby.first,
            None => {
                self.wait_for_last();
                self.give_birth(built, direct)?
            }
        };
        first.order(run, streams, &self.nothing)?;
        self.wait_for_last();
        Ok(first)
    }

    /// Makes the first process of the next call. Should that fail, the next call tries again, and
    /// says so if it fails again.
    pub(crate) fn stand_by(&mut self, built: Built) {
        if self.standby.is_none() {
            self.standby = self.give_birth(built, None).ok().map(|first| Standby { first, built });
        }
    }

    /// Waits for the first process of the last call to be gone. Before another one is made, lest there be
    /// more of them than those that are counted.
    fn wait_for_last(&mut self) {
        self.ending = None;
    }

    fn give_birth(&self, built: Built, direct: Option<&Direct>) -> Result<First, Failed> {
        let (line, other_end) = line()?;
        let request = CloneRequest {
            namespaces: u64::try_from(NAMESPACES).unwrap_or_default(),
            cgroup: self.cgroups.born_into(),
        };
        match kernel::give_birth(&request).at(Step::Birth)? {
            Birth::Child => first::live(self, &line, &other_end, (built, direct)),
            Birth::Parent(pid, handle) => Ok(First::new(pid, handle, line, Ending::Killed)),
        }
    }
}
