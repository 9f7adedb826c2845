//! Reading compressed bytes out of a file, up to a bound.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use capsule_base::limits;
use flate2::{Decompress, FlushDecompress, Status};

use super::flaw::Flaw;

/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// How many bytes may still be inflated before it is too much.
pub(super) struct Budget(Cell<u64>);

impl Budget {
    pub(super) const fn new(bytes: u64) -> Self {
        Self(Cell::new(bytes))
    }

    /// Takes some of it.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Flaw> {
        let taken = u64::try_from(bytes).ok().and_then(|number| self.0.get().checked_sub(number));
        self.0.set(taken.ok_or_else(|| Flaw::new("it holds more than can be compared"))?);
        Ok(())
    }
}

/// Compressed bytes that begin somewhere in a file.
pub(super) struct Inflater<'f> {
    file: &'f File,
    at: u64,
    /// What was read and not yet taken.
    read: Vec<u8>,
    from: usize,
    stream: Decompress,
    is_over: bool,
}

impl<'f> Inflater<'f> {
    pub(super) fn new(file: &'f File, at: u64) -> Self {
        let (read, stream) = (Vec::new(), Decompress::new(true));
        Self { file, at, read, from: 0, stream, is_over: false }
    }

    /// The next bytes; none at the end.
    pub(super) fn next(&mut self, out: &mut [u8], budget: &Budget) -> Result<usize, Flaw> {
        let broken = || Flaw::new("an object cannot be inflated");
        let mut filled = 0;
        while filled < out.len() && !self.is_over {
            if self.from == self.read.len() {
                self.fill()?;
            }
            let input = self.read.get(self.from..).unwrap_or_default();
            let output = out.get_mut(filled..).unwrap_or_default();
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(input, output, FlushDecompress::None);
            let status = status.map_err(|_| broken())?;
            let moved = |now: u64, then: u64| usize::try_from(now - then).unwrap_or(usize::MAX);
            let (read, written) =
                (moved(self.stream.total_in(), read), moved(self.stream.total_out(), written));
            self.from += read;
            filled += written;
            budget.take(written)?;
            self.is_over = status == Status::StreamEnd;
            // The file ends before its content does.
            if !self.is_over && read == 0 && written == 0 {
                return Err(broken());
            }
        }
        Ok(filled)
    }

    fn fill(&mut self) -> Result<(), Flaw> {
        self.read.resize(CHUNK, 0);
        let read = self.file.read_at(&mut self.read, self.at).map_err(|why| Flaw::io(&why))?;
        self.read.truncate(read);
        self.from = 0;
        self.at += u64::try_from(read).unwrap_or(0);
        Ok(())
    }

    /// So many bytes, after which nothing may come.
    pub(super) fn exactly(mut self, size: u64, budget: &Budget) -> Result<Vec<u8>, Flaw> {
        if size > limits::GIT_OBJECT_BYTES {
            return Err(Flaw::new("an object is too large to be compared"));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        let filled = self.next(&mut bytes, budget)?;
        if filled == bytes.len() && self.next(&mut [0], budget)? == 0 {
            return Ok(bytes);
        }
        Err(Flaw::new("an object has another size than it says"))
    }
}
