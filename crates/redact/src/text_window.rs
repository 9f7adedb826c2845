//! A text that may not have come to its end yet, read by rules that must say the same of it whole
//! and in pieces.

use core::cell::Cell;
use core::ops::Range;

use crate::matches::CLOSE_LAST;

/// How the text that is there ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// More may come: what depends on it is decided then.
    Open,
    /// More followed, and nobody will see it: what reaches the end counts as going on.
    Cut,
    /// Nothing follows.
    Over,
}

/// Whether there is a secret depends on what comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NeedsMore;

/// What was read, unless it depends on what comes.
pub(super) type Lookahead<T> = Result<T, NeedsMore>;

/// A text, how it ends, and from where on it is undecided.
#[derive(Debug)]
pub(super) struct TextWindow<'t> {
    text: &'t [u8],
    end: TextEnd,
    /// No secret that is being looked for begins before this.
    undecided_from: Cell<usize>,
    /// Where the last mask ends. What is before it is not there any more for whoever reads the text
    /// again, so it is not for rules either.
    mask_end: Cell<usize>,
}

impl<'t> TextWindow<'t> {
    pub(super) const fn new(text: &'t [u8], end: TextEnd) -> Self {
        Self { text, end, undecided_from: Cell::new(0), mask_end: Cell::new(0) }
    }

    pub(super) const fn text(&self) -> &'t [u8] {
        self.text
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_open(&self) -> bool {
        self.end == TextEnd::Open
    }

    /// What is being looked for begins here or later.
    pub(super) fn set_undecided_from(&self, at: usize) {
        self.undecided_from.set(at);
    }

    /// A mask ends here.
    pub(super) fn set_mask_end(&self, floor: usize) {
        self.mask_end.set(floor);
    }

    pub(super) fn undecided(&self) -> usize {
        self.undecided_from.get()
    }

    /// The byte at a place; none where the text is over.
    pub(super) fn at(&self, place: usize) -> Lookahead<Option<u8>> {
        match self.text.get(place) {
            None if self.is_open() => Err(NeedsMore),
            found => Ok(found.copied()),
        }
    }

    /// The byte before a place.
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        if place > 0 && place == self.mask_end.get() {
            return Some(CLOSE_LAST);
        }
        self.text.get(place.checked_sub(1)?).copied()
    }

    /// Bytes that are there.
    pub(super) fn bytes(&self, range: Range<usize>) -> &'t [u8] {
        self.text.get(range.start..range.end.min(self.text.len())).unwrap_or_default()
    }

    /// Where a run of such bytes ends, after so many of them at most.
    pub(super) fn run_end(
        &self,
        from: usize,
        most: usize,
        holds: impl Fn(u8) -> bool,
    ) -> Lookahead<usize> {
        let rest = self.text.get(from..).unwrap_or_default();
        let length = rest.iter().take(most).take_while(|byte| holds(**byte)).count();
        let end = from + length;
        if length < most && end >= self.text.len() && self.is_open() {
            return Err(NeedsMore);
        }
        Ok(end)
    }

    /// Where a run of such bytes begins that ends here, after so many of them at most.
    pub(super) fn run_start(&self, to: usize, most: usize, holds: impl Fn(u8) -> bool) -> usize {
        let before = self.text.get(self.mask_end.get().min(to)..to).unwrap_or_default();
        let length = before.iter().rev().take(most).take_while(|byte| holds(**byte)).count();
        to - length
    }

    /// Whether these bytes stand here, in whatever case.
    pub(super) fn matches_at(&self, at: usize, word: &[u8]) -> Lookahead<bool> {
        let rest = self.text.get(at..).unwrap_or_default();
        let there = rest.get(..word.len().min(rest.len())).unwrap_or_default();
        let begins = word.get(..there.len()).is_some_and(|item| item.eq_ignore_ascii_case(there));
        match there.len() == word.len() {
            true => Ok(begins),
            false if begins && self.is_open() => Err(NeedsMore),
            false => Ok(false),
        }
    }

    /// Whether the text was cut off here.
    pub(super) fn is_cut(&self, at: usize) -> bool {
        self.end == TextEnd::Cut && at >= self.text.len()
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
            let place = at.checked_sub(count).filter(|place| *place >= self.mask_end.get())?;
            self.text.get(place)
        };
        let hex = |count: usize| back(count).is_some_and(u8::is_ascii_hexdigit);
        match (back(1), back(2)) {
            (Some(b'n' | b'r' | b't'), Some(b'\\')) => true,
            (Some(b'm'), Some(b'0'..=b'9' | b'[' | b';')) => {
                let codes =
                    self.run_start(at - 1, 16, |byte| byte.is_ascii_digit() || byte == b';');
                self.before(codes) == Some(b'[')
            }
            _ if hex(1) && hex(2) && back(3) == Some(&b'%') => true,
            _ => (1..=4).all(hex) && back(5) == Some(&b'u') && back(6) == Some(&b'\\'),
        }
    }

    /// The bytes of the line before a place, as far back as rules look; none if a mask is in it.
    pub(super) fn line_before(&self, at: usize) -> Option<&'t [u8]> {
        let start = self.run_start(at, LOOKBACK_BYTES - 2, |byte| byte != b'\n');
        let floor = self.mask_end.get();
        (floor == 0 || start > floor || self.text.get(start.wrapping_sub(1)) == Some(&b'\n'))
            .then(|| self.bytes(start..at))
    }
}

/// How far back a rule looks at most, from where it was found.
pub(super) const LOOKBACK_BYTES: usize = 256;
