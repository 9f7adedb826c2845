//! What of a text a reader sees: without the bytes that have no width, and with wide characters as plain ones.
//!
//! Rules read bytes. A secret that is said in UTF-16, that is coloured in the middle or that has a soft hyphen in
//! it is the same secret to whoever reads it. So rules read what is visible as well, and where it stands in the
//! bytes is known. Not visible are: the zero bytes between the characters of a run of UTF-16 or UTF-32, at
//! whatever place it begins; what colours a terminal; characters that have no width; and a character that is
//! struck over by itself. What begins with a mark of UTF-16 or UTF-32 is read as that to its end.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// How a character is said in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// As UTF-8, or whatever stands there.
    #[default]
    Plain,
    /// One byte, with so many zero bytes to the next.
    Spread(usize),
    /// UTF-16 or UTF-32 of a text that begins with its mark.
    Wide(Unit),
}

/// A unit of wide characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Two or four bytes.
    width: usize,
    /// Whether the high byte comes first.
    high_first: bool,
}

/// The marks that wide characters begin with, the longer ones first.
const MARKS: [(&[u8], Unit); 4] = [
    (b"\xff\xfe\0\0", Unit { width: 4, high_first: false }),
    (b"\0\0\xfe\xff", Unit { width: 4, high_first: true }),
    (b"\xff\xfe", Unit { width: 2, high_first: false }),
    (b"\xfe\xff", Unit { width: 2, high_first: true }),
];

/// How many characters a run of spread ones has at least: fewer are names that zero bytes part.
const RUN: usize = 4;
/// The longest sequence that colours.
const SEQUENCE: usize = 64;

/// How many bytes in a row may be invisible.
pub(super) const APART: usize = 256;

/// Where in a text reading begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// Whether something was read before.
    pub(super) goes_on: bool,
    /// How what was read last was said.
    style: Style,
    /// The units of a text that began with a mark.
    unit: Option<Unit>,
    /// How many bytes belong to a character before, where the text is read as if it had no mark.
    skip: usize,
}

impl Start {
    /// In the middle of a text whose beginning is not there.
    pub(super) fn behind(goes_on: bool) -> Self {
        Self { goes_on, ..Self::default() }
    }
}

/// What is visible of some bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Visible {
    /// It, as UTF-8 where it was said otherwise.
    pub(super) text: Vec<u8>,
    /// For each of its bytes: the bytes of the character that it is of.
    places: Vec<(usize, usize)>,
    /// How the characters from a place on are said, by place.
    styles: Vec<(usize, Style)>,
    /// Where what is not visible ends, and how the characters around it are said.
    ends: Vec<(usize, Style)>,
    /// Up to where the bytes were read: what follows depends on what comes.
    read: usize,
}

/// Whether all bytes are visible as they are, for the most part of texts.
pub(super) fn is_plain(bytes: &[u8], start: Start) -> bool {
    let is_odd = |byte: &u8| matches!(byte, 0 | 0x08 | 0x0e | 0x0f | 0x1b) || LEADS.contains(byte);
    let begins = !start.goes_on && bytes.first().is_some_and(|first| *first >= 0xfe);
    let goes_on = start.style == Style::Plain && start.unit.is_none();
    goes_on && !begins && !bytes.iter().any(is_odd)
}

/// The first bytes of characters without width.
const LEADS: [u8; 7] = [0xc2, 0xcd, 0xd8, 0xe1, 0xe2, 0xef, 0xf3];

/// What is visible of some bytes; `open` says that more may come. What begins with a mark is read as what that says,
/// and as if it were none: whoever makes a program write one does not hide by it what follows.
pub(super) fn visible(bytes: &[u8], start: Start, open: bool) -> Vec<Visible> {
    let mut unit = start.unit.map(|unit| (0, unit));
    for (mark, marked) in MARKS.iter().filter(|_| !start.goes_on) {
        let there = bytes.get(..mark.len().min(bytes.len())).unwrap_or_default();
        if there == *mark {
            unit = Some((mark.len(), *marked));
            break;
        }
        if open && !there.is_empty() && mark.starts_with(there) {
            return alloc::vec![Visible::default()];
        }
    }
    let mut narrow = Visible::default();
    narrow.narrow(bytes, start.skip, start.style, open);
    let wide = unit.map(|(from, unit)| {
        let mut wide = Visible::default();
        wide.wide(bytes, from, unit, open);
        wide
    });
    [narrow].into_iter().chain(wide).collect()
}

