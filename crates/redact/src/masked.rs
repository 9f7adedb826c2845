//! Places in masks: what a mask says is no secret, also where a URL has encoded it.

use alloc::vec::Vec;

use crate::found::{CLOSE_LAST, MASK, OPEN_LAST, masks};
use crate::view::{More, Read, View};

/// A mask's signs as URLs write them.
const OPEN: &[u8] = b"%C2%AB";
const CLOSE: &[u8] = b"%C2%BB";
const COLON: &[u8] = b"%3A";

/// Whether a place lies in a mask.
pub(super) fn holds(view: &View<'_>, place: usize) -> Read<bool> {
    Ok(in_plain(view, place)? || in_encoded(view, place)?)
}

/// Whether a place lies in a mask as we write it.
fn in_plain(view: &View<'_>, place: usize) -> Read<bool> {
    let start = view.run_back(place, MASK, |byte| byte != OPEN_LAST);
    if start == 0 || view.before(start) != Some(OPEN_LAST) {
        return Ok(false);
    }
    let open = start.saturating_sub(2);
    let found = masks(view.bytes(open..open + 2 * MASK)).next();
    match found {
        Some(mask) => Ok(mask.start == 0 && open + mask.end > place),
        None if view.is_open() && view.len() < open + 2 * MASK => {
            let closed = view.bytes(open..view.len()).contains(&CLOSE_LAST);
            if closed { Ok(false) } else { Err(More) }
        }
        None => Ok(false),
    }
}

/// Whether a place lies in a mask that is encoded.
fn in_encoded(view: &View<'_>, place: usize) -> Read<bool> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.%".contains(&byte);
    let start = view.run_back(place, MASK, part);
    let before = view.bytes(start..place);
    let says = |own: &[u8], sign: &[u8]| own.eq_ignore_ascii_case(sign);
    let Some(open) = before.windows(OPEN.len()).rposition(|own| says(own, OPEN)) else {
        return Ok(false);
    };
    let inner = start + open + OPEN.len();
    let text = view.bytes(inner..view.run(inner, 2 * MASK, part)?);
    let Some(close) = text.windows(CLOSE.len()).position(|own| says(own, CLOSE)) else {
        return Ok(false);
    };
    let end = inner + close + CLOSE.len();
    Ok(end > place && is_mask(text.get(..close).unwrap_or_default()))
}

/// Whether what stands between the signs is a mask's.
fn is_mask(mut inner: &[u8]) -> bool {
    let mut made: Vec<u8> = "«".into();
    while let Some((first, rest)) = inner.split_first() {
        let is_colon = inner.get(..COLON.len()).is_some_and(|own| own.eq_ignore_ascii_case(COLON));
        made.push(if is_colon { b':' } else { *first });
        inner = if is_colon { inner.get(COLON.len()..).unwrap_or_default() } else { rest };
    }
    made.extend("»".bytes());
    masks(&made).next() == Some(0..made.len())
}
