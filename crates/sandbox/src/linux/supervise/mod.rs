//! The deciding process's side: starting an executor, telling it what to show and what to run, and
//! reading what comes of it.

mod agent;
mod call;
mod capture;
mod forked_executor;
mod refusal;
mod request;
mod view;

use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use capsule_base::limits;
use capsule_core::confinement::{EnforcementLevel, LimitStatus, SandboxStatus, SandboxTier};
use capsule_core::lifecycle::UnconfinedPermit;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::linux::backend::{self, system};
use crate::linux::doctor;
use crate::linux::executor::{self, cgroup};
use crate::linux::kernel;
use crate::linux::poll;
use crate::linux::protocol::socket::{self, Message};
use crate::linux::protocol::{ExecutorError, ExecutorReply, ExecutorRequest, SetupError, Step};
pub use agent::RunningAgent;
pub use call::{PreparedCommand, RunningCommand};
use refusal::{error_text, refusal_error};

use crate::{
    AgentLaunch, CommandListeners, CommandResult, CommandWatcher, EXECUTOR_ARGUMENT, Launch,
    SandboxBackend, SandboxError, SandboxView, SelfTestResult, StagingMount,
};

/// The second hidden argument: the executor confines nothing, and serves one program.
const UNCONFINED: &str = "unconfined";
/// The same: the executor serves one agent.
const AGENT: &str = "agent";
/// How long an executor may take to end by itself once its socket is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle on the executor of one run. Dropping it ends the executor and whatever it still runs.
///
/// It may be handed to another thread: the executor ends with the process that started it, not with
/// the thread.
#[derive(Debug)]
pub struct Executor {
    /// None once it was waited for.
    child: Option<Pid>,
    /// None once the executor was given up.
    socket: Option<OwnedFd>,
    status: Option<SandboxStatus>,
    /// The weakest walls that will do.
    floor: SandboxTier,
    /// Where commands see the folder in which they may write.
    private_directories: [OsString; 2],
    /// It was started for a program that nothing confines, and confines none.
    is_unconfined: bool,
    /// A view that was asked for, and whose answer was not waited for so far: what it names is held
    /// open until then.
    pending_view: Option<SandboxView>,
    /// What it is in the middle of.
    busy: ExecutorActivity,
    /// What the output of commands is read into, once one was read: as large as it is, the heap would
    /// be given back to the kernel and grown again with every command.
    buffer: Option<Vec<u8>>,
}

/// What an executor is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExecutorActivity {
    /// Nothing.
    Idle,
    /// It has made a command ready, which has not begun.
    Prepared,
    /// A command has begun, and its end was not heard, because the caller was torn away from it.
    Running,
}

