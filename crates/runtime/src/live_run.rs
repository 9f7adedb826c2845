//! A live run from its beginning to its end: opened, worked in, sealed, written out.

mod finish;
mod join;
mod sandbox_note;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::json;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::confinement::{SandboxTier, WorkspaceAccess};
use capsule_core::id::RunId;
use capsule_core::journal::{
    Journal, PayloadClass, PayloadRef, PendingChanges, RunKind, WorkspaceIdentity,
};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{PayloadRetention, Profile, Unattended};
use capsule_redact::Redactor;
use capsule_store::{RunWriter, Signer, SigningSchedule, Store, StoreError};
use capsule_tools::{AgentHost, CommandRunner, Sink};
use capsule_workspace::Cancel;
use serde_json::Value;

use crate::approval::{ApprovalBroker, ApprovalMemory, NoPrompt, Prompt};
use crate::backend::{CallBackend, EnvLookup, LiveBackend, SystemHost, secret_values};
use crate::bound_policy::BoundPolicy;
use crate::changes;
use crate::clock::now_micros;
use crate::layer_history::{LayerChange, LayerHistory};
use crate::observer::{ObservedJournal, Observer};
use crate::pending_changes;
use crate::resume::Resumption;
use crate::run::{Run, RunOpening, unique_label};
use crate::session::{ConversationState, EndedSession, HeldSession, SessionError};

pub use finish::FinishedRun;
use sandbox_note::{missing_layer, note_sandbox, sandbox_status};

/// What a tool may be able to do that has to be staged; for a command, its rule says.
const CHANGING_CAPABILITIES: Capabilities =
    Capabilities::of(Capability::FsWrite).with(Capability::FsDelete).with(Capability::ProcExec);

/// What a live run starts from.
pub struct LiveRunOptions<'s, 'o> {
    /// The policy and its workspace.
    pub policy: &'s BoundPolicy,
    /// The store.
    pub store: &'s Path,
    /// What started it.
    pub kind: RunKind,
    /// The run that it is about, if it is about one.
    pub subject: Option<RunId>,
    /// What the plan or call is called.
    pub name: String,
    /// The plan: its place and its text.
    pub plan: Option<(&'s str, &'s str)>,
    /// How many steps the plan has.
    pub steps: u64,
    /// The inputs.
    pub inputs: Value,
    /// The run's executor.
    pub command_runner: CommandRunner,
    /// What the tools of the run can do: for commands, their walls belong into its beginning; for
    /// changes, the workspace may have to be staged.
    pub capabilities: Capabilities,
    /// Says to stop.
    pub cancel: Cancel,
    /// Where output goes while it is made.
    pub sink: Rc<dyn Sink>,
    /// Says why the workspace is no clean copy, if it is none; asked where the profile wants one that can
    /// be thrown away and nothing is staged.
    pub why_not_disposable: Box<dyn Fn() -> Result<(), String> + 's>,
    /// Whether this program itself is known to run apart from the machine of its user; asked where the profile wants
    /// that.
    pub is_isolated: fn() -> bool,
    /// The user's environment.
    pub env: EnvLookup,
    /// Whether a person said that the workspace's layer may be gone, or say less.
    pub accepts_layer: bool,
    /// Who watches.
    pub observer: &'o mut dyn Observer,
    /// Who is asked where the policy asks.
    pub prompt: Box<dyn Prompt>,
    /// Whether the program that hosts a model carries out the calls: here they are judged, recorded and backed up.
    pub is_gate: bool,
    /// What runs the agent that the user started, if one is the call of the run.
    pub agent_host: Option<Rc<dyn AgentHost>>,
    /// Whether another agent makes the calls, which is told what became of each: a question waits for a person although the
    /// profile does not say so, and what is staged is applied or dropped when the call ends.
    pub for_agent: bool,
}

impl LiveRunOptions<'_, '_> {
    /// Whether it is about what an earlier run did, and does not go on with it: a person applies that,
    /// or takes it back.
    fn applies_earlier_run(&self) -> bool {
        self.subject.is_some() && self.kind != RunKind::Resume
    }

    /// Whether a question waits that nobody is there for: there is something to go on with, and the
    /// record will hold what it needs.
    fn can_suspend(&self) -> bool {
        let mut masked = 0;
        let policy = &self.policy.policy;
        let known = secret_values(policy, &self.env);
        let redactor = Redactor::with(&known, &policy.redaction_patterns());
        let _ = redactor.value(self.inputs.clone(), &mut masked);
        (self.for_agent || self.policy.policy.profile.unattended == Unattended::Wait)
            && !self.policy.policy.fails_unattended()
            && !self.applies_earlier_run()
            && self.policy.policy.audit.payloads == PayloadRetention::Full
            && masked == 0
    }

