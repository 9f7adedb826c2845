//! A recording as the journal of a replay: each event that the replay writes is compared with the recorded one.

use std::cell::RefCell;
use std::rc::Rc;

use capsule_base::digest::Digest;
use capsule_core::journal::{
    Durability, Entry, EntryPosition, Event, Journal, PayloadClass, PayloadRef, RecordedDecision,
    VERSION,
};

use super::comparison::{compare_events, unconsumed};
use super::error::ReplayError;
use super::recording::Recording;

impl Recording {
    /// Says whether everything that was recorded was used.
    pub(super) fn require_consumed(&self) -> Result<(), ReplayError> {
        match self.load_event(1)? {
            None => Ok(()),
            Some(_) => Err(ReplayError::Diverged(vec![unconsumed(self)])),
        }
    }

    fn append(&mut self, event: Event) -> Result<EntryPosition, ReplayError> {
        let Some(near) = self.load_event(1)? else {
            return Err(ReplayError::Diverged(vec![compare_events(self, None, &event)]));
        };
        let recorded = &near.stored;
        let entry = Entry {
            v: VERSION,
            run: Some(self.id),
            seq: self.seq + 1,
            prev: self.prev,
            at: recorded.entry.at,
            event,
        };
        let bytes = entry.to_bytes();
        if let Some(missing) = self.missing.take() {
            return Err(ReplayError::Incomplete(missing));
        }
        if bytes != recorded.bytes {
            let known = Some(&recorded.entry.event);
            let divergence = compare_events(self, known, &entry.event);
            if !self.keep_going || !can_align(&recorded.entry.event, &entry.event) {
                return Err(ReplayError::Diverged(vec![divergence]));
            }
            self.divergences.push(divergence);
        }
        self.served += u64::from(self.proposed);
        self.proposed = matches!(recorded.entry.event, Event::CallProposed(_));
        self.seq += 1;
        self.prev = Some(Digest::of(&recorded.bytes));
        self.loaded.borrow_mut().retain(|seq, _| *seq > self.seq);
        Ok(EntryPosition { seq: self.seq, at: entry.at })
    }
}

/// Whether the recorded event can be taken as what happened: it is about the same call or step. Where
/// calls come in another order, are missing or are new, nothing behind can be compared.
fn can_align(recorded: &Event, now: &Event) -> bool {
    match (recorded, now) {
        (Event::CallProposed(then), Event::CallProposed(call)) => {
            (&then.tool, &then.step, then.attempt) == (&call.tool, &call.step, call.attempt)
        }
        (Event::StepEnded(then), Event::StepEnded(ended)) => then.step == ended.step,
        (Event::RunSealed(_), Event::RunSealed(_)) => true,
        _ => false,
    }
}

/// The recording as a journal, shared with the backend that serves from it.
pub(crate) struct SharedRecording(Rc<RefCell<Recording>>);

impl SharedRecording {
    pub(super) const fn new(recording: Rc<RefCell<Recording>>) -> Self {
        Self(recording)
    }
}

impl Journal for SharedRecording {
    type Error = ReplayError;

    fn put_payload(
        &mut self,
        class: PayloadClass,
        payload: &[u8],
    ) -> Result<PayloadRef, ReplayError> {
        Ok(self.0.borrow_mut().match_payload(class, payload)?)
    }

    fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, ReplayError> {
        // The recorded arguments are masked, so the digest of the raw ones is served; that the
        // masked ones agree is what their payload shows.
        Ok(match self.0.borrow().peek(1) {
            Some(Event::CallProposed(proposed)) => proposed.args_mac,
            Some(Event::ApprovalWaiting(waiting)) => waiting.bound,
            _ => Digest::of(raw),
        })
    }

    fn recorded_decision(&mut self) -> Option<RecordedDecision> {
        self.0.borrow().recorded_decision()
    }

    fn event_count(&self) -> u64 {
        self.0.borrow().seq
    }

    fn append(&mut self, event: Event, _: Durability) -> Result<EntryPosition, ReplayError> {
        self.0.borrow_mut().append(event)
    }

    fn flush_deferred(&mut self) -> Result<(), ReplayError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests fail by panics"
    )]

    use std::fs;

    use capsule_base::exit::Exit;
    use capsule_core::journal::{RunSealed, StepEnded, StepEnding};
    use capsule_core::policy::PayloadRetention;
    use capsule_store::Store;

    use super::*;
    use crate::observer::NullObserver;
    use crate::replay::{DivergenceCause, ReplaySource, replay};

    /// CAP-10, CAP-12: who replays without verifying first cannot replay a recording that has no
    /// beginning, and does not get past its end.
    #[test]
    fn a_recording_has_a_beginning_and_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = || Store::open(&path).unwrap();
        let mut writer = store().begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
        let run = writer.run().to_string();
        let sealed =
            RunSealed { exit: Exit::Ok, events: 1, calls: 0, outputs: None, suspended: None };
        let sealed = Event::RunSealed(sealed);
        writer.append(sealed.clone(), Durability::CrashSafe).unwrap();
        let source = ReplaySource { store: store(), run: &run, plan: None, keep_going: false };
        let replayed = replay(source, &mut NullObserver);
        let Err(ReplayError::Incomplete(what)) = replayed else { panic!("{replayed:?}") };
        assert_eq!(what, "the run's beginning is missing");
        let mut recording = Recording::open(store(), &run, false).unwrap();
        recording.append(sealed.clone()).unwrap();
        recording.require_consumed().unwrap();
        let behind = recording.append(sealed);
        let Err(ReplayError::Diverged(met)) = behind else { panic!("{behind:?}") };
        assert_eq!(met[0].cause, DivergenceCause::ToolVersionChanged, "no engine is recorded");
        assert_eq!(met[0].differences[0].recorded, "(nothing)");
    }

    /// CAP-10: what is recorded behind the end of a replay is seen also where it cannot be read.
    #[test]
    fn what_cannot_be_read_is_not_used_up() {
        let folder = tempfile::tempdir().unwrap();
        let (store, one) = (folder.path().join("store.db"), folder.path().join("one.db"));
        let sealed =
            RunSealed { exit: Exit::Ok, events: 1, calls: 0, outputs: None, suspended: None };
        let sealed = Event::RunSealed(sealed);
        let ended = StepEnded {
            step: "a-step".into(),
            ending: StepEnding::Ok,
            code: None,
            goes_on: false,
            note: None,
        };
        let clock = Box::new(|| 1);
        let mut writer = Store::open(&store).unwrap().begin(clock, PayloadRetention::Full).unwrap();
        let run = writer.run().to_string();
        writer.append(sealed.clone(), Durability::CrashSafe).unwrap();
        writer.append(Event::StepEnded(ended), Durability::CrashSafe).unwrap();
        writer.finish().store.export(&run, &one).unwrap();
        let replayed = |path| {
            let store = Store::open_read_only(path).unwrap();
            let mut recording = Recording::open(store, &run, false).unwrap();
            recording.append(sealed.clone()).unwrap();
            recording.require_consumed()
        };
        assert!(matches!(replayed(&one), Err(ReplayError::Diverged(_))));
        let bytes = fs::read(&one).unwrap();
        let at = bytes.windows(6).position(|item| item == b"a-step").unwrap();
        let changed = [&bytes[..at], b"b-step", &bytes[at + 6..]].concat();
        fs::write(&one, changed).unwrap();
        assert!(matches!(replayed(&one), Err(ReplayError::Store(_))));
    }
}
