//! Everything that can happen, as a closed list. No event has a free text as its kind, and text
//! that quotes arguments or outputs is never in an event: it lies in a payload that can be erased.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::{vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::action::Fingerprint;
use crate::call::Origin;
use crate::capability::Capabilities;
use crate::confinement::{Confinement, Enforcement, NetworkAccess, SandboxStatus};
use crate::decision::Verdict;
use crate::id::RunId;
use crate::journal::layer::{LayerGone, LayerOpened};
use crate::journal::{
    AnswerGiven, ApprovalAnswered, ApprovalShown, ApprovalWaiting, ConnectionClosed,
    ConnectionRequested, FeedbackGiven, GrantUsed, ModelAnswered, ModelRequested, PayloadClass,
    PayloadRef, PendingChanges, RunKind, RunResumed, SessionJoined, StepEnded,
};
use crate::outcome::{Ending, Status};
use crate::policy::PayloadRetention;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_base::spelling::Spelling;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body")]
pub enum Event {
    /// A run began.
    #[serde(rename = "run.opened")]
    RunOpened(Box<RunOpened>),
    /// A call was asked for.
    #[serde(rename = "call.proposed")]
    CallProposed(CallProposed),
    /// The policy decided.
    #[serde(rename = "call.decided")]
    CallDecided(CallDecided),
    /// A person is shown what they are asked.
    #[serde(rename = "approval.shown")]
    ApprovalShown(ApprovalShown),
    /// A person is shown what a plan needs, before it begins.
    #[serde(rename = "plan.shown")]
    PlanShown(ApprovalShown),
    /// The question about a plan came to its end.
    #[serde(rename = "plan.answered")]
    PlanAnswered(ApprovalAnswered),
    /// Nobody is there: a question waits, and its run is suspended.
    #[serde(rename = "approval.waiting")]
    ApprovalWaiting(ApprovalWaiting),
    /// A person answered a question that waited. Stands alone in a run of its own.
    #[serde(rename = "answer.given")]
    AnswerGiven(AnswerGiven),
    /// A suspended run is gone on with. Stands second in a run of its own.
    #[serde(rename = "run.resumed")]
    RunResumed(RunResumed),
    /// A process takes a session up. Is in the run of the session.
    #[serde(rename = "session.joined")]
    SessionJoined(SessionJoined),
    /// The staged changes of a session that goes on are applied or discarded: it begins with none again.
    #[serde(rename = "changes.applied")]
    ChangesApplied {
        /// The run that applied them; none where they were discarded.
        by: Option<RunId>,
    },
    /// The user gave a task, or another message, to a model.
    #[serde(rename = "user.said")]
    UserMessage {
        /// The user's own words, masked.
        text: PayloadRef,
    },
    /// The user answered a question of a model, or did not.
    #[serde(rename = "user.answered")]
    UserAnswered {
        /// The question, its choices and the answer, if one was given, as JSON, masked.
        text: PayloadRef,
    },
    /// A model is asked for its next turn.
    #[serde(rename = "model.requested")]
    ModelRequested(ModelRequested),
    /// A model answered, or the request failed.
    #[serde(rename = "model.answered")]
    ModelAnswered(ModelAnswered),
    /// A question came to its end.
    #[serde(rename = "approval.answered")]
    ApprovalAnswered(ApprovalAnswered),
    /// A grant that a person gave before answered a question.
    #[serde(rename = "grant.used")]
    GrantUsed(GrantUsed),
    /// A part of a list runs within what was approved for the whole.
    #[serde(rename = "approval.covered")]
    ApprovalCovered {
        /// The call.
        call: u64,
        /// The call that was approved.
        by: u64,
    },
    /// A grant was taken back. Belongs to no run.
    #[serde(rename = "grant.revoked")]
    GrantRevoked {
        /// The grant; none for all of them.
        grant: Option<String>,
    },
    /// A call is about to run. Without a later `call.finished` its outcome is unknown.
    #[serde(rename = "call.started")]
    CallStarted(CallStarted),
    /// A person is shown which host a running command wants to reach.
    #[serde(rename = "connection.shown")]
    ConnectionShown(ApprovalShown),
    /// The question about a host came to its end.
    #[serde(rename = "connection.answered")]
    ConnectionAnswered(ApprovalAnswered),
    /// A running command wants to reach a host: it is dialled behind this event, or refused.
    #[serde(rename = "connection.requested")]
    ConnectionRequested(ConnectionRequested),
    /// A connection of a running command ended.
    #[serde(rename = "connection.closed")]
    ConnectionClosed(ConnectionClosed),
    /// A call ended.
    #[serde(rename = "call.finished")]
    CallFinished(CallFinished),
    /// A step of a plan ended, with what its expectations made of it.
    #[serde(rename = "step.ended")]
    StepEnded(StepEnded),
    /// A person said that a decision was wrong. Stands alone in a run of its own.
    #[serde(rename = "feedback.given")]
    FeedbackGiven(FeedbackGiven),
    /// A run ended and nothing follows in it.
    #[serde(rename = "run.sealed")]
    RunSealed(RunSealed),
    /// A sealed run was written to a file of its own. Belongs to no run.
    #[serde(rename = "run.exported")]
    RunExported(RunExported),
    /// The staged changes of a run are dropped. Belongs to no run.
    #[serde(rename = "changes.discarded")]
    ChangesDiscarded {
        /// The run.
        subject: RunId,
    },
    /// Files that a run kept for an undo are dropped, to make room for newer ones. Belongs to no run.
    #[serde(rename = "undo.dropped")]
    UndoDropped {
        /// The run.
        subject: RunId,
        /// How many files.
        files: u64,
    },
    /// What the payloads of a run held is erased. Belongs to no run.
    #[serde(rename = "payload.erased")]
    PayloadErased {
        /// The run.
        subject: RunId,
        /// How many payloads.
        payloads: u64,
    },
    /// The tree was signed as it stood before this event. Belongs to no run.
    #[serde(rename = "checkpoint")]
    Checkpoint {
        /// A signed note (C2SP signed-note) whose text is a checkpoint (C2SP tlog-checkpoint).
        note: String,
    },
}

