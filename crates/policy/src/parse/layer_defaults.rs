//! What a layer does not say: on that it has no opinion.
//!
//! A layer is laid over the tree of the policy that it tightens. What it would then say by being
//! silent is put right here, before and after: words that are not its own, lists that it shares
//! with the policy, and names beside those that it has.

use alloc::string::ToString;
use alloc::vec::Vec;

use capsule_base::yaml::{YamlNode, YamlScalar, YamlValue};
use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::policy::Profile;
use capsule_core::tool::Catalogue;

/// What the policy beneath does not hand on: what it says there counts by itself.
const NOT_INHERITED: &[&str] = &["never", "deny", "ask", "lift", "profile", "redaction", "secrets"];

/// The entries of a map; none of what is no map.
pub(super) fn entries(node: &YamlNode) -> &[(YamlNode, YamlNode)] {
    match &node.value {
        YamlValue::Map(entries) => entries,
        YamlValue::List(_) | YamlValue::Scalar(_) => &[],
    }
}

fn entries_mut(node: &mut YamlNode) -> Option<&mut Vec<(YamlNode, YamlNode)>> {
    match &mut node.value {
        YamlValue::Map(entries) => Some(entries),
        YamlValue::List(_) | YamlValue::Scalar(_) => None,
    }
}

fn get_mut<'n>(node: &'n mut YamlNode, name: &str) -> Option<&'n mut YamlNode> {
    let entries = entries_mut(node)?;
    entries.iter_mut().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value)
}

fn verdict_of(node: &YamlNode) -> Option<Verdict> {
    node.text().and_then(Verdict::from_word)
}

/// Tools by the one name that each of them has, so that two texts mean the same by it.
pub(super) fn normalize_tool_names(root: &mut YamlNode, tools: Catalogue) {
    let Some(entries) = get_mut(root, "tools").and_then(entries_mut) else { return };
    for (name, _) in entries {
        let YamlValue::Scalar(scalar) = &mut name.value else { continue };
        if let Some(signature) = tools.find(&scalar.text) {
            scalar.text = signature.id.to_string();
        }
    }
}

/// The tree of a policy as a layer is laid over it: what is named, and the mildest word wherever the
/// policy has one. What decides by what commands do has a word for each, and keeps them: they are
/// what the policy says by itself.
pub(super) fn with_mildest_verdicts(mut tree: YamlNode) -> YamlNode {
    if let Some(entries) = entries_mut(&mut tree) {
        entries.retain(|(key, _)| !NOT_INHERITED.contains(&key.text().unwrap_or("")));
    }
    if let Some(tools) = get_mut(&mut tree, "tools") {
        for (_, tool) in entries_mut(tools).into_iter().flatten() {
            if tool.text().is_some() {
                set_verdict(tool, Verdict::Allow);
            }
            for_each_verdict(tool, &mut |word| set_verdict(word, Verdict::Allow));
        }
    }
    tree
}

/// The key of a word.
const DECISION_KEY: &str = "decision";
/// The key of words for the ways of writing.
const MODES_KEY: &str = "modes";

/// Visits every word in a tool's rule.
fn for_each_verdict(node: &mut YamlNode, visit: &mut dyn FnMut(&mut YamlNode)) {
    match &mut node.value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(items) => items.iter_mut().for_each(|item| for_each_verdict(item, visit)),
        YamlValue::Map(entries) => {
            for (key, value) in entries {
                match key.text().unwrap_or("") {
                    DECISION_KEY => visit(value),
                    "effects" => {}
                    MODES_KEY => {
                        entries_mut(value).into_iter().flatten().for_each(|(_, node)| visit(node));
                    }
                    "executables" => for_each_command(value, &mut |_, word| visit(word)),
                    _ => for_each_verdict(value, visit),
                }
            }
        }
    }
}

/// Takes the words out of the rules in a tool's rule.
fn remove_rule_verdicts(node: &mut YamlNode) {
    match &mut node.value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(items) => items.iter_mut().for_each(remove_rule_verdicts),
        YamlValue::Map(entries) => {
            entries.retain(|(key, _)| !matches!(key.text(), Some(DECISION_KEY | MODES_KEY)));
            let parts = entries
                .iter_mut()
                .filter(|(key, _)| !matches!(key.text(), Some("effects" | "executables")));
            parts.for_each(|(_, value)| remove_rule_verdicts(value));
        }
    }
}

/// Visits every command that has a word, in a map of them and in the commands of those: its name,
/// and the word.
fn for_each_command(commands: &mut YamlNode, visit: &mut dyn FnMut(&mut YamlNode, &mut YamlNode)) {
    for (name, node) in entries_mut(commands).into_iter().flatten() {
        if node.text().is_some() {
            visit(name, node);
            continue;
        }
        if let Some(word) = get_mut(node, DECISION_KEY) {
            visit(name, word);
        }
        if let Some(inner) = get_mut(node, "subcommands") {
            for_each_command(inner, visit);
        }
    }
}

fn set_verdict(node: &mut YamlNode, word: Verdict) {
    node.value = YamlValue::Scalar(YamlScalar { text: word.keyword().to_string(), plain: true });
}

