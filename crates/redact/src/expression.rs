//! Whether a value is an expression of some language rather than what it would come to.

use crate::value::{CharCounts, wordiness};

/// `MAX_PASSWORD_LENGTH`: a name of what never changes.
pub(super) fn is_constant(value: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let first = value.first().is_some_and(u8::is_ascii_uppercase);
    let mut parts = value.split(|byte| *byte == b'_').filter(|part| !part.is_empty());
    first
        && value.contains(&b'_')
        && value.iter().all(plain)
        && parts.all(|part| part.len() < 12 || wordiness(part) >= 2)
}

/// `0x8803`, `0x10UL`: a number of a program, too short for a key.
pub(super) fn is_number(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"0X"));
    let plain = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'U' | b'L' | b'u' | b'l');
    digits.is_some_and(|digit| digit.len() <= 20 && digit.iter().all(plain))
}

/// A name of a variable, of a field of something, of a type.
fn is_name(part: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    part.first().is_some_and(|byte| !byte.is_ascii_digit())
        && part.iter().all(plain)
        && (part.len() <= 5 || wordiness(part) >= 2)
}

/// An expression of a language rather than a value: `config.password`, `getPassword()`, `argv[2]`.
pub(super) fn is_code(value: &[u8]) -> bool {
    const SIGNS: [&[u8]; 7] = [b"(", b"::", b"->", b"=>", b"['", b"[\"", b"[]"];
    let holds = |text: &[u8]| value.windows(text.len()).any(|item| item == text);
    if SIGNS.iter().any(|sign| holds(sign)) || value.starts_with(b"{") || value.starts_with(b"__") {
        return true;
    }
    let value = value.strip_suffix(b"!").unwrap_or(value);
    let value = value.strip_prefix(b"&").unwrap_or(value);
    // `names[2]`, `a.b=a.c=void`: what stands first says it all.
    let first = value.split(|byte| matches!(byte, b'[' | b'=')).next().unwrap_or_default();
    let indexed = first.len() < value.len() && value.get(first.len()) == Some(&b'[');
    let is_field =
        |text: &[u8]| text.contains(&b'.') && text.split(|byte| *byte == b'.').all(is_name);
    if is_field(first) || indexed && is_name(first) {
        return true;
    }
    let count = CharCounts::of(value);
    // An option of a call: `composite=True`.
    if first.len() < value.len() && count.digit == 0 && is_name(first) && !indexed {
        return true;
    }
    let humps = count.lower > 0 && count.upper > 0 || value.contains(&b'_');
    let letters = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
    // `OkmBlock`: too short to tell its letters from random ones, and a password has more than letters.
    let short = value.len() <= 12 && value.iter().all(letters);
    count.digit == 0 && humps && (is_name(value) || short) || is_constant(value)
}
