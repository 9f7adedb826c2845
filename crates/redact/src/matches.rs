//! What was found, and the mask that takes its place.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

use sha2::{Digest, Sha256};

use crate::rules;
use crate::value::{ValueLook, classify_unmasked};

/// What a secret is called in its mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MaskLabel {
    pub(super) kind: &'static str,
    pub(super) rule: Cow<'static, str>,
}

/// What is told by its place.
const CONTEXT_LABELS: [(&str, &str); 14] = [
    (PASSWORD, "call"),
    (PASSWORD, "command"),
    (PASSWORD, "setting"),
    (PASSWORD, "url"),
    (KEY, "jwk"),
    (KEY, "pem"),
    (KEY, "putty"),
    (TOKEN, "bearer"),
    (SECRET, "auth"),
    (SECRET, "authorization"),
    (SECRET, "basic"),
    (SECRET, "cookie"),
    (SECRET, "setting"),
    (SECRET, "url"),
];

impl MaskLabel {
    pub(super) const fn new(kind: &'static str, rule: &'static str) -> Self {
        Self { kind, rule: Cow::Borrowed(rule) }
    }

    /// Whether it is one that this build gives.
    pub(super) fn is_built_in(&self) -> bool {
        let Self { kind, rule } = self;
        CONTEXT_LABELS.contains(&(*kind, rule.as_ref()))
            || rules::all().any(|item| (item.kind, item.name) == (*kind, rule.as_ref()))
    }

    /// Whether somebody calls a secret so: this build, another one in words, or a policy in what is
    /// no secret itself. Who can write a mask may not hide something in it.
    pub(super) fn is_name(&self) -> bool {
        let by_policy = matches!(self.kind, SECRET | PATTERN);
        let has = |kind: fn(&u8) -> bool| self.rule.as_bytes().iter().any(kind);
        let mixed =
            has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
        let strange = if by_policy && !mixed { ValueLook::Random } else { ValueLook::PersonMade };
        self.is_built_in() || classify_unmasked(self.rule.as_bytes()) < strange
    }

    /// The mask of a secret. Two places with one secret can be told to be the same by a digest; what
    /// a person may have made up has none, since few digits of one would do to try guesses.
    pub(super) fn mask(&self, secret: &[u8]) -> String {
        let Self { kind, rule } = self;
        let length = secret.len();
        match *kind {
            TOKEN | KEY => {
                let [first, second, ..] = <[u8; 32]>::from(Sha256::digest(secret));
                format!("{MASK_OPEN}{kind}:{rule}:{length}:{first:02x}{second:02x}{MASK_CLOSE}")
            }
            _ => format!("{MASK_OPEN}{kind}:{rule}:{length}{MASK_CLOSE}"),
        }
    }
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretMatch {
    pub(super) label: MaskLabel,
    pub(super) range: Range<usize>,
    /// Whether it runs on behind the range.
    pub(super) continues: bool,
}

impl SecretMatch {
    pub(super) const fn complete(label: MaskLabel, range: Range<usize>) -> Self {
        Self { label, range, continues: false }
    }
}

/// What a provider gave out.
pub(super) const TOKEN: &str = "token";
/// A key that signs or decrypts.
pub(super) const KEY: &str = "key";
/// What a person may have made up.
pub(super) const PASSWORD: &str = "password";
/// What is told by its place.
pub(super) const SECRET: &str = "secret";
/// What the policy tells.
pub(super) const PATTERN: &str = "pattern";

const KINDS: [&str; 5] = [TOKEN, KEY, PASSWORD, SECRET, PATTERN];

/// How masks begin and end.
const MASK_OPEN: &str = "«";
const MASK_CLOSE: &str = "»";
/// The first byte of both.
pub(super) const MASK_FIRST: u8 = 0xc2;
/// The last byte of each of the two.
pub(super) const OPEN_LAST: u8 = 0xab;
pub(super) const CLOSE_LAST: u8 = 0xbb;
/// The longest mask.
pub(super) const MASK_BYTES: usize = 120;

/// Whether a text holds a mask of ours.
#[must_use]
pub fn holds_mask(text: &[u8]) -> bool {
    masks(text).next().is_some()
}

/// The masks in a text: where each stands.
pub fn masks(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    labelled_masks(text).map(|(range, _)| range)
}

/// The masks of a text, with what each calls its secret.
pub(super) fn labelled_masks(text: &[u8]) -> impl Iterator<Item = (Range<usize>, MaskLabel)> {
    let mut from = 0;
    core::iter::from_fn(move || {
        loop {
            let rest = text.get(from..)?;
            let start = from + find_bytes(rest, MASK_OPEN.as_bytes())?;
            from = start + MASK_OPEN.len();
            if let Some((length, label)) = parse_mask(text.get(start..)?) {
                from = start + length;
                return Some((start..from, label));
            }
        }
    })
}

/// The mask that begins here, and its length: `«kind:rule:length»` or `«kind:rule:length:digest»`.
fn parse_mask(text: &[u8]) -> Option<(usize, MaskLabel)> {
    let rest = text.strip_prefix(MASK_OPEN.as_bytes())?;
    let inner =
        rest.get(..find_bytes(rest.get(..rest.len().min(MASK_BYTES))?, MASK_CLOSE.as_bytes())?)?;
    let mut parts = inner.split(|byte| *byte == b':');
    let kind = parts.next()?;
    let kind = KINDS.into_iter().find(|text| text.as_bytes() == kind)?;
    let rule = parts.next()?;
    let length = parts.next()?;
    let digest = parts.next();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = !rule.is_empty()
        && rule.iter().all(plain)
        && !length.is_empty()
        && length.iter().all(u8::is_ascii_digit)
        && digest
            .is_none_or(|digest| digest.len() == 4 && digest.iter().all(u8::is_ascii_hexdigit))
        && parts.next().is_none();
    let rule = String::from_utf8_lossy(rule).into_owned();
    let length = MASK_OPEN.len() + inner.len() + MASK_CLOSE.len();
    fits.then_some((length, MaskLabel { kind, rule: Cow::Owned(rule) }))
}

pub(super) fn find_bytes(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_found_again() {
        let one = MaskLabel::new(TOKEN, "github").mask(b"x");
        let other = MaskLabel::new(PASSWORD, "url").mask(b"hunter2");
        assert_eq!(other, "«password:url:7»");
        let text = format!("a «quoted» b {one} c « {other}»");
        let found: Vec<&str> = masks(text.as_bytes()).map(|at| text.get(at).unwrap()).collect();
        assert_eq!(found, [one, other]);
        for none in ["«token:»", "«token:x:y»", "«other:x:1»", "«token:x:1:zzzz»", "«token:x:1"]
        {
            assert_eq!(masks(none.as_bytes()).next(), None, "{none}");
        }
    }

    use alloc::vec::Vec;
}
