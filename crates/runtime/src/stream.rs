//! Output that is shown while it is made: masked before anyone sees it, like what is recorded.

use capsule_core::redact::{Piece, Redactor};

/// How much is held back at most before it is shown in one piece. Longer than any credential.
const HELD: usize = 64 * 1024;
const KEY_BEGINS: &[u8] = b"-----BEGIN ";
const KEY_ENDS: &[u8] = b"PRIVATE KEY-----";

/// Masks a stream. A piece is shown once nothing behind it can change what it is: whole words, and
/// private keys whole.
#[derive(Clone, Debug)]
pub struct MaskedStream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl Default for MaskedStream {
    fn default() -> Self {
        Self { redactor: Redactor::builtin(), held: Vec::new() }
    }
}

impl MaskedStream {
    /// Takes more output; gives what can be shown.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let ready = match self.held.len() > HELD {
            true => self.held.len(),
            false => self.complete(),
        };
        let ready: Vec<u8> = self.held.drain(..ready).collect();
        let mut masked = 0;
        self.redactor.bytes(&ready, &mut masked).into_owned()
    }

    /// Gives what is left at the end of the stream. Where more followed that is not shown, what
    /// begins like a credential at the very end is masked as one.
    pub fn finish(&mut self, cut: bool) -> Vec<u8> {
        let rest = std::mem::take(&mut self.held);
        let mut masked = 0;
        self.redactor.piece(&Piece::beginning(rest, cut), &mut masked).into_owned()
    }

    /// How much of what is held is whole: up to the last blank, and not into a private key.
    fn complete(&self) -> usize {
        let blank = self.held.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        let whole = self.held.get(..blank).unwrap_or_default();
        match find_last(whole, KEY_BEGINS) {
            Some(begin) if !ends_behind(whole.get(begin..).unwrap_or_default()) => begin,
            _ => blank,
        }
    }
}

/// Whether a key that begins here also ends here: its frame stands twice.
fn ends_behind(text: &[u8]) -> bool {
    match text.windows(KEY_ENDS.len()).position(|window| window == KEY_ENDS) {
        Some(first) => find_last(text, KEY_ENDS).is_some_and(|last| last > first),
        // Not a private key, if its line is over.
        None => text.contains(&b'\n'),
    }
}

fn find_last(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).rposition(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, piece: usize) -> String {
        let mut stream = MaskedStream::default();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            out.extend(stream.push(piece));
        }
        out.extend(stream.finish(false));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pieces_are_masked_like_the_whole() {
        let token = format!("ghp_{}", "a".repeat(36));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----";
        let text = format!("one {token} two\n{key}\nthree -----BEGIN CERTIFICATE-----\nx\nend\n");
        let mut masked = 0;
        let whole = Redactor::builtin().text(&text, &mut masked).into_owned();
        assert_eq!(masked, 2);
        for piece in [1, 2, 3, 7, 64, 1000] {
            assert_eq!(shown(&text, piece), whole, "pieces of {piece}");
        }
    }
}
