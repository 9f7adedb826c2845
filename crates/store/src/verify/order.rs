//! The order of the events: each stands where its own bytes say.

use capsule_base::digest::Digest;
use capsule_base::limits::EXACT_INTEGER;
use capsule_core::journal::{Entry, Event};
use capsule_core::policy::PayloadRetention;

use super::checker::{Checker, Columns, Walk};
use super::fault::{Fault, fault};

/// Whether an event is about a run and stands in none.
const fn belongs_to_no_run(event: &Event) -> bool {
    match event {
        Event::RunExported(_)
        | Event::ChangesDiscarded { .. }
        | Event::GrantRevoked { .. }
        | Event::UndoDropped { .. }
        | Event::PayloadErased { .. }
        | Event::Checkpoint { .. } => true,
        Event::RunOpened(_)
        | Event::CallProposed(_)
        | Event::CallDecided(_)
        | Event::ApprovalShown(_)
        | Event::PlanShown(_)
        | Event::ConnectionShown(_)
        | Event::ConnectionAnswered(_)
        | Event::PlanAnswered(_)
        | Event::ApprovalWaiting(_)
        | Event::AnswerGiven(_)
        | Event::RunResumed(_)
        | Event::SessionJoined(_)
        | Event::ChangesApplied { .. }
        | Event::UserMessage { .. }
        | Event::UserAnswered { .. }
        | Event::ModelRequested(_)
        | Event::ModelAnswered(_)
        | Event::ApprovalAnswered(_)
        | Event::GrantUsed(_)
        | Event::ApprovalCovered { .. }
        | Event::CallStarted(_)
        | Event::ConnectionRequested(_)
        | Event::ConnectionClosed(_)
        | Event::CallFinished(_)
        | Event::StepEnded(_)
        | Event::FeedbackGiven(_)
        | Event::RunSealed(_) => false,
    }
}

/// Whether a number of an event is larger than those that every reader of JSON has exactly.
pub(super) fn has_inexact_number(bytes: &[u8]) -> bool {
    let (mut number, mut is_text, mut is_escaped) = (0_u64, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'0'..=b'9' if !is_text => {
                number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
                if number > EXACT_INTEGER {
                    return true;
                }
                continue;
            }
            _ => {}
        }
        number = 0;
    }
    false
}

impl Checker<'_> {
    /// The event stands where its own bytes say, behind the one that they name; gives whether its
    /// run keeps payloads.
    pub(super) fn check_order(
        &mut self,
        place: &str,
        row: &Columns,
        entry: &Entry,
    ) -> Result<PayloadRetention, Fault> {
        let text = entry.run.map(|run| run.to_string());
        let kept = (text.as_deref(), crate::write::to_i64(entry.seq), entry.event.kind());
        if kept != (row.run.as_deref(), row.seq, row.kind.as_str()) {
            return Err(fault(place, "its columns say something else than its bytes"));
        }
        let Some(run) = entry.run else {
            let is_ours = belongs_to_no_run(&entry.event) && entry.seq == 0 && entry.prev.is_none();
            let what = "an event outside of runs has another kind, number 0 and no event before it";
            return if is_ours { Ok(PayloadRetention::Full) } else { Err(fault(place, what)) };
        };
        if belongs_to_no_run(&entry.event) {
            return Err(fault(place, "an event of its kind belongs to no run"));
        }
        let opened = match &entry.event {
            Event::RunOpened(opened) => Some(opened.payloads),
            _ => None,
        };
        let (seq, prev, least, keeps) = match self.open.get(&run) {
            Some(walk) => (walk.seq + 1, Some(walk.prev), walk.at, walk.payloads),
            None => (1, None, 0, opened.unwrap_or_default()),
        };
        if entry.seq != seq || entry.prev != prev || opened.is_some() != (seq == 1) {
            let what = match prev {
                Some(_) => "it does not follow the run's event before it",
                None => "the run does not begin with it, or was sealed before",
            };
            return Err(fault(place, what));
        }
        if entry.at < least {
            return Err(fault(place, "its time is before that of the run's event before it"));
        }
        let wanted = self.wanted == Some(run.to_string().as_str());
        self.proof.events += u64::from(wanted);
        if let Event::RunSealed(sealed) = &entry.event {
            if sealed.events != entry.seq {
                return Err(fault(place, "the seal counts other events than there are"));
            }
            self.open.remove(&run);
            self.proof.sealed += 1;
            self.proof.run_sealed |= wanted;
        } else {
            let prev = Digest::of(&row.bytes);
            self.open.insert(run, Walk { seq, prev, at: entry.at, payloads: keeps });
        }
        Ok(keeps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_readers_round_are_found() {
        for (text, is_inexact) in [
            (r#"{"at":9007199254740992}"#, false),
            (r#"{"at":9007199254740993}"#, true),
            (r#"{"at":-9007199254740993}"#, true),
            (r#"[900719925474099,9,3]"#, false),
            (r#"{"inode":"18446744073709551615"}"#, false),
            (r#"{"a\\":"99999999999999999","b":1}"#, false),
            (r#"{"a\"99999999999999999":1}"#, false),
            (r#"{"a":[{},184467440737095516150]}"#, true),
        ] {
            assert_eq!(has_inexact_number(text.as_bytes()), is_inexact, "{text}");
        }
    }
}
