//! Private keys in blocks: PEM, OpenPGP, SSH2, and those of PuTTY.
//!
//! A block is found wherever somebody put it: quoted, indented, escaped into one line, put together of
//! texts in a program, behind the prefix that a log has for its lines. What is read are pieces of
//! base64; what stands between them may be short. A heading without any body is a mention of one.

use core::ops::Range;

use crate::masked_value::is_placeholder;
use crate::matches::{KEY, MaskLabel, SecretMatch, find_bytes as find_text};
use crate::quoted_value::{SEPARATOR, is_quote};
use crate::text_window::{Lookahead, TextWindow};
use crate::value::{CharCounts, wordiness};

/// The most that is masked as one; a longer key is masked in parts.
const KEY_BYTES: usize = 1 << 16;
/// What may stand between two pieces of a body: signs and prefixes of lines.
const MAX_GAP: usize = 96;
/// From how many characters on a piece is one of a key without more.
const MIN_PIECE: usize = 16;

const fn label() -> MaskLabel {
    MaskLabel::new(KEY, "pem")
}

/// The block whose `-BEGIN ` or `- BEGIN ` stands here.
pub(super) fn find_block(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    let start = view.run_start(at + 1, 8, |byte| byte == b'-');
    view.set_undecided_from(start);
    if at + 1 - start < 4 {
        return Ok(None);
    }
    let words = view.run_end(at + 1, 64, |byte| byte.is_ascii_alphanumeric() || byte == b' ')?;
    let label_text = view.bytes(at + 1..words);
    if find_text(label_text, b"PRIVATE KEY").is_none() {
        let cut = view.is_cut(words) && b" BEGIN ".ends_with(label_text);
        return Ok(cut.then(|| SecretMatch::complete(label(), start..words)));
    }
    let dashes = view.run_end(words, 8, |byte| byte == b'-')?;
    if dashes - words < 4 && !view.is_cut(dashes) {
        return Ok(None);
    }
    let body = find_body(view, dashes, start)?;
    Ok(body.map(|(end, goes_on)| SecretMatch {
        label: label(),
        range: start..end,
        continues: goes_on,
    }))
}

/// The rest of a key whose beginning is not here; none if the text is something else.
pub(super) fn continue_key(view: &TextWindow<'_>, start: usize) -> Lookahead<Option<SecretMatch>> {
    let found = find_body(view, start, start)?;
    Ok(found.map(|(end, goes_on)| SecretMatch {
        label: label(),
        range: start..end,
        continues: goes_on,
    }))
}

/// What is left of a key whose beginning was cut off: only what leads to its last line counts.
pub(super) fn find_cut_key(view: &TextWindow<'_>) -> Lookahead<Option<SecretMatch>> {
    let Some(found) = continue_key(view, 0)? else { return Ok(None) };
    let text = view.bytes(found.range.clone());
    let ended = find_text(text, b"-----END").is_some() && find_text(text, b"----BEGIN ").is_none();
    Ok(ended.then_some(found))
}

/// Where a body ends, and whether it goes on behind the most that is masked as one.
fn find_body(view: &TextWindow<'_>, from: usize, start: usize) -> Lookahead<Option<(usize, bool)>> {
    let mut at = from;
    // Where the last piece ended; nothing yet.
    let mut last = None;
    // How much of short pieces there was, and whether that was all.
    let (mut short, mut odd) = (0, false);
    loop {
        if at - start >= KEY_BYTES {
            return Ok(last.map(|end| (end, true)));
        }
        let behind = last.unwrap_or(from);
        let next = skip_gap(view, at)?;
        let end = view.run_end(next, KEY_BYTES, is_piece)?;
        let text = view.bytes(next..end);
        if let Some(length) = end_marker(view, next, text)? {
            return Ok((last.is_some() || short >= 4 && !odd).then_some((length, false)));
        }
        if text.is_empty() && next >= view.len() {
            return Ok(last.map(|end| (end, false)).or(cut_heading(view, from)));
        }
        // The last piece may be short, if it follows the others.
        let is_last = at == behind && (view.is_cut(end) || end >= view.len() && last.is_some());
        let goes_on = from == start && at == from;
        let fits = goes_on || text.len() >= MIN_PIECE && !is_words(text);
        match () {
            () if (fits || is_last) && !text.is_empty() => {
                at = end.min(start + KEY_BYTES);
                last = Some(at);
            }
            () if is_header_line(view, next, text)? => {
                at = view.run_end(next, 200, |byte| byte != b'\n' && byte != b'\\')?;
            }
            () => {
                short += text.len();
                odd |= text.is_empty() || is_placeholder(text) || wordiness(text) >= 6;
                at = end.max(next + 1);
                if at.saturating_sub(behind) > MAX_GAP || text.len() > 40 && last.is_some() {
                    return Ok(last.map(|end| (last_line(view, end), false)));
                }
            }
        }
    }
}

