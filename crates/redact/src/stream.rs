//! Masking what comes in pieces.

use alloc::vec::Vec;

use crate::matches::SecretMatch;
use crate::reader::{Reader, Text};
use crate::scan_state::ScanStep;
use crate::text_window::{LOOKBACK_BYTES, TextEnd};
use crate::visible::Start;
use crate::{Redactor, SecretFinding};

/// Beyond this much that is held back, it is looked at again only when an eighth more has come.
const RESCAN_BYTES: usize = 1 << 10;

/// The most bytes that are held back when they are looked at: a whole private key in UTF-32, and as much again.
/// Only a text that hides most of its bytes from a reader comes so far.
const HELD: usize = 1 << 19;

/// Masks a stream. Whatever pieces it comes in, what goes out is the same, and the same as if it had
/// come in one piece. A piece is held back only while what follows could make a secret of it, and
/// never more than 576 KiB: a stream that would need more is read as if it were cut off there.
#[derive(Clone, Debug)]
pub struct MaskingStream {
    redactor: Redactor,
    /// What is held back, with what rules may look back at.
    buffer: Vec<u8>,
    /// How much of the buffer has gone out.
    emitted: usize,
    /// How reading begins at the buffer's first byte.
    start: Start,
    reader: Reader,
    /// How long the buffer was when it was last looked at.
    scanned: usize,
    /// Where what goes out next stood in the stream.
    place: StreamPosition,
    findings: Option<Vec<SecretFinding>>,
    masked: u64,
}

/// A place in a stream.
#[derive(Clone, Copy, Debug)]
struct StreamPosition {
    offset: u64,
    line: u64,
    column: u64,
}

impl StreamPosition {
    const START: Self = Self { offset: 0, line: 1, column: 1 };

    fn advance(&mut self, bytes: &[u8]) {
        let whole = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        self.offset += whole(bytes.len());
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => {
                self.line += whole(bytes.iter().filter(|byte| **byte == b'\n').count());
                self.column = whole(bytes.len() - last);
            }
            None => self.column += whole(bytes.len()),
        }
    }
}

impl MaskingStream {
    /// Masks with these rules.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            buffer: Vec::new(),
            emitted: 0,
            start: Start::default(),
            reader: Reader::default(),
            scanned: 0,
            place: StreamPosition::START,
            findings: None,
            masked: 0,
        }
    }

    /// The same, keeping what is found until it is taken, and where.
    #[must_use]
    pub fn with_findings(redactor: Redactor) -> Self {
        Self { findings: Some(Vec::new()), ..Self::new(redactor) }
    }

    /// How many secrets were masked.
    #[must_use]
    pub const fn masked(&self) -> u64 {
        self.masked
    }

    /// How many bytes are held, with those that rules may look back at.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.buffer.len()
    }

    /// What was found since this was last asked.
    pub fn take_findings(&mut self) -> Vec<SecretFinding> {
        self.findings.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Takes more; adds what can go out.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.buffer.extend_from_slice(bytes);
        let held = self.scanned.saturating_sub(self.emitted);
        let fresh = self.buffer.len().saturating_sub(self.scanned);
        // So that a stream that comes byte by byte costs no more than one that comes at once.
        if held > RESCAN_BYTES && fresh < held / 8 {
            return;
        }
        self.scan(TextEnd::Open, out);
        if self.buffer.len() > HELD {
            self.release(out);
        }
    }

    /// Reads the buffer as if the stream were cut off there, and begins anew behind it.
    fn release(&mut self, out: &mut Vec<u8>) {
        let text = Text::of(&self.buffer, self.start, TextEnd::Open);
        let (bytes, start) = match text.cut(self.buffer.len(), self.start) {
            (0, _) => (self.buffer.len(), Start::behind(true)),
            cut => cut,
        };
        let rest = self.buffer.split_off(bytes.max(self.emitted));
        self.finish(true, out);
        (self.buffer, self.start) = (rest, start);
    }

    /// The stream is over, or cut off here. Adds what is left.
    pub fn finish(&mut self, cut: bool, out: &mut Vec<u8>) {
        self.scan(if cut { TextEnd::Cut } else { TextEnd::Over }, out);
        self.buffer.clear();
        (self.emitted, self.scanned) = (0, 0);
        (self.start, self.reader) = (Start::default(), Reader::default());
    }

    fn scan(&mut self, end: TextEnd, out: &mut Vec<u8>) {
        let redactor = self.redactor.clone();
        self.reader.forget();
        let buffer = core::mem::take(&mut self.buffer);
        let text = Text::of(&buffer, self.start, end);
        loop {
            let step = self.reader.next(redactor.rules(), &text);
            let sure = match &step {
                ScanStep::Found(found) => found.range.start,
                ScanStep::Wait(at) => *at,
                ScanStep::Done => buffer.len(),
            };
            let clear = buffer.get(self.emitted..sure).unwrap_or_default();
            out.extend_from_slice(clear);
            if self.findings.is_some() {
                self.place.advance(clear);
            }
            self.emitted = self.emitted.max(sure);
            match step {
                ScanStep::Found(found) => self.emit_mask(&buffer, &text, &found, out),
                ScanStep::Wait(_) | ScanStep::Done => break,
            }
        }
        self.scanned = buffer.len();
        let from = self.drop_prefix(&text);
        self.buffer = buffer;
        self.buffer.drain(..from);
    }

    fn emit_mask(
        &mut self,
        buffer: &[u8],
        text: &Text<'_>,
        found: &SecretMatch,
        out: &mut Vec<u8>,
    ) {
        let secret = buffer.get(found.range.clone()).unwrap_or_default();
        text.mask(found, out);
        self.masked += 1;
        if let Some(findings) = &mut self.findings {
            let StreamPosition { offset, line, column } = self.place;
            findings.push(SecretFinding {
                kind: found.label.kind,
                rule: found.label.rule.clone().into_owned(),
                offset,
                line,
                column,
                length: u64::try_from(secret.len()).unwrap_or(u64::MAX),
            });
            self.place.advance(secret);
        }
        self.emitted = found.range.end;
        self.reader.passed(text, found);
    }

    /// How many bytes nobody will look at again.
    fn drop_prefix(&mut self, text: &Text<'_>) -> usize {
        let from = text.back(self.emitted.min(self.reader.needs(text)), LOOKBACK_BYTES);
        if from < 1 << 12 && from * 2 < self.scanned {
            return 0;
        }
        let (bytes, start) = text.cut(from, self.start);
        self.emitted -= bytes;
        self.scanned -= bytes;
        self.start = start;
        self.reader.rebase(text, bytes);
        bytes
    }
}