    /// Whether what the run changes is staged.
    fn stages(&self) -> bool {
        !self.applies_earlier_run()
            && self.policy.policy.sandbox_in_force().workspace == WorkspaceAccess::Staged
            && self.capabilities.intersects(CHANGING_CAPABILITIES)
    }

    /// What waits in the workspace. A person's own command is about that, or about none of it.
    fn pending_changes(&self, store: &Store, this: Option<RunId>) -> Option<PendingChanges> {
        let item = (self.policy.workspace.device(), self.policy.workspace.inode());
        let waits = || pending_changes::pending_changes(store, self.store, item, this);
        self.subject.is_none().then(waits).flatten()
    }

    /// Whether its commands may change the workspace itself.
    fn writes_directly(&self) -> bool {
        !self.applies_earlier_run()
            && self.policy.policy.sandbox_in_force().workspace == WorkspaceAccess::Direct
            && self.capabilities.contains(Capability::ProcExec)
    }
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store cannot be opened or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The profile wants more than the machine or the policy gives.
    #[error("{}", .0.message)]
    Refused(CodedError),
    /// The workspace's layer is gone or says less, and nobody said that it may.
    #[error("{}", .0.refusal().message)]
    WeakerLayer(Box<LayerChange>),
    /// The session cannot be taken up.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl From<CodedError> for OpenError {
    fn from(problem: CodedError) -> Self {
        Self::Refused(problem)
    }
}

impl LiveRunOptions<'_, '_> {
    /// What the profiles want before anything begins. Whoever applies changes is a person, whom no
    /// profile holds back.
    fn check_requirements(&self) -> Result<(), CodedError> {
        if self.applies_earlier_run() {
            return Ok(());
        }
        self.policy.policy.profiles_in_force().try_for_each(|profile| self.check_profile(profile))
    }

    fn check_profile(&self, profile: &Profile) -> Result<(), CodedError> {
        let confining = self.policy.policy.sandbox_in_force();
        let Profile { name, requires, .. } = profile;
        let refused = |why: String| {
            Err(CodedError::new(Code::ProfileRequires, format!("the profile `{name}` wants {why}")))
        };
        if requires.disposable
            && confining.workspace != WorkspaceAccess::Staged
            && let Err(why) = (self.why_not_disposable)()
        {
            let wants = "a staged workspace or a clean copy";
            return refused(format!("{wants}: the policy stages nothing, and {why}"));
        }
        if requires.isolated && !(self.is_isolated)() {
            return refused(
                "a machine apart: a container, a virtual machine or `capsule sandbox`, and none is seen here"
                    .into(),
            );
        }
        if !requires.sandbox {
            return Ok(());
        }
        let floor = confining.floor;
        match self.command_runner.sandbox_status() {
            Some(Ok(status)) if status.meets(floor) => Ok(()),
            Some(Ok(status)) if !status.meets(SandboxTier::Basic) => refused(format!(
                "an enforced sandbox, and there is none: {}",
                missing_layer(&status)
            )),
            Some(Ok(status)) => refused(format!(
                "an enforced sandbox: the policy asks for `{floor}` and this machine gives `{}`",
                status.tier
            )),
            Some(Err(failure)) => {
                refused(format!("an enforced sandbox, and there is none: {}", failure.reason()))
            }
            None => refused("an enforced sandbox, and there is none".into()),
        }
    }

    /// What the record remembers of the layers. Who applies changes does so under the layers that
    /// made them.
    fn layer_history(&self, store: &Store) -> Result<(LayerHistory, Vec<LayerChange>), OpenError> {
        if self.applies_earlier_run() {
            return Ok((LayerHistory::default(), Vec::new()));
        }
        let (met, news) = LayerHistory::compare(self.policy, store)?;
        match news.iter().find(|new| new.is_weaker()) {
            Some(news) if !self.accepts_layer => {
                Err(OpenError::WeakerLayer(Box::new(news.clone())))
            }
            _ => Ok((met, news)),
        }
    }
}

/// A live run.
pub struct LiveRun<'o> {
    /// What calls are submitted to.
    pub run: Run<ObservedJournal<'o, RunWriter>, LiveBackend>,
    /// Its full id.
    pub id: RunId,
    /// Its label.
    pub label: String,
    /// Why what it changes is staged in a copy of the workspace, if it is.
    pub copy_reason: Option<String>,
    /// What is new about its layers.
    pub layer_changes: Vec<LayerChange>,
    /// The public line of the key that was made for its store, if one was.
    pub made_key: Option<String>,
    /// Where its changes are collected.
    staged: Option<PathBuf>,
    workspace: WorkspaceIdentity,
    /// Whether that holds what an earlier run changed, whatever becomes of this one.
    keeps_staged: bool,
    /// The session that the run is, if it is one.
    session: Option<HeldSession>,
    pub(crate) conversation: Option<ConversationState>,
    /// Whether this process opened that session.
    pub is_new_session: bool,
    /// The session that ended for it: its policy, its workspace or the tools are others by now.
    pub ended_session: Option<EndedSession>,
    /// What the run remembers of approvals.
    approvals: Rc<RefCell<ApprovalMemory>>,
}

