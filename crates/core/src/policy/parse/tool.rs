//! Reads what a policy says about one tool: what is common to all, then what its shape adds.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use serde_json::Value;

use crate::code::Code;
use crate::decision::Verdict;
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::policy::model::{Constraint, Example, Expected, Quota, ToolRule};
use crate::policy::parse::{Context, exec, fetch, files, narrow};
use crate::tool::{Shape, Signature};
pub(super) use crate::units::millis;
use crate::yaml::{self, Key, Node, Section, key, later};

/// The keys that every tool has; each shape adds its own.
const COMMON: &[Key] = &[
    key("decision"),
    key("because"),
    key("suggest"),
    key("limits"),
    key("quota"),
    key("examples"),
    key("output"),
    later("capabilities"),
    later("pin"),
];

pub(super) fn rule(
    context: &mut Context<'_>,
    signature: &'static Signature,
    at: &Node,
    node: &Node,
) -> Option<ToolRule> {
    // The short form `fs.read: allow` is the same as `fs.read: { decision: allow }`.
    let short = Node { span: at.span.clone(), value: yaml::Value::Map(Vec::new()) };
    let (decision, body) = match node.text() {
        Some(_) => (verdict(context, node), &short),
        None => (None, node),
    };
    let shape = match signature.shape {
        Shape::Files => files::KEYS,
        Shape::Fetch => fetch::KEYS,
        Shape::Exec => exec::KEYS,
        Shape::Repository => narrow::GIT,
        Shape::Test => narrow::TEST,
    };
    // What a shape enforces comes before what is not enforced for all of them.
    let modes = (signature.id == "fs.write").then_some(key("modes"));
    let keys: Vec<Key> = shape.iter().chain(COMMON).copied().chain(modes).collect();
    let section = context.reader.section(body, &format!("`{}`", signature.id), &keys)?;
    let decision = decision.or_else(|| word(context, &section));
    let rule = ToolRule {
        source: context.source(at),
        decision,
        because: text(context, &section, "because"),
        suggest: text(context, &section, "suggest"),
        quota: section.get("quota").map(|node| quota(context, signature, node)).unwrap_or_default(),
        timeout_ms: timeout(context, signature, &section),
        untrusted: untrusted(context, &section),
        constraint: match signature.shape {
            Shape::Files => Constraint::Files(files::rule(context, signature, &section)),
            Shape::Fetch => Constraint::Fetch(fetch::rule(context, &section)),
            Shape::Exec => Constraint::Exec(exec::rule(context, &section)),
            Shape::Repository => Constraint::Git(narrow::git(context, signature, &section)),
            Shape::Test => Constraint::Test(narrow::test(context, &section, signature)),
        },
        examples: collect_examples(context, signature, &section),
    };
    Some(rule)
}

/// Whether nobody vouches for what comes of it. What came from elsewhere is untrusted in any case; the key is
/// there so that a reader sees it.
pub(super) fn untrusted(context: &mut Context<'_>, section: &Section<'_>) -> bool {
    let node = section.get("output");
    node.is_some_and(|node| context.reader.only(node, "untrusted", &[]))
}

/// The word of a rule.
pub(super) fn word(context: &mut Context<'_>, section: &Section<'_>) -> Option<Verdict> {
    section.get("decision").and_then(|node| verdict(context, node))
}

/// A verdict by its word.
pub(super) fn verdict(context: &mut Context<'_>, node: &Node) -> Option<Verdict> {
    context.reader.word(node, &Verdict::WORDS).and_then(Verdict::from_word)
}

/// A text of a rule.
pub(super) fn text(context: &mut Context<'_>, section: &Section<'_>, name: &str) -> Option<String> {
    section.get(name).and_then(|node| context.reader.text(node)).map(ToString::to_string)
}

fn timeout(context: &mut Context<'_>, signature: &Signature, section: &Section<'_>) -> u64 {
    // Every shape's `limits` has this key, and checks its other keys itself. Commands have bounds
    // of their own.
    let node = match signature.shape {
        Shape::Exec | Shape::Test => None,
        _ => section.get("limits").and_then(|node| node.get("timeout")),
    };
    let timeout = node.and_then(|node| bounded_time(context, node));
    millis(timeout.unwrap_or(limits::TIMEOUT))
}

