//! The calls of recorded runs, as they were understood then.

use std::collections::BTreeSet;

use capsule_authoring::{PastCall, RecordedAnswer};
use capsule_base::code::Code;
use capsule_core::action::Facts;
use capsule_core::approval::AnswerKind;
use capsule_core::decision::Verdict;
use capsule_core::journal::StepEnding;
use capsule_core::outcome::CodedError;
use capsule_core::policy::Usage;
use capsule_report::{AnsweredBy, CallView, RunView, network_usage};
use capsule_store::Store;

use crate::command::{no_such_call, read_run};
use crate::failure::Failure;

/// The calls of runs.
#[derive(Debug, Default)]
pub(super) struct RecordedCalls {
    pub(super) calls: Vec<PastCall>,
    /// The labels of those that rules are looked for.
    pub(super) selected: BTreeSet<String>,
    /// How many cannot be decided again: what was not understood is denied by every policy, and what
    /// is masked is not what was decided on.
    pub(super) left_out: u64,
}

impl RecordedCalls {
    /// Adds those of a run, by its id.
    pub(super) fn add(&mut self, store: &Store, run: &str) -> Result<RunView, Failure> {
        let label = store.label(run);
        let view = read_run(store, run)?;
        for call in &view.calls {
            match recorded_call(&view, call, &label) {
                Some(past) => self.calls.push(past),
                None => self.left_out += 1,
            }
        }
        Ok(view)
    }

    /// Looks for rules for one call of a run that was added, by its number or its step; for whatever was
    /// refused in it if none is named.
    pub(super) fn select(
        &mut self,
        view: &RunView,
        label: &str,
        call: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(named) = call else {
            let prefix = format!("{label}:");
            let item = self.calls.iter().filter(|call| call.label.starts_with(&prefix));
            let wishes = item.filter(|call| call.is_unmet_request()).map(|call| call.label.clone());
            self.selected.extend(wishes);
            return Ok(());
        };
        let number: Option<u64> = named.parse().ok();
        let by_number = view.calls.iter().find(|call| Some(call.call) == number);
        let Some(call) = by_number.or_else(|| view.find_call(named)) else {
            return Err(no_such_call(label, named).into());
        };
        let name = format!("{label}:{}", call.call);
        if !self.calls.iter().any(|call| call.label == name) {
            let message = format!("no rule can be learned from {name}");
            let why = "it was not understood, or masks stand in what was recorded of it";
            return Err(CodedError::new(Code::ReplayIncomplete, message)
                .with_suggestion(why)
                .into());
        }
        self.selected.insert(name);
        Ok(())
    }
}

fn recorded_call(view: &RunView, call: &CallView, label: &str) -> Option<PastCall> {
    let (Some(action), Some(facts), false) = (&call.action, &call.facts, call.masked) else {
        return None;
    };
    let step = call.step.as_deref();
    let is_expected = view.steps.iter().any(|view| {
        Some(view.ended.step.as_str()) == step && view.ended.ending == StepEnding::DeniedAsExpected
    });
    Some(PastCall {
        label: format!("{label}:{}", call.call),
        tool: call.tool.clone(),
        action: action.clone(),
        // The judgement of a policy does not depend on the programs that were installed.
        facts: Facts { impossible: None, ..facts.clone() },
        usage: usage_before(view, call),
        tainted: call.tainted.clone(),
        args_digest: call.args_mac,
        verdict: call.decision.as_ref().map(|decision| decision.verdict).unwrap_or_default(),
        answer: recorded_answer(call),
        expected: is_expected,
    })
}

fn recorded_answer(call: &CallView) -> RecordedAnswer {
    match call.approval.as_ref().map(|view| &view.answered_by) {
        None | Some(AnsweredBy::Card | AnsweredBy::Waiting { .. }) => RecordedAnswer::None,
        Some(AnsweredBy::Grant { .. } | AnsweredBy::List { .. }) => RecordedAnswer::Yes,
        Some(AnsweredBy::Person { outcome, changed, .. }) => match outcome {
            AnswerKind::Approved => RecordedAnswer::Yes,
            AnswerKind::Denied => RecordedAnswer::No,
            AnswerKind::Withdrawn if *changed => RecordedAnswer::No,
            AnswerKind::Expired | AnswerKind::Withdrawn => RecordedAnswer::None,
        },
    }
}

/// Whether a person made another call in its place.
fn was_replaced(call: &CallView) -> bool {
    let by = call.approval.as_ref().map(|view| &view.answered_by);
    matches!(by, Some(AnsweredBy::Person { changed: true, .. }))
}

/// What the run had used before a call, as the record has it.
pub(super) fn usage_before(view: &RunView, call: &CallView) -> Usage {
    let mut usage = Usage::default();
    let before = view.calls.iter().take_while(|other| other.call != call.call);
    for other in before {
        usage.count_call(&other.tool, other.args_mac);
        let is_refused =
            other.decision.as_ref().is_some_and(|decision| decision.verdict != Verdict::Allow);
        if is_refused && other.started.is_none() && !was_replaced(other) {
            usage.count_denial();
        }
        let (Some(action), Some(output), Some(_)) = (&other.action, &other.output, &other.started)
        else {
            continue;
        };
        let micros = other.micros().unwrap_or(0);
        let names = other.facts.as_ref().map(|facts| facts.root_names.clone()).unwrap_or_default();
        capsule_runtime::count_usage(&mut usage, &other.tool, (action, &names), output, micros);
        usage.count_network(&other.tool, network_usage(&other.connections));
    }
    usage
}
