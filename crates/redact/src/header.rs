//! Who is there, as HTTP says it: `Authorization`, `Cookie` and `Set-Cookie`, in headers, in logs of
//! them and in code that makes them.

use core::ops::Range;

use crate::classifier::is_basic;
use crate::masked_value::{classify, is_placeholder};
use crate::matches::{MaskLabel, SECRET, SecretMatch, TOKEN};
use crate::quoted_value::{SEPARATOR, is_blank, is_name, is_quote};
use crate::text_window::{Lookahead, TextWindow};
use crate::value::{CharCounts, ValueLook};

/// The longest header.
const MAX_HEADER: usize = 1 << 14;

/// What a token of HTTP is made of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=:".contains(&byte)
}

/// What stands behind a scheme whose name stands here.
pub(super) fn find_scheme(
    view: &TextWindow<'_>,
    at: usize,
    name: &[u8],
) -> Lookahead<Option<SecretMatch>> {
    let start = view.run_end(at + name.len(), 8, is_blank)?;
    view.set_undecided_from(start);
    if start == at + name.len() || !view.begins_word(at) {
        return Ok(None);
    }
    let end = view.run_end(start, MAX_HEADER, is_token)?;
    let text = view.bytes(start..end);
    if text.len() < 8 && !view.is_cut(end) {
        return Ok(None);
    }
    let is_named = follows_authorization(view, at);
    let found = match name {
        b"basic" => is_basic(text) || is_named && classify(text) == ValueLook::Random,
        _ => is_bearer(text, is_named),
    };
    let cut = view.is_cut(end) && !text.is_empty() && is_named;
    let label = MaskLabel::new(TOKEN, if name == b"basic" { "basic" } else { "bearer" });
    // A name and a password in base64 are a password.
    let label = if name == b"basic" { MaskLabel::new(SECRET, "basic") } else { label };
    Ok((found || cut).then_some(SecretMatch {
        label,
        range: start..end,
        continues: text.len() == MAX_HEADER,
    }))
}

fn is_bearer(text: &[u8], is_named: bool) -> bool {
    let count = CharCounts::of(text);
    let least = if is_named { 12 } else { 16 };
    count.length >= least
        && (count.digit > 0 || count.length >= 24)
        && classify(text) == ValueLook::Random
}

/// Whether the name of the header stands before a scheme.
fn follows_authorization(view: &TextWindow<'_>, at: usize) -> bool {
    let joins = |byte: u8| is_blank(byte) || is_quote(byte) || b":=,>\\(`".contains(&byte);
    let end = view.run_start(at, 12, joins);
    let start = view.run_start(end, 40, is_name);
    let name = view.bytes(start..end);
    let last = name.len().checked_sub(13).and_then(|from| name.get(from..));
    last.is_some_and(|item| item.eq_ignore_ascii_case(b"authorization"))
}

/// The value of `Authorization` that no rule for a scheme takes: without one, or with parts.
pub(super) fn find_authorization(
    view: &TextWindow<'_>,
    at: usize,
) -> Lookahead<Option<SecretMatch>> {
    let behind = at + "authorization".len();
    view.set_undecided_from(behind);
    let joins = |byte: u8| is_blank(byte) || is_quote(byte) || b":=>\\`".contains(&byte);
    let start = view.run_end(behind, 12, joins)?;
    if start == behind {
        return Ok(None);
    }
    let end = view.run_end(start, MAX_HEADER, is_token)?;
    let text = until_next_header(view.bytes(start..end), b"authorization");
    let end = start + text.len();
    let label = MaskLabel::new(SECRET, "authorization");
    if view.at(end)? != Some(b' ') {
        let one = text.len() >= 16 && classify(text) == ValueLook::Random && !is_placeholder(text);
        return Ok(one.then(|| SecretMatch::complete(label, start..end)));
    }
    const PARTS: [(&[u8], &[u8]); 3] =
        [(b"digest", b"response="), (b"token", b"token="), (b"oauth", b"oauth_token=")];
    let Some((_, part)) = PARTS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) else {
        return Ok(None);
    };
    let line = view.run_end(end, 1 << 10, |byte| byte != b'\n')?;
    let rest = view.bytes(end..line);
    let Some(found) = rest.windows(part.len()).position(|item| item == *part) else {
        return Ok(None);
    };
    let start = end + found + part.len();
    let start = start + usize::from(view.at(start)?.is_some_and(is_quote));
    let end = view.run_end(start, MAX_HEADER, is_token)?;
    let random = classify(view.bytes(start..end)) == ValueLook::Random;
    Ok(random.then(|| SecretMatch::complete(label, start..end)))
}

