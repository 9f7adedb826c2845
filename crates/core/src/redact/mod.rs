//! Masking what looks like a credential.
//!
//! The rules are data ([`rules`]): a prefix that a provider chose so that its tokens can be found,
//! the alphabet behind it and how long it is. A match becomes `«token:github:40:9f3a»`: the kind,
//! the rule, the length and the first digits of a digest, so that two places with one secret can be
//! told to be the same. Masking twice changes nothing.

mod rules;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use crate::digest::Digest;
pub use rules::{Alphabet, BUILTIN, Rule};

/// The first characters of a mask.
const OPEN: &[u8] = "«".as_bytes();
const KEY_BEGIN: &[u8] = b"-----BEGIN ";
const KEY_END: &[u8] = b"PRIVATE KEY-----";
const BLOCK_END: &[u8] = b"-----END ";

/// Finds and masks credentials.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: &'static [Rule],
    /// Whether a rule begins with this byte.
    starts: [bool; 256],
}

impl Redactor {
    /// The rules that this build ships.
    #[must_use]
    pub fn builtin() -> Self {
        let mut starts = [false; 256];
        let firsts = BUILTIN.iter().filter_map(|rule| rule.prefix.as_bytes().first());
        for first in firsts.chain(KEY_BEGIN.first()) {
            if let Some(start) = starts.get_mut(usize::from(*first)) {
                *start = true;
            }
        }
        Self { rules: BUILTIN, starts }
    }

    /// Masks bytes and counts the masks.
    #[must_use]
    pub fn bytes<'t>(&self, text: &'t [u8], masked: &mut u64) -> Cow<'t, [u8]> {
        let mut clean: Vec<u8> = Vec::new();
        let (mut at, mut kept) = (0, 0);
        while let Some(byte) = text.get(at) {
            let may_start = self.starts.get(usize::from(*byte)).copied().unwrap_or(false);
            let found = if may_start { self.secret_at(text, at) } else { None };
            let Some((kind, name, length)) = found else {
                at += 1;
                continue;
            };
            let secret = text.get(at..at + length).unwrap_or_default();
            clean.extend_from_slice(text.get(kept..at).unwrap_or_default());
            clean.extend_from_slice(mask(kind, name, secret).as_bytes());
            *masked += 1;
            at += length;
            kept = at;
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        clean.extend_from_slice(text.get(kept..).unwrap_or_default());
        Cow::Owned(clean)
    }

    /// Masks text and counts the masks.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str, masked: &mut u64) -> Cow<'t, str> {
        match self.bytes(text.as_bytes(), masked) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Masks every text of a value, keys included, and counts the masks.
    #[must_use]
    pub fn value(&self, value: Value, masked: &mut u64) -> Value {
        match value {
            Value::String(text) => match self.text(&text, masked) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(clean) => Value::String(clean),
            },
            Value::Array(list) => list.into_iter().map(|item| self.value(item, masked)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, item)| (self.text(&key, masked).into_owned(), self.value(item, masked)))
                .collect(),
            other => other,
        }
    }

    /// The kind, rule and length of the credential that begins here.
    fn secret_at(&self, text: &[u8], at: usize) -> Option<(&'static str, &'static str, usize)> {
        let rest = text.get(at..)?;
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        if before.is_none_or(|byte| !byte.is_ascii_alphanumeric()) {
            let found = self
                .rules
                .iter()
                .find_map(|rule| rule.length_at(rest).map(|length| (rule.kind, rule.name, length)));
            if found.is_some() {
                return found;
            }
        }
        private_key(rest).map(|length| ("key", "pem", length))
    }
}

/// The length of the private key in PEM form that begins here. A block whose end was cut off is
/// masked to the end of the text.
fn private_key(rest: &[u8]) -> Option<usize> {
    let head = rest.get(..rest.len().min(80))?;
    head.strip_prefix(KEY_BEGIN)?;
    let line = head.iter().position(|byte| matches!(byte, b'\n' | b'\\')).unwrap_or(head.len());
    find(head.get(..line)?, KEY_END)?;
    let Some(end) = find(rest, BLOCK_END) else { return Some(rest.len()) };
    let tail = rest.get(end..)?;
    let length = find(tail, KEY_END).map_or(tail.len(), |at| at + KEY_END.len());
    Some(end + length)
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

fn mask(kind: &str, name: &str, secret: &[u8]) -> String {
    let digest = format!("{}", Digest::of(secret));
    format!("«{kind}:{name}:{}:{}»", secret.len(), digest.get(..4).unwrap_or(""))
}

/// Whether a text holds a mask of ours.
#[must_use]
pub fn holds_mask(text: &[u8]) -> bool {
    find(text, OPEN).is_some_and(|at| {
        let rest = text.get(at + OPEN.len()..).unwrap_or_default();
        rest.starts_with(b"token:") || rest.starts_with(b"key:")
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn clean(text: &str) -> String {
        let mut masked = 0;
        Redactor::builtin().text(text, &mut masked).to_string()
    }

    #[test]
    fn every_rule_finds_its_own_kind() {
        for rule in BUILTIN {
            let body = rule.alphabet.sample().repeat(rule.shortest);
            let secret = format!("{}{}", rule.prefix, body.get(..rule.shortest).unwrap());
            let masked = clean(&format!("key={secret}, next"));
            assert!(!masked.contains(&secret), "{}: {masked}", rule.name);
            assert!(masked.starts_with("key=«") && masked.ends_with("», next"), "{masked}");
            assert_eq!(clean(&masked), masked, "masking twice");
        }
    }

    #[test]
    fn look_alikes_stay() {
        for text in [
            "a commit 1f0c9d3b2a4e5f60718293a4b5c6d7e8f9012345",
            "ghp_short",
            "the prefix AKIA alone",
            "xoxb-",
            "task-sk_live",
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "550e8400-e29b-41d4-a716-446655440000",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn private_keys_go_whole() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n\
                   -----END OPENSSH PRIVATE KEY-----";
        let masked = clean(&format!("before\n{key}\nafter"));
        assert!(
            masked.starts_with("before\n«key:pem:") && masked.ends_with("»\nafter"),
            "{masked}"
        );
        let cut = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA";
        assert!(!clean(cut).contains("MIIE"));
        assert!(holds_mask(masked.as_bytes()));
        assert!(!holds_mask("« quoted »".as_bytes()));
    }

    #[test]
    fn values_are_masked_to_the_leaves() {
        let token = format!("ghp_{}", "a".repeat(36));
        let value = serde_json::json!({ "list": [{ "text": token }], "n": 1 });
        let mut masked = 0;
        let clean = Redactor::builtin().value(value, &mut masked);
        assert_eq!(masked, 1);
        assert!(clean["list"][0]["text"].as_str().unwrap().starts_with("«token:github:40:"));
    }
}