capsule_base::words! {
    Event::kind(..):
    RunOpened = "run.opened", CallProposed = "call.proposed", CallDecided = "call.decided",
    ApprovalShown = "approval.shown", PlanShown = "plan.shown", PlanAnswered = "plan.answered",
    ApprovalWaiting = "approval.waiting", AnswerGiven = "answer.given", RunResumed = "run.resumed",
    SessionJoined = "session.joined", ChangesApplied = "changes.applied", UserMessage = "user.said",
    UserAnswered = "user.answered", ModelRequested = "model.requested",
    ModelAnswered = "model.answered", ApprovalAnswered = "approval.answered",
    GrantUsed = "grant.used", ApprovalCovered = "approval.covered", GrantRevoked = "grant.revoked",
    CallStarted = "call.started", ConnectionShown = "connection.shown",
    ConnectionAnswered = "connection.answered", ConnectionRequested = "connection.requested",
    ConnectionClosed = "connection.closed", CallFinished = "call.finished",
    StepEnded = "step.ended", FeedbackGiven = "feedback.given", RunSealed = "run.sealed",
    RunExported = "run.exported", ChangesDiscarded = "changes.discarded",
    UndoDropped = "undo.dropped", PayloadErased = "payload.erased", Checkpoint = "checkpoint",
}

