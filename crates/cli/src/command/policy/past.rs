//! The calls of recorded runs, as they were understood then.

use std::collections::BTreeSet;

use capsule_core::approval::AnswerKind;
use capsule_core::code::Code;
use capsule_core::decision::Verdict;
use capsule_core::journal::StepEnding;
use capsule_core::outcome::CodedError;
use capsule_core::policy::Usage;
use capsule_report::{AnsweredBy, CallStory, Story};
use capsule_runtime::{Answer, Past};
use capsule_store::Store;

use crate::command::{no_such_call, story};
use crate::failure::Failure;

/// The calls of runs.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) past: Vec<Past>,
    /// The labels of those that rules are looked for.
    pub(super) about: BTreeSet<String>,
    /// How many cannot be decided again: what was not understood is denied by every policy, and what
    /// is masked is not what was decided on.
    pub(super) left_out: u64,
}

impl Calls {
    /// Adds those of a run, by its id.
    pub(super) fn add(&mut self, store: &Store, run: &str) -> Result<Story, Failure> {
        let label = store.label(run);
        let story = story(store, run)?;
        for call in &story.calls {
            match past(&story, call, &label) {
                Some(past) => self.past.push(past),
                None => self.left_out += 1,
            }
        }
        Ok(story)
    }

    /// Looks for rules for one call of a run that was added, by its number or its step; for whatever was
    /// refused in it if none is named.
    pub(super) fn ask_for(
        &mut self,
        story: &Story,
        label: &str,
        call: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(named) = call else {
            let prefix = format!("{label}:");
            let own = self.past.iter().filter(|own| own.label.starts_with(&prefix));
            let wishes = own.filter(|own| own.is_wish()).map(|own| own.label.clone());
            self.about.extend(wishes);
            return Ok(());
        };
        let number: Option<u64> = named.parse().ok();
        let by_number = story.calls.iter().find(|own| Some(own.call) == number);
        let Some(call) = by_number.or_else(|| story.named(named)) else {
            return Err(no_such_call(label, named).into());
        };
        let name = format!("{label}:{}", call.call);
        if !self.past.iter().any(|own| own.label == name) {
            let message = format!("no rule can be learned from {name}");
            let why = "it was not understood, or masks stand in what was recorded of it";
            return Err(CodedError::new(Code::ReplayIncomplete, message)
                .with_suggestion(why)
                .into());
        }
        self.about.insert(name);
        Ok(())
    }
}

fn past(story: &Story, call: &CallStory, label: &str) -> Option<Past> {
    let (Some(action), Some(facts), false) = (&call.action, &call.facts, call.masked) else {
        return None;
    };
    let step = call.step.as_deref();
    let is_expected = story.steps.iter().any(|own| {
        Some(own.ended.step.as_str()) == step && own.ended.ending == StepEnding::DeniedAsExpected
    });
    Some(Past {
        label: format!("{label}:{}", call.call),
        tool: call.tool.clone(),
        action: action.clone(),
        facts: facts.clone(),
        usage: usage_before(story, call),
        tainted: call.tainted.clone(),
        call: call.args_mac,
        verdict: call.decision.as_ref().map(|own| own.verdict).unwrap_or_default(),
        answer: answer(call),
        expected: is_expected,
    })
}

fn answer(call: &CallStory) -> Answer {
    match call.approval.as_ref().map(|own| &own.by) {
        None | Some(AnsweredBy::Card | AnsweredBy::Waiting { .. }) => Answer::None,
        Some(AnsweredBy::Grant { .. } | AnsweredBy::List { .. }) => Answer::Yes,
        Some(AnsweredBy::Person { outcome, changed, .. }) => match outcome {
            AnswerKind::Approved => Answer::Yes,
            AnswerKind::Denied => Answer::No,
            AnswerKind::Withdrawn if *changed => Answer::No,
            AnswerKind::Expired | AnswerKind::Withdrawn => Answer::None,
        },
    }
}

/// Whether a person made another call in its place.
fn is_changed(call: &CallStory) -> bool {
    let by = call.approval.as_ref().map(|own| &own.by);
    matches!(by, Some(AnsweredBy::Person { changed: true, .. }))
}

/// What the run had used before a call, as the record has it.
pub(super) fn usage_before(story: &Story, call: &CallStory) -> Usage {
    let mut usage = Usage::default();
    let before = story.calls.iter().take_while(|other| other.call != call.call);
    for other in before {
        usage.count_call(&other.tool, other.args_mac);
        let is_refused = other.decision.as_ref().is_some_and(|own| own.verdict != Verdict::Allow);
        if is_refused && other.started.is_none() && !is_changed(other) {
            usage.count_denial();
        }
        let (Some(action), Some(output), Some(_)) = (&other.action, &other.output, &other.started)
        else {
            continue;
        };
        let micros = other.micros().unwrap_or(0);
        capsule_runtime::count(&mut usage, &other.tool, action, output, micros);
    }
    usage
}
