//! Where texts end that a token of a file begins: quoted ones, raw ones, patterns and lines up to a word.

use crate::edit::language::{Language, Raw, Spacing};

/// A text that is written without one of the quotes of its language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawText {
    /// How much of the line begins it.
    pub(super) start: usize,
    pub(super) close: String,
    pub(super) escapes: bool,
}

/// Where a text ends that begins with the first `start` bytes, if it does on this line.
pub(super) fn find_close(rest: &str, start: usize, close: &str, escapes: bool) -> Option<usize> {
    let mut at = start;
    loop {
        let here = rest.get(at..)?;
        let sign = here.chars().next()?;
        if here.starts_with(close) {
            // A quote that is written twice is one quote of the text.
            let doubled = !escapes && close.len() == 1 && here.get(1..)?.starts_with(close);
            if !doubled {
                return Some(at);
            }
            at += 2;
        } else if sign == '\\' && escapes {
            at += 1 + here.chars().nth(1).map_or(0, char::len_utf8);
        } else {
            at += sign.len_utf8();
        }
    }
}

/// Whether a quoted text has the beginning of an expression and not its end, so that the quote that seems to end the
/// text belongs to the expression.
pub(super) fn has_open_expression(content: &str, by_brace: bool) -> bool {
    let starts = ["${", "#{", "\\(", "$("].iter().filter_map(|open| content.find(open));
    let braces = content.find('{').filter(|_| by_brace);
    let Some(inner) = starts.chain(braces).min().and_then(|at| content.get(at..)) else {
        return false;
    };
    let count = |signs: [char; 2]| inner.matches(signs).count();
    count(['(', '{']) > count([')', '}'])
}

/// How long a number is.
pub(super) fn number_length(rest: &str) -> usize {
    let mut signs = rest.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map_or(' ', |(_, next)| *next);
        let belongs = match sign {
            '.' => next.is_ascii_alphanumeric(),
            '+' | '-' => matches!(before, 'e' | 'E' | 'p' | 'P') && next.is_ascii_digit(),
            _ => sign.is_alphanumeric() || sign == '_',
        };
        if !belongs {
            return at;
        }
        before = sign;
    }
    rest.len()
}

/// How long a character in single quotes is; one where the quote is a mark.
pub(super) fn character_length(rest: &str) -> usize {
    let mut signs = rest.char_indices().skip(1);
    match (signs.next(), signs.next(), signs.next()) {
        (Some((_, '\\')), Some(_), Some((third, _))) => {
            let end = rest.get(third..).and_then(|rest| rest.find('\'')).filter(|end| *end < 12);
            end.map_or(1, |end| third + end + 1)
        }
        (Some(_), Some((second, '\'')), _) => second + 1,
        _ => 1,
    }
}

/// The bracket that closes one; a sign closes itself.
fn closing(sign: char) -> char {
    match sign {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    }
}

