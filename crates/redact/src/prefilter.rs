//! Where to look: the places of a text at which a rule could fit, found in one pass.
//!
//! Of each rule, four bytes are chosen that have to be there, the rarest of its form. A bit for each
//! such four says in a few instructions that nothing begins here, which is what is said of nearly
//! every place of nearly every text; a table tells the rest.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::detectors::SHIPPED;
use crate::prefix::Prefix;
use crate::token_pattern::{ByteRun, ByteSet, MAX_RUN, PatternItem, PatternItems};

/// How many bytes of a rule are looked for.
pub(super) const NEEDLE_BYTES: usize = 4;
/// The most spellings of these bytes that are worth it.
const MAX_SPELLINGS: u32 = 1_200;
const BITS: usize = 1 << 17;
const SLOTS: usize = 1 << 13;
/// No entry.
const NO_ENTRY: u16 = u16::MAX;

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

fn fold_byte(byte: u8) -> u32 {
    FOLDED.get(usize::from(byte)).map_or(0, |byte| u32::from(*byte))
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

const fn hash(word: u32) -> u32 {
    word.wrapping_mul(0x9e37_79b1)
}

const fn bit_index(word: u32) -> usize {
    (hash(word) >> 15) as usize % BITS
}

const fn slot_index(word: u32) -> usize {
    (hash(word) >> 19) as usize % SLOTS
}

/// Where, from the place of the four bytes, a rule is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Which rule.
    pub(super) rule: u16,
    /// How far before the bytes it begins, or, where it begins with a run, how far the run reaches
    /// into them.
    pub(super) offset: u8,
    /// Whether it begins with a run of no one length.
    pub(super) starts_with_run: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    word: u32,
    candidate: Candidate,
    /// The next entry of the same slot.
    next: u16,
}

/// A table of where rules could fit.
struct PrefilterTable {
    bits: [u64; BITS / 64],
    /// The first entry of each slot.
    slots: [u16; SLOTS],
    entries: [Entry; SLOTS],
    /// How many of them there are.
    count: usize,
}

impl PrefilterTable {
    /// The shipped rules, from the last to the first that is to be tried: each entry goes before those
    /// of its slot that are there.
    #[expect(clippy::indexing_slicing, reason = "a constant: out of bounds does not compile")]
    const fn shipped() -> Self {
        let candidate = Candidate { rule: 0, offset: 0, starts_with_run: false };
        let mut table = Self {
            bits: [0; BITS / 64],
            slots: [NO_ENTRY; SLOTS],
            entries: [Entry { word: 0, candidate, next: NO_ENTRY }; SLOTS],
            count: 0,
        };
        let mut rule = SHIPPED.len();
        while rule > 0 {
            rule -= 1;
            let Some(window) = Needle::of(SHIPPED[rule].0) else { continue };
            let candidate = Candidate {
                rule: rule as u16,
                offset: window.offset,
                starts_with_run: window.starts_with_run,
            };
            let mut words = window.spellings();
            while let Some(word) = words.next() {
                let (bit, slot) = (bit_index(word), slot_index(word));
                table.bits[bit / 64] |= 1 << (bit % 64);
                table.entries[table.count] = Entry { word, candidate, next: table.slots[slot] };
                table.slots[slot] = table.count as u16;
                table.count += 1;
            }
        }
        table
    }
}

/// The table of the shipped rules, which is made when this crate is built.
static TABLE: PrefilterTable = PrefilterTable::shipped();

/// Says where rules could fit: the shipped ones, and more.
#[derive(Clone)]
pub(super) struct Prefilter {
    bits: Cow<'static, [u64; BITS / 64]>,
    slots: Cow<'static, [u16; SLOTS]>,
    /// The entries that go on behind those of the table.
    added: Vec<Entry>,
}

impl core::fmt::Debug for Prefilter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Anchors").field("more", &self.added.len()).finish_non_exhaustive()
    }
}

impl Prefilter {
    /// For the shipped rules.
    pub(super) const fn shipped() -> Self {
        let (bits, slots) = (Cow::Borrowed(&TABLE.bits), Cow::Borrowed(&TABLE.slots));
        Self { bits, slots, added: Vec::new() }
    }

    /// Adds a rule that begins with these bytes, to be tried before those that are there.
    pub(super) fn add(&mut self, rule: usize, text: &[u8]) {
        let window = Needle::of(Prefix { text, pattern: "" });
        let (Ok(rule), Some(window)) = (u16::try_from(rule), window) else { return };
        let candidate =
            Candidate { rule, offset: window.offset, starts_with_run: window.starts_with_run };
        let mut words = window.spellings();
        while let Some(word) = words.next() {
            self.insert(word, candidate);
        }
    }

