//! A run: what the one path is taken in, its beginning and its end.

use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_base::json;
use capsule_base::root_names::RootNames;
use capsule_core::action::{Action, ParsedUrl};
use capsule_core::call::ToolCall;
use capsule_core::confinement::{NetworkAccess, SandboxStatus};
use capsule_core::id::RunId;
use capsule_core::journal::{
    Document, Durability, Event, Journal, LayerOpened, NoSandbox, PayloadClass, PayloadRef,
    PendingChanges, RunKind, RunOpened, RunSealed, WorkspaceIdentity,
};
use capsule_core::lifecycle::BatchApproval;
use capsule_core::policy::{Policy, Usage, written_by_words};
use capsule_core::tool::{ArgumentKind, ToolName};
use capsule_redact::Redactor;
use capsule_store::{RunWriter, StoreError, run_label};
use capsule_tools::CATALOGUE;
use serde_json::Value;

use crate::backend::CallBackend;
use crate::layer_history::LayerHistory;
use crate::layers::LayerText;

/// What the one path is taken in.
pub struct Run<J, H> {
    /// What judges.
    pub policy: Arc<Policy>,
    /// Where everything is written.
    pub journal: J,
    /// What acts.
    pub backend: H,
    /// What masks.
    pub redactor: Redactor,
    /// What was used so far.
    pub usage: Usage,
    /// How many calls were proposed.
    pub calls: u64,
    /// What was approved with the list whose parts run now.
    pub(crate) batch_approval: Option<BatchApproval>,
    /// The call that waits for an answer: nothing comes after it.
    pub(crate) waiting: Option<u64>,
    /// Whether the next call is the one that waited and was answered.
    pub(crate) next_is_answered: bool,
}

impl<J: Journal, H: CallBackend> Run<J, H> {
    /// A run that was opened.
    pub fn new(policy: Arc<Policy>, journal: J, backend: H) -> Self {
        let redactor = Redactor::with(&[], &policy.redaction_patterns());
        Self {
            policy,
            journal,
            backend,
            redactor,
            usage: Usage::default(),
            calls: 0,
            batch_approval: None,
            waiting: None,
            next_is_answered: false,
        }
    }

    /// The call that waits for an answer, if one does.
    #[must_use]
    pub const fn waiting(&self) -> Option<u64> {
        self.waiting
    }

    /// Whether no call may follow one that ended with this code: a budget is used up, a person ended the run, or the
    /// profile does not go on where no person can be asked.
    pub(crate) fn ends_after(&self, code: Code) -> bool {
        code.is_budget()
            || code == Code::ApprovalStopped
            || code == Code::ApprovalNeeded && self.policy.fails_unattended()
    }

    /// Counts a call, and gives its tool the one name that it has in records and policies.
    pub(crate) fn number_call(&mut self, mut call: ToolCall) -> ToolCall {
        self.calls += 1;
        if let Some(signature) = CATALOGUE.find(call.tool.as_str()) {
            call.tool = ToolName::unchecked(signature.id);
        }
        call
    }

    /// Writes an event that is not part of a call.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, event: Event) -> Result<(), J::Error> {
        self.journal.append(event, Durability::CrashSafe).map(|_| ())
    }

    /// Writes an event that is not part of a call together with the next one: what comes between them
    /// changes nothing, and takes no time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write_with_next(&mut self, event: Event) -> Result<(), J::Error> {
        self.journal.append(event, Durability::Deferred).map(|_| ())
    }

    /// Keeps a text that may quote the world.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn keep_text(&mut self, text: &Value) -> Result<PayloadRef, J::Error> {
        self.keep_masked(PayloadClass::Text, text.clone())
    }

    fn keep_masked(&mut self, class: PayloadClass, value: Value) -> Result<PayloadRef, J::Error> {
        let mut masked = 0;
        let clean = self.redactor.value(value, &mut masked);
        self.journal.put_payload(class, &json::canonical_value(&clean))
    }
}

