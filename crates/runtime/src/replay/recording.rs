//! A recorded run, and how far a replay has come in it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_core::id::RunId;
use capsule_core::journal::{
    CallProposed, Document, Event, PayloadClass, PayloadRef, RecordedDecision,
};
use capsule_core::lifecycle::recorded_decision;
use capsule_core::outcome::CodedError;
use capsule_core::tool::ToolName;
use capsule_policy::SourceText;
use capsule_redact::holds_mask;
use capsule_store::{RunState, Store, StoreError, StoredEvent, StoredPayload};

use super::divergence::Divergence;
use super::error::ReplayError;
use crate::source_text::shown_name;

/// A recorded event that was read, with its payloads once somebody asks for them.
pub(super) struct LoadedEvent {
    pub(super) stored: StoredEvent,
    payloads: OnceCell<Vec<(PayloadRef, StoredPayload)>>,
}

/// A recorded call, for whoever looks for one like it.
pub(super) struct KnownCall {
    pub(super) call: u64,
    pub(super) tool: ToolName,
    pub(super) step: Option<String>,
}

/// A recorded run, and how far a replay has come in it.
pub(crate) struct Recording {
    pub(super) store: Store,
    pub(super) run: String,
    pub(super) id: RunId,
    /// Whether another plan than the recorded one is walked.
    pub(super) changed_plan: bool,
    /// Whether masks stand in the recorded policy.
    pub(super) masked_policy: bool,
    /// The number of the last event that the replay wrote.
    pub(super) seq: u64,
    pub(super) prev: Option<Digest>,
    /// Whether to go on behind a difference.
    pub(super) keep_going: bool,
    /// The differences that were met so far.
    pub(super) divergences: Vec<Divergence>,
    /// Whether this build, with these tools, made the record.
    pub(super) same_engine: bool,
    /// How many calls were served to their decision.
    pub(super) served: u64,
    /// Whether the last event that was written proposes a call.
    pub(super) proposed: bool,
    /// What was read of the events from here on, by number.
    pub(super) loaded: RefCell<BTreeMap<u64, Rc<LoadedEvent>>>,
    /// The recorded calls, looked up at the first difference.
    calls: OnceCell<Vec<KnownCall>>,
    /// What was found missing; it ends the replay at the next event.
    pub(super) missing: Option<String>,
    /// The last payload that was not the recorded one.
    unmatched_payload: Vec<u8>,
    /// The call of a session that its last process did not end, where no other process wrote that down.
    pub(super) unfinished: Option<u64>,
    /// The number of the next event that says that a process took the session up, and the call that it found
    /// unfinished.
    next_join: Cell<Option<(u64, Option<u64>)>>,
}

impl Recording {
    pub(super) fn open(store: Store, run: &str, changed_plan: bool) -> Result<Self, ReplayError> {
        let incomplete = |why: &str| Err(ReplayError::Incomplete(why.into()));
        match store.state(run)? {
            RunState::Sealed(_) => {}
            RunState::Running => return incomplete("the run goes on"),
            RunState::Idle => {
                return incomplete("the session is open; `capsule session end` seals it");
            }
            RunState::Crashed => return incomplete("the run ended before it was sealed"),
        }
        Self::open_unsealed(store, run, changed_plan)
    }

    /// The same for a run that may go on.
    pub(super) fn open_unsealed(
        store: Store,
        run: &str,
        changed_plan: bool,
    ) -> Result<Self, ReplayError> {
        let incomplete = |why: &str| Err(ReplayError::Incomplete(why.into()));
        let Some(id) = RunId::parse(run) else { return incomplete("its id is not one") };
        Ok(Self {
            store,
            run: run.to_owned(),
            id,
            changed_plan,
            masked_policy: false,
            keep_going: false,
            divergences: Vec::new(),
            seq: 0,
            prev: None,
            same_engine: false,
            served: 0,
            proposed: false,
            loaded: RefCell::default(),
            calls: OnceCell::new(),
            missing: None,
            unmatched_payload: Vec::new(),
            unfinished: None,
            next_join: Cell::new(None),
        })
    }

    /// The recorded event so many places ahead of the last one that was written; it is read and
    /// hashed once.
    pub(super) fn load_event(&self, places: u64) -> Result<Option<Rc<LoadedEvent>>, StoreError> {
        let seq = self.seq + places;
        if let Some(near) = self.loaded.borrow().get(&seq) {
            return Ok(Some(Rc::clone(near)));
        }
        let Some(stored) = self.store.event(&self.run, seq)? else { return Ok(None) };
        let near = Rc::new(LoadedEvent { stored, payloads: OnceCell::new() });
        self.loaded.borrow_mut().insert(seq, Rc::clone(&near));
        Ok(Some(near))
    }

    /// The recorded event so many places ahead; none where it cannot be read either, which
    /// whoever writes the next event is told.
    pub(crate) fn peek(&self, places: u64) -> Option<Event> {
        Some(self.load_event(places).ok()??.stored.entry.event.clone())
    }