impl Executor {
    /// Starts a given program as an executor, with all its arguments; for tests and measures.
    ///
    /// # Errors
    /// The process could not be started.
    pub fn start_with(program: &Path, arguments: &[&OsStr]) -> Result<Self, SandboxError> {
        let failed = |reason: String| SandboxError::Start { reason };
        let (here, there) = sockets()?;
        // Without hooks between fork and exec, so that the memory of this process is not copied.
        let child = Command::new(program)
            .arg0(executor::PROCESS_NAME)
            .args(arguments)
            .env_clear()
            .stdin(there)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self::new(i32::try_from(child.id()).ok().and_then(Pid::from_raw), here))
    }

    fn new(child: Option<Pid>, socket: OwnedFd) -> Self {
        Self {
            child,
            socket: Some(socket),
            status: None,
            floor: SandboxTier::default(),
            private_directories: Default::default(),
            is_unconfined: false,
            pending_view: None,
            busy: ExecutorActivity::Idle,
            buffer: None,
        }
    }

    fn send_view(&mut self, view: &SandboxView) -> Result<(), SandboxError> {
        self.floor = view.floor;
        self.require_status()?;
        let request = view::enter_request(view)?;
        self.send(&ExecutorRequest::Enter(request), &[])
    }

    /// Waits for the answer to that.
    fn receive_view_reply(&mut self, laid: bool) -> Result<Option<OwnedFd>, SandboxError> {
        match self.expect_answer()? {
            (ExecutorReply::Entered { private }, mut shared)
                if shared.len() == usize::from(laid) =>
            {
                self.private_directories = private.map(OsString::from_vec);
                Ok(shared.pop())
            }
            (
                ExecutorReply::Refused(ExecutorError::Failed(SetupError {
                    step: Step::Staging,
                    errno,
                })),
                _,
            ) => Err(SandboxError::Overlay { reason: error_text(errno) }),
            (ExecutorReply::Refused(refusal), _) => Err(refusal_error(refusal, &[])),
            _ => Err(self.kill("it spoke out of turn")),
        }
    }

    /// Has it be in the middle of nothing.
    fn make_idle(&mut self) -> Result<(), SandboxError> {
        self.require_status()?;
        self.wait_for_view()?;
        match self.busy {
            ExecutorActivity::Idle => Ok(()),
            ExecutorActivity::Prepared => self.cancel_prepared(),
            ExecutorActivity::Running => Err(self.kill("it was left in the middle of a command")),
        }
    }

    /// Takes back a command that never began.
    fn cancel_prepared(&mut self) -> Result<(), SandboxError> {
        self.send_request(&ExecutorRequest::End)?;
        match self.expect_reply()? {
            ExecutorReply::Ended(_) | ExecutorReply::Refused(_) => {
                self.busy = ExecutorActivity::Idle;
                Ok(())
            }
            _ => Err(self.kill("it spoke out of turn")),
        }
    }

    /// The number of the executor's process, for diagnostics; 0 once it was given up.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Every wall must be there, down to the floor.
    fn require_status(&mut self) -> Result<(), SandboxError> {
        let (floor, open) = (self.floor, self.is_unconfined);
        let status = self.sandbox_status()?;
        if let Some(gap) = status.missing_layer(status.tier.max(floor)).filter(|_| !open) {
            return Err(SandboxError::Unavailable { layer: gap.layer, reason: gap.detail.clone() });
        }
        match status.limits.iter().find(|bound| bound.level == EnforcementLevel::Missing) {
            Some(gap) => {
                Err(SandboxError::LimitUnavailable { bound: gap.limit, reason: gap.detail.clone() })
            }
            None => Ok(()),
        }
    }

    fn socket(&self) -> Result<&OwnedFd, SandboxError> {
        self.socket.as_ref().ok_or(SandboxError::ExecutorDied { reason: "it was given up before" })
    }

    fn send(
        &mut self,
        request: &ExecutorRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SandboxError> {
        let sent = socket::send(self.socket()?.as_fd(), &request.encode(), descriptors);
        sent.map_err(|errno| match errno {
            Errno::MSGSIZE => SandboxError::Launch { problem: "the launch is too large" },
            _ => self.kill("it does not listen"),
        })
    }

    /// Asks for the end of the command, or has its time stop or go on. Should the executor be gone, what it said
    /// before, or that it ended, is heard next.
    fn send_request(&mut self, request: &ExecutorRequest) -> Result<(), SandboxError> {
        match socket::send(self.socket()?.as_fd(), &request.encode(), &[]) {
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(_) => Err(self.kill("it does not listen")),
        }
    }

    fn expect_reply(&mut self) -> Result<ExecutorReply, SandboxError> {
        self.expect_answer().map(|(reply, _)| reply)
    }

    /// Waits for a reply to the set-up with its descriptors, but not for ever.
    fn expect_answer(&mut self) -> Result<(ExecutorReply, Vec<OwnedFd>), SandboxError> {
        let end = Instant::now() + limits::SANDBOX_SETUP;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut files = [PollFd::new(self.socket()?, PollFlags::IN)];
            match poll::wait(&mut files, Some(left)) {
                Ok(0) => return Err(self.kill("it did not answer in time")),
                Ok(_) => return self.receive(),
                Err(Errno::INTR) => {}
                Err(_) => return Err(self.kill("it cannot be waited for")),
            }
        }
    }

    /// Receives one reply with its descriptors.
    fn receive(&mut self) -> Result<(ExecutorReply, Vec<OwnedFd>), SandboxError> {
        let received = loop {
            match socket::receive(self.socket()?.as_fd()) {
                Err(Errno::INTR) => {}
                received => break received,
            }
        };
        match received {
            Ok(Some(Message { bytes, descriptors })) => match ExecutorReply::decode(&bytes) {
                Ok(reply) => Ok((reply, descriptors)),
                Err(_) => Err(self.kill("it sent an unknown message")),
            },
            Ok(None) => Err(self.kill("it ended")),
            Err(_) => Err(self.kill("it cannot be heard")),
        }
    }

    /// Ends the executor for good: the kernel ends its commands with it. Gives the error to return.
    fn kill(&mut self, reason: &'static str) -> SandboxError {
        self.socket = None;
        if let Some(child) = self.child.take() {
            // It is ours until it was waited for, so the number means no other process.
            let _ = kill_process(child, Signal::KILL);
            let _ = kernel::wait_for(child);
            cgroup::remove_leftover(child);
        }
        SandboxError::ExecutorDied { reason }
    }
}

