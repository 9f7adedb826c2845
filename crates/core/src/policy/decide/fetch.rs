//! Constraints on URLs, and on the hosts of the proxy for commands.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::action::{ParsedUrl, UrlTarget};
use crate::decision::Verdict;
use crate::outcome::CodedError;
use crate::policy::decide::check::{Finding, PolicyInput, reason_or, verdict_text};
use crate::policy::model::{FetchRule, HostRules, ToolRule, UrlRule};
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::net;
use capsule_base::url::{HostName, HttpUrl};
use capsule_redact::excerpt;

/// The headers that a call may set: they say what is wanted, never who asks or whom.
const HEADERS: &[&str] =
    &["accept", "accept-language", "if-modified-since", "if-none-match", "user-agent"];

/// The rule about hosts that no other rule names.
const OTHER_HOSTS: &str = "sandbox.network.hosts.others";

/// Checks a fetch. Nothing found means that the tool's own word decides.
pub(super) fn check(
    fetch: &FetchRule,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    url: &UrlTarget,
    headers: &[(String, String)],
) -> Vec<Finding> {
    let tool = input.tool.as_str();
    let address = match &url.parsed {
        ParsedUrl::Url(address) => address,
        ParsedUrl::Refused(code) => {
            let shown = excerpt(&url.asked, limits::QUOTED_CHARS);
            let finding =
                Finding::deny(*code, format!("`{shown}`: {}", lowercase_first(code.meaning())))
                    .with_suggestion(Some(code.next_step()));
            return alloc::vec![finding];
        }
    };
    if let Some(finding) = forbidden_header(headers) {
        return alloc::vec![finding.under_rule(tool, &rule.source)];
    }
    let named = judge_url(fetch, address);
    let mut found: Vec<Finding> =
        named.into_iter().map(|finding| prefix_rule(tool, finding)).collect();
    if found.is_empty() && !fetch.allow.iter().any(|rule| rule.pattern.matches(address)) {
        found.push(unmatched_address(fetch, address).under_rule(tool, &rule.source));
    }
    for address in input.facts.resolves.iter().copied() {
        if let Err(problem) = judge_address(&fetch.private, address) {
            found.push(
                Finding::deny(problem.code, problem.message)
                    .under_rule(tool, &rule.source)
                    .with_suggestion(problem.suggestion),
            );
        }
    }
    found
}

/// `gh-issues` becomes `http.get/gh-issues`.
fn prefix_rule(tool: &str, finding: Finding) -> Finding {
    let rule = finding.rule.map(|id| format!("{tool}/{id}"));
    Finding { rule, ..finding }
}

fn lowercase_first(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

fn forbidden_header(headers: &[(String, String)]) -> Option<Finding> {
    if headers.len() > limits::REQUEST_HEADERS {
        return Some(Finding::deny(Code::NetHeader, "the call sets too many headers"));
    }
    headers.iter().find_map(|(name, value)| {
        let known = HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name));
        let plain = value.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        if known && plain {
            return None;
        }
        let shown = excerpt(name, limits::QUOTED_CHARS);
        let reason = format!("the header `{shown}` may not be set by a call");
        let hint = format!("a call may set `{}`", HEADERS.join("`, `"));
        Some(Finding::deny(Code::NetHeader, reason).with_suggestion(Some(hint)))
    })
}

fn unmatched_address(fetch: &FetchRule, address: &HttpUrl) -> Finding {
    if !address.is_plain() {
        let shown = address.display_short();
        let reason = format!(
            "what `{shown}` means depends on how its server decodes it, so no `*` names it"
        );
        let hint = "write the path plainly";
        return Finding::deny(Code::NetNotAllowed, reason).with_suggestion(Some(hint));
    }
    let named: Vec<&str> = fetch.allow.iter().map(|rule| rule.pattern.as_str()).collect();
    let reason = format!("the policy does not name `{}`", address.display_short());
    let suggestion = match named.as_slice() {
        [] => "the policy names no address at all".into(),
        named => format!("it names `{}`", named.join("`, `")),
    };
    Finding::deny(Code::NetNotAllowed, reason).with_suggestion(Some(suggestion))
}

/// The words of the rules that name an address, and what its host says by itself. Rules without a
/// word of their own leave no finding; an address that no rule names leaves none either.
pub(crate) fn judge_url(fetch: &FetchRule, address: &HttpUrl) -> Vec<Finding> {
    let mut found = Vec::new();
    if let HostName::Ip(ip) = address.host()
        && let Err(problem) = judge_address(&fetch.private, ip)
    {
        found
            .push(Finding::deny(problem.code, problem.message).with_suggestion(problem.suggestion));
    }
    let denials = fetch.deny.iter().map(|rule| (rule, Some(Verdict::Deny)));
    let item = fetch.allow.iter().map(|rule| (rule, rule.decision));
    // What is stricter counts where it could be meant.
    let is_named = |(rule, verdict): &(&UrlRule, Option<Verdict>)| match verdict {
        None | Some(Verdict::Allow) => rule.pattern.matches(address),
        Some(_) => rule.pattern.could_match(address),
    };
    let named = denials.chain(item).filter(is_named);
    found.extend(named.filter_map(|(rule, verdict)| Some(rule_finding(rule, verdict?))));
    found
}

/// The strictest word of the rules that name a host with a port, given as an address over https. A host that no
/// rule names is denied, unless the policy has a word for others.
pub(crate) fn judge_host(hosts: &HostRules, address: &HttpUrl) -> Finding {
    let named = hosts.rules.iter().filter(|rule| rule.pattern.matches(address));
    let found = named.map(|rule| rule_finding(rule, rule.decision.unwrap_or_default()));
    found.max_by_key(|finding| finding.verdict).unwrap_or_else(|| {
        let reason = format!("the policy names no host `{}`", address.host_and_port());
        match &hosts.others {
            Some((verdict, source)) if *verdict != Verdict::Deny => {
                Finding::with_verdict(*verdict, reason).under_rule(OTHER_HOSTS, source)
            }
            _ => Finding::deny(Code::NetNotAllowed, reason)
                .with_suggestion(Some("`sandbox.network.hosts` of the policy names the hosts")),
        }
    })
}

fn rule_finding(rule: &UrlRule, verdict: Verdict) -> Finding {
    let reason =
        reason_or(&rule.because, || verdict_text(verdict, &format!("`{}`", rule.pattern.as_str())));
    Finding::with_verdict(verdict, reason)
        .under_rule(rule.id.clone(), &rule.source)
        .with_suggestion(rule.suggest.clone())
}

/// Judges an address that would be dialled.
pub(crate) fn judge_address(private: &[net::IpRange], address: IpAddr) -> Result<(), CodedError> {
    let Some(kind) = net::reserved(address) else { return Ok(()) };
    if private.iter().any(|range| range.contains(address)) {
        return Ok(());
    }
    let message = format!("the address {address} is {}", kind.description());
    Err(CodedError::new(Code::NetPrivate, message)
        .with_suggestion("use an address that is open to everybody"))
}
