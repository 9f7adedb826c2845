//! A value behind a name that says what it is: `DB_PASSWORD=..`, `"apiKey": ".."`, `--token ..`.
//!
//! There are as many ways to write this as there are languages. What they share: a name, something
//! that joins, a value in quotes or without. What lies between is read here; what the name says is
//! known by `key`, and how the value looks by `value`.

use alloc::vec::Vec;
use core::ops::Range;

use crate::classifier::{Joiner, ValueContext, is_secret};
use crate::lines::{block, whole_line};
use crate::masked_value::classify;
use crate::matches::{KEY, MASK_FIRST, MaskLabel, SecretMatch};
use crate::quoted_value::{
    MAX_BLANKS, MAX_VALUE, QuotedValue, SEPARATOR, is_blank, is_name, is_quote, read_quoted,
    skip_blanks,
};
use crate::setting_names::{self, SecretCategory};
use crate::text_window::{Lookahead, TextWindow};
use crate::value::{ValueLook, is_binary};

/// How far before a name is looked whether it is in text.
const BINARY_LOOKBACK: usize = 96;
/// The longest name that is looked at.
const MAX_NAME: usize = 80;

/// The value behind a name of which a part stands here.
pub(super) fn find_value(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    let Some((name, holds)) = secret_name(view, at)? else { return Ok(None) };
    view.set_undecided_from(name.end);
    let Some(joint) = read_joint(view, &name, holds)? else { return Ok(None) };
    if is_verb(view, &name, joint.joined) {
        return Ok(None);
    }
    if names_another(view, &joint)? {
        return Ok(None);
    }
    let Some(value) = read_value(view, &name, &joint)? else { return Ok(None) };
    let text = view.bytes(value.range.clone());
    let wording =
        ValueContext { joined: joint.joined, quoted: value.quoted, whole_line: value.whole_line };
    let cut = view.is_cut(value.range.end) && !text.is_empty();
    // What a provider gave out has no blanks: where lines part it, they are not part of it.
    let joined =
        || text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<u8>>();
    let secret = match holds {
        SecretCategory::Secret | SecretCategory::Token | SecretCategory::Key if value.block => {
            is_secret(holds, &joined(), &wording)
        }
        _ => is_secret(holds, text, &wording),
    };
    let before = view.run_start(name.start, BINARY_LOOKBACK, |_| true)..name.start;
    let is_text = !is_binary(text) && !is_binary(view.bytes(before));
    Ok((is_text && (cut || secret)).then(|| SecretMatch {
        label: label(holds),
        range: value.range,
        continues: value.continues,
    }))
}

/// `password=token=..`: what stands behind is a name itself, and its value is looked at there.
fn names_another(view: &TextWindow<'_>, joint: &Joint) -> Lookahead<bool> {
    if joint.quoted || joint.joined != Joiner::Assigned {
        return Ok(false);
    }
    view.set_undecided_from(joint.at);
    let end = view.run_end(joint.at, MAX_NAME, is_name)?;
    // A mask counts as its value.
    let value = |byte: u8| is_name(byte) || byte == MASK_FIRST;
    let assigns = view.at(end)? == Some(b'=') && view.at(end + 1)?.is_some_and(value);
    Ok(assigns && setting_names::category(view.bytes(joint.at..end)).is_some())
}

/// `pass` as what somebody does: `pass the salt`, `t.pass("x")`.
fn is_verb(view: &TextWindow<'_>, name: &Range<usize>, joined: Joiner) -> bool {
    let text = view.bytes(name.clone());
    let last = text.rsplit(|byte| matches!(byte, b'.' | b'-')).next().unwrap_or_default();
    last.eq_ignore_ascii_case(b"pass") && matches!(joined, Joiner::Blank | Joiner::Argument)
}

pub(super) const fn label(holds: SecretCategory) -> MaskLabel {
    match holds {
        SecretCategory::Password | SecretCategory::Login | SecretCategory::Phrase => {
            MaskLabel::new("password", "setting")
        }
        SecretCategory::Secret
        | SecretCategory::Token
        | SecretCategory::Key
        | SecretCategory::Session => MaskLabel::new("secret", "setting"),
    }
}