/// Makes the key of a store that a policy wants signed and that holds nothing yet; gives its public line, if it
/// was made. Of a store with events nobody could tell that another key did not sign them before.
fn key_of_new(store: &Store, bound: &BoundPolicy) -> Result<Option<String>, OpenError> {
    if !bound.policy.audit.demands_signing() || Signer::load(store.path())?.is_some() {
        return Ok(None);
    }
    if store.size()? > 0 {
        let wants = "the policy wants the log signed, and there is no key next to the store";
        let problem = CodedError::new(Code::AuditNoKey, wants);
        return Err(problem.with_suggestion(Code::AuditNoKey.next_step()).into());
    }
    let (signer, is_new) = Signer::take_or_make(store.path(), None)?;
    Ok(is_new.then(|| signer.verifier().to_string()))
}

/// What writes a run, under the key of the one that it goes on with, and the run's label.
fn run_writer(
    store: Store,
    bound: &BoundPolicy,
    with: Option<&Resumption>,
) -> Result<(RunWriter, String), OpenError> {
    let audit = &bound.policy.audit;
    let signing = SigningSchedule::for_policy(&store, audit, !bound.roots.may_drop_base_rules)?;
    let mut writer = store.begin(Box::new(now_micros), audit.payloads)?;
    writer.sign_with(signing);
    if let Some(with) = with {
        writer.use_key(with.pending.key);
    }
    let label = unique_label(&writer)?;
    Ok((writer, label))
}

/// What is written when a run begins, but for its walls.
fn run_opening<'a>(
    start: &LiveRunOptions<'a, '_>,
    place: &'a str,
    (label, key): (String, PayloadRef),
    (met, policy_since, unpulled): (LayerHistory, Option<String>, Option<PendingChanges>),
) -> RunOpening<'a> {
    let bound = start.policy;
    RunOpening {
        label,
        kind: start.kind,
        subject: start.subject,
        name: start.name.clone(),
        plan: start.plan,
        policy_text: (place, &bound.text.text),
        extended: bound
            .extended
            .as_ref()
            .map(|policy| (policy.name.as_str(), policy.text.as_str())),
        layers: (&bound.layers, met),
        policy_since,
        inputs: start.inputs.clone(),
        key,
        workspace: bound.workspace_identity(),
        home: bound.home.clone(),
        own_files: bound.roots.runtime_files.clone(),
        sandbox_status: None,
        mount: bound.workspace.root_names().mount().to_owned(),
        toolchains: bound.toolchains.real_paths(),
        unconfined: None,
        steps: start.steps,
        staged: start.stages(),
        direct: start.writes_directly(),
        network: bound.policy.sandbox_in_force().network,
        pending_changes: unpulled,
    }
}

/// Where a person sits in the run, with what somebody answered before it.
fn approval_broker(
    start: &LiveRunOptions<'_, '_>,
    label: &str,
    with: Option<&Resumption>,
) -> ApprovalBroker {
    let broker = ApprovalBroker::new(Box::new(NoPrompt), start.policy, (label, start.store));
    broker
        .suspending(start.can_suspend())
        .settling(start.for_agent)
        .with_stored_reply(with.and_then(|with| with.pending.stored_reply()))
}

/// The same backend with what an earlier run collected, where the run is to apply that.
fn with_applied_changes(backend: LiveBackend, applied: Option<RunId>, store: &Path) -> LiveBackend {
    match applied {
        Some(subject) => backend.with_earlier_changes(&changes::staging_path(store, subject)),
        None => backend,
    }
}

/// Has what the run changes collected in its folder, behind what the run before it had.
fn with_staging(
    backend: LiveBackend,
    (bound, store, folder): (&BoundPolicy, &Path, &Path),
    with: Option<&Resumption>,
) -> LiveBackend {
    let earlier = with
        .and_then(|with| Some((changes::staging_path(store, with.pending.run), with.changes()?)));
    let earlier = earlier.as_ref().map(|(folder, changes)| (folder.as_path(), *changes));
    backend.staged(&bound.policy, folder, earlier)
}

