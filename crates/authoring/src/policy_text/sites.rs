//! The rules of a policy's own text: where each stands, and what a slip of its author could make of
//! it. Whatever is inherited is another author's.

use capsule_base::diagnostic::LineIndex;
use capsule_base::limits;
use capsule_base::units::parse_size;
use capsule_base::yaml::YamlNode;
use capsule_core::decision::Verdict;
use capsule_core::policy::Profile;
use capsule_core::tool::{Catalogue, ToolShape, ToolSignature};
use capsule_policy::SourceText;

use super::programs;
use super::site_collector::{
    DecisionEvidence, RuleSite, SiteCollector, flip_verdict, shorten_node,
};
use super::tree::{NodePath, TreeEdit, list_node, quoted_node, word_node};

/// Every rule of a policy's own text.
pub(crate) fn collect_sites(
    root: &YamlNode,
    SourceText { name, text }: &SourceText,
    catalogue: Catalogue,
) -> Vec<RuleSite> {
    let lines = LineIndex::of(text);
    let mut walk = SiteCollector { catalogue, lines, name, sites: Vec::new() };
    let top = NodePath::root(root);
    for section in ["never", "deny"] {
        let rules = top.get(section).map(|path| path.items()).unwrap_or_default();
        rules.iter().for_each(|rule| walk.collect_never(rule));
    }
    for rule in top.get("lift").map(|path| path.items()).unwrap_or_default() {
        let name = rule.get("id").unwrap_or_else(|| rule.clone());
        walk.add_site(
            format!("lift {}", shorten_node(name.node)),
            name.node,
            DecisionEvidence::Removal,
        );
        walk.add_removal(name.node, TreeEdit::Remove(rule.path));
    }
    for (key, rule) in top.get("tools").map(|path| path.entries()).unwrap_or_default() {
        if let Some(signature) = key.text().and_then(|name| catalogue.find(name)) {
            walk.collect_tool(signature, key, &rule);
        }
    }
    walk.collect_top_level(&top);
    walk.sites
}

