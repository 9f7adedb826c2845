//! The commands of a list, below the step that runs it.

use capsule_base::escape;

use super::{Console, Sign, details_text};
use crate::call_view::CallView;

impl Console {
    /// Each command that was reached, with what it changed.
    pub(super) fn parts(&self, parts: &[&CallView]) -> Vec<String> {
        parts.iter().flat_map(|part| self.part(part)).collect()
    }

    fn part(&self, part: &CallView) -> Vec<String> {
        let sign = Sign::of_call(part);
        let icon = if self.layout.plain { String::new() } else { format!("{} ", sign.icon) };
        let about = part.summary();
        let head = format!("{icon}{} {}", sign.word, escape::line(&about));
        let mut lines = self.wrapped_bar(&format!("{head}  {}", details_text(part, &sign)));
        lines.extend(self.effect_lines(part));
        lines
    }
}
