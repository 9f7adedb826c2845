//! How the bytes of a file say its text, and how to say another text likewise.

/// How a file's bytes say its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 behind a byte order mark.
    Utf8Bom,
    /// UTF-16, the low byte first, behind a byte order mark.
    Utf16Le,
    /// UTF-16, the high byte first, behind a byte order mark.
    Utf16Be,
    /// Latin-1: one byte, one character.
    Latin1,
}

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const UTF16_LE_BOM: &[u8] = b"\xff\xfe";
const UTF16_BE_BOM: &[u8] = b"\xfe\xff";

impl TextEncoding {
    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf8Bom => "utf-8-bom",
            Self::Utf16Le => "utf-16le",
            Self::Utf16Be => "utf-16be",
            Self::Latin1 => "latin-1",
        }
    }

    /// What wide characters a file is in whose first bytes these are.
    pub fn from_wide_bom(mark: &[u8]) -> Option<Self> {
        match mark {
            [0xff, 0xfe, ..] => Some(Self::Utf16Le),
            [0xfe, 0xff, ..] => Some(Self::Utf16Be),
            _ => None,
        }
    }

    /// The text of a part of such a file that begins and ends between two units, with a sign in place of
    /// every unit that is no character; and whether there was one of these. Not of single bytes.
    pub fn decode_part(self, bytes: &[u8]) -> (String, bool) {
        let mut broken = false;
        let text = char::decode_utf16(self.units(bytes)).map(|c| {
            c.unwrap_or_else(|_| {
                broken = true;
                char::REPLACEMENT_CHARACTER
            })
        });
        let text = text.collect();
        (text, broken)
    }

    /// Whether what stands here goes on with the character before it.
    pub fn continues_character(self, bytes: &[u8]) -> bool {
        self.units(bytes).next().is_some_and(|unit| (0xdc00..0xe000).contains(&unit))
    }

    fn units(self, bytes: &[u8]) -> impl Iterator<Item = u16> {
        let unit = match self {
            Self::Utf16Be => u16::from_be_bytes,
            _ => u16::from_le_bytes,
        };
        bytes.as_chunks::<2>().0.iter().copied().map(unit)
    }

    /// The bytes of a text; none where one of its characters cannot be said.
    fn encode(self, text: &str) -> Option<Vec<u8>> {
        let units = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
            mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
        };
        match self {
            Self::Utf8 => Some(text.as_bytes().to_vec()),
            Self::Utf8Bom => Some([UTF8_BOM, text.as_bytes()].concat()),
            Self::Utf16Le => Some(units(UTF16_LE_BOM, u16::to_le_bytes)),
            Self::Utf16Be => Some(units(UTF16_BE_BOM, u16::to_be_bytes)),
            Self::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect(),
        }
    }
}

/// The text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedText {
    /// The text, as UTF-8.
    pub text: String,
    /// How the bytes encode it.
    pub encoding: TextEncoding,
    /// Whether only ASCII may be added: some of the bytes are UTF-8 and some are not, so nobody
    /// knows how another character would be said.
    ascii_only: bool,
}

impl DecodedText {
    /// The text of these bytes; none if they are no text.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let known = |text: String, encoding| Self { text, encoding, ascii_only: false };
        let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
            rest.is_empty().then(|| String::from_utf16(&units).ok()).flatten()
        };
        let decoded = if let Some(bytes) = bytes.strip_prefix(UTF8_BOM) {
            known(String::from_utf8(bytes.to_vec()).ok()?, TextEncoding::Utf8Bom)
        } else if let Some(bytes) = bytes.strip_prefix(UTF16_LE_BOM) {
            known(units(bytes, u16::from_le_bytes)?, TextEncoding::Utf16Le)
        } else if let Some(bytes) = bytes.strip_prefix(UTF16_BE_BOM) {
            known(units(bytes, u16::from_be_bytes)?, TextEncoding::Utf16Be)
        } else if let Ok(text) = str::from_utf8(bytes) {
            known(text.to_owned(), TextEncoding::Utf8)
        } else {
            let valid = bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii());
            // A control character that no text has, where nothing else vouches for the bytes.
            if bytes.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127)) {
                return None;
            }
            let text = bytes.iter().copied().map(char::from).collect();
            Self { text, encoding: TextEncoding::Latin1, ascii_only: valid }
        };
        (!decoded.text.contains('\0')).then_some(decoded)
    }

    /// The bytes of another text instead of this one, into which `added` was put; none where they
    /// would not be read as that text again.
    pub fn encode(&self, text: &str, added: &str) -> Option<Vec<u8>> {
        if self.ascii_only && !added.is_ascii() {
            return None;
        }
        let bytes = self.encoding.encode(text)?;
        let is_same = match Self::decode(&bytes) {
            // What is ASCII by now is the same in either.
            Some(again) => {
                again.text == text && (again.encoding == self.encoding || text.is_ascii())
            }
            None => false,
        };
        is_same.then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written() {
        let wide = |mark: &[u8], unit: fn(u16) -> [u8; 2]| {
            mark.iter().copied().chain("aé😀\n".encode_utf16().flat_map(unit)).collect::<Vec<u8>>()
        };
        for (bytes, encoding) in [
            ("aé😀\n".as_bytes().to_vec(), TextEncoding::Utf8),
            (Vec::new(), TextEncoding::Utf8),
            ("\u{feff}aé".as_bytes().to_vec(), TextEncoding::Utf8Bom),
            (wide(UTF16_LE_BOM, u16::to_le_bytes), TextEncoding::Utf16Le),
            (wide(UTF16_BE_BOM, u16::to_be_bytes), TextEncoding::Utf16Be),
            (b"caf\xe9\r\n".to_vec(), TextEncoding::Latin1),
        ] {
            let read = DecodedText::decode(&bytes).unwrap();
            assert_eq!(read.encoding, encoding);
            assert_eq!(read.encode(&read.text, "").unwrap(), bytes);
        }
        for binary in [
            &b"a\0b"[..],
            b"\xff\xfea",
            b"\xff\xfe\0\0a\0\0\0",
            b"\xff\xfe\x00\xd8",
            b"\x89PNG\x1a\xff",
        ] {
            assert_eq!(DecodedText::decode(binary), None, "{binary:?}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_not_written() {
        let latin = DecodedText::decode(b"caf\xe9").unwrap();
        assert_eq!(latin.encode("caf\u{e8}", "\u{e8}").unwrap(), b"caf\xe8");
        assert_eq!(latin.encode("caf", "").unwrap(), b"caf");
        assert_eq!(latin.encode("caf€", "€"), None);
        // These bytes would be read as another character.
        assert_eq!(latin.encode("caf\u{c3}\u{a9}", "\u{c3}\u{a9}"), None);
        let mixed = DecodedText::decode(b"caf\xe9 caf\xc3\xa9").unwrap();
        assert_eq!(mixed.encode("\u{e9}", "\u{e9}"), None);
        assert_eq!(mixed.encode("x\u{e9}", "x").unwrap(), b"x\xe9");
        let plain = DecodedText::decode(b"abc").unwrap();
        assert_eq!(plain.encode("a\0b", "\0"), None);
        assert_eq!(plain.encode("\u{feff}abc", "\u{feff}"), None);
    }
}
