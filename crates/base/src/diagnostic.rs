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
        let before = text.get(..text.floor_char_boundary(byte)).unwrap_or(text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let last = before.rsplit('\n').next().unwrap_or("");
        Self { line, column: last.chars().count() + 1 }
    }
}

/// Where the lines of a text begin, for whoever asks for many positions. In a long line (JSON is YAML,
/// and is often written as one) it also knows places between, so that no question counts it all.
#[derive(Clone, Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// Known places, in order; the first is the start of the text.
    known: Vec<(usize, Position)>,
}

impl<'t> LineIndex<'t> {
    /// How many bytes of a line are counted at most, from the place before.
    const STRIDE: usize = 256;

    /// Finds the lines of a text.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let mut known = Vec::new();
        let mut byte = 0;
        for (index, whole) in text.split('\n').enumerate() {
            let (mut rest, mut position) = (whole, Position { line: index + 1, column: 1 });
            known.push((byte, position));
            while rest.len() > Self::STRIDE {
                let (near, far) = rest.split_at(rest.floor_char_boundary(Self::STRIDE));
                position.column += near.chars().count();
                byte += near.len();
                rest = far;
                known.push((byte, position));
            }
            byte += rest.len() + 1;
        }
        Self { text, known }
    }

    /// The text.
    #[must_use]
    pub const fn text(&self) -> &'t str {
        self.text
    }

    /// The position of a byte.
    #[must_use]
    pub fn position(&self, byte: usize) -> Position {
        let byte = self.text.floor_char_boundary(byte);
        let before = self.known.partition_point(|(start, _)| *start <= byte);
        let start = Position { line: 1, column: 1 };
        let (from, near) = self.known.get(before.saturating_sub(1)).copied().unwrap_or((0, start));
        let between = self.text.get(from..byte).unwrap_or("");
        Position { column: near.column + between.chars().count(), ..near }
    }
}

/// The problems of one text, in the order of their places.
pub type Diagnostics = Vec<Diagnostic>;

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn lines_know_every_position() {
        // Characters of three bytes, so that one lies across where the line is cut.
        let long = format!("a\n{}\n{}b", "€".repeat(300), "c".repeat(3 * LineIndex::STRIDE));
        for text in ["", "a", "\n", "a\nbé\n\nc", "é\r\nx\n", &long] {
            let lines = LineIndex::of(text);
            for byte in 0..text.len() + 2 {
                assert_eq!(lines.position(byte), Position::of(text, byte), "{text:?} {byte}");
            }
        }
    }
}