/// How reading begins at a byte, at which a character of the last reading begins.
pub(super) fn start_at(all: &[Visible], byte: usize) -> Start {
    let unit =
        all.get(1).and_then(|visible| visible.styles.first()).and_then(|(_, style)| match style {
            Style::Wide(unit) => Some(*unit),
            _ => None,
        });
    let narrow = all.first().map(|narrow| {
        let at = if narrow.begins_at(byte) { byte } else { narrow.start_of(narrow.place_of(byte)) };
        (at.saturating_sub(byte), narrow.style_at(at))
    });
    let (skip, style) = narrow.unwrap_or_default();
    Start { goes_on: true, style, unit, skip }
}

impl Visible {
    /// The bytes of the characters in a range of what is visible.
    pub(super) fn bytes_of(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.start_of(range.start);
        let end = range.end.checked_sub(1).and_then(|last| self.places.get(last));
        start..end.map_or(start, |(_, end)| (*end).max(start))
    }

    /// Where the character at a place of what is visible begins in the bytes.
    pub(super) fn start_of(&self, place: usize) -> usize {
        self.places.get(place).map_or(self.read, |(start, _)| *start)
    }

    /// Whether all bytes before one were read.
    pub(super) const fn has_read(&self, byte: usize) -> bool {
        byte <= self.read
    }

    /// The first place of what is visible that is said by these bytes or later ones.
    pub(super) fn place_of(&self, byte: usize) -> usize {
        self.places.partition_point(|(start, _)| *start < byte)
    }

    /// How the characters of a range are said, if all are said alike.
    pub(super) fn style_of(&self, range: &Range<usize>) -> Style {
        let from = self.styles.partition_point(|(at, _)| *at <= range.start).saturating_sub(1);
        match self.styles.get(from..).unwrap_or_default() {
            [(_, style), rest @ ..] if rest.first().is_none_or(|(at, _)| *at >= range.end) => {
                *style
            }
            _ => Style::Plain,
        }
    }

    /// How the character that begins at a byte, or the characters around what ends there, are said.
    fn style_at(&self, byte: usize) -> Style {
        let place = self.place_of(byte);
        let is_start = self.places.get(place).is_some_and(|(start, _)| *start == byte);
        let before = self.styles.partition_point(|(at, _)| *at <= place).saturating_sub(1);
        let here = self.styles.get(before).filter(|_| is_start).map(|(_, style)| *style);
        let behind = || self.ends.binary_search_by_key(&byte, |(end, _)| *end).ok();
        let behind = || behind().and_then(|at| self.ends.get(at)).map(|(_, style)| *style);
        here.or_else(behind).unwrap_or_default()
    }

    /// Whether reading can begin at a byte.
    pub(super) fn begins_at(&self, byte: usize) -> bool {
        let is_start =
            self.places.get(self.place_of(byte)).is_some_and(|(start, _)| *start == byte);
        is_start || self.ends.binary_search_by_key(&byte, |(end, _)| *end).is_ok()
    }

    /// The bytes of whole characters that are most of a range: without zero bytes around it.
    pub(super) fn aligned(&self, bytes: &[u8], range: Range<usize>) -> Range<usize> {
        let item = bytes.get(range.clone()).unwrap_or_default();
        let zeros =
            |item: &mut dyn Iterator<Item = &u8>| item.take_while(|byte| **byte == 0).count();
        let start = range.start + zeros(&mut item.iter());
        let end = range.end.saturating_sub(zeros(&mut item.iter().rev())).max(start);
        let seen = self.place_of(start)..self.place_of(end);
        if self.start_of(seen.start) == start {
            start..self.bytes_of(&seen).end
        } else {
            start..end
        }
    }

    fn put(&mut self, text: &[u8], bytes: Range<usize>, style: Style) {
        if self.styles.last().map(|(_, style)| *style) != Some(style) {
            self.styles.push((self.text.len(), style));
        }
        self.text.extend_from_slice(text);
        self.places.extend(text.iter().map(|_| (bytes.start, bytes.end)));
        self.read = bytes.end;
    }

    /// Nothing is visible up to here.
    fn pass(&mut self, end: usize, style: Style) {
        self.read = end;
        self.ends.push((end, style));
    }

    /// A byte that is said as it is, or as one of a run.
    fn put_byte(&mut self, byte: u8, at: usize, style: Style) {
        match style {
            Style::Spread(_) if byte >= 0x80 => {
                let mut buffer = [0; 2];
                let text = char::from(byte).encode_utf8(&mut buffer).as_bytes();
                self.put(text, at..at + 1, style);
            }
            style => self.put(&[byte], at..at + 1, style),
        }
    }

