//! What a value looks like: one that nobody made up, one that somebody did, or one that stands for
//! another.

use alloc::vec::Vec;

use crate::word_tables::{
    BIGRAM_SCORES, PLACEHOLDER_WORDS, SENTENCE_WORDS, STRONG_PLACEHOLDER_WORDS,
};

/// How a value looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueLook {
    /// It stands for a value: a placeholder, a variable, a reference, a mask.
    Placeholder,
    /// Words, as names are made of.
    Words,
    /// Neither words alone nor random: what people choose for a password.
    PersonMade,
    /// Random.
    Random,
}

/// The letters of a value, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CharCounts {
    pub(super) length: usize,
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digit: usize,
    /// Neither letters nor digits nor what names are joined with.
    pub(super) sign: usize,
    /// How many different bytes.
    pub(super) distinct: u32,
}

impl CharCounts {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut count = Self { length: value.len(), ..Self::default() };
        let mut seen = [0_u128; 2];
        for byte in value {
            if let Some(half) = seen.get_mut(usize::from(byte >> 7)) {
                *half |= 1 << (byte & 127);
            }
            match byte {
                b'a'..=b'z' => count.lower += 1,
                b'A'..=b'Z' => count.upper += 1,
                b'0'..=b'9' => count.digit += 1,
                b'-' | b'_' | b'.' | b'/' | b' ' | b':' => {}
                _ => count.sign += 1,
            }
        }
        count.distinct = seen.iter().map(|half| half.count_ones()).sum();
        count
    }

    pub(super) const fn letters(&self) -> usize {
        self.lower + self.upper
    }

    /// Of how many kinds the letters are.
    fn kinds(&self) -> usize {
        [self.lower, self.upper, self.digit].iter().filter(|number| **number > 0).count()
    }
}

/// How much more often than by chance the letters of a value follow one another in English, in
/// factors of two. Random letters come out below zero, words well above.
pub(super) fn wordiness(value: &[u8]) -> i32 {
    let index = |byte: u8| match byte.to_ascii_lowercase() {
        byte @ b'a'..=b'z' => Some(usize::from(byte - b'a')),
        _ => None,
    };
    let pairs = value.iter().zip(value.iter().skip(1));
    let pairs = pairs.filter_map(|(one, other)| {
        let odds = *BIGRAM_SCORES.get(index(*one)?)?.get(index(*other)?)?;
        Some(i32::from(odds) - i32::from(b'e'))
    });
    pairs.sum()
}

/// From where on letters follow one another as in words.
const WORDINESS_THRESHOLD: i32 = 6;

/// The words of a value: letters that stand together, and in other letters than those before.
pub(super) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let letters = value.split(|byte| !byte.is_ascii_alphabetic() && *byte < 0x80);
    letters.filter(|run| !run.is_empty()).flat_map(split_camel_case)
}

/// `fooBarBAZQux` as `foo`, `Bar`, `BAZ`, `Qux`.
fn split_camel_case(run: &[u8]) -> Vec<&[u8]> {
    let upper = |at: usize| run.get(at).is_some_and(u8::is_ascii_uppercase);
    let begins = |at: usize| {
        let is_next = run.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        upper(at) && (!upper(at - 1) || is_next)
    };
    let mut parts = Vec::new();
    let mut from = 0;
    for at in 1..run.len() {
        if begins(at) {
            parts.extend(run.get(from..at));
            from = at;
        }
    }
    parts.extend(run.get(from..));
    parts
}

fn is_among(table: &[&str], word: &[u8]) -> bool {
    // No word of any table is longer.
    let mut lower = [0; 16];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.iter_mut().zip(word).for_each(|(to, from)| *to = from.to_ascii_lowercase());
    table.binary_search_by(|text| text.as_bytes().cmp(lower)).is_ok()
}

/// Whether a word is one of those that stand for a secret.
pub(super) fn is_placeholder_word(word: &[u8]) -> bool {
    is_among(PLACEHOLDER_WORDS, word) || is_among(STRONG_PLACEHOLDER_WORDS, word)
}

/// Whether the words of a text are those of a sentence.
pub(super) fn is_sentence(value: &[u8]) -> bool {
    words(value).any(|word| is_among(SENTENCE_WORDS, word))
}

