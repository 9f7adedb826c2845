//! Who is there, as HTTP says it: `Authorization`, `Cookie` and `Set-Cookie`, in headers, in logs of
//! them and in code that makes them.

use core::ops::Range;

use crate::found::{Found, Label, SECRET, TOKEN};
use crate::judge::is_basic;
use crate::quoted::{SEPARATOR, is_blank, is_name, is_quote};
use crate::value::{Count, Look, is_stand_in, look};
use crate::view::{Read, View};

/// The longest header.
const HEADER: usize = 1 << 14;

/// What a token of HTTP is made of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=:".contains(&byte)
}

/// What stands behind a scheme whose name stands here.
pub(super) fn scheme(view: &View<'_>, at: usize, name: &[u8]) -> Read<Option<Found>> {
    let start = view.run(at + name.len(), 8, is_blank)?;
    view.hold(start);
    if start == at + name.len() || !view.begins_word(at) {
        return Ok(None);
    }
    let end = view.run(start, HEADER, is_token)?;
    let text = view.bytes(start..end);
    if text.len() < 8 && !view.is_cut(end) {
        return Ok(None);
    }
    let told = follows_authorization(view, at);
    let found = match name {
        b"basic" => is_basic(text) || told && look(text) == Look::Random,
        _ => is_bearer(text, told),
    };
    let cut = view.is_cut(end) && !text.is_empty() && told;
    let label = Label::new(TOKEN, if name == b"basic" { "basic" } else { "bearer" });
    // A name and a password in base64 are a password.
    let label = if name == b"basic" { Label::new(SECRET, "basic") } else { label };
    Ok((found || cut).then_some(Found { label, range: start..end, goes_on: text.len() == HEADER }))
}

fn is_bearer(text: &[u8], told: bool) -> bool {
    let count = Count::of(text);
    let least = if told { 12 } else { 16 };
    count.length >= least && (count.digit > 0 || count.length >= 24) && look(text) == Look::Random
}

/// Whether the name of the header stands before a scheme.
fn follows_authorization(view: &View<'_>, at: usize) -> bool {
    let joins = |byte: u8| is_blank(byte) || is_quote(byte) || b":=,>\\(`".contains(&byte);
    let end = view.run_back(at, 12, joins);
    let start = view.run_back(end, 40, is_name);
    let name = view.bytes(start..end);
    let last = name.len().checked_sub(13).and_then(|from| name.get(from..));
    last.is_some_and(|own| own.eq_ignore_ascii_case(b"authorization"))
}

/// The value of `Authorization` that no rule for a scheme takes: without one, or with parts.
pub(super) fn authorization(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    let behind = at + "authorization".len();
    view.hold(behind);
    let joins = |byte: u8| is_blank(byte) || is_quote(byte) || b":=>\\`".contains(&byte);
    let start = view.run(behind, 12, joins)?;
    if start == behind {
        return Ok(None);
    }
    let end = view.run(start, HEADER, is_token)?;
    let text = until_the_next(view.bytes(start..end), b"authorization");
    let end = start + text.len();
    let label = Label::new(SECRET, "authorization");
    if view.at(end)? != Some(b' ') {
        let one = text.len() >= 16 && look(text) == Look::Random && !is_stand_in(text);
        return Ok(one.then(|| Found::whole(label, start..end)));
    }
    const PARTS: [(&[u8], &[u8]); 3] =
        [(b"digest", b"response="), (b"token", b"token="), (b"oauth", b"oauth_token=")];
    let Some((_, part)) = PARTS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) else {
        return Ok(None);
    };
    let line = view.run(end, 1 << 10, |byte| byte != b'\n')?;
    let rest = view.bytes(end..line);
    let Some(found) = rest.windows(part.len()).position(|own| own == *part) else {
        return Ok(None);
    };
    let start = end + found + part.len();
    let start = start + usize::from(view.at(start)?.is_some_and(is_quote));
    let end = view.run(start, HEADER, is_token)?;
    let random = look(view.bytes(start..end)) == Look::Random;
    Ok(random.then(|| Found::whole(label, start..end)))
}

/// What `Cookie` and `Set-Cookie` carry.
pub(super) fn cookie(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    let start = view.run_back(at, 8, is_name);
    let sets = view.bytes(start..at).eq_ignore_ascii_case(b"set-");
    if start != at && !sets {
        return Ok(None);
    }
    let behind = view
        .run(at + 6, 12, |byte| is_quote(byte) || is_blank(byte) || b":,=>[(\\".contains(&byte))?;
    view.hold(behind);
    if behind == at + 6 {
        return Ok(None);
    }
    let ends = |byte: u8| matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'`' | SEPARATOR | b'\\');
    let end = match sets {
        true => view.run(behind, HEADER, |byte| !ends(byte) && byte != b';')?,
        false => view.run(behind, HEADER, |byte| !ends(byte))?,
    };
    // Another header of the kind says itself what it carries; else each of many would be read to the
    // end of all.
    let text = until_the_next(view.bytes(behind..end), b"cookie:").trim_ascii_end();
    let Some(first) = text.iter().position(|byte| *byte == b'=') else { return Ok(None) };
    let is_pair =
        first > 0 && text.get(..first).is_some_and(|name| name.iter().all(|byte| is_name(*byte)));
    let from = if sets { behind + first + 1 } else { behind };
    let range = from..behind + text.len();
    let telling = text.split(|byte| *byte == b';').any(|pair| {
        let mut parts = pair.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default();
        is_who(name, value)
    });
    let found = is_pair && telling;
    Ok(found.then(|| Found::whole(Label::new(SECRET, "cookie"), range)))
}

/// What stands before another header of the kind.
fn until_the_next<'t>(text: &'t [u8], name: &[u8]) -> &'t [u8] {
    let next = text.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name));
    next.and_then(|next| text.get(..next)).unwrap_or(text)
}

/// Whether a cookie says who is there, rather than what they like.
fn is_who(name: &[u8], value: &[u8]) -> bool {
    const NAMES: [&[u8]; 7] = [b"sess", b"sid", b"auth", b"token", b"jwt", b"remember", b"csrf"];
    let lower = name.to_ascii_lowercase();
    let telling = NAMES.iter().any(|own| lower.windows(own.len()).any(|part| part == *own));
    let own = look(value);
    let long = if telling { 8 } else { 16 };
    own == Look::Random && value.len() >= long
}

/// The response of a client to `AUTH`: the name and the password of a mail or a cache.
pub(super) fn auth(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    let joins = |byte: u8| is_blank(byte) || is_quote(byte);
    let mut start = view.run(at + 4, 8, joins)?;
    view.hold(start);
    if start == at + 4 || !view.begins_word(at) {
        return Ok(None);
    }
    for kind in [b"plain".as_slice(), b"login"] {
        if view.says(start, kind)? {
            start = view.run(start + kind.len(), 8, joins)?;
        }
    }
    view.hold(start);
    let end = view.run(start, 512, is_token)?;
    let range: Range<usize> = start..end;
    let text = view.bytes(range.clone());
    let random = text.len() >= 12 && look(text) == Look::Random && Count::of(text).digit > 0;
    Ok(random.then(|| Found::whole(Label::new(SECRET, "auth"), range)))
}