impl SiteCollector<'_> {
    fn collect_never(&mut self, rule: &NodePath<'_>) {
        let name = rule.get("id").unwrap_or_else(|| rule.clone());
        self.add_site(shorten_node(name.node), name.node, DecisionEvidence::Location);
        self.add_mutation("the rule is left out", name.node, TreeEdit::Remove(rule.path.clone()));
        for list in ["capabilities", "paths", "argv", "effects", "into"] {
            self.add_item_removals(rule, list, false);
        }
        self.add_item_removals(rule, "except", true);
    }

    fn collect_tool(
        &mut self,
        signature: &'static ToolSignature,
        key: &YamlNode,
        rule: &NodePath<'_>,
    ) {
        let path = match rule.node.text() {
            Some(_) => Some(rule.clone()),
            None => rule.get("decision"),
        };
        let is_silent = path.is_none();
        let decides =
            if is_silent { DecisionEvidence::Removal } else { DecisionEvidence::Location };
        self.add_site(signature.id, key, decides);
        if is_silent {
            self.add_removal(key, TreeEdit::Remove(rule.path.clone()));
        }
        self.add_flip(path);
        match signature.shape {
            ToolShape::Files => self.collect_files(signature, rule),
            ToolShape::Fetch => self.collect_fetch(signature.id, rule),
            ToolShape::Exec => programs::collect_programs(self, signature.id, rule),
            ToolShape::Repository | ToolShape::User => {}
            ToolShape::Test => self.add_key_removal(rule, "filter"),
        }
    }

    /// A key that stands there does not.
    fn add_key_removal(&mut self, owner: &NodePath<'_>, name: &str) {
        if let Some(path) = owner.get(name) {
            let words = format!("`{name}` is left out");
            self.add_mutation(words, path.node, TreeEdit::Remove(path.path));
        }
    }

    fn collect_files(&mut self, signature: &'static ToolSignature, rule: &NodePath<'_>) {
        let paths = rule.get("paths");
        let (allow, long) = match paths {
            Some(path) if path.is_list() => (Some(path), None),
            Some(path) => (path.get("allow"), Some(path)),
            None => (None, None),
        };
        if let Some(allow) = &allow {
            self.add_widening(allow);
        }
        for owner in [long.as_ref(), Some(rule)].into_iter().flatten() {
            self.add_item_removals(owner, "deny", true);
            if let Some(path) = owner.get("hidden") {
                let is_open = path.node.text() == Some("allow");
                let (is, other) = if is_open { ("allow", "deny") } else { ("deny", "allow") };
                let edit = TreeEdit::Put(path.path, word_node(other));
                self.add_mutation(format!("`hidden`: `{is}` becomes `{other}`"), path.node, edit);
            }
        }
        self.add_limit_removal(rule.get("limits"), "bytes_max", limits::WRITE_BYTES);
        for (key, path) in rule.get("modes").map(|path| path.entries()).unwrap_or_default() {
            let id = format!("{}/modes.{}", signature.id, shorten_node(key));
            self.add_site(id, key, DecisionEvidence::Location);
            self.add_flip(Some(path));
        }
        let open: Vec<String> = match &allow {
            Some(allow) => allow.items().iter().map(|item| shorten_node(item.node)).collect(),
            None => vec![EVERYTHING.into()],
        };
        for inner in rule.get("rules").map(|path| path.items()).unwrap_or_default() {
            let name = inner.get("id").unwrap_or_else(|| inner.clone());
            let path = inner.get("decision");
            let id = format!("{}/{}", signature.id, shorten_node(name.node));
            self.add_site(id, name.node, DecisionEvidence::Location);
            if !self.add_flip(path) {
                continue;
            }
            let Some(paths) = inner.get("paths") else { continue };
            // Where the rule names all that is open, there is nothing else for it to take in.
            let named: Vec<String> =
                paths.items().iter().map(|item| shorten_node(item.node)).collect();
            if !open.iter().all(|pattern| named.contains(pattern)) {
                self.add_widening(&paths);
            }
        }
    }

    /// A list of patterns becomes one for everything.
    fn add_widening(&mut self, paths: &NodePath<'_>) {
        if !paths.items().iter().any(|item| item.node.text() == Some(EVERYTHING)) {
            let edit = TreeEdit::Put(paths.path.clone(), list_node([quoted_node(EVERYTHING)]));
            self.add_mutation(format!("`paths` become `{EVERYTHING}`"), paths.node, edit);
        }
    }

    /// A limit goes that a test can meet: a policy cannot hold the content that meets a larger one.
    fn add_limit_removal(&mut self, limits: Option<NodePath<'_>>, name: &str, default: u64) {
        let Some(path) = limits.and_then(|limit| limit.get(name)) else { return };
        let size = path.node.text().and_then(parse_size);
        let most = u64::try_from(limits::POLICY_BYTES).unwrap_or(u64::MAX).min(default);
        if size.is_some_and(|size| size < most) {
            self.add_mutation(
                format!("`{name}` is left out"),
                path.node,
                TreeEdit::Remove(path.path),
            );
        }
    }

    fn collect_fetch(&mut self, tool: &str, rule: &NodePath<'_>) {
        let urls = rule.get("urls");
        let long = urls.clone().filter(|path| !path.is_list());
        let owners = [long.clone(), Some(rule.clone())];
        for private in owners.into_iter().flatten().filter_map(|path| path.get("private_ips")) {
            self.add_item_removals(&private, "allow", true);
        }
        let domains = rule.get("domains").map(|path| path.items()).unwrap_or_default();
        for domain in &domains {
            self.add_site(
                format!("{tool}/{}", shorten_node(domain.node)),
                domain.node,
                DecisionEvidence::Removal,
            );
            let edit = TreeEdit::Put(domain.path.clone(), quoted_node(UNMATCHABLE_HOST));
            self.add_removal(domain.node, edit);
        }
        let allow = urls.and_then(|url| if url.is_list() { Some(url) } else { url.get("allow") });
        for (index, item) in allow.map(|path| path.items()).unwrap_or_default().iter().enumerate() {
            let (id, place) = self.url_rule(tool, item, domains.len() + index);
            let path = item.get("decision");
            let decides =
                if path.is_some() { DecisionEvidence::Location } else { DecisionEvidence::Removal };
            self.add_site(id, place.node, decides);
            if !self.add_flip(path) {
                self.add_removal(place.node, unmatchable(&place));
            }
        }
        let deny = long.and_then(|path| path.get("deny"));
        for (index, item) in deny.map(|path| path.items()).unwrap_or_default().iter().enumerate() {
            let (id, place) = self.url_rule(tool, item, index);
            self.add_site(id, place.node, DecisionEvidence::Location);
            self.add_mutation("the rule is left out", place.node, unmatchable(&place));
        }
    }

    /// The name of a rule for addresses, and where its address stands.
    fn url_rule<'n>(
        &self,
        tool: &str,
        item: &NodePath<'n>,
        before: usize,
    ) -> (String, NodePath<'n>) {
        let named = item.text_of("id").map(str::to_owned);
        let id = named.unwrap_or_else(|| format!("url-{}", before + 1));
        (format!("{tool}/{id}"), item.get("url").unwrap_or_else(|| item.clone()))
    }

    /// What is not about one tool.
    fn collect_top_level(&mut self, top: &NodePath<'_>) {
        if let Some(path) = top.get("profile") {
            let name = shorten_node(path.node);
            self.add_site(format!("profile {name}"), path.node, DecisionEvidence::Removal);
            let edit = match name == Profile::supervised().name {
                true => TreeEdit::Put(path.path, word_node(&Profile::readonly().name)),
                false => TreeEdit::Remove(path.path),
            };
            self.add_mutation("another profile holds", path.node, edit);
        }
        for (key, profile) in top.get("profiles").map(|path| path.entries()).unwrap_or_default() {
            self.add_site(
                format!("profile/{}", shorten_node(key)),
                key,
                DecisionEvidence::Location,
            );
            let words = profile.get("decide").map(|path| path.entries()).unwrap_or_default();
            for (capability, path) in words {
                if let Some(verdict) = path.node.text().and_then(Verdict::from_word) {
                    let other = flip_verdict(verdict);
                    let said =
                        format!("`{}`: `{verdict}` becomes `{other}`", shorten_node(capability));
                    self.add_mutation(
                        said,
                        path.node,
                        TreeEdit::Put(path.path, word_node(other.keyword())),
                    );
                }
            }
        }
        for (key, path) in top.get("capabilities").map(|path| path.entries()).unwrap_or_default() {
            let raised = path.get("risk").filter(|path| path.node.text() != Some("low"));
            if let Some(risk) = raised {
                let name = format!("capabilities.{}", shorten_node(key));
                self.add_site(name, risk.node, DecisionEvidence::Removal);
                self.add_mutation("`risk` is left out", risk.node, TreeEdit::Remove(risk.path));
            }
        }
        self.collect_risk(top);
        if let Some(budgets) = top.get("budgets") {
            self.add_site("budgets", budgets.node, DecisionEvidence::RunUsage);
            self.add_limit_removal(budgets.get("run"), "written", u64::MAX);
        }
        let tools = top.get("tools").map(|path| path.entries()).unwrap_or_default();
        let shape = |key: &YamlNode| {
            key.text().and_then(|name| self.catalogue.find(name)).map(|signature| signature.shape)
        };
        let has_programs = tools
            .iter()
            .any(|(key, _)| matches!(shape(key), Some(ToolShape::Exec | ToolShape::Test)));
        let level = top.get("sandbox").and_then(|path| path.get("level"));
        if let Some(level) = level.filter(|_| has_programs) {
            self.add_site("sandbox", level.node, DecisionEvidence::Removal);
            let text = level.node.text().unwrap_or_default();
            let other = if text == "strict" { "workspace-write" } else { "strict" };
            let edit = TreeEdit::Put(level.path.clone(), word_node(other));
            self.add_mutation(format!("`{text}` becomes `{other}`"), level.node, edit);
        }
    }

    fn collect_risk(&mut self, top: &NodePath<'_>) {
        let Some(risk) = top.get("risk") else { return };
        let block = risk.get("block_at");
        let place = block.as_ref().map_or(risk.node, |path| path.node);
        self.add_site("risk", place, DecisionEvidence::Location);
        if let Some(path) = block {
            let is = path.node.text().unwrap_or_default();
            let other = if is == "none" { "high" } else { "none" };
            let edit = TreeEdit::Put(path.path, word_node(other));
            self.add_mutation(format!("`block_at`: `{is}` becomes `{other}`"), path.node, edit);
        }
        if let Some(path) = risk.get("unknown") {
            let words = "`unknown` is left out";
            self.add_mutation(words, path.node, TreeEdit::Remove(path.path));
        }
        for item in risk.get("escalate").map(|path| path.items()).unwrap_or_default() {
            // The other two hang on files and on where an argument came from.
            if item.text_of("when") == Some("irreversible") {
                let words = "`irreversible` is left out of `escalate`";
                self.add_mutation(words, item.node, TreeEdit::Remove(item.path));
            }
        }
    }
}

/// The pattern for every path.
const EVERYTHING: &str = "**";
/// A name that no host has (RFC 6761).
const UNMATCHABLE_HOST: &str = "left-out.invalid";

/// A rule for addresses that means none; the others keep their numbers.
fn unmatchable(url: &NodePath<'_>) -> TreeEdit {
    TreeEdit::Put(url.path.clone(), quoted_node(&format!("https://{UNMATCHABLE_HOST}/")))
}