/// A heading that was cut off before its body.
fn cut_heading(view: &TextWindow<'_>, from: usize) -> Option<(usize, bool)> {
    (view.is_cut(view.len()) && from > 0).then_some((view.len(), false))
}

/// What is left of a key's last line when no end follows it: a short piece on a line of its own.
fn last_line(view: &TextWindow<'_>, end: usize) -> usize {
    let rest = view.bytes(end..end + MAX_GAP);
    let line = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let Some(line) =
        line.filter(|at| rest.get(..*at).is_some_and(|item| item.trim_ascii().is_empty()))
    else {
        return end;
    };
    let piece = rest.get(line..).unwrap_or_default();
    let length = piece.iter().take_while(|byte| is_piece(**byte)).count();
    let padded = piece.get(length.saturating_sub(1)) == Some(&b'=');
    let alone = piece.get(length).is_none_or(u8::is_ascii_whitespace);
    if padded && alone { end + line + length } else { end }
}

/// Where the next piece begins: behind blanks, quotes, escapes and commas.
fn skip_gap(view: &TextWindow<'_>, from: usize) -> Lookahead<usize> {
    let mut at = from;
    loop {
        at = view.run_end(at, MAX_GAP, is_gap)?;
        let escaped = view.before(at) == Some(b'\\') && at > from;
        match view.at(at)? {
            Some(b'n' | b'r' | b't') if escaped && at - from < MAX_GAP => at += 1,
            _ => return Ok(at),
        }
    }
}

fn is_gap(byte: u8) -> bool {
    byte.is_ascii_whitespace() || is_quote(byte) || matches!(byte, b'\\' | b',' | SEPARATOR)
}

fn is_piece(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// A long word, as in a path or a name.
fn is_words(text: &[u8]) -> bool {
    let count = CharCounts::of(text);
    let slashes = text.iter().filter(|byte| **byte == b'-' || **byte == b'_').count();
    wordiness(text) >= 8 || slashes * 4 > text.len() || count.letters() == 0
}

/// `-----END .. PRIVATE KEY-----`: where it ends.
fn end_marker(view: &TextWindow<'_>, next: usize, text: &[u8]) -> Lookahead<Option<usize>> {
    // A sign of a difference between two texts may stand before it.
    let sign = text.iter().take_while(|byte| **byte == b'+').count();
    let rest = text.get(sign..).unwrap_or_default();
    let dashes = rest.iter().take_while(|byte| **byte == b'-').count();
    if dashes < 4 || sign > 1 {
        return Ok(None);
    }
    let at = next + sign + dashes;
    let at = at + usize::from(view.at(at)? == Some(b' '));
    if !view.matches_at(at, b"END")? {
        return Ok(None);
    }
    let words = view.run_end(at, 64, |byte| byte.is_ascii_alphanumeric() || byte == b' ')?;
    let private = find_text(view.bytes(at..words), b"PRIVATE KEY").is_some();
    let end = view.run_end(words, 8, |byte| byte == b'-')?;
    Ok((private || view.is_cut(end)).then_some(end))
}

/// A line about the key: `Proc-Type: 4,ENCRYPTED`.
fn is_header_line(view: &TextWindow<'_>, next: usize, text: &[u8]) -> Lookahead<bool> {
    const HEADS: [&[u8]; 6] =
        [b"Proc-Type", b"DEK-Info", b"Version", b"Comment", b"Hash", b"Charset"];
    let end = next + text.len();
    Ok(HEADS.contains(&text) && view.at(end)? == Some(b':'))
}

/// The lines behind `Private-Lines: N` of a key of PuTTY.
pub(super) fn find_putty(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    let line = view.run_end(at, 40, |byte| byte != b'\n')?;
    let start: usize = line + 1;
    view.set_undecided_from(start);
    let end = view.run_end(start, KEY_BYTES, |byte| {
        is_piece(byte) && byte != b'-' || byte.is_ascii_whitespace()
    })?;
    let text = view.bytes(start..end);
    // The name of the next line was taken for a piece.
    let lines = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |text| start + text);
    let range: Range<usize> = start..lines.max(start);
    let found = range.len() >= MIN_PIECE;
    Ok(found.then(|| SecretMatch::complete(MaskLabel::new(KEY, "putty"), range)))
}
