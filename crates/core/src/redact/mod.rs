//! Masking what looks like a credential.
//!
//! The rules are data (`rules`): a prefix that a provider chose so that its tokens can be found,
//! the alphabet behind it and how long it is. A match becomes `«token:github:40:9f3a»`: the kind,
//! the rule, the length and the first digits of a digest, so that two places with one secret can be
//! told to be the same. Masking twice changes nothing.

mod rules;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use serde_json::Value;

use crate::digest::Digest;
use rules::{Alphabet, BUILTIN, Rule};

/// How masks begin, kind by kind.
const MASKS: [&str; 2] = ["«token:", "«key:"];
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
        let around = Around { window: 0..text.len(), cut_before: false, cut_after: false };
        self.within(text, &around, masked)
    }

    /// Masks what is delivered of a piece and counts the masks. What reaches into it from outside
    /// is masked whole.
    #[must_use]
    pub fn piece<'t>(&self, piece: &'t Piece, masked: &mut u64) -> Cow<'t, [u8]> {
        let Piece { bytes, window, cut_before, cut_after } = piece;
        let window = window.start.min(bytes.len())..window.end.min(bytes.len());
        let around = Around { window, cut_before: *cut_before, cut_after: *cut_after };
        self.within(bytes, &around, masked)
    }

    fn within<'t>(&self, text: &'t [u8], around: &Around, masked: &mut u64) -> Cow<'t, [u8]> {
        let Range { start, end } = around.window;
        let mut clean: Vec<u8> = Vec::new();
        let (mut at, mut kept, mut any) = (0, start, false);
        while at < end {
            let Some(secret) = self.secret_at(text, at, around) else {
                at += 1;
                continue;
            };
            at += secret.length;
            if at <= start {
                continue;
            }
            let began = at - secret.length;
            clean.extend_from_slice(text.get(kept..began).unwrap_or_default());
            clean
                .extend_from_slice(secret.mask(text.get(began..at).unwrap_or_default()).as_bytes());
            (any, kept) = (true, at);
            *masked += 1;
        }
        let rest = text.get(kept.min(end)..end).unwrap_or_default();
        if !any {
            return Cow::Borrowed(rest);
        }
        clean.extend_from_slice(rest);
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

    /// The credential that begins here.
    fn secret_at(&self, text: &[u8], at: usize, around: &Around) -> Option<Secret> {
        let rest = text.get(at..)?;
        if at == 0
            && around.cut_before
            && let Some(length) = end_of_key(rest)
        {
            return Some(Secret { kind: "key", name: "pem", length });
        }
        if !self.starts.get(usize::from(*rest.first()?)).copied().unwrap_or(false) {
            return None;
        }
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        if before.is_none_or(|byte| !byte.is_ascii_alphanumeric()) {
            let found = self.rules.iter().find_map(|rule| {
                let length = rule.length_at(rest, around.cut_after)?;
                Some(Secret { kind: rule.kind, name: rule.name, length })
            });
            if found.is_some() {
                return found;
            }
        }
        private_key(rest).map(|length| Secret { kind: "key", name: "pem", length })
    }
}

/// What is delivered of a text, and whether the text is cut itself.
struct Around {
    window: Range<usize>,
    cut_before: bool,
    cut_after: bool,
}

/// A credential that was found.
struct Secret {
    kind: &'static str,
    name: &'static str,
    length: usize,
}

impl Secret {
    fn mask(&self, text: &[u8]) -> String {
        let digest = format!("{}", Digest::of(text));
        let Self { kind, name, .. } = self;
        format!("«{kind}:{name}:{}:{}»", text.len(), digest.get(..4).unwrap_or(""))
    }
}

/// Bytes of which only a part is delivered: what stands around it is for the redactor's eyes, since
/// a credential that is cut in two is one no more by its looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Those of them that are delivered.
    pub window: Range<usize>,
    /// Whether something stands before the bytes.
    pub cut_before: bool,
    /// Whether something follows them: then what begins like a credential at their very end is
    /// masked as one.
    pub cut_after: bool,
}

