//! The form of a credential: what a provider chose so that its tokens can be found.
//!
//! Forms are written as regular expressions, and only in a part of that language which can be
//! matched in one pass and without going back: letters, `[..]`, `{n}`, `{n,}`, `{n,m}`, `?`, and
//! `(..)` around what is secret. A run takes all that it can.

use core::ops::Range;

use crate::text_window::{Lookahead, TextWindow};

/// The longest run that is looked at in one piece; what is longer is masked piece by piece.
pub(super) const MAX_RUN: usize = 1 << 14;

/// The bytes that may stand at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteSet(u128);

impl ByteSet {
    pub(super) const fn contains(self, byte: u8) -> bool {
        byte < 128 && self.0 >> byte & 1 == 1
    }

    /// This byte alone.
    pub(super) const fn of(byte: u8) -> Self {
        Self(0).with(byte)
    }

    const fn with(self, byte: u8) -> Self {
        Self(self.0 | 1 << (byte & 127))
    }

    const fn with_all(self, from: u8, to: u8) -> Self {
        let many = to.saturating_sub(from) & 127;
        Self(self.0 | (u128::MAX >> (127 - many)) << (from & 127))
    }

    /// A bit for each byte.
    pub(super) const fn bits(self) -> u128 {
        self.0
    }
}

/// One place of a form, or several alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRun {
    pub(super) set: ByteSet,
    pub(super) min: usize,
    pub(super) max: usize,
}

/// What a form is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternItem {
    Place(ByteRun),
    /// The secret begins here.
    Open,
    /// The secret ends here.
    Close,
}

/// Reads a form, item by item.
#[derive(Clone, Debug)]
pub(super) struct PatternItems<'f> {
    rest: &'f [u8],
}

impl<'f> PatternItems<'f> {
    pub(super) const fn of(form: &'f str) -> Self {
        Self { rest: form.as_bytes() }
    }

    /// The next item. For the tables that are made when this crate is built, so without the iterators
    /// and closures that cannot be used there.
    pub(super) const fn next_item(&mut self) -> Option<PatternItem> {
        let Some(first) = self.read_byte() else { return None };
        let set = match first {
            b'(' => return Some(PatternItem::Open),
            b')' => return Some(PatternItem::Close),
            b'[' => self.read_set(),
            b'\\' => match self.read_byte() {
                Some(byte) => ByteSet::of(byte),
                None => return None,
            },
            byte => ByteSet::of(byte),
        };
        let (least, most) = self.read_repeat();
        Some(PatternItem::Place(ByteRun { set, min: least, max: most }))
    }

    const fn read_byte(&mut self) -> Option<u8> {
        match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                Some(*first)
            }
            [] => None,
        }
    }

    const fn read_set(&mut self) -> ByteSet {
        let mut set = ByteSet(0);
        let mut last = None;
        loop {
            match (self.read_byte(), self.rest) {
                (None | Some(b']'), _) => return set,
                (Some(b'-'), [to, ..]) if *to != b']' && last.is_some() => {
                    let from = match last.take() {
                        Some(from) => from,
                        None => *to,
                    };
                    set = set.with_all(from, *to);
                    self.read_byte();
                }
                (Some(b'\\'), [byte, ..]) => {
                    set = set.with(*byte);
                    last = None;
                    self.read_byte();
                }
                (Some(byte), _) => {
                    set = set.with(byte);
                    last = Some(byte);
                }
            }
        }
    }

    /// A number, or what holds where none is written.
    const fn read_number(&mut self, otherwise: usize) -> usize {
        let mut number = None;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            let sum = match number {
                Some(sum) => sum,
                None => 0,
            };
            number = Some(sum * 10 + (*digit - b'0') as usize);
            self.rest = rest;
        }
        match number {
            Some(number) => number,
            None => otherwise,
        }
    }

    const fn read_repeat(&mut self) -> (usize, usize) {
        match self.rest {
            [b'?', rest @ ..] => {
                self.rest = rest;
                (0, 1)
            }
            [b'{', rest @ ..] => {
                self.rest = rest;
                let least = self.read_number(0);
                let most = match self.read_byte() {
                    Some(b',') => {
                        let most = self.read_number(MAX_RUN);
                        self.read_byte();
                        most
                    }
                    _ => least,
                };
                (least, most)
            }
            _ => (1, 1),
        }
    }
}

