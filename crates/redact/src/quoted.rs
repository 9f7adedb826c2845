//! A value as it stands: in quotes or without, and the bytes that names, blanks and quotes are of.

use core::ops::Range;

use crate::found::{CLOSE_LAST, OPEN_LAST};
use crate::view::{Read, View};

/// The longest value.
pub(super) const VALUE: usize = 1 << 12;

/// What belongs to a name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.')
        || byte >= 0x80 && !matches!(byte, 0xc2 | OPEN_LAST | CLOSE_LAST)
}

pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | SEPARATOR)
}

/// What stands between the texts of a list while they are looked at together.
pub(super) const SEPARATOR: u8 = 0x1f;

pub(super) const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// A value, as it stands.
pub(super) struct Quoted {
    /// Without its quotes.
    pub(super) range: Range<usize>,
    /// Whether it stands in quotes.
    pub(super) quoted: bool,
    /// Whether it is the rest of its line.
    pub(super) line: bool,
    /// Whether it is a block of lines.
    pub(super) block: bool,
    /// Whether it runs on.
    pub(super) goes_on: bool,
}

/// A text in quotes that begins here. Where the quotes are escaped, those that close are as well.
pub(super) fn quoted(view: &View<'_>, at: usize) -> Read<Option<Quoted>> {
    if view.says(at, "“".as_bytes())? {
        let start = at + 3;
        let end = view.run(start, VALUE, |byte| byte != 0xe2 && byte != b'\n')?;
        return Ok(view.says(end, "”".as_bytes())?.then_some(Quoted {
            range: start..end,
            quoted: true,
            line: false,
            block: false,
            goes_on: false,
        }));
    }
    let open = view.run(at, 8, |byte| byte == b'\\')?;
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
        end = view.run(end, VALUE, stays)?;
        let stands = end - start;
        match view.at(end)? {
            _ if stands >= VALUE => {
                let range = start..start + VALUE;
                return Ok(Some(Quoted { goes_on: true, ..Quoted::closed(range) }));
            }
            // A line that ends in quotes that nothing closes.
            None if !view.is_cut(end) => return Ok(None),
            Some(b'\n' | SEPARATOR) => return Ok(None),
            Some(b'\\') => {
                let run = view.run(end, 16, |byte| byte == b'\\')?;
                if view.at(run)? == Some(quote) && run - end <= escapes {
                    return Ok(Some(Quoted::closed(start..end)));
                }
                end = if escapes == 0 { end + 2 } else { run };
            }
            Some(_) if escapes > 0 => return Ok(Some(Quoted::closed(start..end))),
            _ => return Ok(Some(Quoted::closed(start..end))),
        }
    }
}

impl Quoted {
    /// Words that are all that their line says.
    pub(super) const fn line(range: Range<usize>) -> Self {
        Self { range, quoted: false, line: true, block: false, goes_on: false }
    }

    const fn closed(range: Range<usize>) -> Self {
        Self { range, quoted: true, line: false, block: false, goes_on: false }
    }
}
