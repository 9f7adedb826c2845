//! Reads what is kept, when the log is signed, and where that is told besides.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::language::{AUDIT, CHECKPOINT};
use crate::parse::context::Context;
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::escape;
use capsule_base::limits;
use capsule_base::yaml::YamlNode;
use capsule_core::policy::{AnchorRule, AuditRule, CheckpointRule, PayloadRetention};

/// What is kept.
pub(super) fn rule(context: &mut Context<'_>, node: &YamlNode) -> AuditRule {
    let mut rule = AuditRule::default();
    let Some(section) = context.section(node, "`audit`", &AUDIT) else { return rule };
    if let Some(node) = section.get("payloads")
        && context.reader.keyword(node, &["full", "digest"]) == Some("digest")
    {
        rule.payloads = PayloadRetention::Digest;
    }
    if let Some(node) = section.get("checkpoint") {
        rule.checkpoints = checkpoints(context, node);
    }
    if let Some(node) = section.get("anchors") {
        rule.anchors = anchors(context, node);
    }
    if let Some(node) = section.get("erase_payloads_after") {
        rule.erase_after = retention(context, node);
    }
    rule
}

/// After how many seconds payloads are erased: whole ones, one at least.
fn retention(context: &mut Context<'_>, node: &YamlNode) -> Option<u64> {
    if node.text() == Some("never") {
        return None;
    }
    let term = context.reader.duration(node)?.as_secs();
    if !(1..=limits::RETENTION_SECONDS).contains(&term) {
        let message = "payloads are kept from a second to a hundred years, or `never` erased";
        context.error(Code::PolicyValue, node, message);
    }
    Some(term)
}

/// When the log is signed. What is not said is as where nothing is.
fn checkpoints(context: &mut Context<'_>, node: &YamlNode) -> CheckpointRule {
    let mut rule =
        CheckpointRule { source: Some(context.source(node)), ..CheckpointRule::default() };
    let Some(section) = context.section(node, "`checkpoint`", &CHECKPOINT) else { return rule };
    if let Some(node) = section.get("every")
        && let Some(every) = context.reader.number(node)
    {
        rule.every = every;
        if !(1..=limits::CHECKPOINT_EVERY).contains(&every) {
            let message = format!("`every` counts events, from 1 to {}", limits::CHECKPOINT_EVERY);
            context.error(Code::PolicyValue, node, message);
        }
    }
    if let Some(node) = section.get("on") {
        let items = context.reader.list(node, "a list of moments").unwrap_or_default();
        let named: Vec<&str> = items
            .iter()
            .filter_map(|item| context.reader.keyword(item, &CheckpointRule::MOMENTS))
            .collect();
        rule.approval = named.contains(&CheckpointRule::APPROVAL);
        rule.denial = named.contains(&CheckpointRule::DENIAL);
        rule.run_end = named.contains(&CheckpointRule::RUN_END);
    }
    rule
}

fn anchors(context: &mut Context<'_>, node: &YamlNode) -> Vec<AnchorRule> {
    let items = context.reader.list(node, "a list of files").unwrap_or_default();
    if items.len() > limits::ANCHORS {
        let message = format!("{} anchors; at most {}", items.len(), limits::ANCHORS);
        context.error(Code::PolicyValue, node, message);
    }
    items.iter().filter_map(|item| anchor(context, item)).collect()
}

fn anchor(context: &mut Context<'_>, node: &YamlNode) -> Option<AnchorRule> {
    let text = context.reader.line(node)?;
    let wrong = |why: &str| {
        let message = format!("`{}` {why}", escape::line(&text));
        Diagnostic::error(Code::PolicyValue, node.span.clone(), message)
            .hint("an anchor is a file, from the root or the home folder on: `file:~/anchors`")
    };
    let Some(path) = text.strip_prefix(AnchorRule::FILE) else {
        context.reader.problem(wrong("is no anchor that this build knows"));
        return None;
    };
    let path = match path.strip_prefix("~/") {
        // Who has no home has nothing that begins with it.
        Some(_) if context.home.is_empty() => {
            context.reader.problem(wrong("begins with a home folder, and there is none"));
            return None;
        }
        Some(rest) => format!("{}/{rest}", context.home.trim_end_matches('/')),
        None => path.to_string(),
    };
    if !is_absolute_plain(&path) {
        context.reader.problem(wrong("is no file from the root on, without `.` and `..`"));
        return None;
    }
    Some(AnchorRule { path })
}

/// Whether a path begins at the root, names something, and leads nowhere else than it reads.
fn is_absolute_plain(path: &str) -> bool {
    let Some(names) = path.strip_prefix('/') else { return false };
    names.split('/').all(|name| !matches!(name, "" | "." | ".."))
        && path.len() <= limits::PATH_BYTES
}
