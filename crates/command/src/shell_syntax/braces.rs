//! Braces: `{a,b}` and `{1..5}` make several words of one.
//!
//! Bash reads unbalanced and half-made braces in ways that few know. Here braces are balanced, and
//! hold commas, a range, or neither: then they are text, as in `{}`, `HEAD@{1}` or `{print}`. Other
//! braces are refused, which makes the simple reading below the one that bash has.

use alloc::string::String;
use alloc::vec::Vec;

use super::refusal::SyntaxRefusal;
use super::tokens::{CharKind, Unit};
use super::unsupported::UnsupportedSyntax;
use capsule_base::limits;

/// A part of a word with braces.
enum BracePart {
    Unit(Unit),
    /// One of these.
    Choice(Vec<Vec<BracePart>>),
}

/// Whether braces of this word could make several of it.
pub(super) fn contain_braces(units: &[Unit]) -> bool {
    units.iter().any(|unit| unit.is('{')) && units.iter().any(|unit| unit.is('}'))
}

/// The words that a word makes. One that has nothing left is none, as in `{,a}`.
pub(super) fn expand(units: Vec<Unit>) -> Result<Vec<Vec<Unit>>, SyntaxRefusal> {
    let has = |c: char| units.iter().any(|unit| unit.is(c));
    if !has('{') || !(has('}') || has(',')) {
        return Ok([units].into());
    }
    let mut reader = BraceParser { units: &units, at: 0 };
    let parts = reader.read_sequence(0)?;
    if let Some(unit) = units.get(reader.at) {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::Brace, unit.at..unit.at + 1));
    }
    let place = units.first().map_or(0, |unit| unit.at);
    let mut room = limits::ARGV_BYTES;
    let mut words = expand_parts(&parts, place, &mut room)?;
    words.retain(|word| !word.is_empty());
    Ok(words)
}

struct BraceParser<'u> {
    units: &'u [Unit],
    at: usize,
}

impl BraceParser<'_> {
    /// Reads up to a comma or a closing brace of the level above.
    fn read_sequence(&mut self, depth: usize) -> Result<Vec<BracePart>, SyntaxRefusal> {
        let mut parts = Vec::new();
        while let Some(unit) = self.units.get(self.at).copied() {
            match unit.bare() {
                Some('{') => self.read_braces(depth + 1, &mut parts)?,
                Some('}') => break,
                Some(',') if depth > 0 => break,
                _ => {
                    self.at += 1;
                    parts.push(BracePart::Unit(unit));
                }
            }
        }
        Ok(parts)
    }

    /// Reads from an opening brace to behind its closing one.
    fn read_braces(
        &mut self,
        depth: usize,
        parts: &mut Vec<BracePart>,
    ) -> Result<(), SyntaxRefusal> {
        let first = self.at;
        let Some(open) = self.units.get(first).copied() else { return Ok(()) };
        let (of, place) = ("levels of braces", open.at..open.at + 1);
        SyntaxRefusal::check(depth, of, limits::BRACE_DEPTH, &place)?;
        let mut choices = Vec::new();
        let close = loop {
            self.at += 1;
            choices.push(self.read_sequence(depth)?);
            match self.units.get(self.at) {
                Some(unit) if unit.is(',') => {}
                Some(unit) => break *unit,
                None => return Err(SyntaxRefusal::of(UnsupportedSyntax::Brace, place)),
            }
        };
        let inner = self.units.get(first + 1..self.at).unwrap_or_default();
        self.at += 1;
        if choices.len() > 1 {
            parts.push(BracePart::Choice(choices));
        } else if let Some(range) = range(inner, open.at..close.at + 1)? {
            parts.push(BracePart::Choice(range));
        } else if choices.iter().any(|row| has_dots(row)) {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::Brace, open.at..close.at + 1));
        } else {
            parts.push(BracePart::Unit(open));
            parts.extend(choices.into_iter().flatten());
            parts.push(BracePart::Unit(close));
        }
        Ok(())
    }
}

/// Whether two dots stand side by side, which makes bash look for a range.
fn has_dots(row: &[BracePart]) -> bool {
    let is_dot = |part: &BracePart| matches!(part, BracePart::Unit(unit) if unit.is('.'));
    row.windows(2).any(|pair| pair.iter().all(is_dot))
}

