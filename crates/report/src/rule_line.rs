//! A rule of a policy, in words.

use capsule_core::decision::Verdict;
use capsule_core::policy::{PathPattern, SourceLocation, TokenMatcher};
use serde::Serialize;

/// One rule of a policy, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleLine {
    /// The part of the policy that it belongs to.
    pub section: &'static str,
    /// Its name, as decisions show it.
    pub rule: String,
    /// Its own word; none where the profile decides.
    pub decision: Option<Verdict>,
    /// Where it stands; none for what holds because nobody wrote anything else.
    pub at: Option<String>,
    /// The layer that it comes from: `builtin`, `policy`, `user` or `workspace`.
    pub layer: &'static str,
    /// What it says besides.
    pub says: Vec<RuleProperty>,
}

/// One thing that a rule says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleProperty {
    /// What it is about.
    pub name: &'static str,
    /// Its values.
    pub values: Vec<String>,
}

impl RuleLine {
    pub(crate) fn new(
        section: &'static str,
        rule: impl Into<String>,
        source: &SourceLocation,
    ) -> Self {
        let at = Some(source.at.clone()).filter(|at| !at.is_empty());
        let layer = match at.as_deref().is_none_or(|at| at.starts_with("builtin:")) {
            true => "builtin",
            false => "policy",
        };
        Self { section, rule: rule.into(), decision: None, at, layer, says: Vec::new() }
    }

    pub(crate) fn with_decision(self, decision: Option<Verdict>) -> Self {
        Self { decision, ..self }
    }

    /// The same with one thing more, unless there is nothing to say.
    pub(crate) fn with<T: ToString>(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        if !values.is_empty() {
            self.says.push(RuleProperty { name, values });
        }
        self
    }

    pub(crate) fn with_reason(self, because: &Option<String>, suggest: &Option<String>) -> Self {
        self.with("because", because.iter()).with("suggest", suggest.iter())
    }
}

/// A matcher of a word, as a policy has it.
pub(crate) fn token_text(token: &TokenMatcher) -> String {
    match token {
        TokenMatcher::Exact(word) => word.clone(),
        TokenMatcher::Regex(regex) => format!("/{}/", regex.as_str()),
    }
}

/// Patterns of paths, as a policy has them.
pub(crate) fn pattern_texts(patterns: &[PathPattern]) -> impl Iterator<Item = &str> {
    patterns.iter().map(|pattern| pattern.text.as_str())
}
