//! What a run changed in its staged workspace, from its record, and what may become of it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::change::Change;
use capsule_core::id::RunId;
use capsule_core::journal::{Event, RunKind, RunOpened, STAGED_SUFFIX};
use capsule_core::outcome::CodedError;
use capsule_redact::Redactor;
use capsule_store::{RunState, Store, StoreError, sidecar_path};
use capsule_tools::remove_staging;
use capsule_workspace::{ChangeSet, Staging, Workspace};

use crate::backend::{EnvLookup, secret_values};
use crate::bound_policy::{BoundPolicy, PolicyTexts};
use crate::changes_error::ChangesError;
use crate::clock::now_micros;
use crate::undo::UndoneBy;

/// Where the changes of a run are collected.
pub(crate) fn staging_path(store: &Path, run: RunId) -> PathBuf {
    sidecar_path(store, STAGED_SUFFIX).join(run.to_string())
}

/// Changes that wait for a person when a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingChanges {
    /// How many paths differ from the workspace.
    pub paths: usize,
    /// Whether something was refused, which has to be left out where the rest is applied.
    pub refused: bool,
    /// How many of the paths a person is asked about before they are applied.
    pub asked: usize,
}

impl WaitingChanges {
    /// Those of a run; none where it changed nothing.
    pub(crate) fn of(changes: &ChangeSet) -> Option<Self> {
        let (paths, refused) = (changes.0.len(), changes.refused().is_some());
        (paths > 0).then(|| Self { paths, refused, asked: changes.asked().count() })
    }
}

/// What became of the changes of a run. Runs are named by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeStatus {
    /// They wait for a person.
    Waiting,
    /// They were applied.
    Applied {
        /// The run that did.
        by: String,
        /// What was taken back of them since, if something was.
        undone: Option<UndoneBy>,
    },
    /// They were dropped, at this time, in microseconds since 1970.
    Discarded(u64),
    /// The run was suspended, and this one went on with them.
    Resumed(String),
    /// There are none, and nobody wrote down that there were.
    Nothing,
    /// They are not there any more, and no command of ours took them away.
    Lost,
}

/// A run with staged changes.
#[derive(Debug)]
pub struct StagedRun {
    /// Its id.
    pub id: RunId,
    /// What it changed.
    pub changes: ChangeSet,
    /// How far it came.
    pub state: RunState,
    /// Whether its changes are still there: neither applied nor discarded.
    pub is_staged: bool,
    /// What became of them.
    pub status: ChangeStatus,
    /// How the runs ended that applied them, or that one goes on.
    applies: Vec<RunState>,
    opened: Box<RunOpened>,
    texts: PolicyTexts,
    directory: PathBuf,
}

impl StagedRun {
    /// What its changes are, line by line, while they are staged: masked as in the run itself, with the
    /// values of its secrets as they are now.
    #[must_use]
    pub fn diffs(&self, variables: &EnvLookup) -> Option<StagedDiffs> {
        let staging = self.staging()?;
        let redactor = match BoundPolicy::bind_recorded(&self.texts, &self.opened) {
            Ok(policy) => {
                Redactor::with(&secret_values(&policy, variables), &policy.redaction_patterns())
            }
            Err(_) => Redactor::builtin(),
        };
        Some(StagedDiffs { staging, redactor })
    }
}

/// Shows in which lines the staged files of a run differ from its workspace.
#[derive(Debug)]
pub struct StagedDiffs {
    staging: Staging,
    redactor: Redactor,
}

impl StagedDiffs {
    /// The lines in which a file differs, and how many places of them are masked; none where that cannot
    /// be shown.
    #[must_use]
    pub fn diff(&self, change: &Change) -> Option<(String, u64)> {
        let diff = self.staging.diff(change)?;
        let mut masked = 0;
        let diff = self.redactor.text(&diff, &mut masked).into_owned();
        Some((diff, masked))
    }
}

