//! Watching a run while it is written.

use capsule_core::digest::Digest;
use capsule_core::journal::{
    Durability, Event, Journal, PayloadClass, PayloadRef, Recalled, Recorded,
};

/// An event that was written, with its payloads.
#[derive(Clone, Copy, Debug)]
pub struct Note<'n> {
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
/// ([`Durability::Next`]) is seen with it. It can show, and change nothing.
pub trait Observer {
    /// An event was written.
    fn see(&mut self, note: &Note<'_>);
}

/// Sees nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn see(&mut self, _: &Note<'_>) {}
}

/// A journal that tells an observer what it wrote.
pub struct Observed<'o, J> {
    journal: J,
    observer: &'o mut dyn Observer,
    /// The payloads of the event that comes next.
    waiting: Vec<(PayloadRef, Vec<u8>)>,
    /// Events that are not on record yet.
    unseen: Vec<Unseen>,
}

/// An event that is written with the next one.
struct Unseen {
    recorded: Recorded,
    event: Event,
    payloads: Vec<(PayloadRef, Vec<u8>)>,
}

impl<'o, J: Journal> Observed<'o, J> {
    /// Tells `observer` what `journal` wrote.
    pub fn new(journal: J, observer: &'o mut dyn Observer) -> Self {
        Self { journal, observer, waiting: Vec::new(), unseen: Vec::new() }
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
    fn tell(&mut self) {
        for Unseen { recorded, event, payloads } in self.unseen.drain(..) {
            let Recorded { seq, at } = recorded;
            self.observer.see(&Note { seq, at, event: &event, payloads: &payloads });
        }
    }
}

impl<J: Journal> Journal for Observed<'_, J> {
    type Error = J::Error;

    fn keep(&mut self, class: PayloadClass, payload: &[u8]) -> Result<PayloadRef, J::Error> {
        let reference = self.journal.keep(class, payload)?;
        if !class.is_private() {
            self.waiting.push((reference, payload.to_vec()));
        }
        Ok(reference)
    }

    fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, J::Error> {
        self.journal.seal_arguments(raw)
    }

    fn recall(&mut self) -> Option<Recalled> {
        self.journal.recall()
    }

    fn written(&self) -> u64 {
        self.journal.written()
    }

    fn append(&mut self, event: Event, durability: Durability) -> Result<Recorded, J::Error> {
        let recorded = self.journal.append(event.clone(), durability)?;
        self.unseen.push(Unseen { recorded, event, payloads: std::mem::take(&mut self.waiting) });
        if durability != Durability::Next {
            self.tell();
        }
        Ok(recorded)
    }

    fn flush(&mut self) -> Result<(), J::Error> {
        self.journal.flush()?;
        self.tell();
        Ok(())
    }
}
