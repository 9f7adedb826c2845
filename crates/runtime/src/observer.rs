//! Watching a run while it is written.

use capsule_base::digest::Digest;
use capsule_core::journal::{
    Durability, EntryPosition, Event, Journal, PayloadClass, PayloadRef, RecordedDecision,
};

/// An event that was written, with its payloads.
#[derive(Clone, Copy, Debug)]
pub struct WrittenEvent<'n> {
    /// Its number within the run.
    pub seq: u64,
    /// When it was written, in microseconds since 1970.
    pub at: u64,
    /// What happened.
    pub event: &'n Event,
    /// The payloads that are not private.
    pub payloads: &'n [(PayloadRef, Vec<u8>)],
}

/// Sees every event of a run once it is on record, in order: one that is written with the next one
/// ([`Durability::Deferred`]) is seen with it, and what was written while a call was on its way to its beginning is
/// seen when it has begun. It can show, and change nothing.
pub trait Observer {
    /// An event was written.
    fn on_event(&mut self, note: &WrittenEvent<'_>);
}

/// Sees nothing.
#[derive(Clone, Copy, Debug)]
pub struct NullObserver;

impl Observer for NullObserver {
    fn on_event(&mut self, _: &WrittenEvent<'_>) {}
}

/// A journal that tells an observer what it wrote.
pub struct ObservedJournal<'o, J> {
    journal: J,
    observer: &'o mut dyn Observer,
    /// The payloads of the event that comes next.
    pending_payloads: Vec<(PayloadRef, Vec<u8>)>,
    /// Events that are not on record yet.
    unannounced: Vec<UnannouncedEvent>,
}

/// An event that is written with the next one.
struct UnannouncedEvent {
    recorded: EntryPosition,
    event: Event,
    payloads: Vec<(PayloadRef, Vec<u8>)>,
}

impl<'o, J: Journal> ObservedJournal<'o, J> {
    /// Tells `observer` what `journal` wrote.
    pub fn new(journal: J, observer: &'o mut dyn Observer) -> Self {
        Self { journal, observer, pending_payloads: Vec::new(), unannounced: Vec::new() }
    }

    /// The journal behind.
    pub const fn journal(&mut self) -> &mut J {
        &mut self.journal
    }

    /// Gives the journal back.
    #[must_use]
    pub fn into_inner(self) -> J {
        self.journal
    }

    /// Tells of all that is on record by now.
    fn notify(&mut self) {
        for UnannouncedEvent { recorded, event, payloads } in self.unannounced.drain(..) {
            let EntryPosition { seq, at } = recorded;
            self.observer.on_event(&WrittenEvent { seq, at, event: &event, payloads: &payloads });
        }
    }
}

/// Whether another event or the beginning of a call follows at once: showing may wait for that, so that
/// nothing waits for showing.
const fn is_followed_at_once(event: &Event) -> bool {
    matches!(event, Event::CallProposed(_) | Event::CallStarted(_))
}

impl<J: Journal> Journal for ObservedJournal<'_, J> {
    type Error = J::Error;

    fn put_payload(&mut self, class: PayloadClass, payload: &[u8]) -> Result<PayloadRef, J::Error> {
        let reference = self.journal.put_payload(class, payload)?;
        if !class.is_private() {
            self.pending_payloads.push((reference, payload.to_vec()));
        }
        Ok(reference)
    }

    fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, J::Error> {
        self.journal.seal_arguments(raw)
    }

    fn recorded_decision(&mut self) -> Option<RecordedDecision> {
        self.journal.recorded_decision()
    }

    fn event_count(&self) -> u64 {
        self.journal.event_count()
    }

    fn append(&mut self, event: Event, durability: Durability) -> Result<EntryPosition, J::Error> {
        let recorded = self.journal.append(event.clone(), durability)?;
        let waits = durability == Durability::Deferred || is_followed_at_once(&event);
        self.unannounced.push(UnannouncedEvent {
            recorded,
            event,
            payloads: std::mem::take(&mut self.pending_payloads),
        });
        if !waits {
            self.notify();
        }
        Ok(recorded)
    }

    fn run_idle_work(&mut self) {
        self.notify();
        self.journal.run_idle_work();
    }

    fn flush_deferred(&mut self) -> Result<(), J::Error> {
        self.journal.flush_deferred()?;
        self.notify();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use capsule_core::journal::CallStarted;

    use super::*;

    /// A journal that has room for everything.
    #[derive(Default)]
    struct Endless(u64);

    impl Journal for Endless {
        type Error = std::convert::Infallible;

        fn put_payload(&mut self, _: PayloadClass, _: &[u8]) -> Result<PayloadRef, Self::Error> {
            Ok(PayloadRef { commit: Digest::of(b""), bytes: 0 })
        }

        fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, Self::Error> {
            Ok(Digest::of(raw))
        }

        fn event_count(&self) -> u64 {
            self.0
        }

        fn append(&mut self, _: Event, _: Durability) -> Result<EntryPosition, Self::Error> {
            self.0 += 1;
            Ok(EntryPosition { seq: self.0, at: 0 })
        }

        fn flush_deferred(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    /// Keeps the numbers of what it saw.
    #[derive(Default)]
    struct Seen(std::rc::Rc<std::cell::RefCell<Vec<u64>>>);

    impl Observer for Seen {
        fn on_event(&mut self, note: &WrittenEvent<'_>) {
            self.0.borrow_mut().push(note.seq);
        }
    }

    /// What is put off is seen when a call has begun, or with the next event that leads nowhere by itself.
    #[test]
    fn nothing_waits_for_showing() {
        let mut observer = Seen::default();
        let seen = std::rc::Rc::clone(&observer.0);
        let mut journal = ObservedJournal::new(Endless::default(), &mut observer);
        let covered = || Event::ApprovalCovered { call: 1, by: 0 };
        let started = || {
            let confinement = None;
            Event::CallStarted(CallStarted {
                call: 1,
                effects: false,
                confinement,
                undo: None,
                covers: None,
            })
        };
        let Ok(_) = journal.append(covered(), Durability::Deferred);
        let Ok(_) = journal.append(started(), Durability::PowerSafe);
        assert!(seen.borrow().is_empty(), "a call is about to begin");
        journal.run_idle_work();
        assert_eq!(*seen.borrow(), [1, 2]);
        let Ok(_) = journal.append(started(), Durability::PowerSafe);
        let Ok(_) = journal.append(covered(), Durability::CrashSafe);
        assert_eq!(*seen.borrow(), [1, 2, 3, 4]);
    }
}
