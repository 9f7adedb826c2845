//! What the name of a setting says about its value.
//!
//! The last word that means something decides: a `password` is one, a `password_file` is a file, a
//! `partition_key` is none. Words joined without a sign between them (`sshpass`) are told by how they
//! end.

use alloc::vec::Vec;

use crate::name_tables::{
    HARMLESS_KEY_WORDS, HARMLESS_PASS_WORDS, HARMLESS_TOKEN_WORDS, OTHER_PASSWORDS, PASSWORDS,
    QUALIFIERS, SECRET_KEY_WORDS, SECRETS, SESSIONS, TOKENS,
};
use crate::value::words;

/// What a setting of such a name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretCategory {
    /// What a person may have made up.
    Password,
    /// Something long that is not to be known.
    Secret,
    /// What a provider gave out.
    Token,
    /// A key of some kind; of many kinds that are none of our business.
    Key,
    /// A name with a password, or something made of them.
    Login,
    /// What a browser is known by.
    Session,
    /// Several words.
    Phrase,
}

/// How many words of a name are looked at.
const MAX_WORDS: usize = 12;

/// What a setting of this name holds, if it is something to be masked.
pub(super) fn category(name: &[u8]) -> Option<SecretCategory> {
    let mut parts: Vec<&[u8]> = words(name).take(MAX_WORDS + 1).collect();
    if parts.len() > MAX_WORDS {
        return None;
    }
    let mut last = parts.pop()?.to_ascii_lowercase();
    while let Some(before) = parts.last()
        && (is_in(QUALIFIERS, &last) || last.len() == 1)
    {
        last = before.to_ascii_lowercase();
        parts.pop();
    }
    let modifier = parts.last().map(|part| part.to_ascii_lowercase()).unwrap_or_default();
    category_by_word(&last, &modifier, parts.is_empty())
        .unwrap_or_else(|| category_by_suffix(&parts, &last))
}

fn is_in(table: &[&str], word: &[u8]) -> bool {
    table.iter().any(|text| text.as_bytes() == word)
}

fn ends_with_any(word: &[u8], table: &[&str]) -> bool {
    table.iter().any(|text| word.ends_with(text.as_bytes()))
}

/// By the last word, if it is known by itself, and by what stands before it.
fn category_by_word(last: &[u8], modifier: &[u8], alone: bool) -> Option<Option<SecretCategory>> {
    Some(match last {
        b"phrase" => {
            matches!(modifier, b"seed" | b"pass" | b"recovery").then_some(SecretCategory::Phrase)
        }
        b"mnemonic" | b"seedphrase" => Some(SecretCategory::Phrase),
        b"pass" | b"pw" | b"psk" => Some(SecretCategory::Password),
        b"auth" | b"creds" | b"credential" | b"credentials" => Some(SecretCategory::Login),
        b"totp" => Some(SecretCategory::Secret),
        b"sig" => alone.then_some(SecretCategory::Token),
        b"key" => key_category(modifier),
        _ if is_in(SESSIONS, last) => Some(SecretCategory::Session),
        _ if is_in(PASSWORDS, last) => Some(SecretCategory::Password),
        _ if is_in(SECRETS, last) => Some(SecretCategory::Secret),
        _ if is_in(TOKENS, last) => {
            (!is_in(HARMLESS_TOKEN_WORDS, modifier)).then_some(SecretCategory::Token)
        }
        _ => return None,
    })
}

fn key_category(modifier: &[u8]) -> Option<SecretCategory> {
    match modifier {
        _ if is_in(HARMLESS_KEY_WORDS, modifier) => None,
        _ if is_in(SECRET_KEY_WORDS, modifier) => Some(SecretCategory::Token),
        _ => Some(SecretCategory::Key),
    }
}

/// By how words end that nothing separates.
fn category_by_suffix(before: &[&[u8]], last: &[u8]) -> Option<SecretCategory> {
    if ends_with_any(last, PASSWORDS) {
        return Some(SecretCategory::Password);
    }
    if ends_with_any(last, SECRETS) {
        return Some(SecretCategory::Secret);
    }
    if last.ends_with(b"pass") && last.len() > 4 && !ends_with_any(last, HARMLESS_PASS_WORDS) {
        return Some(SecretCategory::Password);
    }
    if ends_with_any(last, TOKENS) && !ends_with_any(last, HARMLESS_TOKEN_WORDS) {
        return Some(SecretCategory::Token);
    }
    if ends_with_any(last, SESSIONS) {
        return Some(SecretCategory::Session);
    }
    if last.ends_with(b"auth") && last.len() > 4 {
        return Some(SecretCategory::Login);
    }
    // `apikey`, `secretkeybase`, and in other languages `motdepasse`, which words split.
    let stem = last.strip_suffix(b"key").filter(|stem| stem.len() > 1);
    if let Some(stem) = stem {
        let known = SECRET_KEY_WORDS.iter().any(|word| stem.ends_with(word.as_bytes()));
        let none = HARMLESS_KEY_WORDS.iter().any(|word| stem.ends_with(word.as_bytes()));
        return match (known, none) {
            (_, true) => None,
            (true, _) => Some(SecretCategory::Token),
            _ => None,
        };
    }
    let joined = [before.concat().to_ascii_lowercase().as_slice(), last].concat();
    let code = before.is_empty() && ends_with_any(&joined, OTHER_PASSWORDS)
        || is_in(OTHER_PASSWORDS, &joined);
    code.then_some(SecretCategory::Password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_decides() {
        use SecretCategory::{Key, Login, Password, Phrase, Secret, Session, Token};
        for (name, wanted) in [
            ("password", Some(Password)),
            ("DB_PASSWORD", Some(Password)),
            ("dbPassword", Some(Password)),
            ("spring.datasource.password", Some(Password)),
            ("DB_PASSWORD_PROD", Some(Password)),
            ("DB_PASSWORD_2", Some(Password)),
            ("requirepass", Some(Password)),
            ("SMTP_PASS", Some(Password)),
            ("compass", None),
            ("bypass", None),
            ("password_file", None),
            ("passwordHint", None),
            ("password_hash", None),
            ("max_password_length", None),
            ("clientSecret", Some(Secret)),
            ("SECRET_KEY_BASE", Some(Token)),
            ("secretName", None),
            ("apiKey", Some(Token)),
            ("APIKEY", Some(Token)),
            ("X-Api-Key", Some(Token)),
            ("AWS_SECRET_ACCESS_KEY", Some(Token)),
            ("public_key", None),
            ("partition_key", None),
            ("cacheKey", None),
            ("monkey", None),
            ("key", Some(Key)),
            ("key_id", None),
            ("access_token", Some(Token)),
            ("authToken", Some(Token)),
            ("max_tokens", None),
            ("nextPageToken", None),
            ("tokenizer", None),
            ("_auth", Some(Login)),
            ("author", None),
            ("PHPSESSID", Some(Session)),
            ("seed_phrase", Some(Phrase)),
            ("contraseña", Some(Password)),
        ] {
            assert_eq!(category(name.as_bytes()), wanted, "{name}");
        }
    }
}
