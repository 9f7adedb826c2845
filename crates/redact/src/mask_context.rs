//! Places in masks: what a mask says is no secret, also where a URL has encoded it.

use alloc::vec::Vec;

use crate::matches::{CLOSE_LAST, MASK_BYTES, MaskLabel, OPEN_LAST, labelled_masks};
use crate::text_window::{Lookahead, NeedsMore, TextWindow};

/// A mask's signs as URLs write them.
const OPEN: &[u8] = b"%C2%AB";
const CLOSE: &[u8] = b"%C2%BB";
const COLON: &[u8] = b"%3A";

/// What the mask says in which a place lies, and where it ends.
pub(super) fn enclosing_mask(
    view: &TextWindow<'_>,
    place: usize,
) -> Lookahead<Option<(MaskLabel, usize)>> {
    match plain_mask(view, place)? {
        Some(found) => Ok(Some(found)),
        None => encoded_mask(view, place),
    }
}

/// A mask as we write it.
fn plain_mask(view: &TextWindow<'_>, place: usize) -> Lookahead<Option<(MaskLabel, usize)>> {
    let start = view.run_start(place, MASK_BYTES, |byte| byte != OPEN_LAST);
    if start == 0 || view.before(start) != Some(OPEN_LAST) {
        return Ok(None);
    }
    let open = start.saturating_sub(2);
    let found = labelled_masks(view.bytes(open..open + 2 * MASK_BYTES)).next();
    match found {
        Some((mask, label)) => {
            let end = open + mask.end;
            Ok((mask.start == 0 && end > place).then_some((label, end)))
        }
        None if view.is_open() && view.len() < open + 2 * MASK_BYTES => {
            let closed = view.bytes(open..view.len()).contains(&CLOSE_LAST);
            if closed { Ok(None) } else { Err(NeedsMore) }
        }
        None => Ok(None),
    }
}

/// A mask that is encoded.
fn encoded_mask(view: &TextWindow<'_>, place: usize) -> Lookahead<Option<(MaskLabel, usize)>> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.%".contains(&byte);
    let start = view.run_start(place, MASK_BYTES, part);
    let before = view.bytes(start..place);
    let says = |item: &[u8], sign: &[u8]| item.eq_ignore_ascii_case(sign);
    let Some(open) = before.windows(OPEN.len()).rposition(|own| says(own, OPEN)) else {
        return Ok(None);
    };
    let inner = start + open + OPEN.len();
    let text = view.bytes(inner..view.run_end(inner, 2 * MASK_BYTES, part)?);
    let Some(close) = text.windows(CLOSE.len()).position(|item| says(item, CLOSE)) else {
        return Ok(None);
    };
    let end = inner + close + CLOSE.len();
    let label = decode_label(text.get(..close).unwrap_or_default()).filter(|_| end > place);
    Ok(label.map(|label| (label, end)))
}

/// What stands between the signs, if it is a mask's.
fn decode_label(mut inner: &[u8]) -> Option<MaskLabel> {
    let mut made: Vec<u8> = "«".into();
    while let Some((first, rest)) = inner.split_first() {
        let is_colon =
            inner.get(..COLON.len()).is_some_and(|item| item.eq_ignore_ascii_case(COLON));
        made.push(if is_colon { b':' } else { *first });
        inner = if is_colon { inner.get(COLON.len()..).unwrap_or_default() } else { rest };
    }
    made.extend("»".bytes());
    let (range, label) = labelled_masks(&made).next()?;
    (range == (0..made.len())).then_some(label)
}
