//! How much one run may use a tool.

use alloc::format;
use alloc::vec::Vec;

use crate::action::{Action, Parsed};
use crate::code::Code;
use crate::policy::decide::{Case, Finding};
use crate::policy::model::ToolRule;
use crate::policy::usage::Used;

pub(super) fn check(rule: &ToolRule, case: &Case<'_>) -> Vec<Finding> {
    let none = Used::default();
    let used = case.usage.of(case.tool).unwrap_or(&none);
    let quota = &rule.quota;
    let mut found = Vec::new();
    let mut check = |limit: Option<u64>, used: u64, code: Code, what: &str| {
        if let Some(limit) = limit.filter(|limit| used >= *limit) {
            let reason = format!("`{}` has used its quota of {limit} {what}", case.tool);
            found.push(Finding::deny(code, reason).by(case.tool.as_str(), &rule.source));
        }
    };
    check(quota.calls, used.calls, Code::QuotaCalls, "calls");
    check(quota.bytes, used.bytes, Code::QuotaBytes, "bytes");
    check(quota.wall_ms, used.micros / 1_000, Code::QuotaWall, "milliseconds");
    if let Action::Fetch { url, .. } = case.action
        && let Parsed::Url(address) = &url.parsed
    {
        let host = format!("{}", address.host());
        let calls = used.hosts.get(&host).copied().unwrap_or(0);
        check(quota.per_host, calls, Code::QuotaPerHost, "calls to one host");
    }
    found
}

/// The bytes that the run may still move with this tool.
pub(super) fn bytes_left(rule: &ToolRule, case: &Case<'_>) -> u64 {
    let used = case.usage.of(case.tool).map_or(0, |used| used.bytes);
    rule.quota.bytes.map_or(u64::MAX, |quota| quota.saturating_sub(used))
}
