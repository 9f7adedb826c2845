//! What is wrong with a text that a person wrote, and where.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::code::Code;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text is used as it is, but probably does not mean what was meant.
    Warning,
    /// The text is not used.
    Error,
}

/// One problem at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of problem.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// What is wrong: a fragment in lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error.
    #[must_use]
    pub fn error(code: Code, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, span, message: message.into(), hint: None }
    }

    /// A warning.
    #[must_use]
    pub fn warning(code: Code, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// A line and a column, both from 1 on; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    /// The position of a byte in a text.
    #[must_use]
    pub fn of(text: &str, byte: usize) -> Self {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = text.get(..byte).unwrap_or(text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let last = before.rsplit('\n').next().unwrap_or("");
        Self { line, column: last.chars().count() + 1 }
    }
}

/// Where the lines of a text begin, for whoever asks for many positions.
#[derive(Clone, Debug)]
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Finds the lines of a text.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: core::iter::once(0).chain(behind).collect() }
    }

    /// The text.
    #[must_use]
    pub const fn text(&self) -> &'t str {
        self.text
    }

    /// The position of a byte.
    #[must_use]
    pub fn position(&self, byte: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= byte.min(self.text.len()));
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let inner = Position::of(self.text.get(start..).unwrap_or(""), byte - start.min(byte));
        Position { line: line.max(1), ..inner }
    }
}

/// The problems of one text, in the order of their places.
pub type Diagnostics = Vec<Diagnostic>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_every_position() {
        for text in ["", "a", "\n", "a\nbé\n\nc", "é\r\nx\n"] {
            let lines = Lines::of(text);
            for byte in 0..text.len() + 2 {
                assert_eq!(lines.position(byte), Position::of(text, byte), "{text:?} {byte}");
            }
        }
    }
}
