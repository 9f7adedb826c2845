//! The characters of one word with what quotes make of them.
//!
//! Braces and wildcards are recognised only after quotes are, and only where a character is bare;
//! so a word is first a row of units that remember it.

use alloc::vec::Vec;

use super::cursor::{Cursor, check_bare};
use super::refusal::SyntaxRefusal;
use super::unsupported::UnsupportedSyntax;

/// A character of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharKind {
    /// It may mean more than itself.
    Bare(char),
    /// It means itself.
    Quoted(char),
    /// Quotes begin here. They may hold nothing and still change what stands around them.
    Quote,
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
            CharKind::Quote => None,
        }
    }
}

/// Reads a word; nothing where none begins.
pub(super) fn read_word(source: &mut Cursor<'_>) -> Result<Vec<Unit>, SyntaxRefusal> {
    let mut units = Vec::new();
    while let Some(c) = source.peek().filter(|c| !ends_word(*c)) {
        let at = source.at();
        source.take_raw();
        let sign = match c {
            '\'' => {
                units.push(Unit { kind: CharKind::Quote, at });
                single(source, at, &mut units)?;
                continue;
            }
            '"' => {
                units.push(Unit { kind: CharKind::Quote, at });
                double(source, at, &mut units)?;
                continue;
            }
            '\\' => CharKind::Quoted(escaped(source, at)?),
            '`' => return Err(backquote(source, at)),
            '$' if source.peek() == Some('\'') => {
                source.take_raw();
                units.push(Unit { kind: CharKind::Quote, at });
                ansi_c_quoted(source, at, &mut units)?;
                continue;
            }
            '$' => {
                check_dollar(source, at, false)?;
                CharKind::Bare('$')
            }
            c => {
                check_bare(c, at)?;
                CharKind::Bare(c)
            }
        };
        units.push(Unit { kind: sign, at });
    }
    Ok(units)
}

/// Whether a word ends before this character.
pub(super) const fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>')
}

fn escaped(source: &mut Cursor<'_>, at: usize) -> Result<char, SyntaxRefusal> {
    let inner = source.at();
    let c = source.take_raw();
    let c = c.ok_or_else(|| SyntaxRefusal::of(UnsupportedSyntax::TrailingBackslash, at..at + 1))?;
    check_bare(c, inner)?;
    Ok(c)
}

fn single(
    source: &mut Cursor<'_>,
    open: usize,
    units: &mut Vec<Unit>,
) -> Result<(), SyntaxRefusal> {
    loop {
        let at = source.at();
        match source.take_raw() {
            None => return Err(SyntaxRefusal::of(UnsupportedSyntax::OpenQuote, open..open + 1)),
            Some('\'') => return Ok(()),
            Some(c) => units.push(Unit { kind: CharKind::Quoted(c), at }),
        }
    }
}

/// `$'..'`, as POSIX.1-2024 and most shells have it, with those escapes that all of them read alike.
fn ansi_c_quoted(
    source: &mut Cursor<'_>,
    open: usize,
    units: &mut Vec<Unit>,
) -> Result<(), SyntaxRefusal> {
    loop {
        let at = source.at();
        let c = match source.take_raw() {
            None => return Err(SyntaxRefusal::of(UnsupportedSyntax::OpenQuote, open..open + 2)),
            Some('\'') => return Ok(()),
            Some('\\') => match source.take_raw() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some(c @ ('\\' | '\'' | '"')) => c,
                _ => return Err(SyntaxRefusal::of(UnsupportedSyntax::AnsiQuotes, at..source.at())),
            },
            Some(c) => c,
        };
        units.push(Unit { kind: CharKind::Quoted(c), at });
    }
}

fn double(
    source: &mut Cursor<'_>,
    open: usize,
    units: &mut Vec<Unit>,
) -> Result<(), SyntaxRefusal> {
    loop {
        source.peek();
        let at = source.at();
        let c = match source.take_raw() {
            None => return Err(SyntaxRefusal::of(UnsupportedSyntax::OpenQuote, open..open + 1)),
            Some('"') => return Ok(()),
            Some('`') => return Err(backquote(source, at)),
            Some('$') => {
                check_dollar(source, at, true)?;
                '$'
            }
            Some('\\') => match source.raw() {
                Some(c @ ('$' | '`' | '"' | '\\')) => {
                    source.take_raw();
                    c
                }
                _ => '\\',
            },
            Some(c) => c,
        };
        units.push(Unit { kind: CharKind::Quoted(c), at });
    }
}

fn backquote(source: &Cursor<'_>, at: usize) -> SyntaxRefusal {
    let inner = source.rest().find('`').map_or(0, |end| end + 1);
    SyntaxRefusal::of(UnsupportedSyntax::Backquotes, at..source.at() + inner)
}

/// What a `$` before this character begins; none where it is only a `$`.
pub(super) fn dollar_construct(next: char, quoted: bool) -> Option<UnsupportedSyntax> {
    Some(match next {
        '(' => UnsupportedSyntax::CommandSubstitution,
        '[' => UnsupportedSyntax::Arithmetic,
        '{' | '_' | 'a'..='z' | 'A'..='Z' => UnsupportedSyntax::Variable,
        '0'..='9' | '@' | '*' | '#' | '?' | '-' | '$' | '!' => UnsupportedSyntax::SpecialParameter,
        '\'' if !quoted => UnsupportedSyntax::AnsiQuotes,
        '"' if !quoted => UnsupportedSyntax::LocaleQuotes,
        // Some systems take letters of their own language into names.
        c if !c.is_ascii() => UnsupportedSyntax::Variable,
        _ => return None,
    })
}

/// Refuses a `$`, which was just read, if it would be replaced.
fn check_dollar(source: &mut Cursor<'_>, at: usize, quoted: bool) -> Result<(), SyntaxRefusal> {
    let Some(next) = source.peek() else { return Ok(()) };
    let Some(construct) = dollar_construct(next, quoted) else { return Ok(()) };
    let rest = source.rest();
    let (construct, length) = match next {
        '(' if rest.starts_with("((") => {
            (UnsupportedSyntax::Arithmetic, enclosed_length(rest, '(', ')'))
        }
        '(' => (construct, enclosed_length(rest, '(', ')')),
        '[' => (construct, enclosed_length(rest, '[', ']')),
        '{' => (construct, enclosed_length(rest, '{', '}')),
        '_' | 'a'..='z' | 'A'..='Z' => {
            let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
            (construct, rest.find(|c| !is_name(c)).unwrap_or(rest.len()))
        }
        c => (construct, c.len_utf8()),
    };
    Err(SyntaxRefusal::of(construct, at..source.at() + length))
}

/// How long something in brackets is, for the underline; only the bracket if it does not end.
fn enclosed_length(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        } else if c == '\n' {
            break;
        }
    }
    1
}
