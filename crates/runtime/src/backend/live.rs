//! The live backend: it touches the world, through the tools.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capsule_base::path::WorkspacePath;
use capsule_core::approval::{Approver, NoApprover};
use capsule_core::call::ToolCall;
use capsule_core::change::Change;
use capsule_core::confinement::{SandboxFailure, SandboxStatus, SandboxTier};
use capsule_core::id::RunId;
use capsule_core::journal::UNDO_SUFFIX;
use capsule_core::lifecycle::PreflightReport;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{Invariants, Policy};
use capsule_redact::Redactor;
use capsule_store::sidecar_path;
use capsule_tools::{
    AgentHost, CommandRunner, CopyMount, ErrorSink, QuestionPrompt, SandboxMount, Sink,
    ToolContext, ToolHost, preflight,
};
use capsule_workspace::{
    BackupLog, BackupStore, Cancel, ChangeSet, HiddenPaths, MountStaging, Staging, StagingSetup,
    UserVariables, Workspace,
};

use crate::backend::hosted::HostOperation;
use crate::backend::{CallBackend, ScriptWorkspace};
use crate::changes::WaitingChanges;
use crate::clock::now_micros;

/// Touches the world.
pub struct LiveBackend {
    workspace: Rc<Workspace>,
    /// Where changes are collected; why they cannot be, where they should.
    staging: Result<Option<Rc<Staging>>, CodedError>,
    hidden_paths: Rc<RefCell<HiddenPaths>>,
    command_runner: CommandRunner,
    backups: Rc<BackupStore>,
    redactor: Redactor,
    host: Rc<dyn ToolHost>,
    cancel: Cancel,
    sink: Rc<dyn Sink>,
    captures_output: bool,
    questions: Option<Rc<dyn QuestionPrompt>>,
    agent: Option<Rc<dyn AgentHost>>,
    approver: Box<dyn Approver>,
    is_gate: bool,
}

impl LiveBackend {
    /// A backend in a workspace, under a policy.
    #[must_use]
    pub fn new(
        workspace: Rc<Workspace>,
        policy: &Arc<Policy>,
        commands: CommandRunner,
        host: Rc<dyn ToolHost>,
        cancel: Cancel,
        sink: Rc<dyn Sink>,
    ) -> Self {
        let hidden_paths = hidden_paths(policy, &host);
        let (backups, approver) = (backup_store(&host, None), Box::new(NoApprover));
        let secrets = policy.secrets.iter().filter_map(|secret| host.secret(&secret.name));
        let redactor = Redactor::with(&secrets.collect::<Vec<_>>(), &policy.redaction_patterns());
        sink.use_redactor(&redactor);
        let staging = Ok(None);
        Self {
            workspace,
            staging,
            hidden_paths,
            command_runner: commands,
            backups,
            redactor,
            host,
            cancel,
            sink,
            captures_output: false,
            questions: None,
            agent: None,
            approver,
            is_gate: false,
        }
    }

    /// What masks: the shipped rules, what the policy adds, and the values of its secrets.
    #[must_use]
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The same with somebody to ask.
    #[must_use]
    pub(crate) fn with_approver(self, approver: impl Approver + 'static) -> Self {
        Self { approver: Box::new(approver), ..self }
    }

    /// The same where another program carries out the calls, if it does.
    #[must_use]
    pub(crate) fn gating(self, is_gate: bool) -> Self {
        Self { is_gate, ..self }
    }

    /// The same with what runs a whole agent, which works in a copy of the workspace where its changes are staged.
    #[must_use]
    pub(crate) fn with_agent(self, agent: Option<Rc<dyn AgentHost>>) -> Self {
        Self { agent, ..self }
    }

    /// Whether another program carries out the calls.
    pub(crate) const fn is_gate(&self) -> bool {
        self.is_gate
    }

    /// Has a model's questions shown to a person.
    pub(crate) fn set_question_prompt(&mut self, prompt: Rc<dyn QuestionPrompt>) {
        self.questions = Some(prompt);
    }

    /// Whether a person can answer a model's questions.
    pub(crate) const fn can_ask_questions(&self) -> bool {
        self.questions.is_some()
    }

    /// The backend of a run, which backs up the files that its calls replace and delete.
    #[must_use]
    pub(crate) fn for_run(self, run: RunId) -> Self {
        Self { backups: backup_store(&self.host, Some(run)), ..self }
    }