/// Makes a layer say what it means over a tree: where it narrows, nothing of the tree beside it stays
/// open, and where it names a part, the parts beside it stay as they are.
pub(super) fn fit_layer(node: &mut YamlNode, tree: &mut YamlNode) {
    profiles(node, tree);
    let Some(tools) = get_mut(node, "tools").and_then(entries_mut) else { return };
    for (name, tool) in tools {
        let name = name.text().unwrap_or("");
        let mut under = get_mut(tree, "tools").and_then(|node| get_mut(node, name));
        if let Some(under) = &mut under {
            addresses(tool, under);
            // The layer's word for a tool is its word for all of the tool's rules.
            if tool.text().is_some() || tool.get(DECISION_KEY).is_some() {
                remove_rule_verdicts(under);
            }
        }
        let Some(programs) = get_mut(tool, "executables").and_then(entries_mut) else { continue };
        for (name, program) in programs {
            let name = name.text().unwrap_or("");
            let executables = under.as_mut().and_then(|node| get_mut(node, "executables"));
            command(program, executables.and_then(|executable| get_mut(executable, name)));
        }
    }
}

/// Addresses stand in two lists, and a layer that has either means the only ones.
fn addresses(node: &YamlNode, under: &mut YamlNode) {
    let urls = node.get("urls");
    let lists =
        |node: &YamlNode| matches!(node.value, YamlValue::List(_)) || node.get("allow").is_some();
    if node.get("domains").is_none() && !urls.is_some_and(lists) {
        return;
    }
    let Some(entries) = entries_mut(under) else { return };
    entries.retain(|(key, value)| {
        let is_list = matches!(value.value, YamlValue::List(_));
        key.text() != Some("domains") && !(key.text() == Some("urls") && is_list)
    });
    if let Some(urls) = get_mut(under, "urls").and_then(entries_mut) {
        urls.retain(|(key, _)| key.text() != Some("allow"));
    }
}

/// A command that a layer names, over the one that the policy names: where it has a word, or says
/// what may be seen or changed, that is so for all of its subcommands; where it alone names
/// subcommands, there are others.
fn command(node: &mut YamlNode, mut under: Option<&mut YamlNode>) {
    for key in ["reads", "writes", DECISION_KEY] {
        let is_written = node.get(key).is_some() || key == DECISION_KEY && node.text().is_some();
        if let Some(under) = under.as_deref_mut().filter(|_| is_written) {
            remove_key(key, under);
        }
    }
    let span = node.span.clone();
    let Some(inner) = get_mut(node, "subcommands").and_then(entries_mut) else { return };
    let mut named = under.and_then(|node| get_mut(node, "subcommands"));
    for (name, node) in inner.iter_mut() {
        let name = name.text().unwrap_or("");
        command(node, named.as_mut().and_then(|named| get_mut(named, name)));
    }
    if named.is_none() && !inner.iter().any(|(name, _)| name.text() == Some(ANY_SUBCOMMAND)) {
        let name = scalar(ANY_SUBCOMMAND, span.clone());
        inner.push((name, YamlNode { span, value: YamlValue::Map(Vec::new()) }));
    }
}

/// Any other subcommand.
const ANY_SUBCOMMAND: &str = "*";

/// Takes out what a command and its subcommands say by a key. A word alone says `decision`.
fn remove_key(name: &str, command: &mut YamlNode) {
    if command.text().is_some() && name == DECISION_KEY {
        command.value = YamlValue::Map(Vec::new());
    }
    let Some(entries) = entries_mut(command) else { return };
    entries.retain(|(key, _)| key.text() != Some(name));
    let inner = get_mut(command, "subcommands").and_then(entries_mut);
    inner.into_iter().flatten().for_each(|(_, node)| remove_key(name, node));
}

/// What a profile of the layer does not name it has no opinion on, unless it is one of the policy's.
fn profiles(node: &mut YamlNode, tree: &YamlNode) {
    let Some(profiles) = get_mut(node, "profiles").and_then(entries_mut) else { return };
    for (name, profile) in profiles {
        let name = name.text().unwrap_or("");
        if tree.get("profiles").is_some_and(|node| node.get(name).is_some()) {
            continue;
        }
        let span = profile.span.clone();
        let Some(words) = get_mut(profile, "decide").and_then(entries_mut) else { continue };
        // Its word for all the rest is one for what nothing confines, too.
        let rest = words.iter().any(|(key, _)| key.text() == Some(Profile::WILDCARD));
        let unconfined = (!rest).then(|| Capability::ProcUnconfined.name());
        for unnamed in [Profile::WILDCARD].into_iter().chain(unconfined) {
            if !words.iter().any(|(key, _)| key.text() == Some(unnamed)) {
                let rest = scalar(unnamed, span.clone());
                words.push((rest, scalar(Verdict::Allow.keyword(), span.clone())));
            }
        }
    }
}

fn scalar(text: &str, span: core::ops::Range<usize>) -> YamlNode {
    YamlNode { span, value: YamlValue::Scalar(YamlScalar { text: text.to_string(), plain: false }) }
}

/// A word of the layer for a tool is its word for whatever a command does that the layer has no
/// other word for. `own` is how long its text is.
pub(super) fn raise_verdicts(root: &mut YamlNode, number: usize) {
    let Some(tools) = get_mut(root, "tools").and_then(entries_mut) else { return };
    for (_, tool) in tools {
        let Some(said) = tool.get(DECISION_KEY).cloned() else { continue };
        let Some(strict) = verdict_of(&said) else { continue };
        // Where it stands is the layer's as well: whoever is refused looks there.
        let mut raise = |name: &mut YamlNode, value: &mut YamlNode| {
            if value.span.start > number
                && verdict_of(value).is_some_and(|verdict| verdict < strict)
            {
                name.span = said.span.clone();
                *value = said.clone();
            }
        };
        for (effect, value) in get_mut(tool, "effects").and_then(entries_mut).into_iter().flatten()
        {
            raise(effect, value);
        }
        if let Some(programs) = get_mut(tool, "executables") {
            for_each_command(programs, &mut raise);
        }
    }
}
