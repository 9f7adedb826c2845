//! The form of a credential: what a provider chose so that its tokens can be found.
//!
//! Forms are written as regular expressions, and only in a part of that language which can be
//! matched in one pass and without going back: letters, `[..]`, `{n}`, `{n,}`, `{n,m}`, `?`, and
//! `(..)` around what is secret. A run takes all that it can.

use core::ops::Range;

use crate::view::{Read, View};

/// The longest run that is looked at in one piece; what is longer is masked piece by piece.
pub(super) const RUN: usize = 1 << 14;

/// The bytes that may stand at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u128);

impl Set {
    pub(super) const fn holds(self, byte: u8) -> bool {
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
pub(super) struct Place {
    pub(super) set: Set,
    pub(super) least: usize,
    pub(super) most: usize,
}

/// What a form is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Place(Place),
    /// The secret begins here.
    Open,
    /// The secret ends here.
    Close,
}

/// Reads a form, item by item.
#[derive(Clone, Debug)]
pub(super) struct Items<'f> {
    rest: &'f [u8],
}

impl<'f> Items<'f> {
    pub(super) const fn of(form: &'f str) -> Self {
        Self { rest: form.as_bytes() }
    }

    /// The next item. For the tables that are made when this crate is built, so without the iterators
    /// and closures that cannot be used there.
    pub(super) const fn read(&mut self) -> Option<Item> {
        let Some(first) = self.byte() else { return None };
        let set = match first {
            b'(' => return Some(Item::Open),
            b')' => return Some(Item::Close),
            b'[' => self.set(),
            b'\\' => match self.byte() {
                Some(own) => Set::of(own),
                None => return None,
            },
            own => Set::of(own),
        };
        let (least, most) = self.times();
        Some(Item::Place(Place { set, least, most }))
    }

    const fn byte(&mut self) -> Option<u8> {
        match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                Some(*first)
            }
            [] => None,
        }
    }

    const fn set(&mut self) -> Set {
        let mut set = Set(0);
        let mut last = None;
        loop {
            match (self.byte(), self.rest) {
                (None | Some(b']'), _) => return set,
                (Some(b'-'), [to, ..]) if *to != b']' && last.is_some() => {
                    let from = match last.take() {
                        Some(from) => from,
                        None => *to,
                    };
                    set = set.with_all(from, *to);
                    self.byte();
                }
                (Some(b'\\'), [own, ..]) => {
                    set = set.with(*own);
                    last = None;
                    self.byte();
                }
                (Some(own), _) => {
                    set = set.with(own);
                    last = Some(own);
                }
            }
        }
    }

    /// A number, or what holds where none is written.
    const fn number(&mut self, otherwise: usize) -> usize {
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

    const fn times(&mut self) -> (usize, usize) {
        match self.rest {
            [b'?', rest @ ..] => {
                self.rest = rest;
                (0, 1)
            }
            [b'{', rest @ ..] => {
                self.rest = rest;
                let least = self.number(0);
                let most = match self.byte() {
                    Some(b',') => {
                        let most = self.number(RUN);
                        self.byte();
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

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.read()
    }
}

/// What fits a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// All of it.
    pub(super) whole: Range<usize>,
    /// What of it is secret.
    pub(super) secret: Range<usize>,
    /// Whether it runs on where the look at it ended.
    pub(super) goes_on: bool,
}

/// Whether a form fits that begins here. What is cut off counts as going on.
pub(super) fn fits(form: &str, view: &View<'_>, start: usize) -> Read<Option<Fit>> {
    let mut at = start;
    let (mut open, mut close) = (start, None);
    let mut last = None;
    for item in Items::of(form) {
        let place = match item {
            Item::Open => {
                open = at;
                continue;
            }
            Item::Close => {
                close = Some(at);
                continue;
            }
            Item::Place(place) => place,
        };
        let end = view.run(at, place.most, |byte| place.set.holds(byte))?;
        if view.is_cut(end) && end > at {
            let secret = open..close.unwrap_or(end);
            return Ok(Some(Fit { whole: start..end, secret, goes_on: false }));
        }
        if end - at < place.least {
            return Ok(None);
        }
        at = end;
        last = Some(place);
    }
    let Some(last) = last else { return Ok(None) };
    let goes_on = last.most == RUN && view.bytes(at..at + 1).iter().any(|own| last.set.holds(*own));
    // A run that may not go on must not go on as a word, or it is something else.
    if last.most != RUN && view.at(at)?.is_some_and(|own| own.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let end = trimmed(view, at, last);
    let secret = open..close.unwrap_or(end);
    Ok(Some(Fit { whole: start..end, secret, goes_on }))
}

/// Where a run ends whose last dot ends the sentence around it.
fn trimmed(view: &View<'_>, end: usize, last: Place) -> usize {
    let dots = view.run_back(end, 3, |byte| byte == b'.');
    if last.set.holds(b'.') && last.set.holds(b'a') { dots } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::End;

    fn fit(form: &str, text: &str) -> Option<Range<usize>> {
        fits(form, &View::new(text.as_bytes(), End::Over), 0).unwrap().map(|own| own.secret)
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
        let view = |text: &'static str, end| View::new(text.as_bytes(), end);
        let cut = fits("ab[0-9]{9}", &view("ab12", End::Cut), 0).unwrap();
        assert_eq!(cut.map(|own| own.secret), Some(0..4));
        assert!(fits("ab[0-9]{9}", &view("ab12", End::Open), 0).is_err());
        assert!(fits("ab[0-9]{2}", &view("ab12", End::Open), 0).is_err(), "a word could go on");
        assert!(fits("ab[0-9]{9}", &view("ax12", End::Open), 0).unwrap().is_none());
    }
}