/// What is written when a run begins.
#[derive(Clone, Debug)]
pub(crate) struct RunOpening<'o> {
    /// The shortest prefix of the run's id that is unique.
    pub label: String,
    /// What started it.
    pub kind: RunKind,
    /// The run that it is about.
    pub subject: Option<RunId>,
    /// What the plan or call is called.
    pub name: String,
    /// The plan: its place and its text.
    pub plan: Option<(&'o str, &'o str)>,
    /// The policy: its place and its text.
    pub policy_text: (&'o str, &'o str),
    /// The policy that it extends: its name and its text.
    pub extended: Option<(&'o str, &'o str)>,
    /// The layers over it, with what is remembered of them.
    pub layers: (&'o [LayerText], LayerHistory),
    /// The label of the run since which the policy has not changed.
    pub policy_since: Option<String>,
    /// The inputs.
    pub inputs: Value,
    /// The run's key, as it was kept.
    pub key: PayloadRef,
    /// The folder.
    pub workspace: WorkspaceIdentity,
    /// The folder that `~` stands for.
    pub home: String,
    /// The runtime's own files.
    pub own_files: Vec<String>,
    /// The walls that commands will stand behind.
    pub sandbox_status: Option<SandboxStatus>,
    /// Where commands see the workspace, if the run has any.
    pub mount: String,
    /// The directories and files of toolchains that commands see.
    pub toolchains: Vec<String>,
    /// What is said where there are none.
    pub(crate) unconfined: Option<NoSandbox>,
    /// How many steps the plan has.
    pub steps: u64,
    /// Whether what it changes is staged.
    pub staged: bool,
    /// Whether its commands may change the workspace itself.
    pub direct: bool,
    /// The network of its commands.
    pub network: NetworkAccess,
    /// What waits in the workspace from earlier runs.
    pub pending_changes: Option<PendingChanges>,
}

impl RunOpening<'_> {
    /// Writes that the run began.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write<J: Journal, H: CallBackend>(
        self,
        run: &mut Run<J, H>,
    ) -> Result<(), J::Error> {
        let plan = self.plan.map(|plan| keep_document(run, plan)).transpose()?;
        let policy = keep_document(run, self.policy_text)?;
        let inputs = run.keep_masked(PayloadClass::Document, self.inputs)?;
        let extends = self.extended.map(|extended| keep_document(run, extended)).transpose()?;
        let (texts, met) = self.layers;
        let mut layers = Vec::new();
        for (at, LayerText { kind, path, text, .. }) in texts.iter().enumerate() {
            let document = keep_document(run, (&path.to_string_lossy(), &text.text))?;
            let (since, before) = met.layer_entry(at);
            layers.push(LayerOpened { layer: *kind, document, since, before });
        }
        let has_sandbox = self.sandbox_status.is_some();
        let opened = RunOpened {
            label: self.label,
            origin: self.kind,
            subject: self.subject,
            name: self.name,
            engine: engine_version(),
            plan,
            policy,
            policy_name: run.policy.name.clone(),
            policy_since: self.policy_since,
            profile: run.policy.profile.name.clone(),
            payloads: run.policy.audit.payloads,
            erase_after: run.policy.audit.erase_after,
            inputs,
            key: self.key,
            workspace: self.workspace,
            home: self.home,
            own: self.own_files,
            tools: tools_digest(),
            mount: has_sandbox.then_some(self.mount),
            toolchains: if has_sandbox { self.toolchains } else { Vec::new() },
            walls: self.sandbox_status,
            bare: self.unconfined,
            steps: self.steps,
            staged: self.staged,
            direct: self.direct,
            network: if has_sandbox { self.network } else { NetworkAccess::None },
            extends,
            layers,
            layer_gone: met.gone,
            unpulled: self.pending_changes,
        };
        // A plan may be looked at as a whole before its first call, and something may be laid down for a
        // run: the record knows of it first.
        let has_one_call = matches!(opened.origin, RunKind::Call | RunKind::Exec);
        let at_once = opened.staged || !has_one_call;
        let opened = Event::RunOpened(Box::new(opened));
        if at_once { run.write(opened) } else { run.write_with_next(opened) }
    }
}

