//! A policy as its author can change it: the rules of its own text, and the policy that the text would
//! be with a change to it.

use std::ops::Range;
use std::sync::Arc;

use capsule_base::diagnostic::Diagnostics;
use capsule_base::yaml::POLICY_DIALECT;
use capsule_base::yaml::{self, YamlNode};
use capsule_core::policy::Policy;
use capsule_core::tool::ToolSet;
use capsule_policy::{LoadedPolicy, PolicyDraft};

use crate::policy_text::site_collector::RuleSite;
use crate::policy_text::sites::collect_sites;
use crate::policy_text::tree;

/// A policy as its author sees it: a text with rules that can be changed one by one. Nothing is
/// ever written.
#[derive(Clone, Debug)]
pub struct EditablePolicy<'l> {
    pub(crate) loaded: &'l LoadedPolicy,
    pub(crate) tools: &'l ToolSet,
    /// The policy without what is laid over it, which is not this author's.
    pub(crate) authored: Arc<Policy>,
    /// The profile that was chosen in place of the policy's own.
    pub(crate) profile: Option<&'l str>,
    pub(crate) root: YamlNode,
    pub(crate) sites: Vec<RuleSite>,
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
    pub fn parse(
        loaded: &'l LoadedPolicy,
        tools: &'l ToolSet,
        profile: Option<&'l str>,
    ) -> Result<Self, Diagnostics> {
        let Some(root) = yaml::parse(&loaded.text.text, &POLICY_DIALECT)
            .map_err(|diagnostic| vec![diagnostic])?
        else {
            return Err(Diagnostics::new());
        };
        let sites = collect_sites(&root, &loaded.text, tools.catalogue);
        let authored = Arc::new(Policy::clone(&loaded.policy).with_layers(Vec::new()));
        Ok(Self { loaded, tools, authored, profile, root, sites })
    }

    /// The policy that a tree is, bound as the author's own is.
    pub(crate) fn bind_tree(&self, root: &YamlNode) -> Result<Arc<Policy>, Diagnostics> {
        let root = match self.loaded.is_base {
            true => self.without_base(root),
            false => root.clone(),
        };
        let LoadedPolicy { text, home, roots, .. } = self.loaded;
        let catalogue = self.tools.catalogue;
        let (draft, _) = PolicyDraft::parse(&tree::to_yaml(&root), &text.name, home, catalogue)?;
        let policy = draft.bind(roots, home, catalogue)?;
        let under = match self.profile {
            Some(name) => policy.under(name),
            None => Some(policy),
        };
        under.map(Arc::new).ok_or_else(Diagnostics::new)
    }

    /// A changed base policy, without the one that always applies.
    fn without_base(&self, root: &YamlNode) -> YamlNode {
        let top = tree::NodePath::root(&self.root);
        let rules = ["never", "deny"].into_iter().filter_map(|section| top.get(section));
        let rules: Vec<_> = rules.flat_map(|rule| rule.items()).collect();
        let lift = |id: &str| {
            let because = tree::quoted_node("another one is tried in its place");
            tree::map_node([("id", tree::quoted_node(id)), ("because", because)])
        };
        let names = rules.iter().filter_map(|rule| rule.text_of("id"));
        tree::with_key(root, "lift", tree::list_node(names.map(lift)))
    }
}
