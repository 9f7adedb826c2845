//! Whether a layer still says what it said.
//!
//! Texts are compared as trees, without asking what they mean: a layer that says all that it said,
//! and more, is at least as strict as it was. Everything else is for a person to judge.

use capsule_base::yaml::POLICY_DIALECT;
use capsule_base::yaml::{self, YamlNode, YamlValue};
use capsule_core::decision::Verdict;

/// What a text says that decides nothing.
const NON_DECIDING_KEYS: &[&str] =
    &["name", "description", "because", "suggest", "examples", "tests"];
/// The lists that deny more the longer they are.
const DENY_LIST_KEYS: &[&str] = &["never", "deny", "denied_tokens"];

/// What a text does not say any more, by the names of its keys.
pub(crate) fn removed_keys(before: Option<&str>, now: &str) -> Vec<String> {
    let read = |text: &str| yaml::parse(text, &POLICY_DIALECT).ok().flatten();
    let (Some(before), Some(now)) = (before.and_then(read), read(now)) else {
        return vec!["what it said was not kept".into()];
    };
    let mut lost = Vec::new();
    compare("", &before, &now, &mut lost);
    lost
}

fn compare(at: &str, before: &YamlNode, now: &YamlNode, lost: &mut Vec<String>) {
    let name = at.rsplit('.').next().unwrap_or(at);
    match (&before.value, &now.value) {
        (YamlValue::Map(old), YamlValue::Map(new)) => {
            for (key, value) in old {
                let key = key.text().unwrap_or("");
                if NON_DECIDING_KEYS.contains(&key) {
                    continue;
                }
                let inner = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
                match now.get(key) {
                    Some(now) => compare(&inner, value, now, lost),
                    None => lost.push(inner),
                }
            }
            // Beneath a word, another one for a part of it is an exception.
            let are_parts = !["", "tools", "profiles"].contains(&at);
            let is_new = |key: &&YamlNode| before.get(key.text().unwrap_or("")).is_none();
            let added = new.iter().filter(|(key, value)| is_new(&key) && allows_something(value));
            if are_parts && let Some((key, _)) = added.into_iter().next() {
                lost.push(format!(
                    "{at}, which has an exception now (`{}`)",
                    key.text().unwrap_or("")
                ));
            }
        }
        (YamlValue::List(old), YamlValue::List(new)) if DENY_LIST_KEYS.contains(&name) => {
            for item in old.iter().filter(|node| !new.iter().any(|new| is_kept(node, new))) {
                let id = item.get("id").and_then(YamlNode::text).or_else(|| item.text());
                lost.push(id.map_or_else(|| at.to_owned(), |id| format!("{at} {id}")));
            }
        }
        (YamlValue::Scalar(_), YamlValue::Scalar(_)) if is_stricter(before, now) => {}
        _ if is_kept(before, now) => {}
        _ => lost.push(at.to_owned()),
    }
}

/// Whether two values say the same, but for words that decide nothing.
fn is_kept(before: &YamlNode, now: &YamlNode) -> bool {
    match (&before.value, &now.value) {
        (YamlValue::Scalar(one), YamlValue::Scalar(other)) => one.text == other.text,
        (YamlValue::List(one), YamlValue::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, new)| is_kept(one, new))
        }
        (YamlValue::Map(one), YamlValue::Map(other)) => {
            let kept = |(key, _): &&(YamlNode, YamlNode)| {
                key.text().is_none_or(|text| !NON_DECIDING_KEYS.contains(&text))
            };
            let (old, new): (Vec<_>, Vec<_>) =
                (one.iter().filter(kept).collect(), other.iter().filter(kept).collect());
            let named = |key: &YamlNode| new.iter().find(|(node, _)| node.text() == key.text());
            old.len() == new.len()
                && old
                    .iter()
                    .all(|(key, value)| named(key).is_some_and(|(_, node)| is_kept(value, node)))
        }
        _ => false,
    }
}

/// Whether a value holds a word that lets something through.
fn allows_something(node: &YamlNode) -> bool {
    match &node.value {
        YamlValue::Scalar(scalar) => {
            Verdict::from_word(&scalar.text).is_some_and(|verdict| verdict != Verdict::Deny)
        }
        YamlValue::List(items) => items.iter().any(allows_something),
        YamlValue::Map(entries) => entries.iter().any(|(_, value)| allows_something(value)),
    }
}

/// Whether both are words of a rule, and the new one is not milder.
fn is_stricter(before: &YamlNode, now: &YamlNode) -> bool {
    let word = |node: &YamlNode| node.text().and_then(Verdict::from_word);
    matches!((word(before), word(now)), (Some(old), Some(new)) if new >= old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_any_more_is_named() {
        let before = "version: 1
layer: workspace
never:
  - { id: a, paths: [x], because: Old. }
  - { id: b, paths: [y] }
tools: { fs.write: ask, fs.read: { paths: { deny: [d] } } }
";
        for (now, lost) in [
            (before, ""),
            ("version: 1\nlayer: workspace\n", "never, tools"),
            (&before.replace("Old", "New"), ""),
            (&before.replace("paths: [y]", "paths: [z]"), "never b"),
            (&before.replace("  - { id: b, paths: [y] }\n", ""), "never b"),
            (&before.replace("fs.write: ask", "fs.write: deny"), ""),
            (&before.replace("fs.write: ask", "fs.write: allow"), "tools.fs.write"),
            (&before.replace("fs.write: ask, ", ""), "tools.fs.write"),
            (&before.replace("deny: [d]", "deny: [e, d]"), ""),
            (&before.replace("deny: [d]", "allow: [d]"), "tools.fs.read.paths.deny"),
            (&before.replace("paths: [y]", "paths: [y], except: [q]"), "never b"),
            (&format!("{before}budgets: {{ run: {{ calls: 1 }} }}\n"), ""),
            (
                &before.replace(
                    "fs.read: {",
                    "fs.read: { rules: [{ id: r, paths: [d], decision: allow }],",
                ),
                "tools.fs.read, which has an exception now (`rules`)",
            ),
            (&before.replace("fs.read: {", "fs.read: { quota: { calls: 1 }, decision: deny,"), ""),
            ("[", "what it said was not kept"),
        ] {
            assert_eq!(removed_keys(Some(before), now).join(", "), lost, "{now}");
        }
        assert_eq!(removed_keys(None, before), ["what it said was not kept"]);
    }
}
