//! A value that is used and never shown.

use alloc::string::{String, ToString};
use core::fmt;

use zeroize::Zeroizing;

use crate::limits;

/// A secret by its name. It prints as its name, it cannot be serialised, and its memory is wiped when
/// it goes.
#[derive(Clone)]
pub struct Secret {
    name: String,
    value: Zeroizing<String>,
}

impl Secret {
    /// A secret; none if the value is too short to be told from other text, or cannot be sent.
    #[must_use]
    pub fn new(name: &str, value: Zeroizing<String>) -> Option<Self> {
        let sendable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let fits = value.len() >= limits::SECRET_BYTES_MIN
            && value.len() <= limits::SECRET_BYTES_MAX
            && value.trim() == value.as_str()
            && value.bytes().all(sendable);
        fits.then(|| Self { name: name.to_string(), value })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value, for whoever sends it where the policy says.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "«secret:{}»", self.name)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    static_assertions::assert_not_impl_any!(Secret: serde::Serialize, fmt::Display, PartialEq);

    #[test]
    fn a_secret_prints_as_its_name() {
        let secret = Secret::new("TOKEN", Zeroizing::new("correct-horse".into())).unwrap();
        assert_eq!(format!("{secret:?}"), "«secret:TOKEN»");
        for wrong in ["short", "", " leading-blank", "with\nnewline-inside", "päss-wörd-long"] {
            assert!(Secret::new("X", Zeroizing::new(wrong.into())).is_none(), "{wrong}");
        }
    }
}
