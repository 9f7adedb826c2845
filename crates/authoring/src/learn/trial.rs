//! The policy that a text would be, asked about the recorded calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use capsule_base::diagnostic::Diagnostics;
use capsule_core::action::Facts;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{Policy, PolicyInput, Usage, decide};
use capsule_core::tool::{ToolName, ToolSet};
use capsule_policy::{LoadedPolicy, PolicyDraft, SourceText};
use serde_json::Value;

use super::generalize::{RuleCandidate, Sample};
use super::report::{CallLabels, ChangedDecision, LearnReport, RefusedCall};
use super::yaml_edit::{YamlInsertion, insert_yaml};
use crate::check::{PolicyAssertion, all_assertions_hold};
use crate::editable_policy::EditablePolicy;
use crate::recorded_calls::{PastCall, RecordedAnswer};

/// A text with rules that are proposed, and the policy that it is.
pub(super) struct PatchedPolicy {
    pub(super) text: String,
    /// As its author means it.
    pub(super) authored: Arc<Policy>,
    /// With what is laid over it.
    pub(super) layered: Arc<Policy>,
}

/// Recorded calls, and what a policy decided about them.
pub(super) struct PolicyTrial<'t> {
    authored: &'t EditablePolicy<'t>,
    recorded_calls: &'t [PastCall],
    assertions: Vec<PolicyAssertion>,
    before: Vec<Decision>,
}

impl<'t> PolicyTrial<'t> {
    pub(super) fn new(
        authored: &'t EditablePolicy<'t>,
        past: &'t [PastCall],
        assertions: Vec<PolicyAssertion>,
    ) -> Self {
        let before = past.iter().map(|call| call.decide(&authored.loaded.policy)).collect();
        Self { authored, recorded_calls: past, assertions, before }
    }

    /// The text with what is wanted, and the policy that it is.
    pub(super) fn patch(&self, wanted: &YamlInsertion) -> Result<PatchedPolicy, String> {
        let LoadedPolicy { text: SourceText { name, text }, layers, roots, home, .. } =
            self.authored.loaded;
        let catalogue = self.authored.tools.catalogue;
        let text = insert_yaml(text, &self.authored.root, wanted).map_err(|insert| insert.0)?;
        let read = || {
            let (draft, _) = PolicyDraft::parse(&text, name, home, catalogue)?;
            let mut bound = Vec::new();
            for (kind, SourceText { name, text }) in layers {
                let (layer, _) = draft.layer((text, name), *kind, home, catalogue)?;
                bound.push(layer.bind(roots)?);
            }
            Ok((draft.bind(roots, home, catalogue)?, bound))
        };
        let (policy, layers) = read().map_err(|problems: Diagnostics| {
            let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
            format!("the policy would not be one: {first}")
        })?;
        let alone = match self.authored.profile {
            Some(name) => policy.under(name).ok_or("the profile would be gone")?,
            None => policy,
        };
        let whole = Arc::new(alone.clone().with_layers(layers));
        Ok(PatchedPolicy { text, authored: Arc::new(alone), layered: whole })
    }

    /// That no recorded call is decided more strictly, and none less strictly that a person declined;
    /// gives those that are decided less strictly.
    pub(super) fn check_milder(&self, policy: &Arc<Policy>) -> Result<CallLabels, String> {
        let mut milder = BTreeSet::new();
        for (call, before) in self.recorded_calls.iter().zip(&self.before) {
            let after = call.decide(policy);
            if after.verdict > before.verdict {
                return Err(format!("{} would be decided more strictly", call.label));
            }
            if after.verdict < before.verdict && call.answer == RecordedAnswer::No {
                return Err(format!("a person said no to {}, which it would change", call.label));
            }
            if after.verdict < before.verdict {
                milder.insert(call.label.clone());
            }
        }
        Ok(milder)
    }

    /// That a rule can stand in the policy.
    pub(super) fn check_insertion(&self, wanted: &YamlInsertion) -> Result<(), String> {
        let patched = self.patch(wanted)?;
        let fails = |assertion: &&PolicyAssertion| {
            let one = std::slice::from_ref(*assertion);
            !all_assertions_hold(&patched.authored, one, self.authored.tools)
        };
        if let Some(assertion) = self.assertions.iter().find(fails) {
            return Err(format!("the policy's own words say otherwise: {}", assertion.name));
        }
        self.check_milder(&patched.layered).map(drop)
    }

