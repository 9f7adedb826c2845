//! Names of git objects: digests of their content, of one of the two formats that git has.

use std::fmt;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The longest name of an object.
const LONGEST: usize = 32;

/// The digest by which a repository names its objects (`extensions.objectFormat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Sha1,
    Sha256,
}

impl Format {
    /// How many bytes a name has.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => LONGEST,
        }
    }

    /// The digest of some byte strings, one after the other.
    pub(super) fn digest(self, parts: &[&[u8]]) -> ObjectId {
        let mut hasher = Hasher::new(self);
        parts.iter().for_each(|part| hasher.update(part));
        hasher.finish()
    }
}

/// Computes a digest of a repository's format.
pub(super) enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    pub(super) fn new(format: Format) -> Self {
        match format {
            Format::Sha1 => Self::Sha1(Sha1::new()),
            Format::Sha256 => Self::Sha256(Sha256::new()),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(sha1) => sha1.update(bytes),
            Self::Sha256(sha256) => sha256.update(bytes),
        }
    }

    pub(super) fn finish(self) -> ObjectId {
        match self {
            Self::Sha1(sha1) => ObjectId::filled(&sha1.finalize()),
            Self::Sha256(sha256) => ObjectId::filled(&sha256.finalize()),
        }
    }
}

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId {
    bytes: [u8; LONGEST],
    length: usize,
}

impl ObjectId {
    fn filled(name: &[u8]) -> Self {
        let mut bytes = [0; LONGEST];
        for (to, from) in bytes.iter_mut().zip(name) {
            *to = *from;
        }
        Self { bytes, length: name.len().min(LONGEST) }
    }

    /// A name out of its bytes; none where there are more or fewer.
    pub(super) fn from_bytes(format: Format, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == format.bytes()).then(|| Self::filled(bytes))
    }

    /// A name out of hexadecimal digits, as git reads them.
    pub(super) fn from_hex(format: Format, text: &[u8]) -> Option<Self> {
        if text.len() != format.bytes() * 2 {
            return None;
        }
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|number| u8::try_from(number).ok());
        let bytes: Option<Vec<u8>> = text
            .chunks_exact(2)
            .map(|pair| match pair {
                [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                _ => None,
            })
            .collect();
        Self::from_bytes(format, &bytes?)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Whether it is the name that stands for no object.
    pub(super) fn is_null(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_digest_of_the_content() {
        // `git hash-object -t blob /dev/null`, in both formats.
        let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        assert_eq!(Format::Sha1.digest(&[b"blob 0", b"\0"]).to_string(), empty);
        let long = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813";
        assert_eq!(Format::Sha256.digest(&[b"blob 0\0"]).to_string(), long);
        let read = |text: &str| ObjectId::from_hex(Format::Sha1, text.as_bytes());
        assert_eq!(read(empty), read(&empty.to_uppercase()));
        assert_eq!(
            [read(&empty.replace("e69", "69")), read(long), read(&empty.replace('e', "g"))],
            [None; 3]
        );
        assert!(read(&"0".repeat(40)).unwrap().is_null() && !read(empty).unwrap().is_null());
    }
}
