//! Reads what a policy says about secrets.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::language::{HEADER, PATTERN, PREVIEWS, REDACTION, SECRET};
use crate::parse::context::Context;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::yaml::{Section, YamlNode};
use capsule_core::policy::{Constraint, ToolRule};
use capsule_core::policy::{PatternRule, RedactionRule, ReturnedMasks, SecretRule};
use capsule_core::tool::ToolName;
use capsule_redact::{CustomPattern, limits as bounds};

/// What a person who is asked sees as it is: what would hide there cannot be approved.
const NEVER_HIDDEN: [&str; 4] = ["executable", "flag", "path", "host"];
/// Headers that say where a message ends or to whom it goes: nobody sets them by hand.
const FRAMING: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What is masked, and what becomes of masks.
pub(super) fn redaction(context: &mut Context<'_>, node: Option<&YamlNode>) -> RedactionRule {
    // A layer that says nothing about it has no opinion.
    let silent =
        if context.layer.is_some() { ReturnedMasks::Resolve } else { ReturnedMasks::Refuse };
    let mut rule = RedactionRule { patterns: Vec::new(), returned: silent };
    let keys = |node| context.section(node, "`redaction`", &REDACTION);
    let Some(section) = node.and_then(keys) else { return rule };
    // Version 1 knows only these; they are written out so that a reader sees them.
    if let Some(node) = section.get("at") {
        context.reader.keyword(node, &["boundary"]);
    }
    if let Some(node) = section.get("detectors") {
        require_words(context, node, &["builtin"]);
    }
    if let Some(node) = section.get("previews")
        && let Some(section) = context.section(node, "`previews`", &PREVIEWS)
        && let Some(node) = section.get("never_mask")
    {
        require_words(context, node, &NEVER_HIDDEN);
    }
    if let Some(node) = section.get("patterns") {
        rule.patterns = patterns(context, node);
    }
    if let Some(node) = section.get("returned_masks") {
        let word = context.reader.keyword(node, &ReturnedMasks::WORDS);
        rule.returned = word.and_then(ReturnedMasks::from_word).unwrap_or_default();
    }
    rule
}

/// A list that has to hold all of these words and no other.
fn require_words(context: &mut Context<'_>, node: &YamlNode, words: &[&'static str]) {
    let items = context.reader.list(node, "a list of words").unwrap_or_default();
    let named: Vec<&str> =
        items.iter().filter_map(|item| context.reader.keyword(item, words)).collect();
    if named.len() == items.len() && words.iter().any(|word| !named.contains(word)) {
        let message = format!("all of `{}` are needed: less would hide more", words.join("`, `"));
        context.error(Code::PolicyValue, node, message);
    }
}

fn patterns(context: &mut Context<'_>, node: &YamlNode) -> Vec<PatternRule> {
    let items = context.reader.list(node, "a list of patterns").unwrap_or_default();
    if items.len() > bounds::PATTERNS {
        let message = format!("{} patterns; at most {}", items.len(), bounds::PATTERNS);
        context.error(Code::PolicyValue, node, message);
        return Vec::new();
    }
    let mut rules: Vec<PatternRule> = Vec::new();
    for item in items {
        let Some(section) = context.section(item, "a pattern for secrets", &PATTERN) else {
            continue;
        };
        let Some(rule) = pattern(context, &section) else { continue };
        if rules.iter().any(|other| other.pattern.id() == rule.pattern.id()) {
            let message = format!("another pattern has the id `{}`", rule.pattern.id());
            context.error(Code::PolicyDuplicateKey, item, message);
            continue;
        }
        rules.push(rule);
    }
    rules
}

fn pattern(context: &mut Context<'_>, section: &Section<'_>) -> Option<PatternRule> {
    let id = context.reader.required(section, "id", "a pattern for secrets");
    let regex = context.reader.required(section, "regex", "a pattern for secrets");
    let (id, node) = (id?, regex?);
    let named = context.id(id)?;
    if named.len() > bounds::ID_BYTES {
        let message = format!("{} letters; at most {}", named.len(), bounds::ID_BYTES);
        context.error(Code::PolicyValue, id, message);
        return None;
    }
    let text = context.reader.line(node)?;
    match CustomPattern::parse(&named, &text) {
        Ok(pattern) => Some(PatternRule { source: context.source(node), text, pattern }),
        Err(why) => {
            context.error(Code::PolicyRegex, node, why);
            None
        }
    }
}

/// The handles. A layer has none: what it would send, the policy does not.
pub(super) fn secrets(
    context: &mut Context<'_>,
    node: Option<&YamlNode>,
    tools: &BTreeMap<ToolName, ToolRule>,
) -> Vec<SecretRule> {
    let Some(map) = node.and_then(|node| context.reader.map(node, "`secrets`")) else {
        return Vec::new();
    };
    let mut rules: Vec<SecretRule> = Vec::new();
    for (name, at, node) in map.entries() {
        if rules.len() >= bounds::SECRETS {
            context.error(Code::PolicyValue, at, format!("at most {} secrets", bounds::SECRETS));
            break;
        }
        if let Some(rule) = secret(context, (name, at), node, tools) {
            if let Some(other) = rules.iter().find(|other| collide(other, &rule)) {
                let message = format!(
                    "`{}` is sent in the header `{}` under the same rule",
                    other.name, other.header
                );
                context.error(Code::PolicyValue, at, message);
            }
            rules.push(rule);
        }
    }
    rules
}

