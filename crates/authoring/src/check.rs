//! The examples and tests of a policy, decided by the policy and compared.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::action::Facts;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::decision::Decision;
use capsule_core::policy::{
    DecisionExpectation, ExampleExpectation, Policy, PolicyInput, SourceLocation, Usage, decide,
};
use capsule_core::tool::{ToolName, ToolSet};
use serde_json::Value;

/// A call of which the author of a policy says what is decided on it.
#[derive(Clone, Debug)]
pub struct PolicyAssertion {
    /// Where it stands.
    pub source: SourceLocation,
    /// What it is called.
    pub name: String,
    /// What kind of claim it is.
    pub code: Code,
    /// The profile that it is asked under; the policy's own if none is named.
    pub profile: Option<String>,
    /// The tool.
    pub tool: ToolName,
    /// The arguments.
    pub args: Value,
    /// What the host resolves to.
    pub resolves: Vec<IpAddr>,
    /// What is decided.
    pub expect: DecisionExpectation,
    /// A rule that is not the one that decides.
    pub not_by: Option<String>,
}

/// Everything that a policy says of its own decisions: its examples, then its tests, each once for
/// every profile that it names.
#[must_use]
pub fn assertions(policy: &Policy) -> Vec<PolicyAssertion> {
    let mut assertions = Vec::new();
    for (tool, rule) in &policy.tools {
        for (index, example) in rule.examples.iter().enumerate() {
            let (expect, not_by) = match example.expect {
                ExampleExpectation::Verdict(verdict) => (
                    DecisionExpectation {
                        decision: Some(verdict),
                        ..DecisionExpectation::default()
                    },
                    None,
                ),
                ExampleExpectation::NoMatch => {
                    (DecisionExpectation::default(), Some(example.rule.clone()))
                }
            };
            assertions.push(PolicyAssertion {
                source: example.source.clone(),
                name: format!("example {} of {}", index + 1, example.rule),
                code: Code::PolicyExample,
                profile: None,
                tool: tool.clone(),
                args: example.args.clone(),
                resolves: Vec::new(),
                expect,
                not_by,
            });
        }
    }
    for test in &policy.tests {
        let profiles = match test.profiles.as_slice() {
            [] => vec![None],
            named => named.iter().cloned().map(Some).collect(),
        };
        assertions.extend(profiles.into_iter().map(|profile| PolicyAssertion {
            source: test.source.clone(),
            name: test.name.clone(),
            code: Code::PolicyTest,
            profile,
            tool: test.tool.clone(),
            args: test.args.clone(),
            resolves: test.resolves.clone(),
            expect: test.expect.clone(),
            not_by: None,
        }));
    }
    assertions
}

/// What became of a claim.
#[derive(Clone, Debug)]
pub struct CheckedAssertion {
    /// The claim.
    pub assertion: PolicyAssertion,
    /// What is decided.
    pub decision: Decision,
    /// Where the two differ, in words.
    pub differences: Vec<String>,
}

/// Decides what a policy says of itself, as its text alone says: nothing is looked up on disk.
#[must_use]
pub fn check_assertions(
    policy: &Arc<Policy>,
    assertions: Vec<PolicyAssertion>,
    tools: &ToolSet,
) -> Vec<CheckedAssertion> {
    let mut judge = AssertionEvaluator::new(policy, tools);
    let check = |assertion: PolicyAssertion| {
        let decision = judge.decide(&assertion);
        let wrong = differences(&assertion, &decision);
        CheckedAssertion { assertion, decision, differences: wrong }
    };
    assertions.into_iter().map(check).collect()
}

/// Whether all claims are as they say.
pub(crate) fn all_assertions_hold(
    policy: &Arc<Policy>,
    assertions: &[PolicyAssertion],
    tools: &ToolSet,
) -> bool {
    let mut judge = AssertionEvaluator::new(policy, tools);
    assertions.iter().all(|assertion| differences(assertion, &judge.decide(assertion)).is_empty())
}

/// A policy under the profiles that claims name.
struct AssertionEvaluator<'p> {
    policy: &'p Arc<Policy>,
    tools: &'p ToolSet,
    by_profile: BTreeMap<String, Arc<Policy>>,
    usage: Usage,
}

impl<'p> AssertionEvaluator<'p> {
    fn new(policy: &'p Arc<Policy>, tools: &'p ToolSet) -> Self {
        Self { policy, tools, by_profile: BTreeMap::new(), usage: Usage::default() }
    }

    fn policy_under(&mut self, profile: Option<&String>) -> Arc<Policy> {
        let Some(name) = profile else { return Arc::clone(self.policy) };
        let policy = self.policy;
        let chosen = self.by_profile.entry(name.clone()).or_insert_with(|| {
            // The parser knows every profile that a test names.
            let chosen = Policy::clone(policy).under(name);
            chosen.map_or_else(|| Arc::clone(policy), Arc::new)
        });
        Arc::clone(chosen)
    }