    /// Looks for a payload of the event so many places ahead.
    fn find_payload<T>(
        &self,
        places: u64,
        found: impl Fn(&PayloadRef, &StoredPayload) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(near) = self.load_event(places)? else { return Ok(None) };
        let payloads = match near.payloads.get() {
            Some(payloads) => payloads,
            None => {
                let StoredEvent { leaf, entry, .. } = &near.stored;
                let read = self.store.payloads(*leaf, &entry.event)?;
                near.payloads.get_or_init(|| read)
            }
        };
        Ok(payloads.iter().find_map(|(reference, payload)| found(reference, payload)))
    }

    /// The bytes of a payload of the event so many places ahead, if they were kept.
    pub(crate) fn payload(&self, places: u64, wanted: &PayloadRef) -> Option<Vec<u8>> {
        let item = |reference: &PayloadRef, payload: &StoredPayload| {
            (reference == wanted).then(|| payload.bytes.clone())
        };
        self.find_payload(places, item).ok()??
    }

    /// A text that the run began with, where that is what comes next.
    pub(super) fn peek_text(&self, document: &Document) -> Option<SourceText> {
        let text = String::from_utf8(self.payload(1, &document.text)?).ok()?;
        Some(SourceText { name: shown_name(&document.path), text })
    }

    /// The recorded calls. A recording that cannot be read to its end still has a place where it
    /// diverged.
    pub(super) fn calls(&self) -> &[KnownCall] {
        self.calls.get_or_init(|| {
            let mut calls = Vec::new();
            let _ = self.store.visit::<StoreError>(&self.run, |stored| {
                if let Event::CallProposed(CallProposed { call, tool, step, .. }) =
                    stored.entry.event
                {
                    calls.push(KnownCall { call, tool, step });
                }
                Ok(())
            });
            calls
        })
    }

    /// Whether the next call of a session was not ended by its process.
    pub(super) fn is_unfinished(&self, call: u64) -> Result<bool, StoreError> {
        let known = self.next_join.get().filter(|(seq, _)| *seq > self.seq);
        let (_, unfinished) = match known {
            Some(known) => known,
            None => {
                let found = self.find_next_join()?;
                self.next_join.set(Some(found));
                found
            }
        };
        Ok(unfinished == Some(call))
    }

    fn find_next_join(&self) -> Result<(u64, Option<u64>), StoreError> {
        let mut seq = self.seq + 1;
        while let Some(stored) = self.store.event(&self.run, seq)? {
            if let Event::SessionJoined(joined) = stored.entry.event {
                return Ok((seq, joined.unfinished));
            }
            seq += 1;
        }
        Ok((u64::MAX, self.unfinished))
    }

    /// Whether the run ends here because it was interrupted. A signal can come after the last call
    /// as well as in it; which it was is in the record.
    pub(crate) fn was_interrupted(&self) -> bool {
        let sealed = self.peek(1);
        matches!(sealed, Some(Event::RunSealed(sealed)) if sealed.exit == Exit::Interrupted)
    }

    /// What was decided on the call at hand, where masks stand in the record in place of what was
    /// judged, or in the policy that judged it: the policy cannot be asked again.
    pub(super) fn recorded_decision(&self) -> Option<RecordedDecision> {
        let Some(Event::CallDecided(decided)) = self.peek(1) else { return None };
        let considered = self.payload(1, &decided.action?)?;
        if !self.masked_policy && !holds_mask(&considered) {
            return None;
        }
        let decision = recorded_decision(&decided, &self.payload(1, &decided.text)?)?;
        let confinement = match self.peek(2) {
            Some(Event::CallStarted(started)) => started.confinement,
            _ => None,
        };
        Some(RecordedDecision { decision, confinement })
    }

    /// Notes that something is missing, and says so to whoever asked.
    pub(crate) fn note_missing(&mut self, what: &str) -> CodedError {
        self.missing.get_or_insert_with(|| what.to_owned());
        CodedError::new(Code::ReplayIncomplete, what)
    }

    /// The last payload that was not the recorded one.
    pub(super) fn unmatched_payload(&self) -> &[u8] {
        &self.unmatched_payload
    }

    /// The recorded payload of the next event that these bytes are; a commitment that is nobody's
    /// where there is none, so that the event differs. Where what these bytes would be compared
    /// with was not kept, nobody can say whether it does.
    pub(super) fn match_payload(
        &mut self,
        class: PayloadClass,
        payload: &[u8],
    ) -> Result<PayloadRef, StoreError> {
        let recorded = self.find_payload(1, |reference, known| {
            // Private payloads are not needed to replay, and may be erased.
            let same = known.class == class
                && (class.is_private() || known.bytes.as_deref() == Some(payload));
            same.then_some(*reference)
        })?;
        if let Some(reference) = recorded {
            return Ok(reference);
        }
        let gone = |_: &PayloadRef, known: &StoredPayload| {
            (known.class == class && known.bytes.is_none()).then_some(())
        };
        if self.find_payload(1, gone)?.is_some() {
            let what =
                format!("a payload of event {} ({}) was not kept", self.seq + 1, class.name());
            self.note_missing(&what);
        }
        self.unmatched_payload = payload.to_vec();
        let bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        Ok(PayloadRef { commit: Digest::of(payload), bytes })
    }
}
