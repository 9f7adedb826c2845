//! Places in masks: what a mask says is no secret, also where a URL has encoded it.

use alloc::vec::Vec;

use crate::found::{CLOSE_LAST, Label, MASK, OPEN_LAST, labelled};
use crate::view::{More, Read, View};

/// A mask's signs as URLs write them.
const OPEN: &[u8] = b"%C2%AB";
const CLOSE: &[u8] = b"%C2%BB";
const COLON: &[u8] = b"%3A";

/// What the mask says in which a place lies, and where it ends.
pub(super) fn around(view: &View<'_>, place: usize) -> Read<Option<(Label, usize)>> {
    match in_plain(view, place)? {
        Some(found) => Ok(Some(found)),
        None => in_encoded(view, place),
    }
}

/// A mask as we write it.
fn in_plain(view: &View<'_>, place: usize) -> Read<Option<(Label, usize)>> {
    let start = view.run_back(place, MASK, |byte| byte != OPEN_LAST);
    if start == 0 || view.before(start) != Some(OPEN_LAST) {
        return Ok(None);
    }
    let open = start.saturating_sub(2);
    let found = labelled(view.bytes(open..open + 2 * MASK)).next();
    match found {
        Some((mask, label)) => {
            let end = open + mask.end;
            Ok((mask.start == 0 && end > place).then_some((label, end)))
        }
        None if view.is_open() && view.len() < open + 2 * MASK => {
            let closed = view.bytes(open..view.len()).contains(&CLOSE_LAST);
            if closed { Ok(None) } else { Err(More) }
        }
        None => Ok(None),
    }
}

/// A mask that is encoded.
fn in_encoded(view: &View<'_>, place: usize) -> Read<Option<(Label, usize)>> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.%".contains(&byte);
    let start = view.run_back(place, MASK, part);
    let before = view.bytes(start..place);
    let says = |own: &[u8], sign: &[u8]| own.eq_ignore_ascii_case(sign);
    let Some(open) = before.windows(OPEN.len()).rposition(|own| says(own, OPEN)) else {
        return Ok(None);
    };
    let inner = start + open + OPEN.len();
    let text = view.bytes(inner..view.run(inner, 2 * MASK, part)?);
    let Some(close) = text.windows(CLOSE.len()).position(|own| says(own, CLOSE)) else {
        return Ok(None);
    };
    let end = inner + close + CLOSE.len();
    let label = decoded(text.get(..close).unwrap_or_default()).filter(|_| end > place);
    Ok(label.map(|label| (label, end)))
}

/// What stands between the signs, if it is a mask's.
fn decoded(mut inner: &[u8]) -> Option<Label> {
    let mut made: Vec<u8> = "«".into();
    while let Some((first, rest)) = inner.split_first() {
        let is_colon = inner.get(..COLON.len()).is_some_and(|own| own.eq_ignore_ascii_case(COLON));
        made.push(if is_colon { b':' } else { *first });
        inner = if is_colon { inner.get(COLON.len()..).unwrap_or_default() } else { rest };
    }
    made.extend("»".bytes());
    let (range, label) = labelled(&made).next()?;
    (range == (0..made.len())).then_some(label)
}