/// The beginning of a run and the changes of its calls, as its own events tell them.
pub(crate) struct RecordedChanges {
    id: RunId,
    opened: Box<RunOpened>,
    texts: PolicyTexts,
    pub(crate) changes: ChangeSet,
    /// The run that applied changes of the session last, before those that are staged now.
    last_applied_by: Option<RunId>,
}

impl RecordedChanges {
    /// Reads the events of a run.
    ///
    /// # Errors
    /// When the store cannot be read, or lacks the beginning of the run or changes of a call.
    pub(crate) fn read(store: &Store, run: &str) -> Result<Self, ChangesError> {
        let incomplete = |what: &str| CodedError::new(Code::ChangeNone, what.to_owned());
        let mut beginning = None;
        let mut changes = ChangeSet::default();
        let mut last_applied_by = None;
        store.visit::<ChangesError>(run, |stored| {
            let wanted = match &stored.entry.event {
                Event::CallFinished(finished) => finished.changes,
                Event::SessionJoined(joined) => joined.changes,
                _ => None,
            };
            if let Some(wanted) = wanted {
                let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
                let kept = payloads.into_iter().find(|(item, _)| *item == wanted);
                let call: Option<Vec<Change>> =
                    kept.and_then(|(_, kept)| serde_json::from_slice(&kept.bytes?).ok());
                changes.add(call.ok_or_else(|| incomplete("what a call changed was not kept"))?);
            }
            match &stored.entry.event {
                Event::RunOpened(opened) => {
                    let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
                    let texts = PolicyTexts::from_record(opened, |wanted| {
                        let mut all = payloads.iter();
                        all.find(|(item, _)| item == wanted)
                            .and_then(|(_, kept)| kept.bytes.clone())
                    });
                    let texts = texts.ok_or_else(|| incomplete("the policy was not kept"))?;
                    beginning = Some((stored.entry.run, opened.clone(), texts));
                }
                Event::ChangesApplied { by } => {
                    changes = ChangeSet::default();
                    last_applied_by = by.or(last_applied_by);
                }
                _ => {}
            }
            Ok(())
        })?;
        let Some((Some(id), opened, texts)) = beginning else {
            return Err(incomplete("the run's beginning is missing").into());
        };
        Ok(Self { id, opened, texts, changes, last_applied_by })
    }
}

