//! Where to look: the places of a text at which a rule could fit, found in one pass.
//!
//! Of each rule, four bytes are chosen that have to be there, the rarest of its form. A bit for each
//! such four says in a few instructions that nothing begins here, which is what is said of nearly
//! every place of nearly every text; a table tells the rest.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::form::{Item, Items, Place, RUN, Set};
use crate::trials::SHIPPED;

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

/// What a rule is found by: this text, and behind it what has this form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning<'f> {
    pub(super) text: &'f [u8],
    pub(super) form: &'f str,
}

/// A table of where rules could fit.
struct Table {
    bits: [u64; BITS / 64],
    /// The first entry of each slot.
    slots: [u16; SLOTS],
    entries: [Entry; SLOTS],
    /// How many of them there are.
    count: usize,
}

impl Table {
    /// The shipped rules, from the last to the first that is to be tried: each entry goes before those
    /// of its slot that are there.
    #[expect(clippy::indexing_slicing, reason = "a constant: out of bounds does not compile")]
    const fn shipped() -> Self {
        let own = Try { rule: 0, back: 0, runs: false };
        let mut table = Self {
            bits: [0; BITS / 64],
            slots: [NONE; SLOTS],
            entries: [Entry { word: 0, own, next: NONE }; SLOTS],
            count: 0,
        };
        let mut rule = SHIPPED.len();
        while rule > 0 {
            rule -= 1;
            let Some(window) = Window::of(SHIPPED[rule].0) else { continue };
            let own = Try { rule: rule as u16, back: window.back, runs: window.runs };
            let mut words = window.words();
            while let Some(word) = words.read() {
                let (bit, slot) = (bit(word), slot(word));
                table.bits[bit / 64] |= 1 << (bit % 64);
                table.entries[table.count] = Entry { word, own, next: table.slots[slot] };
                table.slots[slot] = table.count as u16;
                table.count += 1;
            }
        }
        table
    }
}

/// The table of the shipped rules, which is made when this crate is built.
static TABLE: Table = Table::shipped();

/// Says where rules could fit: the shipped ones, and more.
#[derive(Clone)]
pub(super) struct Anchors {
    bits: Cow<'static, [u64; BITS / 64]>,
    slots: Cow<'static, [u16; SLOTS]>,
    /// The entries that go on behind those of the table.
    more: Vec<Entry>,
}

impl core::fmt::Debug for Anchors {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Anchors").field("more", &self.more.len()).finish_non_exhaustive()
    }
}

impl Anchors {
    /// For the shipped rules.
    pub(super) const fn shipped() -> Self {
        let (bits, slots) = (Cow::Borrowed(&TABLE.bits), Cow::Borrowed(&TABLE.slots));
        Self { bits, slots, more: Vec::new() }
    }

    /// Adds a rule that begins with these bytes, to be tried before those that are there.
    pub(super) fn add(&mut self, rule: usize, text: &[u8]) {
        let window = Window::of(Beginning { text, form: "" });
        let (Ok(rule), Some(window)) = (u16::try_from(rule), window) else { return };
        let own = Try { rule, back: window.back, runs: window.runs };
        let mut words = window.words();
        while let Some(word) = words.read() {
            self.insert(word, own);
        }
    }

    fn insert(&mut self, word: u32, own: Try) {
        let Ok(place) = u16::try_from(TABLE.count + self.more.len()) else { return };
        let (Some(bits), Some(first)) =
            (self.bits.to_mut().get_mut(bit(word) / 64), self.slots.to_mut().get_mut(slot(word)))
        else {
            return;
        };
        *bits |= 1 << (bit(word) % 64);
        self.more.push(Entry { word, own, next: *first });
        *first = place;
    }

