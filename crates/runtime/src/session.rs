//! A live run from its beginning to its end: opened, worked in, sealed, written out.

mod finish;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use capsule_core::capability::{Capabilities, Capability};
use capsule_core::code::Code;
use capsule_core::confinement::{SandboxStatus, SandboxTier, WorkspaceAccess};
use capsule_core::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{
    Journal, NoSandbox, PayloadClass, PayloadRef, PendingChanges, RunKind, WorkspaceIdentity,
};
use capsule_core::json;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{PayloadRetention, Profile, Unattended};
use capsule_redact::Redactor;
use capsule_store::{RunWriter, Signer, Signing, Store, StoreError};
use capsule_tools::{Cancel, Commands, Sink};
use serde_json::Value;

use crate::approval::{Desk, Empty, Prompt};
use crate::changes;
use crate::hands::{Hands, Live, Machine, Variables, now, secrets};
use crate::law::Law;
use crate::layers::{Met, News};
use crate::observe::{Observed, Observer};
use crate::resume::Resumption;
use crate::run::{Opening, Run, label};
use crate::stake;
use crate::unconfined::runs_unconfined;

pub use finish::Finished;

/// What a tool may be able to do that has to be staged; for a command, its rule says.
const CHANGING: Capabilities =
    Capabilities::of(Capability::FsWrite).with(Capability::FsDelete).with(Capability::ProcExec);

/// What a live run starts from.
pub struct Start<'s, 'o> {
    /// The policy and its workspace.
    pub law: &'s Law,
    /// The store.
    pub store: &'s Path,
    /// What started it.
    pub origin: RunKind,
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
    pub commands: Commands,
    /// What the tools of the run can do: for commands, their walls belong into its beginning; for
    /// changes, the workspace may have to be staged.
    pub capabilities: Capabilities,
    /// Says to stop.
    pub cancel: Cancel,
    /// Where output goes while it is made.
    pub sink: Rc<dyn Sink>,
    /// Says why the workspace is no clean copy, if it is none; asked where the profile wants one that can
    /// be thrown away and nothing is staged.
    pub disposable: Box<dyn Fn() -> Result<(), String> + 's>,
    /// The user's environment.
    pub variables: Variables,
    /// Whether a person said that the workspace's layer may be gone, or say less.
    pub accepts_layer: bool,
    /// Who watches.
    pub observer: &'o mut dyn Observer,
    /// Who is asked where the policy asks.
    pub prompt: Box<dyn Prompt>,
}

impl Start<'_, '_> {
    /// Whether it is about what an earlier run did, and does not go on with it: a person applies that,
    /// or takes it back.
    fn applies(&self) -> bool {
        self.subject.is_some() && self.origin != RunKind::Resume
    }

    /// Whether a question waits that nobody is there for: there is something to go on with, and the
    /// record will hold what it needs.
    fn waits(&self) -> bool {
        let mut masked = 0;
        let policy = &self.law.policy;
        let known = secrets(policy, &self.variables);
        let redactor = Redactor::with(&known, &policy.redaction_patterns());
        let _ = redactor.value(self.inputs.clone(), &mut masked);
        self.law.policy.profile.unattended == Unattended::Wait
            && !self.law.policy.fails_unattended()
            && matches!(
                self.origin,
                RunKind::Plan | RunKind::Call | RunKind::Exec | RunKind::Resume
            )
            && self.law.policy.audit.payloads == PayloadRetention::Full
            && masked == 0
    }

    /// Whether what the run changes is staged.
    fn stages(&self) -> bool {
        !self.applies()
            && self.law.policy.sandbox_in_force().workspace == WorkspaceAccess::Staged
            && self.capabilities.intersects(CHANGING)
    }

    /// What waits in the workspace. A person's own command is about that, or about none of it.
    fn unpulled(&self, store: &Store) -> Option<PendingChanges> {
        let own = (self.law.workspace.device(), self.law.workspace.inode());
        let waits = || stake::unpulled(store, self.store, own);
        self.subject.is_none().then(waits).flatten()
    }

