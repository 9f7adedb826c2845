//! The rules about programs.

use capsule_base::yaml::YamlNode;

use super::site_collector::{DecisionEvidence, SiteCollector, shorten_node};
use super::tree::{NodePath, TreeEdit, list_node, word_node};

/// What a policy says about the programs of a tool.
pub(super) fn collect_programs(walk: &mut SiteCollector<'_>, tool: &str, rule: &NodePath<'_>) {
    if let Some(form) = rule.get("form") {
        let text = form.node.text().unwrap_or_default();
        let other = if text == "argv" { "command" } else { "argv" };
        let edit = TreeEdit::Put(form.path.clone(), word_node(other));
        walk.add_mutation(format!("`form`: `{text}` becomes `{other}`"), form.node, edit);
    }
    if let Some(accept) = rule.get("env").and_then(|path| path.get("accept")) {
        add_emptied(walk, &accept, "accept");
    }
    for (key, path) in rule.get("effects").map(|path| path.entries()).unwrap_or_default() {
        walk.add_site(
            format!("{tool}/effects.{}", shorten_node(key)),
            key,
            DecisionEvidence::Location,
        );
        walk.add_flip(Some(path));
    }
    if let Some(path) = rule.get("cwd") {
        walk.add_mutation("`cwd` is left out", path.node, TreeEdit::Remove(path.path));
    }
    for item in rule.get("denied_tokens").map(|path| path.items()).unwrap_or_default() {
        let token = item.get("regex").unwrap_or_else(|| item.clone());
        walk.add_site(
            format!("{tool} denied_tokens {}", shorten_node(token.node)),
            item.node,
            DecisionEvidence::Location,
        );
        walk.add_mutation("the word is left out", item.node, TreeEdit::Remove(item.path));
    }
    let Some(programs) = rule.get("executables") else { return };
    for item in programs.items() {
        walk.add_site(
            format!("{tool}/{}", shorten_node(item.node)),
            item.node,
            DecisionEvidence::Removal,
        );
        walk.add_removal(item.node, TreeEdit::Remove(item.path));
    }
    for (key, program) in programs.entries() {
        let id = format!("{tool}/{}", shorten_node(key));
        collect_command(walk, &id, '.', key, &program);
    }
}

/// A list that says something becomes empty.
fn add_emptied(walk: &mut SiteCollector<'_>, path: &NodePath<'_>, name: &str) {
    if !path.items().is_empty() {
        let edit = TreeEdit::Put(path.path.clone(), list_node([]));
        walk.add_mutation(format!("`{name}` is emptied"), path.node, edit);
    }
}

/// A program or subcommand, with what stands below it. `separator` stands before the names of its
/// subcommands where decisions name them.
fn collect_command(
    walk: &mut SiteCollector<'_>,
    id: &str,
    separator: char,
    key: &YamlNode,
    rule: &NodePath<'_>,
) {
    let path = match rule.node.text() {
        Some(_) => Some(rule.clone()),
        None => rule.get("decision"),
    };
    let is_silent = path.as_ref().and_then(|path| path.node.text()).is_none();
    let decides = if is_silent { DecisionEvidence::Removal } else { DecisionEvidence::Location };
    walk.add_site(id, key, decides);
    match is_silent {
        true => walk.add_removal(key, TreeEdit::Remove(rule.path.clone())),
        false => drop(walk.add_flip(path)),
    }
    if let Some(writes) = rule.get("writes") {
        add_emptied(walk, &writes, "writes");
    }
    for name in ["global_flags", "flags"] {
        if let Some(path) = rule.get(name) {
            collect_flags(walk, &format!("{id} {name}"), &path);
        }
    }
    for (key, inner) in rule.get("subcommands").map(|path| path.entries()).unwrap_or_default() {
        collect_command(walk, &format!("{id}{separator}{}", shorten_node(key)), ' ', key, &inner);
    }
}

fn collect_flags(walk: &mut SiteCollector<'_>, id: &str, path: &NodePath<'_>) {
    if let Some(allow) = path.get("allow") {
        walk.add_site(format!("{id}.allow"), path.node, DecisionEvidence::Location);
        walk.add_mutation("the list is left out", allow.node, TreeEdit::Remove(allow.path));
    }
    let Some(deny) = path.get("deny") else { return };
    for (index, item) in deny.items().iter().enumerate() {
        walk.add_site(
            format!("{id}.deny {}", shorten_node(item.node)),
            item.node,
            DecisionEvidence::Location,
        );
        if index == 0 {
            add_emptied(walk, &deny, "deny");
        }
    }
}