/// How a value looks in which no mask of ours stands.
pub(super) fn classify_unmasked(value: &[u8]) -> ValueLook {
    if is_unmasked_placeholder(value) { ValueLook::Placeholder } else { classify_letters(value) }
}

/// How the letters of a value look that stands for no other one.
pub(super) fn classify_letters(value: &[u8]) -> ValueLook {
    let count = CharCounts::of(value);
    let wordy = wordiness(value) >= WORDINESS_THRESHOLD && !is_number(value, &count);
    let random = !wordy
        && count.length >= 8
        && count.distinct >= 6
        && (count.kinds() >= 2 || count.letters() >= 15 || count.sign >= 2)
        && count.letters() > 0;
    let mixed = count.lower > 0 && count.upper > 1;
    let made = count.digit > 0 || count.sign > 0 || mixed && !wordy;
    match () {
        () if random => ValueLook::Random,
        () if made && count.length >= 5 => ValueLook::PersonMade,
        () => ValueLook::Words,
    }
}

/// Digits of base 16, in which few letters follow one another in many ways.
fn is_number(value: &[u8], count: &CharCounts) -> bool {
    let plain = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b':' | b'x');
    count.digit * 4 > value.len() && value.iter().all(plain)
}

/// Whether bytes are no text in any coding: an archive or a picture holds the letters of a name and anything behind them by
/// chance, and would be destroyed by a mask. What terminals and lists are written with is text: colours, bells, backspaces and zeros.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let is_strange = |byte: &&u8| matches!(byte, 1..=6 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    let strange = bytes.iter().filter(is_strange).count();
    let invalid: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    strange >= 1 && invalid * 4 > bytes.len() || strange >= 3 && invalid > 0
}

/// Whether a value in which no mask of ours stands is there for another one.
pub(super) fn is_unmasked_placeholder(value: &[u8]) -> bool {
    value.is_empty()
        || !value.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
        || has_fillers(value)
        || is_template(value)
        || is_reference(value)
        || is_sequence(value)
        || has_placeholder_words(value)
}

/// Whether a value has stars, dots and their like in place of letters.
pub(super) fn has_fillers(value: &[u8]) -> bool {
    const FILLERS: &[u8] = b"xX*.#_-?";
    let mut last = (0, 0);
    let filled = value.iter().any(|byte| {
        last = if *byte == last.0 { (*byte, last.1 + 1) } else { (*byte, 1) };
        last.1 >= 4 && FILLERS.contains(byte)
    });
    let all_filler = value.iter().all(|byte| FILLERS.contains(byte));
    let bullet = value.windows(3).any(|item| item == "•".as_bytes());
    filled || all_filler || bullet
}

/// A variable of a shell, of a template, of a statement.
pub(super) fn is_template(value: &[u8]) -> bool {
    const OPENS: &[&[u8]] =
        &[b"${", b"$(", b"{{", b"<%", b"#{", b"%(", b"@{", b"\\(", b"%{", b"$[", b"%s", b"&lt;"];
    let holds = |text: &[u8]| value.windows(text.len()).any(|item| item == text);
    if OPENS.iter().any(|open| holds(open)) {
        return true;
    }
    let wrapped =
        |open: u8, close: u8| value.first() == Some(&open) && value.last() == Some(&close);
    let pairs = [(b'<', b'>'), (b'[', b']'), (b'{', b'}'), (b'(', b')'), (b'%', b'%')];
    if value.len() >= 2 && pairs.iter().any(|(open, close)| wrapped(*open, *close)) {
        return true;
    }
    match value.split_first() {
        Some((b'$', name)) => is_name(name) || begins_name(name),
        Some((b':' | b'@' | b'&' | b'*', name)) => is_name(name),
        Some((b'!', tag)) => tag.first().is_some_and(u8::is_ascii_alphabetic) && is_words(tag),
        Some((b'%', kind)) => kind.len() == 1,
        _ => value == b"?",
    }
}

/// A name of a variable rather than a password that begins with a sign.
fn is_name(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.');
    let count = CharCounts::of(name);
    !name.is_empty()
        && name.iter().all(plain)
        && (count.lower == 0 || count.digit == 0 && is_words(name))
}

