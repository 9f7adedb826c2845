//! Names that the runtime gives: runs.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Crockford's base 32: no letter that is taken for a digit.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The name of a run: 80 random bits, written `r-` and sixteen characters of base 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 10]);

impl RunId {
    /// The id made of these random bits.
    #[must_use]
    pub const fn from_bits(bits: [u8; 10]) -> Self {
        Self(bits)
    }

    /// Reads the full form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("r-")?;
        if digits.len() != 16 {
            return None;
        }
        let mut value: u128 = 0;
        for digit in digits.bytes() {
            let index = ALPHABET.iter().position(|letter| *letter == digit)?;
            value = value << 5 | u128::try_from(index).ok()?;
        }
        let bytes = value.to_be_bytes();
        Some(Self(bytes.get(6..)?.try_into().ok()?))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut wide = [0u8; 16];
        for (to, from) in wide.iter_mut().skip(6).zip(self.0) {
            *to = from;
        }
        let value = u128::from_be_bytes(wide);
        f.write_str("r-")?;
        for place in (0..16u32).rev() {
            let digit = usize::try_from(value >> (place * 5) & 31).unwrap_or(0);
            let letter = ALPHABET.get(digit).copied().unwrap_or(b'0');
            fmt::Write::write_char(f, char::from(letter))?;
        }
        Ok(())
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not a run id"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn ids_read_back() {
        for bits in [[0u8; 10], [255; 10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]] {
            let id = RunId::from_bits(bits);
            assert_eq!(RunId::parse(&id.to_string()), Some(id));
        }
        assert_eq!(RunId::from_bits([255; 10]).to_string(), "r-ZZZZZZZZZZZZZZZZ");
        assert_eq!(RunId::parse("r-UUUUUUUUUUUUUUUU"), None);
    }
}