/// A duration up to the ceiling.
pub(super) fn bounded_time(context: &mut Context<'_>, node: &Node) -> Option<Duration> {
    let duration = context.reader.duration(node)?;
    if duration.is_zero() || duration > limits::TIMEOUT_CEILING {
        context.error(Code::PolicyValue, node, "a time limit lies between 1ms and 24h");
        return None;
    }
    Some(duration)
}

/// A number in a range; a policy that wants more or less is told so instead of being clamped. Less was once let
/// through, and is read where it was recorded.
pub(super) fn within(
    context: &mut Context<'_>,
    node: &Node,
    value: Option<u64>,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    let value = value?;
    let said = |which, bound| format!("the {which} that can be allowed is {bound}");
    if value > *range.end() {
        context.error(Code::PolicyValue, node, said("most", range.end()));
        return None;
    }
    if value < *range.start() {
        let message = said("least", range.start());
        let own = Diagnostic::warning(Code::PolicyValue, node.span.clone(), message);
        context.reader.problem(own);
    }
    Some(value)
}

fn quota(context: &mut Context<'_>, signature: &Signature, node: &Node) -> Quota {
    let mut keys = alloc::vec![key("calls"), key("bytes"), key("wall")];
    if signature.shape == Shape::Fetch {
        keys.push(key("per_host"));
    }
    let mut quota = Quota::default();
    let Some(section) = context.reader.section(node, "`quota`", &keys) else { return quota };
    quota.calls = section.get("calls").and_then(|node| context.reader.number(node));
    quota.bytes = section.get("bytes").and_then(|node| context.reader.size(node));
    quota.per_host = section.get("per_host").and_then(|node| context.reader.number(node));
    quota.wall_ms = section.get("wall").and_then(|node| context.reader.duration(node)).map(millis);
    quota
}

/// The examples of the tool, and those of its rules and programs.
fn collect_examples(
    context: &mut Context<'_>,
    signature: &'static Signature,
    section: &Section<'_>,
) -> Vec<Example> {
    let mut found = Vec::new();
    if let Some(node) = section.get("examples") {
        examples(context, signature, signature.id, node, &mut found);
    }
    for item in section.get("rules").map(list).unwrap_or_default() {
        let id = item.get("id").and_then(Node::text).unwrap_or("");
        if let Some(node) = item.get("examples") {
            examples(context, signature, &format!("{}/{id}", signature.id), node, &mut found);
        }
    }
    if let Some(yaml::Value::Map(programs)) = section.get("executables").map(|node| &node.value) {
        for (name, body) in programs {
            let rule = format!("{}/{}", signature.id, name.text().unwrap_or(""));
            if let Some(node) = body.get("examples") {
                examples(context, signature, &rule, node, &mut found);
            }
        }
    }
    found
}

fn list(node: &Node) -> &[Node] {
    match &node.value {
        yaml::Value::List(items) => items,
        _ => &[],
    }
}

fn examples(
    context: &mut Context<'_>,
    signature: &'static Signature,
    rule: &str,
    node: &Node,
    found: &mut Vec<Example>,
) {
    let keys = [key("allow"), key("ask"), key("ask-each"), key("deny"), key("no_match")];
    let Some(section) = context.reader.section(node, "`examples`", &keys) else { return };
    for (word, _, node) in section.entries() {
        let expect = match Verdict::from_word(word) {
            Some(verdict) => Expected::Verdict(verdict),
            None => Expected::NoMatch,
        };
        for item in context.reader.list(node, "a list of calls").unwrap_or_default() {
            let Some(args) = call(context, signature, item) else { continue };
            let source = context.source(item);
            found.push(Example { source, expect, args, rule: rule.to_string() });
        }
    }
}

/// The arguments of an example: a map, or for commands a line of words.
fn call(context: &mut Context<'_>, signature: &'static Signature, node: &Node) -> Option<Value> {
    let args = match (signature.shape, node.text()) {
        (Shape::Exec, Some(line)) if line.contains(['\'', '"', '\\']) => {
            let message = "a line with quotes is ambiguous; write the words as a list";
            context.error(Code::PolicyType, node, message);
            return None;
        }
        (Shape::Exec, Some(line)) => {
            let words: Vec<Value> = line.split_whitespace().map(Value::from).collect();
            serde_json::json!({ "argv": words })
        }
        (Shape::Exec, None) if matches!(node.value, yaml::Value::List(_)) => {
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
