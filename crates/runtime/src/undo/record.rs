//! What the record says of the calls of a run, as far as it is needed to undo them.
use capsule_base::code::Code;
use capsule_core::action::Facts;
use capsule_core::change::Change;
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::id::RunId;
use capsule_core::journal::{Event, PayloadRef, RunKind, RunOpened};
use capsule_core::lifecycle::recorded_action;
use capsule_core::outcome::{CodedError, Ending};
use capsule_store::{Store, StoredPayload};
use capsule_workspace::UndoRecord;

use crate::bound_policy::PolicyTexts;
use crate::changes_error::ChangesError;

/// What is needed of a run.
#[derive(Clone, Debug)]
pub(super) struct UndoableRun {
    pub(super) id: RunId,
    pub(super) opened: Box<RunOpened>,
    pub(super) texts: PolicyTexts,
    pub(super) calls: Vec<UndoableCall>,
}

/// What is needed of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct UndoableCall {
    pub(super) number: u64,
    /// The last event of it.
    pub(super) leaf: u64,
    /// Whether it was started.
    pub(super) has_begun: bool,
    /// Whether it came to a good end, so that it did what it was about to do.
    pub(super) is_done: bool,
    /// What it was about to change, and what stood there.
    pub(super) undo_changes: Option<Vec<Change>>,
    /// What it changed in a staged workspace.
    pub(super) staged: Vec<Change>,
    /// Why its undo record is of no use, if it has one that is not.
    unusable_reason: Option<&'static str>,
    facts: Facts,
    /// Whether it is a command that could change the workspace itself.
    is_direct: bool,
}

impl UndoableCall {
    /// Whether the program that hosts a model carried it out, in the workspace itself: it was backed up, and nothing
    /// was staged.
    pub(super) fn is_by_host(&self) -> bool {
        self.is_done && self.undo_changes.is_some() && self.staged.is_empty()
    }

    /// Why what it did cannot be undone, if it did something that cannot.
    pub(super) fn why_not_restorable(&self) -> Option<String> {
        if !self.has_begun || self.undo_changes.is_some() {
            return None;
        }
        let direct =
            || "a command changed the workspace itself, and nothing of it is kept".to_owned();
        let useless = self.unusable_reason.map(str::to_owned);
        useless
            .or_else(|| self.facts.no_undo.map(|unkept| unkept.reason()))
            .or_else(|| self.is_direct.then(direct))
    }
}

type KeptPayloads = [(PayloadRef, StoredPayload)];

fn payload_bytes<'p>(payloads: &'p KeptPayloads, wanted: &PayloadRef) -> Option<&'p [u8]> {
    let (_, kept) = payloads.iter().find(|(item, _)| item == wanted)?;
    kept.bytes.as_deref()
}

impl UndoableRun {
    /// The run whose changes it applies, if it does: what a killed apply leaves is named after that.
    pub(super) fn applies(&self) -> Option<String> {
        let subject = self.opened.subject.filter(|_| self.opened.origin == RunKind::Apply);
        subject.map(|run| run.to_string())
    }

    pub(super) fn read(store: &Store, run: &str) -> Result<Self, ChangesError> {
        let incomplete = |what: &str| CodedError::new(Code::UndoNone, what.to_owned());
        let mut beginning = None;
        let mut calls: Vec<UndoableCall> = Vec::new();
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
                let texts = PolicyTexts::from_record(opened, |wanted| {
                    payload_bytes(&payloads, wanted).map(<[u8]>::to_vec)
                });
                let texts = texts.or_else(|| PolicyTexts::read_again(opened)).ok_or_else(|| {
                    incomplete("the run's policy was not recorded, and the file has changed since")
                })?;
                beginning = Some((run, opened.clone(), texts));
            }
            if let Event::CallProposed(proposed) = event {
                calls.push(UndoableCall { number: proposed.call, ..UndoableCall::default() });
            }
            if let Some(call) = calls.last_mut() {
                call.leaf = stored.leaf;
                call.apply_event(event, &payloads)?;
            }
            Ok(())
        })?;
        let missing = || incomplete("the run's beginning is missing");
        let (id, opened, texts) = beginning.ok_or_else(missing)?;
        Ok(Self { id, opened, texts, calls })
    }
}

impl UndoableCall {
    /// Takes the next event of the call.
    fn apply_event(&mut self, event: &Event, payloads: &KeptPayloads) -> Result<(), CodedError> {
        match event {
            Event::CallDecided(decided) => {
                let considered =
                    decided.action.as_ref().and_then(|action| payload_bytes(payloads, action));
                self.facts =
                    considered.and_then(recorded_action).map(|item| item.1).unwrap_or_default();
            }
            Event::CallStarted(started) => {
                self.has_begun = true;
                let confinement = started.confinement;
                self.is_direct = confinement
                    .is_some_and(|confinement| confinement.workspace == WorkspaceAccess::Direct);
                let Some(undo) = &started.undo else { return Ok(()) };
                match payload_bytes(payloads, undo).map(UndoRecord::from_bytes) {
                    Some(Some(record)) => self.undo_changes = Some(record.changes),
                    Some(None) => {
                        self.unusable_reason = Some("its undo record does not say what it left");
                    }
                    None => self.unusable_reason = Some("its undo record is not in this store"),
                }
            }
            Event::CallFinished(finished) => {
                self.is_done = finished.ending == Ending::Done;
                let Some(changes) = &finished.changes else { return Ok(()) };
                let changes = payload_bytes(payloads, changes)
                    .and_then(|byte| serde_json::from_slice(byte).ok());
                self.staged = changes.ok_or_else(|| {
                    CodedError::new(Code::UndoNone, "what a call changed was not kept")
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}
