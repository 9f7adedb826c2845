//! How much one run may use a tool.

use alloc::format;
use alloc::vec::Vec;

use crate::action::{Action, ParsedUrl};
use crate::policy::decide::check::{Finding, PolicyInput};
use crate::policy::model::ToolRule;
use crate::policy::usage::ToolUsage;
use capsule_base::code::Code;

pub(super) fn check(rule: &ToolRule, input: &PolicyInput<'_>) -> Vec<Finding> {
    let none = ToolUsage::default();
    let used = input.usage.of_tool(input.tool).unwrap_or(&none);
    let quota = &rule.quota;
    let mut found = Vec::new();
    let mut check = |limit: Option<u64>, used: u64, code: Code, what: &str| {
        if let Some(limit) = limit.filter(|limit| used >= *limit) {
            let reason = format!("`{}` has used its quota of {limit} {what}", input.tool);
            found.push(Finding::deny(code, reason).under_rule(input.tool.as_str(), &rule.source));
        }
    };
    check(quota.calls, used.calls, Code::QuotaCalls, "calls");
    check(quota.bytes, used.bytes, Code::QuotaBytes, "bytes");
    check(quota.wall_ms, used.micros / 1_000, Code::QuotaWall, "milliseconds");
    if let Action::Fetch { url, .. } = input.action
        && let ParsedUrl::Url(address) = &url.parsed
    {
        let host = format!("{}", address.host());
        let calls = used.hosts.get(&host).copied().unwrap_or(0);
        check(quota.per_host, calls, Code::QuotaPerHost, "calls to one host");
    }
    found
}

/// The bytes that the run may still move with this tool.
pub(super) fn bytes_left(rule: &ToolRule, input: &PolicyInput<'_>) -> u64 {
    let used = input.usage.of_tool(input.tool).map_or(0, |used| used.bytes);
    rule.quota.bytes.map_or(u64::MAX, |quota| quota.saturating_sub(used))
}
