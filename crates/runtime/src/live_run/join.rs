//! A live run that is a session: opened by the first process, taken up by the next ones.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::exit::Exit;
use capsule_core::journal::{Durability, Journal as _, PayloadClass, RunKind};
use capsule_store::{SigningSchedule, Store, StoreError};

use super::{
    CHANGING_CAPABILITIES, LiveRun, LiveRunOptions, OpenError, approval_broker, live_backend,
};
use crate::approval::{PendingQuestion, StoredReply};
use crate::changes;
use crate::clock::now_micros;
use crate::live_run::FinishedRun;
use crate::observer::ObservedJournal;
use crate::pending_changes;
use crate::run::Run;
use crate::session::{
    HeldSession, SessionEntry, SessionError, SessionRequest, SessionState, enter_session,
};

impl<'o> LiveRun<'o> {
    /// Takes up a session, or opens it. What the options say of the kind of the run is the command that
    /// does.
    ///
    /// # Errors
    /// When the session is not to be had, the store cannot be opened or written, or the profile wants what
    /// there is not.
    pub fn join(
        start: LiveRunOptions<'_, 'o>,
        request: SessionRequest<'_>,
    ) -> Result<Self, OpenError> {
        start.check_requirements()?;
        let command = start.kind;
        let needed = start.capabilities;
        let only_reads = !needed.is_empty() && !needed.intersects(CHANGING_CAPABILITIES);
        let start = LiveRunOptions {
            kind: RunKind::Session,
            // A later call may be of any tool.
            capabilities: start.capabilities.union(CHANGING_CAPABILITIES),
            ..start
        };
        let cancel = start.cancel.clone();
        let mut live = match enter_session(start.store, request, &cancel)? {
            SessionEntry::Joined(held) => Self::reopen(start, *held, only_reads)?,
            SessionEntry::New(new) => {
                let (store, bound) = (start.store, start.policy);
                let start = LiveRunOptions { name: new.name.clone(), ..start };
                let mut live = Self::begin(start, None)?;
                let copied = live.copy_reason.is_some();
                let state =
                    SessionState::new((live.id, &live.label), bound, (&new.name, new.idle), copied);
                live.session = Some(HeldSession::opened(store, state, &cancel)?);
                (live.is_new_session, live.ended_session) = (true, new.ended);
                live
            }
        };
        live.write_joined(command)?;
        if !matches!(command, RunKind::Chat | RunKind::Mcp) {
            live.conversation = None;
        }
        Ok(live)
    }

    /// Goes on with an open session. A call that only reads is shown the workspace itself where the session has staged nothing:
    /// what would be laid over it is empty.
    fn reopen(
        start: LiveRunOptions<'_, 'o>,
        mut held: HeldSession,
        only_reads: bool,
    ) -> Result<Self, OpenError> {
        let (bound, path) = (start.policy, start.store);
        let is_plain = only_reads && held.state.changes.is_empty() && !held.recovered;
        let stages = start.stages() && !start.is_gate && !is_plain;
        let store = Store::open(path)?;
        let replies = take_replies(&store, &mut held.state)?;
        let state = &held.state;
        let unpulled = start.pending_changes(&store, Some(state.run));
        let audit = &bound.policy.audit;
        let signing = SigningSchedule::for_policy(&store, audit, !bound.roots.may_drop_base_rules)?;
        let mut writer = store.reopen(state.run, Box::new(now_micros), audit.payloads)?;
        writer.sign_with(signing);
        let approvals = Rc::new(RefCell::new(state.approvals.clone().restore()));
        let broker = approval_broker(&start, &state.label, None)
            .with_memory(Rc::clone(&approvals))
            .with_session_replies(replies)
            .with_pending_changes(unpulled);
        let (mut backend, observer) = live_backend(start, state.run, broker);
        let directory = stages.then(|| changes::staging_path(path, state.run));
        if let Some(directory) = &directory {
            backend = match directory.is_dir() {
                true => backend.staged_again(&bound.policy, directory, &state.change_set()),
                false => backend.staged(&bound.policy, directory, None),
            };
        }
        let journal = ObservedJournal::new(writer, observer);
        let run = Run {
            redactor: backend.redactor().clone(),
            usage: state.usage.clone(),
            calls: state.calls,
            ..Run::new(Arc::clone(&bound.policy), journal, backend)
        };
        Ok(Self {
            id: state.run,
            label: state.label.clone(),
            copy_reason: run.backend.copy_reason().map(str::to_owned),
            run,
            layer_changes: Vec::new(),
            made_key: None,
            staged: directory,
            workspace: bound.workspace_identity(),
            keeps_staged: true,
            conversation: held.state.conversation,
            session: Some(held),
            is_new_session: false,
            ended_session: None,
            approvals,
        })
    }