    fn decide(&mut self, assertion: &PolicyAssertion) -> Decision {
        let policy = self.policy_under(assertion.profile.as_ref());
        let facts = Facts { resolves: assertion.resolves.clone(), ..Facts::default() };
        match (self.tools.describe)(assertion.tool.as_str(), &assertion.args, 0) {
            Ok(action) => {
                let (tool, action, facts, usage) = (&assertion.tool, &action, &facts, &self.usage);
                let case =
                    PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
                decide(&policy, &case).decision
            }
            Err(problem) => Decision::reject_invalid(problem),
        }
    }
}

/// Where a decision is not what was said of it.
fn differences(assertion: &PolicyAssertion, decision: &Decision) -> Vec<String> {
    let (kind, expect) = match assertion.code {
        Code::PolicyExample => ("example", &assertion.expect),
        _ => ("test", &assertion.expect),
    };
    let mut wrong = Vec::new();
    let mut compare = |what: &str, said: Option<String>, is: &str| {
        if let Some(said) = said.filter(|said| said != is) {
            wrong.push(format!("the {kind} says {what}`{said}`, and it is `{is}`"));
        }
    };
    compare("", expect.decision.map(|verdict| verdict.to_string()), decision.verdict.keyword());
    let by = decision.rule.as_deref().unwrap_or("");
    compare("rule ", expect.rule.clone(), by);
    compare("code ", expect.code.map(|code| code.to_string()), decision.code.slug());
    compare("risk ", expect.risk.map(|risk| risk.to_string()), decision.risk.name());
    let names = |capabilities: Capabilities| {
        capabilities.iter().map(Capability::name).collect::<Vec<_>>().join(" ")
    };
    compare("capabilities ", expect.capabilities.map(names), &names(decision.capabilities));
    if assertion.not_by.is_some() && assertion.not_by == decision.rule {
        let rule = assertion.not_by.as_deref().unwrap_or_default();
        wrong.push(format!("the example says that `{rule}` does not match"));
    }
    wrong
}

/// Checks everything that a policy says of itself; gives what is not so.
#[must_use]
pub fn assertion_diagnostics(policy: &Arc<Policy>, tools: &ToolSet) -> Diagnostics {
    let checked = check_assertions(policy, assertions(policy), tools);
    let problems = checked.into_iter().flat_map(
        |CheckedAssertion { assertion, decision, differences: wrong }| {
            let by = decision.rule.as_deref().unwrap_or("no rule");
            let hint = format!("{by}: {}", decision.reason);
            wrong.into_iter().map(move |message| {
                let span = assertion.source.span.clone();
                Diagnostic::error(assertion.code, span, message).hint(hint.clone())
            })
        },
    );
    problems.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use capsule_core::policy::BindRoots;
    use capsule_core::risk::Risk;
    use capsule_policy::PolicyDraft;
    use capsule_tools::{CATALOGUE, describe};
    use serde_json::json;

    use super::*;

    fn policy(text: &str) -> Arc<Policy> {
        let (draft, _) = PolicyDraft::parse(text, "policy.yaml", "/home/ada", CATALOGUE).unwrap();
        let roots = BindRoots {
            workspace: "/work".into(),
            runtime_files: Vec::new(),
            may_drop_base_rules: true,
            ..BindRoots::default()
        };
        Arc::new(draft.bind(&roots, "/home/ada", CATALOGUE).unwrap())
    }

    /// FR-20: an argument that came from elsewhere raises the risk, as far as the policy says.
    #[test]
    fn a_tainted_argument_raises_the_risk() {
        let action = describe("fs.read", &json!({ "path": "a" }), 0).unwrap();
        let tool = ToolName::unchecked("fs.read");
        let tainted = ["path".to_owned()];
        let (facts, usage) = (Facts::default(), Usage::default());
        for (more, tainted, risk) in [
            ("", &tainted[..], Risk::Medium),
            ("", &[], Risk::Low),
            ("risk: { escalate: [] }", &tainted, Risk::Low),
            ("risk: { escalate: [{ when: tainted-argument, to: high }] }", &tainted, Risk::High),
        ] {
            let text = format!("version: 1\n{more}\ntools: {{ fs.read: allow }}\n");
            let (tool, action, facts, usage) = (&tool, &action, &facts, &usage);
            let case = PolicyInput { tool, action, facts, usage, tainted, args_digest: None };
            let decision = decide(&policy(&text), &case).decision;
            assert_eq!(decision.risk, risk, "{more}");
            assert_eq!(decision.code == Code::RiskBlocked, risk == Risk::High, "{more}");
        }
    }
}
