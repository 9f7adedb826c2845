//! The starter's side of a whole agent.

use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use capsule_base::limits;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, kill_process, pidfd_open};

use super::refusal::error_text;
use super::view::host_path;
use super::{AGENT, EXIT_TIMEOUT, Executor};
use crate::linux::kernel;
use crate::linux::poll;
use crate::linux::protocol::socket::{self, Message};
use crate::linux::protocol::{AgentMountPath, AgentOrder, AgentReply, AgentRequest};
use crate::{
    AgentEvent, AgentLaunch, AgentNetwork, CommandListeners, EXECUTOR_ARGUMENT, SandboxError,
};

/// An agent that was made ready or runs. Dropping it ends the agent and everything that it started.
#[derive(Debug)]
pub struct RunningAgent {
    process: rustix::process::Pid,
    /// None once it is being ended.
    line: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
    listeners: Option<CommandListeners>,
}

impl RunningAgent {
    /// Makes an agent ready, up to the point at which its program would be started.
    ///
    /// # Errors
    /// A layer is missing on this machine, or a step of the set-up failed.
    pub(super) fn prepare(launch: &AgentLaunch) -> Result<Self, SandboxError> {
        let arguments = [OsStr::new(EXECUTOR_ARGUMENT), OsStr::new(AGENT)];
        let mut executor = Executor::start_with(Path::new("/proc/self/exe"), &arguments)?;
        let (Some(process), Some(line)) = (executor.child.take(), executor.socket.take()) else {
            return Err(SandboxError::Start { reason: "it has no process".to_owned() });
        };
        let mut agent = Self { process, line: Some(line), terminal: None, listeners: None };
        let streams: Vec<_> = launch.streams.iter().flatten().map(OwnedFd::as_fd).collect();
        let request = agent_request(launch)?.encode();
        let sent = socket::send(agent.line()?, &request, &streams);
        sent.map_err(|errno| SandboxError::Start { reason: error_text(errno) })?;
        let (reply, mut descriptors) =
            agent.receive(Some(Instant::now() + limits::SANDBOX_SETUP))?;
        let ports = launch.network.ports();
        agent.terminal = descriptors.split_off(ports.len().min(descriptors.len())).pop();
        let is_served = descriptors.len() == ports.len();
        agent.listeners = listeners(ports, descriptors);
        let has_terminal = launch.streams.iter().any(Option::is_none);
        match reply {
            AgentReply::Ready if agent.terminal.is_some() == has_terminal && is_served => Ok(agent),
            AgentReply::Failed(failed) => Err(SandboxError::Setup {
                step: failed.step.text(),
                reason: crate::linux::backend::namespaces::setup_error_reason(failed),
            }),
            _ => Err(SandboxError::ExecutorDied { reason: "it spoke out of turn" }),
        }
    }

    /// The other side of its terminal, if it has one.
    #[must_use]
    pub fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.terminal.as_ref().map(OwnedFd::as_fd)
    }

    /// The sockets of the ports of its loopback that are served from outside, if it has any.
    #[must_use]
    pub const fn listeners(&self) -> Option<&CommandListeners> {
        self.listeners.as_ref()
    }

    /// Has its program begin.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn begin(&self) -> Result<(), SandboxError> {
        self.order(AgentOrder::Begin)
    }

    /// Has it go on after it was stopped.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn resume(&self) -> Result<(), SandboxError> {
        self.order(AgentOrder::Continue)
    }

    /// Sends a signal to its program.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn signal(&self, signal: i32) -> Result<(), SandboxError> {
        self.order(AgentOrder::Signal(signal))
    }

    /// A descriptor that can be read when there is an event.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn events(&self) -> Result<BorrowedFd<'_>, SandboxError> {
        self.line()
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// The program cannot be executed, or the agent has ended and its end is not known.
    pub fn next_event(&mut self) -> Result<AgentEvent, SandboxError> {
        match self.receive(None)?.0 {
            AgentReply::Stopped(signal) => Ok(AgentEvent::Stopped(signal)),
            AgentReply::Ended(status) => {
                let status = ExitStatus::from_raw(status);
                Ok(match (status.code(), status.signal()) {
                    (Some(code), _) => AgentEvent::Exited(code),
                    (None, signal) => AgentEvent::Killed(signal.unwrap_or(Signal::KILL.as_raw())),
                })
            }
            AgentReply::NotExecutable(Errno::NOENT) => {
                Err(SandboxError::ProgramMissing { stage: 0 })
            }
            AgentReply::NotExecutable(errno) => {
                Err(SandboxError::NotExecutable { stage: 0, reason: error_text(errno) })
            }
            AgentReply::Failed(failed) => Err(SandboxError::Setup {
                step: failed.step.text(),
                reason: error_text(failed.errno),
            }),
            AgentReply::Ready => Err(SandboxError::ExecutorDied { reason: "it spoke out of turn" }),
        }
    }

    fn line(&self) -> Result<BorrowedFd<'_>, SandboxError> {
        let line = self.line.as_ref().map(OwnedFd::as_fd);
        line.ok_or(SandboxError::ExecutorDied { reason: "it was given up before" })
    }

    fn order(&self, order: AgentOrder) -> Result<(), SandboxError> {
        match socket::send(self.line()?, &order.encode(), &[]) {
            // What it said before it ended is heard next.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(_) => Err(SandboxError::ExecutorDied { reason: "it does not listen" }),
        }
    }

    fn receive(&self, until: Option<Instant>) -> Result<(AgentReply, Vec<OwnedFd>), SandboxError> {
        let died = |reason| SandboxError::ExecutorDied { reason };
        if let Some(end) = until {
            let line = self.line()?;
            let mut files = [PollFd::new(&line, PollFlags::IN)];
            let wait = || {
                let left = end.saturating_duration_since(Instant::now());
                poll::wait(&mut files, Some(left))
            };
            match rustix::io::retry_on_intr(wait) {
                Ok(0) => return Err(died("it did not answer in time")),
                Ok(_) => {}
                Err(_) => return Err(died("it cannot be waited for")),
            }
        }
        let line = self.line()?;
        match rustix::io::retry_on_intr(|| socket::receive(line)) {
            Ok(Some(Message { bytes, descriptors })) => match AgentReply::decode(&bytes) {
                Ok(reply) => Ok((reply, descriptors)),
                Err(_) => Err(died("it sent an unknown message")),
            },
            Ok(None) => Err(died("it ended")),
            Err(_) => Err(died("it cannot be heard")),
        }
    }
}

