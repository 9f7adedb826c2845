//! What a terminal sends, as keys. What arrives together stays together: it was not typed by one
//! finger.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// The character before the cursor goes.
    Backspace,
    /// The character behind the cursor goes.
    Delete,
    /// An arrow or its like.
    Move(Motion),
    /// Ctrl+C.
    Interrupt,
    /// Ctrl+D: the end of input.
    End,
    /// Any other.
    Other,
}

/// Where a key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// A line or a character.
    Up,
    Down,
    Left,
    Right,
    /// A page.
    PageUp,
    PageDown,
    /// The beginning and the end.
    First,
    Last,
}

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TerminalInput {
    /// Keys that arrived at once.
    Keys(Vec<Key>),
    /// A text that was pasted.
    Paste(String),
    /// The window has another size.
    Resized,
    /// Nothing, for a while.
    Nothing,
    /// The terminal is gone.
    Disconnected,
}

const PASTE_END: &[u8] = b"\x1b[201~";
/// The longest paste that is kept; the rest of it is dropped.
const MAX_PASTE_BYTES: usize = 64 << 10;

/// Reads keys out of bytes.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a key.
    partial: Vec<u8>,
    /// What is being pasted.
    paste: Option<Vec<u8>>,
}

/// What stands at the beginning of bytes.
enum ParsedKey {
    Key(Key, usize),
    PasteBegins(usize),
    Unfinished,
}

impl Decoder {
    /// Takes what was read at once.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<TerminalInput> {
        let mut bytes = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
        let (mut inputs, mut keys) = (Vec::new(), Vec::new());
        while !bytes.is_empty() {
            if let Some(paste) = &mut self.paste {
                paste.append(&mut bytes);
                let end = paste.windows(PASTE_END.len()).position(|item| item == PASTE_END);
                let Some(end) = end else {
                    // The end may have begun already.
                    if paste.len() > MAX_PASTE_BYTES {
                        let tail = paste.split_off(paste.len() - PASTE_END.len());
                        paste.truncate(MAX_PASTE_BYTES - PASTE_END.len());
                        paste.extend(tail);
                    }
                    break;
                };
                bytes = paste.split_off(end).split_off(PASTE_END.len());
                let text = String::from_utf8_lossy(paste).into_owned();
                inputs.push(TerminalInput::Paste(text));
                self.paste = None;
                continue;
            }
            match parse_first(&bytes) {
                ParsedKey::Key(key, used) => {
                    keys.push(key);
                    bytes.drain(..used.min(bytes.len()));
                }
                ParsedKey::PasteBegins(used) => {
                    self.paste = Some(Vec::new());
                    bytes.drain(..used.min(bytes.len()));
                }
                ParsedKey::Unfinished => self.partial = std::mem::take(&mut bytes),
            }
        }
        if !keys.is_empty() {
            // Something behind them has begun: they came with it.
            if !self.partial.is_empty() || self.paste.is_some() {
                keys.push(Key::Other);
            }
            inputs.insert(0, TerminalInput::Keys(keys));
        }
        inputs
    }

    /// Nothing more came: what has begun was a key by itself.
    pub(crate) fn flush(&mut self) -> Option<TerminalInput> {
        let held = std::mem::take(&mut self.partial);
        match held.as_slice() {
            [] => None,
            [0x1b] => Some(TerminalInput::Keys(vec![Key::Escape])),
            _ => Some(TerminalInput::Keys(vec![Key::Other])),
        }
    }
}

fn parse_first(bytes: &[u8]) -> ParsedKey {
    match bytes {
        [0x1b] | [0x1b, b'[' | b'O'] => ParsedKey::Unfinished,
        [0x1b, b'[', rest @ ..] => parse_sequence(rest),
        [0x1b, b'O', last, ..] => ParsedKey::Key(arrow_key(*last), 3),
        // A key with Alt.
        [0x1b, _, ..] => ParsedKey::Key(Key::Other, 2),
        [byte, ..] if byte.is_ascii() => ParsedKey::Key(control_key(*byte), 1),
        _ => parse_character(bytes),
    }
}

/// The longest sequence that a key sends; a longer one is none.
const MAX_SEQUENCE_BYTES: usize = 32;

