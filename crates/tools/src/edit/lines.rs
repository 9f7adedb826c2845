//! A text by its lines, each with its own end.

use std::ops::Range;

/// A line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    /// Where it begins.
    pub(super) start: usize,
    /// What stands on it.
    pub(super) text: &'t str,
    /// How it ends: nothing at the end of a text that does not end a line.
    pub(super) end: &'static str,
}

impl Line<'_> {
    /// Where its text ends.
    pub(super) const fn text_end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Where the next line begins.
    pub(super) const fn next_start(&self) -> usize {
        self.text_end() + self.end.len()
    }
}

/// The lines of a text.
#[derive(Clone, Debug)]
pub(super) struct Lines<'t> {
    pub(super) all: Vec<Line<'t>>,
    /// Whether a carriage return alone ends a line, as on old machines: only where nothing else does.
    pub(super) cr_only: bool,
}

impl<'t> Lines<'t> {
    pub(super) fn split(text: &'t str) -> Self {
        let old = !text.contains('\n') && text.contains('\r');
        let mut all = Vec::new();
        let mut start = 0;
        for whole in text.split_inclusive(if old { '\r' } else { '\n' }) {
            let (text, end) = match whole {
                _ if whole.ends_with("\r\n") => (whole.strip_suffix("\r\n"), "\r\n"),
                _ if whole.ends_with('\n') => (whole.strip_suffix('\n'), "\n"),
                _ if old && whole.ends_with('\r') => (whole.strip_suffix('\r'), "\r"),
                _ => (Some(whole), ""),
            };
            all.push(Line { start, text: text.unwrap_or(whole), end });
            start += whole.len();
        }
        Self { all, cr_only: old }
    }

    /// The line that a place is on, counted from 0.
    pub(super) fn line_at(&self, place: usize) -> usize {
        self.all
            .partition_point(|line| line.next_start() <= place)
            .min(self.all.len().saturating_sub(1))
    }

    /// How a line ends that is put in place of a range, as the `nth` of several: like the ones it
    /// replaces, else like its neighbours.
    pub(super) fn line_end_for(&self, range: &Range<usize>, nth: usize) -> Option<&'static str> {
        let (first, last) =
            (self.line_at(range.start), self.line_at(range.end.max(range.start + 1) - 1));
        let end = |at: usize| self.all.get(at).map(|line| line.end).filter(|end| !end.is_empty());
        let number = first.saturating_add(nth).min(last);
        let before = || self.all.get(..number)?.iter().rev().map(|line| line.end).next();
        end(number).or_else(before)
    }

    /// A text without the line ends at its end.
    pub(super) fn trim_line_ends<'o>(&self, text: &'o str) -> &'o str {
        let mut text = text;
        loop {
            let shorter = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n'));
            match shorter.or_else(|| text.strip_suffix('\r').filter(|_| self.cr_only)) {
                Some(shorter) => text = shorter,
                None => return text,
            }
        }
    }

    /// The end of the last line.
    pub(super) fn last_end(&self) -> &'static str {
        self.all.last().map_or("", |line| line.end)
    }
}

/// A text whose lines all end with a line feed; `old` as in [`Lines`].
pub(super) fn with_line_feeds(text: &str, old: bool) -> String {
    let text = text.replace("\r\n", "\n");
    if old { text.replace('\r', "\n") } else { text }
}

/// A text whose line ends are like those of the lines that it replaces.
pub(super) fn with_line_ends_of(text: &str, lines: &Lines<'_>, range: &Range<usize>) -> String {
    let mut made = String::with_capacity(text.len());
    for (nth, part) in text.split_inclusive('\n').enumerate() {
        let (body, end) = match (part.strip_suffix("\r\n"), part.strip_suffix('\n')) {
            (Some(body), _) => (body, "\r\n"),
            (None, Some(body)) => (body, "\n"),
            (None, None) => (part, ""),
        };
        made.push_str(body);
        made.push_str(match end {
            "" => "",
            end => lines.line_end_for(range, nth).unwrap_or(end),
        });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends() {
        let ends = |text: &'static str| {
            Lines::split(text).all.iter().map(|line| (line.text, line.end)).collect::<Vec<_>>()
        };
        assert_eq!(ends("a\r\nb\n\nc"), [("a", "\r\n"), ("b", "\n"), ("", "\n"), ("c", "")]);
        assert_eq!(ends("a\rb\r"), [("a", "\r"), ("b", "\r")]);
        assert_eq!(ends("a\rb\n"), [("a\rb", "\n")]);
        assert_eq!(ends(""), []);
        let lines = Lines::split("a\r\nb\nc");
        assert_eq!([0, 2, 3, 4, 5, 9].map(|place| lines.line_at(place)), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn new_lines_end_like_the_old_ones() {
        let lines = Lines::split("a\r\nb\nc");
        for (range, text, ended) in [
            (0..1, "x\ny\nz", "x\r\ny\r\nz"),
            (0..4, "x\ny\nz", "x\r\ny\nz"),
            (3..4, "x\r\ny", "x\ny"),
            (5..6, "x\ny", "x\ny"),
        ] {
            assert_eq!(with_line_ends_of(text, &lines, &range), ended, "{range:?}");
        }
        assert_eq!(with_line_ends_of("x\r\ny\n", &Lines::split("a"), &(0..1)), "x\r\ny\n");
    }
}
