//! Which lines of a text come closest to a block that is not in it.

use std::ops::Range;

use capsule_base::limits;

use crate::edit::lines::Lines;

/// The lines that come closest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestMatch {
    /// The first of them, counted from 1.
    pub line: usize,
    /// How many they are.
    pub lines: usize,
    /// Where they stand in the text.
    pub range: Range<usize>,
}

/// How many lines of the block are compared.
const COMPARED_LINES: usize = 16;
/// How many bytes of a line are compared.
const COMPARED_BYTES: usize = 200;
/// How many places are compared thoroughly.
const CANDIDATES: usize = 24;
/// How alike two blocks are at least, of 1, to be worth being shown.
const MIN_SIMILARITY: f64 = 0.45;

/// The lines that come closest to a block, if any come close.
pub(super) fn nearest_match(search: &str, lines: &Lines<'_>) -> Option<NearestMatch> {
    let full: Vec<&str> = search.lines().map(line_start).filter(|line| !line.is_empty()).collect();
    let wanted: Vec<&str> = full.iter().copied().take(COMPARED_LINES).collect();
    let own: Vec<(usize, &str)> = lines
        .all
        .iter()
        .enumerate()
        .map(|(at, line)| (at, line_start(line.text)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let wanted_marks: Vec<u128> = wanted.iter().map(|line| bigram_bits(line)).collect();
    let own_marks: Vec<u128> = own.iter().map(|(_, line)| bigram_bits(line)).collect();
    // Cheaply first: how many of the pairs of letters the lines of a place share.
    let rough = |first: usize| -> u32 {
        let window = own_marks.get(first..).unwrap_or_default();
        window.iter().zip(&wanted_marks).map(|(number, wanted)| similarity(*number, *wanted)).sum()
    };
    let mut places: Vec<(u32, usize)> = (0..own.len()).map(|at| (rough(at), at)).collect();
    places.sort_by_key(|(shared, at)| (std::cmp::Reverse(*shared), *at));
    let thorough = |first: usize| -> f64 {
        let window = own.get(first..).unwrap_or_default();
        let each = window.iter().zip(&wanted);
        let alike = each.map(|((_, text), wanted)| strsim::sorensen_dice(text, wanted));
        let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        alike.sum::<f64>() / f64::from(count.max(1))
    };
    let scored = places.iter().take(CANDIDATES).map(|(_, at)| (thorough(*at), *at));
    let (alike, first) =
        scored.max_by(|one, other| one.0.total_cmp(&other.0).then_with(|| other.1.cmp(&one.1)))?;
    (alike >= MIN_SIMILARITY).then(|| shown_lines(first, full.len(), &own, lines)).flatten()
}

/// The lines that are shown: as many as the block has, up to a limit.
fn shown_lines(
    first: usize,
    count: usize,
    item: &[(usize, &str)],
    lines: &Lines<'_>,
) -> Option<NearestMatch> {
    let (from, _) = *item.get(first)?;
    let (to, _) = *item.get(first + count.saturating_sub(1)).or(item.last())?;
    let to = to.min(from + limits::EDIT_SHOWN_LINES - 1);
    let begin = lines.all.get(from)?.start;
    let mut end = begin;
    let mut shown = 0;
    for line in lines.all.get(from..=to)? {
        if shown > 0 && line.text_end() - begin > limits::EDIT_SHOWN_BYTES {
            break;
        }
        end = line.text_end();
        shown += 1;
    }
    Some(NearestMatch { line: from + 1, lines: shown, range: begin..end })
}

/// The beginning of a line, without its indentation.
fn line_start(line: &str) -> &str {
    let line = line.trim();
    let mut end = line.len().min(COMPARED_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.get(..end).unwrap_or(line)
}

/// A bit for each pair of neighbouring bytes.
fn bigram_bits(line: &str) -> u128 {
    let pairs = line.as_bytes().windows(2);
    pairs.fold(0, |marks, pair| {
        let mixed = pair.iter().fold(0_u32, |mixed, byte| {
            mixed.wrapping_mul(31).wrapping_add(u32::from(byte.to_ascii_lowercase()))
        });
        marks | 1_u128 << (mixed.wrapping_mul(0x9e37_79b1) >> 25)
    })
}

/// How alike two sets of marks are, of 1,000.
const fn similarity(one: u128, other: u128) -> u32 {
    let all = (one | other).count_ones();
    match ((one & other).count_ones() * 1_000).checked_div(all) {
        Some(share) => share,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_lines_are_found() {
        let text = "fn one() {\n    first();\n}\n\nfn two(value: u32) -> u32 {\n    value + 1\n}\n";
        let found = |search: &str| {
            let near = nearest_match(search, &Lines::split(text))?;
            Some((near.line, text.get(near.range)?.to_owned()))
        };
        let two = "fn two(value: u32) -> u32 {\n    value + 1";
        assert_eq!(found("fn two(value: u64) -> u64 {\n  value + 1"), Some((5, two.into())));
        assert_eq!(found("first()"), Some((2, "    first();".into())));
        assert_eq!(found("nothing like that anywhere"), None);
        assert_eq!(found("\n\n"), None);
    }

    /// However large the file, the answer comes.
    #[test]
    fn large_files_are_looked_through() {
        let text = "the same line again and again\n".repeat(80_000);
        let began = std::time::Instant::now();
        let near =
            nearest_match(&"the same line again and again!\n".repeat(5_000), &Lines::split(&text));
        assert_eq!(near.map(|near| near.lines), Some(limits::EDIT_SHOWN_LINES));
        assert!(began.elapsed() < std::time::Duration::from_secs(10));
    }
}
