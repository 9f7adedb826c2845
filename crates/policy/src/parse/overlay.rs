//! A policy laid over the one that it extends.
//!
//! Both are trees of the same language, so they are laid over one another as trees, before anything
//! of them is read: maps key by key, and everything else as a whole. ADR 19 says why.

use alloc::string::String;
use alloc::vec::Vec;

use capsule_base::yaml::{YamlNode, YamlScalar, YamlValue};

/// What belongs to a policy alone, and is not handed on to those that extend it.
const NOT_INHERITED: &[&str] =
    &["version", "name", "description", "extends", "workspace", "default", "tests"];
/// The lists that a policy can only add to.
const APPENDED: &[&str] = &["never", "lift"];
/// The maps whose values may be a single word, which is short for `{ decision: WORD }`.
pub(super) const VERDICT_MAPS: &[&str] = &["tools", "executables", "subcommands"];

/// What a tool's rule may also say in one of its parts.
const MOVABLE_KEYS: &[(&str, &[&str])] =
    &[("paths", &["hidden", "symlinks"]), ("urls", &["private_ips", "redirects"])];

/// Moves a tree to where its text stands behind another one.
pub(super) fn shift_spans(node: &mut YamlNode, by: usize) {
    node.span = node.span.start.saturating_add(by)..node.span.end.saturating_add(by);
    match &mut node.value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(items) => items.iter_mut().for_each(|item| shift_spans(item, by)),
        YamlValue::Map(entries) => {
            for (key, value) in entries {
                shift_spans(key, by);
                shift_spans(value, by);
            }
        }
    }
}

/// A policy laid over another one.
pub(super) fn merge(node: YamlNode, mut under: YamlNode) -> YamlNode {
    if let YamlValue::Map(entries) = &mut under.value {
        entries.retain(|(key, _)| !NOT_INHERITED.contains(&key.text().unwrap_or("")));
        for (key, value) in entries {
            if key.text() == Some("tools") {
                without_examples(value);
            }
        }
    }
    merge_value("", node, under)
}

/// What a policy says that its rules decide is about its own rules, and not about others over them.
fn without_examples(node: &mut YamlNode) {
    match &mut node.value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(items) => items.iter_mut().for_each(without_examples),
        YamlValue::Map(entries) => {
            entries.retain(|(key, _)| key.text() != Some("examples"));
            entries.iter_mut().for_each(|(_, value)| without_examples(value));
        }
    }
}

/// One value over another, both of the key `name`.
fn merge_value(name: &str, node: YamlNode, under: YamlNode) -> YamlNode {
    let (node, under) = (expand_short_form(name, node), expand_short_form(name, under));
    let span = node.span;
    let value = match (node.value, under.value) {
        (YamlValue::Map(mut entries), YamlValue::Map(inherited)) => {
            for (key, value) in inherited {
                let named = key.text().unwrap_or("");
                let at = entries.iter().position(|(node, _)| node.text() == Some(named));
                match at.and_then(|at| entries.get_mut(at)) {
                    Some((_, slot)) => {
                        let node = core::mem::replace(slot, null_node());
                        *slot = merge_entry(name, named, node, value);
                    }
                    None => entries.push((key, value)),
                }
            }
            YamlValue::Map(entries)
        }
        (YamlValue::List(mut items), YamlValue::List(inherited)) if APPENDED.contains(&name) => {
            items.extend(inherited);
            YamlValue::List(items)
        }
        (value, _) => value,
    };
    YamlNode { span, value }
}

/// One value over another in the map `parent`.
fn merge_entry(parent: &str, name: &str, node: YamlNode, under: YamlNode) -> YamlNode {
    if !VERDICT_MAPS.contains(&parent) {
        return merge_value(name, node, under);
    }
    // The names in these maps are names of tools, programs and subcommands, and mean nothing here.
    let (mut node, mut under) = (with_decision(node), with_decision(under));
    if parent == "tools" {
        normalize_keys(&mut node);
        normalize_keys(&mut under);
    }
    merge_value("", node, under)
}

/// What may stand in either of two places of a tool's rule, in one of them.
fn normalize_keys(tool: &mut YamlNode) {
    for (inner, names) in MOVABLE_KEYS {
        for name in *names {
            if tool.get(name).is_some() {
                continue;
            }
            let YamlValue::Map(entries) = &mut tool.value else { return };
            let map = entries.iter_mut().find(|(key, _)| key.text() == Some(*inner));
            let Some((_, YamlNode { value: YamlValue::Map(inner), .. })) = map else { continue };
            if let Some(at) = inner.iter().position(|(key, _)| key.text() == Some(*name)) {
                let moved = inner.remove(at);
                entries.push(moved);
            }
        }
    }
}

/// The long form of what has a short one.
fn expand_short_form(name: &str, node: YamlNode) -> YamlNode {
    match (&node.value, name) {
        (YamlValue::List(_), "paths" | "urls" | "hosts") => map_of(node, "allow"),
        // Under `effects` the same key has a verdict.
        (YamlValue::Scalar(scalar), "network") if matches!(&*scalar.text, "none" | "proxy") => {
            map_of(node, "shell.run")
        }
        (YamlValue::List(_), "executables") => {
            let YamlNode { span, value } = node;
            let items = if let YamlValue::List(items) = value { items } else { Vec::new() };
            let empty = |item: &YamlNode| YamlNode {
                span: item.span.clone(),
                value: YamlValue::Map(Vec::new()),
            };
            let entries = items.into_iter().map(|item| {
                let body = empty(&item);
                (item, body)
            });
            YamlNode { span, value: YamlValue::Map(entries.collect()) }
        }
        _ => node,
    }
}

fn with_decision(node: YamlNode) -> YamlNode {
    match &node.value {
        YamlValue::Scalar(scalar) if !scalar.is_null() => map_of(node, "decision"),
        _ => node,
    }
}

fn map_of(node: YamlNode, key: &str) -> YamlNode {
    let span = node.span.clone();
    let scalar = YamlScalar { text: String::from(key), plain: true };
    let key = YamlNode { span: span.clone(), value: YamlValue::Scalar(scalar) };
    YamlNode { span, value: YamlValue::Map(alloc::vec![(key, node)]) }
}

const fn null_node() -> YamlNode {
    YamlNode { span: 0..0, value: YamlValue::List(Vec::new()) }
}