/// The name around a place, and what it holds.
fn secret_name(
    view: &TextWindow<'_>,
    at: usize,
) -> Lookahead<Option<(Range<usize>, SecretCategory)>> {
    let start = view.run_start(at, MAX_NAME, is_name);
    let end = view.run_end(at, MAX_NAME, is_name)?;
    let text = view.bytes(start..end);
    let dashes = text.iter().take_while(|byte| matches!(byte, b'-' | b'.')).count();
    let tail = text.iter().rev().take_while(|byte| matches!(byte, b'-' | b'.')).count();
    let name = start + dashes..end.saturating_sub(tail).max(start + dashes);
    if text.len() >= MAX_NAME {
        return Ok(None);
    }
    let name = with_word_before(view, name);
    Ok(setting_names::category(view.bytes(name.clone())).map(|holds| (name, holds)))
}

/// `api key`, `access token`: a name in two words.
fn with_word_before(view: &TextWindow<'_>, name: Range<usize>) -> Range<usize> {
    const HEADS: [&[u8]; 3] = [b"key", b"token", b"secret"];
    let is_head = HEADS.iter().any(|head| head.eq_ignore_ascii_case(view.bytes(name.clone())));
    if !is_head || view.before(name.start) != Some(b' ') {
        return name;
    }
    let end = name.start - 1;
    let start = view.run_start(end, 16, |byte| byte.is_ascii_alphabetic());
    if start == end { name } else { start..name.end }
}

/// What stands between a name and its value.
#[derive(Clone, Copy, Debug)]
struct Joint {
    joined: Joiner,
    /// Where the value begins, with its quotes.
    at: usize,
    /// Whether only a value in quotes counts.
    quoted: bool,
}

impl Joint {
    const fn plain(joined: Joiner, at: usize) -> Self {
        Self { joined, at, quoted: false }
    }

    const fn quoted(joined: Joiner, at: usize) -> Self {
        Self { joined, at, quoted: true }
    }
}

/// What closes the name: quotes, also escaped ones, brackets, and the stars of a list.
fn skip_name_end(view: &TextWindow<'_>, at: usize) -> Lookahead<usize> {
    let closes =
        |byte: u8| is_quote(byte) || matches!(byte, b'\\' | b']' | b')' | b'*' | b'?' | b'!');
    view.run_end(at, 8, closes)
}

fn read_joint(
    view: &TextWindow<'_>,
    name: &Range<usize>,
    holds: SecretCategory,
) -> Lookahead<Option<Joint>> {
    let opening = view.run_start(name.start, 4, |byte| byte == b'-' || byte == b'\\');
    let before = view.before(opening);
    let closed = skip_name_end(view, name.end)?;
    let in_quotes = before.is_some_and(|byte| is_quote(byte) || byte == b'{');
    let at = skip_blanks(view, closed)?;
    if let Some(pair) = name_value_pair(view, name, closed)? {
        return Ok(Some(pair));
    }
    if matches!(view.at(at)?, Some(b':' | b'=')) {
        view.set_undecided_from(at + 1);
    }
    if let Some(below) = next_line_joint(view, at)? {
        return Ok(Some(below));
    }
    let (here, next) = match view.at(at)? {
        None => return Ok(None),
        Some(here) => (here, view.at(at + 1)?),
    };
    let plain = |joined, length| Ok(Some((joined, at + length)));
    let shell = is_shell_default(view, name);
    let joined: Lookahead<Option<(Joiner, usize)>> = match (here, next) {
        (b'=', Some(b'=')) => plain(Joiner::Assigned, 2),
        (b'=', Some(b'>')) | (b':', Some(b'=')) | (b'-', Some(b'>')) | (b'<', Some(b'-')) => {
            plain(Joiner::Assigned, 2)
        }
        (b':', Some(b':' | b'?' | b'/')) => return Ok(None),
        (b':', Some(b'-')) if shell => plain(Joiner::Assigned, 2),
        (b'=' | b':', _) => plain(Joiner::Assigned, 1),
        (b'|', Some(b'|')) | (b'?', Some(b'?')) => plain(Joiner::Default, 2),
        (b'|', Some(b' ')) => plain(Joiner::TableCell, 1),
        (b'>', _) if is_element(view, name) => plain(Joiner::Element, 1),
        (b',', _) if in_quotes => plain(Joiner::Argument, 1),
        (b'(' | b'{', _) if at == name.end => plain(Joiner::Argument, 1),
        (b'/', Some(b'>')) => return Ok(None),
        _ if at > closed => {
            return blank_joint(view, name, at, holds);
        }
        _ if is_quote(here) => plain(Joiner::Blank, 0),
        _ => return Ok(None),
    };
    let Some((joined, behind)) = joined? else { return Ok(None) };
    view.set_undecided_from(behind);
    // Stars around the name, as lists of settings in manuals have them.
    let begins = view.run_end(behind, MAX_BLANKS, |byte| is_blank(byte) || byte == b'*')?;
    Ok(Some(match joined {
        Joiner::Argument | Joiner::Default => Joint::quoted(joined, begins),
        Joiner::Assigned => {
            after_type_annotation(view, begins)?.unwrap_or(Joint::plain(joined, begins))
        }
        _ => Joint::plain(joined, begins),
    }))
}