    fn narrow(&mut self, bytes: &[u8], from: usize, style: Style, open: bool) {
        let mut style = style;
        let mut at = from;
        self.read = from;
        while let Some(byte) = bytes.get(at).copied() {
            let rest = bytes.get(at..).unwrap_or_default();
            if let Some(spread) = spread(rest, style, open) {
                let Known::Sure(gap) = spread else { return };
                match self.hidden_in_run(rest, at, gap, open) {
                    Known::Depends => return,
                    Known::Sure(0) => {}
                    Known::Sure(length) => {
                        at += length;
                        style = Style::Spread(gap);
                        self.pass(at, style);
                        continue;
                    }
                }
                self.put_byte(byte, at, Style::Spread(gap));
                style = Style::Spread(gap);
                self.read += gap;
                at += 1 + gap;
                continue;
            }
            let since = self.gap_before(at);
            let hidden = match style {
                // The last of a run is no more than itself.
                Style::Spread(_) => Known::Sure(0),
                // So much that nobody sees is there for something else.
                _ if since > APART => Known::Sure(0),
                _ => hidden(rest, self.text.last().copied(), open),
            };
            match hidden {
                Known::Depends => return,
                Known::Sure(0) => {
                    let of_run = style != Style::Plain && byte != 0;
                    self.put_byte(byte, at, if of_run { style } else { Style::Plain });
                    at += 1;
                }
                Known::Sure(length) => {
                    at += length;
                    self.pass(at, Style::Plain);
                }
            }
            style = Style::Plain;
        }
    }

    /// How many bytes of a run of spread characters nobody sees.
    fn hidden_in_run(&self, bytes: &[u8], at: usize, gap: usize, open: bool) -> Known {
        let since = self.gap_before(at);
        if !bytes.first().is_some_and(|first| may_lead(char::from(*first))) || since > APART {
            return Known::Sure(0);
        }
        let is_whole = |item: &&[u8]| !open || item.len() == 1 + gap;
        let item = bytes.chunks(1 + gap).take(SEQUENCE + 4).take_while(is_whole);
        let item = item.take_while(|item| item.iter().skip(1).all(|zero| *zero == 0));
        let text: String =
            item.filter_map(|item| item.first()).map(|byte| char::from(*byte)).collect();
        let is_cut = (text.chars().count() + 1) * (1 + gap) > bytes.len();
        match hidden(text.as_bytes(), self.text.last().copied(), open && is_cut) {
            Known::Sure(length) => {
                let count = text.get(..length).map_or(0, |text| text.chars().count());
                Known::Sure((count * (1 + gap)).min(bytes.len()))
            }
            Known::Depends => Known::Depends,
        }
    }

    /// How many bytes before a place are behind the last visible character.
    fn gap_before(&self, at: usize) -> usize {
        at - self.places.last().map_or(0, |(_, end)| *end).min(at)
    }

    fn wide(&mut self, bytes: &[u8], from: usize, unit: Unit, open: bool) {
        let style = Style::Wide(unit);
        self.styles.push((0, style));
        self.pass(from, style);
        let mut at = from;
        while let Some((shown, end)) = unit.character(bytes, at, open) {
            // Much that is invisible is shown, as in a narrow text.
            let is_shown = self.gap_before(at) > APART;
            let leads = may_lead(shown) && !is_shown;
            let next = |(_, end): &(char, usize)| unit.character(bytes, *end, open);
            let seen = core::iter::successors(Some((shown, end)), next);
            let seen: Vec<_> = seen.take(if leads { SEQUENCE + 4 } else { 1 }).collect();
            let text: String = seen.iter().map(|(c, _)| *c).collect();
            let hidden = match is_shown {
                true => Known::Sure(0),
                false => hidden(text.as_bytes(), self.text.last().copied(), open),
            };
            match hidden {
                Known::Depends => return,
                Known::Sure(0) => {
                    let mut buffer = [0; 4];
                    self.put(shown.encode_utf8(&mut buffer).as_bytes(), at..end, style);
                    at = end;
                }
                Known::Sure(length) => {
                    let count = text.get(..length).map_or(1, |text| text.chars().count());
                    at = seen.get(count - 1).map_or(end, |(_, end)| *end);
                    self.pass(at, style);
                }
            }
        }
        if !open {
            for (at, byte) in bytes.iter().enumerate().skip(at) {
                self.put_byte(*byte, at, Style::Plain);
            }
        }
    }
}

impl Unit {
    /// The unit at a place, if all of it is there.
    fn value(self, bytes: &[u8], at: usize) -> Option<u32> {
        let item = bytes.get(at..at + self.width)?;
        let join = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        Some(match self.high_first {
            true => item.iter().fold(0, join),
            false => item.iter().rev().fold(0, join),
        })
    }

