//! Starting a command, as the executor sees it.
//!
//! The first process of a call is made while the call before still runs: it builds its mounts and
//! raises its walls, and then stands by for an order. A command that comes finds everything ready.
//! No process serves two commands.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::View;
use super::{first, masks};
use crate::kernel::{self, Birth, CloneRequest};
use crate::protocol::{At as _, Failed, Refusal, Run, Step, Verdict, decode_verdict, socket};
use crate::waiting;

/// The namespaces of a call.
const NAMESPACES: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// The standard streams of a command.
pub(crate) struct Streams {
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: OwnedFd,
    pub(crate) errors: OwnedFd,
}

/// The first process of a call. When it is dropped, it and all processes of the call are ended.
pub(crate) struct First {
    pid: Pid,
    handle: OwnedFd,
    /// Over which it gets its order and says how it went. Nobody else has this end, so that it
    /// closes when the executor ends.
    line: OwnedFd,
}

/// A first process without an order yet.
pub(super) struct Standby {
    first: First,
    /// What was built into it, and must be what the order asks for.
    built: Built,
}

/// What is built into a first process before its order comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Built {
    /// The size of its `/tmp`.
    pub(crate) tmp_bytes: u64,
    /// Whether its program may change the staged workspace.
    pub(crate) writes: bool,
}

impl View {
    /// Starts a command from which these paths are hidden.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        masks: &[Vec<u8>],
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
        self.cgroups.bound(&run.limits).at(Step::Cgroup)?;
        if built.writes && !self.staged {
            return Err(Failed { step: Step::Staging, errno: Errno::ROFS }.into());
        }
        let fits = |standby: &Standby| standby.built == built && !standby.first.has_ended();
        let first = match self.standby.take().filter(fits) {
            Some(standby) => standby.first,
            None => self.give_birth(built)?,
        };
        let input = streams.input.as_ref().unwrap_or(&self.nothing);
        let descriptors = [input.as_fd(), streams.output.as_fd(), streams.errors.as_fd()];
        match socket::send(first.line.as_fd(), &run.encode(), &descriptors) {
            // It has ended without waiting for an order; its last words say why.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(first),
            Err(errno) => Err(Failed { step: Step::Order, errno }.into()),
        }
    }

    /// Makes the first process of the next call. Should that fail, the next call tries again, and
    /// says so if it fails again.
    pub(crate) fn stand_by(&mut self, built: Built) {
        if self.standby.is_none() {
            self.standby = self.give_birth(built).ok().map(|first| Standby { first, built });
        }
    }

    fn give_birth(&self, built: Built) -> Result<First, Failed> {
        let (line, other_end) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .at(Step::Lifeline)?;
        let request = CloneRequest {
            namespaces: u64::try_from(NAMESPACES).unwrap_or_default(),
            cgroup: self.cgroups.born_into(),
        };
        match kernel::give_birth(&request).at(Step::Birth)? {
            Birth::Child => first::live(self, &line, &other_end, built),
            Birth::Parent(pid, handle) => Ok(First { pid, handle, line }),
        }
    }
}

impl First {
    /// Its number, as the executor sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// A handle to end it by.
    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Where it says how it went.
    pub(crate) fn line(&self) -> &OwnedFd {
        &self.line
    }

    /// What it said before it ended; none if it was killed.
    ///
    /// # Errors
    /// It said something that is not a verdict.
    pub(crate) fn verdict(&self) -> Result<Option<Verdict>, Refusal> {
        match socket::receive(self.line.as_fd()) {
            Ok(Some(message)) => decode_verdict(&message.bytes)
                .map(Some)
                .map_err(|_| Failed { step: Step::Silence, errno: Errno::BADMSG }.into()),
            // A process that is killed with an unread order resets the line.
            Ok(None) | Err(Errno::CONNRESET) => Ok(None),
            Err(errno) => Err(Failed { step: Step::Silence, errno }.into()),
        }
    }

    fn has_ended(&self) -> bool {
        let mut files = [PollFd::new(&self.handle, PollFlags::IN)];
        waiting::wait(&mut files, Some(Duration::ZERO)) != Ok(0)
    }

    /// Kills every process of the call, by killing the first one. That it is already gone is fine.
    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.kill();
        let _ = kernel::wait_for(self.pid);
    }
}
