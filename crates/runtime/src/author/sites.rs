//! The rules of a policy's own text: where each stands, and what a slip of its author could make of
//! it. Whatever is inherited is another author's.

use std::ops::Range;

use capsule_core::decision::Verdict;
use capsule_core::diagnostic::{LineIndex, Position};
use capsule_core::limits;
use capsule_core::policy::Profile;
use capsule_core::tool::{ToolShape, ToolSignature};
use capsule_core::units::parse_size;
use capsule_core::yaml::YamlNode;
use capsule_redact::excerpt;
use capsule_tools::CATALOGUE;

use super::programs;
use super::tree::{Edit, Place, list, quoted, word};

/// A rule, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Its name, as decisions show it.
    pub(super) rule: String,
    /// Where it stands, as decisions show it.
    pub(super) at: String,
    /// The bytes of the text.
    pub(super) span: Range<usize>,
    /// How it is known whether it decides something.
    pub(super) decides: Decides,
    /// Whether something is open because of it.
    pub(super) opens: bool,
    /// Slips that change what it decides.
    pub(super) slips: Vec<Slip>,
}

/// How it is known whether a rule decides something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decides {
    /// Its decisions name its place.
    ByName,
    /// It has no word of its own: what it decides would be decided otherwise without it.
    Silently,
    /// It hangs on what a run has used, which no test of a policy has.
    Beyond,
}

/// What a slip of the author could make of a rule.
#[derive(Clone, Debug)]
pub(super) struct Slip {
    /// Which one, in words.
    pub(super) words: String,
    /// Where.
    pub(super) at: String,
    /// The bytes of the text.
    pub(super) span: Range<usize>,
    /// The change to the tree.
    pub(super) edit: Edit,
}

/// Collects the rules of a tree.
pub(super) struct Walk<'w> {
    lines: LineIndex<'w>,
    name: &'w str,
    pub(super) sites: Vec<Site>,
}

/// Every rule of a policy's own text. `name` is how its place is shown.
pub(super) fn sites(root: &YamlNode, text: &str, name: &str) -> Vec<Site> {
    let mut walk = Walk { lines: LineIndex::of(text), name, sites: Vec::new() };
    let top = Place::root(root);
    for section in ["never", "deny"] {
        let rules = top.get(section).map(|own| own.items()).unwrap_or_default();
        rules.iter().for_each(|rule| walk.never(rule));
    }
    for rule in top.get("lift").map(|own| own.items()).unwrap_or_default() {
        let name = rule.get("id").unwrap_or_else(|| rule.clone());
        walk.site(format!("lift {}", shown(name.node)), name.node, Decides::Silently);
        walk.silent(name.node, Edit::Remove(rule.path));
    }
    for (key, rule) in top.get("tools").map(|own| own.entries()).unwrap_or_default() {
        if let Some(signature) = key.text().and_then(|name| CATALOGUE.find(name)) {
            walk.tool(signature, key, &rule);
        }
    }
    walk.around(&top);
    walk.sites
}

/// A value in a few words.
pub(super) fn shown(node: &YamlNode) -> String {
    let place = Place::root(node);
    match (node.text(), place.get("any").or_else(|| place.get("regex"))) {
        (Some(text), _) => text.to_owned(),
        (None, Some(any)) if any.is_list() => joined(&any, "|"),
        (None, Some(regex)) => format!("/{}/", shown(regex.node)),
        (None, None) if place.is_list() => joined(&place, " "),
        (None, None) => node.to_json().to_string(),
    }
}

fn joined(items: &Place<'_>, between: &str) -> String {
    items.items().iter().map(|item| shown(item.node)).collect::<Vec<_>>().join(between)
}

/// How many characters of an item are shown.
const SHOWN_CHARS: usize = 60;

/// The word that the slip of a hand makes of another.
const fn flipped(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Allow => Verdict::Deny,
        Verdict::Ask | Verdict::AskEach | Verdict::Deny => Verdict::Allow,
    }
}