impl SandboxBackend for Executor {
    type Prepared = PreparedCommand;
    type Running = RunningCommand;

    fn start() -> Result<Self, SandboxError> {
        Self::start_with(Path::new("/proc/self/exe"), &[OsStr::new(EXECUTOR_ARGUMENT)])
    }

    fn start_forked() -> Result<Self, SandboxError> {
        let (child, socket) = forked_executor::fork_executor(sockets()?)?;
        Ok(Self::new(Some(child), socket))
    }

    fn process(&self) -> Option<i32> {
        self.child.map(Pid::as_raw_pid)
    }

    fn sandbox_status(&mut self) -> Result<&SandboxStatus, SandboxError> {
        if self.status.is_none() {
            match self.expect_reply()? {
                ExecutorReply::Status(status) => self.status = Some(status),
                _ => return Err(self.kill("it spoke out of turn")),
            }
        }
        self.status.as_ref().ok_or(SandboxError::ExecutorDied { reason: "it said nothing" })
    }

    fn enter(&mut self, view: SandboxView) -> Result<Option<OwnedFd>, SandboxError> {
        let laid = matches!(view.staging, Some(StagingMount::Overlay { .. }));
        self.send_view(&view)?;
        self.receive_view_reply(laid)
    }

    fn begin_enter(&mut self, view: SandboxView) -> Result<(), SandboxError> {
        if view.staging.is_some() {
            return Err(SandboxError::Launch { problem: "a staged workspace is waited for" });
        }
        self.send_view(&view)?;
        self.pending_view = Some(view);
        Ok(())
    }

    fn wait_for_view(&mut self) -> Result<(), SandboxError> {
        match self.pending_view.take() {
            Some(_held) => self.receive_view_reply(false).map(drop),
            None => Ok(()),
        }
    }

    fn listen(&mut self, ports: &[u16]) -> Result<CommandListeners, SandboxError> {
        self.wait_for_view()?;
        self.send(&ExecutorRequest::Listen { ports: ports.to_vec() }, &[])?;
        let (port, mut sockets) = match self.expect_answer()? {
            (ExecutorReply::Listening { port }, sockets) => (port, sockets.into_iter()),
            (ExecutorReply::Refused(refusal), _) => return Err(refusal_error(refusal, &[])),
            _ => return Err(self.kill("it spoke out of turn")),
        };
        match (sockets.next(), sockets.len() == ports.len()) {
            (Some(proxy), true) => Ok(CommandListeners {
                proxy: proxy.into(),
                proxy_port: port,
                loopback: ports.iter().copied().zip(sockets.map(TcpListener::from)).collect(),
            }),
            _ => Err(self.kill("it listens elsewhere")),
        }
    }

    fn fork_for_background(&mut self) -> Result<Self, SandboxError> {
        self.make_idle()?;
        self.send(&ExecutorRequest::Fork, &[])?;
        let (reply, mut sockets) = self.expect_answer()?;
        match (reply, sockets.pop()) {
            (ExecutorReply::Forked, Some(socket)) => {
                let mut copy = Self::new(None, socket);
                (copy.status, copy.floor) = (self.status.clone(), self.floor);
                copy.private_directories.clone_from(&self.private_directories);
                Ok(copy)
            }
            (ExecutorReply::Refused(refusal), _) => Err(refusal_error(refusal, &[])),
            _ => Err(self.kill("it spoke out of turn")),
        }
    }

