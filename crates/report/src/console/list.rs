//! The commands of a list, below the step that runs it.

use capsule_core::escape;

use super::{Console, Sign, details};
use crate::story::CallStory;

impl Console {
    /// Each command that was reached, with what it changed.
    pub(super) fn parts(&self, parts: &[&CallStory]) -> Vec<String> {
        parts.iter().flat_map(|part| self.part(part)).collect()
    }

    fn part(&self, part: &CallStory) -> Vec<String> {
        let sign = Sign::of_call(part);
        let icon = if self.layout.plain { String::new() } else { format!("{} ", sign.icon) };
        let about = part.about();
        let head = format!("{icon}{} {}", sign.word, escape::line(&about));
        let mut lines = self.bar(&format!("{head}  {}", details(part, &sign)));
        lines.extend(self.changed(part));
        lines
    }
}
