//! The difference of two policies, rule by rule.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::rule_line::RuleLine;

/// How two policies differ, rule by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleChanges {
    /// The rules that only the second has.
    pub added: Vec<RuleLine>,
    /// The rules that only the first has.
    pub removed: Vec<RuleLine>,
    /// The rules that both have, as they say something else.
    pub changed: Vec<RuleChange>,
}

/// A rule that two policies have and that says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleChange {
    /// As the first has it.
    pub before: RuleLine,
    /// As the second has it.
    pub after: RuleLine,
}

impl RuleChanges {
    /// Lays the rules of two policies side by side. Where a rule stands is no difference.
    #[must_use]
    pub fn between(before: &[RuleLine], after: &[RuleLine]) -> Self {
        let says =
            |rule: &RuleLine| RuleLine { at: None, layer: "", rule: String::new(), ..rule.clone() };
        let (old, new) = (named(before), named(after));
        let mut changes = Self::default();
        for (name, before) in &old {
            match new.iter().find(|(other, _)| other == name) {
                None => changes.removed.push((*before).clone()),
                Some((_, after)) if says(before) != says(after) => {
                    let (before, after) = ((*before).clone(), (*after).clone());
                    changes.changed.push(RuleChange { before, after });
                }
                Some(_) => {}
            }
        }
        let known: BTreeSet<_> = old.iter().map(|(name, _)| name).collect();
        let added = new.iter().filter(|(name, _)| !known.contains(name));
        changes.added = added.map(|(_, rule)| (*rule).clone()).collect();
        changes
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The rules, each with what it is the same by: its name, for an address without a name the address
/// itself, and which of several of one name it is.
fn named(rules: &[RuleLine]) -> Vec<((&'static str, String, usize), &RuleLine)> {
    let mut seen: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    rules
        .iter()
        .map(|rule| {
            let place = rule.rule.rsplit_once('/').map_or("", |(_, last)| last);
            let url = rule.says.iter().find(|say| say.name == "url" && place.starts_with("url-"));
            let name = url.and_then(|property| property.values.first()).unwrap_or(&rule.rule);
            let which = seen.entry((rule.section, name.clone())).or_default();
            *which += 1;
            ((rule.section, name.clone(), *which), rule)
        })
        .collect()
}
