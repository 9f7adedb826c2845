//! The words of a Rust file in order. Comments are gone, and the bodies of macros are as good as
//! any other code, so what is searched here is found wherever it stands.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A word with its line, from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The word.
    pub(crate) word: Word,
    /// Its line.
    pub(crate) line: usize,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A name or a keyword.
    Name(String),
    /// A literal as it is written.
    Literal(String),
    /// A sign.
    Sign(char),
    /// The beginning of a group.
    Open(char),
    /// The end of a group.
    Close(char),
}

/// All words of a file.
#[derive(Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<Placed>);

impl Words {
    /// Reads a file's tokens.
    pub(crate) fn of(tokens: TokenStream) -> Self {
        let mut words = Self::default();
        words.read(tokens);
        words
    }

    fn read(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = signs(group.delimiter());
                    self.push(Word::Open(open), group.span_open().start().line);
                    self.read(group.stream());
                    self.push(Word::Close(close), group.span_close().start().line);
                }
                TokenTree::Ident(name) => {
                    let line = name.span().start().line;
                    self.push(Word::Name(name.to_string()), line);
                }
                TokenTree::Punct(sign) => {
                    self.push(Word::Sign(sign.as_char()), sign.span().start().line);
                }
                TokenTree::Literal(literal) => {
                    let line = literal.span().start().line;
                    self.push(Word::Literal(literal.to_string()), line);
                }
            }
        }
    }

    fn push(&mut self, word: Word, line: usize) {
        self.0.push(Placed { word, line });
    }

    /// Every name, with its line.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter_map(|placed| match &placed.word {
            Word::Name(name) => Some((name.as_str(), placed.line)),
            _ => None,
        })
    }

    /// The text of every literal that is one, with its line.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter_map(|placed| match &placed.word {
            Word::Literal(literal) => {
                let (first, last) = (literal.find('"')?, literal.rfind('"')?);
                Some((literal.get(first + 1..last)?, placed.line))
            }
            _ => None,
        })
    }

    /// What is said of a type: every name that follows `owner::`, with its line.
    pub(crate) fn after(&self, owner: &str) -> impl Iterator<Item = (&str, usize)> {
        self.0.windows(4).filter_map(move |window| match window {
            [a, b, c, d] if a.word == Word::Name(owner.to_owned()) => match (&b.word, &c.word) {
                (Word::Sign(':'), Word::Sign(':')) => match &d.word {
                    Word::Name(name) => Some((name.as_str(), d.line)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
    }
}

const fn signs(delimiter: Delimiter) -> (char, char) {
    match delimiter {
        Delimiter::Parenthesis => ('(', ')'),
        Delimiter::Brace => ('{', '}'),
        Delimiter::Bracket => ('[', ']'),
        Delimiter::None => (' ', ' '),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_inside_of_macros() {
        let words = Words::of("m! { Code::Asked = r#\"a b\"#; }".parse().unwrap());
        assert_eq!(words.after("Code").collect::<Vec<_>>(), [("Asked", 1)]);
        assert_eq!(words.texts().collect::<Vec<_>>(), [("a b", 1)]);
        assert!(words.names().any(|(name, _)| name == "m"));
    }
}
