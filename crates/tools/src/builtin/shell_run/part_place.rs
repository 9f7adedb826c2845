//! The place of a part in its list.

use capsule_command::shell_syntax::{ScriptElement, parse};

/// What the place of a part in its list says of it.
pub(super) struct PartPlace {
    /// Whether it is one part of a list.
    pub(super) is_part: bool,
    /// Whether it runs by itself: it is one part, or the list has no other.
    pub(super) is_single: bool,
    /// Whether it is the end of the list.
    pub(super) is_end: bool,
    /// Its number among the parts that run in the background.
    pub(super) job: Option<u64>,
    /// What it is, as it is typed.
    pub(super) element: Option<ScriptElement>,
}

impl PartPlace {
    pub(super) fn of(text: Option<&str>, part: Option<u64>) -> Self {
        let script = text.and_then(|text| parse(text).ok()).unwrap_or_default();
        let number = part.and_then(|number| usize::try_from(number).ok()).unwrap_or(1);
        let before = script.elements.iter().take(number);
        let job = before.filter(|element| element.is_background).count();
        let is_single = part.is_some() || script.is_single();
        let is_end = number > script.elements.len();
        let element = part.and_then(|_| script.elements.get(number.checked_sub(1)?).cloned());
        Self { is_part: part.is_some(), is_single, is_end, job: u64::try_from(job).ok(), element }
    }
}
