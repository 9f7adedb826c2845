//! Units become a word: text, wildcards and classes, and what only looks like text is refused.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{ShellWord, Span, WordPiece};
use super::braces;
use super::quotes::dollar_construct;
use super::refusal::SyntaxRefusal;
use super::tokens::{CharKind, Unit};
use super::unsupported::UnsupportedSyntax;
use capsule_base::limits;

/// Reads the units of a word whose braces are expanded.
pub(super) fn parse_word(units: &[Unit], span: Span) -> Result<ShellWord, SyntaxRefusal> {
    check_home(units)?;
    let mut word = ShellWord { span, ..ShellWord::default() };
    let mut at = 0;
    while let Some(unit) = units.get(at) {
        at += 1;
        match unit.kind {
            CharKind::Quote => word.quoted = true,
            CharKind::VariableEnd => {}
            CharKind::Variable { quoted } => {
                let is_end = |unit: &Unit| unit.kind == CharKind::VariableEnd;
                let name =
                    units.get(at..).unwrap_or_default().split(is_end).next().unwrap_or_default();
                at += name.len();
                word.quoted |= quoted;
                let name = name.iter().filter_map(|unit| unit.char()).collect();
                word.pieces.push(WordPiece::Variable { name, quoted });
            }
            CharKind::Quoted(c) => {
                word.quoted = true;
                push_char(&mut word.pieces, c);
            }
            CharKind::Bare('*') if is_at(units, at, '*') => {
                if !begins_component(&word.pieces) || !is_at(units, at + 1, '/') {
                    return Err(SyntaxRefusal::of(UnsupportedSyntax::RecursivePattern, word.span));
                }
                word.pieces.push(WordPiece::Directories);
                at += 2;
            }
            // Nothing stands between two of them but quotes around nothing: it could not be written
            // down but as `**`, and handed on as one where nothing matches it is another word.
            CharKind::Bare('*') if word.pieces.last() == Some(&WordPiece::Any) => {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::RecursivePattern, word.span));
            }
            CharKind::Bare('*') => word.pieces.push(WordPiece::Any),
            CharKind::Bare('?') => word.pieces.push(WordPiece::One),
            CharKind::Bare('[') => match class(units, at)? {
                Some((class, behind)) => {
                    word.pieces.push(class);
                    at = behind;
                }
                None => push_char(&mut word.pieces, '['),
            },
            CharKind::Bare('$') => {
                check_dollar(*unit, units.get(at))?;
                push_char(&mut word.pieces, '$');
            }
            CharKind::Bare(c) => push_char(&mut word.pieces, c),
        }
    }
    if is_ambiguous_recursion(&word.pieces) {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::RecursivePattern, word.span));
    }
    if word.literal().is_none() && could_match_dots(&word.pieces) {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::HiddenPattern, word.span));
    }
    Ok(word)
}

/// Whether a bare character of this kind stands at a place.
fn is_at(units: &[Unit], at: usize, c: char) -> bool {
    units.get(at).is_some_and(|unit| unit.is(c))
}

/// Whether what comes next is the beginning of a component. Behind one `**/` another says nothing
/// more.
fn begins_component(pieces: &[WordPiece]) -> bool {
    match pieces.last() {
        None => true,
        Some(WordPiece::Text(text)) => text.ends_with('/'),
        Some(_) => false,
    }
}

/// Whether something stands behind a `**/` that shells do not agree on, or that says the same folders
/// anew: nothing, another slash, a component `.` or `..`; or whether there are more than a few.
fn is_ambiguous_recursion(pieces: &[WordPiece]) -> bool {
    let Some(first) = pieces.iter().position(|piece| *piece == WordPiece::Directories) else {
        return false;
    };
    let behind = pieces.get(first..).unwrap_or_default();
    let folders = behind.iter().filter(|piece| **piece == WordPiece::Directories).count();
    let typed: String = behind.iter().map(WordPiece::unexpanded).collect();
    let stays = |part: &str| matches!(part, "" | "." | "..");
    folders > limits::PATTERN_WALKS || typed.split('/').any(stays)
}

/// Reads a word that must name one thing: a file, or text. Values may still be to be put in.
pub(super) fn parse_template(units: &[Unit], span: Span) -> Result<ShellWord, SyntaxRefusal> {
    let refusal = || SyntaxRefusal::of(UnsupportedSyntax::TargetPattern, span.clone());
    if braces::contain_braces(units) {
        return Err(refusal());
    }
    let word = parse_word(units, span.clone())?;
    let is_named =
        |piece: &WordPiece| matches!(piece, WordPiece::Text(_) | WordPiece::Variable { .. });
    if word.pieces.iter().all(is_named) { Ok(word) } else { Err(refusal()) }
}

/// Reads the value of a variable: wildcards and braces are text in it, and what is put in stays one word.
pub(super) fn parse_value(units: &[Unit], span: Span) -> Result<ShellWord, SyntaxRefusal> {
    for (at, unit) in units.iter().enumerate() {
        let behind = at.checked_sub(1).and_then(|before| units.get(before));
        if unit.is('~') && behind.is_none_or(|unit| unit.is(':') || unit.is('=')) {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::Home, unit.at..unit.at + 1));
        }
    }
    let as_text = |unit: &Unit| match unit.kind {
        CharKind::Bare(c) => Unit { kind: CharKind::Quoted(c), ..*unit },
        CharKind::Variable { .. } => Unit { kind: CharKind::Variable { quoted: true }, ..*unit },
        _ => *unit,
    };
    parse_word(&units.iter().map(as_text).collect::<Vec<_>>(), span)
}

