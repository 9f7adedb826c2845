//! Characters that may be taken for others.
//!
//! A Cyrillic letter in a Latin name, a fullwidth dash, a slash that is none: what a person reads is
//! not what is there. Where every character matters, each of them is shown as its code point. A word
//! that is wholly of another script is left as it is, unless all of its letters pass for Latin ones.

use alloc::collections::BTreeSet;
use core::mem;

/// Cyrillic, Greek and Armenian letters that pass for Latin ones.
const CONFUSABLE_LETTERS: &[char] = &[
    '\u{430}', '\u{435}', '\u{43e}', '\u{440}', '\u{441}', '\u{443}', '\u{445}', '\u{456}',
    '\u{458}', '\u{455}', '\u{501}', '\u{4bb}', '\u{4cf}', '\u{51b}', '\u{51d}', '\u{475}',
    '\u{43a}', '\u{43c}', '\u{442}', '\u{432}', '\u{43d}', '\u{433}', '\u{43f}', '\u{44c}',
    '\u{491}', '\u{410}', '\u{412}', '\u{415}', '\u{41a}', '\u{41c}', '\u{41d}', '\u{41e}',
    '\u{420}', '\u{421}', '\u{422}', '\u{423}', '\u{425}', '\u{405}', '\u{406}', '\u{408}',
    '\u{50c}', '\u{4ae}', '\u{3b1}', '\u{3bf}', '\u{3bd}', '\u{3c1}', '\u{3c5}', '\u{3b9}',
    '\u{3ba}', '\u{3c4}', '\u{3c7}', '\u{3b3}', '\u{3c9}', '\u{3b5}', '\u{3b7}', '\u{391}',
    '\u{392}', '\u{395}', '\u{396}', '\u{397}', '\u{399}', '\u{39a}', '\u{39c}', '\u{39d}',
    '\u{39f}', '\u{3a1}', '\u{3a4}', '\u{3a5}', '\u{3a7}', '\u{585}', '\u{57d}', '\u{578}',
    '\u{570}', '\u{581}', '\u{566}', '\u{57c}', '\u{584}', '\u{575}', '\u{56c}',
];

/// Signs that pass for signs of paths and addresses, and the brackets of code points.
const CONFUSABLE_SIGNS: &[char] = &[
    '\u{2044}', '\u{2215}', '\u{29f8}', '\u{2571}', '\u{3033}', '\u{2216}', '\u{29f5}', '\u{29f9}',
    '\u{fe68}', '\u{2024}', '\u{2025}', '\u{3002}', '\u{ff61}', '\u{2236}', '\u{a789}', '\u{2d0}',
    '\u{fe55}', '\u{fe30}', '\u{2b9}', '\u{2ba}', '\u{2bc}', '\u{294}', '\u{1c3}', '\u{1c0}',
    '\u{2223}', '\u{2217}', '\u{204e}', '\u{fe61}', '\u{2039}', '\u{203a}', '\u{fe64}', '\u{fe65}',
    '\u{27e8}', '\u{27e9}', '\u{37e}', '\u{387}',
];

/// Dashes, which pass for the beginning of an option.
const DASHES: &[char] = &[
    '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}', '\u{fe58}',
    '\u{fe63}', '\u{30fc}', '\u{2e3a}', '\u{2e3b}', '\u{2d7}', '\u{207b}', '\u{2796}',
];

/// Whether a character stands for a Latin one whatever stands beside it: phonetic, mathematical,
/// fullwidth, circled and raised letters.
const fn is_styled_letter(c: char) -> bool {
    matches!(c,
        '\u{131}' | '\u{250}'..='\u{2af}' | '\u{1d00}'..='\u{1dbf}' | '\u{2070}'..='\u{209f}'
        | '\u{2100}'..='\u{214f}' | '\u{2160}'..='\u{217f}' | '\u{249c}'..='\u{24e9}'
        | '\u{a4d0}'..='\u{a4ff}' | '\u{a720}'..='\u{a7ff}' | '\u{fb00}'..='\u{fb06}'
        | '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{1f100}'..='\u{1f1ff}'
        | '\u{13a0}'..='\u{13ff}' | '\u{ab30}'..='\u{abbf}' | '\u{2c60}'..='\u{2cff}')
}

/// Whether a character leaves room without being a blank.
const fn is_invisible_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// Whether a letter is written from right to left, so that what stands beside it may be, too.
const fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Where characters stand that may be taken for others. `strict` is for names and words; in a text,
/// signs and blanks of good typography are left alone.
pub(crate) fn find_confusables(text: &str, strict: bool) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    if text.is_ascii() {
        return found;
    }
    let mut word = LetterRun::default();
    let mut begins = true;
    for (at, c) in text.char_indices() {
        let dash = begins && DASHES.contains(&c) && !text.get(at..).is_some_and(is_standalone_dash);
        let sign =
            CONFUSABLE_SIGNS.contains(&c) || is_invisible_space(c) || is_right_to_left(c) || dash;
        if is_styled_letter(c) || (strict && sign) {
            found.insert(at);
        }
        begins = c.is_whitespace() || matches!(c, '=' | '\'' | '"');
        if c.is_alphanumeric() {
            word.push(at, c);
        } else {
            found.append(&mut mem::take(&mut word).confusable_offsets());
        }
    }
    found.append(&mut word.confusable_offsets());
    found
}

/// Whether a dash is one between words.
fn is_standalone_dash(rest: &str) -> bool {
    rest.chars().nth(1).is_some_and(char::is_whitespace)
}

/// A run of letters and digits.
#[derive(Default)]
struct LetterRun {
    /// Whether it has a letter of ASCII.
    ascii: bool,
    /// Whether it has a letter of another script that passes for nothing.
    foreign: bool,
    confusable: BTreeSet<usize>,
}

impl LetterRun {
    fn push(&mut self, at: usize, c: char) {
        if c.is_ascii() {
            self.ascii |= c.is_ascii_alphabetic();
        } else if CONFUSABLE_LETTERS.contains(&c) {
            self.confusable.insert(at);
        } else {
            self.foreign = true;
        }
    }

    fn confusable_offsets(self) -> BTreeSet<usize> {
        if self.ascii || !self.foreign { self.confusable } else { BTreeSet::new() }
    }
}