/// Writes what a run goes on from.
fn write_resumed<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    with: &Resumption,
) -> Result<(), J::Error> {
    let progress = json::canonical(&with.progress);
    let progress = run.journal.put_payload(PayloadClass::Output, &progress)?;
    run.write(with.resumed_event(progress))?;
    run.next_is_answered = true;
    Ok(())
}

/// Has the executor build what commands will see while the record is begun, where nothing has to be
/// recorded before that.
fn prepare_view(backend: &LiveBackend, bound: &BoundPolicy, opening: &RunOpening<'_>) {
    if !opening.staged && !opening.direct && opening.subject.is_none() {
        backend.prepare_view(bound.policy.sandbox_in_force().floor);
    }
}

/// What acts for a run, and what watches it.
fn live_backend<'o>(
    start: LiveRunOptions<'_, 'o>,
    run: RunId,
    broker: ApprovalBroker,
) -> (LiveBackend, &'o mut dyn Observer) {
    let (bound, is_gate) = (start.policy, start.is_gate);
    let machine = SystemHost::new(bound, start.store, start.env);
    let backend = LiveBackend::new(
        Rc::clone(&bound.workspace),
        &bound.policy,
        start.command_runner,
        Rc::new(machine),
        start.cancel,
        start.sink,
    );
    let backend = backend.for_run(run).with_approver(broker.with_prompt(start.prompt));
    (backend.gating(is_gate).with_agent(start.agent_host), start.observer)
}

/// The label of the run since which the policy's text has not changed.
fn policy_since(bound: &BoundPolicy, store: &Store) -> Result<Option<String>, StoreError> {
    let sha256 = Digest::of(bound.text.text.as_bytes()).to_string();
    store.policy_unchanged_since((&bound.place(), &bound.policy.name), &sha256)
}

impl<'o> LiveRun<'o> {
    /// Opens a run.
    ///
    /// # Errors
    /// When the store cannot be opened or written, or the profile wants what there is not.
    pub fn open(start: LiveRunOptions<'_, 'o>) -> Result<Self, OpenError> {
        Self::begin(start, None)
    }

    /// Opens a run that goes on with a suspended one.
    ///
    /// # Errors
    /// When the store cannot be opened or written, or the profile wants what there is not.
    pub fn resume(start: LiveRunOptions<'_, 'o>, with: &Resumption) -> Result<Self, OpenError> {
        Self::begin(start, Some(with))
    }

    fn begin(start: LiveRunOptions<'_, 'o>, with: Option<&Resumption>) -> Result<Self, OpenError> {
        start.check_requirements()?;
        let (bound, stages, applies) = (start.policy, start.stages(), start.applies_earlier_run());
        let store = Store::open(start.store)?;
        let (met, news) = start.layer_history(&store)?;
        let policy_since = policy_since(bound, &store)?;
        let unpulled = start.pending_changes(&store, None);
        let made_key = key_of_new(&store, bound)?;
        let (mut writer, label) = run_writer(store, bound, with)?;
        let (id, key) = (writer.run(), writer.keep_key()?);
        let (place, named) = (bound.place(), (label.clone(), key));
        let mut opening = run_opening(&start, &place, named, (met, policy_since, unpulled));
        let approvals = Rc::default();
        let broker = approval_broker(&start, &label, with)
            .with_memory(Rc::clone(&approvals))
            .with_pending_changes(unpulled);
        let staged = (stages && !start.is_gate).then(|| changes::staging_path(start.store, id));
        let (capabilities, applied) = (start.capabilities, start.subject.filter(|_| applies));
        let path = start.store;
        let (backend, observer) = live_backend(start, id, broker);
        let backend = with_applied_changes(backend, applied, path);
        if capabilities.contains(Capability::ProcExec) {
            prepare_view(&backend, bound, &opening);
        }
        let status = sandbox_status(&backend, capabilities);
        let journal = ObservedJournal::new(writer, observer);
        let redactor = backend.redactor().clone();
        let mut run = Run { redactor, ..Run::new(Arc::clone(&bound.policy), journal, backend) };
        note_sandbox(&mut opening, bound, status);
        opening.write(&mut run)?;
        // The record knows the run before anything is laid down that has to be dropped by its name.
        if let Some(with) = with {
            write_resumed(&mut run, with)?;
        }
        if let Some(folder) = &staged {
            run.backend = with_staging(run.backend, (bound, path, folder), with);
        }
        Ok(Self {
            copy_reason: run.backend.copy_reason().map(str::to_owned),
            run,
            id,
            label,
            layer_changes: news,
            made_key,
            staged,
            workspace: bound.workspace_identity(),
            keeps_staged: with.is_some_and(Resumption::has_changes),
            session: None,
            conversation: None,
            is_new_session: false,
            ended_session: None,
            approvals,
        })
    }
}
