//! A policy laid over the one that it extends.
//!
//! Both are trees of the same language, so they are laid over one another as trees, before anything
//! of them is read: maps key by key, and everything else as a whole. ADR 19 says why.

use alloc::string::String;
use alloc::vec::Vec;

use crate::yaml::{Node, Scalar, Value};

/// What belongs to a policy alone, and is not handed on to those that extend it.
const OWN: &[&str] =
    &["version", "name", "description", "extends", "workspace", "default", "tests"];
/// The lists that a policy can only add to.
const ADDED: &[&str] = &["never", "lift"];
/// The maps whose values may be a single word, which is short for `{ decision: WORD }`.
pub(super) const DECIDED: &[&str] = &["tools", "executables", "subcommands"];

/// What a tool's rule may also say in one of its parts.
const TWO_PLACES: &[(&str, &[&str])] =
    &[("paths", &["hidden", "symlinks"]), ("urls", &["private_ips", "redirects"])];

/// Moves a tree to where its text stands behind another one.
pub(super) fn shift(node: &mut Node, by: usize) {
    node.span = node.span.start.saturating_add(by)..node.span.end.saturating_add(by);
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| shift(item, by)),
        Value::Map(entries) => {
            for (key, value) in entries {
                shift(key, by);
                shift(value, by);
            }
        }
    }
}

/// A policy laid over another one.
pub(super) fn over(own: Node, mut under: Node) -> Node {
    if let Value::Map(entries) = &mut under.value {
        entries.retain(|(key, _)| !OWN.contains(&key.text().unwrap_or("")));
        for (key, value) in entries {
            if key.text() == Some("tools") {
                without_examples(value);
            }
        }
    }
    lay("", own, under)
}

/// What a policy says that its rules decide is about its own rules, and not about others over them.
fn without_examples(node: &mut Node) {
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(without_examples),
        Value::Map(entries) => {
            entries.retain(|(key, _)| key.text() != Some("examples"));
            entries.iter_mut().for_each(|(_, value)| without_examples(value));
        }
    }
}

/// One value over another, both of the key `name`.
fn lay(name: &str, own: Node, under: Node) -> Node {
    let (own, under) = (long(name, own), long(name, under));
    let span = own.span;
    let value = match (own.value, under.value) {
        (Value::Map(mut entries), Value::Map(inherited)) => {
            for (key, value) in inherited {
                let named = key.text().unwrap_or("");
                let at = entries.iter().position(|(own, _)| own.text() == Some(named));
                match at.and_then(|at| entries.get_mut(at)) {
                    Some((_, slot)) => {
                        let own = core::mem::replace(slot, nothing());
                        *slot = entry(name, named, own, value);
                    }
                    None => entries.push((key, value)),
                }
            }
            Value::Map(entries)
        }
        (Value::List(mut items), Value::List(inherited)) if ADDED.contains(&name) => {
            items.extend(inherited);
            Value::List(items)
        }
        (value, _) => value,
    };
    Node { span, value }
}

/// One value over another in the map `parent`.
fn entry(parent: &str, name: &str, own: Node, under: Node) -> Node {
    if !DECIDED.contains(&parent) {
        return lay(name, own, under);
    }
    // The names in these maps are names of tools, programs and subcommands, and mean nothing here.
    let (mut own, mut under) = (decided(own), decided(under));
    if parent == "tools" {
        one_place(&mut own);
        one_place(&mut under);
    }
    lay("", own, under)
}

/// What may stand in either of two places of a tool's rule, in one of them.
fn one_place(tool: &mut Node) {
    for (inner, names) in TWO_PLACES {
        for name in *names {
            if tool.get(name).is_some() {
                continue;
            }
            let Value::Map(entries) = &mut tool.value else { return };
            let map = entries.iter_mut().find(|(key, _)| key.text() == Some(*inner));
            let Some((_, Node { value: Value::Map(inner), .. })) = map else { continue };
            if let Some(at) = inner.iter().position(|(key, _)| key.text() == Some(*name)) {
                let moved = inner.remove(at);
                entries.push(moved);
            }
        }
    }
}

/// The long form of what has a short one.
fn long(name: &str, node: Node) -> Node {
    match (&node.value, name) {
        (Value::List(_), "paths" | "urls") => map_of(node, "allow"),
        (Value::Scalar(scalar), "network") if !scalar.is_null() => map_of(node, "shell.run"),
        (Value::List(_), "executables") => {
            let Node { span, value } = node;
            let items = if let Value::List(items) = value { items } else { Vec::new() };
            let empty =
                |item: &Node| Node { span: item.span.clone(), value: Value::Map(Vec::new()) };
            let entries = items.into_iter().map(|item| {
                let body = empty(&item);
                (item, body)
            });
            Node { span, value: Value::Map(entries.collect()) }
        }
        _ => node,
    }
}

fn decided(node: Node) -> Node {
    match &node.value {
        Value::Scalar(scalar) if !scalar.is_null() => map_of(node, "decision"),
        _ => node,
    }
}

fn map_of(node: Node, key: &str) -> Node {
    let span = node.span.clone();
    let scalar = Scalar { text: String::from(key), plain: true };
    let key = Node { span: span.clone(), value: Value::Scalar(scalar) };
    Node { span, value: Value::Map(alloc::vec![(key, node)]) }
}

const fn nothing() -> Node {
    Node { span: 0..0, value: Value::List(Vec::new()) }
}
