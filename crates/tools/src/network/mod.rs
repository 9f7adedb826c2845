//! The network of a running command: a proxy that reaches the hosts that the policy names.
//!
//! A command has a network of its own in which nothing listens but this proxy, so whatever else it tries to
//! reach is not there. The proxy's socket was made in that network, and is accepted from here. Each connection
//! is served by a thread, which judges the host, looks its name up, judges every address, and has the request
//! written down before it dials. The thread of the call does the writing, while it waits for the command.

mod connection;
mod dial;
mod relay;
mod request;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::journal::ConnectionTarget;
use capsule_core::lifecycle::Permit;
use capsule_core::outcome::CodedError;
use capsule_core::policy::HostScope;
use capsule_sandbox::CommandListeners;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// How long connections may go on when their command has ended: what it sent last is still on its way.
const LINGER: Duration = Duration::from_secs(1);
/// How long the threads may take to end after that. One that waits for a name to be looked up dials nothing any more.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait where a connection cannot be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// The memory of a thread's stack; it holds no buffers.
const STACK_BYTES: usize = 128 * 1024;

/// What a thread of a connection tells the thread of the call.
enum Message {
    /// The command wants to reach a host; the answer is the number of the connection once that is written down, and
    /// none if it cannot be.
    Requested { target: ConnectionTarget, refused: Option<Code>, reply: SyncSender<Option<u64>> },
    /// A connection ended.
    Closed { connection: u64, sent: u64, received: u64 },
}

/// What the threads of the connections share.
struct Shared {
    scope: Mutex<HostScope>,
    /// The open sockets of each connection, by a number of its own, to shut them down.
    open: Mutex<OpenSockets>,
    /// Written to when a message was sent.
    wake: OwnedFd,
    /// Hangs up when the command has ended.
    ended: OwnedFd,
}

#[derive(Default)]
struct OpenSockets {
    next: u64,
    sockets: BTreeMap<u64, Vec<TcpStream>>,
    /// The command has ended: nothing is dialled any more.
    is_closed: bool,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, OpenSockets> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the thread of the call something.
    fn send(&self, messages: &Sender<Message>, message: Message) {
        if messages.send(message).is_ok() {
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// The connections of one running command.
pub(crate) struct CommandNetwork<'n, 'p> {
    permit: &'n Permit<'p>,
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    /// Ends the threads that accept connections when it is closed.
    stop: Option<OwnedFd>,
    /// How many connections were written down.
    recorded: u64,
}

impl<'n, 'p> CommandNetwork<'n, 'p> {
    /// Begins to serve the connections of a command, until [`CommandNetwork::finish`].
    ///
    /// # Errors
    /// The kernel has no descriptor or thread left.
    pub(crate) fn start(
        listeners: &CommandListeners,
        scope: &HostScope,
        permit: &'n Permit<'p>,
    ) -> Result<Self, CodedError> {
        let unable = |error: std::io::Error| {
            CodedError::new(Code::SandboxFailed, format!("the proxy cannot be started: {error}"))
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (ended, stop) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| unable(errno.into()))?;
        let shared = Arc::new(Shared {
            scope: Mutex::new(scope.clone()),
            open: Mutex::default(),
            wake: wake.map_err(|errno| unable(errno.into()))?,
            ended,
        });
        let (sender, messages) = channel();
        let loopback = listeners.loopback.iter().map(|(port, listener)| (listener, Some(*port)));
        for (listener, port) in [(&listeners.proxy, None)].into_iter().chain(loopback) {
            let listener = listener.try_clone().map_err(unable)?;
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            spawn(move || accept_all(&listener, port, &shared, &sender)).map_err(unable)?;
        }
        Ok(Self { permit, shared, messages, stop: Some(stop), recorded: 0 })
    }

    /// Can be read when a thread has something to say.
    pub(crate) fn attention(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    /// Writes down what the threads have to say.
    pub(crate) fn attend(&mut self) {
        let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        while let Ok(message) = self.messages.try_recv() {
            self.record(message);
        }
    }

    fn record(&mut self, message: Message) {
        match message {
            Message::Requested { target, refused, reply } => {
                let number = self.recorded + 1;
                let is_recorded = number <= limits::RECORDED_CONNECTIONS
                    && self.permit.record_request(number, &target, refused).is_ok();
                self.recorded += u64::from(is_recorded);
                let _ = reply.send(is_recorded.then_some(number));
            }
            // What cannot be written ends the call, which says so.
            Message::Closed { connection, sent, received } => {
                let _ = self.permit.record_close(connection, sent, received);
            }
        }
    }

    /// Ends the connections of a command that has ended, and writes down what is left to say of them.
    pub(crate) fn finish(mut self) {
        self.stop = None;
        self.shared.open().is_closed = true;
        let is_over = self.record_until(Instant::now() + LINGER);
        if !is_over {
            for socket in self.shared.open().sockets.values().flatten() {
                let _ = socket.shutdown(Shutdown::Both);
            }
            self.record_until(Instant::now() + END_TIMEOUT);
        }
    }

    /// Writes down what the threads say until the last has ended, which is told, or until then.
    fn record_until(&mut self, end: Instant) -> bool {
        loop {
            match self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) => self.record(message),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name("capsule-proxy".into()).stack_size(STACK_BYTES).spawn(work)?;
    Ok(())
}

/// Accepts connections until the command has ended. `port` is that of the host's loopback; none for
/// the proxy.
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

/// Serves a connection on a thread of its own. One too many is closed at once.
fn serve(stream: TcpStream, port: Option<u16>, shared: &Arc<Shared>, messages: &Sender<Message>) {
    let mut open = shared.open();
    let number = open.next;
    let Ok(ours) = stream.try_clone() else { return };
    if open.sockets.len() >= limits::PROXY_CONNECTIONS || stream.set_nonblocking(false).is_err() {
        return;
    }
    open.next += 1;
    open.sockets.insert(number, vec![ours]);
    drop(open);
    let (shared, messages) = (Arc::clone(shared), messages.clone());
    let ended = Arc::clone(&shared);
    let spawned = spawn(move || {
        connection::serve(stream, port, (&shared, number), &messages);
        shared.open().sockets.remove(&number);
    });
    if spawned.is_err() {
        ended.open().sockets.remove(&number);
    }
}

/// Drops the connections that nobody accepted: they are of commands that have ended.
pub(crate) fn drop_pending(listeners: &CommandListeners) {
    let loopback = listeners.loopback.iter().map(|(_, listener)| listener);
    for listener in [&listeners.proxy].into_iter().chain(loopback) {
        while listener.accept().is_ok() {}
    }
}

/// The variables by which programs find the proxy. A name in small letters is what some programs take alone.
pub(crate) fn proxy_variables(port: u16) -> Vec<(OsString, OsString)> {
    const PROXY: [&str; 6] =
        ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];
    let proxy = format!("http://127.0.0.1:{port}");
    let all = PROXY.iter().map(|name| (*name, proxy.as_str()));
    let direct = DIRECT.iter().map(|name| (*name, "localhost,127.0.0.1,::1"));
    // Node looks at these variables only where it is told to.
    let all = all.chain(direct).chain([("NODE_USE_ENV_PROXY", "1")]);
    all.map(|(name, value)| (name.into(), value.into())).collect()
}

/// The sockets in the network of a run's commands, shared by its calls.
pub(crate) type RunListeners = Rc<CommandListeners>;
