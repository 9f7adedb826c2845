//! The first process of a call, as the executor holds it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::linux::kernel;
use crate::linux::poll;
use crate::linux::protocol::{
    AtStep as _, CommandMessage, DirectPaths, ExecutorError, InitResult, SetupError, StartGate,
    Step, decode_init_result, socket,
};

/// The standard streams of a command, and what it waits for.
pub(crate) struct Streams {
    pub(crate) start_gate: StartGate,
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

/// What of the workspace is otherwise for one command.
#[derive(Clone, Copy)]
pub(crate) struct CommandPaths<'a> {
    /// Paths that are hidden.
    pub(crate) hidden: &'a [Vec<u8>],
    /// What it may change in the workspace itself.
    pub(crate) direct: Option<&'a DirectPaths>,
}

/// What is built into a first process before its order comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct InitOptions {
    /// The size of its `/tmp`.
    pub(crate) tmp_bytes: u64,
    /// The memory of which it is told.
    pub(crate) memory_bytes: u64,
    /// Whether its program may change the staged workspace.
    pub(crate) writes: bool,
    /// Whether links in `/tmp` lead it nowhere.
    pub(crate) ignores_tmp_links: bool,
}

/// The first process of a call. When it is dropped, it and all processes of the call are ended.
pub(crate) struct InitProcess {
    pid: Pid,
    handle: OwnedFd,
    /// Over which it gets its order and says how it went. Nobody else has this end, so that it
    /// closes when the executor ends.
    control_socket: OwnedFd,
    end_method: EndMethod,
}

/// How a call is ended from outside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndMethod {
    /// Its first process is killed, and the kernel kills all others with it.
    Killed,
    /// Its first process is hung up on, kills all others and ends.
    Disconnected,
}

/// The line between the executor and a first process: the executor's end, and the other.
///
/// # Errors
/// The kernel refused.
pub(super) fn control_sockets() -> Result<(OwnedFd, OwnedFd), SetupError> {
    let line = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    line.at(Step::Lifeline)
}

impl InitProcess {
    pub(super) fn new(pid: Pid, handle: OwnedFd, line: OwnedFd, ending: EndMethod) -> Self {
        Self { pid, handle, control_socket: line, end_method: ending }
    }

    /// Tells it what to do; `nothing` is the standard input of a command that is given none. One that
    /// has ended without waiting for an order has said why.
    ///
    /// # Errors
    /// It cannot be told.
    pub(super) fn send_request(
        &self,
        run: &CommandMessage,
        Streams { start_gate: begin, input, output, error: errors }: &Streams,
        nothing: &OwnedFd,
    ) -> Result<(), ExecutorError> {
        let input = input.as_ref().unwrap_or(nothing);
        let streams = [begin.as_fd(), input.as_fd(), output.as_fd(), errors.as_fd()];
        match socket::send(self.control_socket.as_fd(), &run.encode(), &streams) {
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(SetupError { step: Step::Order, errno }.into()),
        }
    }

    /// Its number, as the executor sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Where its end can be seen.
    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Where it says how it went.
    pub(crate) fn control_socket(&self) -> &OwnedFd {
        &self.control_socket
    }

    /// What it said before it ended; none if it was killed.
    ///
    /// # Errors
    /// It said something that is not a verdict.
    pub(crate) fn result(&self) -> Result<Option<InitResult>, ExecutorError> {
        let received = match socket::receive(self.control_socket.as_fd()) {
            // One that ends without having read its order resets the line; what it said comes after.
            Err(Errno::CONNRESET) => socket::receive(self.control_socket.as_fd()),
            received => received,
        };
        match received {
            Ok(Some(message)) => decode_init_result(&message.bytes)
                .map(Some)
                .map_err(|_| SetupError { step: Step::Silence, errno: Errno::BADMSG }.into()),
            // A process that is killed with an unread order resets the line.
            Ok(None) | Err(Errno::CONNRESET) => Ok(None),
            Err(errno) => Err(SetupError { step: Step::Silence, errno }.into()),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut files = [PollFd::new(&self.handle, PollFlags::IN)];
        poll::wait(&mut files, Some(Duration::ZERO)) != Ok(0)
    }

    /// Waits for its end, or until there is something to read from the socket; whether it has ended.
    pub(super) fn ends_before(&self, socket: &OwnedFd) -> bool {
        let mut files =
            [PollFd::new(&self.handle, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        let waited = rustix::io::retry_on_intr(|| poll::wait(&mut files, None));
        // What cannot be waited for is dropped, which waits in its own way.
        waited.is_err() || !files[0].revents().is_empty()
    }

    /// Ends every process of the call. That it is already gone is fine.
    pub(crate) fn end(&self) {
        match self.end_method {
            EndMethod::Killed => drop(pidfd_send_signal(&self.handle, Signal::KILL)),
            EndMethod::Disconnected => drop(shutdown(&self.control_socket, Shutdown::Write)),
        }
    }
}

impl Drop for InitProcess {
    fn drop(&mut self) {
        self.end();
        let _ = kernel::wait_for(self.pid);
    }
}