fn parse_sequence(rest: &[u8]) -> ParsedKey {
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        let is_long = rest.len() > MAX_SEQUENCE_BYTES;
        return if is_long {
            ParsedKey::Key(Key::Other, rest.len() + 2)
        } else {
            ParsedKey::Unfinished
        };
    };
    let used = end + 3;
    let key = match (rest.get(..end), rest.get(end)) {
        (Some(b"200"), Some(b'~')) => return ParsedKey::PasteBegins(used),
        (Some(b"1" | b"7"), Some(b'~')) => Key::Move(Motion::First),
        (Some(b"4" | b"8"), Some(b'~')) => Key::Move(Motion::Last),
        (Some(b"3"), Some(b'~')) => Key::Delete,
        (Some(b"5"), Some(b'~')) => Key::Move(Motion::PageUp),
        (Some(b"6"), Some(b'~')) => Key::Move(Motion::PageDown),
        (Some(b""), Some(last)) => arrow_key(*last),
        _ => Key::Other,
    };
    ParsedKey::Key(key, used)
}

const fn arrow_key(last: u8) -> Key {
    Key::Move(match last {
        b'A' => Motion::Up,
        b'B' => Motion::Down,
        b'C' => Motion::Right,
        b'D' => Motion::Left,
        b'H' => Motion::First,
        b'F' => Motion::Last,
        _ => return Key::Other,
    })
}

const fn control_key(byte: u8) -> Key {
    match byte {
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Backspace,
        0x03 => Key::Interrupt,
        0x04 => Key::End,
        0x20..=0x7e => Key::Char(byte as char),
        _ => Key::Other,
    }
}

fn parse_character(bytes: &[u8]) -> ParsedKey {
    let most = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let (valid, error) = match std::str::from_utf8(most) {
        Ok(text) => (text, None),
        Err(error) => {
            let valid = most.get(..error.valid_up_to()).unwrap_or_default();
            (std::str::from_utf8(valid).unwrap_or_default(), Some(error.error_len()))
        }
    };
    match (valid.chars().next(), error) {
        (Some(c), _) => ParsedKey::Key(Key::Char(c), c.len_utf8()),
        (None, Some(None)) => ParsedKey::Unfinished,
        (None, error) => ParsedKey::Key(Key::Other, error.flatten().unwrap_or(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_bytes() {
        let rows: [(&[u8], &[Key]); 10] = [
            (b"1", &[Key::Char('1')]),
            (b"1\r", &[Key::Char('1'), Key::Enter]),
            (b"\x1b[A", &[Key::Move(Motion::Up)]),
            (b"\x1bOB", &[Key::Move(Motion::Down)]),
            (b"\x1b[6~", &[Key::Move(Motion::PageDown)]),
            (b"\x1b[1;5C", &[Key::Other]),
            (b"\x1bx", &[Key::Other]),
            ("ü".as_bytes(), &[Key::Char('ü')]),
            (b"\xff", &[Key::Other]),
            (b"\x03\x04\x7f\x1a", &[Key::Interrupt, Key::End, Key::Backspace, Key::Other]),
        ];
        for (bytes, keys) in rows {
            let got = Decoder::default().push(bytes);
            assert_eq!(got, [TerminalInput::Keys(keys.to_vec())], "{bytes:?}");
        }
    }

    #[test]
    fn a_key_may_come_in_pieces() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert_eq!(decoder.push(b"[B"), [TerminalInput::Keys(vec![Key::Move(Motion::Down)])]);
        assert_eq!(decoder.push(b"\x1b"), []);
        assert_eq!(decoder.flush(), Some(TerminalInput::Keys(vec![Key::Escape])));
        assert_eq!(decoder.push(b"\xc3"), []);
        assert_eq!(decoder.push(b"\xbc"), [TerminalInput::Keys(vec![Key::Char('ü')])]);
    }

    /// However a paste is cut, no digit of it is ever a key.
    #[test]
    fn a_paste_is_no_key() {
        let pasted = b"\x1b[200~1\n1\x1b[20x1\x1b[201~";
        for cut in 1..pasted.len() {
            let mut decoder = Decoder::default();
            let mut inputs = Vec::new();
            for piece in pasted.chunks(cut) {
                inputs.extend(decoder.push(piece));
            }
            assert_eq!(inputs, [TerminalInput::Paste("1\n1\u{1b}[20x1".into())], "cut at {cut}");
            assert_eq!(decoder.push(b"4"), [TerminalInput::Keys(vec![Key::Char('4')])]);
        }
    }
}
