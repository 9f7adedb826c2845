//! The parts that a text falls into, and the characters that its words are made of.

use alloc::vec::Vec;

use super::ast::{Redirection, Span};

/// A character of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharKind {
    /// It may mean more than itself.
    Bare(char),
    /// It means itself.
    Quoted(char),
    /// Quotes begin here. They may hold nothing and still change what is around them.
    Quote,
    /// A variable is here; its name are the quoted characters up to its end.
    Variable {
        /// Whether quotes keep its value one word.
        quoted: bool,
    },
    /// The name of a variable ends here.
    VariableEnd,
}

/// A sign and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) kind: CharKind,
    pub(super) at: usize,
}

impl Unit {
    pub(super) fn is(self, c: char) -> bool {
        self.kind == CharKind::Bare(c)
    }

    /// The character, if it is bare.
    pub(super) const fn bare(self) -> Option<char> {
        if let CharKind::Bare(c) = self.kind { Some(c) } else { None }
    }

    /// The character, quoted or not.
    pub(super) const fn char(self) -> Option<char> {
        match self.kind {
            CharKind::Bare(c) | CharKind::Quoted(c) => Some(c),
            CharKind::Quote | CharKind::Variable { .. } | CharKind::VariableEnd => None,
        }
    }
}

/// A part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word whose braces and wildcards are not read yet.
    Word(Vec<Unit>),
    /// A redirection, and the units of its path or text where those hold variables.
    Redirect(Redirection, Vec<Unit>),
    /// `(` where a command could begin.
    Open,
    /// `)`
    Close,
    /// `|`
    Pipe,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`
    Semicolon,
    /// `&` behind a command.
    Background,
    /// A line end.
    Newline,
}

/// The parts of a text, each with its place.
pub(super) type Tokens = Vec<(Token, Span)>;

/// The text that a command prints which is `cat` with a here-document that nothing is put into.
pub(super) fn printed_text(tokens: &[(Token, Span)]) -> Option<&str> {
    match tokens {
        [
            (Token::Word(cat), _),
            (Token::Redirect(Redirection::Here { text }, units), _),
            rest @ ..,
        ] if is_bare(cat, "cat") && units.is_empty() => {
            let ends = |(token, _): &(Token, Span)| matches!(token, Token::Newline);
            rest.iter().all(ends).then_some(text.as_str())
        }
        _ => None,
    }
}

/// Whether a command is this one word.
pub(super) fn is_word(tokens: &[(Token, Span)], word: &str) -> bool {
    matches!(tokens, [(Token::Word(units), _)] if is_bare(units, word))
}

/// Whether units are these characters, none of them quoted.
pub(super) fn is_bare(units: &[Unit], word: &str) -> bool {
    units.iter().map(|unit| unit.bare()).eq(word.chars().map(Some))
}
