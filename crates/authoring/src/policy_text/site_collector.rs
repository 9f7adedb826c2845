//! A rule of a policy's text with its place, and the collector of all of them.

use std::ops::Range;

use capsule_base::diagnostic::{LineIndex, Position};
use capsule_base::yaml::YamlNode;
use capsule_core::decision::Verdict;
use capsule_core::tool::Catalogue;
use capsule_redact::excerpt;

use super::tree::{NodePath, TreeEdit, word_node};

/// A rule, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct RuleSite {
    /// Its name, as decisions show it.
    pub(crate) rule: String,
    /// Where it stands, as decisions show it.
    pub(crate) shown: String,
    /// The bytes of the text.
    pub(crate) span: Range<usize>,
    /// How it is known whether it decides something.
    pub(crate) decides: DecisionEvidence,
    /// Whether something is open because of it.
    pub(crate) allows: bool,
    /// Slips that change what it decides.
    pub(crate) mutations: Vec<Mutation>,
}

/// How it is known whether a rule decides something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecisionEvidence {
    /// Its decisions name its place.
    Location,
    /// It has no word of its own: what it decides would be decided otherwise without it.
    Removal,
    /// It hangs on what a run has used, which no test of a policy has.
    RunUsage,
}

/// What a slip of the author could make of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Mutation {
    /// Which one, in words.
    pub(crate) description: String,
    /// Where.
    pub(crate) shown: String,
    /// The bytes of the text.
    pub(crate) span: Range<usize>,
    /// The change to the tree.
    pub(crate) edit: TreeEdit,
}

/// Collects the rules of a tree.
pub(crate) struct SiteCollector<'w> {
    pub(super) catalogue: Catalogue,
    pub(super) lines: LineIndex<'w>,
    pub(super) name: &'w str,
    pub(crate) sites: Vec<RuleSite>,
}

/// A value in a few words.
pub(crate) fn shorten_node(node: &YamlNode) -> String {
    let place = NodePath::root(node);
    match (node.text(), place.get("any").or_else(|| place.get("regex"))) {
        (Some(text), _) => text.to_owned(),
        (None, Some(any)) if any.is_list() => join_shown(&any, "|"),
        (None, Some(regex)) => format!("/{}/", shorten_node(regex.node)),
        (None, None) if place.is_list() => join_shown(&place, " "),
        (None, None) => node.to_json().to_string(),
    }
}

fn join_shown(items: &NodePath<'_>, between: &str) -> String {
    items.items().iter().map(|item| shorten_node(item.node)).collect::<Vec<_>>().join(between)
}

/// How many characters of an item are shown.
const MAX_SHOWN_CHARS: usize = 60;

/// The word that the slip of a hand makes of another.
pub(super) const fn flip_verdict(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Allow => Verdict::Deny,
        Verdict::Ask | Verdict::AskEach | Verdict::Deny => Verdict::Allow,
    }
}

impl SiteCollector<'_> {
    fn location(&self, span: &Range<usize>) -> String {
        let Position { line, column } = self.lines.position(span.start);
        format!("{}:{line}:{column}", self.name)
    }

    /// A rule; what is said of slips goes on with it.
    pub(crate) fn add_site(
        &mut self,
        rule: impl Into<String>,
        place: &YamlNode,
        decides: DecisionEvidence,
    ) {
        let (at, span) = (self.location(&place.span), place.span.clone());
        let (rule, slips) = (rule.into(), Vec::new());
        self.sites.push(RuleSite {
            rule,
            shown: at,
            span,
            decides,
            allows: false,
            mutations: slips,
        });
    }

    /// The last rule opens something.
    fn mark_allowing(&mut self) {
        if let Some(site) = self.sites.last_mut() {
            site.allows = true;
        }
    }

    /// The last rule, which has no word of its own, is left out; as long as it is there, it opens
    /// something.
    pub(crate) fn add_removal(&mut self, place: &YamlNode, edit: TreeEdit) {
        self.add_mutation("the rule is left out", place, edit);
        self.mark_allowing();
    }

    /// A slip in the last rule.
    pub(crate) fn add_mutation(
        &mut self,
        words: impl Into<String>,
        place: &YamlNode,
        edit: TreeEdit,
    ) {
        let (at, span) = (self.location(&place.span), place.span.clone());
        if let Some(site) = self.sites.last_mut() {
            site.mutations.push(Mutation { description: words.into(), shown: at, span, edit });
        }
    }

    /// The word of a rule becomes another; gives whether the rule has one.
    pub(crate) fn add_flip(&mut self, path: Option<NodePath<'_>>) -> bool {
        let read = path.as_ref().and_then(|path| path.node.text()).and_then(Verdict::from_word);
        let (Some(path), Some(verdict)) = (path, read) else { return false };
        let other = flip_verdict(verdict);
        let edit = TreeEdit::Put(path.path, word_node(other.keyword()));
        self.add_mutation(format!("`{verdict}` becomes `{other}`"), path.node, edit);
        if verdict != Verdict::Deny {
            self.mark_allowing();
        }
        true
    }

    /// Each item of a list is left out, if others stay or an empty list says something.
    pub(crate) fn add_item_removals(&mut self, owner: &NodePath<'_>, name: &str, even_last: bool) {
        let items = owner.get(name).map(|path| path.items()).unwrap_or_default();
        if items.len() < 2 && !even_last {
            return;
        }
        for item in items {
            let short = excerpt(&shorten_node(item.node), MAX_SHOWN_CHARS).into_owned();
            let words = format!("`{short}` is left out of `{name}`");
            self.add_mutation(words, item.node, TreeEdit::Remove(item.path));
        }
    }
}
