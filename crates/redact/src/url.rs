//! Passwords in addresses: `https://user:password@host`, and in what databases have in their place.

use core::ops::Range;

use crate::found::{Found, Label, PASSWORD, SECRET};
use crate::quoted::{SEPARATOR, is_quote};
use crate::value::{Count, Look, is_hex, is_masked, is_template, look, words};
use crate::view::{Read, View};

/// The longest name and password of an address.
const AUTHORITY: usize = 1 << 10;

const fn label() -> Label {
    Label::new(PASSWORD, "url")
}

/// The password of an address whose `://` stands here.
pub(super) fn find(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    let start = at + 3;
    view.hold(start);
    let ends = |byte: u8| {
        byte.is_ascii_whitespace()
            || is_quote(byte)
            || matches!(byte, b'/' | b'?' | b'#' | b'<' | b'>' | b'\\' | SEPARATOR)
    };
    // A template in place of a password may hold anything, and is none.
    let end = view.run(start, AUTHORITY, |byte| !ends(byte))?;
    let text = view.bytes(start..end);
    let Some(host) = text.iter().rposition(|byte| *byte == b'@') else {
        let cut = view.is_cut(end) && text.contains(&b':');
        return Ok(cut.then(|| Found::whole(label(), start..end)));
    };
    let user = text.get(..host).unwrap_or_default();
    let (name, word) = match user.iter().position(|byte| *byte == b':') {
        Some(colon) => (start..start + colon, start + colon + 1..start + host),
        None => (start..start + host, start + host..start + host),
    };
    Ok(in_user(view, name, word))
}

/// The secret among a name and a password.
fn in_user(view: &View<'_>, name: Range<usize>, word: Range<usize>) -> Option<Found> {
    const NO_WORDS: [&[u8]; 2] = [b"x-oauth-basic", b"x-access-token"];
    let (user, password) = (view.bytes(name.clone()), view.bytes(word.clone()));
    if !password.is_empty() && !NO_WORDS.contains(&password) {
        return is_password(password).then(|| Found::whole(label(), word));
    }
    // A token in place of a name. Where errors are reported to, it is public.
    let public = user.len() == 32 && is_hex(user);
    let random = look(user) == Look::Random && user.len() >= 16 && Count::of(user).digit > 0;
    (random && !public).then(|| Found::whole(Label::new(SECRET, "url"), name))
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
    let digits = Count::of(word).digit;
    let stands = digits == 0 && words(word).any(|_| true) && {
        words(word).all(|own| NAMES.iter().any(|name| name.eq_ignore_ascii_case(own)))
    };
    let short = word.len() < 3;
    let signs = !word.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let upper = word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let filled = is_masked(word) || word.iter().all(|byte| byte.eq_ignore_ascii_case(&b'x'));
    !(stands || short || signs || upper || filled || is_template(word))
}

/// The password in `user/password@host`, behind a word that says that it is Oracle's.
pub(super) fn oracle(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    view.hold(at);
    let start = view.run(at, 128, |byte| !byte.is_ascii_whitespace() && byte != b'/')? + 1;
    view.hold(start);
    let ends = |byte: u8| byte.is_ascii_whitespace() || is_quote(byte) || byte == b'@';
    let end = view.run(start, 128, |byte| !ends(byte))?;
    let word = view.bytes(start..end);
    let is_one = view.at(end)? == Some(b'@') && word.len() >= 3 && is_password(word);
    Ok(is_one.then(|| Found::whole(label(), start..end)))
}

/// The password in `user:password@tcp(host)`, whose `@tcp(` stands here.
pub(super) fn go(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    let ends = |byte: u8| byte.is_ascii_whitespace() || is_quote(byte) || byte == b':';
    let start = view.run_back(at, 100, |byte| !ends(byte));
    let word = view.bytes(start..at);
    let is_one = view.before(start) == Some(b':') && !word.is_empty() && is_password(word);
    Ok(is_one.then(|| Found::whole(label(), start..at)))
}

/// The last field of a line of `.pgpass`: `host:port:database:user:password`.
pub(super) fn fields(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    view.hold(at);
    let Some(host) = view.line_before(at) else { return Ok(None) };
    let behind = view.run(at + 1, 6, |byte| byte != b':' && !byte.is_ascii_whitespace())?;
    let port = view.bytes(at + 1..behind);
    let plain = |own: &[u8]| {
        !own.is_empty()
            && own.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-*".contains(byte))
    };
    let is_port = |own: &[u8]| {
        own == b"*" || (2..=5).contains(&own.len()) && own.iter().all(u8::is_ascii_digit)
    };
    if !plain(host) || !is_port(port) || view.at(behind)? != Some(b':') {
        return Ok(None);
    }
    let end = view.run(behind + 1, 512, |byte| !byte.is_ascii_whitespace())?;
    let line = view.bytes(behind + 1..end);
    let mut parts = line.splitn(3, |byte| *byte == b':');
    let (database, user) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let word = parts.next().unwrap_or_default();
    let start = end - word.len();
    let is_one = plain(database) && plain(user) && word.len() >= 4 && look(word) >= Look::Chosen;
    Ok(is_one.then(|| Found::whole(label(), start..end)))
}