impl Iterator for PatternItems<'_> {
    type Item = PatternItem;

    fn next(&mut self) -> Option<PatternItem> {
        self.next_item()
    }
}

/// What fits a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternFit {
    /// All of it.
    pub(super) whole: Range<usize>,
    /// What of it is secret.
    pub(super) secret: Range<usize>,
    /// Whether it runs on where the look at it ended.
    pub(super) continues: bool,
}

/// Whether a form fits that begins here. What is cut off counts as going on.
pub(super) fn match_pattern(
    form: &str,
    view: &TextWindow<'_>,
    start: usize,
) -> Lookahead<Option<PatternFit>> {
    let mut at = start;
    let (mut open, mut close) = (start, None);
    let mut last = None;
    for item in PatternItems::of(form) {
        let place = match item {
            PatternItem::Open => {
                open = at;
                continue;
            }
            PatternItem::Close => {
                close = Some(at);
                continue;
            }
            PatternItem::Place(place) => place,
        };
        let end = view.run_end(at, place.max, |byte| place.set.contains(byte))?;
        if view.is_cut(end) && end > at {
            let secret = open..close.unwrap_or(end);
            return Ok(Some(PatternFit { whole: start..end, secret, continues: false }));
        }
        if end - at < place.min {
            return Ok(None);
        }
        at = end;
        last = Some(place);
    }
    let Some(last) = last else { return Ok(None) };
    let goes_on =
        last.max == MAX_RUN && view.bytes(at..at + 1).iter().any(|byte| last.set.contains(*byte));
    // A run that may not go on must not go on as a word, or it is something else.
    if last.max != MAX_RUN && view.at(at)?.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let end = trim_final_dot(view, at, last);
    let secret = open..close.unwrap_or(end);
    Ok(Some(PatternFit { whole: start..end, secret, continues: goes_on }))
}

/// Where a run ends whose last dot ends the sentence around it.
fn trim_final_dot(view: &TextWindow<'_>, end: usize, last: ByteRun) -> usize {
    let dots = view.run_start(end, 3, |byte| byte == b'.');
    if last.set.contains(b'.') && last.set.contains(b'a') { dots } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_window::TextEnd;

    fn fit(form: &str, text: &str) -> Option<Range<usize>> {
        match_pattern(form, &TextWindow::new(text.as_bytes(), TextEnd::Over), 0)
            .unwrap()
            .map(|fit| fit.secret)
    }

    #[test]
    fn forms_are_matched_in_one_pass() {
        assert_eq!(fit("ab[0-9]{3}", "ab123"), Some(0..5));
        assert_eq!(fit("ab[0-9]{3}", "ab1234"), None);
        assert_eq!(fit("ab[0-9]{3}", "ab12"), None);
        assert_eq!(fit("ab[0-9]{3,}", "ab1234 x"), Some(0..6));
        assert_eq!(fit("ab[0-9]{1,2}x?", "ab12x"), Some(0..5));
        assert_eq!(fit("a\\.(b[x-z_-]{2})/c", "a.b-z/c"), Some(2..5));
        assert_eq!(fit("a[A-Za-z0-9._-]{3,}", "abcd. Next"), Some(0..4));
        assert_eq!(fit("t[a-f0-9]{4}={0,2}", "tab12=="), Some(0..7));
    }

    #[test]
    fn what_is_cut_off_counts_as_going_on() {
        let view = |text: &'static str, end| TextWindow::new(text.as_bytes(), end);
        let cut = match_pattern("ab[0-9]{9}", &view("ab12", TextEnd::Cut), 0).unwrap();
        assert_eq!(cut.map(|own| own.secret), Some(0..4));
        assert!(match_pattern("ab[0-9]{9}", &view("ab12", TextEnd::Open), 0).is_err());
        assert!(
            match_pattern("ab[0-9]{2}", &view("ab12", TextEnd::Open), 0).is_err(),
            "a word could go on"
        );
        assert!(match_pattern("ab[0-9]{9}", &view("ax12", TextEnd::Open), 0).unwrap().is_none());
    }
}