impl StagedRun {
    /// Reads what a run changed.
    ///
    /// # Errors
    /// When the store cannot be read, or does not hold what the run changed.
    pub fn read(store: &Store, path: &Path, run: &str) -> Result<Self, ChangesError> {
        let RecordedChanges { id, opened, texts, mut changes, last_applied_by } =
            RecordedChanges::read(store, run)?;
        if let Some(subject) = opened.subject
            && opened.origin == RunKind::Resume
        {
            // It began with what that one had staged.
            let set = std::mem::replace(
                &mut changes,
                Self::read(store, path, &subject.to_string())?.changes,
            );
            changes.add(set.0.into_values().collect());
        } else if let Some(subject) = opened.subject.filter(|_| opened.origin != RunKind::Undo) {
            // Whoever names the run that applies changes means those.
            return Self::read(store, path, &subject.to_string());
        }
        let applies = store.runs_about(run, RunKind::Apply)?;
        // Those of earlier changes of a session are over.
        let over = last_applied_by.map(|by| by.to_string());
        let over = applies.iter().rposition(|apply| Some(apply) == over.as_ref());
        let applies = applies
            .iter()
            .skip(over.map_or(0, |place| place + 1))
            .map(|apply| store.state(apply))
            .collect::<Result<Vec<_>, StoreError>>()?;
        let folder = staging_path(path, id);
        let is_staged = fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_dir());
        let state = store.state(run)?;
        let became = match is_staged {
            true => ChangeStatus::Waiting,
            false => change_status(store, run, &changes)?,
        };
        Ok(Self {
            id,
            changes,
            state,
            is_staged,
            status: became,
            applies,
            opened,
            texts,
            directory: folder,
        })
    }

    /// The folder that it worked in, by its path.
    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.opened.workspace.path
    }

    /// Whether what it changed was staged.
    #[must_use]
    pub const fn is_staging(&self) -> bool {
        self.opened.staged
    }

    /// Whether its commands could change the workspace itself, so that nothing was collected.
    #[must_use]
    pub const fn writes_directly(&self) -> bool {
        self.opened.direct
    }

    /// Whether the run is in a state in which changes of it can be applied.
    ///
    /// # Errors
    /// When there is nothing to apply, or the run is not at its end.
    pub fn check_state(&self) -> Result<(), CodedError> {
        // Whoever was stopped over applying them may have applied all of them: that is looked for.
        if self.status != ChangeStatus::Lost || !self.apply_started() {
            self.require_open("applied")?;
        }
        if !self.can_be_judged() {
            let message = "the run crashed, and its effects are not fully recorded";
            return Err(CodedError::new(Code::ChangeConflict, message)
                .with_suggestion("look at the changes, discard them, and run it again"));
        }
        Ok(())
    }

    /// What the changes can be applied by: the run's own policy, for this alone, in the run's own
    /// workspace.
    ///
    /// # Errors
    /// When there is nothing to apply, the run is not at its end, one of the `chosen` changes was refused or is
    /// still asked about, or the workspace is another one.
    pub fn bound_policy(&self, chosen: &[Change]) -> Result<BoundPolicy, CodedError> {
        self.check_state()?;
        for Change { path, refused, .. } in chosen {
            if let Some(why) = refused {
                return Err(CodedError::new(Code::ChangeRefused, format!("`{path}`: {why}")));
            }
        }
        if let Some(why) = chosen.iter().find_map(|change| change.asked.clone()) {
            return Err(CodedError::new(Code::ChangeAsked, why));
        }
        BoundPolicy::rebind(&self.opened, &self.texts, |policy| policy.for_apply())
    }

    /// Whether what it changed can be made in the workspace, as far as its record says.
    #[must_use]
    pub fn can_be_applied(&self) -> bool {
        self.is_staged && self.can_be_judged() && self.changes.refused().is_none()
    }

    /// Whether its record says everything that it changed: it is at its end, or a session between two calls.
    const fn can_be_judged(&self) -> bool {
        matches!(self.state, RunState::Sealed(_) | RunState::Idle)
    }

    /// Whether it is a session that goes on.
    #[must_use]
    pub const fn is_open_session(&self) -> bool {
        matches!(self.opened.origin, RunKind::Session) && !matches!(self.state, RunState::Sealed(_))
    }

    /// The staged files, to look at.
    fn staging(&self) -> Option<Staging> {
        let workspace = Workspace::open(Path::new(&self.opened.workspace.path)).ok()?;
        Staging::open(&self.directory, &Rc::new(workspace)).ok()
    }

    /// Whether something may become of the changes now.
    fn require_open(&self, word: &str) -> Result<(), CodedError> {
        if !self.is_staged {
            return Err(self.status.closed_problem());
        }
        match self.state {
            RunState::Running => {
                let message = format!("the run is not at its end; then its changes can be {word}");
                Err(CodedError::new(Code::ChangeConflict, message)
                    .with_suggestion("wait for its end"))
            }
            _ => Ok(()),
        }
    }

    /// Whether an apply of them began.
    #[must_use]
    pub fn apply_started(&self) -> bool {
        !self.applies.is_empty()
    }

    /// How many of the changes an apply left in the workspace that did not come to its end; none where no
    /// apply was cut short, or one goes on.
    #[must_use]
    pub fn cut_short(&self) -> Option<usize> {
        if !self.is_staged || !self.apply_started() || self.applies.contains(&RunState::Running) {
            return None;
        }
        let applied = self.staging().map_or(0, |staging| staging.applied(&self.changes));
        (applied > 0 || self.applies.contains(&RunState::Crashed)).then_some(applied)
    }

    /// Drops the changes, and writes that down first.
    ///
    /// # Errors
    /// When there are none, the run is not at its end, somebody applies them, or they cannot be
    /// removed.
    pub fn discard(&self, store: &mut Store) -> Result<(), ChangesError> {
        self.require_open("discarded")?;
        let _held = match Staging::hold(&self.directory) {
            Ok(held) => Some(held),
            // The run was killed before anything could be collected.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                let message = "another process applies or discards these changes";
                let problem = CodedError::new(Code::ChangeConflict, message);
                return Err(problem.with_suggestion("try again when that is over").into());
            }
            Err(error) => return Err(remove_problem(&self.directory, &error).into()),
        };
        // Another process may have dropped them since they were looked for.
        if let Some(at) = store.discarded_at(&self.id.to_string())? {
            return Err(ChangeStatus::Discarded(at).closed_problem().into());
        }
        let note = |store: &mut Store| {
            store.write_unattached(Event::ChangesDiscarded { subject: self.id }, now_micros())
        };
        if note(store).is_err() {
            if !Staging::is_full(&self.directory) {
                return Ok(note(store)?);
            }
            // What is dropped makes the room to say so. Whoever is killed in between drops it once more.
            remove_directory(&self.directory)?;
            note(store)?;
        }
        if let Some(staging) = self.staging().filter(|_| self.apply_started()) {
            staging.remove_leftovers(&self.id.to_string(), &self.changes);
        }
        Ok(remove_directory(&self.directory)?)
    }

    /// Removes what was applied.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_applied(&self) -> Result<(), CodedError> {
        remove_directory(&self.directory)
    }
}

