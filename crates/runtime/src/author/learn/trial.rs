//! The policy that a text would be, asked about the recorded calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use capsule_core::action::Facts;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::diagnostic::Diagnostics;
use capsule_core::policy::{Policy, PolicyDraft, PolicyInput, Usage};
use capsule_core::tool::ToolName;
use capsule_tools::{CATALOGUE, describe};
use serde_json::Value;

use super::ladder::{Rung, Sample};
use super::splice::{Wanted, splice};
use super::{Calls, Changed, Kept, Learned};
use crate::author::{Answer, Authored, Past};
use crate::check::{Claim, all_hold, explain_case};
use crate::layers::LayerText;
use crate::source_text::Text;

/// A text with rules that are proposed, and the policy that it is.
pub(super) struct Patched {
    pub(super) text: String,
    /// As its author means it.
    pub(super) alone: Arc<Policy>,
    /// With what is laid over it.
    pub(super) whole: Arc<Policy>,
}

/// Recorded calls, and what a policy decided about them.
pub(super) struct Trial<'t> {
    authored: &'t Authored<'t>,
    past: &'t [Past],
    claims: Vec<Claim>,
    before: Vec<Decision>,
}

impl<'t> Trial<'t> {
    pub(super) fn new(authored: &'t Authored<'t>, past: &'t [Past], claims: Vec<Claim>) -> Self {
        let before = past.iter().map(|call| call.decide(&authored.law.policy)).collect();
        Self { authored, past, claims, before }
    }

    /// The text with what is wanted, and the policy that it is.
    pub(super) fn patched(&self, wanted: &Wanted) -> Result<Patched, String> {
        let law = self.authored.law;
        let text = splice(&law.text.text, &self.authored.root, wanted).map_err(|own| own.0)?;
        let read = || {
            let (draft, _) = PolicyDraft::parse(&text, &law.text.name, &law.home, CATALOGUE)?;
            let mut layers = Vec::new();
            for LayerText { kind, text: Text { name, text }, .. } in &law.layers {
                let (layer, _) = draft.layer((text, name), *kind, &law.home, CATALOGUE)?;
                layers.push(layer.bind(&law.roots)?);
            }
            Ok((draft.bind(&law.roots, &law.home, CATALOGUE)?, layers))
        };
        let (policy, layers) = read().map_err(|problems: Diagnostics| {
            let first = problems.first().map(|own| own.message.clone()).unwrap_or_default();
            format!("the policy would not be one: {first}")
        })?;
        let alone = match self.authored.profile {
            Some(name) => policy.under(name).ok_or("the profile would be gone")?,
            None => policy,
        };
        let whole = Arc::new(alone.clone().with_layers(layers));
        Ok(Patched { text, alone: Arc::new(alone), whole })
    }

    /// That no recorded call is decided more strictly, and none less strictly that a person declined;
    /// gives those that are decided less strictly.
    pub(super) fn milder(&self, policy: &Arc<Policy>) -> Result<Calls, String> {
        let mut milder = BTreeSet::new();
        for (call, before) in self.past.iter().zip(&self.before) {
            let after = call.decide(policy);
            if after.verdict > before.verdict {
                return Err(format!("{} would be decided more strictly", call.label));
            }
            if after.verdict < before.verdict && call.answer == Answer::No {
                return Err(format!("a person said no to {}, which it would change", call.label));
            }
            if after.verdict < before.verdict {
                milder.insert(call.label.clone());
            }
        }
        Ok(milder)
    }

    /// That a rule can stand in the policy.
    pub(super) fn stands(&self, wanted: &Wanted) -> Result<(), String> {
        let patched = self.patched(wanted)?;
        let fails = |claim: &&Claim| !all_hold(&patched.alone, std::slice::from_ref(*claim));
        if let Some(claim) = self.claims.iter().find(fails) {
            return Err(format!("the policy's own words say otherwise: {}", claim.name));
        }
        self.milder(&patched.whole).map(drop)
    }

    /// The recorded calls that a rule changes, if it can stand in the policy.
    pub(super) fn calls(&self, wanted: &Wanted) -> Option<Calls> {
        let patched = self.patched(wanted).ok()?;
        self.milder(&patched.whole).ok()
    }

    /// The recorded calls that are decided otherwise.
    pub(super) fn changed(&self, policy: &Arc<Policy>) -> Vec<Changed> {
        let all = self.past.iter().zip(&self.before);
        let changed = all.map(|(call, before)| Changed {
            call: call.label.clone(),
            before: before.clone(),
            after: call.decide(policy),
        });
        changed.filter(|own| own.before.verdict != own.after.verdict).collect()
    }

    /// Calls that stay refused.
    pub(super) fn keep(&self, calls: &[String], why: &str, learned: &mut Learned) {
        for (call, decision) in self.past.iter().zip(&self.before) {
            let is_kept = learned.kept.iter().any(|own| own.call == call.label);
            if calls.contains(&call.label) && !is_kept {
                let (call, decision) = (call.label.clone(), decision.clone());
                learned.kept.push(Kept { call, decision, why: why.to_owned() });
            }
        }
    }
}

/// What is wanted, with tests that say what the new rules decide, and what they do not.
pub(super) fn tests<'r>(
    trial: &Trial<'_>,
    wanted: Wanted,
    rungs: impl Iterator<Item = &'r Rung>,
) -> Result<Wanted, String> {
    let policy = trial.patched(&wanted)?.alone;
    let mut names: BTreeSet<String> = trial.claims.iter().map(|claim| claim.name.clone()).collect();
    let mut tests = Vec::new();
    for rung in rungs {
        for sample in &rung.samples {
            if names.insert(sample.name.clone()) {
                tests.extend(test(&policy, sample));
            }
        }
    }
    Ok(wanted.and(Wanted::map([("tests", Wanted::List(tests))])))
}

/// What the policy decides about a sample, as a test of it.
fn test(policy: &Arc<Policy>, sample: &Sample) -> Option<Wanted> {
    let tool = ToolName::unchecked(&sample.tool);
    let action = describe(&sample.tool, &sample.args, 0).ok()?;
    let (facts, usage) = (Facts::default(), Usage::default());
    let (tool, action, facts, usage) = (&tool, &action, &facts, &usage);
    let case = PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
    let decision = explain_case(policy, &case);
    let mut expect = vec![("decision", Wanted::word(decision.verdict.keyword()))];
    if decision.verdict == Verdict::Deny {
        expect.push(("code", Wanted::word(decision.code.slug())));
    }
    if let Some(rule) = &decision.rule {
        expect.push(("rule", Wanted::word(rule.as_str())));
    }
    let call = Wanted::map([
        ("tool", Wanted::word(sample.tool.as_str())),
        ("args", wanted_json(&sample.args)),
    ]);
    Some(Wanted::map([
        ("name", Wanted::word(sample.name.as_str())),
        ("call", call),
        ("expect", Wanted::map(expect)),
    ]))
}

/// The arguments of a sample: texts, in lists and maps.
fn wanted_json(value: &Value) -> Wanted {
    match value {
        Value::Array(items) => Wanted::List(items.iter().map(wanted_json).collect()),
        Value::Object(map) => {
            Wanted::map(map.iter().map(|(key, value)| (key.as_str(), wanted_json(value))))
        }
        Value::String(text) => Wanted::word(text.as_str()),
        other => Wanted::word(other.to_string()),
    }
}
