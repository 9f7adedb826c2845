//! Reads what a policy says about one tool: what is common to all, then what its shape adds.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde_json::Value;

use crate::language::{EXAMPLES, quota_keys, tool_keys};
use crate::parse::context::Context;
use crate::parse::rule_value::{
    bounded_time, limit_section, read_decision, text, untrusted, verdict,
};
use crate::parse::{exec, fetch, files, git_and_tests};
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::units::millis;
use capsule_base::yaml::{self, Section, YamlNode};
use capsule_core::decision::Verdict;
use capsule_core::policy::{Constraint, Quota, ToolRule};
use capsule_core::policy::{ExampleExpectation, PolicyExample};
use capsule_core::tool::{ToolShape, ToolSignature};

pub(super) fn rule(
    context: &mut Context<'_>,
    signature: &'static ToolSignature,
    at: &YamlNode,
    node: &YamlNode,
) -> Option<ToolRule> {
    // The short form `fs.read: allow` is the same as `fs.read: { decision: allow }`.
    let short = YamlNode { span: at.span.clone(), value: yaml::YamlValue::Map(Vec::new()) };
    let (decision, body) = match node.text() {
        Some(_) => (verdict(context, node), &short),
        None => (None, node),
    };
    let keys = tool_keys(signature);
    let section = context.section_with(body, &format!("`{}`", signature.id), &keys)?;
    let decision = decision.or_else(|| read_decision(context, &section));
    // Where the policy has no word, the user is asked: there is no capability that a profile could have one for.
    let unsaid = (signature.shape == ToolShape::User).then_some(Verdict::Allow);
    let rule = ToolRule {
        source: context.source(at),
        decision: decision.or(unsaid),
        because: text(context, &section, "because"),
        suggest: text(context, &section, "suggest"),
        quota: section.get("quota").map(|node| quota(context, signature, node)).unwrap_or_default(),
        timeout_ms: timeout(context, signature, &section),
        untrusted: untrusted(context, &section),
        constraint: match signature.shape {
            ToolShape::Files => Constraint::Files(files::rule(context, signature, &section)),
            ToolShape::Fetch => Constraint::Fetch(fetch::rule(context, signature, &section)),
            ToolShape::Exec => Constraint::Exec(exec::rule(context, &section)),
            ToolShape::Repository => {
                Constraint::Git(git_and_tests::git(context, signature, &section))
            }
            ToolShape::Test => Constraint::Test(git_and_tests::test(context, &section, signature)),
            ToolShape::User => {
                // A person takes the time that an answer takes.
                let _ = limit_section(context, signature, &section);
                Constraint::Person
            }
        },
        examples: collect_examples(context, signature, &section),
    };
    Some(rule)
}

fn timeout(context: &mut Context<'_>, signature: &ToolSignature, section: &Section<'_>) -> u64 {
    // Every shape's `limits` has this key, and checks its other keys itself. Commands have bounds
    // of their own.
    let node = match signature.shape {
        ToolShape::Exec | ToolShape::Test => None,
        _ => section.get("limits").and_then(|node| node.get("timeout")),
    };
    let timeout = node.and_then(|node| bounded_time(context, node));
    millis(timeout.unwrap_or(limits::TIMEOUT))
}

fn quota(context: &mut Context<'_>, signature: &ToolSignature, node: &YamlNode) -> Quota {
    let mut quota = Quota::default();
    let keys = quota_keys(signature);
    let Some(section) = context.section_with(node, "`quota`", &keys) else { return quota };
    quota.calls = section.get("calls").and_then(|node| context.reader.number(node));
    quota.bytes = section.get("bytes").and_then(|node| context.reader.size(node));
    quota.per_host = section.get("per_host").and_then(|node| context.reader.number(node));
    quota.wall_ms = section.get("wall").and_then(|node| context.reader.duration(node)).map(millis);
    quota
}

/// The examples of the tool, and those of its rules and programs.
fn collect_examples(
    context: &mut Context<'_>,
    signature: &'static ToolSignature,
    section: &Section<'_>,
) -> Vec<PolicyExample> {
    let mut found = Vec::new();
    if let Some(node) = section.get("examples") {
        examples(context, signature, signature.id, node, &mut found);
    }
    for item in section.get("rules").map(list).unwrap_or_default() {
        let id = item.get("id").and_then(YamlNode::text).unwrap_or("");
        if let Some(node) = item.get("examples") {
            examples(context, signature, &format!("{}/{id}", signature.id), node, &mut found);
        }
    }
    if let Some(yaml::YamlValue::Map(programs)) = section.get("executables").map(|node| &node.value)
    {
        for (name, body) in programs {
            let rule = format!("{}/{}", signature.id, name.text().unwrap_or(""));
            if let Some(node) = body.get("examples") {
                examples(context, signature, &rule, node, &mut found);
            }
        }
    }
    found
}

fn list(node: &YamlNode) -> &[YamlNode] {
    match &node.value {
        yaml::YamlValue::List(items) => items,
        _ => &[],
    }
}

fn examples(
    context: &mut Context<'_>,
    signature: &'static ToolSignature,
    rule: &str,
    node: &YamlNode,
    found: &mut Vec<PolicyExample>,
) {
    let Some(section) = context.section(node, "`examples`", &EXAMPLES) else { return };
    for (word, _, node) in section.entries() {
        let expect = match Verdict::from_word(word) {
            Some(verdict) => ExampleExpectation::Verdict(verdict),
            None => ExampleExpectation::NoMatch,
        };
        for item in context.reader.list(node, "a list of calls").unwrap_or_default() {
            let Some(args) = example_arguments(context, signature, item) else { continue };
            let source = context.source(item);
            found.push(PolicyExample { source, expect, args, rule: rule.to_string() });
        }
    }
}

/// The arguments of an example: a map, or for commands a line of words.
fn example_arguments(
    context: &mut Context<'_>,
    signature: &'static ToolSignature,
    node: &YamlNode,
) -> Option<Value> {
    let args = match (signature.shape, node.text()) {
        (ToolShape::Exec, Some(line)) if line.contains(['\'', '"', '\\']) => {
            let message = "a line with quotes is ambiguous; write the words as a list";
            context.error(Code::PolicyType, node, message);
            return None;
        }
        (ToolShape::Exec, Some(line)) => {
            let words: Vec<Value> = line.split_whitespace().map(Value::from).collect();
            serde_json::json!({ "argv": words })
        }
        (ToolShape::Exec, None) if matches!(node.value, yaml::YamlValue::List(_)) => {
            serde_json::json!({ "argv": node.to_json() })
        }
        _ => node.to_json(),
    };
    if let Err(error) = signature.check(&args) {
        context.error(Code::PolicyExample, node, error.message);
        return None;
    }
    Some(args)
}
