//! A run: what the one path is taken in, its beginning and its end.

use std::sync::Arc;

use capsule_core::action::{Action, Parsed};
use capsule_core::call::ToolCall;
use capsule_core::confinement::Walls;
use capsule_core::digest::Digest;
use capsule_core::exit::Exit;
use capsule_core::id::RunId;
use capsule_core::journal::{
    Document, Durability, Event, Journal, PayloadClass, PayloadRef, RunKind, RunOpened, RunSealed,
    Workspace,
};
use capsule_core::json;
use capsule_core::policy::{Policy, Usage};
use capsule_core::redact::Redactor;
use capsule_core::tool::{Kind, ToolName};
use capsule_tools::CATALOGUE;
use serde_json::Value;

use crate::hands::Hands;

/// What the one path is taken in.
pub struct Run<J, H> {
    /// What judges.
    pub policy: Arc<Policy>,
    /// Where everything is written.
    pub journal: J,
    /// What acts.
    pub hands: H,
    /// What masks.
    pub redactor: Redactor,
    /// What was used so far.
    pub usage: Usage,
    /// How many calls were proposed.
    pub calls: u64,
}

impl<J: Journal, H: Hands> Run<J, H> {
    /// A run that was opened.
    pub fn new(policy: Arc<Policy>, journal: J, hands: H) -> Self {
        let redactor = Redactor::builtin();
        Self { policy, journal, hands, redactor, usage: Usage::default(), calls: 0 }
    }

    /// Counts a call, and gives its tool the one name that it has in records and policies.
    pub(crate) fn count(&mut self, mut call: ToolCall) -> ToolCall {
        self.calls += 1;
        if let Some(signature) = CATALOGUE.find(call.tool.as_str()) {
            call.tool = ToolName::asked(signature.id);
        }
        call
    }

    /// Writes an event that is not part of a call.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, event: Event) -> Result<(), J::Error> {
        self.journal.append(event, Durability::Process).map(|_| ())
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
        self.journal.keep(class, &json::canonical(&clean))
    }
}

/// What is written when a run begins.
#[derive(Clone, Debug)]
pub(crate) struct Opening<'o> {
    /// The shortest prefix of the run's id that is unique.
    pub label: String,
    /// What started it.
    pub origin: RunKind,
    /// The run that it is about.
    pub subject: Option<RunId>,
    /// What the plan or call is called.
    pub name: String,
    /// The plan: its place and its text.
    pub plan: Option<(&'o str, &'o str)>,
    /// The policy: its place and its text.
    pub policy_text: (&'o str, &'o str),
    /// The label of the run since which the policy has not changed.
    pub policy_since: Option<String>,
    /// The inputs.
    pub inputs: Value,
    /// The run's key, as it was kept.
    pub key: PayloadRef,
    /// The folder.
    pub workspace: Workspace,
    /// The folder that `~` stands for.
    pub home: String,
    /// The runtime's own files.
    pub own: Vec<String>,
    /// The walls that commands will stand behind.
    pub walls: Option<Walls>,
    /// How many steps the plan has.
    pub steps: u64,
    /// Whether what it changes is staged.
    pub staged: bool,
    /// Whether its commands may change the workspace itself.
    pub direct: bool,
}

impl Opening<'_> {
    /// Writes that the run began.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write<J: Journal, H: Hands>(self, run: &mut Run<J, H>) -> Result<(), J::Error> {
        let mut document = |(path, text): (&str, &str)| {
            let mut masked = 0;
            let clean = run.redactor.text(text, &mut masked);
            let kept = run.journal.keep(PayloadClass::Document, clean.as_bytes())?;
            Ok(Document { path: path.to_owned(), sha256: Digest::of(text.as_bytes()), text: kept })
        };
        let plan = self.plan.map(&mut document).transpose()?;
        let policy = document(self.policy_text)?;
        let inputs = run.keep_masked(PayloadClass::Document, self.inputs)?;
        let opened = RunOpened {
            label: self.label,
            origin: self.origin,
            subject: self.subject,
            name: self.name,
            engine: engine(),
            plan,
            policy,
            policy_name: run.policy.name.clone(),
            policy_since: self.policy_since,
            profile: run.policy.profile.name.to_owned(),
            payloads: run.policy.audit.payloads,
            inputs,
            key: self.key,
            workspace: self.workspace,
            home: self.home,
            own: self.own,
            tools: tools_digest(),
            walls: self.walls,
            steps: self.steps,
            staged: self.staged,
            direct: self.direct,
        };
        run.write(Event::RunOpened(Box::new(opened)))
    }
}

/// Writes that the run ended.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn seal<J: Journal, H: Hands>(
    run: &mut Run<J, H>,
    exit: Exit,
    outputs: Option<&Value>,
) -> Result<(), J::Error> {
    let mut keep = |outputs: &Value| run.keep_masked(PayloadClass::Output, outputs.clone());
    let outputs = outputs.map(&mut keep).transpose()?;
    let events = run.journal.written() + 1;
    let sealed = RunSealed { exit, events, calls: run.calls, outputs };
    run.write(Event::RunSealed(sealed))
}

/// The program that runs things: its name, version and target.
#[must_use]
pub fn engine() -> String {
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
                .map(|own| {
                    let words = match own.kind {
                        Kind::Word(words) => words,
                        _ => &[],
                    };
                    serde_json::json!([own.name, own.kind.name(), words, own.required, own.about])
                })
                .collect();
            let results: Vec<&str> = tool.results.iter().map(|own| own.name).collect();
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
pub fn count(usage: &mut Usage, tool: &ToolName, action: &Action, result: &Value, micros: u64) {
    let host = match action {
        Action::Fetch { url, .. } => match &url.parsed {
            Parsed::Url(address) => Some(address.host().to_string()),
            Parsed::Refused(_) => None,
        },
        _ => None,
    };
    let bytes = match action {
        Action::Write { bytes, .. } => *bytes,
        _ => {
            const TEXTS: [&str; 6] =
                ["text", "base64", "stdout", "stdout_base64", "stderr", "stderr_base64"];
            let lengths = TEXTS.iter().filter_map(|name| result.get(*name)?.as_str());
            lengths.map(|text| u64::try_from(text.len()).unwrap_or(u64::MAX)).sum()
        }
    };
    usage.count(tool, bytes, micros, host);
}
