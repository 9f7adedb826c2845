//! A call of a run, and its result.

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_core::action::{Action, Facts};
use capsule_core::change::Change;
use capsule_core::confinement::ResourceLimit;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{CallFinished, CallProposed, CallStarted};
use capsule_core::outcome::{CodedError, Ending, Status};
use capsule_core::tool::ToolName;
use serde_json::Value;

use crate::action_text::action_text;
use crate::approval::{AnsweredBy, ApprovalView};
use crate::connections::ConnectionView;

/// A call and what came of it.
#[derive(Clone, Debug)]
pub struct CallView {
    /// Its number within the run.
    pub call: u64,
    /// The step that it belongs to.
    pub step: Option<String>,
    /// Which attempt at the step.
    pub attempt: u32,
    /// The tool.
    pub tool: ToolName,
    /// When it was proposed, in microseconds since 1970.
    pub proposed_at: u64,
    /// The arguments, as recorded.
    pub args: Option<Value>,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: Vec<String>,
    /// The digest of the raw arguments, by which an equal call is known.
    pub args_mac: Digest,
    /// What it means.
    pub action: Option<Action>,
    /// What was found out about it.
    pub facts: Option<Facts>,
    /// Whether masks stand in what was recorded of the two.
    pub masked: bool,
    /// What was decided.
    pub decision: Option<Decision>,
    /// What became of it where the policy asked, and somebody or something answered.
    pub approval: Option<ApprovalView>,
    /// How it was started.
    pub started: Option<(u64, CallStarted)>,
    /// How it ended.
    pub finished: Option<(u64, CallFinished)>,
    /// The result, as delivered.
    pub output: Option<Value>,
    /// What went wrong.
    pub problem: Option<CodedError>,
    /// What it changed in a staged workspace.
    pub changes: Vec<Change>,
    /// The connections of its command.
    pub connections: Vec<ConnectionView>,
    /// How often a person was asked about one of their hosts.
    pub host_questions: u64,
}

/// The processes that ran on when the last program of a command had ended, and were ended, in words; none if
/// its result tells of none.
#[must_use]
pub fn left_running_text(result: &Value) -> Option<String> {
    match result.get("left_running")?.as_u64()? {
        0 => None,
        1 => Some("1 process".into()),
        some => Some(format!("{some} processes")),
    }
}

/// The hosts that were refused to a command, each with the reason and, where there is one, a way that works, of which its result tells.
#[must_use]
pub fn refused_host_texts(result: &Value) -> Vec<String> {
    let text = |refused: &Value| {
        let part = |name| refused.get(name).and_then(Value::as_str).unwrap_or_default();
        let way = match Code::from_slug(part("code")) {
            Some(Code::NetNotAllowed | Code::ApprovalNeeded) => {
                "the policy's author can name it under `sandbox.network.hosts`; a person can allow it"
            }
            Some(Code::NetPrivate) => {
                "the policy's author can name it under `private_ips`: `{ allow: [10.0.0.0/8] }`"
            }
            _ => "",
        };
        let way = if way.is_empty() { String::new() } else { format!(" · {way}") };
        escape::line(&format!("{}: {}{way}", part("host"), part("reason"))).into_owned()
    };
    let refused = result.get("refused_hosts").and_then(Value::as_array);
    let mut texts: Vec<String> = refused.into_iter().flatten().map(text).collect();
    texts.dedup();
    texts
}

impl CallView {
    pub(crate) fn proposed(at: u64, proposed: &CallProposed, args: Option<Value>) -> Self {
        Self {
            call: proposed.call,
            step: proposed.step.clone(),
            attempt: proposed.attempt,
            tool: proposed.tool.clone(),
            proposed_at: at,
            args,
            tainted: proposed.tainted.clone(),
            args_mac: proposed.args_mac,
            action: None,
            facts: None,
            masked: false,
            decision: None,
            approval: None,
            started: None,
            finished: None,
            output: None,
            problem: None,
            changes: Vec::new(),
            connections: Vec::new(),
            host_questions: 0,
        }
    }

