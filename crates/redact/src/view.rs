//! A text that may not have come to its end yet, read by rules that must say the same of it whole
//! and in pieces.

use core::cell::Cell;
use core::ops::Range;

use crate::found::CLOSE_LAST;

/// How the text that is there ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// More may come: what depends on it is decided then.
    Open,
    /// More followed, and nobody will see it: what reaches the end counts as going on.
    Cut,
    /// Nothing follows.
    Over,
}

/// Whether there is a secret depends on what comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct More;

/// What was read, unless it depends on what comes.
pub(super) type Read<T> = Result<T, More>;

/// A text, how it ends, and from where on it is undecided.
#[derive(Debug)]
pub(super) struct View<'t> {
    text: &'t [u8],
    end: End,
    /// No secret that is being looked for begins before this.
    hold: Cell<usize>,
    /// Where the last mask ends. What is before it is not there any more for whoever reads the text
    /// again, so it is not for rules either.
    floor: Cell<usize>,
}

impl<'t> View<'t> {
    pub(super) const fn new(text: &'t [u8], end: End) -> Self {
        Self { text, end, hold: Cell::new(0), floor: Cell::new(0) }
    }

    pub(super) const fn text(&self) -> &'t [u8] {
        self.text
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// What is being looked for begins here or later.
    pub(super) fn hold(&self, at: usize) {
        self.hold.set(at);
    }

    /// A mask ends here.
    pub(super) fn rise(&self, floor: usize) {
        self.floor.set(floor);
    }

    pub(super) fn held(&self) -> usize {
        self.hold.get()
    }

    /// The byte at a place; none where the text is over.
    pub(super) fn at(&self, place: usize) -> Read<Option<u8>> {
        match self.text.get(place) {
            None if self.is_open() => Err(More),
            found => Ok(found.copied()),
        }
    }

    /// The byte before a place.
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        if place > 0 && place == self.floor.get() {
            return Some(CLOSE_LAST);
        }
        self.text.get(place.checked_sub(1)?).copied()
    }

    /// Bytes that are there.
    pub(super) fn bytes(&self, range: Range<usize>) -> &'t [u8] {
        self.text.get(range.start..range.end.min(self.text.len())).unwrap_or_default()
    }

    /// Where a run of such bytes ends, after so many of them at most.
    pub(super) fn run(&self, from: usize, most: usize, holds: impl Fn(u8) -> bool) -> Read<usize> {
        let rest = self.text.get(from..).unwrap_or_default();
        let length = rest.iter().take(most).take_while(|byte| holds(**byte)).count();
        let end = from + length;
        if length < most && end >= self.text.len() && self.is_open() {
            return Err(More);
        }
        Ok(end)
    }

    /// Where a run of such bytes begins that ends here, after so many of them at most.
    pub(super) fn run_back(&self, to: usize, most: usize, holds: impl Fn(u8) -> bool) -> usize {
        let before = self.text.get(self.floor.get().min(to)..to).unwrap_or_default();
        let length = before.iter().rev().take(most).take_while(|byte| holds(**byte)).count();
        to - length
    }

    /// Whether these bytes stand here, in whatever case.
    pub(super) fn says(&self, at: usize, word: &[u8]) -> Read<bool> {
        let rest = self.text.get(at..).unwrap_or_default();
        let there = rest.get(..word.len().min(rest.len())).unwrap_or_default();
        let begins = word.get(..there.len()).is_some_and(|own| own.eq_ignore_ascii_case(there));
        match there.len() == word.len() {
            true => Ok(begins),
            false if begins && self.is_open() => Err(More),
            false => Ok(false),
        }
    }

    /// Whether the text was cut off here.
    pub(super) fn is_cut(&self, at: usize) -> bool {
        self.end == End::Cut && at >= self.text.len()
    }

    /// Whether a word begins here: before it stands neither a letter nor a digit, unless these
    /// belong to an escape.
    pub(super) fn begins_word(&self, at: usize) -> bool {
        let Some(before) = self.before(at) else { return true };
        !before.is_ascii_alphanumeric() || self.is_escape(at)
    }

    /// Whether an escape ends here: `\n`, `\x1b[0m`, `\u0022`, `%3D`.
    fn is_escape(&self, at: usize) -> bool {
        let back = |count: usize| {
            let place = at.checked_sub(count).filter(|place| *place >= self.floor.get())?;
            self.text.get(place)
        };
        let hex = |count: usize| back(count).is_some_and(u8::is_ascii_hexdigit);
        match (back(1), back(2)) {
            (Some(b'n' | b'r' | b't'), Some(b'\\')) => true,
            (Some(b'm'), Some(b'0'..=b'9' | b'[' | b';')) => {
                let codes = self.run_back(at - 1, 16, |byte| byte.is_ascii_digit() || byte == b';');
                self.before(codes) == Some(b'[')
            }
            _ if hex(1) && hex(2) && back(3) == Some(&b'%') => true,
            _ => (1..=4).all(hex) && back(5) == Some(&b'u') && back(6) == Some(&b'\\'),
        }
    }

    /// The bytes of the line before a place, as far back as rules look; none if a mask is in it.
    pub(super) fn line_before(&self, at: usize) -> Option<&'t [u8]> {
        let start = self.run_back(at, LEFT - 2, |byte| byte != b'\n');
        let floor = self.floor.get();
        (floor == 0 || start > floor || self.text.get(start.wrapping_sub(1)) == Some(&b'\n'))
            .then(|| self.bytes(start..at))
    }
}

/// How far back a rule looks at most, from where it was found.
pub(super) const LEFT: usize = 256;
