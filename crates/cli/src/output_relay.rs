//! The output of a command, passed on while it is made.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::rc::Rc;

use capsule_base::escape;
use capsule_redact::Redactor;
use capsule_runtime::{Cancel, MaskedStream, OutputKind, Sink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How much is written at once: a pipe that is ready takes this much without waiting.
const WRITE_BYTES: usize = 4_096;
/// How often a reader that does not read is asked about, and whether to stop, in nanoseconds.
const POLL_NANOS: i64 = 100_000_000;

/// Passes the output of a command on: masked, and inert where a terminal reads it.
pub(crate) struct OutputRelay {
    stdout: RefCell<RelayedStream>,
    stderr: RefCell<RelayedStream>,
    cancel: Cancel,
}

impl OutputRelay {
    pub(crate) fn new(cancel: Cancel) -> Rc<Self> {
        let stdout = RefCell::new(RelayedStream::new(io::stdout().is_terminal()));
        let stderr = RefCell::new(RelayedStream::new(io::stderr().is_terminal()));
        Rc::new(Self { stdout, stderr, cancel })
    }

    /// Prints what was held back. `totals` are the bytes that the command wrote to either stream.
    pub(crate) fn finish(&self, [stdout, stderr]: [u64; 2]) {
        let rest = self.stdout.borrow_mut().finish(stdout);
        self.write(OutputKind::Stdout, &rest);
        let rest = self.stderr.borrow_mut().finish(stderr);
        self.write(OutputKind::Stderr, &rest);
    }

    /// What of the output did not arrive, a line each.
    pub(crate) fn lost_output(&self) -> Vec<String> {
        let streams = [("standard output", &self.stdout), ("standard error", &self.stderr)];
        let mut lines = Vec::new();
        for (name, stream) in streams {
            let stream = stream.borrow();
            if stream.is_cut() {
                lines.push(format!(
                    "{name} was cut at {} of {} bytes",
                    stream.bytes_seen, stream.total
                ));
            }
            if let Some(errno) = stream.lost {
                lines.push(format!("{name} could not be written: {}", io::Error::from(errno)));
            }
        }
        lines
    }

    /// Whether some of the output could not be written although somebody may read it.
    pub(crate) fn is_lost(&self) -> bool {
        self.stdout.borrow().lost.is_some()
    }

    /// Whether the command wrote more standard output than was passed on.
    pub(crate) fn is_cut(&self) -> bool {
        self.stdout.borrow().is_cut()
    }

    /// A reader that went away does not end the command, its limits do; one that does not read must
    /// not keep it from being cancelled.
    fn write(&self, stream: OutputKind, bytes: &[u8]) {
        let (written, passage) = match stream {
            OutputKind::Stdout => (write(&io::stdout().lock(), bytes, &self.cancel), &self.stdout),
            OutputKind::Stderr => (write(&io::stderr().lock(), bytes, &self.cancel), &self.stderr),
        };
        if let Err(errno) = written
            && !matches!(errno, Errno::PIPE | Errno::CANCELED)
        {
            passage.borrow_mut().lost.get_or_insert(errno);
        }
    }
}

impl Sink for OutputRelay {
    fn use_redactor(&self, redactor: &Redactor) {
        self.stdout.borrow_mut().masked = MaskedStream::new(redactor.clone());
        self.stderr.borrow_mut().masked = MaskedStream::new(redactor.clone());
    }

    fn output(&self, stream: OutputKind, bytes: &[u8]) {
        let ready = match stream {
            OutputKind::Stdout => self.stdout.borrow_mut().push(bytes),
            OutputKind::Stderr => self.stderr.borrow_mut().push(bytes),
        };
        self.write(stream, &ready);
    }
}

fn write<W: AsFd>(to: &W, mut bytes: &[u8], cancel: &Cancel) -> Result<(), Errno> {
    let pause = Timespec { tv_sec: 0, tv_nsec: POLL_NANOS };
    while !bytes.is_empty() {
        let mut files = [PollFd::new(to, PollFlags::OUT)];
        match poll(&mut files, Some(&pause)) {
            Ok(0) | Err(Errno::INTR) if cancel.is_set() => return Err(Errno::CANCELED),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => match rustix::io::write(to, bytes.get(..WRITE_BYTES).unwrap_or(bytes)) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno),
            },
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// One of the two streams.
struct RelayedStream {
    masked: MaskedStream,
    /// For a terminal; a pipe or file gets the bytes as they are.
    escaper: Option<TerminalEscaper>,
    /// How many bytes of the command's came.
    bytes_seen: u64,
    /// How many it wrote, once it has ended.
    total: u64,
    /// Why something could not be written, the first time.
    lost: Option<Errno>,
}

impl RelayedStream {
    fn new(terminal: bool) -> Self {
        let inert = terminal.then(TerminalEscaper::default);
        Self {
            masked: MaskedStream::default(),
            escaper: inert,
            bytes_seen: 0,
            total: 0,
            lost: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.bytes_seen =
            self.bytes_seen.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let ready = self.masked.push(bytes);
        match &mut self.escaper {
            Some(inert) => inert.push(&ready).into_bytes(),
            None => ready,
        }
    }

    fn is_cut(&self) -> bool {
        self.total > self.bytes_seen
    }

    fn finish(&mut self, total: u64) -> Vec<u8> {
        self.total = total;
        let rest = self.masked.finish(self.is_cut());
        match &mut self.escaper {
            Some(inert) => (inert.push(&rest) + &inert.finish()).into_bytes(),
            None => rest,
        }
    }
}

/// Makes bytes harmless for a terminal: whatever would steer it, or could not be seen, is shown as a
/// code point. A carriage return becomes a line end, so that nothing is written over.
#[derive(Default)]
struct TerminalEscaper {
    /// A character or a line end that is not complete yet.
    partial: Vec<u8>,
}

impl TerminalEscaper {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.len() - partial_length(&self.partial);
        let rest = self.partial.split_off(whole);
        let ready = std::mem::replace(&mut self.partial, rest);
        escape_bytes(&ready)
    }

    fn finish(&mut self) -> String {
        escape_bytes(&std::mem::take(&mut self.partial))
    }
}

/// How many bytes at the end are the beginning of something.
fn partial_length(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r") {
        return 1;
    }
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => last.len(),
        _ => 0,
    }
}

fn escape_bytes(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    escape::block(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F17: wherever the pieces are cut, a terminal gets the same inert text.
    #[test]
    fn a_terminal_is_never_steered() {
        let hostile = "\u{1b}]52;c;eA==\u{7}日本\r\nlate\rover\u{202e}x ü\u{9b}2J\n\ttab\r";
        let shown = "⟨U+001B⟩]52;c;eA==⟨U+0007⟩日本\nlate\nover⟨U+202E⟩x ü⟨U+009B⟩2J\n\ttab\n";
        for cut in 1..hostile.len() {
            let mut inert = TerminalEscaper::default();
            let mut got = String::new();
            for piece in hostile.as_bytes().chunks(cut) {
                got += &inert.push(piece);
            }
            got += &inert.finish();
            assert_eq!(got, shown, "cut at {cut}");
        }
        let mut inert = TerminalEscaper::default();
        assert_eq!(inert.push(b"\xff\xfe ok\xe6"), "\u{fffd}\u{fffd} ok");
        assert_eq!(inert.finish(), "\u{fffd}");
    }
}
