//! Reads constraints on URLs.

use alloc::format;
use alloc::vec::Vec;

use crate::language::{PRIVATE_IPS, REDIRECTS, URL_RULE, URLS};
use crate::parse::context::Context;
use crate::parse::rule_value::{limit_section, read_bound, read_decision, text, untrusted};
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::net;
use capsule_base::url::UrlPattern;
use capsule_base::yaml::{Section, YamlNode, YamlReader, YamlValue};
use capsule_core::decision::Verdict;
use capsule_core::policy::SourceLocation;
use capsule_core::policy::{FetchRule, UrlRule};
use capsule_core::tool::ToolSignature;

pub(super) fn rule(
    context: &mut Context<'_>,
    signature: &ToolSignature,
    section: &Section<'_>,
) -> FetchRule {
    let mut rule = FetchRule {
        allow: Vec::new(),
        deny: Vec::new(),
        private: Vec::new(),
        redirects: limits::REDIRECTS,
        cross_origin: Verdict::Deny,
        bytes_max: limits::FETCH_BYTES,
        inflated_max: limits::INFLATED_BYTES,
    };
    if let Some(node) = section.get("domains") {
        hosts(context, node, None, &mut rule.allow);
    }
    if let Some(node) = section.get("urls") {
        urls(context, node, &mut rule);
    }
    shared_settings(context, section, &mut rule);
    if let Some(section) = limit_section(context, signature, section) {
        for (name, most, bound) in [
            ("bytes_max", limits::FETCH_BYTES_MAX, &mut rule.bytes_max),
            ("inflated_max", limits::INFLATED_BYTES_MAX, &mut rule.inflated_max),
        ] {
            read_bound(context, (&section, name), YamlReader::size, 0..=most, bound);
        }
    }
    rule
}

/// Names of hosts, with a word if one is given. What is denied is denied at every port where none is named.
pub(super) fn hosts(
    context: &mut Context<'_>,
    node: &YamlNode,
    decision: Option<Verdict>,
    rules: &mut Vec<UrlRule>,
) {
    for item in context.reader.list(node, "a list of hosts").unwrap_or_default() {
        let Some(name) = context.reader.text(item) else { continue };
        let has_port = name.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let any_port = if decision == Some(Verdict::Deny) && !has_port { ":*" } else { "" };
        match UrlPattern::domain(&format!("{name}{any_port}")) {
            Ok(pattern) => {
                let rule = url_rule_without_verdict(name.into(), context.source(item), pattern);
                rules.push(UrlRule { decision, ..rule });
            }
            Err(why) => context.error(Code::PolicyUrl, item, why),
        }
    }
}

fn url_rule_without_verdict(
    id: alloc::string::String,
    source: SourceLocation,
    pattern: UrlPattern,
) -> UrlRule {
    UrlRule { id, source, pattern, decision: None, because: None, suggest: None }
}

/// `urls: [..]` is short for `urls: { allow: [..] }`.
fn urls(context: &mut Context<'_>, node: &YamlNode, rule: &mut FetchRule) {
    if matches!(node.value, YamlValue::List(_)) {
        url_rules(context, node, &mut rule.allow);
        return;
    }
    let Some(section) = context.section(node, "`urls`", &URLS) else { return };
    if let Some(node) = section.get("allow") {
        url_rules(context, node, &mut rule.allow);
    }
    if let Some(node) = section.get("deny") {
        url_rules(context, node, &mut rule.deny);
    }
    shared_settings(context, &section, rule);
}

fn url_rules(context: &mut Context<'_>, node: &YamlNode, rules: &mut Vec<UrlRule>) {
    for item in context.reader.list(node, "a list of URLs").unwrap_or_default() {
        if let Some(rule) = url_rule(context, item, rules.len()) {
            if rules.iter().any(|other| other.id == rule.id) {
                let message = format!("another rule has the id `{}`", rule.id);
                context.error(Code::PolicyDuplicateKey, item, message);
            }
            rules.push(rule);
        }
    }
}

fn url_rule(context: &mut Context<'_>, node: &YamlNode, place: usize) -> Option<UrlRule> {
    let number = format!("url-{}", place + 1);
    if let Some(text) = node.text() {
        let pattern = pattern(context, node, text)?;
        return Some(url_rule_without_verdict(number, context.source(node), pattern));
    }
    let section = context.section(node, "a rule for URLs", &URL_RULE)?;
    let id = section.get("id").and_then(|node| context.id(node)).unwrap_or(number);
    untrusted(context, &section);
    let url = context.reader.required(&section, "url", "a rule for URLs")?;
    let text_of_url = context.reader.text(url)?;
    let pattern = pattern(context, url, text_of_url)?;
    Some(UrlRule {
        id,
        source: context.source(url),
        pattern,
        decision: read_decision(context, &section),
        because: text(context, &section, "because"),
        suggest: text(context, &section, "suggest"),
    })
}

fn pattern(context: &mut Context<'_>, node: &YamlNode, text: &str) -> Option<UrlPattern> {
    match UrlPattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            context.error(Code::PolicyUrl, node, why);
            None
        }
    }
}

/// What holds for every address: private ones, and redirects.
fn shared_settings(context: &mut Context<'_>, section: &Section<'_>, rule: &mut FetchRule) {
    if let Some(node) = section.get("private_ips") {
        private(context, node, &mut rule.private);
    }
    let Some(node) = section.get("redirects") else { return };
    let Some(section) = context.section(node, "`redirects`", &REDIRECTS) else { return };
    let (range, most) = (0..=limits::REDIRECTS_MAX, &mut rule.redirects);
    read_bound(context, (&section, "max"), YamlReader::number, range, most);
    if let Some(node) = section.get("cross_origin")
        && let Some(word) = context.reader.keyword(node, &Verdict::WORDS)
    {
        rule.cross_origin = Verdict::from_word(word).unwrap_or_default();
    }
}

/// `deny`, or `{ allow: [127.0.0.1, 10.0.0.0/8] }`.
pub(super) fn private(context: &mut Context<'_>, node: &YamlNode, ranges: &mut Vec<net::IpRange>) {
    if node.text().is_some() {
        context.reader.keyword(node, &["deny"]);
        return;
    }
    let Some(section) = context.section(node, "`private_ips`", &PRIVATE_IPS) else {
        return;
    };
    let Some(node) = section.get("allow") else { return };
    for item in context.reader.list(node, "a list of addresses").unwrap_or_default() {
        match item.text().and_then(net::IpRange::parse) {
            Some(range) => ranges.push(range),
            None => {
                context.error(Code::PolicyType, item, "an address or range is needed: `10.0.0.0/8`")
            }
        }
    }
}