/// What begins here without a quote of the language; `prefix` is the word that it is attached to.
pub(super) fn find_raw(
    language: &Language,
    rest: &str,
    prefix: &str,
    is_operand_before: bool,
) -> Option<RawText> {
    let made = |start: usize, close: String, escapes: bool| Some(RawText { start, close, escapes });
    let bare = prefix.trim_end_matches('#');
    let marks = prefix.get(bare.len()..).unwrap_or_default();
    let between = |open: char, close: char| {
        let inner = rest.strip_prefix(open)?;
        inner.split_once(close).map(|(name, _)| name)
    };
    match language.raw {
        Raw::Rust if matches!(bare, "r" | "br" | "cr") && rest.starts_with('"') => {
            made(1, format!("\"{marks}"), false)
        }
        Raw::Cpp if matches!(bare, "R" | "LR" | "uR" | "UR" | "u8R") && rest.starts_with('"') => {
            let name = between('"', '(')?;
            made(name.len() + 2, format!("){name}\""), false)
        }
        Raw::CSharp if matches!(bare, "@" | "$@" | "@$") && rest.starts_with('"') => {
            made(1, "\"".into(), false)
        }
        Raw::Swift if !marks.is_empty() && bare.is_empty() && rest.starts_with('"') => {
            let quote = if rest.starts_with("\"\"\"") { "\"\"\"" } else { "\"" };
            made(quote.len(), format!("{quote}{marks}"), false)
        }
        Raw::Lua => {
            let name = between('[', '[').filter(|name| name.chars().all(|sign| sign == '='))?;
            made(name.len() + 2, format!("]{name}]"), false)
        }
        Raw::Sql => {
            let name = between('$', '$')
                .filter(|name| name.chars().all(|sign| sign.is_alphabetic() || sign == '_'))?;
            made(name.len() + 2, format!("${name}$"), false)
        }
        Raw::R if matches!(bare, "r" | "R") => {
            let quote = rest.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
            let inner = rest.get(1..)?;
            let open = inner.trim_start_matches('-');
            let dashes = inner.strip_suffix(open)?;
            let sign = open.chars().next().filter(|sign| matches!(sign, '(' | '[' | '{'))?;
            made(2 + dashes.len(), format!("{}{dashes}{quote}", closing(sign)), false)
        }
        Raw::Ruby | Raw::Elixir => find_lettered(language.raw, rest, is_operand_before),
        _ => None,
    }
}

/// A text between brackets or signs behind a letter, as in `%q(...)` and `~s(...)`.
fn find_lettered(raw: Raw, rest: &str, is_operand_before: bool) -> Option<RawText> {
    let (mark, letters) = if raw == Raw::Ruby { ('%', "qQwWiIrsx") } else { ('~', "rRsScCwWUDTN") };
    let inner = rest.strip_prefix(mark).filter(|_| !is_operand_before)?;
    let bare = inner.strip_prefix(|letter| letters.contains(letter));
    let open = if raw == Raw::Ruby { bare.unwrap_or(inner) } else { bare? };
    let sign = open.chars().next().filter(|sign| sign.is_ascii_punctuation() && *sign != '=')?;
    let start = rest.len() - open.len();
    match open.starts_with("\"\"\"") {
        true => Some(RawText { start: start + 3, close: "\"\"\"".into(), escapes: true }),
        false => {
            Some(RawText { start: start + 1, close: closing(sign).to_string(), escapes: true })
        }
    }
}

/// How long the pattern is that a slash begins, if another ends it on the line.
pub(super) fn pattern_length(rest: &str) -> Option<usize> {
    let mut in_class = false;
    let mut signs = rest.char_indices().skip(1);
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' => drop(signs.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The word up to which the lines behind this one are a text, whether it may be indented, and how much says so.
pub(super) fn heredoc_word(language: &Language, rest: &str) -> Option<(String, bool, usize)> {
    let open = if language.in_page { "<<<" } else { "<<" };
    let inner = rest.strip_prefix(open).filter(|inner| !inner.starts_with('<'))?;
    let dashed = inner.strip_prefix(['-', '~']).unwrap_or(inner);
    let may_be_apart = language.spacing == Spacing::Runs || language.in_page;
    let word = if may_be_apart { dashed.trim_start_matches([' ', '\t']) } else { dashed };
    let unquoted = word.trim_start_matches(['"', '\'', '`', '\\']);
    let end = unquoted
        .find(|sign: char| !sign.is_alphanumeric() && sign != '_')
        .unwrap_or(unquoted.len());
    let name = unquoted
        .get(..end)
        .filter(|name| name.starts_with(|sign: char| sign.is_alphabetic() || sign == '_'))?;
    let behind = unquoted.get(end..)?;
    let quoted = usize::from(word.len() != unquoted.len() && behind.starts_with(['"', '\'', '`']));
    let is_indented = dashed.len() != inner.len() || language.in_page;
    Some((name.to_owned(), is_indented, rest.len() - behind.len() + quoted))
}
