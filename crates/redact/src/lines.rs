//! Values that are lines: the rest of a line that is one setting, and a block of lines below it.

use core::ops::Range;

use crate::classifier::is_phrase;
use crate::quoted_value::{
    MAX_BLANKS, MAX_VALUE, QuotedValue, SEPARATOR, is_blank, is_name, skip_blanks,
};
use crate::text_window::{Lookahead, TextWindow};

/// The longest line that is one setting and nothing else.
const LINE: usize = 1 << 10;

/// The rest of the line, where the line is a setting and nothing else: then every sign belongs to
/// the value.
pub(super) fn whole_line(
    view: &TextWindow<'_>,
    name: &Range<usize>,
    at: usize,
) -> Lookahead<Option<Range<usize>>> {
    if !view.line_before(name.start).is_some_and(is_line_of_setting) {
        return Ok(None);
    }
    let end = view.run_end(at, LINE, |byte| !matches!(byte, b'\n' | b'\r' | SEPARATOR))?;
    let text = view.bytes(at..end);
    if text.len() >= LINE {
        return Ok(None);
    }
    let comment = (1..text.len()).find(|place| {
        text.get(place - 1).copied().is_some_and(is_blank)
            && text.get(*place).is_some_and(|byte| matches!(byte, b'#' | b';'))
    });
    let text = text.get(..comment.unwrap_or(text.len())).unwrap_or_default().trim_ascii_end();
    // `a=1;b=2` and what a language closes a statement with is more than a value.
    let several = text.iter().any(|byte| is_blank(*byte) || *byte == b'"')
        || text.windows(2).any(|item| item == b";") && text.contains(&b'=')
        || next_setting(text);
    let closed = matches!(text.last(), Some(b',' | b';' | b')' | b'}'));
    let one = !several || is_phrase(text);
    Ok((one && !closed && !text.is_empty()).then(|| at..at + text.len()))
}

/// A block of lines behind `|` or `>`, as YAML has it: all that are indented further than the name.
pub(super) fn block(
    view: &TextWindow<'_>,
    name: &Range<usize>,
    at: usize,
) -> Lookahead<Option<QuotedValue>> {
    if !matches!(view.at(at)?, Some(b'|' | b'>')) {
        return Ok(None);
    }
    let head =
        view.run_end(at + 1, 2, |byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-'))?;
    let mut end = skip_blanks(view, head)?;
    if view.at(end)? == Some(b'#') {
        end = view.run_end(end, 120, |byte| !matches!(byte, b'\n' | b'\r'))?;
    }
    if !matches!(view.at(end)?, Some(b'\n' | b'\r')) {
        return Ok(None);
    }
    let before = view.line_before(name.start).filter(|item| is_line_of_setting(item));
    let Some(before) = before else { return Ok(None) };
    let indent = before.iter().take_while(|byte| is_blank(**byte)).count();
    let mut found: Option<Range<usize>> = None;
    while end - at < MAX_VALUE {
        let line = match (view.at(end)?, view.at(end + 1)?) {
            (Some(b'\r'), Some(b'\n')) => end + 2,
            (Some(b'\n'), _) => end + 1,
            _ => break,
        };
        let begins = view.run_end(line, MAX_BLANKS, is_blank)?;
        let is_empty = matches!(view.at(begins)?, Some(b'\n' | b'\r'));
        if !is_empty && begins - line <= indent {
            break;
        }
        view.set_undecided_from(found.as_ref().map_or(begins, |range| range.start));
        end = view.run_end(begins, MAX_VALUE, |byte| !matches!(byte, b'\n' | b'\r'))?;
        if !is_empty && end > begins {
            found = Some(found.map_or(begins, |range| range.start)..end);
        }
    }
    let quoted = |range| QuotedValue {
        range,
        quoted: true,
        whole_line: true,
        block: true,
        continues: false,
    };
    Ok(found.map(quoted))
}

/// Whether another setting follows in the line: `;Database=acme`, `&b=2`.
fn next_setting(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| matches!(byte, b';' | b'&'));
    parts.next();
    parts.any(|part| {
        let name = part.iter().take_while(|byte| is_name(**byte)).count();
        name > 1 && part.get(name) == Some(&b'=')
    })
}

/// Whether what stands before a name leaves the line to it: blanks, a dash, a sign of a difference,
/// `export`, a number of a line.
fn is_line_of_setting(before: &[u8]) -> bool {
    const LEADS: [&[u8]; 7] = [b"export", b"set", b"env", b"setenv", b"local", b"declare", b"-"];
    let before = before.trim_ascii();
    let before = before.strip_prefix(b"+").unwrap_or(before).trim_ascii();
    let before = before.strip_suffix(b"$").unwrap_or(before);
    before.is_empty()
        || LEADS.iter().any(|lead| lead.eq_ignore_ascii_case(before))
        || before.iter().all(u8::is_ascii_digit)
        || before.last() == Some(&b'.') && before.iter().all(|byte| is_name(*byte))
}
