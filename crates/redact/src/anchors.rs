//! Where to look: the places of a text at which a rule could fit, found in one pass.
//!
//! Of each rule, four bytes are chosen that have to be there, the rarest of its form. A bit for each
//! such four says in a few instructions that nothing begins here, which is what is said of nearly
//! every place of nearly every text; a table tells the rest.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::form::{Item, Items, Place, RUN, Set};

/// How many bytes of a rule are looked for.
pub(super) const WIDTH: usize = 4;
/// The most spellings of these bytes that are worth it.
const SPELLINGS: u32 = 1_200;
const BITS: usize = 1 << 17;
const SLOTS: usize = 1 << 13;
/// No entry.
const NONE: u16 = u16::MAX;

/// A byte without its case; digits are all alike.
#[expect(clippy::indexing_slicing, reason = "a constant: out of bounds does not compile")]
const FOLDED: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        table[at] = if byte.is_ascii_digit() { b'0' } else { byte.to_ascii_lowercase() };
        at += 1;
    }
    table
};

fn folded(byte: u8) -> u32 {
    FOLDED.get(usize::from(byte)).map_or(0, |own| u32::from(*own))
}

/// How often a folded byte stands in logs and programs, roughly, in parts of 1,000.
const fn frequency(byte: u8) -> u32 {
    match byte {
        b'0' => 180,
        b' ' => 120,
        b'e' | b't' => 60,
        b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 45,
        b'c' | b'd' | b'l' | b'u' | b'p' | b'm' => 25,
        b'b' | b'f' | b'g' | b'h' | b'-' | b'.' | b'"' | b':' | b'/' | b'_' | b',' | b'=' => 15,
        b'k' | b'v' | b'w' | b'x' | b'y' => 8,
        _ => 3,
    }
}

const fn spread(word: u32) -> u32 {
    word.wrapping_mul(0x9e37_79b1)
}

const fn bit(word: u32) -> usize {
    (spread(word) >> 15) as usize % BITS
}

const fn slot(word: u32) -> usize {
    (spread(word) >> 19) as usize % SLOTS
}

/// Where, from the place of the four bytes, a rule is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Try {
    /// Which rule.
    pub(super) rule: u16,
    /// How far before the bytes it begins, or, where it begins with a run, how far the run reaches
    /// into them.
    pub(super) back: u8,
    /// Whether it begins with a run of no one length.
    pub(super) runs: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    word: u32,
    own: Try,
    /// The next entry of the same slot.
    next: u16,
}

/// Says where rules could fit.
#[derive(Clone)]
pub(super) struct Anchors {
    bits: Box<[u64; BITS / 64]>,
    /// The first entry of each slot.
    slots: Box<[u16; SLOTS]>,
    entries: Vec<Entry>,
}

impl core::fmt::Debug for Anchors {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Anchors").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Anchors {
    /// For these forms, in the order in which they are to be tried.
    pub(super) fn of(forms: &[&str]) -> Self {
        let mut anchors = Self {
            bits: Box::new([0; BITS / 64]),
            slots: Box::new([NONE; SLOTS]),
            entries: Vec::with_capacity(SLOTS),
        };
        // Each goes before those of its slot that are there, so the last comes first.
        for (rule, form) in forms.iter().enumerate().rev() {
            let (Ok(rule), Some(window)) = (u16::try_from(rule), Window::of(form)) else {
                continue;
            };
            let own = Try { rule, back: window.back, runs: window.runs };
            window.spell(|word| anchors.insert(word, own));
        }
        anchors
    }

    fn insert(&mut self, word: u32, own: Try) {
        let Ok(place) = u16::try_from(self.entries.len()) else { return };
        let (Some(bits), Some(first)) =
            (self.bits.get_mut(bit(word) / 64), self.slots.get_mut(slot(word)))
        else {
            return;
        };
        *bits |= 1 << (bit(word) % 64);
        self.entries.push(Entry { word, own, next: *first });
        *first = place;
    }

    /// What to try where a word stands.
    fn tries(&self, word: u32) -> Tries<'_> {
        let next = self.slots.get(slot(word)).copied().unwrap_or(NONE);
        Tries { anchors: self, word, next }
    }

    /// The next place from `from` on where a rule could fit, with what to try there.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<(usize, Tries<'_>)> {
        let rest = text.get(from..)?;
        let (head, tail) = rest.split_at_checked(WIDTH - 1)?;
        let mut word = head.iter().fold(0, |word, byte| word << 8 | folded(*byte));
        for (at, byte) in tail.iter().enumerate() {
            word = word << 8 | folded(*byte);
            let place = bit(word);
            let bits = self.bits.get(place / 64).copied().unwrap_or(0);
            if bits >> (place % 64) & 1 == 1 {
                let tries = self.tries(word);
                if tries.clone().next().is_some() {
                    return Some((from + at, tries));
                }
            }
        }
        None
    }

    /// What to try at a place.
    pub(super) fn at(&self, text: &[u8], place: usize) -> Tries<'_> {
        match text.get(place..place + WIDTH) {
            Some(bytes) => self.tries(bytes.iter().fold(0, |word, byte| word << 8 | folded(*byte))),
            None => Tries { anchors: self, word: 0, next: NONE },
        }
    }
}