    /// Whether its commands may change the workspace itself.
    fn is_direct(&self) -> bool {
        !self.applies()
            && self.law.policy.sandbox_in_force().workspace == WorkspaceAccess::Direct
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
    Weaker(Box<News>),
}

impl From<CodedError> for OpenError {
    fn from(problem: CodedError) -> Self {
        Self::Refused(problem)
    }
}

impl Start<'_, '_> {
    /// What the profiles want before anything begins. Whoever applies changes is a person, whom no
    /// profile holds back.
    fn required(&self) -> Result<(), CodedError> {
        if self.applies() {
            return Ok(());
        }
        self.law.policy.profiles_in_force().try_for_each(|own| self.required_by(own))
    }

    fn required_by(&self, profile: &Profile) -> Result<(), CodedError> {
        let confining = self.law.policy.sandbox_in_force();
        let Profile { name, requires, .. } = profile;
        let refused = |why: String| {
            Err(CodedError::new(Code::ProfileRequires, format!("the profile `{name}` wants {why}")))
        };
        if requires.disposable
            && confining.workspace != WorkspaceAccess::Staged
            && let Err(why) = (self.disposable)()
        {
            let wants = "a staged workspace or a clean copy";
            return refused(format!("{wants}: the policy stages nothing, and {why}"));
        }
        if !requires.sandbox {
            return Ok(());
        }
        let floor = confining.floor;
        match self.commands.walls() {
            Some(Ok(walls)) if walls.meets(floor) => Ok(()),
            Some(Ok(walls)) if !walls.meets(SandboxTier::Landlock) => {
                refused(format!("an enforced sandbox, and there is none: {}", missing(&walls)))
            }
            Some(Ok(walls)) => refused(format!(
                "an enforced sandbox: the policy asks for `{floor}` and this machine gives `{}`",
                walls.tier
            )),
            Some(Err(why)) => refused(format!("an enforced sandbox, and there is none: {why}")),
            None => refused("an enforced sandbox, and there is none".into()),
        }
    }

    /// What the record remembers of the layers. Who applies changes does so under the layers that
    /// made them.
    fn met(&self, store: &Store) -> Result<(Met, Vec<News>), OpenError> {
        if self.applies() {
            return Ok((Met::default(), Vec::new()));
        }
        let (met, news) = Met::of(self.law, store)?;
        match news.iter().find(|own| own.is_weaker()) {
            Some(news) if !self.accepts_layer => Err(OpenError::Weaker(Box::new(news.clone()))),
            _ => Ok((met, news)),
        }
    }
}

/// A live run.
pub struct Session<'o> {
    /// What calls are submitted to.
    pub run: Run<Observed<'o, RunWriter>, Live>,
    /// Its full id.
    pub id: RunId,
    /// Its label.
    pub label: String,
    /// Why what it changes is staged in a copy of the workspace, if it is.
    pub copied: Option<String>,
    /// What is new about its layers.
    pub news: Vec<News>,
    /// The public line of the key that was made for its store, if one was.
    pub made_key: Option<String>,
    /// Where its changes are collected.
    staged: Option<PathBuf>,
    workspace: WorkspaceIdentity,
    /// Whether that holds what an earlier run changed, whatever becomes of this one.
    keeps: bool,
}

/// Makes the key of a store that a policy wants signed and that holds nothing yet; gives its public line, if it
/// was made. Of a store with events nobody could tell that another key did not sign them before.
fn key_of_new(store: &Store, law: &Law) -> Result<Option<String>, OpenError> {
    if !law.policy.audit.demands_signing() || Signer::beside(store.path())?.is_some() {
        return Ok(None);
    }
    if store.size()? > 0 {
        let wants = "the policy wants the log signed, and there is no key beside the store";
        let problem = CodedError::new(Code::AuditNoKey, wants);
        return Err(problem.with_suggestion(Code::AuditNoKey.next_step()).into());
    }
    let (signer, is_new) = Signer::take_or_make(store.path(), None)?;
    Ok(is_new.then(|| signer.verifier().to_string()))
}

