//! What tools for authors of policies have in common: the rules of a policy's own text, and the
//! policy that the text would be with a change to it.

mod learn;
mod mutation;
mod policy_tree;
mod programs;
mod recorded_calls;
mod rule_sites;
mod rule_usage;

use std::ops::Range;
use std::sync::Arc;

use capsule_base::diagnostic::Diagnostics;
use capsule_base::yaml::POLICY_DIALECT;
use capsule_base::yaml::{self, YamlNode};
use capsule_core::policy::{Policy, PolicyDraft};
use capsule_tools::CATALOGUE;

use crate::bound_policy::BoundPolicy;
use rule_sites::{RuleSite, collect_sites};

pub(crate) use learn::is_tool_default;
pub use learn::{
    ChangedDecision, LearnError, LearnReport, ProposalStep, RefusedCall, RuleProposal,
};
pub use mutation::{Mutant, MutantResult, TooManyMutants};
pub use recorded_calls::{PastCall, RecordedAnswer};
pub use rule_usage::RuleUsage;

/// A policy as its author sees it: a text with rules that can be changed one by one. Nothing is
/// ever written.
#[derive(Clone, Debug)]
pub struct EditablePolicy<'l> {
    bound_policy: &'l BoundPolicy,
    /// The policy without what is laid over it, which is not this author's.
    authored: Arc<Policy>,
    /// The profile that was chosen in place of the policy's own.
    profile: Option<&'l str>,
    root: YamlNode,
    sites: Vec<RuleSite>,
}

/// A place in the text of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLocation {
    /// File, line and column as they are shown.
    pub shown: String,
    /// The bytes of the text.
    pub span: Range<usize>,
}

impl<'l> EditablePolicy<'l> {
    /// Reads the text of a policy again, as a tree.
    ///
    /// # Errors
    /// Where it cannot be read, which the policy was before.
    pub fn parse(bound: &'l BoundPolicy, profile: Option<&'l str>) -> Result<Self, Diagnostics> {
        let Some(root) = yaml::parse(&bound.text.text, &POLICY_DIALECT)
            .map_err(|diagnostic| vec![diagnostic])?
        else {
            return Err(Diagnostics::new());
        };
        let sites = collect_sites(&root, &bound.text.text, &bound.text.name);
        Ok(Self { bound_policy: bound, authored: bound.without_layers(), profile, root, sites })
    }

    /// The policy that a tree is, bound as the author's own is.
    fn bind_tree(&self, root: &YamlNode) -> Result<Arc<Policy>, Diagnostics> {
        let root = match self.bound_policy.is_base() {
            true => self.without_base(root),
            false => root.clone(),
        };
        let BoundPolicy { text, home, roots, .. } = self.bound_policy;
        let (draft, _) =
            PolicyDraft::parse(&policy_tree::to_yaml(&root), &text.name, home, CATALOGUE)?;
        let policy = draft.bind(roots, home, CATALOGUE)?;
        let under = match self.profile {
            Some(name) => policy.under(name),
            None => Some(policy),
        };
        under.map(Arc::new).ok_or_else(Diagnostics::new)
    }

    /// A changed base policy, without the one that always applies.
    fn without_base(&self, root: &YamlNode) -> YamlNode {
        let top = policy_tree::NodePath::root(&self.root);
        let rules = ["never", "deny"].into_iter().filter_map(|section| top.get(section));
        let rules: Vec<_> = rules.flat_map(|rule| rule.items()).collect();
        let lift = |id: &str| {
            let because = policy_tree::quoted_node("another one is tried in its place");
            policy_tree::map_node([("id", policy_tree::quoted_node(id)), ("because", because)])
        };
        let names = rules.iter().filter_map(|rule| rule.text_of("id"));
        policy_tree::with_key(root, "lift", policy_tree::list_node(names.map(lift)))
    }
}