/// Whether a name stands in `${NAME:-..}`.
fn is_shell_default(view: &TextWindow<'_>, name: &Range<usize>) -> bool {
    view.before(name.start) == Some(b'{') && view.before(name.start - 1) == Some(b'$')
}

/// Whether a name is that of an element: `<password>`, `<ns:password>`.
fn is_element(view: &TextWindow<'_>, name: &Range<usize>) -> bool {
    let start = view.run_start(name.start, 40, |byte| is_name(byte) || byte == b':');
    view.before(start) == Some(b'<')
}

/// A value behind blanks alone: behind an option, at the beginning of a line, in quotes, or told by a
/// verb.
fn blank_joint(
    view: &TextWindow<'_>,
    name: &Range<usize>,
    at: usize,
    holds: SecretCategory,
) -> Lookahead<Option<Joint>> {
    for verb in [b"is:".as_slice(), b"is ", b"was "] {
        if view.matches_at(at, verb)? {
            let begins = skip_blanks(view, at + verb.len())?;
            return Ok(Some(Joint::plain(Joiner::Is, begins)));
        }
    }
    // `Dim pwd As String = ".."`, `<password type="x">..`.
    if view.matches_at(at, b"as ")? || is_element(view, name) {
        let most = if is_element(view, name) { 120 } else { 24 };
        let end = view.run_end(at, most, |byte| !matches!(byte, b'=' | b'>' | b'\n' | b'<'))?;
        let end = match view.at(end)? {
            Some(b'=') if is_element(view, name) => {
                view.run_end(end, most, |byte| !matches!(byte, b'>' | b'\n' | b'<'))?
            }
            _ => end,
        };
        return Ok(match view.at(end)? {
            Some(b'=') => Some(Joint::quoted(Joiner::Assigned, skip_blanks(view, end + 1)?)),
            Some(b'>') if view.before(end) != Some(b'/') => {
                Some(Joint::plain(Joiner::Element, end + 1))
            }
            _ => None,
        });
    }
    let leads = view.before(name.start) == Some(b'-');
    let joined = match (leads, view.line_before(name.start)) {
        (true, _) => Joiner::Option,
        (_, Some(before)) if leads_line(before) => Joiner::LineStart,
        _ => Joiner::Blank,
    };
    let lone = joined != Joiner::Option || at == name.end + 1;
    Ok((lone || holds != SecretCategory::Password).then_some(Joint::plain(joined, at)))
}

/// Whether what stands before a name leaves the line to it and its value.
fn leads_line(before: &[u8]) -> bool {
    const VERBS: [&[u8]; 6] = [b"", b"quote", b"raw", b"ENV", b"set", b"setenv"];
    VERBS.contains(&before.trim_ascii())
}

