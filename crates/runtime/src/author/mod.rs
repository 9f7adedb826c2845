//! What tools for authors of policies have in common: the rules of a policy's own text, and the
//! policy that the text would be with a change to it.

mod learn;
mod mutation;
mod past;
mod programs;
mod sites;
mod tree;
mod use_of_rules;

use std::ops::Range;
use std::sync::Arc;

use capsule_core::diagnostic::Diagnostics;
use capsule_core::policy::{DIALECT, Policy, PolicyDraft};
use capsule_core::yaml::{self, YamlNode};
use capsule_tools::CATALOGUE;

use crate::law::Law;
use sites::{Site, sites};

pub(crate) use learn::is_own_word;
pub use learn::{Changed, Kept, LearnError, Learned, Proposal, Step};
pub use mutation::{Fate, Mutant, TooManyMutants};
pub use past::{Answer, Past};
pub use use_of_rules::RuleUse;

/// A policy as its author sees it: a text with rules that can be changed one by one. Nothing is
/// ever written.
#[derive(Clone, Debug)]
pub struct Authored<'l> {
    law: &'l Law,
    /// The policy without what is laid over it, which is not this author's.
    alone: Arc<Policy>,
    /// The profile that was chosen in place of the policy's own.
    profile: Option<&'l str>,
    root: YamlNode,
    sites: Vec<Site>,
}

/// A place in the text of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InText {
    /// File, line and column as they are shown.
    pub at: String,
    /// The bytes of the text.
    pub span: Range<usize>,
}

impl<'l> Authored<'l> {
    /// Reads the text of a policy again, as a tree.
    ///
    /// # Errors
    /// Where it cannot be read, which the policy was before.
    pub fn of(law: &'l Law, profile: Option<&'l str>) -> Result<Self, Diagnostics> {
        let Some(root) = yaml::parse(&law.text.text, &DIALECT).map_err(|own| vec![own])? else {
            return Err(Diagnostics::new());
        };
        let sites = sites(&root, &law.text.text, &law.text.name);
        Ok(Self { law, alone: law.alone(), profile, root, sites })
    }

    /// The policy that a tree is, bound as the author's own is.
    fn policy_of(&self, root: &YamlNode) -> Result<Arc<Policy>, Diagnostics> {
        let root = match self.law.is_base() {
            true => self.alone(root),
            false => root.clone(),
        };
        let Law { text, home, roots, .. } = self.law;
        let (draft, _) = PolicyDraft::parse(&tree::text(&root), &text.name, home, CATALOGUE)?;
        let policy = draft.bind(roots, home, CATALOGUE)?;
        let under = match self.profile {
            Some(name) => policy.under(name),
            None => Some(policy),
        };
        under.map(Arc::new).ok_or_else(Diagnostics::new)
    }

    /// A changed base policy, without the one that always applies.
    fn alone(&self, root: &YamlNode) -> YamlNode {
        let top = tree::Place::root(&self.root);
        let rules = ["never", "deny"].into_iter().filter_map(|section| top.get(section));
        let rules: Vec<_> = rules.flat_map(|own| own.items()).collect();
        let lift = |id: &str| {
            let because = tree::quoted("another one is tried in its place");
            tree::map([("id", tree::quoted(id)), ("because", because)])
        };
        let names = rules.iter().filter_map(|rule| rule.text_of("id"));
        tree::with(root, "lift", tree::list(names.map(lift)))
    }
}