impl Event {
    /// Every payload that the event holds on to, with what its field says that it holds. Who may
    /// see a payload hangs on this, and never on what a row of a store says of itself.
    #[must_use]
    pub fn payloads(&self) -> Vec<(PayloadRef, PayloadClass)> {
        use PayloadClass::{Action, Arguments, Changes, Document, Key, Output, Text, Undo};
        let maybe: Vec<(Option<PayloadRef>, PayloadClass)> = match self {
            Self::RunOpened(body) => {
                let mut all = vec![
                    (body.plan.as_ref().map(|document| document.text), Document),
                    (Some(body.policy.text), Document),
                    (Some(body.inputs), Document),
                    (Some(body.key), Key),
                    (body.extends.as_ref().map(|document| document.text), Document),
                ];
                all.extend(body.layers.iter().map(|layer| (Some(layer.document.text), Document)));
                all
            }
            Self::CallProposed(body) => vec![(Some(body.args), Arguments)],
            Self::CallDecided(body) => vec![(Some(body.text), Text), (body.action, Action)],
            Self::ApprovalShown(body) | Self::PlanShown(body) | Self::ConnectionShown(body) => {
                vec![(Some(body.card), Text)]
            }
            Self::ApprovalWaiting(body) => vec![(Some(body.card), Text)],
            Self::AnswerGiven(body) => vec![(body.why, Text)],
            Self::RunResumed(body) => vec![(Some(body.progress), Output)],
            Self::SessionJoined(body) => vec![(body.changes, Changes)],
            Self::UserMessage { text } | Self::UserAnswered { text } => vec![(Some(*text), Text)],
            Self::ModelRequested(body) => vec![(Some(body.added), Text)],
            Self::ModelAnswered(body) => vec![(Some(body.answer), Output)],
            Self::ApprovalAnswered(body)
            | Self::PlanAnswered(body)
            | Self::ConnectionAnswered(body) => {
                let reach = body.grant.as_ref().map(|grant| grant.reach);
                vec![(body.why, Text), (reach, Text)]
            }
            Self::CallStarted(body) => vec![(body.undo, Undo)],
            Self::CallFinished(body) => {
                vec![(Some(body.output), Output), (body.problem, Text), (body.changes, Changes)]
            }
            Self::ConnectionRequested(body) => vec![(Some(body.target), Text)],
            Self::StepEnded(body) => vec![(body.note, Text)],
            Self::FeedbackGiven(body) => vec![(body.why, Text)],
            Self::RunSealed(body) => vec![(body.outputs, Output)],
            Self::GrantUsed(_)
            | Self::ConnectionClosed(_)
            | Self::ApprovalCovered { .. }
            | Self::GrantRevoked { .. }
            | Self::RunExported(_)
            | Self::ChangesApplied { .. }
            | Self::ChangesDiscarded { .. }
            | Self::UndoDropped { .. }
            | Self::PayloadErased { .. }
            | Self::Checkpoint { .. } => Vec::new(),
        };
        maybe.into_iter().filter_map(|(item, class)| Some((item?, class))).collect()
    }
}

/// A text that came from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Where it was read.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// The text, masked.
    pub text: PayloadRef,
}

/// A machine that can confine no command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoSandbox {
    /// What is missing.
    pub why: String,
    /// Whether the policy lets commands run there that name the power to.
    pub unconfined: bool,
}

/// The folder that a run works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceIdentity {
    /// Its real path.
    pub path: String,
    /// The device it lies on, in decimal text: canonical JSON has no exact number above 2^53.
    pub device: String,
    /// Its inode, in the same way.
    pub inode: String,
    /// How its file system compares names, if not byte by byte.
    #[serde(default, skip_serializing_if = "Spelling::is_exact")]
    pub spelling: Spelling,
}