/// A value on a line of its own, below a line that tells of it or a head that names it.
fn next_line_joint(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<Joint>> {
    let line = view.run_end(at, 100, |byte| !matches!(byte, b'\n' | b'\r' | b'='))?;
    let text = view.bytes(at..line).trim_ascii();
    let tells = text.last() == Some(&b':') && text.len() > 1 || text.is_empty();
    if !tells || !matches!(view.at(line)?, Some(b'\n' | b'\r')) {
        return Ok(None);
    }
    let begins = view.run_end(line, 6, |byte| byte == b'\n' || byte == b'\r')?;
    let gaps = view.bytes(line..begins).iter().filter(|byte| **byte == b'\n').count();
    let begins = skip_blanks(view, begins)?;
    Ok((gaps == 2).then_some(Joint::plain(Joiner::NextLine, begins)))
}

/// `: Type = ".."`: where the value begins.
fn after_type_annotation(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<Joint>> {
    let in_type = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'&' | b'\'' | b'<' | b'>' | b'_' | b':' | b'[' | b']' | b' ')
    };
    if !view.at(at)?.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'&') {
        return Ok(None);
    }
    let end = view.run_end(at, 40, in_type)?;
    if view.at(end)? != Some(b'=') || view.before(end) != Some(b' ') {
        return Ok(None);
    }
    let begins = skip_blanks(view, end + 1)?;
    let quoted = view.at(begins)?.is_some_and(is_quote);
    Ok(quoted.then_some(Joint::quoted(Joiner::Assigned, begins)))
}

/// `name: X` and behind it `value: ..`, as lists of settings have it.
fn name_value_pair(
    view: &TextWindow<'_>,
    name: &Range<usize>,
    closed: usize,
) -> Lookahead<Option<Joint>> {
    let opens = |byte: u8| is_quote(byte) || is_blank(byte) || matches!(byte, b':' | b'=' | b'\\');
    let word = view.run_start(name.start, 12, |byte| opens(byte) || byte == b'>');
    let is_pair = [b"name".as_slice(), b"key"]
        .iter()
        .any(|item| word < name.start && ends_with(view.bytes(0..word), item));
    if !is_pair {
        return Ok(None);
    }
    // Between them: what closes the one and opens the other.
    let between = |byte: u8| {
        opens(byte)
            || byte.is_ascii_whitespace()
            || matches!(byte, b',' | b';' | b'<' | b'>' | b'/')
    };
    let mut at = closed;
    for _ in 0..4 {
        at = view.run_end(at, 48, between)?;
        if view.matches_at(at, b"value")? {
            let begins = view.run_end(at + 5, 8, |byte| is_quote(byte) || byte == b'\\')?;
            let begins = skip_blanks(view, begins)?;
            return Ok(match view.at(begins)? {
                Some(b':' | b'=' | b'>') => {
                    let begins = skip_blanks(view, begins + 1)?;
                    view.set_undecided_from(begins);
                    Some(Joint::plain(Joiner::Assigned, begins))
                }
                _ => None,
            });
        }
        let tag = [b"key".as_slice(), b"name", b"n"];
        let mut length = None;
        for item in tag {
            if length.is_none() && view.matches_at(at, item)? && view.before(at) == Some(b'/') {
                length = Some(item.len());
            }
        }
        let Some(length) = length else { return Ok(None) };
        at += length;
    }
    Ok(None)
}

fn ends_with(text: &[u8], word: &[u8]) -> bool {
    let tail = text.len().checked_sub(word.len()).and_then(|at| text.get(at..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word))
}

fn read_value(
    view: &TextWindow<'_>,
    name: &Range<usize>,
    joint: &Joint,
) -> Lookahead<Option<QuotedValue>> {
    view.set_undecided_from(joint.at);
    if let Some(begins) = wrapped(view, joint)?
        && let Some(found) = read_quoted(view, begins)?
    {
        return Ok(Some(found));
    }
    if joint.quoted {
        return Ok(None);
    }
    if joint.joined == Joiner::Assigned
        && let Some(found) = block(view, name, joint.at)?
    {
        return Ok(Some(found));
    }
    let line = match joint.joined {
        Joiner::Assigned => whole_line(view, name, joint.at)?,
        _ => None,
    };
    if let Some(range) = line {
        return Ok(Some(QuotedValue::line(range)));
    }
    unquoted_value(view, joint)
}