    /// The recorded calls that a rule changes, if it can stand in the policy.
    pub(super) fn changed_calls(&self, wanted: &YamlInsertion) -> Option<CallLabels> {
        let patched = self.patch(wanted).ok()?;
        self.check_milder(&patched.layered).ok()
    }

    /// The recorded calls that are decided otherwise.
    pub(super) fn changed_decisions(&self, policy: &Arc<Policy>) -> Vec<ChangedDecision> {
        let all = self.recorded_calls.iter().zip(&self.before);
        let changed = all.map(|(call, before)| ChangedDecision {
            call: call.label.clone(),
            before: before.clone(),
            after: call.decide(policy),
        });
        changed.filter(|decision| decision.before.verdict != decision.after.verdict).collect()
    }

    /// Calls that stay refused.
    pub(super) fn add_refused(&self, calls: &[String], why: &str, learned: &mut LearnReport) {
        for (call, decision) in self.recorded_calls.iter().zip(&self.before) {
            let is_kept = learned.still_refused.iter().any(|item| item.call == call.label);
            if calls.contains(&call.label) && !is_kept {
                let (call, decision) = (call.label.clone(), decision.clone());
                learned.still_refused.push(RefusedCall { call, decision, reason: why.to_owned() });
            }
        }
    }
}

/// What is wanted, with tests that say what the new rules decide, and what they do not.
pub(super) fn with_tests<'r>(
    trial: &PolicyTrial<'_>,
    wanted: YamlInsertion,
    rungs: impl Iterator<Item = &'r RuleCandidate>,
) -> Result<YamlInsertion, String> {
    let policy = trial.patch(&wanted)?.authored;
    let mut names: BTreeSet<String> =
        trial.assertions.iter().map(|assertion| assertion.name.clone()).collect();
    let mut tests = Vec::new();
    for candidate in rungs {
        for sample in &candidate.samples {
            if names.insert(sample.name.clone()) {
                tests.extend(sample_test(&policy, sample, trial.authored.tools));
            }
        }
    }
    Ok(wanted.merge(YamlInsertion::map([("tests", YamlInsertion::List(tests))])))
}

/// What the policy decides about a sample, as a test of it.
fn sample_test(policy: &Arc<Policy>, sample: &Sample, tools: &ToolSet) -> Option<YamlInsertion> {
    let tool = ToolName::unchecked(&sample.tool);
    let action = (tools.describe)(&sample.tool, &sample.args, 0).ok()?;
    let (facts, usage) = (Facts::default(), Usage::default());
    let (tool, action, facts, usage) = (&tool, &action, &facts, &usage);
    let case = PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
    let decision = decide(policy, &case).decision;
    let mut expect = vec![("decision", YamlInsertion::scalar(decision.verdict.keyword()))];
    if decision.verdict == Verdict::Deny {
        expect.push(("code", YamlInsertion::scalar(decision.code.slug())));
    }
    if let Some(rule) = &decision.rule {
        expect.push(("rule", YamlInsertion::scalar(rule.as_str())));
    }
    let call = YamlInsertion::map([
        ("tool", YamlInsertion::scalar(sample.tool.as_str())),
        ("args", json_insertion(&sample.args)),
    ]);
    Some(YamlInsertion::map([
        ("name", YamlInsertion::scalar(sample.name.as_str())),
        ("call", call),
        ("expect", YamlInsertion::map(expect)),
    ]))
}

/// The arguments of a sample: texts, in lists and maps.
fn json_insertion(value: &Value) -> YamlInsertion {
    match value {
        Value::Array(items) => YamlInsertion::List(items.iter().map(json_insertion).collect()),
        Value::Object(map) => {
            YamlInsertion::map(map.iter().map(|(key, value)| (key.as_str(), json_insertion(value))))
        }
        Value::String(text) => YamlInsertion::scalar(text.as_str()),
        other => YamlInsertion::scalar(other.to_string()),
    }
}