    /// The character at a place and where it ends, if all of it is there.
    fn character(self, bytes: &[u8], at: usize, open: bool) -> Option<(char, usize)> {
        let first = self.value(bytes, at)?;
        let end = at + self.width;
        let whole = |value| char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
        if self.width == 2 && (0xd800..0xdc00).contains(&first) {
            match self.value(bytes, end) {
                None if open => return None,
                Some(second) if (0xdc00..0xe000).contains(&second) => {
                    let value = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    return Some((whole(value), end + self.width));
                }
                _ => {}
            }
        }
        Some((whole(first), end))
    }

    /// A text in such units.
    fn say(self, text: &str, out: &mut Vec<u8>) {
        let mut put = |value: u32| {
            let bytes = value.to_be_bytes();
            let item = bytes.get(4 - self.width..).unwrap_or_default();
            match self.high_first {
                true => out.extend(item),
                false => out.extend(item.iter().rev()),
            }
        };
        match self.width {
            2 => text.encode_utf16().for_each(|unit| put(u32::from(unit))),
            _ => text.chars().for_each(|c| put(u32::from(c))),
        }
    }
}

impl Style {
    /// A text that takes the place of characters that are said so.
    pub(super) fn say(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(text.as_bytes()),
            Self::Wide(unit) => unit.say(text, out),
            Self::Spread(gap) => {
                for (nth, c) in text.chars().enumerate() {
                    out.extend(core::iter::repeat_n(0, if nth > 0 { gap } else { 0 }));
                    out.push(u8::try_from(c).unwrap_or(b'?'));
                }
            }
        }
    }
}

/// What is known of bytes whose rest may not have come.
enum Known {
    Sure(usize),
    /// It depends on what comes.
    Depends,
}

/// How many zero bytes part the first byte from the next of a run; none where it is in no run, or the last.
fn spread(bytes: &[u8], before: Style, open: bool) -> Option<Known> {
    let [first, 0, ..] = bytes else { return None };
    let zeros = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte == 0).take(4).count();
    let gap = zeros(bytes.get(1..)?);
    let ends = 1 + gap == bytes.len();
    if *first == 0 || gap > 3 {
        return None;
    }
    if ends {
        return open.then_some(Known::Depends);
    }
    if !matches!(gap, 1 | 3) {
        return None;
    }
    if before == Style::Spread(gap) {
        return Some(Known::Sure(gap));
    }
    let mut at = 0;
    for _ in 1..RUN {
        let rest = bytes.get(at + 1..)?;
        match (zeros(rest), rest.get(gap)) {
            (number, Some(_)) if number == gap => at += 1 + gap,
            (number, None) if number == rest.len() && number <= gap && open => {
                return Some(Known::Depends);
            }
            _ => return None,
        }
    }
    Some(Known::Sure(gap))
}

/// Whether more than the character itself tells whether it is seen.
const fn may_lead(c: char) -> bool {
    matches!(c, '\u{8}' | '\u{e}' | '\u{f}' | '\u{1b}' | '\u{ad}')
}

/// How many of the first bytes nobody sees.
fn hidden(bytes: &[u8], before: Option<u8>, open: bool) -> Known {
    let waits = |is_there: bool| match (is_there, open) {
        (false, true) => Known::Depends,
        _ => Known::Sure(0),
    };
    match bytes {
        [0x0e | 0x0f, ..] => Known::Sure(1),
        // A letter that is struck twice is bold.
        [0x08] => waits(false),
        [0x08, again, ..] if before == Some(*again) => Known::Sure(2),
        [0x1b] => waits(false),
        [0x1b, b'[', sequence @ ..] => {
            let parameter = |byte: &&u8| (0x20..0x40).contains(*byte);
            let length = sequence.iter().take(SEQUENCE).take_while(parameter).count();
            match sequence.get(length) {
                Some(b'm' | b'K') => Known::Sure(length + 3),
                last => waits(last.is_some() || length == SEQUENCE),
            }
        }
        [0x1b, b'(' | b')'] => waits(false),
        [0x1b, b'(' | b')', _, ..] => Known::Sure(3),
        [first, ..] if LEADS.contains(first) => without_width(bytes, open),
        _ => Known::Sure(0),
    }
}

/// The same for a character that has no width.
fn without_width(bytes: &[u8], open: bool) -> Known {
    let beginning = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let chunk = beginning.utf8_chunks().next();
    match chunk.as_ref().and_then(|chunk| chunk.valid().chars().next()) {
        Some(c) if has_no_width(c) => Known::Sure(c.len_utf8()),
        Some(_) => Known::Sure(0),
        // It may be one whose end has not come.
        None => match core::str::from_utf8(beginning) {
            Err(error) if error.error_len().is_none() && open => Known::Depends,
            _ => Known::Sure(0),
        },
    }
}

const fn has_no_width(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}