/// Where a value in quotes begins: here, behind a letter that says what kind of text it is, or in
/// the brackets of what wraps it.
fn wrapped(view: &TextWindow<'_>, joint: &Joint) -> Lookahead<Option<usize>> {
    let at = joint.at;
    let opens = |item: Option<u8>| item.is_some_and(|byte| is_quote(byte) || byte == b'\\');
    if opens(view.at(at)?) || view.matches_at(at, "“".as_bytes())? {
        return Ok(Some(at));
    }
    let in_path =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'@' | b'$');
    let end = view.run_end(at, 40, in_path)?;
    match view.at(end)? {
        Some(byte) if is_quote(byte) && end - at <= 2 => Ok(Some(end)),
        Some(b'(') => {
            const WRAPS: [&[u8]; 8] =
                [b"Some", b"from", b"String", b"str", b"Secret", b"SecretStr", b"new", b"Ok"];
            let path = view.bytes(at..end);
            let known = WRAPS.iter().any(|wrap| path.ends_with(wrap));
            Ok((known && opens(view.at(end + 1)?)).then_some(end + 1))
        }
        _ => Ok(None),
    }
}

/// Four groups of four letters, as some mail providers give them out.
fn extend_letter_groups(
    view: &TextWindow<'_>,
    at: usize,
    end: usize,
    joint: &Joint,
) -> Lookahead<usize> {
    if end - at != 4 || joint.joined != Joiner::Assigned || view.at(end)? != Some(b' ') {
        return Ok(end);
    }
    let group = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut last = end;
    for _ in 0..3 {
        let next = view.run_end(last + 1, 5, group)?;
        if view.at(last)? != Some(b' ') || next - last != 5 {
            return Ok(end);
        }
        last = next;
    }
    Ok(last)
}

/// A text in quotes behind words that leave no doubt: `IDENTIFIED BY '..'`.
pub(super) fn find_quoted_after_phrase(
    view: &TextWindow<'_>,
    at: usize,
) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    let begins = skip_blanks(view, at)?;
    let Some(value) = read_quoted(view, begins)? else { return Ok(None) };
    let wording = ValueContext { joined: Joiner::Assigned, quoted: true, whole_line: false };
    let text = view.bytes(value.range.clone());
    let secret = classify(text) >= ValueLook::PersonMade
        && is_secret(SecretCategory::Password, text, &wording);
    Ok(secret.then(|| SecretMatch::complete(label(SecretCategory::Password), value.range)))
}

/// The private part of a key in JSON (RFC 7518): `"d":".."`.
pub(super) fn find_jwk_private(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    let behind = skip_blanks(view, at + 3)?;
    view.set_undecided_from(behind);
    if view.at(behind)? != Some(b':') {
        return Ok(None);
    }
    let begins = skip_blanks(view, behind + 1)?;
    let Some(value) = read_quoted(view, begins)? else { return Ok(None) };
    let text = view.bytes(value.range.clone());
    let url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let random = text.len() >= 40 && text.iter().all(url) && classify(text) == ValueLook::Random;
    Ok(random.then(|| SecretMatch::complete(MaskLabel::new(KEY, "jwk"), value.range)))
}

/// A value without quotes.
fn unquoted_value(view: &TextWindow<'_>, joint: &Joint) -> Lookahead<Option<QuotedValue>> {
    let at = joint.at;
    let ends = |byte: u8| {
        byte.is_ascii_whitespace()
            || is_quote(byte)
            || matches!(byte, b',' | b';' | b')' | b'}' | b']' | b'&' | b'<' | b'>' | SEPARATOR)
            || byte == b'\\'
    };
    let element = joint.joined == Joiner::Element;
    let end = view.run_end(at, MAX_VALUE, |byte| match element {
        true => !matches!(byte, b'<' | b'\n' | b'\r'),
        false => !ends(byte),
    })?;
    let end = extend_letter_groups(view, at, end, joint)?;
    let range = at..end;
    let goes_on = range.len() == MAX_VALUE;
    let trimmed = match view.bytes(range.clone()) {
        [.., b'.' | b':'] if !goes_on => at..end - 1,
        _ => range,
    };
    Ok(Some(QuotedValue {
        range: trimmed,
        quoted: element,
        whole_line: false,
        block: false,
        continues: goes_on,
    }))
}
