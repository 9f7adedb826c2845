//! What the record says of the calls of a run, as far as it is needed to undo them.
use capsule_core::action::Facts;
use capsule_core::change::Change;
use capsule_core::code::Code;
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::id::RunId;
use capsule_core::journal::{Event, PayloadRef, RunKind, RunOpened};
use capsule_core::lifecycle::recorded_action;
use capsule_core::outcome::{CodedError, Ending};
use capsule_core::undo::UndoRecord;
use capsule_store::{Payload, Store};

use crate::changes::ChangesError;
use crate::law::Texts;

/// What is needed of a run.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: RunId,
    pub(super) opened: Box<RunOpened>,
    pub(super) texts: Texts,
    pub(super) calls: Vec<Call>,
}

/// What is needed of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) number: u64,
    /// The last event of it.
    pub(super) leaf: u64,
    /// Whether it was started.
    pub(super) has_begun: bool,
    /// Whether it came to a good end, so that it did what it was about to do.
    pub(super) is_done: bool,
    /// What it was about to change, and what stood there.
    pub(super) kept: Option<Vec<Change>>,
    /// What it changed in a staged workspace.
    pub(super) staged: Vec<Change>,
    /// Why its undo record is of no use, if it has one that is not.
    useless: Option<&'static str>,
    facts: Facts,
    /// Whether it is a command that could change the workspace itself.
    is_direct: bool,
}

impl Call {
    /// Why what it did cannot be undone, if it did something that cannot.
    pub(super) fn uncovered(&self) -> Option<String> {
        if !self.has_begun || self.kept.is_some() {
            return None;
        }
        let direct =
            || "a command changed the workspace itself, and nothing of it is kept".to_owned();
        let useless = self.useless.map(str::to_owned);
        useless
            .or_else(|| self.facts.no_undo.map(|unkept| unkept.reason()))
            .or_else(|| self.is_direct.then(direct))
    }
}

type Payloads = [(PayloadRef, Payload)];

fn bytes<'p>(payloads: &'p Payloads, wanted: &PayloadRef) -> Option<&'p [u8]> {
    let (_, kept) = payloads.iter().find(|(own, _)| own == wanted)?;
    kept.bytes.as_deref()
}

impl Record {
    /// The run whose changes it applies, if it does: what a killed apply leaves is named after that.
    pub(super) fn applies(&self) -> Option<String> {
        let subject = self.opened.subject.filter(|_| self.opened.origin == RunKind::Apply);
        subject.map(|own| own.to_string())
    }

    pub(super) fn read(store: &Store, run: &str) -> Result<Self, ChangesError> {
        let incomplete = |what: &str| CodedError::new(Code::UndoNone, what.to_owned());
        let mut beginning = None;
        let mut calls: Vec<Call> = Vec::new();
        store.visit::<ChangesError>(run, |stored| {
            let event = &stored.entry.event;
            let payloads = match event {
                Event::RunOpened(_)
                | Event::CallDecided(_)
                | Event::CallStarted(_)
                | Event::CallFinished(_) => store.payloads(stored.leaf, event)?,
                _ => Vec::new(),
            };
            if let (Event::RunOpened(opened), Some(run)) = (event, stored.entry.run) {
                let texts =
                    Texts::of(opened, |wanted| bytes(&payloads, wanted).map(<[u8]>::to_vec));
                let texts = texts.or_else(|| Texts::found(opened)).ok_or_else(|| {
                    incomplete("the run's policy was not kept, and is another by now")
                })?;
                beginning = Some((run, opened.clone(), texts));
            }
            if let Event::CallProposed(proposed) = event {
                calls.push(Call { number: proposed.call, ..Call::default() });
            }
            if let Some(call) = calls.last_mut() {
                call.leaf = stored.leaf;
                call.see(event, &payloads)?;
            }
            Ok(())
        })?;
        let missing = || incomplete("the run's beginning is missing");
        let (id, opened, texts) = beginning.ok_or_else(missing)?;
        Ok(Self { id, opened, texts, calls })
    }
}

impl Call {
    /// Takes the next event of the call.
    fn see(&mut self, event: &Event, payloads: &Payloads) -> Result<(), CodedError> {
        match event {
            Event::CallDecided(decided) => {
                let considered = decided.action.as_ref().and_then(|own| bytes(payloads, own));
                self.facts =
                    considered.and_then(recorded_action).map(|own| own.1).unwrap_or_default();
            }
            Event::CallStarted(started) => {
                self.has_begun = true;
                let confinement = started.confinement;
                self.is_direct =
                    confinement.is_some_and(|own| own.workspace == WorkspaceAccess::Direct);
                let Some(undo) = &started.undo else { return Ok(()) };
                match bytes(payloads, undo).map(UndoRecord::from_bytes) {
                    Some(Some(record)) => self.kept = Some(record.changes),
                    Some(None) => {
                        self.useless = Some("its undo record does not say what it left");
                    }
                    None => self.useless = Some("its undo record is not in this store"),
                }
            }
            Event::CallFinished(finished) => {
                self.is_done = finished.ending == Ending::Done;
                let Some(changes) = &finished.changes else { return Ok(()) };
                let changes =
                    bytes(payloads, changes).and_then(|own| serde_json::from_slice(own).ok());
                self.staged = changes.ok_or_else(|| {
                    CodedError::new(Code::UndoNone, "what a call changed was not kept")
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}