/// A run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOpened {
    /// The shortest prefix of its id that was unique when it began.
    pub label: String,
    /// What started it.
    pub origin: RunKind,
    /// The run that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<RunId>,
    /// What the plan or the call is called.
    pub name: String,
    /// The program that ran it: its name, version and target.
    pub engine: String,
    /// The plan.
    pub plan: Option<Document>,
    /// The policy.
    pub policy: Document,
    /// What the policy calls itself.
    pub policy_name: String,
    /// The label of the earliest run since which the policy has not changed.
    pub policy_since: Option<String>,
    /// The profile that decided where rules did not.
    pub profile: String,
    /// Whether payloads are kept. Where they are, one whose bytes are gone was taken away.
    pub payloads: PayloadRetention,
    /// After how many seconds they are erased, if they ever are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_after: Option<u64>,
    /// The inputs, as JSON, masked.
    pub inputs: PayloadRef,
    /// The key for the digests of raw arguments.
    pub key: PayloadRef,
    /// The folder.
    pub workspace: WorkspaceIdentity,
    /// The folder that `~` stood for.
    pub home: String,
    /// The runtime's own files, which no tool may reach.
    pub own: Vec<String>,
    /// The digest of the signatures of all tools.
    pub tools: Digest,
    /// The walls that commands will stand behind, if the run has commands.
    pub walls: Option<SandboxStatus>,
    /// Where commands see the workspace, if the run has commands. Old records do not say it: there it is
    /// `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// The directories and files of toolchains that commands see, by their real paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolchains: Vec<String>,
    /// Why there are none, where the run has commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare: Option<NoSandbox>,
    /// How many steps the plan has.
    pub steps: u64,
    /// Whether what it changes is staged.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub staged: bool,
    /// Whether its commands may change the workspace itself, so that nothing is collected.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub direct: bool,
    /// The network of its commands.
    #[serde(default, skip_serializing_if = "NetworkAccess::is_none")]
    pub network: NetworkAccess,
    /// The policy that the policy extends, where it extends one besides the base policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<Document>,
    /// The layers that tighten the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerOpened>,
    /// The workspace's layer that the run before had and this one has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_gone: Option<LayerGone>,
    /// What waits in the same workspace from earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpulled: Option<PendingChanges>,
}

/// A call was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallProposed {
    /// Its number within the run, from 1 on.
    pub call: u64,
    /// The plan's step.
    pub step: Option<String>,
    /// Which attempt at the step, from 1 on.
    pub attempt: u32,
    /// The tool.
    pub tool: ToolName,
    /// Who asked.
    pub origin: Origin,
    /// The arguments, masked, canonical.
    pub args: PayloadRef,
    /// HMAC of the raw arguments under the run's key.
    pub args_mac: Digest,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: Vec<String>,
}

/// The policy decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDecided {
    /// The call.
    pub call: u64,
    /// The word.
    pub decision: Verdict,
    /// The kind of decision.
    pub code: Code,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Where that rule stands.
    pub at: Option<String>,
    /// The risk.
    pub risk: Risk,
    /// What it needs.
    pub capabilities: Capabilities,
    /// Whether an approval could allow it.
    #[serde(rename = "liftable")]
    pub approvable: bool,
    /// Reason and suggestion.
    pub text: PayloadRef,
    /// The action and the facts; none if the call was not understood.
    pub action: Option<PayloadRef>,
    /// What an approval would be bound to, of the action as it is recorded: masked.
    pub fingerprint: Option<Fingerprint>,
}

/// A call is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The call.
    pub call: u64,
    /// Whether it changes or sends something, so that this event is durable first.
    pub effects: bool,
    /// What a command is confined to.
    pub confinement: Option<Confinement>,
    /// What an undo needs.
    pub undo: Option<PayloadRef>,
    /// What the undo covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<UndoCoverage>,
}

/// The paths and bytes that the undo record of a call covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoCoverage {
    /// How many paths can be brought back, those among them that were not there.
    pub paths: u64,
    /// How many bytes of files are kept for it.
    pub bytes: u64,
}

/// A call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFinished {
    /// The call.
    pub call: u64,
    /// How.
    pub ending: Ending,
    /// What the caller was told first.
    pub status: Status,
    /// The code of what went wrong.
    pub code: Option<Code>,
    /// The result, as delivered.
    pub output: PayloadRef,
    /// What went wrong, in words.
    pub problem: Option<PayloadRef>,
    /// What held it.
    pub enforcement: Enforcement,
    /// How many places of the result were masked.
    pub masked: u64,
    /// What it changed in a staged workspace, path by path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<PayloadRef>,
}

/// A run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSealed {
    /// How.
    pub exit: Exit,
    /// How many events the run has, this one included.
    pub events: u64,
    /// How many calls were proposed.
    pub calls: u64,
    /// The plan's outputs, as JSON, masked.
    pub outputs: Option<PayloadRef>,
    /// The call that waits for an answer: the run is suspended, and can be gone on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<u64>,
}

/// A sealed run was written to a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunExported {
    /// The run.
    pub subject: RunId,
    /// The digest of the file.
    pub sha256: Digest,
    /// Where it was written.
    pub path: String,
}