/// What writes a run, under the key of the one that it goes on with, and the run's label.
fn writer(
    store: Store,
    law: &Law,
    with: Option<&Resumption>,
) -> Result<(RunWriter, String), OpenError> {
    let audit = &law.policy.audit;
    let signing = Signing::of(&store, audit, !law.roots.may_drop_base_rules)?;
    let mut writer = store.begin(Box::new(now), audit.payloads)?;
    writer.sign_by(signing);
    if let Some(with) = with {
        writer.take_key(with.pending.key);
    }
    let label = label(&writer)?;
    Ok((writer, label))
}

/// What is written when a run begins, but for its walls.
fn opening<'a>(
    start: &Start<'a, '_>,
    place: &'a str,
    (label, key): (String, PayloadRef),
    (met, policy_since, unpulled): (Met, Option<String>, Option<PendingChanges>),
) -> Opening<'a> {
    let law = start.law;
    Opening {
        label,
        origin: start.origin,
        subject: start.subject,
        name: start.name.clone(),
        plan: start.plan,
        policy_text: (place, &law.text.text),
        extended: law.extended.as_ref().map(|own| (own.name.as_str(), own.text.as_str())),
        layers: (&law.layers, met),
        policy_since,
        inputs: start.inputs.clone(),
        key,
        workspace: workspace(law),
        home: law.home.clone(),
        own: law.roots.runtime_files.clone(),
        walls: None,
        bare: None,
        steps: start.steps,
        staged: start.stages(),
        direct: start.is_direct(),
        unpulled,
    }
}

/// Where a person sits in the run, with what somebody answered before it.
fn desk(start: &Start<'_, '_>, label: &str, with: Option<&Resumption>) -> Desk {
    let desk = Desk::new(Box::new(Empty), start.law, (label, start.store));
    desk.waiting(start.waits()).answered(with.map(Resumption::stored))
}

/// The same hands with what an earlier run collected, where the run is to apply that.
fn taking(hands: Live, applied: Option<RunId>, store: &Path) -> Live {
    match applied {
        Some(subject) => hands.with_changes(&changes::place(store, subject)),
        None => hands,
    }
}

/// Has what the run changes collected in its folder, behind what the run before it had.
fn laid(
    hands: Live,
    (law, store, folder): (&Law, &Path, &Path),
    with: Option<&Resumption>,
) -> Live {
    let earlier =
        with.and_then(|with| Some((changes::place(store, with.pending.run), with.changes()?)));
    let earlier = earlier.as_ref().map(|(folder, changes)| (folder.as_path(), *changes));
    hands.staged(&law.policy, folder, earlier)
}

/// Writes what a run goes on from.
fn go_on_with<J: Journal, H: Hands>(
    run: &mut Run<J, H>,
    with: &Resumption,
) -> Result<(), J::Error> {
    let progress = json::canonical(&with.progress);
    let progress = run.journal.put_payload(PayloadClass::Output, &progress)?;
    run.write(with.event(progress))?;
    run.awaited = true;
    Ok(())
}

/// The folder that a run works in, as it is recorded.
fn workspace(law: &Law) -> WorkspaceIdentity {
    WorkspaceIdentity {
        path: law.roots.workspace.clone(),
        device: law.workspace.device().to_string(),
        inode: law.workspace.inode().to_string(),
        spelling: law.roots.spelling,
    }
}

/// Where the policy was read, as it is recorded.
/// The walls that commands will stand behind; only a run with commands needs to know.
fn walls(hands: &Live, needs: Capabilities) -> Option<Result<SandboxStatus, String>> {
    needs.contains(Capability::ProcExec).then(|| hands.walls()).flatten()
}

/// The first layer that a sandbox of any kind would need.
fn missing(walls: &SandboxStatus) -> String {
    match walls
        .missing_layer(SandboxTier::Landlock)
        .or(walls.missing_layer(SandboxTier::Namespaces))
    {
        Some(gap) => format!("no {}: {}", gap.layer.name(), gap.detail),
        None => "the machine has none".into(),
    }
}