fn collide(one: &SecretRule, other: &SecretRule) -> bool {
    one.header.eq_ignore_ascii_case(&other.header)
        && one.only_for.iter().any(|item| other.only_for.contains(item))
}

fn secret(
    context: &mut Context<'_>,
    (name, at): (&str, &YamlNode),
    node: &YamlNode,
    tools: &BTreeMap<ToolName, ToolRule>,
) -> Option<SecretRule> {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > bounds::ID_BYTES || !name.bytes().all(plain) {
        let message = "a secret is called like its variable: capital letters, digits and `_`";
        context.error(Code::PolicyType, at, message);
        return None;
    }
    let section = context.section(node, "a secret", &SECRET)?;
    if let Some(node) = context.reader.required(&section, "from", "a secret") {
        context.reader.keyword(node, &["env"]);
    }
    check_environment(context, name, at, tools);
    let only_for = context.reader.required(&section, "only_for", "a secret");
    let only_for = only_for.map(|node| rules_of(context, node, tools));
    let shape = context.reader.required(&section, "as", "a secret");
    let (header, format) = shape.and_then(|node| header_format(context, node))?;
    let source = context.source(at);
    Some(SecretRule { name: name.to_string(), source, only_for: only_for?, header, format })
}

/// A command that finds the variable in its environment could send it anywhere.
fn check_environment(
    context: &mut Context<'_>,
    name: &str,
    at: &YamlNode,
    tools: &BTreeMap<ToolName, ToolRule>,
) {
    for (tool, rule) in tools {
        let env = match &rule.constraint {
            Constraint::Exec(exec) => &exec.env,
            Constraint::Test(test) => &test.env,
            _ => continue,
        };
        if env.pass.iter().any(|text| text == name) {
            let message = format!("`{tool}` passes the variable `{name}` on to commands");
            context.error(Code::PolicyValue, at, message);
        }
    }
}

/// `http.get/gh-issues`: a rule that is there, and whose addresses nobody can listen to.
fn rules_of(
    context: &mut Context<'_>,
    node: &YamlNode,
    tools: &BTreeMap<ToolName, ToolRule>,
) -> Vec<(ToolName, String)> {
    let items = context.reader.list(node, "a list of rules").unwrap_or_default();
    if items.is_empty() {
        context.error(Code::PolicyValue, node, "a secret that is sent nowhere is no use");
    }
    let mut rules = Vec::new();
    for item in items {
        let Some(text) = context.reader.text(item) else { continue };
        let named = text.split_once('/').and_then(|(tool, id)| {
            let tool = ToolName::unchecked(tool);
            let Constraint::Fetch(fetch) = &tools.get(&tool)?.constraint else { return None };
            let rule = fetch.allow.iter().find(|rule| rule.id == id)?;
            Some((tool, rule))
        });
        match named {
            None => {
                let text = capsule_base::escape::line(text);
                let message = format!("`{text}` is no rule for URLs: write `http.get/ID`");
                context.error(Code::PolicyValue, item, message);
            }
            Some((_, rule)) if !rule.pattern.is_confidential() => {
                let message =
                    format!("`{}` is not `https`, so anybody reads it", rule.pattern.as_str());
                context.error(Code::PolicyValue, item, message);
            }
            Some((tool, rule)) => rules.push((tool, rule.id.clone())),
        }
    }
    rules
}

/// The header, and what stands around the value in it.
fn header_format(context: &mut Context<'_>, node: &YamlNode) -> Option<(String, (String, String))> {
    let section = context.section(node, "`as`", &HEADER)?;
    let at = context.reader.required(&section, "header", "`as`")?;
    let header = context.reader.line(at)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let framing = FRAMING.iter().any(|text| text.eq_ignore_ascii_case(&header));
    if header.is_empty()
        || header.len() > limits::NAME_BYTES
        || !header.bytes().all(plain)
        || framing
    {
        context.error(Code::PolicyValue, at, "that is no header for a secret");
        return None;
    }
    let Some(at) = section.get("format") else { return Some((header, Default::default())) };
    let format = context.reader.line(at)?;
    let plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    match format.split_once("{}") {
        Some((before, behind))
            if !behind.contains("{}")
                && format.len() <= limits::NAME_BYTES
                && format.bytes().all(plain) =>
        {
            Some((header, (before.to_string(), behind.to_string())))
        }
        _ => {
            let message = "a format has `{}` once, where the value goes: `Bearer {}`";
            context.error(Code::PolicyValue, at, message);
            None
        }
    }
}
