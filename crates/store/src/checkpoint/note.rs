//! Signed notes (C2SP signed-note): a text, and below it who signed it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_base::limits;

use crate::checkpoint::{Checkpoint, Verifier};

/// The bytes of a key's number.
pub(super) const ID_BYTES: usize = 4;

/// A text with its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    pub(super) text: String,
    pub(super) signatures: Vec<Signature>,
}

/// Who signed, and how: a name and a number say which key and which algorithm it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) name: String,
    pub(super) id: [u8; ID_BYTES],
    pub(super) bytes: Vec<u8>,
}

/// What a key says of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// It signed the note.
    Valid,
    /// A signature is said to be its, and is not.
    Invalid,
    /// It did not sign it.
    Absent,
}

impl SignedNote {
    /// Reads a note. What is read is not believed: see [`SignedNote::verify`].
    #[must_use]
    pub fn parse(note: &str) -> Option<Self> {
        let is_plain = |letter: char| letter == '\n' || letter >= ' ';
        if note.len() > limits::NOTE_BYTES || !note.chars().all(is_plain) {
            return None;
        }
        // The last empty line divides; what is signed ends with the line before it.
        let divide = note.rfind("\n\n")? + 1;
        let (text, below) = (note.get(..divide)?, note.get(divide + 1..)?);
        let signatures: Option<Vec<_>> =
            below.strip_suffix('\n')?.split('\n').map(Signature::parse).collect();
        Some(Self { text: text.to_owned(), signatures: signatures? })
    }

    /// The checkpoint that its text is, if it is one.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        Checkpoint::parse(&self.text)
    }

    /// Whether a key signed it.
    #[must_use]
    pub fn verify(&self, key: &Verifier) -> SignatureCheck {
        let item =
            |signature: &&Signature| signature.name == key.name() && signature.id == key.key_id();
        let mut signatures = self.signatures.iter().filter(item).peekable();
        if signatures.peek().is_none() {
            return SignatureCheck::Absent;
        }
        match signatures.all(|signature| key.has_signed(self.text.as_bytes(), &signature.bytes)) {
            true => SignatureCheck::Valid,
            false => SignatureCheck::Invalid,
        }
    }

    /// The names of those who are said to have signed it.
    pub fn signer_names(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(|signature| signature.name.as_str())
    }
}

impl Signature {
    fn parse(line: &str) -> Option<Self> {
        let (name, bytes) = line.strip_prefix("— ")?.split_once(' ')?;
        let bytes = STANDARD.decode(bytes).ok()?;
        let (id, bytes) = bytes.split_first_chunk::<ID_BYTES>()?;
        let is_signature = is_note_key_name(name) && !bytes.is_empty();
        is_signature.then(|| Self { name: name.to_owned(), id: *id, bytes: bytes.to_vec() })
    }
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|Signature { name, id, bytes }| {
            let signed = STANDARD.encode([id.as_slice(), bytes].concat());
            writeln!(f, "— {name} {signed}")
        })
    }
}

/// Whether a key can have that name.
pub(super) fn is_note_key_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter == '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty line in the text, more than ASCII, and bytes of nobody's signature.
    const NOTE: &str = "\
a first line

ünd a last one

— acme/läptop-3 AAECAwQFBgc=
";

    #[test]
    fn notes_read_back_as_they_are() {
        let note = SignedNote::parse(NOTE).unwrap();
        assert_eq!(note.to_string(), NOTE);
        assert_eq!(note.text, "a first line\n\nünd a last one\n");
        assert_eq!(note.signer_names().collect::<Vec<_>>(), ["acme/läptop-3"]);
        assert_eq!(note.signatures[0].id, [0, 1, 2, 3]);
        assert_eq!(note.signatures[0].bytes, [4, 5, 6, 7]);
        assert_eq!(note.checkpoint(), None);
        let two = format!("{NOTE}— b CAECAwQF\n");
        assert_eq!(SignedNote::parse(&two).unwrap().to_string(), two);
    }

    #[test]
    fn what_is_no_note_is_not_read() {
        let text = NOTE.split_once('—').unwrap().0;
        for other in [
            String::new(),
            "\n\n".into(),
            text.to_owned(),
            NOTE.trim_end().to_owned(),
            format!("{NOTE}\n"),
            NOTE.replace("— a", "- a"),
            NOTE.replace("-3 ", "-3  "),
            NOTE.replace("-3 ", "-3"),
            NOTE.replace("acme", "ac+me"),
            NOTE.replace("Bgc=", "Bgc"),
            NOTE.replace("Bgc=", "Bgd="),
            NOTE.replace("AAECAwQFBgc=", "AAE="),
            NOTE.replace("AAECAwQFBgc=", "AAECAw=="),
            NOTE.replace("first line", "first\tline"),
            format!("{}{NOTE}", "x".repeat(limits::NOTE_BYTES)),
        ] {
            assert_eq!(SignedNote::parse(&other), None, "{other:?}");
        }
    }
}
