//! A value as it stands: in quotes or without, and the bytes that names, blanks and quotes are of.

use core::ops::Range;

use crate::matches::{CLOSE_LAST, OPEN_LAST};
use crate::text_window::{Lookahead, TextWindow};

/// The longest value.
pub(super) const MAX_VALUE: usize = 1 << 12;
/// The most blanks between a name and its value.
pub(super) const MAX_BLANKS: usize = 64;

/// What belongs to a name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.')
        || byte >= 0x80 && !matches!(byte, 0xc2 | OPEN_LAST | CLOSE_LAST)
}

pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | SEPARATOR)
}

/// The place behind the blanks that begin here.
pub(super) fn skip_blanks(view: &TextWindow<'_>, at: usize) -> Lookahead<usize> {
    view.run_end(at, MAX_BLANKS, is_blank)
}

/// What stands between the texts of a list while they are looked at together.
pub(super) const SEPARATOR: u8 = 0x1f;

pub(super) const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// A value, as it stands.
pub(super) struct QuotedValue {
    /// Without its quotes.
    pub(super) range: Range<usize>,
    /// Whether it stands in quotes.
    pub(super) quoted: bool,
    /// Whether it is the rest of its line.
    pub(super) whole_line: bool,
    /// Whether it is a block of lines.
    pub(super) block: bool,
    /// Whether it runs on.
    pub(super) continues: bool,
}

/// A text in quotes that begins here. Where the quotes are escaped, those that close are as well.
pub(super) fn read_quoted(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<QuotedValue>> {
    if view.matches_at(at, "“".as_bytes())? {
        let start = at + 3;
        let end = view.run_end(start, MAX_VALUE, |byte| byte != 0xe2 && byte != b'\n')?;
        return Ok(view.matches_at(end, "”".as_bytes())?.then_some(QuotedValue {
            range: start..end,
            quoted: true,
            whole_line: false,
            block: false,
            continues: false,
        }));
    }
    let open = view.run_end(at, 8, |byte| byte == b'\\')?;
    let Some(quote) = view.at(open)?.filter(|byte| is_quote(*byte)) else { return Ok(None) };
    let escapes = open - at;
    let mut start = open + 1;
    let triple = view.at(start)? == Some(quote) && view.at(start + 1)? == Some(quote);
    if triple {
        start += 2;
    }
    let mut end = start;
    loop {
        let stays = |byte: u8| !matches!(byte, b'\\' | b'\n' | SEPARATOR) && byte != quote;
        end = view.run_end(end, MAX_VALUE, stays)?;
        let stands = end - start;
        match view.at(end)? {
            _ if stands >= MAX_VALUE => {
                let range = start..start + MAX_VALUE;
                return Ok(Some(QuotedValue { continues: true, ..QuotedValue::closed(range) }));
            }
            // A line that ends in quotes that nothing closes.
            None if !view.is_cut(end) => return Ok(None),
            Some(b'\n' | SEPARATOR) => return Ok(None),
            Some(b'\\') => {
                let run = view.run_end(end, 16, |byte| byte == b'\\')?;
                if view.at(run)? == Some(quote) && run - end <= escapes {
                    return Ok(Some(QuotedValue::closed(start..end)));
                }
                end = if escapes == 0 { end + 2 } else { run };
            }
            Some(_) if escapes > 0 => return Ok(Some(QuotedValue::closed(start..end))),
            _ => return Ok(Some(QuotedValue::closed(start..end))),
        }
    }
}

impl QuotedValue {
    /// Words that are all that their line says.
    pub(super) const fn line(range: Range<usize>) -> Self {
        Self { range, quoted: false, whole_line: true, block: false, continues: false }
    }

    const fn closed(range: Range<usize>) -> Self {
        Self { range, quoted: true, whole_line: false, block: false, continues: false }
    }
}
