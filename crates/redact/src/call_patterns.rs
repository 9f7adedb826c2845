//! Passwords among the arguments of calls: `basic_auth("ada", "..")`, `jwt.sign(payload, "..")`.

use core::ops::Range;

use crate::masked_value::classify;
use crate::matches::{MaskLabel, PASSWORD, SecretMatch};
use crate::quoted_value::{is_blank, is_quote, read_quoted};
use crate::text_window::{Lookahead, TextWindow};
use crate::value::ValueLook;

/// A function, and which of its arguments is secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretCall {
    pub(super) name: &'static str,
    argument: usize,
}

const fn call(name: &'static str, argument: usize) -> SecretCall {
    SecretCall { name, argument }
}

/// Source: the documentation of each library.
pub(super) const CALLS: &[SecretCall] = &[
    call("basic_auth(", 2),
    call("BasicAuth(", 2),
    call("basicAuth(", 2),
    call("auth = (", 2),
    call("auth=(", 2),
    call(".auth(", 2),
    call("NetworkCredential(", 2),
    call("PasswordCredentials(", 2),
    call("PasswordAuthentication(", 2),
    call("PasswordAuthenticationToken(", 2),
    call("getConnection(", 3),
    call("new PDO(", 3),
    call("mysqli_connect(", 3),
    call("mysqli(", 3),
    call("jwt.sign(", 2),
    call("jwt.verify(", 2),
    call("jwt.encode(", 2),
    call("jwt.decode(", 2),
    call("createHmac(", 2),
    call("hmac.new(", 1),
    call(".login(", 2),
    call("PlainAuth(", 3),
];

/// The secret argument of a call whose name stands here.
pub(super) fn find_argument(
    view: &TextWindow<'_>,
    at: usize,
    call: &SecretCall,
) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    if !view.matches_at(at, call.name.as_bytes())? {
        return Ok(None);
    }
    let mut place = at + call.name.len();
    for number in 1..=call.argument {
        let start = view.run_end(place, 40, |byte| is_blank(byte) || byte == b'\n')?;
        view.set_undecided_from(start);
        let Some(argument) = argument(view, start)? else { return Ok(None) };
        if number == call.argument {
            return Ok(argument
                .text
                .filter(|range| looks_secret(view.bytes(range.clone())))
                .map(|range| SecretMatch::complete(MaskLabel::new(PASSWORD, "call"), range)));
        }
        let end = view.run_end(argument.end, 8, |byte| is_blank(byte) || byte == b')')?;
        if view.at(end)? != Some(b',') {
            return Ok(None);
        }
        place = end + 1;
    }
    Ok(None)
}

struct QuotedArgument {
    /// What its quotes hold.
    text: Option<Range<usize>>,
    end: usize,
}

/// An argument that begins here: a text in quotes, also one that something wraps, or an expression
/// without brackets.
fn argument(view: &TextWindow<'_>, start: usize) -> Lookahead<Option<QuotedArgument>> {
    let in_name =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'&' | b'$');
    let name = view.run_end(start, 60, in_name)?;
    let open = match view.at(name)? {
        Some(b'(') => name + 1,
        Some(byte) if is_quote(byte) && name - start <= 2 => name,
        Some(b',' | b')') => return Ok(Some(QuotedArgument { text: None, end: name })),
        _ => return Ok(None),
    };
    match read_quoted(view, open)? {
        Some(found) => {
            let end = found.range.end + 1;
            Ok(Some(QuotedArgument { text: Some(found.range), end }))
        }
        None => Ok(None),
    }
}

fn looks_secret(text: &[u8]) -> bool {
    let one = !text.iter().any(u8::is_ascii_whitespace);
    one && text.len() >= 6 && classify(text) >= ValueLook::PersonMade
}