    fn prepare(&mut self, launch: Launch) -> Result<PreparedCommand, SandboxError> {
        self.make_idle()?;
        let held = self.prepare_call(launch)?;
        self.busy = ExecutorActivity::Prepared;
        Ok(held)
    }

    fn start_command(&mut self, held: PreparedCommand) -> Result<RunningCommand, SandboxError> {
        self.busy = ExecutorActivity::Running;
        self.start_prepared(held)
    }

    fn wait(
        &mut self,
        running: RunningCommand,
        watch: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError> {
        let ended = self.wait_for_call(running, watch);
        self.busy = ExecutorActivity::Idle;
        ended
    }

    fn detach(mut self) {
        self.socket = None;
    }

    fn run_unconfined(
        permit: &UnconfinedPermit<'_>,
        view: SandboxView,
        launch: Launch,
        watch: &mut dyn CommandWatcher,
    ) -> Result<(CommandResult, Vec<LimitStatus>), SandboxError> {
        let [_] = launch.stages.as_slice() else {
            return Err(SandboxError::Launch { problem: "only one program can run unconfined" });
        };
        let program = Path::new("/proc/self/exe");
        let words = [OsStr::new(EXECUTOR_ARGUMENT), OsStr::new(UNCONFINED)];
        let mut executor = Self::start_with(program, &words)?;
        executor.is_unconfined = true;
        executor.enter(view)?;
        let exit = executor.run(Launch { limits: *permit.limits, ..launch }, watch)?;
        let limits = exit.sandbox_status.limits.clone();
        Ok((exit, limits))
    }

    fn prepare_agent(launch: &AgentLaunch) -> Result<RunningAgent, SandboxError> {
        RunningAgent::prepare(launch)
    }

    fn executor_main() -> ExitCode {
        let mut words = std::env::args_os().skip(2);
        match words.next() {
            Some(word) if word == doctor::PROBE_ARGUMENT => doctor::run_probe(words),
            Some(word) if word == UNCONFINED => executor::serve_unconfined(),
            Some(word) if word == AGENT => backend::namespaces::serve_agent(),
            _ => executor::serve(),
        }
    }

    fn use_builtin_name_lookup() {
        kernel::use_builtin_resolvers();
    }

    fn is_system_path(path: &Path) -> bool {
        system::is_system_path(path)
    }

    fn mount_conflict(root: &Path, is_direct: bool) -> Option<&'static str> {
        system::mount_conflict(root, is_direct)
    }

    fn private_directory(path: &Path) -> Option<&'static str> {
        system::private_directory(path)
    }

    fn self_test() -> Vec<SelfTestResult> {
        doctor::self_test()
    }

    fn try_staging(place: &Path) -> SelfTestResult {
        doctor::try_staging(place)
    }

    fn try_copying(place: &Path) -> SelfTestResult {
        doctor::try_copying(place)
    }

    fn try_overlay(place: &Path, workspace: &Path) -> Result<(), String> {
        doctor::try_overlay(place, workspace)
    }
}

impl Drop for Executor {
    /// Closes the socket, whereupon the executor tidies up and ends.
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else {
            return; // it was given up and waited for, or parted with
        };
        if self.child.is_none() {
            // A copy of an executor, which is waited for by that one; its end of the socket closes when it ends.
            let _ = shutdown(&socket, Shutdown::Write);
            let mut files = [PollFd::new(&socket, PollFlags::empty())];
            let _ = rustix::io::retry_on_intr(|| poll::wait(&mut files, Some(EXIT_TIMEOUT)));
            return;
        }
        drop(socket);
        let handle = self.child.and_then(|child| pidfd_open(child, PidfdFlags::empty()).ok());
        let ended = handle.is_some_and(|handle| {
            let mut files = [PollFd::new(&handle, PollFlags::IN)];
            let waited = rustix::io::retry_on_intr(|| poll::wait(&mut files, Some(EXIT_TIMEOUT)));
            waited.is_ok_and(|ready| ready > 0)
        });
        if ended {
            let _ = self.child.take().map(kernel::wait_for);
        } else {
            self.kill("it did not end by itself");
        }
    }
}

/// The two ends of what is said between an executor and this process.
fn sockets() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|errno| SandboxError::Start { reason: error_text(errno) })
}
