//! Reads constraints on the narrow tools.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::language::FILTER;
use crate::parse::context::Context;
use crate::parse::exec::{environment, is_place, not_a_place, process_limits};
use crate::parse::rule_value::{limit_section, read_bound, result_limits};
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::units::millis;
use capsule_base::yaml::{Section, YamlNode, YamlReader, YamlValue};
use capsule_core::confinement::ProcessLimits;
use capsule_core::policy::{GitRule, TestRule};
use capsule_core::tool::ToolSignature;

pub(super) fn git(
    context: &mut Context<'_>,
    signature: &ToolSignature,
    section: &Section<'_>,
) -> GitRule {
    let (results, results_max) = match signature.argument("limit").is_some() {
        true => (limits::LOG_ENTRIES, limits::LOG_ENTRIES_MAX),
        false => (limits::STATUS_ENTRIES, limits::STATUS_ENTRIES),
    };
    let mut rule = GitRule { bytes: limits::READ_BYTES_MAX, results, results_max };
    let Some(section) = limit_section(context, signature, section) else { return rule };
    let range = 0..=limits::READ_BYTES_MAX;
    read_bound(context, (&section, "bytes"), YamlReader::size, range, &mut rule.bytes);
    result_limits(context, &section, (&mut rule.results_max, &mut rule.results));
    rule
}

pub(super) fn test(
    context: &mut Context<'_>,
    section: &Section<'_>,
    signature: &ToolSignature,
) -> TestRule {
    let mut bounds =
        ProcessLimits { timeout_ms: millis(limits::TEST_TIME), ..ProcessLimits::default() };
    let mut timeout_max = bounds.timeout_ms;
    if let Some(node) = section.get("limits") {
        process_limits(context, node, &mut bounds, &mut timeout_max);
    }
    let about = format!("`{}`", signature.id);
    // Which command it is, no layer says.
    let command = match context.layer {
        Some(_) => section.get("command"),
        None => context.reader.required(section, "command", &about),
    };
    TestRule {
        command: command.map(|node| command_line(context, node)).unwrap_or_default(),
        cwd: section
            .get("cwd")
            .and_then(|node| folder(context, node))
            .unwrap_or_else(|| ".".into()),
        filter: section.get("filter").and_then(|node| filter(context, node)),
        env: section.get("env").map(|node| environment(context, node)).unwrap_or_default(),
        limits: bounds,
    }
}

/// The command line of the tests: its program by its name, or by where it is.
fn command_line(context: &mut Context<'_>, node: &YamlNode) -> Vec<String> {
    let words = words(context, node);
    match words.first() {
        Some(program) if program.contains('/') && !is_place(program) => {
            let at = match &node.value {
                YamlValue::List(items) => items.first().unwrap_or(node),
                _ => node,
            };
            context.reader.problem(not_a_place(program, at));
        }
        Some(program) if !program.trim_matches('/').is_empty() && !program.starts_with('-') => {}
        _ => {
            let message = "the first word is a program: its name, or where it is";
            let problem = Diagnostic::error(Code::PolicyType, node.span.clone(), message);
            context.reader.problem(problem.hint("write it as `command: [cargo, test]`"));
        }
    }
    words
}

/// A list of words.
fn words(context: &mut Context<'_>, node: &YamlNode) -> Vec<String> {
    let items = context.reader.list(node, "a list of words").unwrap_or_default();
    items.iter().filter_map(|item| context.reader.line(item)).collect()
}

/// A folder of the workspace.
fn folder(context: &mut Context<'_>, node: &YamlNode) -> Option<String> {
    let text = context.reader.line(node)?;
    match WorkspacePath::parse(&text) {
        Ok(_) => Some(text),
        Err(problem) => {
            let message = format!("`{text}` {}", problem.reason());
            context.error(Code::PolicyValue, node, message);
            None
        }
    }
}

/// `filter: { append: true }` puts the word of a call behind the command; `args` are words that
/// stand before it.
fn filter(context: &mut Context<'_>, node: &YamlNode) -> Option<Vec<String>> {
    let section = context.section(node, "`filter`", &FILTER)?;
    if let Some(node) = section.get("args") {
        if section.get("append").is_some() {
            let message = "`args` appends already; one of the two is enough";
            context.error(Code::PolicyValue, node, message);
        }
        if matches!(&node.value, YamlValue::List(items) if items.is_empty()) {
            context.error(Code::PolicyValue, node, "this list is empty; write `append: true`");
        }
        return Some(words(context, node));
    }
    let append = context.reader.required(&section, "append", "`filter`")?;
    match context.reader.keyword(append, &["true", "false"]) {
        Some("true") => Some(Vec::new()),
        _ => None,
    }
}