    /// Writes that this process works in the session, and what the one before left unfinished.
    fn write_joined(&mut self, command: RunKind) -> Result<(), OpenError> {
        let Some(held) = &mut self.session else { return Ok(()) };
        held.note_executor(self.run.backend.executor_process())?;
        let left = match held.recovered {
            true => self.run.backend.adopt_unrecorded()?,
            false => Vec::new(),
        };
        let left = (!left.is_empty()).then(|| capsule_base::json::canonical(&left));
        let journal = &mut self.run.journal;
        let left =
            left.map(|left| journal.put_payload(PayloadClass::Changes, &left)).transpose()?;
        // It says nothing by itself, unless a process was killed.
        let durability = if held.recovered { Durability::CrashSafe } else { Durability::Deferred };
        journal.append(held.joined_event(command, left), durability)?;
        Ok(())
    }

    /// Ends a session with the process that holds it: its run is sealed, and what it staged waits.
    ///
    /// # Errors
    /// When the seal cannot be written.
    pub(crate) fn end_session(mut self, exit: Exit) -> Result<FinishedRun, StoreError> {
        if let Some(held) = self.session.take() {
            held.forget();
        }
        // Its directory holds nothing that waits where nothing was staged.
        self.keeps_staged = false;
        self.finish(exit, None, None)
    }

    /// Ends a run of one call, or leaves its session to the next process. A session that works in a copy of the
    /// workspace ends.
    ///
    /// # Errors
    /// When the seal, the file of the run, or what the session remembers cannot be written.
    pub fn end_call(mut self, exit: Exit, out: Option<&Path>) -> Result<FinishedRun, SessionError> {
        let Some(mut held) = self.session.take() else {
            return Ok(self.finish(exit, None, out)?);
        };
        if self.copy_reason.is_some() {
            held.forget();
            return Ok(self.finish(Exit::Ok, None, None)?);
        }
        self.run.journal.flush_deferred()?;
        let Run { journal, backend, usage, calls, waiting, .. } = self.run;
        let staged = backend.staged_changes();
        if let Some(directory) = &self.staged {
            match staged {
                Some(waiting) => pending_changes::write_note(directory, &self.workspace, waiting),
                None => pending_changes::remove_note(directory),
            }
        }
        let state = &mut held.state;
        (state.usage, state.calls, state.used_at) = (usage, calls, now_micros());
        let changes = match self.staged {
            Some(_) => backend.recorded_changes(),
            // Nothing was staged here; what waits from earlier calls stays.
            None => state.changes.clone(),
        };
        let has_new_changes = state.changes != changes;
        state.changes = changes;
        state.conversation = self.conversation;
        state.has_questions |= waiting.is_some();
        state.approvals = (&*self.approvals.borrow()).into();
        // What a killed process staged is taken up by the next one that stages.
        let keeps_head = held.recovered && backend.is_gate();
        // What the executor laid over the workspace goes before another process lays it there.
        backend.end_commands();
        drop(backend);
        let writer = journal.into_inner();
        if !keeps_head {
            state.head = writer.head();
        }
        let written = writer.finish();
        held.save()?;
        Ok(FinishedRun::left(written, staged, has_new_changes))
    }
}

/// The answers to questions of a session that no call has used; notes whether any question is open.
fn take_replies(store: &Store, state: &mut SessionState) -> Result<Vec<StoredReply>, StoreError> {
    if !state.has_questions {
        return Ok(Vec::new());
    }
    let mut questions = PendingQuestion::of_run(store, &state.run.to_string())?;
    let now = now_micros();
    questions.retain(|question| question.is_open(now));
    state.has_questions = !questions.is_empty();
    Ok(questions.iter().filter_map(PendingQuestion::stored_reply).collect())
}
