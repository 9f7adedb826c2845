//! The text of a command, read character by character, and the characters that it may not hold.
//!
//! A backslash at the end of a line joins two lines everywhere but in single quotes, comments and
//! here-documents, so [`Source::peek`] never shows one. Who reads those three reads raw.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::refusal::SyntaxRefusal;
use super::tokens::Tokens;
use super::unsupported::UnsupportedSyntax;
use capsule_base::escape::is_hostile;
use capsule_base::limits;

/// A text and how far it was read.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// The commands whose output is put in, by the numbers that their variables have.
    pub(super) substitutions: Vec<Tokens>,
    /// How many of them are being read.
    pub(super) depth: usize,
    /// Whether the text of a here-document is to begin at the next line.
    pub(super) awaits_text: bool,
    /// What reads the command in `$(..)`, from behind its parenthesis to behind the closing one.
    pub(super) read_substitution: SubstitutionReader,
}

/// Reads the parts of a command whose output is put in, whose `$` is at this place.
pub(super) type SubstitutionReader = fn(&mut Cursor<'_>, usize) -> Result<Tokens, SyntaxRefusal>;

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str, read_substitution: SubstitutionReader) -> Self {
        Self {
            text,
            at: 0,
            substitutions: Vec::new(),
            depth: 0,
            awaits_text: false,
            read_substitution,
        }
    }

    /// Keeps the parts of a command whose output is put in, and gives the name of the variable for it.
    pub(super) fn keep_substitution(&mut self, tokens: Tokens) -> String {
        self.substitutions.push(tokens);
        alloc::format!("({}", self.substitutions.len() - 1)
    }

    /// Goes on behind so many bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// From a place up to here.
    pub(super) fn range_since(&self, start: usize) -> Range<usize> {
        start..self.at.max(start)
    }

    /// The text from a place up to here.
    pub(super) fn text_since(&self, start: usize) -> &'t str {
        self.text.get(self.range_since(start)).unwrap_or("")
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next character, whatever it is.
    pub(super) fn raw(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn take_raw(&mut self) -> Option<char> {
        let c = self.raw()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// The next character after joined lines.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
        self.raw()
    }

    /// Reads this operator if it comes next.
    pub(super) fn eat(&mut self, operator: &str) -> bool {
        let start = self.at;
        for c in operator.chars() {
            if self.peek() != Some(c) {
                self.at = start;
                return false;
            }
            self.take_raw();
        }
        true
    }

    pub(super) fn skip_blanks(&mut self) {
        while let Some(' ' | '\t') = self.peek() {
            self.take_raw();
        }
    }

    /// One whole line, raw; none at the end of the text.
    pub(super) fn line(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let line = rest.split('\n').next().filter(|_| !rest.is_empty())?;
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Some(line)
    }
}

/// Refuses a text that is too long, or that holds what can be seen nowhere.
pub(super) fn check(text: &str) -> Result<(), SyntaxRefusal> {
    if text.len() > limits::COMMAND_BYTES {
        return Err(SyntaxRefusal::limit(0..0, "bytes", limits::COMMAND_BYTES));
    }
    for (at, c) in text.char_indices() {
        let construct = match c {
            '\n' | '\t' => continue,
            '\r' => UnsupportedSyntax::CarriageReturn,
            c if c.is_control() => UnsupportedSyntax::Control,
            c if is_hostile(c) && !joins_letters(c) => UnsupportedSyntax::Invisible,
            _ => continue,
        };
        return Err(SyntaxRefusal::of(construct, at..at + c.len_utf8()));
    }
    Ok(())
}

/// Joiners and variation selectors: several scripts and many emoji are written with them, so they
/// may stand in quoted text, where they cannot make one name look like another's.
const fn joins_letters(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// Refuses characters which outside of quotes look like a space, or like nothing.
pub(super) fn check_bare(c: char, at: usize) -> Result<(), SyntaxRefusal> {
    let construct = match c {
        c if joins_letters(c) => UnsupportedSyntax::Invisible,
        '\u{2800}' => UnsupportedSyntax::Space,
        c if !c.is_ascii() && c.is_whitespace() => UnsupportedSyntax::Space,
        _ => return Ok(()),
    };
    Err(SyntaxRefusal::of(construct, at..at + c.len_utf8()))
}
