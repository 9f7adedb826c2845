//! Reading what a command writes: the first bytes are kept, the rest is counted.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::launch::{Captured, Stream, Watch};

/// What is read at once; as much as a pipe holds.
const CHUNK: usize = 65_536;

/// The reading end of one stream.
#[derive(Debug)]
pub(super) struct Capture {
    stream: Stream,
    end: OwnedFd,
    most: usize,
    open: bool,
    captured: Captured,
}

impl Capture {
    /// Makes a pipe of which `most` bytes are kept: the capture, and the end to write to.
    pub(super) fn new(stream: Stream, most: u64) -> Result<(Self, OwnedFd), Errno> {
        let (end, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a command's own must block when the pipe is full.
        rustix::io::ioctl_fionbio(&end, true)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let captured = Captured::default();
        Ok((Self { stream, end, most, open: true, captured }, writer))
    }

    /// The end to wait for; none once nobody writes any more.
    pub(super) fn waiting(&self) -> Option<&OwnedFd> {
        self.open.then_some(&self.end)
    }

    /// How many bytes came so far.
    pub(super) fn total(&self) -> u64 {
        self.captured.total
    }

    /// Reads once; whether something came.
    pub(super) fn read(&mut self, buffer: &mut [u8], watch: &mut dyn Watch) -> bool {
        match rustix::io::read(&self.end, &mut *buffer) {
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
    pub(super) fn drain(mut self, buffer: &mut [u8], watch: &mut dyn Watch) -> Captured {
        while self.open && self.read(buffer, watch) {}
        self.captured.truncated = self.captured.total > self.captured.bytes.len() as u64;
        self.captured
    }

    fn keep(&mut self, bytes: &[u8], watch: &mut dyn Watch) {
        self.captured.total = self.captured.total.saturating_add(bytes.len() as u64);
        let room = self.most.saturating_sub(self.captured.bytes.len());
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        if !kept.is_empty() {
            self.captured.bytes.extend_from_slice(kept);
            watch.output(self.stream, kept);
        }
    }
}

/// A buffer to read into.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; CHUNK]
}
