//! Reads constraints on paths.

use alloc::format;
use alloc::vec::Vec;

use crate::language::{PATH_RULE, PATHS};
use crate::parse::context::Context;
use crate::parse::rule_value::{
    limit_section, read_bound, read_decision, result_limits, text, verdict,
};
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::spelling::Spelling;
use capsule_base::yaml::{Section, YamlNode, YamlReader, key};
use capsule_core::action::WriteMode;
use capsule_core::capability::Capability;
use capsule_core::policy::PathPattern;
use capsule_core::policy::{FileRule, PathRule};
use capsule_core::tool::ToolSignature;

pub(super) fn rule(
    context: &mut Context<'_>,
    signature: &ToolSignature,
    section: &Section<'_>,
) -> FileRule {
    let (bytes, bytes_max) = match signature.capabilities.contains(&Capability::FsWrite) {
        true => (limits::WRITE_BYTES, limits::WRITE_BYTES),
        false => (limits::READ_BYTES, limits::READ_BYTES_MAX),
    };
    let (results, results_max) = match signature.id {
        "fs.list" => (limits::LIST_ENTRIES, limits::LIST_ENTRIES_MAX),
        "fs.grep" => (limits::GREP_LINES, limits::GREP_LINES_MAX),
        _ => (limits::RESULTS, limits::RESULTS_MAX),
    };
    let mut rule = FileRule {
        allow: all_paths(context),
        deny: Vec::new(),
        hidden: false,
        links: true,
        spelling: Spelling::Exact,
        bytes,
        bytes_max,
        results,
        results_max,
        rules: Vec::new(),
        modes: Vec::new(),
    };
    if let Some(node) = section.get("modes") {
        modes(context, node, &mut rule);
    }
    if let Some(node) = section.get("paths") {
        paths(context, node, &mut rule);
    }
    switches(context, section, &mut rule);
    if let Some(section) = limit_section(context, signature, section) {
        bounds(context, signature, &section, &mut rule);
    }
    if let Some(node) = section.get("undo") {
        // There is always an undo record; the key is there so that a reader sees it.
        context.reader.only_supported(node, "always", &[]);
    }
    for item in section
        .get("rules")
        .and_then(|node| context.reader.list(node, "a list of rules"))
        .unwrap_or_default()
    {
        nested(context, item, &mut rule.rules);
    }
    rule
}

/// A word for each way of writing.
fn modes(context: &mut Context<'_>, node: &YamlNode, rule: &mut FileRule) {
    let keys = WriteMode::WORDS.map(key);
    let Some(section) = context.reader.section(node, "`modes`", &keys) else { return };
    for (name, at, node) in section.entries() {
        let mode = WriteMode::from_word(name);
        if let (Some(mode), Some(verdict)) = (mode, verdict(context, node)) {
            rule.modes.push((mode, verdict, context.source(at)));
        }
    }
}

fn all_paths(context: &Context<'_>) -> Vec<PathPattern> {
    let source = context.source_at(0..0);
    PathPattern::parse("**", source, context.home).into_iter().collect()
}

/// `paths: [..]` is short for `paths: { allow: [..] }`.
fn paths(context: &mut Context<'_>, node: &YamlNode, rule: &mut FileRule) {
    if matches!(node.value, capsule_base::yaml::YamlValue::List(_)) {
        rule.allow = context.paths(node);
        return;
    }
    let Some(section) = context.section(node, "`paths`", &PATHS) else { return };
    if let Some(node) = section.get("allow") {
        rule.allow = context.paths(node);
    }
    if let Some(node) = section.get("deny") {
        rule.deny = context.paths(node);
    }
    switches(context, &section, rule);
}

fn switches(context: &mut Context<'_>, section: &Section<'_>, rule: &mut FileRule) {
    if let Some(node) = section.get("hidden")
        && let Some(word) = context.reader.keyword(node, &["deny", "allow"])
    {
        rule.hidden = word == "allow";
    }
    if let Some(node) = section.get("symlinks")
        && let Some(word) = context.reader.keyword(node, &["inside", "deny"])
    {
        rule.links = word == "inside";
    }
}

fn bounds(
    context: &mut Context<'_>,
    signature: &ToolSignature,
    section: &Section<'_>,
    rule: &mut FileRule,
) {
    let writes = signature.capabilities.contains(&Capability::FsWrite);
    let most = if writes { limits::WRITE_BYTES_MAX } else { limits::READ_BYTES_MAX };
    for (name, bound) in [("bytes_max", &mut rule.bytes_max), ("bytes", &mut rule.bytes)] {
        read_bound(context, (section, name), YamlReader::size, 0..=most, bound);
    }
    rule.bytes = rule.bytes.min(rule.bytes_max);
    result_limits(context, section, (&mut rule.results_max, &mut rule.results));
    if let Some(node) = section.get("binary") {
        context.reader.only_supported(node, "preview", &[]);
    }
}

fn nested(context: &mut Context<'_>, node: &YamlNode, rules: &mut Vec<PathRule>) {
    let Some(section) = context.section(node, "a rule", &PATH_RULE) else { return };
    let Some(id) = context.reader.required(&section, "id", "a rule") else { return };
    let source = context.source(id);
    let Some(id) = context.id(id) else { return };
    if rules.iter().any(|other| other.id == id) {
        context.error(Code::PolicyDuplicateKey, node, format!("another rule has the id `{id}`"));
    }
    let Some(paths) = context.reader.required(&section, "paths", "a rule") else { return };
    let paths = context.paths(paths);
    let decision = read_decision(context, &section);
    let because = text(context, &section, "because");
    let suggest = text(context, &section, "suggest");
    rules.push(PathRule { id, source, paths, decision, because, suggest });
}