    fn entry(&self, place: u16) -> Option<&Entry> {
        match usize::from(place).checked_sub(TABLE.count) {
            None => TABLE.entries.get(usize::from(place)),
            Some(more) => self.more.get(more),
        }
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
            let entry = self.anchors.entry(self.next)?;
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

/// How far into a rule is looked, in bytes.
const FAR: usize = 120;

/// The places of a rule from its beginning on.
struct Spots {
    list: [Spot; FAR + 2 * WIDTH],
    count: usize,
    length: usize,
}

impl Spots {
    const fn none() -> Self {
        let spot = Spot { at: 0, set: 0, spellings: 0, rate: 0 };
        Self { list: [spot; FAR + 2 * WIDTH], count: 0, length: 0 }
    }

    /// Adds places that are all alike. Of many, those in the middle are left out: four in a row are no
    /// rarer there than where they begin.
    #[expect(clippy::indexing_slicing, reason = "a form with too many places panics")]
    const fn add(&mut self, set: Set, count: usize) {
        let set = fold(set);
        let (mut left, mut rate) = (set, 0);
        while left > 0 {
            rate += frequency(left.trailing_zeros() as u8) as u64;
            left &= left - 1;
        }
        let mut at = 0;
        while at < count {
            if at < WIDTH || at + WIDTH >= count {
                let spellings = set.count_ones();
                self.list[self.count] = Spot { at: self.length + at, set, spellings, rate };
                self.count += 1;
            }
            at += 1;
        }
        self.length += count;
    }
}

/// The places of a rule, one after the other.
struct Places<'f> {
    text: &'f [u8],
    items: Items<'f>,
}

impl Places<'_> {
    const fn next(&mut self) -> Option<Place> {
        if let [first, rest @ ..] = self.text {
            self.text = rest;
            return Some(Place { set: Set::of(*first), least: 1, most: 1 });
        }
        loop {
            match self.items.read() {
                Some(Item::Place(place)) => return Some(place),
                Some(Item::Open | Item::Close) => {}
                None => return None,
            }
        }
    }
}

/// The bytes of a rule that are looked for.
#[derive(Clone, Copy)]
struct Window {
    sets: [u128; WIDTH],
    back: u8,
    runs: bool,
}

impl Window {
    /// The four bytes of a rule that are the rarest, among those that always stand at one place and
    /// have few spellings.
    const fn of(Beginning { text, form }: Beginning<'_>) -> Option<Self> {
        let mut places = Places { text, items: Items::of(form) };
        let Some(first) = places.next() else { return None };
        let runs = first.least != first.most && first.most != RUN;
        let lead = if runs && first.least >= WIDTH { WIDTH - 1 } else { first.least };
        let mut spots = Spots::none();
        spots.add(first.set, lead);
        if runs || first.least == first.most {
            while let Some(place) = places.next() {
                spots.add(place.set, place.least);
                if place.least != place.most || spots.length > FAR {
                    break;
                }
            }
        }
        // Behind a run of no one length, its end is what the rest is measured from.
        let most = if runs { lead } else { usize::MAX };
        match spots.rarest(most) {
            Some((at, sets)) if runs && at <= lead => {
                Some(Self { sets, back: (lead - at) as u8, runs })
            }
            Some((at, sets)) if !runs && at <= u8::MAX as usize => {
                Some(Self { sets, back: at as u8, runs })
            }
            _ => None,
        }
    }
}

impl Window {
    /// Every spelling, without its case.
    const fn words(self) -> Words {
        Words { sets: self.sets, left: self.sets }
    }
}

/// The spellings of a window: a byte out of each set.
struct Words {
    sets: [u128; WIDTH],
    /// What was not taken so far, of each set.
    left: [u128; WIDTH],
}

impl Words {
    #[expect(clippy::indexing_slicing, reason = "the loops end before the list")]
    const fn read(&mut self) -> Option<u32> {
        let mut word = 0;
        let mut at = 0;
        while at < WIDTH {
            if self.left[at] == 0 {
                return None;
            }
            word = word << 8 | self.left[at].trailing_zeros();
            at += 1;
        }
        // As a counter goes on: the last place first, and the one before when that is through.
        while at > 0 {
            at -= 1;
            self.left[at] &= self.left[at] - 1;
            if self.left[at] > 0 || at == 0 {
                break;
            }
            self.left[at] = self.sets[at];
        }
        Some(word)
    }
}

impl Spots {
    /// The first of the rarest four with few spellings, that begin with one of the first places.
    #[expect(clippy::indexing_slicing, reason = "the loop ends before the list")]
    const fn rarest(&self, most: usize) -> Option<(usize, [u128; WIDTH])> {
        let (mut found, mut lowest) = (None, u64::MAX);
        let mut at = 0;
        while at <= most && at + WIDTH <= self.count {
            let (mut spellings, mut rate) = (1_u32, 1_u64);
            let mut sets = [0; WIDTH];
            let mut own = 0;
            while own < WIDTH {
                let spot = self.list[at + own];
                spellings = spellings.saturating_mul(spot.spellings);
                rate *= spot.rate;
                sets[own] = spot.set;
                own += 1;
            }
            if spellings <= SPELLINGS && rate < lowest {
                lowest = rate;
                found = Some((self.list[at].at, sets));
            }
            at += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_bytes_to_be_found_by() {
        for rule in crate::rules::all() {
            let beginning = Beginning { text: b"", form: rule.form };
            assert!(Window::of(beginning).is_some(), "{}", rule.form);
        }
    }
}
