//! Output that is shown while it is made: masked before anyone sees it, like what is recorded.

use capsule_redact::{MaskingStream, Redactor};

/// Masks a stream that somebody watches.
#[derive(Clone, Debug)]
pub struct MaskedStream(MaskingStream);

impl MaskedStream {
    /// Masks as a run does.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self(MaskingStream::new(redactor))
    }

    /// Takes more output; gives what can be shown.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.push(bytes, &mut out);
        out
    }

    /// Gives what is left at the end of the stream. Where more followed that is not shown, what
    /// begins like a credential at the very end is masked as one.
    pub fn finish(&mut self, cut: bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.finish(cut, &mut out);
        out
    }
}

impl Default for MaskedStream {
    fn default() -> Self {
        Self::new(Redactor::builtin())
    }
}

/// The same for text that comes in pieces.
#[derive(Clone, Debug)]
pub struct MaskedText {
    stream: MaskedStream,
    /// The beginning of a character whose end is held back.
    begun: Vec<u8>,
}

impl MaskedText {
    /// Masks as a run does.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { stream: MaskedStream::new(redactor), begun: Vec::new() }
    }

    /// Takes more text; gives what can be shown.
    pub fn push(&mut self, text: &str) -> String {
        let bytes = self.stream.push(text.as_bytes());
        self.begun.extend(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let shown = std::mem::replace(&mut self.begun, rest);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Gives what is left at the end, as [`MaskedStream::finish`] does.
    pub fn finish(&mut self, cut: bool) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend(self.stream.finish(cut));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_is_shown_at_once() {
        let mut stream = MaskedStream::default();
        assert_eq!(stream.push(b"one line\nPassword: "), b"one line\nPassword:");
        assert_eq!(stream.push(b"hunter"), b"");
        let shown = stream.push(b"2hunter2\ntwo\n");
        assert_eq!(String::from_utf8_lossy(&shown), " \u{ab}password:setting:14\u{bb}\ntwo\n");
        assert_eq!(stream.push(b"half a wo"), b"half a ");
        assert_eq!(stream.finish(false), b"wo");
    }

    #[test]
    fn pieces_are_masked_like_the_whole() {
        let token = format!("ghp_{}", "a".repeat(36));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0000\nabcd\n-----END RSA PRIVATE KEY-----";
        let text = format!("one {token} two\n{key}\nthree -----BEGIN CERTIFICATE-----\nx\nend\n");
        let mut masked = 0;
        let whole = Redactor::builtin().text(&text, &mut masked).into_owned();
        assert_eq!(masked, 2);
        for piece in [1, 2, 3, 7, 64, 1000] {
            let mut stream = MaskedStream::default();
            let mut out = Vec::new();
            for piece in text.as_bytes().chunks(piece) {
                out.extend(stream.push(piece));
            }
            out.extend(stream.finish(false));
            assert_eq!(String::from_utf8_lossy(&out), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn pieces_of_text_are_whole_characters() {
        let token = format!("ghp_{}", "a".repeat(36));
        let text = format!("größer – {token} «ß» 日本語 ende");
        let mut masked = 0;
        let whole = Redactor::builtin().text(&text, &mut masked).into_owned();
        for size in [1, 2, 5, 100] {
            let mut stream = MaskedText::new(Redactor::builtin());
            let characters: Vec<char> = text.chars().collect();
            let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
            let mut shown: String = pieces.map(|piece| stream.push(&piece)).collect();
            shown.push_str(&stream.finish(false));
            assert_eq!(shown, whole, "pieces of {size}");
        }
    }
}
