//! Units become a word: text, wildcards and classes, and what only looks like text is refused.

use alloc::string::String;
use alloc::vec::Vec;

use super::braces;
use super::construct::Construct;
use super::quotes::{Sign, Unit, begins};
use super::refusal::Refusal;
use super::tree::{Piece, Span, Word};
use crate::limits;

/// Reads the units of a word whose braces are expanded.
pub(super) fn word(units: &[Unit], span: Span) -> Result<Word, Refusal> {
    check_home(units)?;
    let mut word = Word { span, ..Word::default() };
    let mut at = 0;
    while let Some(unit) = units.get(at) {
        at += 1;
        match unit.sign {
            Sign::Quote => word.quoted = true,
            Sign::Quoted(c) => {
                word.quoted = true;
                push(&mut word.pieces, c);
            }
            Sign::Bare('*') if is_at(units, at, '*') => {
                if !begins_component(&word.pieces) || !is_at(units, at + 1, '/') {
                    return Err(Refusal::of(Construct::RecursivePattern, word.span));
                }
                word.pieces.push(Piece::Folders);
                at += 2;
            }
            // Nothing stands between two of them but quotes around nothing: it could not be written
            // down but as `**`, and handed on as one where nothing matches it is another word.
            Sign::Bare('*') if word.pieces.last() == Some(&Piece::Any) => {
                return Err(Refusal::of(Construct::RecursivePattern, word.span));
            }
            Sign::Bare('*') => word.pieces.push(Piece::Any),
            Sign::Bare('?') => word.pieces.push(Piece::One),
            Sign::Bare('[') => match class(units, at)? {
                Some((class, behind)) => {
                    word.pieces.push(class);
                    at = behind;
                }
                None => push(&mut word.pieces, '['),
            },
            Sign::Bare('$') => {
                check_dollar(*unit, units.get(at))?;
                push(&mut word.pieces, '$');
            }
            Sign::Bare(c) => push(&mut word.pieces, c),
        }
    }
    if is_unclear(&word.pieces) {
        return Err(Refusal::of(Construct::RecursivePattern, word.span));
    }
    if word.plain().is_none() && could_match_dots(&word.pieces) {
        return Err(Refusal::of(Construct::HiddenPattern, word.span));
    }
    Ok(word)
}

/// Whether a bare character of this kind stands at a place.
fn is_at(units: &[Unit], at: usize, c: char) -> bool {
    units.get(at).is_some_and(|unit| unit.is(c))
}

/// Whether what comes next is the beginning of a component. Behind one `**/` another says nothing
/// more.
fn begins_component(pieces: &[Piece]) -> bool {
    match pieces.last() {
        None => true,
        Some(Piece::Text(text)) => text.ends_with('/'),
        Some(_) => false,
    }
}

/// Whether something stands behind a `**/` that shells do not agree on, or that says the same folders
/// anew: nothing, another slash, a component `.` or `..`; or whether there are more than a few.
fn is_unclear(pieces: &[Piece]) -> bool {
    let Some(first) = pieces.iter().position(|own| *own == Piece::Folders) else { return false };
    let behind = pieces.get(first..).unwrap_or_default();
    let folders = behind.iter().filter(|own| **own == Piece::Folders).count();
    let typed: String = behind.iter().map(Piece::typed).collect();
    let stays = |part: &str| matches!(part, "" | "." | "..");
    folders > limits::PATTERN_WALKS || typed.split('/').any(stays)
}

/// Reads a word that must name one thing: a file, or text.
pub(super) fn single(units: &[Unit], span: Span) -> Result<String, Refusal> {
    let refusal = || Refusal::of(Construct::TargetPattern, span.clone());
    if braces::are_in(units) {
        return Err(refusal());
    }
    word(units, span.clone())?.plain().map(Into::into).ok_or_else(refusal)
}

/// Reads the value of a variable: wildcards and braces are text in it.
pub(super) fn value(units: &[Unit]) -> Result<String, Refusal> {
    for (at, unit) in units.iter().enumerate() {
        let behind = at.checked_sub(1).and_then(|before| units.get(before));
        if unit.is('~') && behind.is_none_or(|own| own.is(':') || own.is('=')) {
            return Err(Refusal::of(Construct::Home, unit.at..unit.at + 1));
        }
    }
    Ok(units.iter().filter_map(|unit| unit.char()).collect())
}

fn push(pieces: &mut Vec<Piece>, c: char) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push(c),
        _ => pieces.push(Piece::Text(c.into())),
    }
}

