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

/// The bytes at one place of a form, without their case.
#[derive(Clone, Copy)]
struct Spot {
    at: usize,
    set: u128,
    /// How many there are.
    spellings: u32,
    /// How often one of them stands in a text, as [`frequency`] has it.
    rate: u64,
}

/// The places of a form from its beginning on.
struct Spots {
    list: Vec<Spot>,
    length: usize,
}

impl Spots {
    /// Adds places that are all alike. Of many, those in the middle are left out: four in a row are no
    /// rarer there than where they begin.
    fn add(&mut self, set: Set, count: usize) {
        let (set, start) = (fold(set), self.length);
        let spellings = set.count_ones();
        let rate = bytes(set).map(|byte| u64::from(frequency(byte))).sum();
        let last = count.saturating_sub(WIDTH).max(WIDTH)..count;
        let kept = (0..count.min(WIDTH)).chain(last);
        self.list.extend(kept.map(|at| Spot { at: start + at, set, spellings, rate }));
        self.length += count;
    }
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
        let mut spots = Spots { list: Vec::with_capacity(32), length: 0 };
        spots.add(first.set, lead);
        if runs || first.least == first.most {
            for place in places {
                spots.add(place.set, place.least);
                if place.least != place.most || spots.length > 120 {
                    break;
                }
            }
        }
        // Behind a run of no one length, its end is what the rest is measured from.
        let most = if runs { lead + 1 } else { usize::MAX };
        let windows = spots.list.windows(WIDTH).take(most);
        let fitting = windows
            .filter(|own| own.iter().map(|spot| spot.spellings).product::<u32>() <= SPELLINGS);
        let rated = fitting.filter_map(|own| {
            let rate = own.iter().map(|spot| spot.rate).product::<u64>();
            own.first().map(|first| (rate, first.at, own))
        });
        let (_, at, found) = rated.min_by_key(|(rate, at, _)| (*rate, *at))?;
        let mut sets = [0; WIDTH];
        sets.iter_mut().zip(found).for_each(|(to, from)| *to = from.set);
        let back = if runs { lead.checked_sub(at)? } else { at };
        Some(Self { sets, back: u8::try_from(back).ok()?, runs })
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
