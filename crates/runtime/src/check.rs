//! Asking the policy without acting: explanations, and the examples that its author gave.

use std::sync::Arc;

use capsule_core::action::{Action, Facts};
use capsule_core::call::ToolCall;
use capsule_core::code::Code;
use capsule_core::decision::Decision;
use capsule_core::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::policy::{Case, Expected, Policy, Usage, decide};
use capsule_core::tool::ToolName;
use capsule_tools::{CATALOGUE, describe};
use serde_json::Value;

use crate::hands::Hands;

/// What the policy would decide on a call, by the same way that enforcement takes.
pub fn explain<H: Hands>(policy: &Arc<Policy>, hands: &mut H, tool: &str, args: Value) -> Decision {
    let id = CATALOGUE.find(tool).map_or(tool, |signature| signature.id);
    let call = ToolCall::by_person(id, args);
    match hands.preflight(&call) {
        Ok(understood) => {
            let usage = Usage::default();
            let case = Case {
                tool: &call.tool,
                action: &understood.action,
                facts: &understood.facts,
                usage: &usage,
            };
            decide(policy, &case).decision
        }
        Err(problem) => Decision::misunderstood(problem),
    }
}

/// What the policy decides on a recorded action with its recorded facts.
#[must_use]
pub fn explain_recorded(
    policy: &Arc<Policy>,
    tool: &ToolName,
    action: &Action,
    facts: &Facts,
    usage: &Usage,
) -> Decision {
    decide(policy, &Case { tool, action, facts, usage }).decision
}

/// Decides every example of a policy, as its text alone says: nothing is looked up on disk.
#[must_use]
pub fn check_examples(policy: &Arc<Policy>) -> Diagnostics {
    let mut problems = Vec::new();
    let usage = Usage::default();
    for (tool, rule) in &policy.tools {
        for example in &rule.examples {
            let facts = Facts::default();
            let decision = match describe(tool.as_str(), &example.args, 0) {
                Ok(action) => explain_recorded(policy, tool, &action, &facts, &usage),
                Err(problem) => Decision::misunderstood(problem),
            };
            let by = decision.rule.as_deref().unwrap_or("no rule");
            let wrong = match example.expect {
                Expected::Verdict(verdict) if verdict != decision.verdict => {
                    let said = verdict.word();
                    Some(format!("the example says `{said}`, and it is `{}`", decision.verdict))
                }
                Expected::NoMatch if decision.rule.as_deref() == Some(&example.rule) => {
                    Some(format!("the example says that `{}` does not match", example.rule))
                }
                _ => None,
            };
            if let Some(message) = wrong {
                let problem =
                    Diagnostic::error(Code::PolicyExample, example.source.span.clone(), message);
                problems.push(problem.hint(format!("{by}: {}", decision.reason)));
            }
        }
    }
    problems
}