    /// Has everything that the calls change collected in a folder, if that can be done; if not, no
    /// call that could change something is carried out.
    /// What an earlier run collected is taken up first, if there is such.
    #[must_use]
    pub(crate) fn staged(
        self,
        policy: &Arc<Policy>,
        folder: &Path,
        earlier: Option<(&Path, &ChangeSet)>,
    ) -> Self {
        let mounts = self.sandbox_mount(policy);
        let laid = match earlier {
            Some((from, _)) => Staging::resume((from, folder), &self.workspace, &mounts),
            None => {
                let hidden_paths = self.hidden_paths.borrow();
                let mounts: &dyn MountStaging =
                    if self.agent.is_some() { &CopyMount } else { &mounts };
                Staging::create(folder, &self.workspace, mounts, (&hidden_paths, &self.cancel))
            }
        };
        let changes = earlier.map(|(_, changes)| changes);
        self.with_staging_setup(policy, laid, changes)
    }

    /// Has everything that the calls of a session change collected where its earlier processes did.
    #[must_use]
    pub(crate) fn staged_again(
        self,
        policy: &Arc<Policy>,
        directory: &Path,
        changes: &ChangeSet,
    ) -> Self {
        let mounts = self.sandbox_mount(policy);
        let laid = Staging::reopen(directory, changes, &self.workspace, &mounts);
        self.with_staging_setup(policy, laid, None)
    }

    /// What shows commands a workspace with its changes.
    fn sandbox_mount(&self, policy: &Policy) -> SandboxMount<'_> {
        let floor = policy.sandbox_in_force().floor;
        SandboxMount { commands: &self.command_runner, host: self.host.as_ref(), floor }
    }

    /// The same with a workspace that has changes laid over it, among them those of an earlier run.
    fn with_staging_setup(
        self,
        policy: &Arc<Policy>,
        laid: Result<StagingSetup, CodedError>,
        earlier: Option<&ChangeSet>,
    ) -> Self {
        match laid {
            Ok(StagingSetup { workspace, staging }) => {
                let hidden_paths = hidden_paths(policy, &self.host);
                // At once: later nobody could say which folders were there when the run began.
                hidden_paths.borrow().scan(&workspace);
                staging.set_limits(policy.sandbox_in_force().changes);
                staging.hold_indexes(&hidden_paths.borrow().repositories(&workspace));
                let taken = earlier.map_or(Ok(()), |changes| {
                    staging.adopt_changes(changes, (&hidden_paths.borrow(), &workspace))
                });
                let staging = taken.map(|()| Some(staging));
                Self { workspace, staging, hidden_paths, ..self }
            }
            Err(problem) => Self { staging: Err(problem), ..self },
        }
    }

    /// What is staged and not recorded, since the process that changed it was killed. It is recorded as changes
    /// that are refused: no call vouches for them.
    ///
    /// # Errors
    /// When the changes cannot be read.
    pub(crate) fn adopt_unrecorded(&self) -> Result<Vec<Change>, CodedError> {
        let Ok(Some(staging)) = &self.staging else { return Ok(Vec::new()) };
        let hidden_paths = self.hidden_paths.borrow();
        staging.remove_stale_locks(&self.workspace, &hidden_paths.known_repositories());
        let mut left = staging.collect((&hidden_paths, &self.workspace))?;
        for change in &mut left {
            change.refused = Some("the call that changed it was killed before its end".to_owned());
        }
        staging.record(left.clone());
        Ok(left)
    }

    /// What is staged, as it is recorded.
    pub(crate) fn recorded_changes(&self) -> Vec<Change> {
        match &self.staging {
            Ok(Some(staging)) => staging.recorded(),
            _ => Vec::new(),
        }
    }

    /// The process of the run's executor, where one runs.
    pub(crate) fn executor_process(&self) -> Option<i32> {
        self.command_runner.process()
    }

    /// Takes up what an earlier run collected.
    #[must_use]
    pub(crate) fn with_earlier_changes(self, folder: &Path) -> Self {
        // Where it is not there, the call says so.
        let staging = Staging::open(folder, &self.workspace).ok().map(Rc::new);
        Self { staging: Ok(staging), ..self }
    }

    /// The walls that commands will stand behind, or why there are none; nothing where commands are
    /// only judged.
    #[must_use]
    pub fn sandbox_status(&self) -> Option<Result<SandboxStatus, SandboxFailure>> {
        self.command_runner.sandbox_status()
    }

    /// Has the executor build what commands will see while the record is begun, where nothing is staged
    /// and it does not take long to tell what is to be hidden.
    pub(crate) fn prepare_view(&self, floor: SandboxTier) {
        let (workspace, hidden_paths) = (&self.workspace, self.hidden_paths.borrow());
        if hidden_paths.scan_if_small(workspace) {
            self.command_runner.prepare_view(workspace, self.host.as_ref(), floor, &hidden_paths);
        }
    }

    /// Why the calls work in a copy of the workspace, if they do.
    pub(crate) fn copy_reason(&self) -> Option<&str> {
        self.staging.as_ref().ok()?.as_ref()?.copy_reason()
    }

    /// Frees what the changes do not need any more, once the last call has ended.
    pub(crate) fn drop_unneeded(&self) {
        if let Ok(Some(staging)) = &self.staging {
            staging.drop_unneeded();
        }
    }

    /// Ends the executor, and with it what the kernel laid over the workspace.
    pub(crate) fn end_commands(&self) {
        self.command_runner.end();
    }

    /// What was collected, if anything was.
    pub(crate) fn staged_changes(&self) -> Option<WaitingChanges> {
        let staging = self.staging.as_ref().ok()?.as_ref()?;
        let paths = staging.changed_paths();
        let (refused, asked) = (staging.has_refused(), staging.asked());
        (paths > 0).then_some(WaitingChanges { paths, refused, asked })
    }
}

