//! Command lists: a call for the whole, and one for each part that was reached.

use crate::call_view::CallView;
use crate::run_view::RunView;

impl RunView {
    /// The command list that a call is a part of, with all parts that were reached; nothing for a call by
    /// itself.
    #[must_use]
    pub fn list_of(&self, call: &CallView) -> Option<(&CallView, Vec<&CallView>)> {
        // Most calls have nothing to do with a list, and no other call is looked at for them.
        if !call.is_list() && !call.is_part() {
            return None;
        }
        let item = |other: &CallView| other.step == call.step && other.attempt == call.attempt;
        let is_whole = |other: &CallView| other.is_list() && other.call <= call.call && item(other);
        let at = self.calls.iter().rposition(is_whole)?;
        let (whole, after) = self.calls.get(at..)?.split_first()?;
        let parts: Vec<&CallView> =
            after.iter().filter(|other| item(other)).take_while(|other| other.is_part()).collect();
        let is_one = whole.call == call.call || parts.iter().any(|part| part.call == call.call);
        is_one.then_some((whole, parts))
    }
}

impl CallView {
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
