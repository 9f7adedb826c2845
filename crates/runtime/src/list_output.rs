//! What the parts of a list print, one behind the other.

use capsule_base::limits;
use serde_json::{Map, Value};

/// What a result holds of a stream: the text, and the end of one that was cut.
pub(crate) fn texts(value: &Map<String, Value>, name: &str) -> [Option<String>; 2] {
    [name.to_owned(), format!("{name}_tail")]
        .map(|name| value.get(&name).and_then(Value::as_str).map(str::to_owned))
}

/// A text, and the end of one that was cut.
pub(crate) type HeadAndTail = (Option<String>, Option<String>);

/// Two outputs, one behind the other, up to the most that a command may give. Where the first was cut, all of
/// the other lies behind the gap.
pub(crate) fn join_outputs(
    (before, before_tail): HeadAndTail,
    (after, after_tail): HeadAndTail,
) -> HeadAndTail {
    let most = usize::try_from(limits::OUTPUT_BYTES_MAX).unwrap_or(usize::MAX);
    match before_tail {
        Some(first) => {
            (before, after_tail.or_else(|| Some(last(first + &after.unwrap_or_default(), most))))
        }
        None => {
            let text =
                before.map(|before| first(before + after.as_deref().unwrap_or_default(), most));
            (text.or(after), after_tail)
        }
    }
}

/// The first bytes of a text, as far as they are whole characters.
fn first(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

/// The last ones.
fn last(mut text: String, most: usize) -> String {
    text.drain(..text.ceil_char_boundary(text.len().saturating_sub(most)));
    text
}
