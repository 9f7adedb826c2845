//! Whether a value is a secret, by what its name says, by how it looks, and by how it stands there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::expression::{is_code, is_constant, is_number};
use crate::masked_value::classify;
use crate::setting_names::SecretCategory;
use crate::value::{
    CharCounts, ValueLook, is_hex, is_placeholder_word, is_sentence, is_uuid, words,
};

/// What stands between a name and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joiner {
    /// `=`, `:` and their like.
    Assigned,
    /// The value of an option.
    Option,
    /// The text of an element.
    Element,
    /// The next argument.
    Argument,
    /// What is taken if nothing else is there.
    Default,
    /// Blanks, at the beginning of a line.
    LineStart,
    /// Blanks.
    Blank,
    /// `is`.
    Is,
    /// A line of a table.
    TableCell,
    /// A line of its own below.
    NextLine,
}

/// How a value stands there.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueContext {
    pub(super) joined: Joiner,
    /// In quotes.
    pub(super) quoted: bool,
    /// As all that its line says.
    pub(super) whole_line: bool,
}

/// How much of a value is looked at, at either end: what is longer than both is a secret if one of them
/// is, so that many names in one long value do not each cost all of it.
const END_BYTES: usize = 256;

/// Whether a value is to be masked.
pub(super) fn is_secret(holds: SecretCategory, value: &[u8], wording: &ValueContext) -> bool {
    let ends = value.len().checked_sub(END_BYTES).filter(|tail| *tail > END_BYTES);
    match ends.and_then(|tail| value.get(..END_BYTES).zip(value.get(tail..))) {
        Some((head, tail)) => [head, tail].iter().any(|item| looks_secret(holds, item, wording)),
        None => looks_secret(holds, value, wording),
    }
}

fn looks_secret(holds: SecretCategory, value: &[u8], wording: &ValueContext) -> bool {
    let count = CharCounts::of(value);
    if !could_be(holds, &count, wording) {
        return false;
    }
    let look = classify(value);
    let other =
        is_scheme(value) || begins_key_block(value) || is_constant(value) || is_number(value);
    let is_plain = wording.quoted || wording.whole_line && is_phrase(value);
    if look == ValueLook::Placeholder || other || !is_plain && is_code(value) {
        return false;
    }
    let one = !value.iter().any(u8::is_ascii_whitespace) || is_letter_groups(value);
    let clear = match wording.joined {
        Joiner::Assigned | Joiner::Option | Joiner::Element => true,
        Joiner::Argument | Joiner::Default => wording.quoted && one,
        Joiner::LineStart => count.sign + count.digit > 0 && !value.contains(&b'/'),
        Joiner::Blank if wording.quoted => true,
        Joiner::Blank if is_described(value, holds) => false,
        Joiner::Blank | Joiner::Is => look >= ValueLook::PersonMade && count.digit > 0 && one,
        Joiner::NextLine | Joiner::TableCell => look == ValueLook::Random && count.digit > 0 && one,
    };
    clear
        && match holds {
            SecretCategory::Password => is_password(value, look, wording),
            SecretCategory::Secret => one && is_generated(value, look),
            SecretCategory::Token => one && is_token(value, look),
            SecretCategory::Key => one && is_key(value, look, wording),
            SecretCategory::Login => is_login(value, look),
            SecretCategory::Session => {
                one && wording.joined == Joiner::Assigned && is_session(value, look)
            }
            SecretCategory::Phrase => {
                (wording.quoted || wording.whole_line && is_phrase(value)) && value.len() >= 12
            }
        }
}

/// The fewest words of a phrase that stands there without quotes.
const PHRASE: usize = 4;

/// Whether a text without quotes is a phrase to be known by: plain words, and no sentence about anything.
pub(super) fn is_phrase(value: &[u8]) -> bool {
    let plain = |word: &[u8]| {
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'-';
        (2..=16).contains(&word.len()) && word.iter().all(letter) && !is_placeholder_word(word)
    };
    let mut count = 0;
    let all = value.split(|byte| *byte == b' ').all(|word| {
        count += 1;
        plain(word)
    });
    all && count >= PHRASE && !is_sentence(value)
}

/// What stands behind a word in a sentence without being what the word says: fingerprints of keys,
/// names with a number behind them, comments, attributes.
fn is_described(value: &[u8], holds: SecretCategory) -> bool {
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let rest = value.get(letters..).unwrap_or_default();
    let numbered = letters > 0 && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let short = holds != SecretCategory::Password && value.len() < 12;
    let attribute = value.contains(&b'=') && !value.ends_with(b"=");
    is_hex(value) || is_uuid(value) || numbered || short || attribute || value.starts_with(b"#")
}

/// What a few numbers say, before anything that takes longer is asked.
fn could_be(holds: SecretCategory, count: &CharCounts, wording: &ValueContext) -> bool {
    let assigned = wording.joined == Joiner::Assigned;
    let least = match holds {
        SecretCategory::Password | SecretCategory::Login => 4,
        SecretCategory::Secret => 8,
        SecretCategory::Token => 10,
        SecretCategory::Phrase => 12,
        SecretCategory::Session => 16,
        SecretCategory::Key => 20,
    };
    let told = matches!(wording.joined, Joiner::Blank | Joiner::Is) && !wording.quoted;
    count.length >= least
        && (assigned || !matches!(holds, SecretCategory::Key | SecretCategory::Session))
        && !(told && count.digit == 0)
}

