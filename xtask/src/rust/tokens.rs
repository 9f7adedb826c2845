//! The words of a Rust file in order. Comments are gone, and the bodies of macros are as good as
//! any other code, so what is searched here is found wherever it stands.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A word with its line, from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedToken {
    /// The word.
    pub(crate) token: Token,
    /// Its line.
    pub(crate) line: usize,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
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
pub(crate) struct Tokens(pub(crate) Vec<PlacedToken>);

impl Tokens {
    /// Reads a file's tokens.
    pub(crate) fn from_stream(tokens: TokenStream) -> Self {
        let mut words = Self::default();
        words.read(tokens);
        words
    }

    fn read(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = delimiter_chars(group.delimiter());
                    self.push(Token::Open(open), group.span_open().start().line);
                    self.read(group.stream());
                    self.push(Token::Close(close), group.span_close().start().line);
                }
                TokenTree::Ident(name) => {
                    let line = name.span().start().line;
                    self.push(Token::Name(name.to_string()), line);
                }
                TokenTree::Punct(sign) => {
                    self.push(Token::Sign(sign.as_char()), sign.span().start().line);
                }
                TokenTree::Literal(literal) => {
                    let line = literal.span().start().line;
                    self.push(Token::Literal(literal.to_string()), line);
                }
            }
        }
    }

    fn push(&mut self, word: Token, line: usize) {
        self.0.push(PlacedToken { token: word, line });
    }

    /// Every name, with its line.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter_map(|placed| match &placed.token {
            Token::Name(name) => Some((name.as_str(), placed.line)),
            _ => None,
        })
    }

    /// The text of every literal that is one, with its line.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter_map(|placed| match &placed.token {
            Token::Literal(literal) => {
                let (first, last) = (literal.find('"')?, literal.rfind('"')?);
                Some((literal.get(first + 1..last)?, placed.line))
            }
            _ => None,
        })
    }

    /// What is said of a type: every name that follows `owner::`, with its line.
    pub(crate) fn paths_after(&self, owner: &str) -> impl Iterator<Item = (&str, usize)> {
        self.0.windows(4).filter_map(move |window| match window {
            [a, b, c, d] if a.token == Token::Name(owner.to_owned()) => {
                match (&b.token, &c.token) {
                    (Token::Sign(':'), Token::Sign(':')) => match &d.token {
                        Token::Name(name) => Some((name.as_str(), d.line)),
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        })
    }
}

const fn delimiter_chars(delimiter: Delimiter) -> (char, char) {
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
        let words = Tokens::from_stream("m! { Code::Asked = r#\"a b\"#; }".parse().unwrap());
        assert_eq!(words.paths_after("Code").collect::<Vec<_>>(), [("Asked", 1)]);
        assert_eq!(words.texts().collect::<Vec<_>>(), [("a b", 1)]);
        assert!(words.names().any(|(name, _)| name == "m"));
    }
}
