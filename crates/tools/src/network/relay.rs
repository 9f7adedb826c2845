//! Passing bytes on between two sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// The bytes that wait in each direction at most.
const BUFFER_BYTES: usize = 64 * 1024;

/// Passes bytes on in both directions until both have ended or one of the sockets fails; gives how many the command
/// sent and received. What comes from it behind the `left` bytes that it may send is dropped. `ended` hangs up when the command has
/// ended: what it sent is passed on then, and nothing is waited for.
pub(super) fn relay(
    (command, host): (&TcpStream, &TcpStream),
    ended: &OwnedFd,
    left: u64,
) -> (u64, u64) {
    let mut sending = Direction::new(command, host);
    let mut receiving = Direction::new(host, command);
    let sends_more = left == u64::MAX;
    sending.left = left;
    if command.set_nonblocking(true).and_then(|()| host.set_nonblocking(true)).is_err() {
        return (0, 0);
    }
    let mut has_ended = false;
    while !receiving.is_closed || !sending.is_closed && sends_more {
        let waits = [&sending, &receiving].map(Direction::wait);
        let mut files: Vec<PollFd<'_>> = Vec::with_capacity(3);
        files.extend((!has_ended).then(|| PollFd::new(ended, PollFlags::empty())));
        files.extend(waits.iter().flatten().map(|(socket, flags)| PollFd::new(*socket, *flags)));
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        has_ended |= files.first().is_some_and(|file| file.revents().contains(PollFlags::HUP));
        if sending.advance().and_then(|()| receiving.advance()).is_err()
            || sending.is_closed && (has_ended || !sends_more)
        {
            break;
        }
    }
    let _ = command.shutdown(Shutdown::Both);
    let _ = host.shutdown(Shutdown::Both);
    (sending.total, receiving.total)
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
            total: 0,
        }
    }

    /// What has to happen before there is something to do; none once it is closed.
    fn wait(&self) -> Option<(&'s TcpStream, PollFlags)> {
        match (self.is_closed, self.waiting.is_empty()) {
            (true, _) => None,
            (false, true) => Some((self.from, PollFlags::IN)),
            (false, false) => Some((self.to, PollFlags::OUT)),
        }
    }

    /// Passes on what can be passed on now.
    fn advance(&mut self) -> std::io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        if self.waiting.is_empty() && !self.ended {
            match again(self.from.read(&mut self.buffer))? {
                Some(0) => self.ended = true,
                Some(read) => {
                    let passed = read.min(usize::try_from(self.left).unwrap_or(usize::MAX));
                    self.left -= passed as u64;
                    self.waiting = 0..passed;
                }
                None => {}
            }
        }
        if !self.waiting.is_empty() {
            let bytes = self.buffer.get(self.waiting.clone()).unwrap_or_default();
            let written = again(self.to.write(bytes))?.unwrap_or(0);
            self.waiting.start += written;
            self.total += u64::try_from(written).unwrap_or_default();
        }
        if self.ended && self.waiting.is_empty() {
            self.is_closed = true;
            self.to.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }
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