/// What to try at a place, in its order.
#[derive(Clone, Debug)]
pub(super) struct Tries<'a> {
    anchors: &'a Anchors,
    word: u32,
    next: u16,
}

impl Iterator for Tries<'_> {
    type Item = Try;

    fn next(&mut self) -> Option<Try> {
        loop {
            let entry = self.anchors.entries.get(usize::from(self.next))?;
            self.next = entry.next;
            if entry.word == self.word {
                return Some(entry.own);
            }
        }
    }
}

/// The bytes of a set without their case, as bits.
const fn fold(set: Set) -> u128 {
    const LETTERS: u128 = (1 << 26) - 1;
    const DIGITS: u128 = 0x3ff << b'0';
    let bits = set.bits();
    let upper = bits >> b'A' & LETTERS;
    let digits = if bits & DIGITS == 0 { 0 } else { 1 << b'0' };
    bits & !DIGITS & !(LETTERS << b'A') | upper << b'a' | digits
}

/// The bytes of a form that are looked for.
struct Window {
    sets: [u128; WIDTH],
    back: u8,
    runs: bool,
}

impl Window {
    /// The four bytes of a form that are the rarest, among those that always stand at one place and
    /// have few spellings.
    fn of(form: &str) -> Option<Self> {
        let mut places = Items::of(form).filter_map(|item| match item {
            Item::Place(place) => Some(place),
            Item::Open | Item::Close => None,
        });
        let first: Place = places.next()?;
        let runs = first.least != first.most && first.most != RUN;
        let lead = if runs { first.least.min(WIDTH - 1) } else { first.least };
        let mut sets = alloc::vec![fold(first.set); lead];
        if runs || first.least == first.most {
            for place in places {
                sets.extend(core::iter::repeat_n(fold(place.set), place.least));
                if place.least != place.most || sets.len() > 120 {
                    break;
                }
            }
        }
        // Behind a run of no one length, its end is what the rest is measured from.
        let most = if runs { lead + 1 } else { usize::MAX };
        let windows = sets.windows(WIDTH).enumerate().take(most);
        let fitting = windows.filter(|(_, own)| {
            own.iter().map(|set| set.count_ones()).product::<u32>() <= SPELLINGS
        });
        let mut rates = Rates::default();
        let rated =
            fitting.map(|(at, own)| (own.iter().map(|set| rates.of(*set)).product::<u64>(), at));
        let (_, at) = rated.min()?;
        let mut chosen = [0; WIDTH];
        chosen.iter_mut().zip(sets.get(at..)?).for_each(|(to, from)| *to = *from);
        let back = if runs { lead.checked_sub(at)? } else { at };
        Some(Self { sets: chosen, back: u8::try_from(back).ok()?, runs })
    }

    /// Every spelling, without its case.
    fn spell(&self, mut each: impl FnMut(u32)) {
        let [first, second, third, fourth] = self.sets;
        for one in bytes(first) {
            for two in bytes(second) {
                for three in bytes(third) {
                    for four in bytes(fourth) {
                        each(u32::from_be_bytes([one, two, three, four]));
                    }
                }
            }
        }
    }
}

fn bytes(set: u128) -> impl Iterator<Item = u8> {
    let mut left = set;
    core::iter::from_fn(move || {
        let next = u8::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
        left &= left - 1;
        Some(next)
    })
}

/// How often a byte of a set stands in a text; neighbours have mostly the same set.
#[derive(Default)]
struct Rates(Option<(u128, u64)>);

impl Rates {
    fn of(&mut self, set: u128) -> u64 {
        match self.0 {
            Some((last, rate)) if last == set => rate,
            _ => {
                let rate = bytes(set).map(|byte| u64::from(frequency(byte))).sum();
                self.0 = Some((set, rate));
                rate
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_bytes_to_be_found_by() {
        let mut words = 0;
        for rule in crate::rules::all() {
            let window = Window::of(rule.form).unwrap_or_else(|| panic!("{}", rule.form));
            window.spell(|_| words += 1);
        }
        assert!(words < SLOTS, "{words} words fill the table too much");
    }
}