    fn insert(&mut self, word: u32, candidate: Candidate) {
        let Ok(place) = u16::try_from(TABLE.count + self.added.len()) else { return };
        let (Some(bits), Some(first)) = (
            self.bits.to_mut().get_mut(bit_index(word) / 64),
            self.slots.to_mut().get_mut(slot_index(word)),
        ) else {
            return;
        };
        *bits |= 1 << (bit_index(word) % 64);
        self.added.push(Entry { word, candidate, next: *first });
        *first = place;
    }

    fn entry(&self, place: u16) -> Option<&Entry> {
        match usize::from(place).checked_sub(TABLE.count) {
            None => TABLE.entries.get(usize::from(place)),
            Some(more) => self.added.get(more),
        }
    }

    /// What to try where a word stands.
    fn candidates(&self, word: u32) -> Candidates<'_> {
        let next = self.slots.get(slot_index(word)).copied().unwrap_or(NO_ENTRY);
        Candidates { anchors: self, word, next }
    }

    /// The next place from `from` on where a rule could fit, with what to try there.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<(usize, Candidates<'_>)> {
        let rest = text.get(from..)?;
        let (head, tail) = rest.split_at_checked(NEEDLE_BYTES - 1)?;
        let mut word = head.iter().fold(0, |word, byte| word << 8 | fold_byte(*byte));
        for (at, byte) in tail.iter().enumerate() {
            word = word << 8 | fold_byte(*byte);
            let place = bit_index(word);
            let bits = self.bits.get(place / 64).copied().unwrap_or(0);
            if bits >> (place % 64) & 1 == 1 {
                let tries = self.candidates(word);
                if tries.clone().next().is_some() {
                    return Some((from + at, tries));
                }
            }
        }
        None
    }

    /// What to try at a place.
    pub(super) fn at(&self, text: &[u8], place: usize) -> Candidates<'_> {
        match text.get(place..place + NEEDLE_BYTES) {
            Some(bytes) => {
                self.candidates(bytes.iter().fold(0, |word, byte| word << 8 | fold_byte(*byte)))
            }
            None => Candidates { anchors: self, word: 0, next: NO_ENTRY },
        }
    }
}

/// What to try at a place, in its order.
#[derive(Clone, Debug)]
pub(super) struct Candidates<'a> {
    anchors: &'a Prefilter,
    word: u32,
    next: u16,
}

impl Iterator for Candidates<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        loop {
            let entry = self.anchors.entry(self.next)?;
            self.next = entry.next;
            if entry.word == self.word {
                return Some(entry.candidate);
            }
        }
    }
}

/// The bytes of a set without their case, as bits.
const fn fold_set(set: ByteSet) -> u128 {
    const LETTERS: u128 = (1 << 26) - 1;
    const DIGITS: u128 = 0x3ff << b'0';
    let bits = set.bits();
    let upper = bits >> b'A' & LETTERS;
    let digits = if bits & DIGITS == 0 { 0 } else { 1 << b'0' };
    bits & !DIGITS & !(LETTERS << b'A') | upper << b'a' | digits
}

/// The bytes at one place of a form, without their case.
#[derive(Clone, Copy)]
struct BytePosition {
    offset: usize,
    set: u128,
    /// How many there are.
    spellings: u32,
    /// How often one of them stands in a text, as [`frequency`] has it.
    frequency: u64,
}

/// How far into a rule is looked, in bytes.
const MAX_DEPTH: usize = 120;

/// The places of a rule from its beginning on.
struct BytePositions {
    list: [BytePosition; MAX_DEPTH + 2 * NEEDLE_BYTES],
    count: usize,
    length: usize,
}

impl BytePositions {
    const fn none() -> Self {
        let spot = BytePosition { offset: 0, set: 0, spellings: 0, frequency: 0 };
        Self { list: [spot; MAX_DEPTH + 2 * NEEDLE_BYTES], count: 0, length: 0 }
    }

    /// Adds places that are all alike. Of many, those in the middle are left out: four in a row are no
    /// rarer there than where they begin.
    #[expect(clippy::indexing_slicing, reason = "a form with too many places panics")]
    const fn add(&mut self, set: ByteSet, count: usize) {
        let set = fold_set(set);
        let (mut left, mut rate) = (set, 0);
        while left > 0 {
            rate += frequency(left.trailing_zeros() as u8) as u64;
            left &= left - 1;
        }
        let mut at = 0;
        while at < count {
            if at < NEEDLE_BYTES || at + NEEDLE_BYTES >= count {
                let spellings = set.count_ones();
                self.list[self.count] =
                    BytePosition { offset: self.length + at, set, spellings, frequency: rate };
                self.count += 1;
            }
            at += 1;
        }
        self.length += count;
    }
}

