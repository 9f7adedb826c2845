//! What a session remembers between two processes, in a file beside the store.
//!
//! The record is what counts. The file says for which last event it was written; where the record goes on
//! behind that (the process was killed), what the session remembers is read from the record again.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_core::change::Change;
use capsule_core::id::RunId;
use capsule_core::journal::{SESSIONS_SUFFIX, WorkspaceIdentity};
use capsule_core::policy::Usage;
use capsule_store::sidecar_path;
use capsule_workspace::ChangeSet;
use serde::{Deserialize, Serialize};

use crate::bound_policy::BoundPolicy;
use crate::clock::now_micros;
use crate::session::approvals::SavedApprovals;
use crate::session::identity::session_identity;

/// What a session remembers between two processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionState {
    pub(crate) run: RunId,
    pub(crate) label: String,
    /// What it is found by: a terminal, or the name that its caller gave it.
    pub(crate) name: String,
    /// What it was opened with.
    pub(crate) identity: Digest,
    pub(crate) workspace: WorkspaceIdentity,
    /// The policy, as it is named.
    pub(crate) policy: String,
    pub(crate) profile: String,
    /// How long it may be idle.
    pub(crate) idle: Duration,
    /// When it was last used, in microseconds since 1970.
    pub(crate) used_at: u64,
    /// Whether it works in a copy of the workspace, which no other process can take up.
    pub(crate) copied: bool,
    /// The digest of the last event that this says everything of.
    pub(crate) head: Option<Digest>,
    pub(crate) calls: u64,
    pub(crate) usage: Usage,
    pub(crate) approvals: SavedApprovals,
    pub(crate) changes: Vec<Change>,
    /// Whether a question may wait, or an answer to one that no call has used.
    #[serde(default)]
    pub(crate) has_questions: bool,
    /// How far its conversation came; none where the record says it: another process made calls, or was killed.
    #[serde(default)]
    pub(crate) conversation: Option<ConversationState>,
}

/// How far the conversation of a session came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConversationState {
    /// How many requests were sent.
    pub(crate) turns: u64,
    /// Whether a result was delivered that the policy does not vouch for.
    pub(crate) is_tainted: bool,
}

fn directory(store: &Path) -> PathBuf {
    sidecar_path(store, SESSIONS_SUFFIX)
}

fn state_path(store: &Path, run: RunId) -> PathBuf {
    directory(store).join(run.to_string())
}

impl SessionState {
    /// A session that was just opened, with nothing to remember.
    pub(crate) fn new(
        (run, label): (RunId, &str),
        bound: &BoundPolicy,
        (name, idle): (&str, Duration),
        copied: bool,
    ) -> Self {
        Self {
            run,
            label: label.to_owned(),
            name: name.to_owned(),
            identity: session_identity(bound),
            workspace: bound.workspace_identity(),
            policy: bound.place(),
            profile: bound.policy.profile.name.clone(),
            idle,
            used_at: now_micros(),
            copied,
            head: None,
            calls: 0,
            usage: Usage::default(),
            approvals: SavedApprovals::default(),
            changes: Vec::new(),
            has_questions: false,
            conversation: None,
        }
    }

    /// Reads the file of a session; none where there is none that can be understood.
    pub(crate) fn read(store: &Path, run: RunId) -> Option<Self> {
        let mut text = Vec::new();
        let file = File::open(state_path(store, run)).ok()?;
        file.take(limits::SESSION_STATE_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok().filter(|state: &Self| state.run == run)
    }

    /// The sessions that have a file, the one that was used last first.
    pub(crate) fn read_all(store: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory(store)).into_iter().flatten().flatten();
        let runs = entries.filter_map(|entry| RunId::parse(entry.file_name().to_str()?));
        let mut all: Vec<Self> = runs.filter_map(|run| Self::read(store, run)).collect();
        all.sort_by_key(|state| std::cmp::Reverse(state.used_at));
        all
    }

    /// Writes the file in place of the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, store: &Path) -> io::Result<()> {
        let path = state_path(store, self.run);
        let unfinished = path.with_extension("new");
        DirBuilder::new().recursive(true).mode(0o700).create(directory(store))?;
        fs::write(&unfinished, serde_json::to_vec(self)?)?;
        fs::rename(&unfinished, &path)
    }

    /// Removes the file of a session that ended.
    pub(crate) fn remove(store: &Path, run: RunId) {
        // A file that stays names a sealed run, which no process takes up.
        let _ = fs::remove_file(state_path(store, run));
    }

    /// When it ends if no process takes it up, in microseconds since 1970.
    pub(crate) fn ends_at(&self) -> u64 {
        let idle = u64::try_from(self.idle.as_micros()).unwrap_or(u64::MAX);
        self.used_at.saturating_add(idle)
    }

    /// What its calls changed and is staged.
    pub(crate) fn change_set(&self) -> ChangeSet {
        let changes = self.changes.iter();
        ChangeSet(changes.map(|change| (change.path.clone(), change.clone())).collect())
    }
}