/// What became of changes that wait for nobody any more.
fn change_status(
    store: &Store,
    run: &str,
    changes: &ChangeSet,
) -> Result<ChangeStatus, StoreError> {
    for applying in store.runs_about(run, RunKind::Apply)?.iter().rev() {
        if store.state(applying)? == RunState::Sealed(Exit::Ok) {
            let undone = UndoneBy::find(store, (run, applying), changes)?;
            return Ok(ChangeStatus::Applied { by: store.label(applying), undone });
        }
    }
    if let Some(at) = store.discarded_at(run)? {
        return Ok(ChangeStatus::Discarded(at));
    }
    Ok(match store.runs_about(run, RunKind::Resume)?.last() {
        Some(next) => ChangeStatus::Resumed(store.label(next)),
        None if changes.0.is_empty() => ChangeStatus::Nothing,
        None => ChangeStatus::Lost,
    })
}

impl ChangeStatus {
    /// Why nothing can become of them any more.
    fn closed_problem(&self) -> CodedError {
        let (message, hint) = match self {
            Self::Applied { by, undone: Some(UndoneBy { runs: undone, .. }) } => (
                format!(
                    "the run's changes were applied by {by}, and undone by {}",
                    undone.join(", ")
                ),
                format!("`capsule undo {}` brings them again", undone.last().unwrap_or(by)),
            ),
            Self::Applied { by, undone: None } => (
                format!("the run's changes were applied already, by {by}"),
                format!("`capsule undo {by}` takes them back"),
            ),
            Self::Discarded(_) => (
                "the run's changes were discarded".into(),
                "run it again to have them again".to_owned(),
            ),
            Self::Resumed(by) => (
                format!("the run was resumed as {by}, which has its changes now"),
                format!("`capsule changes {by}`"),
            ),
            Self::Waiting | Self::Nothing => (
                "the run has no staged changes".into(),
                "`capsule changes` lists what waits".into(),
            ),
            Self::Lost => (
                "the run's staged changes are gone, and no command of Capsule removed them".into(),
                "run it again to have them again".to_owned(),
            ),
        };
        CodedError::new(Code::ChangeNone, message).with_suggestion(hint)
    }
}

pub(crate) fn remove_directory(folder: &Path) -> Result<(), CodedError> {
    remove_staging(folder).map_err(|error| remove_problem(folder, &error))
}

fn remove_problem(folder: &Path, error: &io::Error) -> CodedError {
    let message = format!("`{}` cannot be removed: {error}", folder.display());
    CodedError::new(Code::FileSystem, message)
}
