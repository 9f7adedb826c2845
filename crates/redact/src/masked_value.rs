//! How a value looks in which masks of ours may stand.

use alloc::vec::Vec;

use crate::matches::labelled_masks;
use crate::value::{ValueLook, classify_letters, has_fillers, is_unmasked_placeholder};

/// How a value looks.
pub(super) fn classify(value: &[u8]) -> ValueLook {
    if is_placeholder(value) { ValueLook::Placeholder } else { classify_letters(value) }
}

/// Whether a value stands for another one.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    is_unmasked_placeholder(value) || is_covered(value) || is_quoted_placeholder(value)
}

/// Whether a value has stars and dots in place of letters, or masks of ours.
pub(super) fn is_masked(value: &[u8]) -> bool {
    has_fillers(value) || is_covered(value) || is_quoted_placeholder(value)
}

/// Whether masks cover all of a value that could be a secret.
fn is_covered(value: &[u8]) -> bool {
    let (mut rest, mut at) = (Vec::new(), 0);
    for (range, _) in labelled_masks(value).filter(|(_, label)| label.is_name()) {
        rest.extend_from_slice(value.get(at..range.start).unwrap_or_default());
        at = range.end;
    }
    if at == 0 {
        return false;
    }
    rest.extend_from_slice(value.get(at..).unwrap_or_default());
    rest.is_empty() || classify(&rest) < ValueLook::PersonMade
}

/// `«your password»`: words in the signs of a mask, or the beginning of one that was cut off.
fn is_quoted_placeholder(value: &[u8]) -> bool {
    let (open, close) = ("«".as_bytes(), "»".as_bytes());
    value.strip_prefix(open).is_some_and(|inner| {
        let inner = inner.strip_suffix(close).unwrap_or(inner);
        labelled_masks(value).next().is_none() && classify(inner) < ValueLook::PersonMade
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_like_what_they_are() {
        for (text, wanted) in [
            ("", ValueLook::Placeholder),
            ("********", ValueLook::Placeholder),
            ("xxxxxxxxxxxx", ValueLook::Placeholder),
            ("your-api-key", ValueLook::Placeholder),
            ("changeme", ValueLook::Placeholder),
            ("mypassword", ValueLook::Placeholder),
            ("${TOKEN}", ValueLook::Placeholder),
            ("$TOKEN", ValueLook::Placeholder),
            ("<token>", ValueLook::Placeholder),
            ("%PASSWORD%", ValueLook::Placeholder),
            ("{{ password }}", ValueLook::Placeholder),
            ("/run/secrets/db_password", ValueLook::Placeholder),
            ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ValueLook::Placeholder),
            ("abcdefghijklmnop", ValueLook::Placeholder),
            ("1234567890", ValueLook::Placeholder),
            ("«password:key:12»", ValueLook::Placeholder),
            ("nightly-warehouse-loader", ValueLook::Words),
            ("letmein", ValueLook::Words),
            ("hunter2", ValueLook::PersonMade),
            ("tr0ub4dor&3", ValueLook::PersonMade),
            ("Summer2026!", ValueLook::PersonMade),
            ("9Xk2mQz7Lp4R", ValueLook::Random),
            ("3f8a1c9be07d42565b1f", ValueLook::Random),
            ("qzkwvxjhpmtbgfrd", ValueLook::Random),
        ] {
            assert_eq!(classify(text.as_bytes()), wanted, "{text}");
        }
    }
}
