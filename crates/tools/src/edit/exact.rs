//! Where a text stands in another, byte for byte or but for the ends of lines.

use std::ops::Range;

use capsule_base::limits;

use crate::edit::lines::{Lines, with_line_feeds};
use crate::edit::tolerant::TooCostly;

/// Where something was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Occurrences {
    pub(super) ranges: Vec<Range<usize>>,
    /// Whether two of them share something: then it cannot be told which are meant.
    pub(super) overlaps: bool,
}

impl Occurrences {
    pub(super) fn add(&mut self, range: Range<usize>) {
        self.overlaps |= self.ranges.last().is_some_and(|last| range.start < last.end);
        self.ranges.push(range);
    }
}

/// Everywhere that `search` is in `text`, overlapping places included.
///
/// # Errors
/// So many places overlap that to compare them takes too long.
pub(super) fn find_exact(text: &str, search: &str) -> Result<Occurrences, TooCostly> {
    let mut places = Occurrences::default();
    let step = search.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(search)) {
        let start = from + found;
        places.add(start..start + search.len());
        if places.overlaps && places.ranges.len() * search.len() > limits::EDIT_OVERLAP_BYTES {
            return Err(TooCostly);
        }
        from = start + step;
    }
    Ok(places)
}

/// The same where lines may end otherwise. None where that makes no difference.
///
/// # Errors
/// As [`find_exact`].
pub(super) fn find_ignoring_line_ends(
    text: &str,
    search: &str,
    lines: &Lines<'_>,
) -> Result<Occurrences, TooCostly> {
    let flat = with_line_feeds(text, lines.cr_only);
    let wanted = with_line_feeds(search, lines.cr_only);
    // Where each line begins in the text whose lines all end alike.
    let mut starts = Vec::with_capacity(lines.all.len());
    let mut start = 0;
    for line in &lines.all {
        starts.push(start);
        start += line.text.len() + usize::from(!line.end.is_empty());
    }
    let back = |place: usize| -> usize {
        let at = starts.partition_point(|start| *start <= place).saturating_sub(1);
        match (lines.all.get(at), starts.get(at)) {
            (Some(line), Some(start)) if place - start <= line.text.len() => {
                line.start + (place - start)
            }
            _ => text.len(),
        }
    };
    let mut places = find_exact(&flat, &wanted)?;
    for range in &mut places.ranges {
        *range = back(range.start)..back(range.end);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found() {
        for (text, search, ranges, overlaps) in [
            ("abcabc", "bc", vec![1..3, 4..6], false),
            ("aaaa", "aa", vec![0..2, 1..3, 2..4], true),
            ("éé", "é", vec![0..2, 2..4], false),
            ("abc", "x", vec![], false),
        ] {
            let expected = Occurrences { ranges, overlaps };
            assert_eq!(find_exact(text, search).ok(), Some(expected), "{text}");
        }
    }

    #[test]
    fn ends_of_lines_are_seen_through() {
        for (text, search, parts) in [
            ("a\r\nb\r\nc", "a\nb", vec!["a\r\nb"]),
            ("a\r\nb\r\nc", "b\nc", vec!["b\r\nc"]),
            ("xa\r\nby", "a\nb", vec!["a\r\nb"]),
            ("a\r\nb\r\n", "b\n", vec!["b\r\n"]),
            ("a\nb\n", "a\r\nb", vec!["a\nb"]),
            ("a\rb\r", "a\nb\n", vec!["a\rb\r"]),
            ("a\r\nb\na\nb\r\n", "a\nb\n", vec!["a\r\nb\n", "a\nb\r\n"]),
        ] {
            let found = find_ignoring_line_ends(text, search, &Lines::split(text)).unwrap();
            let found = found.ranges.into_iter().map(|range| text.get(range));
            let found: Vec<&str> = found.map(Option::unwrap).collect();
            assert_eq!(found, parts, "{text:?} {search:?}");
        }
    }
}
