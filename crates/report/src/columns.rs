//! Putting text into columns: measured as a terminal shows it, wrapped and never lost.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a report is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The columns that may be used.
    pub width: usize,
    /// No boxes and no icons by themselves: for screen readers and dumb terminals.
    pub plain: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self { width: 80, plain: false }
    }
}

/// The columns that a text takes up.
#[must_use]
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A text padded to a number of columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut padded = String::from(text);
    padded.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    padded
}

/// A text cut to a number of columns, with a sign that it was cut.
#[must_use]
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.into();
    }
    let mut clipped = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        clipped.push(c);
    }
    clipped.push('…');
    clipped
}

/// A text in lines of a number of columns, broken at blanks where it has some.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(10);
    let mut lines = Vec::new();
    // What a text begins with puts its first word below something, such as a mark below a letter.
    let words = text.trim_start_matches(' ');
    let mut line = " ".repeat((text.len() - words.len()).min(columns / 2));
    let mut first = true;
    for word in words.split(' ') {
        let needed = width(word) + usize::from(!first);
        if width(&line) + needed > columns && !first {
            lines.push(std::mem::take(&mut line));
            first = true;
        }
        if !first {
            line.push(' ');
        }
        first = false;
        for c in word.chars() {
            if width(&line) + c.width().unwrap_or(0) > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// 1204 as 1,204.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_by_wrapping() {
        let text = "one two  three-which-is-longer-than-a-line four 日本語日本語日本語";
        let lines = wrap(text, 12);
        assert!(lines.iter().all(|line| width(line) <= 12), "{lines:?}");
        let kept: String = lines.concat().split(' ').collect();
        assert_eq!(kept, text.split(' ').collect::<String>());
    }

    #[test]
    fn what_a_text_begins_with_stays() {
        assert_eq!(wrap("   ^^^ here", 40), ["   ^^^ here"]);
        assert_eq!(wrap("   ^^^ here", 10), ["   ^^^", "here"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn clipping_shows_that_something_is_missing() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdefg", 6), "abcde…");
        assert_eq!(clip("日本語", 5), "日本…");
    }
}
