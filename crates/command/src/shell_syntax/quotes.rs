//! The characters of one word with what quotes make of them.
//!
//! Braces and wildcards are recognised only after quotes are, and only where a character is bare;
//! so a word is first a row of units that remember it.

use alloc::vec::Vec;

use super::cursor::{Cursor, check_bare};
use super::refusal::SyntaxRefusal;
use super::tokens::{CharKind, Unit, is_word, printed_text};
use super::unsupported::UnsupportedSyntax;

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
                if expansion(source, at, false, &mut units)? {
                    continue;
                }
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
        match source.take_raw() {
            None => return Err(SyntaxRefusal::of(UnsupportedSyntax::OpenQuote, open..open + 1)),
            Some('"') => return Ok(()),
            Some(c) => double_quoted(source, (c, at), '"', units)?,
        }
    }
}

/// Adds a character of double quotes, or of a here-document, which was just read. `special` is another one that a
/// backslash takes its meaning from.
pub(super) fn double_quoted(
    source: &mut Cursor<'_>,
    (c, at): (char, usize),
    special: char,
    units: &mut Vec<Unit>,
) -> Result<(), SyntaxRefusal> {
    let c = match c {
        '`' => return Err(backquote(source, at)),
        '$' if expansion(source, at, true, units)? => return Ok(()),
        '\\' => match source.raw() {
            Some(c) if matches!(c, '$' | '`' | '\\') || c == special => {
                source.take_raw();
                c
            }
            _ => '\\',
        },
        c => c,
    };
    units.push(Unit { kind: CharKind::Quoted(c), at });
    Ok(())
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

/// Reads what a `$`, which was just read, is replaced by; false where it is only a `$`.
fn expansion(
    source: &mut Cursor<'_>,
    at: usize,
    quoted: bool,
    units: &mut Vec<Unit>,
) -> Result<bool, SyntaxRefusal> {
    let Some(next) = source.peek() else { return Ok(false) };
    let Some(construct) = dollar_construct(next, quoted) else { return Ok(false) };
    let rest = source.rest();
    let refuse =
        |construct, length: usize| Err(SyntaxRefusal::of(construct, at..source.at() + length));
    let name = match next {
        '(' if rest.starts_with("((") => {
            return refuse(UnsupportedSyntax::Arithmetic, enclosed_length(rest, '(', ')'));
        }
        '(' => return substitution(source, at, quoted, units).map(|()| true),
        '[' => return refuse(construct, enclosed_length(rest, '[', ']')),
        '{' => {
            let length = enclosed_length(rest, '{', '}');
            let inner = rest.get(1..length.saturating_sub(1)).unwrap_or("");
            if name_length(inner) != inner.len() || inner.is_empty() {
                return refuse(construct, length);
            }
            source.skip(length);
            inner
        }
        '_' | 'a'..='z' | 'A'..='Z' => {
            let length = name_length(rest);
            // Joined lines would go on with the name.
            if rest.get(length..).is_some_and(|behind| behind.starts_with("\\\n")) {
                return refuse(construct, length);
            }
            source.skip(length);
            rest.get(..length).unwrap_or("")
        }
        '?' | '!' => {
            source.skip(1);
            rest.get(..1).unwrap_or("")
        }
        c => return refuse(construct, c.len_utf8()),
    };
    push_variable(name, at..source.at(), quoted, units);
    Ok(true)
}

/// How long the name is that a text begins with.
fn name_length(text: &str) -> usize {
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let begins = text.starts_with(|c: char| is_name(c) && !c.is_ascii_digit());
    if begins { text.find(|c| !is_name(c)).unwrap_or(text.len()) } else { 0 }
}

fn push_variable(name: &str, span: core::ops::Range<usize>, quoted: bool, units: &mut Vec<Unit>) {
    units.push(Unit { kind: CharKind::Variable { quoted }, at: span.start });
    let unit = |c| Unit { kind: CharKind::Quoted(c), at: span.start };
    units.extend(name.chars().map(unit));
    units.push(Unit { kind: CharKind::VariableEnd, at: span.end });
}

/// Reads `$(..)`. What `cat` prints of a here-document in quotes is text of the word.
fn substitution(
    source: &mut Cursor<'_>,
    at: usize,
    quoted: bool,
    units: &mut Vec<Unit>,
) -> Result<(), SyntaxRefusal> {
    source.skip(1);
    if source.peek() == Some('(') {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::Arithmetic, at..source.at()));
    }
    let tokens = (source.read_substitution)(source, at)?;
    if quoted && let Some(text) = printed_text(&tokens) {
        let unit = |c| Unit { kind: CharKind::Quoted(c), at };
        units.extend(text.trim_end_matches('\n').chars().map(unit));
        return Ok(());
    }
    let name = match is_word(&tokens, "pwd") {
        true => "PWD".into(),
        false => source.keep_substitution(tokens),
    };
    push_variable(&name, at..source.at(), quoted, units);
    Ok(())
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