/// The places of a rule, one after the other.
struct PatternRuns<'f> {
    text: &'f [u8],
    items: PatternItems<'f>,
}

impl PatternRuns<'_> {
    const fn next(&mut self) -> Option<ByteRun> {
        if let [first, rest @ ..] = self.text {
            self.text = rest;
            return Some(ByteRun { set: ByteSet::of(*first), min: 1, max: 1 });
        }
        loop {
            match self.items.next_item() {
                Some(PatternItem::Place(place)) => return Some(place),
                Some(PatternItem::Open | PatternItem::Close) => {}
                None => return None,
            }
        }
    }
}

/// The bytes of a rule that are looked for.
#[derive(Clone, Copy)]
struct Needle {
    sets: [u128; NEEDLE_BYTES],
    offset: u8,
    starts_with_run: bool,
}

impl Needle {
    /// The four bytes of a rule that are the rarest, among those that always stand at one place and
    /// have few spellings.
    const fn of(Prefix { text, pattern: form }: Prefix<'_>) -> Option<Self> {
        let mut places = PatternRuns { text, items: PatternItems::of(form) };
        let Some(first) = places.next() else { return None };
        let runs = first.min != first.max && first.max != MAX_RUN;
        let lead = if runs && first.min >= NEEDLE_BYTES { NEEDLE_BYTES - 1 } else { first.min };
        let mut spots = BytePositions::none();
        spots.add(first.set, lead);
        if runs || first.min == first.max {
            while let Some(place) = places.next() {
                spots.add(place.set, place.min);
                if place.min != place.max || spots.length > MAX_DEPTH {
                    break;
                }
            }
        }
        // Behind a run of no one length, its end is what the rest is measured from.
        let most = if runs { lead } else { usize::MAX };
        match spots.rarest(most) {
            Some((at, sets)) if runs && at <= lead => {
                Some(Self { sets, offset: (lead - at) as u8, starts_with_run: runs })
            }
            Some((at, sets)) if !runs && at <= u8::MAX as usize => {
                Some(Self { sets, offset: at as u8, starts_with_run: runs })
            }
            _ => None,
        }
    }
}

impl Needle {
    /// Every spelling, without its case.
    const fn spellings(self) -> NeedleSpellings {
        NeedleSpellings { sets: self.sets, remaining: self.sets }
    }
}

/// The spellings of a window: a byte out of each set.
struct NeedleSpellings {
    sets: [u128; NEEDLE_BYTES],
    /// What was not taken so far, of each set.
    remaining: [u128; NEEDLE_BYTES],
}

impl NeedleSpellings {
    #[expect(clippy::indexing_slicing, reason = "the loops end before the list")]
    const fn next(&mut self) -> Option<u32> {
        let mut word = 0;
        let mut at = 0;
        while at < NEEDLE_BYTES {
            if self.remaining[at] == 0 {
                return None;
            }
            word = word << 8 | self.remaining[at].trailing_zeros();
            at += 1;
        }
        // As a counter goes on: the last place first, and the one before when that is through.
        while at > 0 {
            at -= 1;
            self.remaining[at] &= self.remaining[at] - 1;
            if self.remaining[at] > 0 || at == 0 {
                break;
            }
            self.remaining[at] = self.sets[at];
        }
        Some(word)
    }
}

impl BytePositions {
    /// The first of the rarest four with few spellings, that begin with one of the first places.
    #[expect(clippy::indexing_slicing, reason = "the loop ends before the list")]
    const fn rarest(&self, most: usize) -> Option<(usize, [u128; NEEDLE_BYTES])> {
        let (mut found, mut lowest) = (None, u64::MAX);
        let mut at = 0;
        while at <= most && at + NEEDLE_BYTES <= self.count {
            let (mut spellings, mut rate) = (1_u32, 1_u64);
            let mut sets = [0; NEEDLE_BYTES];
            let mut number = 0;
            while number < NEEDLE_BYTES {
                let spot = self.list[at + number];
                spellings = spellings.saturating_mul(spot.spellings);
                rate *= spot.frequency;
                sets[number] = spot.set;
                number += 1;
            }
            if spellings <= MAX_SPELLINGS && rate < lowest {
                lowest = rate;
                found = Some((self.list[at].offset, sets));
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
            let beginning = Prefix { text: b"", pattern: rule.pattern };
            assert!(Needle::of(beginning).is_some(), "{}", rule.pattern);
        }
    }
}
