//! The rules about programs.

use capsule_core::yaml::YamlNode;

use super::sites::{Decides, Walk, shown};
use super::tree::{Edit, Place, list, word};

/// What a policy says about the programs of a tool.
pub(super) fn walk(walk: &mut Walk<'_>, tool: &str, rule: &Place<'_>) {
    if let Some(form) = rule.get("form") {
        let own = form.node.text().unwrap_or_default();
        let other = if own == "argv" { "command" } else { "argv" };
        let edit = Edit::Put(form.path.clone(), word(other));
        walk.slip(format!("`form`: `{own}` becomes `{other}`"), form.node, edit);
    }
    if let Some(accept) = rule.get("env").and_then(|own| own.get("accept")) {
        emptied(walk, &accept, "accept");
    }
    for (key, own) in rule.get("effects").map(|own| own.entries()).unwrap_or_default() {
        walk.site(format!("{tool}/effects.{}", shown(key)), key, Decides::ByName);
        walk.flip(Some(own));
    }
    if let Some(own) = rule.get("cwd") {
        walk.slip("`cwd` is left out", own.node, Edit::Remove(own.path));
    }
    for item in rule.get("denied_tokens").map(|own| own.items()).unwrap_or_default() {
        let token = item.get("regex").unwrap_or_else(|| item.clone());
        walk.site(
            format!("{tool} denied_tokens {}", shown(token.node)),
            item.node,
            Decides::ByName,
        );
        walk.slip("the word is left out", item.node, Edit::Remove(item.path));
    }
    let Some(programs) = rule.get("executables") else { return };
    for item in programs.items() {
        walk.site(format!("{tool}/{}", shown(item.node)), item.node, Decides::Silently);
        walk.silent(item.node, Edit::Remove(item.path));
    }
    for (key, program) in programs.entries() {
        let id = format!("{tool}/{}", shown(key));
        command(walk, &id, '.', key, &program);
    }
}

/// A list that says something becomes empty.
fn emptied(walk: &mut Walk<'_>, own: &Place<'_>, name: &str) {
    if !own.items().is_empty() {
        let edit = Edit::Put(own.path.clone(), list([]));
        walk.slip(format!("`{name}` is emptied"), own.node, edit);
    }
}

/// A program or subcommand, with what stands below it. `separator` stands before the names of its
/// subcommands where decisions name them.
fn command(walk: &mut Walk<'_>, id: &str, separator: char, key: &YamlNode, rule: &Place<'_>) {
    let own = match rule.node.text() {
        Some(_) => Some(rule.clone()),
        None => rule.get("decision"),
    };
    let is_silent = own.as_ref().and_then(|own| own.node.text()).is_none();
    let decides = if is_silent { Decides::Silently } else { Decides::ByName };
    walk.site(id, key, decides);
    match is_silent {
        true => walk.silent(key, Edit::Remove(rule.path.clone())),
        false => drop(walk.flip(own)),
    }
    if let Some(writes) = rule.get("writes") {
        emptied(walk, &writes, "writes");
    }
    for name in ["global_flags", "flags"] {
        if let Some(own) = rule.get(name) {
            flags(walk, &format!("{id} {name}"), &own);
        }
    }
    for (key, inner) in rule.get("subcommands").map(|own| own.entries()).unwrap_or_default() {
        command(walk, &format!("{id}{separator}{}", shown(key)), ' ', key, &inner);
    }
}

fn flags(walk: &mut Walk<'_>, id: &str, own: &Place<'_>) {
    if let Some(allow) = own.get("allow") {
        walk.site(format!("{id}.allow"), own.node, Decides::ByName);
        walk.slip("the list is left out", allow.node, Edit::Remove(allow.path));
    }
    let Some(deny) = own.get("deny") else { return };
    for (index, item) in deny.items().iter().enumerate() {
        walk.site(format!("{id}.deny {}", shown(item.node)), item.node, Decides::ByName);
        if index == 0 {
            emptied(walk, &deny, "deny");
        }
    }
}
