//! SHA-256 digests, written as lower-case hexadecimal.
//!
//! SHA-256 and no faster hash, so that a stranger can check every digest with the tools that any
//! system has.

use alloc::string::String;
use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of everything that is read, until nothing more comes.
    ///
    /// # Errors
    /// The reader's.
    pub fn of_reader<E>(mut read: impl FnMut(&mut [u8]) -> Result<usize, E>) -> Result<Self, E> {
        let mut hasher = Sha256::new();
        let mut buffer = alloc::vec![0; 1 << 16];
        loop {
            let length = read(&mut buffer)?;
            match buffer.get(..length) {
                Some(bytes) if !bytes.is_empty() => hasher.update(bytes),
                _ => return Ok(Self(hasher.finalize().into())),
            }
        }
    }

    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_parts(&[bytes])
    }

    /// The digest of several byte strings, one after the other.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// HMAC-SHA-256 of some bytes under a key (RFC 2104).
    #[must_use]
    pub fn hmac(key: &[u8; 32], bytes: &[u8]) -> Self {
        // RFC 2104 pads a key that is shorter than the hash's block of 64 bytes with zeros.
        let block: [u8; 64] = core::array::from_fn(|at| key.get(at).copied().unwrap_or(0));
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(bytes);
        Self(mac.finalize().into_bytes().into())
    }

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0u8; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The first six digits and the last two, for a line on a screen.
    #[must_use]
    pub fn short(&self) -> String {
        let text = alloc::format!("{self}");
        let (head, tail) = (text.get(..6).unwrap_or(""), text.get(62..).unwrap_or(""));
        alloc::format!("{head}…{tail}")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // At once: an event has a dozen of them.
        let halves = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
        let mut digits = [0; 64];
        for (digit, half) in digits.iter_mut().zip(halves) {
            *digit = if half < 10 { b'0' + half } else { b'a' + (half - 10) };
        }
        f.write_str(core::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| de::Error::custom("not a SHA-256 digest"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_vectors() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(alloc::format!("{}", Digest::of(b"")), empty);
        assert_eq!(Digest::from_hex(empty), Some(Digest::of(b"")));
        // RFC 4231, test case 2 has a 4-byte key; ours are 32 bytes, zero-padded like any short key.
        let mut key = [0u8; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = Digest::hmac(&key, b"what do ya want for nothing?");
        assert_eq!(
            alloc::format!("{mac}"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn refuses_what_is_not_hex() {
        for text in ["", "e3", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Digest::from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn pieces_make_the_whole() {
        let mut pieces = [&b"ab"[..], b"c"].into_iter();
        let made = Digest::of_reader(|buffer| {
            let piece = pieces.next().unwrap_or_default();
            buffer[..piece.len()].copy_from_slice(piece);
            Ok::<_, ()>(piece.len())
        });
        assert_eq!(made, Ok(Digest::of(b"abc")));
        assert_eq!(Digest::of_reader(|_| Err("torn")), Err("torn"));
    }
}
