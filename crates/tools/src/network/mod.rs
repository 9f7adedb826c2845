//! The network of a running command: a proxy that reaches the hosts that the policy names.
//!
//! A command has a network of its own in which nothing listens but this proxy, so whatever else it tries to
//! reach is not there. The proxy's socket was made in that network, and is accepted from here. Each connection
//! is served by a thread, which judges the host, looks its name up, judges every address, and has the request
//! written down before it dials. The thread of the call does the writing, while it waits for the command.

mod agent;
mod connection;
mod dial;
mod hello;
mod relay;
mod request;
mod shared;
mod upstream;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::pipe;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::journal::ConnectionTarget;
use capsule_core::lifecycle::{AllowedBy, ConnectionRecord, Permit};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{HostQuestion, HostScope};
use capsule_sandbox::{CommandListeners, Launch, LaunchStage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

pub use self::agent::{AgentConnections, AgentHost};
use self::shared::{Ended, Message, Shared};
use self::upstream::UpstreamProxy;

/// How long connections may go on when their command has ended: what it sent last is still on its way.
const LINGER: Duration = Duration::from_secs(1);
/// How long the threads may take to end after that. One that waits for an answer dials nothing any more.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait where a connection cannot be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// The memory of a thread's stack; it holds no buffers.
const STACK_BYTES: usize = 128 * 1024;
/// The descriptors of a connection: to the command, and to the host.
const CONNECTION_DESCRIPTORS: u64 = 2;
/// The descriptors that are left to everything else in this process.
const OTHER_DESCRIPTORS: u64 = 512;

/// The sockets in the network of a run's commands, shared by its calls.
pub(crate) type RunListeners = Rc<CommandListeners>;

/// The connections of one command.
pub(crate) struct CommandNetwork {
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    /// Ends the threads that accept connections when it is closed.
    stop: Option<OwnedFd>,
    /// Has a byte for each message.
    attention: OwnedFd,
    /// How many connections were written down.
    recorded: u64,
    /// The answers about hosts that hold for the whole command.
    answers: BTreeMap<String, Result<AllowedBy, CodedError>>,
    /// Why the command is ended, where a person said that nothing may follow.
    stopped: Option<CodedError>,
    /// The hosts that were refused, as JSON, each with the first reason.
    refused: BTreeMap<String, Value>,
}

/// What is told of the connections of a command that has ended.
#[derive(Debug, Default)]
pub(crate) struct NetworkReport {
    /// The hosts that were refused, as JSON; the first of many.
    pub(crate) refused: Vec<Value>,
    /// Why the command was ended, where a person said that nothing may follow.
    pub(crate) stopped: Option<CodedError>,
}

impl CommandNetwork {
    /// Begins to serve the connections of a command that has not begun, until [`CommandNetwork::finish`]. `variable` gives
    /// the user's variables, which may name a proxy.
    ///
    /// # Errors
    /// The kernel has no descriptor or thread left.
    pub(crate) fn start(
        listeners: &CommandListeners,
        scope: &HostScope,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, CodedError> {
        let unable = |error: std::io::Error| {
            CodedError::new(Code::SandboxFailed, format!("the proxy cannot be started: {error}"))
        };
        // Each attention is for one message, so that the command's time and output are looked at in between.
        let (attention, wake) = pipe().map_err(unable)?;
        ioctl_fionbio(&attention, true).map_err(|errno| unable(errno.into()))?;
        ioctl_fionbio(&wake, true).map_err(|errno| unable(errno.into()))?;
        let (ended, stop) = pipe().map_err(unable)?;
        let shared = Arc::new(Shared::new(
            scope.clone(),
            UpstreamProxy::from_variables(variable),
            (wake.into(), ended.into()),
        ));
        let (sender, messages) = channel();
        let network = Self {
            shared: Arc::clone(&shared),
            messages,
            attention: attention.into(),
            stop: Some(stop.into()),
            recorded: 0,
            answers: BTreeMap::new(),
            stopped: None,
            refused: BTreeMap::new(),
        };
        let open_ports = scope.loopback_ports();
        let loopback = listeners.loopback.iter().filter(|(port, _)| open_ports.contains(port));
        let loopback = loopback.map(|(port, listener)| (listener, Some(*port)));
        for (listener, port) in [(&listeners.proxy, None)].into_iter().chain(loopback) {
            let listener = listener.try_clone().map_err(unable)?;
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            spawn(move || accept_all(&listener, port, &shared, &sender)).map_err(unable)?;
        }
        Ok(network)
    }

    /// Can be read when a thread has something to say.
    pub(crate) fn attention(&self) -> BorrowedFd<'_> {
        self.attention.as_fd()
    }

    /// Writes down the next thing that a thread has to say, or asks about it; `pause` has the command's time stop.
    pub(crate) fn attend(&mut self, permit: &Permit<'_>, pause: &mut dyn FnMut()) {
        let _ = rustix::io::read(&self.attention, &mut [0; 1]);
        match self.messages.try_recv() {
            Ok(Message::Asked { question, reply }) => {
                let _ = reply.send(self.ask(&question, permit, pause));
            }
            Ok(message) => self.record(message, permit),
            Err(_) => {}
        }
    }

    /// The answer about a host: that which was given before for the command, or else a person's.
    fn ask(
        &mut self,
        question: &HostQuestion,
        permit: &Permit<'_>,
        pause: &mut dyn FnMut(),
    ) -> Result<AllowedBy, CodedError> {
        let host = question.address.host_and_port();
        let is_each = question.is_asked_each_time();
        if let Some(answer) = self.answers.get(&host).filter(|_| !is_each) {
            return answer.clone();
        }
        if self.shared.is_closed() {
            return Err(CodedError::new(Code::NetConnect, "the command is being ended"));
        }
        pause();
        let answer = permit.ask(question);
        if let Err(problem) = &answer
            && matches!(problem.code, Code::ApprovalStopped | Code::EngineFault)
        {
            self.shared.close();
            self.stopped = Some(problem.clone());
        }
        // A grant may be taken back while the command runs.
        let is_of_grant = matches!(answer, Ok(AllowedBy::Grant(_)));
        let is_kept = !is_each && !is_of_grant;
        if is_kept && self.answers.len() < limits::PROXY_CONNECTIONS {
            self.answers.insert(host, answer.clone());
        }
        answer
    }

    /// Whether nothing is served any more although the command runs, since something could not be written down.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.is_closed()
    }

    fn record(&mut self, message: Message, permit: &Permit<'_>) {
        let written = match message {
            // The command has ended: no person is asked for it any more.
            Message::Asked { .. } => return,
            Message::Requested { target, refused, reply } => {
                self.note_refused(&target, refused);
                let number = self.recorded + 1;
                let written = permit.record(ConnectionRecord::Requested(number, &target, refused));
                self.recorded += u64::from(written.is_ok());
                let _ = reply.send(written.is_ok().then_some(number));
                written
            }
            Message::Closed { connection, host, ended: Ended { sent, received, cut } } => {
                let code = cut.as_ref().map(|problem| problem.code);
                if let Some(CodedError { message, .. }) = cut {
                    let problem = Some(message);
                    let target = ConnectionTarget { host, problem, ..ConnectionTarget::default() };
                    self.note_refused(&target, code);
                }
                permit.record(ConnectionRecord::Closed(connection, sent, received, code))
            }
        };
        // The call ends with that error.
        if written.is_err() {
            self.shared.close();
        }
    }

    /// Remembers a host that was refused, to tell of it.
    fn note_refused(&mut self, target: &ConnectionTarget, refused: Option<Code>) {
        if let Some(code) = refused
            && self.refused.len() < limits::REFUSED_HOSTS
        {
            let report = json!({ "host": target.host, "code": code, "reason": target.problem });
            self.refused.entry(target.host.clone()).or_insert(report);
        }
    }

    /// Ends the connections of a command that has ended, and writes down what is left to say of them.
    pub(crate) fn finish(mut self, permit: &Permit<'_>) -> NetworkReport {
        self.stop = None;
        self.shared.close();
        if !self.record_until(Instant::now() + LINGER, permit) {
            self.shared.shut_down();
            self.record_until(Instant::now() + END_TIMEOUT, permit);
        }
        let refused = std::mem::take(&mut self.refused).into_values();
        NetworkReport { refused: refused.collect(), stopped: self.stopped.take() }
    }

    /// Writes down what the threads say until the last has ended, which is told, or until then.
    fn record_until(&mut self, end: Instant, permit: &Permit<'_>) -> bool {
        loop {
            match self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) => self.record(message, permit),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

impl Drop for CommandNetwork {
    /// Lets nothing be reached any more, also where the command never began.
    fn drop(&mut self) {
        self.shared.close();
        self.shared.shut_down();
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name("capsule-proxy".into()).stack_size(STACK_BYTES).spawn(work)?;
    Ok(())
}

/// Accepts connections until the command has ended. `port` is that of the host's loopback; none for the proxy.
fn accept_all(
    listener: &TcpListener,
    port: Option<u16>,
    shared: &Arc<Shared>,
    messages: &Sender<Message>,
) {
    loop {
        let mut files =
            [PollFd::new(listener, PollFlags::IN), PollFd::new(&shared.ended, PollFlags::empty())];
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let [is_listening, has_ended] = files.map(|file| !file.revents().is_empty());
        match listener.accept() {
            Ok((stream, _)) => serve(stream, port, shared, messages),
            Err(_) if has_ended => return,
            // No descriptor is left: one will be.
            Err(_) if is_listening => thread::sleep(ACCEPT_PAUSE),
            Err(_) => {}
        }
    }
}

/// Serves a connection on a thread of its own. One too many is told so.
fn serve(stream: TcpStream, port: Option<u16>, shared: &Arc<Shared>, messages: &Sender<Message>) {
    let stream = Arc::new(stream);
    let Some(connection) = shared.take_up(&stream, max_connections()) else { return };
    let messages = messages.clone();
    // Without a thread the connection is dropped, and with it closed.
    let _ = spawn(move || {
        if stream.set_nonblocking(false).is_ok() {
            connection::serve(&stream, port, &connection, &messages);
        }
    });
}

/// The most connections at once: a command that opens them without end leaves descriptors to this process.
fn max_connections() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = descriptors.saturating_sub(OTHER_DESCRIPTORS) / CONNECTION_DESCRIPTORS;
    usize::try_from(most).unwrap_or(usize::MAX).min(limits::PROXY_CONNECTIONS)
}

/// Drops the connections that were never accepted: they are of commands that have ended.
pub(crate) fn drop_pending(listeners: &CommandListeners) {
    for listener in listeners.all() {
        while listener.accept().is_ok() {}
    }
}

/// Adds the variables by which programs find the proxy, where an environment does not have them.
pub(crate) fn add_proxy_variables(launch: &mut Launch, port: u16) {
    let all = proxy_variables(port);
    for LaunchStage { environment, .. } in &mut launch.stages {
        for (name, value) in &all {
            if !environment.iter().any(|(known, _)| known == name.as_str()) {
                environment.push((name.into(), value.into()));
            }
        }
    }
}

/// The variables by which programs find the proxy. A name in small letters is what some programs take alone.
fn proxy_variables(port: u16) -> Vec<(String, String)> {
    const PROXY: [&str; 6] =
        ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];
    let proxy = format!("http://127.0.0.1:{port}");
    let all = PROXY.iter().map(|name| (*name, proxy.as_str()));
    let direct = DIRECT.iter().map(|name| (*name, "localhost,127.0.0.1,::1"));
    // Node looks at these variables only where it is told to.
    let all = all.chain(direct).chain([("NODE_USE_ENV_PROXY", "1")]);
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
