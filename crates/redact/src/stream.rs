//! Masking what comes in pieces.

use alloc::vec::Vec;

use crate::found::Found;
use crate::reader::{Reader, Text};
use crate::state::Step;
use crate::view::{End, LEFT};
use crate::visible::Start;
use crate::{Finding, Redactor};

/// Beyond this much that is held back, it is looked at again only when an eighth more has come.
const PATIENT: usize = 1 << 10;

/// The most bytes that are held back when they are looked at: a whole private key in UTF-32, and as much again.
/// Only a text that hides most of its bytes from a reader comes so far.
const HELD: usize = 1 << 19;

/// Masks a stream. Whatever pieces it comes in, what goes out is the same, and the same as if it had
/// come in one piece. A piece is held back only while what follows could make a secret of it, and
/// never more than 576 KiB: a stream that would need more is read as if it were cut off there.
#[derive(Clone, Debug)]
pub struct Stream {
    redactor: Redactor,
    /// What is held back, with what rules may look back at.
    buffer: Vec<u8>,
    /// How much of the buffer has gone out.
    gone: usize,
    /// How reading begins at the buffer's first byte.
    start: Start,
    reader: Reader,
    /// How long the buffer was when it was last looked at.
    seen: usize,
    /// Where what goes out next stood in the stream.
    place: Place,
    findings: Option<Vec<Finding>>,
    masked: u64,
}

/// A place in a stream.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    line: u64,
    column: u64,
}

impl Place {
    const START: Self = Self { offset: 0, line: 1, column: 1 };

    fn pass(&mut self, bytes: &[u8]) {
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

impl Stream {
    /// Masks with these rules.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            buffer: Vec::new(),
            gone: 0,
            start: Start::default(),
            reader: Reader::default(),
            seen: 0,
            place: Place::START,
            findings: None,
            masked: 0,
        }
    }

    /// The same, keeping what is found until it is taken, and where.
    #[must_use]
    pub fn telling(redactor: Redactor) -> Self {
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
    pub fn take_findings(&mut self) -> Vec<Finding> {
        self.findings.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Takes more; adds what can go out.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.buffer.extend_from_slice(bytes);
        let held = self.seen.saturating_sub(self.gone);
        let fresh = self.buffer.len().saturating_sub(self.seen);
        // So that a stream that comes byte by byte costs no more than one that comes at once.
        if held > PATIENT && fresh < held / 8 {
            return;
        }
        self.look(End::Open, out);
        if self.buffer.len() > HELD {
            self.release(out);
        }
    }

    /// Reads the buffer as if the stream were cut off there, and begins anew behind it.
    fn release(&mut self, out: &mut Vec<u8>) {
        let text = Text::of(&self.buffer, self.start, End::Open);
        let (bytes, start) = match text.cut(self.buffer.len(), self.start) {
            (0, _) => (self.buffer.len(), Start::behind(true)),
            cut => cut,
        };
        let rest = self.buffer.split_off(bytes.max(self.gone));
        self.finish(true, out);
        (self.buffer, self.start) = (rest, start);
    }

    /// The stream is over, or cut off here. Adds what is left.
    pub fn finish(&mut self, cut: bool, out: &mut Vec<u8>) {
        self.look(if cut { End::Cut } else { End::Over }, out);
        self.buffer.clear();
        (self.gone, self.seen) = (0, 0);
        (self.start, self.reader) = (Start::default(), Reader::default());
    }

    fn look(&mut self, end: End, out: &mut Vec<u8>) {
        let redactor = self.redactor.clone();
        self.reader.forget();
        let buffer = core::mem::take(&mut self.buffer);
        let text = Text::of(&buffer, self.start, end);
        loop {
            let step = self.reader.next(redactor.rules(), &text);
            let sure = match &step {
                Step::Found(found) => found.range.start,
                Step::Wait(at) => *at,
                Step::Clear => buffer.len(),
            };
            let clear = buffer.get(self.gone..sure).unwrap_or_default();
            out.extend_from_slice(clear);
            if self.findings.is_some() {
                self.place.pass(clear);
            }
            self.gone = self.gone.max(sure);
            match step {
                Step::Found(found) => self.mask(&buffer, &text, &found, out),
                Step::Wait(_) | Step::Clear => break,
            }
        }
        self.seen = buffer.len();
        let from = self.forget(&text);
        self.buffer = buffer;
        self.buffer.drain(..from);
    }

    fn mask(&mut self, buffer: &[u8], text: &Text<'_>, found: &Found, out: &mut Vec<u8>) {
        let secret = buffer.get(found.range.clone()).unwrap_or_default();
        text.mask(found, out);
        self.masked += 1;
        if let Some(findings) = &mut self.findings {
            let Place { offset, line, column } = self.place;
            findings.push(Finding {
                kind: found.label.kind,
                rule: found.label.rule.clone().into_owned(),
                offset,
                line,
                column,
                length: u64::try_from(secret.len()).unwrap_or(u64::MAX),
            });
            self.place.pass(secret);
        }
        self.gone = found.range.end;
        self.reader.passed(text, found);
    }

    /// How many bytes nobody will look at again.
    fn forget(&mut self, text: &Text<'_>) -> usize {
        let from = text.back(self.gone.min(self.reader.needs(text)), LEFT);
        if from < 1 << 12 && from * 2 < self.seen {
            return 0;
        }
        let (bytes, start) = text.cut(from, self.start);
        self.gone -= bytes;
        self.seen -= bytes;
        self.start = start;
        self.reader.rebase(text, bytes);
        bytes
    }
}
