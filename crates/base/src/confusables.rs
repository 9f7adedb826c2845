//! Characters that may be taken for others.
//!
//! A Cyrillic letter in a Latin name, a fullwidth dash, a slash that is none: what a person reads is
//! not what is there. Where every character matters, each of them is shown as its code point. A word
//! that is wholly of another script is left as it is, unless all of its letters pass for Latin ones.

use alloc::collections::BTreeSet;
use core::mem;

use crate::confusable_characters::{CONFUSABLE_LETTERS, CONFUSABLE_SIGNS, DASHES};

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
