//! Passwords in addresses: `https://user:password@host`, and in what databases have in their place.

use core::ops::Range;

use crate::masked_value::{classify, is_masked};
use crate::matches::{MaskLabel, PASSWORD, SECRET, SecretMatch};
use crate::quoted_value::{SEPARATOR, is_quote};
use crate::text_window::{Lookahead, TextWindow};
use crate::value::{CharCounts, ValueLook, is_hex, is_template, words};

/// The longest name and password of an address.
const MAX_USERINFO: usize = 1 << 10;

const fn label() -> MaskLabel {
    MaskLabel::new(PASSWORD, "url")
}

/// The password of an address whose `://` stands here.
pub(super) fn find_password(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    let start = at + 3;
    view.set_undecided_from(start);
    let ends = |byte: u8| {
        byte.is_ascii_whitespace()
            || is_quote(byte)
            || matches!(byte, b'/' | b'?' | b'#' | b'<' | b'>' | b'\\' | SEPARATOR)
    };
    // A template in place of a password may hold anything, and is none.
    let end = view.run_end(start, MAX_USERINFO, |byte| !ends(byte))?;
    let text = view.bytes(start..end);
    let Some(host) = text.iter().rposition(|byte| *byte == b'@') else {
        let cut = view.is_cut(end) && text.contains(&b':');
        return Ok(cut.then(|| SecretMatch::complete(label(), start..end)));
    };
    let user = text.get(..host).unwrap_or_default();
    let (name, word) = match user.iter().position(|byte| *byte == b':') {
        Some(colon) => (start..start + colon, start + colon + 1..start + host),
        None => (start..start + host, start + host..start + host),
    };
    Ok(userinfo_secret(view, name, word))
}

/// The secret among a name and a password.
fn userinfo_secret(
    view: &TextWindow<'_>,
    name: Range<usize>,
    word: Range<usize>,
) -> Option<SecretMatch> {
    const NO_WORDS: [&[u8]; 2] = [b"x-oauth-basic", b"x-access-token"];
    let (user, password) = (view.bytes(name.clone()), view.bytes(word.clone()));
    if !password.is_empty() && !NO_WORDS.contains(&password) {
        return is_password(password).then(|| SecretMatch::complete(label(), word));
    }
    // A token in place of a name. Where errors are reported to, it is public.
    let public = user.len() == 32 && is_hex(user);
    let random =
        classify(user) == ValueLook::Random && user.len() >= 16 && CharCounts::of(user).digit > 0;
    (random && !public).then(|| SecretMatch::complete(MaskLabel::new(SECRET, "url"), name))
}

/// Whether what stands for a password in an address is one.
fn is_password(word: &[u8]) -> bool {
    const NAMES: [&[u8]; 15] = [
        b"password",
        b"pass",
        b"passwd",
        b"pwd",
        b"pw",
        b"secret",
        b"token",
        b"key",
        b"your",
        b"my",
        b"example",
        b"changeme",
        b"foo",
        b"bar",
        b"foobar",
    ];
    let digits = CharCounts::of(word).digit;
    let stands = digits == 0 && words(word).any(|_| true) && {
        words(word).all(|word| NAMES.iter().any(|name| name.eq_ignore_ascii_case(word)))
    };
    let short = word.len() < 3;
    let signs = !word.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let upper = word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let filled = is_masked(word) || word.iter().all(|byte| byte.eq_ignore_ascii_case(&b'x'));
    !(stands || short || signs || upper || filled || is_template(word))
}

/// The password in `user/password@host`, behind a word that says that it is Oracle's.
pub(super) fn find_oracle(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    let start = view.run_end(at, 128, |byte| !byte.is_ascii_whitespace() && byte != b'/')? + 1;
    view.set_undecided_from(start);
    let ends = |byte: u8| byte.is_ascii_whitespace() || is_quote(byte) || byte == b'@';
    let end = view.run_end(start, 128, |byte| !ends(byte))?;
    let word = view.bytes(start..end);
    let is_one = view.at(end)? == Some(b'@') && word.len() >= 3 && is_password(word);
    Ok(is_one.then(|| SecretMatch::complete(label(), start..end)))
}

/// The password in `user:password@tcp(host)`, whose `@tcp(` stands here.
pub(super) fn find_go_dsn(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    let ends = |byte: u8| byte.is_ascii_whitespace() || is_quote(byte) || byte == b':';
    let start = view.run_start(at, 100, |byte| !ends(byte));
    let word = view.bytes(start..at);
    let is_one = view.before(start) == Some(b':') && !word.is_empty() && is_password(word);
    Ok(is_one.then(|| SecretMatch::complete(label(), start..at)))
}

/// The last field of a line of `.pgpass`: `host:port:database:user:password`.
pub(super) fn find_pgpass(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    let Some(host) = view.line_before(at) else { return Ok(None) };
    let behind = view.run_end(at + 1, 6, |byte| byte != b':' && !byte.is_ascii_whitespace())?;
    let port = view.bytes(at + 1..behind);
    let plain = |item: &[u8]| {
        !item.is_empty()
            && item.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-*".contains(byte))
    };
    let is_port = |item: &[u8]| {
        item == b"*" || (2..=5).contains(&item.len()) && item.iter().all(u8::is_ascii_digit)
    };
    if !plain(host) || !is_port(port) || view.at(behind)? != Some(b':') {
        return Ok(None);
    }
    let end = view.run_end(behind + 1, 512, |byte| !byte.is_ascii_whitespace())?;
    let line = view.bytes(behind + 1..end);
    let mut parts = line.splitn(3, |byte| *byte == b':');
    let (database, user) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let word = parts.next().unwrap_or_default();
    let start = end - word.len();
    let is_one = plain(database)
        && plain(user)
        && word.len() >= 4
        && classify(word) >= ValueLook::PersonMade;
    Ok(is_one.then(|| SecretMatch::complete(label(), start..end)))
}
