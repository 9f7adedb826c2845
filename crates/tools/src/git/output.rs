//! What git prints.

use capsule_sandbox::CapturedOutput;

/// Git's answer in fields that a NUL ends. What comes behind the last NUL was cut off.
pub(crate) fn nul_fields(answer: &CapturedOutput) -> impl Iterator<Item = &[u8]> {
    let end = answer.bytes.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let whole = answer.bytes.get(..end).filter(|whole| !whole.is_empty());
    whole.into_iter().flat_map(|whole| whole.split(|byte| *byte == 0))
}

/// Bytes of a repository as text: names of people, messages and files are in any encoding.
pub(crate) fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