impl Walk<'_> {
    fn at(&self, span: &Range<usize>) -> String {
        let Position { line, column } = self.lines.position(span.start);
        format!("{}:{line}:{column}", self.name)
    }

    /// A rule; what is said of slips goes on with it.
    pub(super) fn site(&mut self, rule: impl Into<String>, place: &YamlNode, decides: Decides) {
        let (at, span) = (self.at(&place.span), place.span.clone());
        let (rule, slips) = (rule.into(), Vec::new());
        self.sites.push(Site { rule, at, span, decides, opens: false, slips });
    }

    /// The last rule opens something.
    fn opens(&mut self) {
        if let Some(site) = self.sites.last_mut() {
            site.opens = true;
        }
    }

    /// The last rule, which has no word of its own, is left out; as long as it is there, it opens
    /// something.
    pub(super) fn silent(&mut self, place: &YamlNode, edit: Edit) {
        self.slip("the rule is left out", place, edit);
        self.opens();
    }

    /// A slip in the last rule.
    pub(super) fn slip(&mut self, words: impl Into<String>, place: &YamlNode, edit: Edit) {
        let (at, span) = (self.at(&place.span), place.span.clone());
        if let Some(site) = self.sites.last_mut() {
            site.slips.push(Slip { words: words.into(), at, span, edit });
        }
    }

    /// The word of a rule becomes another; gives whether the rule has one.
    pub(super) fn flip(&mut self, own: Option<Place<'_>>) -> bool {
        let read = own.as_ref().and_then(|own| own.node.text()).and_then(Verdict::from_keyword);
        let (Some(own), Some(verdict)) = (own, read) else { return false };
        let other = flipped(verdict);
        let edit = Edit::Put(own.path, word(other.keyword()));
        self.slip(format!("`{verdict}` becomes `{other}`"), own.node, edit);
        if verdict != Verdict::Deny {
            self.opens();
        }
        true
    }

    /// Each item of a list is left out, if others stay or an empty list says something.
    pub(super) fn without(&mut self, owner: &Place<'_>, name: &str, even_last: bool) {
        let items = owner.get(name).map(|own| own.items()).unwrap_or_default();
        if items.len() < 2 && !even_last {
            return;
        }
        for item in items {
            let short = excerpt(&shown(item.node), SHOWN_CHARS).into_owned();
            let words = format!("`{short}` is left out of `{name}`");
            self.slip(words, item.node, Edit::Remove(item.path));
        }
    }

    fn never(&mut self, rule: &Place<'_>) {
        let name = rule.get("id").unwrap_or_else(|| rule.clone());
        self.site(shown(name.node), name.node, Decides::ByName);
        self.slip("the rule is left out", name.node, Edit::Remove(rule.path.clone()));
        for list in ["capabilities", "paths", "argv", "effects", "into"] {
            self.without(rule, list, false);
        }
        self.without(rule, "except", true);
    }

    fn tool(&mut self, signature: &'static ToolSignature, key: &YamlNode, rule: &Place<'_>) {
        let own = match rule.node.text() {
            Some(_) => Some(rule.clone()),
            None => rule.get("decision"),
        };
        let is_silent = own.is_none();
        let decides = if is_silent { Decides::Silently } else { Decides::ByName };
        self.site(signature.id, key, decides);
        if is_silent {
            self.silent(key, Edit::Remove(rule.path.clone()));
        }
        self.flip(own);
        match signature.shape {
            ToolShape::Files => self.files(signature, rule),
            ToolShape::Fetch => self.fetch(signature.id, rule),
            ToolShape::Exec => programs::walk(self, signature.id, rule),
            ToolShape::Repository => {}
            ToolShape::Test => self.left_out(rule, "filter"),
        }
    }

    /// A key that stands there does not.
    fn left_out(&mut self, owner: &Place<'_>, name: &str) {
        if let Some(own) = owner.get(name) {
            let words = format!("`{name}` is left out");
            self.slip(words, own.node, Edit::Remove(own.path));
        }
    }

    fn files(&mut self, signature: &'static ToolSignature, rule: &Place<'_>) {
        let paths = rule.get("paths");
        let (allow, long) = match paths {
            Some(own) if own.is_list() => (Some(own), None),
            Some(own) => (own.get("allow"), Some(own)),
            None => (None, None),
        };
        if let Some(allow) = &allow {
            self.opened(allow);
        }
        for owner in [long.as_ref(), Some(rule)].into_iter().flatten() {
            self.without(owner, "deny", true);
            if let Some(own) = owner.get("hidden") {
                let is_open = own.node.text() == Some("allow");
                let (is, other) = if is_open { ("allow", "deny") } else { ("deny", "allow") };
                let edit = Edit::Put(own.path, word(other));
                self.slip(format!("`hidden`: `{is}` becomes `{other}`"), own.node, edit);
            }
        }
        self.small_limit(rule.get("limits"), "bytes_max", limits::WRITE_BYTES);
        for (key, own) in rule.get("modes").map(|own| own.entries()).unwrap_or_default() {
            let id = format!("{}/modes.{}", signature.id, shown(key));
            self.site(id, key, Decides::ByName);
            self.flip(Some(own));
        }
        let open: Vec<String> = match &allow {
            Some(allow) => allow.items().iter().map(|item| shown(item.node)).collect(),
            None => vec![EVERYTHING.into()],
        };
        for inner in rule.get("rules").map(|own| own.items()).unwrap_or_default() {
            let name = inner.get("id").unwrap_or_else(|| inner.clone());
            let own = inner.get("decision");
            let id = format!("{}/{}", signature.id, shown(name.node));
            self.site(id, name.node, Decides::ByName);
            if !self.flip(own) {
                continue;
            }
            let Some(paths) = inner.get("paths") else { continue };
            // Where the rule names all that is open, there is nothing else for it to take in.
            let named: Vec<String> = paths.items().iter().map(|item| shown(item.node)).collect();
            if !open.iter().all(|pattern| named.contains(pattern)) {
                self.opened(&paths);
            }
        }
    }

    /// A list of patterns becomes one for everything.
    fn opened(&mut self, paths: &Place<'_>) {
        if !paths.items().iter().any(|item| item.node.text() == Some(EVERYTHING)) {
            let edit = Edit::Put(paths.path.clone(), list([quoted(EVERYTHING)]));
            self.slip(format!("`paths` become `{EVERYTHING}`"), paths.node, edit);
        }
    }

    /// A limit goes that a test can meet: a policy cannot hold the content that meets a larger one.
    fn small_limit(&mut self, limits: Option<Place<'_>>, name: &str, default: u64) {
        let Some(own) = limits.and_then(|own| own.get(name)) else { return };
        let size = own.node.text().and_then(parse_size);
        let most = u64::try_from(limits::POLICY_BYTES).unwrap_or(u64::MAX).min(default);
        if size.is_some_and(|size| size < most) {
            self.slip(format!("`{name}` is left out"), own.node, Edit::Remove(own.path));
        }
    }

    fn fetch(&mut self, tool: &str, rule: &Place<'_>) {
        let urls = rule.get("urls");
        let long = urls.clone().filter(|own| !own.is_list());
        let owners = [long.clone(), Some(rule.clone())];
        for private in owners.into_iter().flatten().filter_map(|own| own.get("private_ips")) {
            self.without(&private, "allow", true);
        }
        let domains = rule.get("domains").map(|own| own.items()).unwrap_or_default();
        for domain in &domains {
            self.site(format!("{tool}/{}", shown(domain.node)), domain.node, Decides::Silently);
            let edit = Edit::Put(domain.path.clone(), quoted(NOWHERE));
            self.silent(domain.node, edit);
        }
        let allow = urls.and_then(|own| if own.is_list() { Some(own) } else { own.get("allow") });
        for (index, item) in allow.map(|own| own.items()).unwrap_or_default().iter().enumerate() {
            let (id, place) = self.url(tool, item, domains.len() + index);
            let own = item.get("decision");
            let decides = if own.is_some() { Decides::ByName } else { Decides::Silently };
            self.site(id, place.node, decides);
            if !self.flip(own) {
                self.silent(place.node, nowhere(&place));
            }
        }
        let deny = long.and_then(|own| own.get("deny"));
        for (index, item) in deny.map(|own| own.items()).unwrap_or_default().iter().enumerate() {
            let (id, place) = self.url(tool, item, index);
            self.site(id, place.node, Decides::ByName);
            self.slip("the rule is left out", place.node, nowhere(&place));
        }
    }

    /// The name of a rule for addresses, and where its address stands.
    fn url<'n>(&self, tool: &str, item: &Place<'n>, before: usize) -> (String, Place<'n>) {
        let named = item.text_of("id").map(str::to_owned);
        let id = named.unwrap_or_else(|| format!("url-{}", before + 1));
        (format!("{tool}/{id}"), item.get("url").unwrap_or_else(|| item.clone()))
    }

    /// What is not about one tool.
    fn around(&mut self, top: &Place<'_>) {
        if let Some(own) = top.get("profile") {
            let name = shown(own.node);
            self.site(format!("profile {name}"), own.node, Decides::Silently);
            let edit = match name == Profile::supervised().name {
                true => Edit::Put(own.path, word(&Profile::readonly().name)),
                false => Edit::Remove(own.path),
            };
            self.slip("another profile holds", own.node, edit);
        }
        for (key, profile) in top.get("profiles").map(|own| own.entries()).unwrap_or_default() {
            self.site(format!("profile/{}", shown(key)), key, Decides::ByName);
            let words = profile.get("decide").map(|own| own.entries()).unwrap_or_default();
            for (capability, own) in words {
                if let Some(verdict) = own.node.text().and_then(Verdict::from_keyword) {
                    let other = flipped(verdict);
                    let said = format!("`{}`: `{verdict}` becomes `{other}`", shown(capability));
                    self.slip(said, own.node, Edit::Put(own.path, word(other.keyword())));
                }
            }
        }
        for (key, own) in top.get("capabilities").map(|own| own.entries()).unwrap_or_default() {
            let raised = own.get("risk").filter(|own| own.node.text() != Some("low"));
            if let Some(risk) = raised {
                let name = format!("capabilities.{}", shown(key));
                self.site(name, risk.node, Decides::Silently);
                self.slip("`risk` is left out", risk.node, Edit::Remove(risk.path));
            }
        }
        self.risk(top);
        if let Some(budgets) = top.get("budgets") {
            self.site("budgets", budgets.node, Decides::Beyond);
            self.small_limit(budgets.get("run"), "written", u64::MAX);
        }
        let tools = top.get("tools").map(|own| own.entries()).unwrap_or_default();
        let shape =
            |key: &YamlNode| key.text().and_then(|name| CATALOGUE.find(name)).map(|own| own.shape);
        let has_programs = tools
            .iter()
            .any(|(key, _)| matches!(shape(key), Some(ToolShape::Exec | ToolShape::Test)));
        let level = top.get("sandbox").and_then(|own| own.get("level"));
        if let Some(level) = level.filter(|_| has_programs) {
            self.site("sandbox", level.node, Decides::Silently);
            let own = level.node.text().unwrap_or_default();
            let other = if own == "strict" { "workspace-write" } else { "strict" };
            let edit = Edit::Put(level.path.clone(), word(other));
            self.slip(format!("`{own}` becomes `{other}`"), level.node, edit);
        }
    }

    fn risk(&mut self, top: &Place<'_>) {
        let Some(risk) = top.get("risk") else { return };
        let block = risk.get("block_at");
        let place = block.as_ref().map_or(risk.node, |own| own.node);
        self.site("risk", place, Decides::ByName);
        if let Some(own) = block {
            let is = own.node.text().unwrap_or_default();
            let other = if is == "none" { "high" } else { "none" };
            let edit = Edit::Put(own.path, word(other));
            self.slip(format!("`block_at`: `{is}` becomes `{other}`"), own.node, edit);
        }
        if let Some(own) = risk.get("unknown") {
            let words = "`unknown` is left out";
            self.slip(words, own.node, Edit::Remove(own.path));
        }
        for item in risk.get("escalate").map(|own| own.items()).unwrap_or_default() {
            // The other two hang on files and on where an argument came from.
            if item.text_of("when") == Some("irreversible") {
                let words = "`irreversible` is left out of `escalate`";
                self.slip(words, item.node, Edit::Remove(item.path));
            }
        }
    }
}

/// The pattern for every path.
const EVERYTHING: &str = "**";
/// A name that no host has (RFC 6761).
const NOWHERE: &str = "left-out.invalid";

/// A rule for addresses that means none; the others keep their numbers.
fn nowhere(url: &Place<'_>) -> Edit {
    Edit::Put(url.path.clone(), quoted(&format!("https://{NOWHERE}/")))
}