/// `HOME/x`: a name of the environment, and what is put behind it.
fn begins_name(name: &[u8]) -> bool {
    let number = name.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
    number >= 3 && name.get(number).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

fn is_words(text: &[u8]) -> bool {
    text.len() < 8 || wordiness(text) >= 3
}

/// Where a secret is, in place of the secret.
fn is_reference(value: &[u8]) -> bool {
    const SCHEMES: &[&[u8]] = &[
        b"op://",
        b"vault:",
        b"file:",
        b"env:",
        b"arn:",
        b"ssm:",
        b"sm://",
        b"projects/",
        b"ENC[",
        b"AQICAH",
        b"$ANSIBLE_VAULT",
        b"secret://",
        b"keychain:",
        b"keyring:",
        b"akv:",
        b"gcp-sm:",
        b"http://",
        b"https://",
    ];
    let encrypted = value.len() > 150 && (value.starts_with(b"AgA") || value.starts_with(b"AgB"));
    encrypted || SCHEMES.iter().any(|scheme| value.starts_with(scheme)) || is_file_path(value)
}

/// The path of a file: its parts are words.
fn is_file_path(value: &[u8]) -> bool {
    let begins = [b"/".as_slice(), b"./", b"../", b"~/"].iter().any(|item| value.starts_with(item));
    let windows = matches!(value, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    let parts = value.split(|byte| matches!(byte, b'/' | b'\\'));
    let named = |part: &[u8]| {
        let count = CharCounts::of(part);
        count.sign == 0 && (part.len() < 8 || wordiness(part) >= 2)
    };
    let suffix = value.rsplitn(2, |byte| *byte == b'.').next().unwrap_or_default();
    const FILES: [&[u8]; 12] = [
        b"pem", b"key", b"crt", b"txt", b"json", b"yml", b"yaml", b"env", b"p12", b"jks", b"conf",
        b"pub",
    ];
    let file = value.contains(&b'.') && FILES.contains(&suffix) && parts.clone().all(named);
    (begins || windows) && parts.clone().count() > 1 && parts.clone().all(named) || file
}

/// `abcdef`, `12345678`, `aaaaaa`, and what is put together of such.
fn is_sequence(value: &[u8]) -> bool {
    let plain: Vec<u8> = value.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    let steps = plain.iter().zip(plain.iter().skip(1));
    let even = steps.filter(|(one, other)| {
        let step = i16::from(**other) - i16::from(**one);
        matches!(step, 0 | 1) || (**one, **other) == (b'9', b'0')
    });
    plain.len() >= 4 && even.count() * 10 >= (plain.len() - 1) * 8
}

/// Words that say that the value is none.
fn has_placeholder_words(value: &[u8]) -> bool {
    if value.windows(7).any(|item| item == b"EXAMPLE") {
        return true;
    }
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let signs = value.iter().filter(|byte| b"!@$%^&+".contains(byte)).count();
    let mut any = false;
    let mut all = true;
    for word in words(value) {
        if is_among(STRONG_PLACEHOLDER_WORDS, word) && word.len() * 4 >= value.len() {
            return true;
        }
        any = true;
        all = all && (is_placeholder_word(word) || is_joined(word));
    }
    any && all && digits < 3 && signs == 0
}

/// `mypassword`, `secretkey`: two such words in one.
fn is_joined(word: &[u8]) -> bool {
    word.len() <= 24
        && (2..word.len().saturating_sub(1)).any(|at| {
            word.split_at_checked(at)
                .is_some_and(|(one, other)| is_placeholder_word(one) && is_placeholder_word(other))
        })
}

/// Whether a value is in hexadecimal digits and nothing else.
pub(super) fn is_hex(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a value has the form of a UUID.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        for table in [PLACEHOLDER_WORDS, STRONG_PLACEHOLDER_WORDS, SENTENCE_WORDS] {
            assert!(table.is_sorted(), "{table:?}");
            assert!(table.iter().all(|word| word.len() <= 16));
        }
    }

    #[test]
    fn words_are_told_by_their_letters() {
        let words: Vec<&[u8]> = words(b"fooBarBAZQux-9_x").collect();
        let wanted: [&[u8]; 5] = [b"foo", b"Bar", b"BAZ", b"Qux", b"x"];
        assert_eq!(words, wanted);
        assert!(wordiness(b"kubernetes-controller") > 12);
        assert!(wordiness(b"xqzjvkwpgbhtrnmfd") < 0);
    }
}
