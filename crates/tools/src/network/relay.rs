//! Passing bytes on between two sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_redact::excerpt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::hello::{Hello, read_hello};
use super::shared::{Ended, Shared, bytes_used_up};

/// The bytes that wait in each direction at most.
const BUFFER_BYTES: usize = 64 * 1024;

/// What is passed on of a connection.
pub(super) struct Relay<'r> {
    pub(super) shared: &'r Shared,
    /// The bytes that came from the command with its request.
    pub(super) first: &'r [u8],
    /// How many the command may send behind those; what is more is dropped.
    pub(super) left: u64,
    /// The name by which a client of TLS may ask for the server; any where it is none.
    pub(super) name: Option<String>,
}

impl Relay<'_> {
    /// Passes bytes on in both directions until both have ended or one of the sockets fails. When the command has
    /// ended, what it sent is passed on, and nothing is waited for.
    pub(super) fn run(self, command: &TcpStream, host: &TcpStream) -> Ended {
        let (sending, receiving) = (Direction::new(command, host), Direction::new(host, command));
        let (mut sending, mut receiving) = (sending, receiving);
        (sending.left, sending.hello) = (self.left, self.name);
        sending.put(self.first);
        receiving.budget = Some(&self.shared.bytes_left);
        if command.set_nonblocking(true).and_then(|()| host.set_nonblocking(true)).is_err() {
            return Ended::default();
        }
        let cut = pass_on(&mut sending, &mut receiving, &self.shared.ended).err();
        let _ = command.shutdown(Shutdown::Both);
        let _ = host.shutdown(Shutdown::Both);
        let cut =
            cut.and_then(|stop| if let Stop::Cut(problem) = stop { Some(problem) } else { None });
        Ended { sent: sending.total, received: receiving.total, cut }
    }
}

/// Why nothing more is passed on.
enum Stop {
    /// A socket failed.
    Failed,
    /// What comes may not be passed on.
    Cut(CodedError),
}

impl From<std::io::Error> for Stop {
    fn from(_: std::io::Error) -> Self {
        Self::Failed
    }
}

/// Passes bytes on until both directions are closed. `ended` hangs up when the command has ended.
fn pass_on(
    sending: &mut Direction<'_>,
    receiving: &mut Direction<'_>,
    ended: &OwnedFd,
) -> Result<(), Stop> {
    let sends_more = sending.left == u64::MAX;
    let mut has_ended = false;
    // What came with the request.
    sending.advance()?;
    // A client that has asked for a page may close its half, and waits for the answer all the same.
    while !receiving.is_closed || !sending.is_closed && sends_more {
        let waits = [&*sending, &*receiving].map(Direction::wait);
        let mut files: Vec<PollFd<'_>> = Vec::with_capacity(3);
        files.extend((!has_ended).then(|| PollFd::new(ended, PollFlags::empty())));
        files.extend(waits.iter().flatten().map(|(socket, flags)| PollFd::new(*socket, *flags)));
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        has_ended |= files.first().is_some_and(|file| file.revents().contains(PollFlags::HUP));
        sending.advance()?;
        receiving.advance()?;
        if sending.is_closed && has_ended {
            break;
        }
    }
    Ok(())
}

/// The bytes on their way from one socket to the other.
struct Direction<'s> {
    from: &'s TcpStream,
    to: &'s TcpStream,
    buffer: Vec<u8>,
    /// The bytes of the buffer that wait to be passed on.
    waiting: std::ops::Range<usize>,
    /// Nothing comes any more.
    ended: bool,
    /// The end was passed on, too.
    is_closed: bool,
    /// The bytes that are passed on yet.
    left: u64,
    /// The bytes that all connections of the command may receive yet.
    budget: Option<&'s AtomicU64>,
    /// The name of the server, until it is known what a client of TLS asks for.
    hello: Option<String>,
    total: u64,
}

impl<'s> Direction<'s> {
    fn new(from: &'s TcpStream, to: &'s TcpStream) -> Self {
        Self {
            from,
            to,
            buffer: vec![0; BUFFER_BYTES],
            waiting: 0..0,
            ended: false,
            is_closed: false,
            left: u64::MAX,
            budget: None,
            hello: None,
            total: 0,
        }
    }

