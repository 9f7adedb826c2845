//! What the name of a setting says about its value.
//!
//! The last word that means something decides: a `password` is one, a `password_file` is a file, a
//! `partition_key` is none. Words joined without a sign between them (`sshpass`) are told by how they
//! end.

use alloc::vec::Vec;

use crate::names::{
    CODES, KEYS_OF, NO_KEYS_OF, NO_TOKENS_OF, NOT_PASSES, PASSWORDS, QUALIFIERS, SECRETS, SESSIONS,
    TOKENS,
};
use crate::value::words;

/// What a setting of such a name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
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
const WORDS: usize = 12;

/// What a setting of this name holds, if it is something to be masked.
pub(super) fn holds(name: &[u8]) -> Option<Holds> {
    let mut parts: Vec<&[u8]> = words(name).take(WORDS + 1).collect();
    if parts.len() > WORDS {
        return None;
    }
    let mut last = parts.pop()?.to_ascii_lowercase();
    while let Some(before) = parts.last()
        && (is_in(QUALIFIERS, &last) || last.len() == 1)
    {
        last = before.to_ascii_lowercase();
        parts.pop();
    }
    let modifier = parts.last().map(|own| own.to_ascii_lowercase()).unwrap_or_default();
    by_word(&last, &modifier, parts.is_empty()).unwrap_or_else(|| by_joined(&parts, &last))
}

fn is_in(table: &[&str], word: &[u8]) -> bool {
    table.iter().any(|own| own.as_bytes() == word)
}

fn ends(word: &[u8], table: &[&str]) -> bool {
    table.iter().any(|own| word.ends_with(own.as_bytes()))
}

/// By the last word, if it is known by itself, and by what stands before it.
fn by_word(last: &[u8], modifier: &[u8], alone: bool) -> Option<Option<Holds>> {
    Some(match last {
        b"phrase" => matches!(modifier, b"seed" | b"pass" | b"recovery").then_some(Holds::Phrase),
        b"mnemonic" | b"seedphrase" => Some(Holds::Phrase),
        b"pass" | b"pw" | b"psk" => Some(Holds::Password),
        b"auth" | b"creds" | b"credential" | b"credentials" => Some(Holds::Login),
        b"totp" => Some(Holds::Secret),
        b"sig" => alone.then_some(Holds::Token),
        b"key" => key(modifier),
        _ if is_in(SESSIONS, last) => Some(Holds::Session),
        _ if is_in(PASSWORDS, last) => Some(Holds::Password),
        _ if is_in(SECRETS, last) => Some(Holds::Secret),
        _ if is_in(TOKENS, last) => (!is_in(NO_TOKENS_OF, modifier)).then_some(Holds::Token),
        _ => return None,
    })
}

fn key(modifier: &[u8]) -> Option<Holds> {
    match modifier {
        _ if is_in(NO_KEYS_OF, modifier) => None,
        _ if is_in(KEYS_OF, modifier) => Some(Holds::Token),
        _ => Some(Holds::Key),
    }
}

/// By how words end that nothing separates.
fn by_joined(before: &[&[u8]], last: &[u8]) -> Option<Holds> {
    if ends(last, PASSWORDS) {
        return Some(Holds::Password);
    }
    if ends(last, SECRETS) {
        return Some(Holds::Secret);
    }
    if last.ends_with(b"pass") && last.len() > 4 && !ends(last, NOT_PASSES) {
        return Some(Holds::Password);
    }
    if ends(last, TOKENS) && !ends(last, NO_TOKENS_OF) {
        return Some(Holds::Token);
    }
    if ends(last, SESSIONS) {
        return Some(Holds::Session);
    }
    if last.ends_with(b"auth") && last.len() > 4 {
        return Some(Holds::Login);
    }
    // `apikey`, `secretkeybase`, and in other languages `motdepasse`, which words split.
    let stem = last.strip_suffix(b"key").filter(|stem| stem.len() > 1);
    if let Some(stem) = stem {
        let known = KEYS_OF.iter().any(|own| stem.ends_with(own.as_bytes()));
        let none = NO_KEYS_OF.iter().any(|own| stem.ends_with(own.as_bytes()));
        return match (known, none) {
            (_, true) => None,
            (true, _) => Some(Holds::Token),
            _ => None,
        };
    }
    let joined = [before.concat().to_ascii_lowercase().as_slice(), last].concat();
    let code = before.is_empty() && ends(&joined, CODES) || is_in(CODES, &joined);
    code.then_some(Holds::Password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_decides() {
        use Holds::{Key, Login, Password, Phrase, Secret, Session, Token};
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
            assert_eq!(holds(name.as_bytes()), wanted, "{name}");
        }
    }
}
