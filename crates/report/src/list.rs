//! Command lists: a call for the whole, and one for each part that was reached.

use crate::story::{CallStory, Story};

impl Story {
    /// The command list that a call is a part of, with all parts that were reached; nothing for a call by
    /// itself.
    #[must_use]
    pub fn list_of(&self, call: &CallStory) -> Option<(&CallStory, Vec<&CallStory>)> {
        // Most calls have nothing to do with a list, and no other call is looked at for them.
        if !call.is_list() && !call.is_part() {
            return None;
        }
        let own = |other: &CallStory| other.step == call.step && other.attempt == call.attempt;
        let is_whole = |other: &CallStory| other.is_list() && other.call <= call.call && own(other);
        let at = self.calls.iter().rposition(is_whole)?;
        let (whole, after) = self.calls.get(at..)?.split_first()?;
        let parts: Vec<&CallStory> =
            after.iter().filter(|other| own(other)).take_while(|other| other.is_part()).collect();
        let is_one = whole.call == call.call || parts.iter().any(|part| part.call == call.call);
        is_one.then_some((whole, parts))
    }
}

impl CallStory {
    /// Whether it is a command list as a whole: it only tells of its parts, each of which is a call of its
    /// own.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.get("parts").is_some())
    }

    /// Whether it is a part of a command list.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.args.as_ref().is_some_and(|args| args.get("part").is_some())
    }
}
