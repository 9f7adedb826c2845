//! What a policy would decide on a call: the call is looked at as for a run, and nothing is run.

use std::sync::Arc;

use capsule_core::call::ToolCall;
use capsule_core::decision::Decision;
use capsule_core::policy::{DecisionTrace, Judgement, Policy, PolicyInput, Usage, decide};
use capsule_tools::CATALOGUE;
use serde_json::Value;

use crate::backend::CallBackend;
use crate::script_files::with_script_texts;

/// What the policy would decide on a call, by the same way that enforcement takes.
pub fn explain<H: CallBackend>(
    policy: &Arc<Policy>,
    backend: &mut H,
    tool: &str,
    args: Value,
) -> Decision {
    explain_call(policy, backend, tool, args).0
}

/// The same with what was asked on the way; nothing was, where the call was not understood.
pub fn explain_call<H: CallBackend>(
    policy: &Arc<Policy>,
    backend: &mut H,
    tool: &str,
    args: Value,
) -> (Decision, Option<DecisionTrace>) {
    let id = CATALOGUE.find(tool).map_or(tool, |signature| signature.id);
    let usage = Usage::default();
    let call = with_script_texts((policy, &usage), backend, ToolCall::by_person(id, args));
    match backend.preflight(&call) {
        Ok(understood) => {
            let case = PolicyInput {
                tool: &call.tool,
                action: &understood.action,
                facts: &understood.facts,
                usage: &usage,
                tainted: &[],
                args_digest: None,
            };
            let Judgement { decision, trace, .. } = decide(policy, &case);
            (decision, Some(trace))
        }
        Err(problem) => (Decision::reject_invalid(problem), None),
    }
}