fn is_password(value: &[u8], look: ValueLook, wording: &ValueContext) -> bool {
    let count = CharCounts::of(value);
    if is_letter_groups(value) {
        return true;
    }
    if value.iter().any(u8::is_ascii_whitespace) {
        // Several words: a sentence about passwords, or a password.
        let told = wording.quoted || wording.whole_line && is_phrase(value);
        return told && value.len() >= 8 && !is_sentence(value) && count.letters() > 0;
    }
    // `challengePassword`, `KxPSK`: a name of such a thing.
    let named = count.digit == 0 && count.sign == 0 && words(value).any(is_placeholder_word);
    let strict =
        !named && matches!(wording.joined, Joiner::Assigned | Joiner::Option | Joiner::Element);
    // A version, an address, a number of a list of names.
    if count.letters() == 0 && value.contains(&b'.') {
        return false;
    }
    match look {
        ValueLook::Random => true,
        ValueLook::PersonMade => {
            !named && value.len() >= if wording.quoted || wording.whole_line { 5 } else { 6 }
        }
        ValueLook::Words => {
            let is_word = count.letters() == value.len();
            let number = count.digit == value.len();
            strict
                && (wording.quoted || wording.whole_line || wording.joined == Joiner::Option)
                && (is_word || number)
                && value.len() >= 6
        }
        ValueLook::Placeholder => false,
    }
}

/// `abcd efgh ijkl mnop`.
fn is_letter_groups(value: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut groups = value.split(|byte| *byte == b' ');
    value.len() == 19 && groups.all(|group| group.len() == 4 && group.iter().all(plain))
}

/// Something that a person or a program made, not a name.
fn is_generated(value: &[u8], look: ValueLook) -> bool {
    let count = CharCounts::of(value);
    match look {
        ValueLook::Random => value.len() >= 8,
        ValueLook::PersonMade => {
            value.len() >= 10 && count.digit > 0 && (count.sign > 0 || count.upper > 0)
        }
        _ => false,
    }
}

fn is_token(value: &[u8], look: ValueLook) -> bool {
    let count = CharCounts::of(value);
    let long = value.len() >= 16 || value.len() >= 10 && count.digit > 0 && count.letters() > 0;
    look == ValueLook::Random && long && !is_date_or_version(value)
}

/// A key among the many that are none of ours: it must look like nothing else.
fn is_key(value: &[u8], look: ValueLook, wording: &ValueContext) -> bool {
    let count = CharCounts::of(value);
    let mixed = count.lower > 0 && count.upper > 0 && count.digit > 0;
    let pieces = value.split(|byte| !byte.is_ascii_alphanumeric());
    let hash = pieces.clone().any(|item| item.len() >= 16 && is_hex(item));
    look == ValueLook::Random
        && wording.joined == Joiner::Assigned
        && value.len() >= 20
        && mixed
        && !hash
        && !is_uuid(value)
        && pieces.max_by_key(|piece| piece.len()).is_some_and(|piece| piece.len() >= 16)
}

fn is_session(value: &[u8], look: ValueLook) -> bool {
    look == ValueLook::Random && value.len() >= 16 && !is_uuid(value)
}

/// `name:password`, as it is or in base64.
fn is_login(value: &[u8], look: ValueLook) -> bool {
    let split = |text: &[u8]| {
        let mut parts = text.splitn(2, |byte| *byte == b':');
        let (name, word) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let plain = name.iter().all(|byte| byte.is_ascii_graphic()) && !name.is_empty();
        plain
            && word.len() >= 4
            && !word.starts_with(b"//")
            && classify(word) >= ValueLook::PersonMade
    };
    let one = !value.iter().any(u8::is_ascii_whitespace);
    one && (split(value)
        || is_basic(value)
        || look == ValueLook::Random && value.len() >= 20 && !is_uuid(value))
}

/// Whether a value is a name and a password in base64.
pub(super) fn is_basic(value: &[u8]) -> bool {
    let plain = value.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1);
    let Ok(decoded) = STANDARD_NO_PAD.decode(value.get(..plain).unwrap_or_default()) else {
        return false;
    };
    let printable = decoded.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80);
    value.len() >= 8 && printable && decoded.contains(&b':')
}

/// A scheme of `Authorization`, whose value stands behind it.
fn is_scheme(value: &[u8]) -> bool {
    let word = value.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    const SCHEMES: [&[u8]; 5] = [b"bearer", b"basic", b"digest", b"token", b"apikey"];
    SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word))
}

fn begins_key_block(value: &[u8]) -> bool {
    value.starts_with(b"-----BEGIN") || value.starts_with(b"---- BEGIN")
}

/// A date, a time, a version.
fn is_date_or_version(value: &[u8]) -> bool {
    let count = CharCounts::of(value);
    count.letters() <= 3 && count.digit + count.letters() + 6 >= value.len() && count.lower == 0
}