/// Keeps a text that the run began with, masked.
fn keep_document<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    (path, text): (&str, &str),
) -> Result<Document, J::Error> {
    let mut masked = 0;
    let clean = run.redactor.text(text, &mut masked);
    let kept = run.journal.put_payload(PayloadClass::Document, clean.as_bytes())?;
    Ok(Document { path: path.to_owned(), sha256: Digest::of(text.as_bytes()), text: kept })
}

/// Writes that the run ended.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn seal_run<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    exit: Exit,
    outputs: Option<&Value>,
) -> Result<(), J::Error> {
    let mut keep = |outputs: &Value| run.keep_masked(PayloadClass::Output, outputs.clone());
    let outputs = outputs.map(&mut keep).transpose()?;
    let events = run.journal.event_count() + 1;
    let sealed = RunSealed { exit, events, calls: run.calls, outputs, suspended: run.waiting };
    run.write(Event::RunSealed(sealed))
}

/// The shortest beginning of a new run's id that no other run of the store has.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn unique_label(writer: &RunWriter) -> Result<String, StoreError> {
    let id = writer.run();
    let beginning: String = id.to_string().chars().take(6).collect();
    let others = writer.store().runs_with_prefix(&beginning)?;
    Ok(run_label(id, others.iter().map(String::as_str)))
}

/// The program that runs things: its name, version and target.
#[must_use]
pub fn engine_version() -> String {
    format!(
        "capsule {} {}-{}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}

/// The digest of the signatures of all tools.
#[must_use]
pub fn tools_digest() -> Digest {
    let tools: Vec<Value> = CATALOGUE
        .0
        .iter()
        .map(|tool| {
            let arguments: Vec<Value> = tool
                .arguments
                .iter()
                .map(|argument| {
                    let words = match argument.kind {
                        ArgumentKind::OneOf(words) => words,
                        _ => &[],
                    };
                    serde_json::json!([
                        argument.name,
                        argument.kind.name(),
                        words,
                        argument.required,
                        argument.about
                    ])
                })
                .collect();
            let results: Vec<&str> = tool.results.iter().map(|result| result.name).collect();
            serde_json::json!([
                tool.id,
                tool.model_name,
                tool.aliases,
                tool.about,
                tool.capabilities,
                arguments,
                results
            ])
        })
        .collect();
    Digest::of(&json::canonical(&tools))
}

/// Counts a call that ran: what it moved, how long it took, and which host it asked. Everything
/// that is counted is in the record, so a replay counts the same.
pub fn count_usage(
    usage: &mut Usage,
    tool: &ToolName,
    (action, names): (&Action, &RootNames),
    result: &Value,
    micros: u64,
) {
    let host = match action {
        Action::Fetch { url, .. } => match &url.parsed {
            ParsedUrl::Url(address) => Some(address.host().to_string()),
            ParsedUrl::Refused(_) => None,
        },
        _ => None,
    };
    usage.wrote(written_by_words(action, names));
    if let Action::Write { path, .. } | Action::Edit { path, .. } = action
        && let Some(path) = path.inside()
    {
        usage.replaced(path.as_str());
    }
    let bytes = match action {
        Action::Write { bytes, .. } | Action::Edit { bytes, .. } => *bytes,
        _ => {
            const TEXTS: [&str; 10] = [
                "text",
                "base64",
                "stdout",
                "stdout_base64",
                "stdout_tail",
                "stdout_tail_base64",
                "stderr",
                "stderr_base64",
                "stderr_tail",
                "stderr_tail_base64",
            ];
            let lengths = TEXTS.iter().filter_map(|name| result.get(*name)?.as_str());
            lengths.map(|text| u64::try_from(text.len()).unwrap_or(u64::MAX)).sum()
        }
    };
    // A person takes the time that an answer takes, or the work with an agent.
    let is_of_person = matches!(action, Action::AskUser { .. } | Action::Agent { .. });
    let micros = if is_of_person { 0 } else { micros };
    usage.count_run(tool, bytes, micros, host);
}
