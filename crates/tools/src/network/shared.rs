//! The state that the threads of the connections of one command share.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::journal::ConnectionTarget;
use capsule_core::lifecycle::AllowedBy;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{HostQuestion, HostScope};

use super::upstream::UpstreamProxy;

/// The words of a thread of a connection to the thread of the call.
pub(super) enum Message {
    /// The command wants to reach a host that a person is asked about; the answer is who allowed it.
    Asked { question: Box<HostQuestion>, reply: SyncSender<Result<AllowedBy, CodedError>> },
    /// The command wants to reach a host; the answer is the number of the connection once that is written down, and
    /// none if it cannot be.
    Requested { target: ConnectionTarget, refused: Option<Code>, reply: SyncSender<Option<u64>> },
    /// A connection ended.
    Closed { connection: u64, host: String, ended: Ended },
}

/// How a connection ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The bytes that the command sent.
    pub(super) sent: u64,
    /// The bytes that it received.
    pub(super) received: u64,
    /// Why it was cut off, where neither end closed it.
    pub(super) cut: Option<CodedError>,
}

/// The state that the threads share.
pub(super) struct Shared {
    pub(super) scope: HostScope,
    /// The proxy that the user's own connections go through, if there is one, or what is wrong with its name.
    pub(super) upstream: Result<Option<UpstreamProxy>, CodedError>,
    open: Mutex<OpenSockets>,
    /// The bytes that the command may receive yet.
    pub(super) bytes_left: AtomicU64,
    /// Takes a byte for each message that was sent.
    pub(super) wake: OwnedFd,
    /// Hangs up when the command has ended.
    pub(super) ended: OwnedFd,
}

#[derive(Default)]
struct OpenSockets {
    /// How many connections came so far.
    accepted: u64,
    /// How many connections were made to each host.
    hosts: BTreeMap<String, u64>,
    /// The open sockets of each connection, to shut them down.
    sockets: BTreeMap<u64, Vec<Arc<TcpStream>>>,
    /// The command has ended, or nothing can be written down: nothing is looked up or dialled any more.
    is_closed: bool,
}

/// A connection whose sockets are known to be open, until this is dropped.
pub(super) struct OpenConnection {
    shared: Arc<Shared>,
    number: u64,
    /// Whether it is one too many, and is told so.
    is_excess: bool,
}

impl Shared {
    pub(super) fn new(
        scope: HostScope,
        upstream: Result<Option<UpstreamProxy>, CodedError>,
        (wake, ended): (OwnedFd, OwnedFd),
    ) -> Self {
        let bytes_left = AtomicU64::new(scope.bytes_left());
        Self { scope, upstream, open: Mutex::default(), bytes_left, wake, ended }
    }

    fn open(&self) -> MutexGuard<'_, OpenSockets> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nothing be looked up or dialled any more.
    pub(super) fn close(&self) {
        self.open().is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.open().is_closed
    }

    /// Shuts down every socket.
    pub(super) fn shut_down(&self) {
        for socket in self.open().sockets.values().flatten() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Takes up a connection, also one too many, so that it is told. None where those are too many, too, or the command
    /// has ended.
    pub(super) fn take_up(
        self: &Arc<Self>,
        stream: &Arc<TcpStream>,
        most: usize,
    ) -> Option<OpenConnection> {
        let mut open = self.open();
        let is_full = |more: usize| {
            let recorded = limits::RECORDED_CONNECTIONS + u64::try_from(more).unwrap_or_default();
            open.sockets.len() >= most + more || open.accepted >= recorded
        };
        if open.is_closed || is_full(limits::EXCESS_CONNECTIONS) {
            return None;
        }
        let is_excess = is_full(0);
        open.accepted += 1;
        let number = open.accepted;
        open.sockets.insert(number, vec![Arc::clone(stream)]);
        Some(OpenConnection { shared: Arc::clone(self), number, is_excess })
    }

    /// Counts a connection to a host.
    ///
    /// # Errors
    /// The run made as many to it as it may, or received as much as it may.
    pub(super) fn count(&self, host: &str) -> Result<(), CodedError> {
        if self.bytes_left.load(Ordering::Relaxed) == 0 {
            return Err(bytes_used_up());
        }
        let mut open = self.open();
        let made = open.hosts.entry(host.to_owned()).or_default();
        if *made >= self.scope.connections_left(host) {
            let message = format!("the run made as many connections to `{host}` as it may");
            return Err(CodedError::new(Code::QuotaPerHost, message));
        }
        *made += 1;
        Ok(())
    }

    /// Tells the thread of the call something.
    fn send(&self, messages: &Sender<Message>, message: Message) {
        if messages.send(message).is_ok() {
            let _ = rustix::io::write(&self.wake, &[0]);
        }
    }

    /// Has a person asked about a host; gives who allowed it.
    ///
    /// # Errors
    /// The reason why it may not be reached, or the command has ended.
    pub(super) fn ask(
        &self,
        messages: &Sender<Message>,
        question: HostQuestion,
    ) -> Result<AllowedBy, CodedError> {
        let (reply, answer) = sync_channel(1);
        self.send(messages, Message::Asked { question: Box::new(question), reply });
        let ended = CodedError::new(Code::NetConnect, "the command has ended");
        answer.recv().unwrap_or(Err(ended))
    }

    /// Has a request written down; gives the number of the connection.
    ///
    /// # Errors
    /// It cannot be written down, or the command has ended.
    pub(super) fn record_request(
        &self,
        messages: &Sender<Message>,
        target: ConnectionTarget,
        refused: Option<Code>,
    ) -> Result<u64, CodedError> {
        let (reply, answer) = sync_channel(1);
        let message = format!("the connection to `{}` could not be written down", target.host);
        self.send(messages, Message::Requested { target, refused, reply });
        let number = answer.recv().ok().flatten();
        number.ok_or_else(|| CodedError::new(Code::NetConnect, message))
    }

    /// Has the end of a connection written down.
    pub(super) fn record_close(
        &self,
        messages: &Sender<Message>,
        (connection, host): (u64, String),
        ended: Ended,
    ) {
        self.send(messages, Message::Closed { connection, host, ended });
    }
}

/// The reason where a run received as much as it may.
pub(super) fn bytes_used_up() -> CodedError {
    CodedError::new(Code::BudgetFetched, "the run received as many bytes as it may")
}

impl OpenConnection {
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether it is one that may be served.
    ///
    /// # Errors
    /// It is one too many.
    pub(super) fn check(&self) -> Result<(), CodedError> {
        let message = "the command holds as many connections at once, or made as many, as it may";
        let problem = || CodedError::new(Code::NetTooManyConnections, message);
        (!self.is_excess).then_some(()).ok_or_else(problem)
    }

    /// Has another of its sockets shut down with the others.
    ///
    /// # Errors
    /// The command has ended.
    pub(super) fn add(&self, stream: &Arc<TcpStream>) -> Result<(), CodedError> {
        let mut open = self.shared.open();
        let is_closed = open.is_closed;
        match open.sockets.get_mut(&self.number).filter(|_| !is_closed) {
            Some(sockets) => sockets.push(Arc::clone(stream)),
            None => return Err(CodedError::new(Code::NetConnect, "the command has ended")),
        }
        Ok(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.open().sockets.remove(&self.number);
    }
}