    /// Has bytes passed on before all others.
    fn put(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(self.buffer.len());
        if let (Some(begin), Some(bytes)) = (self.buffer.get_mut(..length), bytes.get(..length)) {
            begin.copy_from_slice(bytes);
            self.waiting = 0..length;
        }
    }

    /// What has to happen before there is something to do; none once it is closed.
    fn wait(&self) -> Option<(&'s TcpStream, PollFlags)> {
        match self.is_closed {
            true => None,
            false if self.needs_bytes() => Some((self.from, PollFlags::IN)),
            false => Some((self.to, PollFlags::OUT)),
        }
    }

    /// Whether bytes are read before any are passed on.
    fn needs_bytes(&self) -> bool {
        !self.ended && (self.waiting.is_empty() || self.hello.is_some())
    }

    /// Passes on what can be passed on now.
    fn advance(&mut self) -> Result<(), Stop> {
        if self.is_closed {
            return Ok(());
        }
        if !self.waiting.is_empty() {
            self.check_hello()?;
        }
        if self.needs_bytes() {
            self.read()?;
            self.check_hello()?;
        }
        if !self.waiting.is_empty() && self.hello.is_none() {
            let bytes = self.buffer.get(self.waiting.clone()).unwrap_or_default();
            let written = again(self.to.write(bytes))?.unwrap_or(0);
            self.waiting.start += written;
            self.total += u64::try_from(written).unwrap_or_default();
        }
        if self.ended && (self.waiting.is_empty() || self.hello.is_some()) {
            self.is_closed = true;
            // A server that has the whole request could take the end of what is sent for the end of the client.
            if self.left > 0 {
                self.to.shutdown(Shutdown::Write)?;
            }
        }
        Ok(())
    }

    /// Reads behind what waits.
    fn read(&mut self) -> Result<(), Stop> {
        if self.waiting.is_empty() {
            self.waiting = 0..0;
        }
        let budget = self.budget.map_or(u64::MAX, |budget| budget.load(Ordering::Relaxed));
        let room = self.buffer.get_mut(self.waiting.end..).unwrap_or_default();
        let most = room.len().min(usize::try_from(budget).unwrap_or(usize::MAX));
        let came = match room.get_mut(..most) {
            // Nothing may come any more but the end.
            Some([]) => again(self.from.peek(&mut [0]))?,
            Some(room) => again(self.from.read(room))?,
            None => None,
        };
        match came {
            Some(0) => self.ended = true,
            Some(_) if most == 0 => return Err(Stop::Cut(bytes_used_up())),
            Some(read) => {
                let passed = read.min(usize::try_from(self.left).unwrap_or(usize::MAX));
                if self.left != u64::MAX {
                    self.left -= u64::try_from(passed).unwrap_or_default();
                }
                self.waiting.end += passed;
                if let Some(budget) = self.budget {
                    take(budget, u64::try_from(read).unwrap_or_default());
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Compares the server that a client of TLS asks for with the host.
    fn check_hello(&mut self) -> Result<(), Stop> {
        let Some(host) = &self.hello else { return Ok(()) };
        let bytes = self.buffer.get(self.waiting.clone()).unwrap_or_default();
        let asked = match read_hello(bytes) {
            Hello::Partial => return Ok(()),
            Hello::Unnamed => None,
            Hello::Named(name) => {
                let same = name.trim_end_matches('.').eq_ignore_ascii_case(host);
                (!same).then(|| format!("`{}`", excerpt(&name, limits::QUOTED_CHARS)))
            }
            Hello::Unclear => Some("a name that cannot be read".to_owned()),
        };
        if let Some(asked) = asked {
            let message = format!("a connection to `{host}` asked for {asked} inside of TLS");
            return Err(Stop::Cut(CodedError::new(Code::NetServerName, message)));
        }
        self.hello = None;
        Ok(())
    }
}

/// Takes bytes off what is left.
fn take(budget: &AtomicU64, bytes: u64) {
    let less = |left: u64| Some(left.saturating_sub(bytes));
    let _ = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// The number of bytes; none where there are none so far.
fn again(moved: std::io::Result<usize>) -> std::io::Result<Option<usize>> {
    match moved {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
