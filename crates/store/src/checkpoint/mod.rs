//! Signed checkpoints: what the log was at one moment, for those who were not there.
//!
//! A checkpoint says of a log, which its origin names, how many leaves its tree had and what its root was
//! (C2SP tlog-checkpoint). It is the text of a note that the log's key signs (C2SP signed-note), the note
//! is the newest leaf of the tree, and anchors are other files that hold it besides.

mod anchor;
mod key;
mod note;
mod signing;
mod trust;

pub use anchor::{Anchor, WitnessedCheckpoints};
pub use key::{Signer, Verifier, is_key_name, is_origin, read_keys};
pub use note::{SignatureCheck, SignedNote};
pub use signing::SigningSchedule;
pub(crate) use trust::AttestationCheck;
pub use trust::{AnchorReport, AttestationReport, TrustRoots};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_base::digest::Digest;

/// What a log was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log, by a name that no other log has.
    pub origin: String,
    /// The leaves of its tree.
    pub size: u64,
    /// The tree's root.
    pub root: Digest,
}

impl Checkpoint {
    /// The text that is signed: three lines.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root.0))
    }

    /// The same in one line, for whoever notes it down by hand.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} {} {}", self.origin, self.size, STANDARD.encode(self.root.0))
    }

    /// Reads the text. Lines that may follow the three are somebody's own.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        // The text ends with its last line.
        lines.next()?;
        Self::of(origin, size, root)
    }

    /// The checkpoint that these three words are, if they are one.
    fn of(origin: &str, size: &str, root: &str) -> Option<Self> {
        let number: u64 = size.parse().ok()?;
        // Neither zeros in front nor a sign: there is one way to write it.
        let is_plain = number.to_string() == size && !origin.is_empty();
        let root = STANDARD.decode(root).ok()?.try_into().ok()?;
        is_plain.then(|| Self { origin: origin.to_owned(), size: number, root: Digest(root) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way_to_write_a_checkpoint() {
        let checkpoint =
            Checkpoint { origin: "acme/laptop-3".into(), size: 1_204, root: Digest::of(b"x") };
        let text = checkpoint.text();
        assert_eq!(Checkpoint::parse(&text), Some(checkpoint.clone()));
        assert_eq!(Checkpoint::parse(&format!("{text}an extension\n")), Some(checkpoint));
        for (old, new) in [
            ("1204", "01204"),
            ("1204", "+1204"),
            ("1204", "-1"),
            ("1204", "99999999999999999999"),
            ("=\n", "\n"),
            ("=\n", "="),
            ("\n1204\n", "\n"),
            ("acme/laptop-3", ""),
        ] {
            let other = text.replace(old, new);
            assert_ne!(other, text);
            assert_eq!(Checkpoint::parse(&other), None, "{other:?}");
        }
    }
}