impl CallBackend for LiveBackend {
    fn preflight(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError> {
        let errors = || Rc::new(ErrorSink(Rc::clone(&self.sink))) as Rc<dyn Sink>;
        let sink = if self.captures_output { &errors() } else { &self.sink };
        let context = ToolContext {
            workspace: &self.workspace,
            hidden_paths: &self.hidden_paths,
            commands: &self.command_runner,
            staging: self.staging.as_ref().map(Option::as_ref),
            redactor: &self.redactor,
            backups: &self.backups,
            host: &self.host,
            cancel: &self.cancel,
            sink,
            questions: self.questions.as_ref(),
            agent: self.agent.as_ref(),
            now: now_micros(),
            is_gate: self.is_gate,
        };
        let report = preflight(call, &context)?;
        Ok(if self.is_gate { HostOperation::in_report(report) } else { report })
    }

    fn preflight_ahead(&mut self, call: &ToolCall) -> Option<Result<PreflightReport, CodedError>> {
        Some(self.preflight(call))
    }

    fn preflight_again(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError> {
        self.preflight(call)
    }

    fn script_workspace(&self) -> Option<ScriptWorkspace> {
        Some((Rc::clone(&self.workspace), Rc::clone(&self.hidden_paths)))
    }

    fn approver(&mut self) -> &mut dyn Approver {
        self.approver.as_mut()
    }

    fn pause(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.cancel.is_set() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    fn sink(&self) -> Rc<dyn Sink> {
        Rc::clone(&self.sink)
    }

    fn capture_output(&mut self, captures: bool) {
        self.captures_output = captures;
    }

    fn end_jobs(&mut self) {
        if self.command_runner.end_jobs() {
            // No call tells of what they changed, so nothing vouches for it.
            let _ = self.adopt_unrecorded();
        }
    }

    fn interrupted(&mut self) -> bool {
        self.cancel.is_set()
    }
}

/// Where what is replaced and deleted is kept.
fn backup_store(host: &Rc<dyn ToolHost>, run: Option<RunId>) -> Rc<BackupStore> {
    let log: Rc<dyn BackupLog> = host.clone();
    Rc::new(BackupStore::new(sidecar_path(host.store_path(), UNDO_SUFFIX), run, log))
}

/// What must not be seen in the workspace.
fn hidden_paths(policy: &Arc<Policy>, host: &Rc<dyn ToolHost>) -> Rc<RefCell<HiddenPaths>> {
    let seen_by = Arc::clone(policy);
    let hidden_paths =
        HiddenPaths::new(Box::new(move |path, _| seen_by.conceals(path))).hiding_special_files();
    let home = host.variable("HOME").map(PathBuf::from);
    let closing = Arc::clone(policy);
    let closes = move |path: &WorkspacePath, _| {
        closing.denied_patterns().any(|pattern| pattern.matches_in_walk(path))
    };
    let closes_any = policy.denied_patterns().next().is_some();
    let hidden_paths =
        if closes_any { hidden_paths.with_tool_rules(Box::new(closes)) } else { hidden_paths };
    let variables: Rc<dyn UserVariables> = host.clone();
    let hidden_paths =
        hidden_paths.with_invariants(Invariants::of(Arc::clone(policy)), home).on(variables);
    Rc::new(RefCell::new(hidden_paths))
}