impl Piece {
    /// The beginning of something that may go on.
    #[must_use]
    pub fn beginning(bytes: Vec<u8>, cut_after: bool) -> Self {
        Self { window: 0..bytes.len(), bytes, cut_before: false, cut_after }
    }
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Self {
        Self::beginning(bytes, false)
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

/// The length of what is left of a private key whose beginning was cut off: everything up to its
/// last line.
fn end_of_key(text: &[u8]) -> Option<usize> {
    let end = find(text, BLOCK_END)?;
    let line = text.get(end..)?;
    let line = line.get(..line.len().min(80))?;
    let length = find(line, KEY_END)? + KEY_END.len();
    let whole = find(text.get(..end)?, KEY_BEGIN).is_some();
    (!whole).then_some(end + length)
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

/// The beginning of a text that a message quotes. It ends where no credential could go on, so that
/// none is cut in two before it is masked.
#[must_use]
pub fn excerpt(text: &str, most_chars: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most_chars) else { return Cow::Borrowed(text) };
    let beginning = text.get(..end).unwrap_or_default();
    let whole = beginning.trim_end_matches(|c| u8::try_from(c).is_ok_and(|b| ANY.holds(b)));
    Cow::Owned(format!("{whole}…"))
}

/// Every character that a credential can have behind its prefix.
const ANY: Alphabet = Alphabet::Dotted;

/// Whether a text holds a mask of ours.
#[must_use]
pub fn holds_mask(text: &[u8]) -> bool {
    MASKS.iter().any(|mask| find(text, mask.as_bytes()).is_some())
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
    fn excerpts_cut_no_credential_in_two() {
        let secret = format!("ghp_{}", "a".repeat(36));
        let text = format!("a b/{secret}/c");
        for most in 0..text.len() {
            let shown = excerpt(&text, most);
            let whole = shown.contains(&secret) || !shown.contains("gh");
            assert!(whole && shown.ends_with('…'), "{most}: {shown}");
        }
        assert_eq!(excerpt(&text, text.len()), text);
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
        assert!(holds_mask(format!("« quoted » {masked}").as_bytes()));
    }

    /// G10: whatever part of a text is delivered, no part of a credential in it is.
    #[test]
    fn no_window_shows_a_part_of_a_credential() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        let key = format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
            "qRs7".repeat(40)
        );
        let text = format!("before {token} between\n{key}\nafter");
        let redactor = Redactor::builtin();
        let secret = |shown: &str| shown.contains("aB3") || shown.contains("Rs7");
        for start in 0..text.len() {
            for end in start..=text.len() {
                let piece = Piece {
                    bytes: text.as_bytes().to_vec(),
                    window: start..end,
                    cut_before: true,
                    cut_after: true,
                };
                let mut masked = 0;
                let shown = redactor.piece(&piece, &mut masked).into_owned();
                let shown = String::from_utf8(shown).unwrap();
                assert!(!secret(&shown), "{start}..{end}: {shown}");
                assert_eq!(masked as usize, shown.matches('«').count(), "{start}..{end}");
            }
        }
        // Without anything around: the bytes themselves are cut.
        let start_of_key = text.find("-----BEGIN").unwrap();
        for cut in 0..text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            let mut masked = 0;
            let one = Piece::beginning(one.to_vec(), true);
            let shown = redactor.piece(&one, &mut masked).into_owned();
            assert!(!secret(&String::from_utf8(shown).unwrap()), "..{cut}");
            if cut > start_of_key {
                let other = Piece { cut_before: true, ..Piece::from(other.to_vec()) };
                let shown = redactor.piece(&other, &mut masked).into_owned();
                let ended = cut > text.len() - "-----END RSA PRIVATE KEY-----\nafter".len();
                assert!(ended || !secret(&String::from_utf8(shown).unwrap()), "{cut}..");
            }
        }
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
