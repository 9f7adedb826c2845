//! Statements, as every dialect reads them.
//!
//! SQLite, PostgreSQL, MySQL, DuckDB and the others do not agree on what is text and what is not: brackets,
//! dollars, backslashes, `#` and nested comments mean something to some of them. A text that has none of
//! that is read alike by all; any other one is marked, and nothing of it is taken for text.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::Peekable;
use core::str::Chars;

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word or a number, in lower case.
    Word(String),
    /// What is quoted, as it stands between its quotes.
    Quoted(String),
    /// Any other sign.
    Sign(char),
}

/// What stands between two semicolons, or on a line that tells a client something.
pub(super) type Statement = Vec<Token>;

/// A text, read.
pub(super) struct Script {
    pub(super) statements: Vec<Statement>,
    /// Whether every dialect reads it so.
    pub(super) is_certain: bool,
}

type Letters<'t> = Peekable<Chars<'t>>;

/// Reads a text.
pub(super) fn read(text: &str) -> Script {
    let mut lexer = Lexer {
        letters: text.chars().peekable(),
        script: Script { statements: alloc::vec![Vec::new()], is_certain: true },
        word: String::new(),
        before: '\n',
    };
    while let Some(letter) = lexer.letters.next() {
        lexer.letter(letter);
        lexer.before = letter;
    }
    lexer.flush();
    lexer.script
}

struct Lexer<'t> {
    letters: Letters<'t>,
    script: Script,
    word: String,
    /// The character before.
    before: char,
}

impl Lexer<'_> {
    fn push(&mut self, token: Token) {
        if let Some(statement) = self.script.statements.last_mut() {
            statement.push(token);
        }
    }

    fn flush(&mut self) {
        if !self.word.is_empty() {
            let word = core::mem::take(&mut self.word).to_lowercase();
            self.push(Token::Word(word));
        }
    }

    fn doubt(&mut self, is_doubtful: bool) {
        self.script.is_certain &= !is_doubtful;
    }

    /// Whether what follows, up to one of some characters, is nothing but names and numbers.
    fn is_plain_until(&self, ends: &[char]) -> bool {
        let mut rest = self.letters.clone();
        rest.find(|letter| !is_of_word(*letter) && !matches!(letter, ' ' | ',' | '.'))
            .is_some_and(|letter| ends.contains(&letter))
    }

    fn letter(&mut self, letter: char) {
        let next = self.letters.peek().copied();
        match letter {
            letter if is_of_word(letter) => {
                // A dollar opens a text in some dialects, and is a part of a name in others.
                let opens = |next: char| !next.is_ascii_digit();
                self.doubt(letter == '$' && next.is_some_and(opens));
                self.word.push(letter);
                return;
            }
            '\'' | '"' | '`' => {
                // `E'..'` and its like have rules of their own.
                self.doubt(is_of_word(self.before));
                self.flush();
                self.quoted(letter);
                return;
            }
            _ => self.flush(),
        }
        match letter {
            '-' if next == Some('-') => self.line_comment(),
            '/' if next == Some('*') => self.comment(),
            ';' => self.script.statements.push(Vec::new()),
            '\n' => self.line(),
            '[' => {
                self.doubt(!self.is_plain_until(&[']']));
                self.push(Token::Sign('['));
            }
            // The name of a variable may go on in a parenthesis.
            '@' | ':' | '?' => {
                let mut rest = self.letters.clone();
                let name = |letter: &char| is_of_word(*letter) || *letter == ':';
                let behind = rest.find(|letter| !name(letter));
                let is_plain = rest.find(|c| !is_of_word(*c) && !matches!(c, ',' | '.'));
                self.doubt(behind == Some('(') && !matches!(is_plain, Some(')' | ' ')));
                self.push(Token::Sign(letter));
            }
            // What it takes away depends on the dialect; a command of a client begins a statement.
            '\\' => {
                let begins = self.script.statements.last().is_none_or(Vec::is_empty);
                self.doubt(!begins);
                self.push(Token::Sign('\\'));
            }
            '#' | '$' => self.doubt(true),
            ' ' | '\t' => {}
            '\r' if next == Some('\n') => {}
            letter => {
                self.doubt(letter.is_control() || !letter.is_ascii());
                self.push(Token::Sign(letter));
            }
        }
    }

    /// What is quoted; the same quote twice in it is another piece of the same.
    fn quoted(&mut self, quote: char) {
        let mut text = String::new();
        let mut escaped = false;
        loop {
            let Some(letter) = self.letters.next() else {
                self.doubt(true);
                break;
            };
            if letter == quote {
                self.doubt(escaped);
                if self.letters.next_if_eq(&quote).is_none() {
                    break;
                }
            }
            // A backslash takes away the meaning of what follows, in some dialects and for some texts.
            self.doubt(escaped && letter == '\\');
            escaped = letter == '\\';
            // To some a backquote is no quote at all.
            self.doubt(quote == '`' && !is_of_word(letter) && !matches!(letter, ' ' | '.' | '-'));
            text.push(letter);
        }
        self.push(Token::Quoted(text));
    }

    /// A comment up to the end of its line; to some only one with a space behind its dashes.
    fn line_comment(&mut self) {
        self.letters.next();
        let next = self.letters.peek().copied();
        self.doubt(!matches!(next, None | Some(' ' | '\t' | '\n')));
        while let Some(letter) = self.letters.next_if(|letter| *letter != '\n') {
            self.doubt(letter.is_control() && letter != '\t');
        }
    }

    /// A comment in signs. Some dialects run what stands in `/*! .. */`, and in some comments nest.
    fn comment(&mut self) {
        self.letters.next();
        if matches!(self.letters.peek(), Some('!' | 'M' | '+')) {
            self.doubt(true);
            let is_mark = |letter: &char| matches!(letter, 'M' | '!' | '+' | '0'..='9');
            while self.letters.next_if(is_mark).is_some() {}
            return;
        }
        let mut before = ' ';
        loop {
            let Some(letter) = self.letters.next() else {
                self.doubt(true);
                return;
            };
            match (before, letter) {
                ('*', '/') => return,
                ('/', '*') => self.doubt(true),
                _ => {}
            }
            before = letter;
        }
    }

    /// The end of a line. A line that tells a client something ends there, and such a line may begin.
    fn line(&mut self) {
        let mut rest = self.letters.clone();
        let first = rest.find(|letter| !matches!(letter, ' ' | '\t'));
        let word: String = first.into_iter().chain(rest.take_while(|c| is_of_word(*c))).collect();
        let is_told = super::words::has(super::words::CLIENT, &word.to_lowercase());
        let last = self.script.statements.last();
        let tells = last
            .and_then(|item| item.first())
            .is_some_and(|token| matches!(token, Token::Sign('.' | '\\' | '!' | ':')));
        if tells || is_told {
            self.script.statements.push(Vec::new());
        }
    }
}

pub(super) fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$')
}
