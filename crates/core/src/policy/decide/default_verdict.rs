//! The verdict on a call where no rule for what it works on has a word.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::capability::Capabilities;
use crate::policy::decide::check::{Finding, reason_or, verdict_text};
use crate::policy::decide::risk;
use crate::policy::model::{Policy, ToolRule};
use crate::tool::ToolName;

/// The tool's own word, or the profile's.
pub(super) fn default_verdict(
    policy: &Policy,
    rule: &ToolRule,
    tool: &ToolName,
    capabilities: Capabilities,
) -> Finding {
    let tool = tool.as_str();
    if let Some(verdict) = rule.decision {
        let reason = reason_or(&rule.because, || verdict_text(verdict, &format!("`{tool}`")));
        return Finding::with_verdict(verdict, reason)
            .under_rule(tool, &rule.source)
            .with_suggestion(rule.suggest.clone());
    }
    if let Some(finding) = risk::check_ceiling(policy, capabilities) {
        return finding;
    }
    let verdict = policy.profile.strictest_verdict(capabilities);
    let powers: Vec<String> =
        capabilities.iter().map(|capability| risk::capability_label(policy, capability)).collect();
    let name = &policy.profile.name;
    let subject = format!("{} under the profile `{name}`", powers.join(", "));
    let source = policy.profile.source.as_ref().unwrap_or(&rule.source);
    Finding::with_verdict(verdict, verdict_text(verdict, &subject))
        .under_rule(format!("profile/{name}"), source)
}