/// What is said where there are none. Commands may run there only if the machine itself said so.
fn bare(law: &Law, gone: Result<SandboxStatus, String>) -> NoSandbox {
    let answered = gone.is_ok();
    let why = match gone {
        Err(why) => why,
        Ok(walls) => missing(&walls),
    };
    NoSandbox { why, unconfined: answered && runs_unconfined(&law.policy) }
}

/// Has the executor build what commands will see while the record is begun, where nothing has to be
/// recorded before that.
fn show_ahead(hands: &Live, law: &Law, opening: &Opening<'_>) {
    if !opening.staged && !opening.direct && opening.subject.is_none() {
        hands.show_ahead(law.policy.sandbox_in_force().floor);
    }
}

/// The label of the run since which the policy's text has not changed.
fn policy_since(law: &Law, store: &Store) -> Result<Option<String>, StoreError> {
    let sha256 = Digest::of(law.text.text.as_bytes()).to_string();
    store.policy_since((&law.place(), &law.policy.name), &sha256)
}

impl<'o> Session<'o> {
    /// Opens a run.
    ///
    /// # Errors
    /// When the store cannot be opened or written, or the profile wants what there is not.
    pub fn open(start: Start<'_, 'o>) -> Result<Self, OpenError> {
        Self::begin(start, None)
    }

    /// Opens a run that goes on with a suspended one.
    ///
    /// # Errors
    /// When the store cannot be opened or written, or the profile wants what there is not.
    pub fn resume(start: Start<'_, 'o>, with: &Resumption) -> Result<Self, OpenError> {
        Self::begin(start, Some(with))
    }

    fn begin(start: Start<'_, 'o>, with: Option<&Resumption>) -> Result<Self, OpenError> {
        start.required()?;
        let (law, stages, applies) = (start.law, start.stages(), start.applies());
        let store = Store::open(start.store)?;
        let (met, news) = start.met(&store)?;
        let policy_since = policy_since(law, &store)?;
        let unpulled = start.unpulled(&store);
        let made_key = key_of_new(&store, law)?;
        let (mut writer, label) = writer(store, law, with)?;
        let (id, key) = (writer.run(), writer.keep_key()?);
        let (place, named) = (law.place(), (label.clone(), key));
        let mut opening = opening(&start, &place, named, (met, policy_since, unpulled));
        let desk = desk(&start, &label, with).beside(unpulled).prompting(start.prompt);
        let machine = Machine::new(&law.policy, start.store, start.variables);
        let hands = Live::new(
            Rc::clone(&law.workspace),
            &law.policy,
            start.commands,
            Rc::new(machine),
            start.cancel,
            start.sink,
        );
        let hands = hands.of_run(id).asking(desk);
        let staged = stages.then(|| changes::place(start.store, id));
        let hands = taking(hands, start.subject.filter(|_| applies), start.store);
        if start.capabilities.contains(Capability::ProcExec) {
            show_ahead(&hands, law, &opening);
        }
        let walls = walls(&hands, start.capabilities);
        let journal = Observed::new(writer, start.observer);
        let redactor = hands.redactor().clone();
        let mut run = Run { redactor, ..Run::new(Arc::clone(&law.policy), journal, hands) };
        match walls {
            Some(Ok(walls)) if walls.meets(SandboxTier::Landlock) => opening.walls = Some(walls),
            Some(gone) => opening.bare = Some(bare(law, gone)),
            None => {}
        }
        opening.write(&mut run)?;
        // The record knows the run before anything is laid down that has to be dropped by its name.
        if let Some(with) = with {
            go_on_with(&mut run, with)?;
        }
        if let Some(folder) = &staged {
            run.hands = laid(run.hands, (law, start.store, folder), with);
        }
        let copied = run.hands.why_copied().map(str::to_owned);
        Ok(Self {
            run,
            id,
            label,
            copied,
            news,
            made_key,
            staged,
            workspace: workspace(law),
            keeps: with.is_some_and(Resumption::keeps),
        })
    }
}
