//! Reading what a command writes: all of it is passed on; of a long stream the first and the last bytes
//! are kept, and the rest is counted.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use capsule_base::limits;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::launch::{CapturedOutput, CommandWatcher, OutputKind};

/// What is read at once; as much as a pipe holds.
const READ_CHUNK: usize = 65_536;

/// The reading end of one stream.
#[derive(Debug)]
pub(super) struct Capture {
    stream: OutputKind,
    reader: OwnedFd,
    limit: usize,
    open: bool,
    /// The first bytes, up to `most`.
    head: Vec<u8>,
    /// The last of the bytes behind those.
    recent: VecDeque<u8>,
    total: u64,
}

impl Capture {
    /// Makes a pipe of which `most` bytes are kept: the capture, and the end to write to.
    pub(super) fn new(stream: OutputKind, most: u64) -> Result<(Self, OwnedFd), Errno> {
        let (end, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a command's own must block when the pipe is full.
        rustix::io::ioctl_fionbio(&end, true)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (head, recent, total) = (Vec::new(), VecDeque::new(), 0);
        Ok((Self { stream, reader: end, limit: most, open: true, head, recent, total }, writer))
    }

    /// The end to wait for; none once nobody writes any more.
    pub(super) fn open_end(&self) -> Option<&OwnedFd> {
        self.open.then_some(&self.reader)
    }

    /// How many bytes came so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Reads once; whether something came.
    pub(super) fn read(&mut self, buffer: &mut [u8], watch: &mut dyn CommandWatcher) -> bool {
        match rustix::io::read(&self.reader, &mut *buffer) {
            Ok(0) => self.open = false,
            Ok(got) => {
                self.keep(buffer.get(..got).unwrap_or_default(), watch);
                return true;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.open = false,
        }
        false
    }

    /// Reads what is still in the pipe when the command is over.
    pub(super) fn drain(
        mut self,
        buffer: &mut [u8],
        watch: &mut dyn CommandWatcher,
    ) -> CapturedOutput {
        while self.open && self.read(buffer, watch) {}
        let Self { limit: most, mut head, recent, total, .. } = self;
        if recent.is_empty() {
            return CapturedOutput { bytes: head, total, ..CapturedOutput::default() };
        }
        let kept = tail_bytes(most);
        // The bytes just before the recent ones are the last of the head, unless some were dropped between.
        let missing = recent_bytes(most).saturating_sub(recent.len()).min(head.len());
        let mut tail = head.get(head.len() - missing..).unwrap_or_default().to_vec();
        tail.extend(recent);
        head.truncate(most - kept);
        let tail_start = tail.len().saturating_sub(kept);
        CapturedOutput { bytes: head, tail, tail_start, total, truncated: true }
    }

    fn keep(&mut self, bytes: &[u8], watch: &mut dyn CommandWatcher) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.limit.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let rest_start = rest.len().saturating_sub(recent_bytes(self.limit));
        self.recent.extend(rest.get(rest_start..).unwrap_or_default());
        let dropped = self.recent.len().saturating_sub(recent_bytes(self.limit));
        self.recent.drain(..dropped);
        watch.output(self.stream, bytes);
    }
}

/// How many of the kept bytes are the last ones of a stream that is longer: errors stand at the end.
const fn tail_bytes(most: usize) -> usize {
    most / 4
}

/// How many bytes behind the head are held while a stream goes on: those that are kept at its end, and what
/// stands before them, by which a secret is recognised that is cut in two.
const fn recent_bytes(most: usize) -> usize {
    tail_bytes(most).saturating_add(limits::REDACTION_MARGIN as usize)
}

/// A buffer to read into.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; READ_CHUNK]
}