impl Drop for RunningAgent {
    /// Closes the line, whereupon the first process of the agent ends everything.
    fn drop(&mut self) {
        self.line = None;
        let ended = pidfd_open(self.process, PidfdFlags::empty()).is_ok_and(|handle| {
            let mut files = [PollFd::new(&handle, PollFlags::IN)];
            let waited = rustix::io::retry_on_intr(|| poll::wait(&mut files, Some(EXIT_TIMEOUT)));
            waited.is_ok_and(|ready| ready > 0)
        });
        if !ended {
            // It is ours until it was waited for, so the number means no other process.
            let _ = kill_process(self.process, Signal::KILL);
        }
        let _ = kernel::wait_for(self.process);
    }
}

/// The sockets of an agent's ports, the proxy's first.
fn listeners(ports: &[u16], sockets: Vec<OwnedFd>) -> Option<CommandListeners> {
    let mut all = ports.iter().copied().zip(sockets.into_iter().map(TcpListener::from));
    let (proxy_port, proxy) = all.next()?;
    Some(CommandListeners { proxy, proxy_port, loopback: all.collect() })
}

/// A launch in the words of the executor.
fn agent_request(launch: &AgentLaunch) -> Result<AgentRequest, SandboxError> {
    let path = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
    let text = |text: &OsString| text.as_bytes().to_vec();
    let mount = |mount: &crate::AgentMount| {
        Ok(AgentMountPath {
            path: path(&mount.path),
            place: host_path(&mount.source)?,
            hidden: mount.hidden.iter().map(path).collect(),
            discards_writes: mount.discards_writes,
        })
    };
    let request = AgentRequest {
        workspace: host_path(&launch.workspace)?,
        read_only: launch.read_only.iter().map(text).collect(),
        mounts: launch.mounts.iter().map(mount).collect::<Result<_, _>>()?,
        links: launch.links.iter().map(|(link, target)| [path(link), path(target)]).collect(),
        files: launch.files.iter().map(|(name, content)| [path(name), content.clone()]).collect(),
        home: path(&launch.home),
        has_tmp: launch.has_tmp,
        ports: match &launch.network {
            AgentNetwork::Host => None,
            AgentNetwork::Private(ports) => Some(ports.clone()),
        },
        program: path(&launch.program),
        arguments: launch.argv.iter().map(text).collect(),
        environment: launch
            .environment
            .iter()
            .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
            .collect(),
        given: [0, 1, 2].map(|at| launch.streams.get(at).is_some_and(Option::is_some)),
    };
    let absolute = [&launch.program, &launch.home].into_iter();
    let absolute = absolute.chain(launch.mounts.iter().map(|mount| &mount.path));
    let all_absolute = absolute.clone().all(|path| path.is_absolute());
    if launch.argv.is_empty() || !all_absolute {
        return Err(SandboxError::Launch { problem: "the agent makes no sense" });
    }
    Ok(request)
}