/// What `Cookie` and `Set-Cookie` carry.
pub(super) fn find_cookie(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    let start = view.run_start(at, 8, is_name);
    let sets = view.bytes(start..at).eq_ignore_ascii_case(b"set-");
    if start != at && !sets {
        return Ok(None);
    }
    let behind = view.run_end(at + 6, 12, |byte| {
        is_quote(byte) || is_blank(byte) || b":,=>[(\\".contains(&byte)
    })?;
    view.set_undecided_from(behind);
    if behind == at + 6 {
        return Ok(None);
    }
    let ends = |byte: u8| matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'`' | SEPARATOR | b'\\');
    let end = match sets {
        true => view.run_end(behind, MAX_HEADER, |byte| !ends(byte) && byte != b';')?,
        false => view.run_end(behind, MAX_HEADER, |byte| !ends(byte))?,
    };
    // Another header of the kind says itself what it carries; else each of many would be read to the
    // end of all.
    let text = until_next_header(view.bytes(behind..end), b"cookie:").trim_ascii_end();
    let Some(first) = text.iter().position(|byte| *byte == b'=') else { return Ok(None) };
    let is_pair =
        first > 0 && text.get(..first).is_some_and(|name| name.iter().all(|byte| is_name(*byte)));
    let from = if sets { behind + first + 1 } else { behind };
    let range = from..behind + text.len();
    let telling = text.split(|byte| *byte == b';').any(|pair| {
        let mut parts = pair.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default();
        is_session_cookie(name, value)
    });
    let found = is_pair && telling;
    Ok(found.then(|| SecretMatch::complete(MaskLabel::new(SECRET, "cookie"), range)))
}

/// What stands before another header of the kind.
fn until_next_header<'t>(text: &'t [u8], name: &[u8]) -> &'t [u8] {
    let next = text.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name));
    next.and_then(|next| text.get(..next)).unwrap_or(text)
}

/// Whether a cookie says who is there, rather than what they like.
fn is_session_cookie(name: &[u8], value: &[u8]) -> bool {
    const NAMES: [&[u8]; 7] = [b"sess", b"sid", b"auth", b"token", b"jwt", b"remember", b"csrf"];
    let lower = name.to_ascii_lowercase();
    let telling = NAMES.iter().any(|name| lower.windows(name.len()).any(|part| part == *name));
    let look = classify(value);
    let long = if telling { 8 } else { 16 };
    look == ValueLook::Random && value.len() >= long
}

/// The response of a client to `AUTH`: the name and the password of a mail or a cache.
pub(super) fn find_auth(view: &TextWindow<'_>, at: usize) -> Lookahead<Option<SecretMatch>> {
    let joins = |byte: u8| is_blank(byte) || is_quote(byte);
    let mut start = view.run_end(at + 4, 8, joins)?;
    view.set_undecided_from(start);
    if start == at + 4 || !view.begins_word(at) {
        return Ok(None);
    }
    for kind in [b"plain".as_slice(), b"login"] {
        if view.matches_at(start, kind)? {
            start = view.run_end(start + kind.len(), 8, joins)?;
        }
    }
    view.set_undecided_from(start);
    let end = view.run_end(start, 512, is_token)?;
    let range: Range<usize> = start..end;
    let text = view.bytes(range.clone());
    let random =
        text.len() >= 12 && classify(text) == ValueLook::Random && CharCounts::of(text).digit > 0;
    Ok(random.then(|| SecretMatch::complete(MaskLabel::new(SECRET, "auth"), range)))
}
