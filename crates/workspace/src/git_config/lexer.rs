//! Reads a configuration as git's own lexer does (`config.c`), which a test compares with git itself.

use super::Broken;

/// One setting of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The section, in small letters; nothing for what stands before the first one, which git reads and does
    /// not heed.
    pub section: String,
    /// What the section is about, if it says so.
    pub subsection: Option<Vec<u8>>,
    /// The key, in small letters.
    pub key: String,
    /// The value; none where the key stands alone.
    pub value: Option<Vec<u8>>,
}

impl Setting {
    /// Whether it is the one of a section and a key, both in small letters.
    #[must_use]
    pub fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.key == key && self.subsection.is_none()
    }
}

/// A section: its name, and what it is about.
type Section = (String, Option<Vec<u8>>);

/// The settings of a configuration, in their order.
///
/// # Errors
/// [`Broken`] where git would not read it, or could be read in two ways.
pub fn settings(text: &[u8]) -> Result<Vec<Setting>, Broken> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { text, at: 0, line: 1 };
    let (mut section, mut all) = (Section::default(), Vec::new());
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.comment(),
            b'[' => section = reader.section()?,
            byte if is_space(byte) => {}
            byte if byte.is_ascii_alphabetic() => {
                let (section, subsection) = section.clone();
                let (key, value) = reader.entry(byte)?;
                all.push(Setting { section, subsection, key, value });
            }
            _ => return Err(reader.broken()),
        }
    }
    Ok(all)
}

/// What git takes for space between things. A form feed is none: it is part of a value.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl Reader<'_> {
    /// The next byte; the end of a line is one, however it is written.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            return self.next();
        }
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    /// The next byte, or the end of a line at the end of the text.
    fn go_on(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    const fn broken(&self) -> Broken {
        Broken { line: self.line }
    }

    fn comment(&mut self) {
        while self.go_on() != b'\n' {}
    }

    /// The name of a section, with what it is about: in quotes, or in the manner of long ago behind a dot.
    fn section(&mut self) -> Result<Section, Broken> {
        let mut name = String::new();
        let quoted = loop {
            match self.next().ok_or_else(|| self.broken())? {
                b']' => break None,
                byte if is_space(byte) => break Some(self.subsection(byte)?),
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return Err(self.broken()),
            }
        };
        Ok(match (name.split_once('.'), quoted) {
            (None, None) if name.is_empty() => return Err(self.broken()),
            (None, quoted) => (name, quoted),
            (Some((section, old)), None) => (section.into(), Some(old.as_bytes().to_vec())),
            (Some((section, old)), Some(quoted)) => {
                (section.into(), Some([old.as_bytes(), &quoted].join(&b'.')))
            }
        })
    }

    fn subsection(&mut self, mut byte: u8) -> Result<Vec<u8>, Broken> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(self.broken());
            }
            byte = self.go_on();
        }
        if byte != b'"' {
            return Err(self.broken());
        }
        let mut name = Vec::new();
        loop {
            let byte = match self.go_on() {
                b'"' => break,
                b'\\' => self.go_on(),
                byte => byte,
            };
            // A name ends for git where a zero byte stands.
            if matches!(byte, b'\n' | 0) {
                return Err(self.broken());
            }
            name.push(byte);
        }
        if self.go_on() == b']' { Ok(name) } else { Err(self.broken()) }
    }

    /// A key, and its value if it has one.
    fn entry(&mut self, first: u8) -> Result<(String, Option<Vec<u8>>), Broken> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.go_on();
        while byte.is_ascii_alphanumeric() || byte == b'-' {
            key.push(char::from(byte.to_ascii_lowercase()));
            byte = self.go_on();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.go_on();
        }
        match byte {
            b'\n' => Ok((key, None)),
            b'=' => Ok((key, Some(self.value()?))),
            _ => Err(self.broken()),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Broken> {
        // How long it is without the space at its end, if it ends in some.
        let (mut value, mut quoted, mut kept) = (Vec::new(), false, None);
        loop {
            match self.go_on() {
                b'\n' if quoted => return Err(self.broken()),
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.comment();
                    break;
                }
                byte if is_space(byte) && !quoted => {
                    // Not at the beginning, and in the end only what stands before something.
                    if !value.is_empty() {
                        kept = kept.or(Some(value.len()));
                        value.push(byte);
                    }
                    continue;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.go_on() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(self.broken()),
                },
                // A value ends for git where a zero byte stands.
                0 => return Err(self.broken()),
                byte => value.push(byte),
            }
            kept = None;
        }
        value.truncate(kept.unwrap_or(value.len()));
        Ok(value)
    }
}