/// `1..5`, `01..10`, `9..1..2` or `a..e`; none for anything else.
fn range(
    units: &[Unit],
    span: core::ops::Range<usize>,
) -> Result<Option<Vec<Vec<BracePart>>>, SyntaxRefusal> {
    let text: Option<String> = units.iter().map(|unit| unit.bare()).collect();
    let Some(text) = text else { return Ok(None) };
    let mut ends = text.split("..");
    let (Some(from), Some(to), step, None) = (ends.next(), ends.next(), ends.next(), ends.next())
    else {
        return Ok(None);
    };
    let step = match step {
        None => 1,
        Some(step) => match number(step) {
            Some(step) => step.abs().max(1),
            None => return Ok(None),
        },
    };
    let (first, last, width, is_letter) = match (number(from), number(to)) {
        (Some(first), Some(last)) => (first, last, width(from, to), false),
        _ => match (letter(from), letter(to)) {
            (Some(first), Some(last)) if first.is_lowercase() == last.is_lowercase() => {
                (i64::from(u32::from(first)), i64::from(u32::from(last)), 0, true)
            }
            _ => return Ok(None),
        },
    };
    let count = (last.abs_diff(first) / step.unsigned_abs()).saturating_add(1);
    if count > limits::BRACE_WORDS as u64 {
        return Err(SyntaxRefusal::limit(span, "words made by a brace", limits::BRACE_WORDS));
    }
    let mut choices = Vec::new();
    let mut value = first;
    for _ in 0..count {
        let shown = match u8::try_from(value) {
            Ok(letter) if is_letter => String::from(char::from(letter)),
            _ => alloc::format!("{value:0width$}"),
        };
        let unit = |c| BracePart::Unit(Unit { kind: CharKind::Bare(c), at: span.start });
        choices.push(shown.chars().map(unit).collect());
        value = if last < first { value - step } else { value + step };
    }
    Ok(Some(choices))
}

/// A whole number that every reader keeps exact.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let fits = (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| fits)
}

/// How wide numbers are written: as the longer end, where one begins with a zero.
fn width(from: &str, to: &str) -> usize {
    let is_padded = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.len() > 1 && digits.starts_with('0')
    };
    if is_padded(from) || is_padded(to) { from.len().max(to.len()) } else { 0 }
}

fn letter(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|c| c.is_ascii_alphabetic() && chars.next().is_none())
}

/// Every word that the parts can make, the last brace turning first. `room` is how many characters
/// may still be made.
fn expand_parts(
    parts: &[BracePart],
    place: usize,
    budget: &mut usize,
) -> Result<Vec<Vec<Unit>>, SyntaxRefusal> {
    let mut words: Vec<Vec<Unit>> = [Vec::new()].into();
    for part in parts {
        match part {
            BracePart::Unit(unit) => {
                reserve(budget, words.len(), place)?;
                words.iter_mut().for_each(|word| word.push(*unit));
            }
            BracePart::Choice(rows) => {
                let mut choices = Vec::new();
                for row in rows {
                    choices.extend(expand_parts(row, place, budget)?);
                    check_count(choices.len(), place)?;
                }
                words = product(&words, &choices, place, budget)?;
            }
        }
    }
    Ok(words)
}

/// Each of these followed by each of those.
fn product(
    words: &[Vec<Unit>],
    choices: &[Vec<Unit>],
    place: usize,
    budget: &mut usize,
) -> Result<Vec<Vec<Unit>>, SyntaxRefusal> {
    check_count(words.len().saturating_mul(choices.len()), place)?;
    let mut made = Vec::new();
    for word in words {
        for choice in choices {
            reserve(budget, word.len() + choice.len(), place)?;
            made.push([word.as_slice(), choice].concat());
        }
    }
    Ok(made)
}

fn check_count(count: usize, place: usize) -> Result<(), SyntaxRefusal> {
    let most = limits::BRACE_WORDS;
    SyntaxRefusal::check(count, "words made by a brace", most, &(place..place))
}

fn reserve(budget: &mut usize, units: usize, place: usize) -> Result<(), SyntaxRefusal> {
    let limit = || SyntaxRefusal::limit(place..place, "bytes of words", limits::ARGV_BYTES);
    *budget = budget.checked_sub(units).ok_or_else(limit)?;
    Ok(())
}