/// Refuses a `~` that some shell would replace: at the beginning, behind a `=`, and behind a `:` of
/// what could be a list of paths.
fn check_home(units: &[Unit]) -> Result<(), Refusal> {
    let mut assigned = false;
    let mut replaced = true;
    for unit in units {
        match unit.sign {
            Sign::Quote => continue,
            Sign::Bare('~') if replaced => {
                return Err(Refusal::of(Construct::Home, unit.at..unit.at + 1));
            }
            Sign::Bare('=') => assigned = true,
            _ => {}
        }
        replaced = unit.is('=') || (assigned && unit.is(':'));
    }
    Ok(())
}

/// Refuses a `$` which braces have put before something that it belongs to.
fn check_dollar(dollar: Unit, next: Option<&Unit>) -> Result<(), Refusal> {
    let construct = match next.map(|unit| unit.sign) {
        Some(Sign::Bare(c)) => begins(c, false),
        Some(Sign::Quote) => Some(Construct::AnsiQuotes),
        Some(Sign::Quoted(_)) | None => None,
    };
    construct.map_or(Ok(()), |own| Err(Refusal::of(own, dollar.at..dollar.at + 1)))
}

/// Reads a class behind its `[`, and says what stands behind it; none where no `]` makes it one.
fn class(units: &[Unit], start: usize) -> Result<Option<(Piece, usize)>, Refusal> {
    let is = |at, c| is_at(units, at, c);
    let negated = is(start, '!');
    let first = start + usize::from(negated || is(start, '^'));
    // A `]` that comes first is a member.
    let Some(close) = (first + 1..units.len()).find(|at| is(*at, ']')) else { return Ok(None) };
    let open = start.saturating_sub(1);
    let place = |at: usize| units.get(at).map_or(0, |unit| unit.at);
    let refusal = || Refusal::of(Construct::PatternClass, place(open)..place(close) + 1);
    let members: Option<Vec<char>> =
        units.get(first..close).unwrap_or_default().iter().map(|unit| unit.bare()).collect();
    let members = members.filter(|own| own.iter().all(|c| c.is_ascii() && !"[/$~{}".contains(*c)));
    let members = members.filter(|_| !is(start, '^')).ok_or_else(refusal)?;
    let mut ranges = Vec::new();
    let mut rest = members.as_slice();
    while let Some((low, behind)) = rest.split_first() {
        rest = behind;
        let last_or_first = behind.is_empty() || ranges.is_empty();
        match behind {
            ['-', high, behind @ ..] => {
                if !is_range(*low, *high) {
                    return Err(refusal());
                }
                ranges.push((*low, *high));
                rest = behind;
            }
            _ if *low == '-' && !last_or_first => return Err(refusal()),
            _ => ranges.push((*low, *low)),
        }
    }
    Ok(Some((Piece::Class { negated, ranges }, close + 1)))
}

/// Ranges that mean the same in every language of a machine that counts as C does.
fn is_range(low: char, high: char) -> bool {
    let kinds = [char::is_ascii_digit, char::is_ascii_lowercase, char::is_ascii_uppercase];
    low <= high && kinds.iter().any(|is| is(&low) && is(&high))
}

/// Whether a component of the pattern begins with a dot and could match `.` or `..`, which shells
/// do not agree on.
fn could_match_dots(pieces: &[Piece]) -> bool {
    let mut components: Vec<Vec<Piece>> = [Vec::new()].into();
    for piece in pieces {
        if *piece == Piece::Folders {
            components.push(Vec::new());
            continue;
        }
        let Piece::Text(text) = piece else {
            components.iter_mut().last().into_iter().for_each(|own| own.push(piece.clone()));
            continue;
        };
        for (index, part) in text.split('/').enumerate() {
            if index > 0 {
                components.push(Vec::new());
            }
            let part = (!part.is_empty()).then(|| Piece::Text(part.into()));
            components.iter_mut().last().into_iter().for_each(|own| own.extend(part.clone()));
        }
    }
    let begins = |own: &[Piece]| matches!(own, [Piece::Text(text), _, ..] if text.starts_with('.'));
    components.iter().any(|own| begins(own) && (matches(own, ".") || matches(own, "..")))
}

/// Whether pieces match one of the two short names.
fn matches(pieces: &[Piece], name: &str) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return name.is_empty() };
    let mut chars = name.chars();
    match piece {
        Piece::Text(text) => name.strip_prefix(text).is_some_and(|name| matches(rest, name)),
        Piece::Any => {
            matches(rest, name) || (chars.next().is_some() && matches(pieces, chars.as_str()))
        }
        // A component of its own.
        Piece::Folders => false,
        Piece::One => chars.next().is_some() && matches(rest, chars.as_str()),
        Piece::Class { negated, ranges } => chars.next().is_some_and(|c| {
            let named = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
            named != *negated && matches(rest, chars.as_str())
        }),
    }
}