    /// Whether it was denied, before it began or on its way. A call that could not be understood was not:
    /// nothing was decided about it.
    #[must_use]
    pub fn was_denied(&self) -> bool {
        let refused = |(_, end): &(u64, CallFinished)| end.status == Status::Denied;
        let denied =
            |decision: &Decision| decision.verdict == Verdict::Deny && !decision.is_misunderstood();
        self.finished.as_ref().is_some_and(refused) || self.decision.as_ref().is_some_and(denied)
    }

    /// Whether a decision on it kept it from running.
    pub(crate) fn was_stopped_by(&self, by: &Decision) -> bool {
        self.started.is_none() && by.verdict != Verdict::Allow
    }

    /// Whether it needed an approval that nobody was there to give.
    #[must_use]
    pub fn lacked_approval(&self) -> bool {
        let asks =
            |decision: &Decision| matches!(decision.verdict, Verdict::Ask | Verdict::AskEach);
        (self.approval.is_none() || self.is_waiting()) && self.decision.as_ref().is_some_and(asks)
    }

    /// Whether it waits for an answer, with its run suspended.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let waits = |view: &ApprovalView| matches!(view.answered_by, AnsweredBy::Waiting { .. });
        self.approval.as_ref().is_some_and(waits)
    }

    /// Whether a person ended it.
    #[must_use]
    pub fn was_cancelled(&self) -> bool {
        self.finished.as_ref().is_some_and(|(_, end)| end.ending == Ending::Cancelled)
    }

    /// What its caller was told first; none while it goes on, or if its end was never written.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match (&self.finished, &self.decision) {
            (Some((_, finished)), _) => Some(finished.status),
            (None, Some(decision)) if decision.verdict != Verdict::Allow => {
                Some(decision.code.class().into())
            }
            _ => None,
        }
    }

    /// Whether nothing more comes of it: it ended, or the policy denied it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_denied = |decision: &Decision| decision.verdict == Verdict::Deny;
        self.finished.is_some() || self.decision.as_ref().is_some_and(is_denied)
    }

    /// Whether it was started and its end was never written.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.started.is_some() && self.finished.is_none()
    }

    /// The limits that it ran into, in words; none if there are none that are known.
    #[must_use]
    pub fn limits_text(&self) -> Option<String> {
        let reached = self.output.as_ref()?.get("limits_reached")?;
        let reached: Vec<ResourceLimit> = serde_json::from_value(reached.clone()).ok()?;
        let was_ended = self.problem.as_ref().is_some_and(|error| error.code == Code::ExecMemory);
        let name = |limit: &ResourceLimit| match limit {
            ResourceLimit::Memory if !was_ended => {
                format!("{} (a process of it was ended)", limit.name())
            }
            _ => limit.name().to_owned(),
        };
        let names: Vec<String> = reached.iter().map(name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The processes that ran on when its last program had ended, and were ended, in words; none if there
    /// were none.
    #[must_use]
    pub fn left_running_text(&self) -> Option<String> {
        left_running_text(self.output.as_ref()?)
    }

    /// From its start to its end, in microseconds.
    #[must_use]
    pub fn micros(&self) -> Option<u64> {
        let (began, _) = self.started.as_ref()?;
        let (ended, _) = self.finished.as_ref()?;
        Some(ended.saturating_sub(*began))
    }

    /// What it is about, in a line; not escaped.
    #[must_use]
    pub fn summary(&self) -> String {
        match (&self.action, &self.args) {
            (Some(action), _) => action_text(action),
            (None, Some(args)) => args.to_string(),
            (None, None) => String::from("(not kept)"),
        }
    }

    /// How many bytes its result is about.
    #[must_use]
    pub fn result_bytes(&self) -> Option<u64> {
        let output = self.output.as_ref()?;
        let field = |name| output.get(name).and_then(Value::as_u64);
        field("bytes_total").or_else(|| field("stdout_bytes_total"))
    }

    /// What became of the question of the call, which did not run, or why it was none.
    pub(crate) fn approval_text(&self, verdict: Verdict) -> String {
        match (&self.approval, verdict) {
            (Some(view), _) => view.summary(),
            (None, Verdict::Ask | Verdict::AskEach) if self.finished.is_some() => {
                "answered before it changed".into()
            }
            (None, Verdict::Ask | Verdict::AskEach) => {
                "needs an approval, and nobody was asked".into()
            }
            (None, Verdict::Allow | Verdict::Deny) => "no approval or grant can allow it".into(),
        }
    }
}
