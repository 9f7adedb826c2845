//! Counts the lines in which two texts differ.

use std::time::Duration;

/// Lines added and removed.
pub fn changed_line_counts(old: &[u8], new: &[u8]) -> (u64, u64) {
    /// Beyond this a difference is not worth its time.
    const MOST: usize = 2_000_000;
    let lines = |text: &[u8]| u64::try_from(text.split_inclusive(|b| *b == b'\n').count());
    if old.is_empty() || new.is_empty() || old.len() + new.len() > MOST {
        return (lines(new).unwrap_or(0), lines(old).unwrap_or(0));
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = similar::TextDiff::configure()
        .timeout(Duration::from_millis(200))
        .diff_lines(old.as_ref(), new.as_ref());
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        similar::ChangeTag::Insert => (added + 1, removed),
        similar::ChangeTag::Delete => (added, removed + 1),
        similar::ChangeTag::Equal => (added, removed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted() {
        assert_eq!(changed_line_counts(b"", b"a\nb\n"), (2, 0));
        assert_eq!(changed_line_counts(b"a\nb\n", b"a\nc\n"), (1, 1));
        assert_eq!(changed_line_counts(b"a\n", b""), (0, 1));
        assert_eq!(changed_line_counts(b"", b""), (0, 0));
    }
}