fn push_char(pieces: &mut Vec<WordPiece>, c: char) {
    match pieces.last_mut() {
        Some(WordPiece::Text(text)) => text.push(c),
        _ => pieces.push(WordPiece::Text(c.into())),
    }
}

/// Refuses a `~` that some shell would replace: at the beginning, behind a `=`, and behind a `:` of
/// what could be a list of paths.
fn check_home(units: &[Unit]) -> Result<(), SyntaxRefusal> {
    let mut assigned = false;
    let mut replaced = true;
    for unit in units {
        match unit.kind {
            CharKind::Quote => continue,
            CharKind::Bare('~') if replaced => {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::Home, unit.at..unit.at + 1));
            }
            CharKind::Bare('=') => assigned = true,
            _ => {}
        }
        replaced = unit.is('=') || (assigned && unit.is(':'));
    }
    Ok(())
}

/// Refuses a `$` which braces have put before something that it belongs to.
fn check_dollar(dollar: Unit, next: Option<&Unit>) -> Result<(), SyntaxRefusal> {
    let construct = match next.map(|unit| unit.kind) {
        Some(CharKind::Bare(c)) => dollar_construct(c, false),
        Some(CharKind::Quote) => Some(UnsupportedSyntax::AnsiQuotes),
        Some(CharKind::Quoted(_) | CharKind::Variable { .. } | CharKind::VariableEnd) | None => {
            None
        }
    };
    construct.map_or(Ok(()), |syntax| Err(SyntaxRefusal::of(syntax, dollar.at..dollar.at + 1)))
}

/// Reads a class behind its `[`, and says what stands behind it; none where no `]` makes it one.
fn class(units: &[Unit], start: usize) -> Result<Option<(WordPiece, usize)>, SyntaxRefusal> {
    let is = |at, c| is_at(units, at, c);
    let negated = is(start, '!');
    let first = start + usize::from(negated || is(start, '^'));
    // A `]` that comes first is a member.
    let Some(close) = (first + 1..units.len()).find(|at| is(*at, ']')) else { return Ok(None) };
    let open = start.saturating_sub(1);
    let place = |at: usize| units.get(at).map_or(0, |unit| unit.at);
    let refusal =
        || SyntaxRefusal::of(UnsupportedSyntax::PatternClass, place(open)..place(close) + 1);
    let members: Option<Vec<char>> =
        units.get(first..close).unwrap_or_default().iter().map(|unit| unit.bare()).collect();
    let members =
        members.filter(|member| member.iter().all(|c| c.is_ascii() && !"[/$~{}".contains(*c)));
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
    Ok(Some((WordPiece::Class { negated, ranges }, close + 1)))
}

/// Ranges that mean the same in every language of a machine that counts as C does.
fn is_range(low: char, high: char) -> bool {
    let kinds = [char::is_ascii_digit, char::is_ascii_lowercase, char::is_ascii_uppercase];
    low <= high && kinds.iter().any(|is| is(&low) && is(&high))
}

/// Whether a component of the pattern begins with a dot and could match `.` or `..`, which shells
/// do not agree on.
fn could_match_dots(pieces: &[WordPiece]) -> bool {
    let mut components: Vec<Vec<WordPiece>> = [Vec::new()].into();
    for piece in pieces {
        let text = match piece {
            WordPiece::Directories => "/",
            WordPiece::Text(text) => text,
            _ => "",
        };
        for (index, part) in text.split('/').enumerate() {
            if index > 0 {
                components.push(Vec::new());
            }
            let part = (!part.is_empty()).then(|| WordPiece::Text(part.into()));
            let part = part.or_else(|| text.is_empty().then(|| piece.clone()));
            components.last_mut().into_iter().for_each(|component| component.extend(part.clone()));
        }
    }
    let begins = |item: &[WordPiece]| matches!(item, [WordPiece::Text(text), _, ..] if text.starts_with('.'));
    components.iter().any(|component| {
        begins(component) && (can_match(component, ".") || can_match(component, ".."))
    })
}

/// Whether pieces match one of the two short names.
fn can_match(pieces: &[WordPiece], name: &str) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return name.is_empty() };
    let mut chars = name.chars();
    match piece {
        WordPiece::Text(text) => name.strip_prefix(text).is_some_and(|name| can_match(rest, name)),
        WordPiece::Any => {
            can_match(rest, name) || (chars.next().is_some() && can_match(pieces, chars.as_str()))
        }
        // A component of its own.
        WordPiece::Directories => false,
        // What is put in is looked at when it is known.
        WordPiece::Variable { .. } => true,
        WordPiece::One => chars.next().is_some() && can_match(rest, chars.as_str()),
        WordPiece::Class { negated, ranges } => chars.next().is_some_and(|c| {
            let named = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
            named != *negated && can_match(rest, chars.as_str())
        }),
    }
}
