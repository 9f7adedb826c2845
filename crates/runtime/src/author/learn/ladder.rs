//! From wishes to rules: what belongs together gets one rule, the narrowest first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use capsule_core::decision::Verdict;
use capsule_core::policy::Policy;
use capsule_core::tool::ToolName;
use capsule_core::yaml::YamlNode;
use capsule_tools::CATALOGUE;
use serde_json::{Value, json};

use super::splice::Wanted;
use super::wishes::{What, Wish, exec_of};
use crate::author::tree::Place;
use crate::law::Law;

/// Wishes that one rule answers, and the calls that wished for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) wishes: BTreeSet<Wish>,
    pub(super) calls: Vec<String>,
}

/// Wishes by what they have in common: the folder of a path, the origin of a page.
pub(super) type Groups = BTreeMap<(String, Verdict), Group>;

/// Adds what a call wished for.
pub(super) fn add(groups: &mut Groups, wish: Wish, call: &str) {
    let common = match &wish.what {
        What::Path(tool, path) => format!("path {tool} {}", folder(path.as_str())),
        What::Page(origin, _) => format!("page {origin}"),
        What::Program(names) => format!("program {}", names.join(" ")),
        What::Tool(tool) => format!("tool {tool}"),
    };
    let group = groups.entry((common, wish.word)).or_default();
    group.wishes.insert(wish);
    if group.calls.last().is_none_or(|last| last != call) {
        group.calls.push(call.to_owned());
    }
}

pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A rule that would answer a group.
#[derive(Clone, Debug)]
pub(super) struct Rung {
    /// The rule's name, as decisions show it.
    pub(super) rule: String,
    /// What it opens, in the words of the policy.
    pub(super) opens: Vec<String>,
    /// What has to stand in the text.
    pub(super) wanted: Wanted,
    /// Calls that say what it decides, and one beside them.
    pub(super) samples: Vec<Sample>,
}

/// A call that a test of the policy asks about.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) tool: String,
    pub(super) args: Value,
}

/// The text that rules are put into, and the policy that it is.
pub(super) struct Ground<'g> {
    pub(super) law: &'g Law,
    pub(super) policy: &'g Policy,
    pub(super) root: &'g YamlNode,
    /// The names of rules that are proposed already.
    pub(super) taken: RefCell<BTreeSet<String>>,
}

impl<'g> Ground<'g> {
    pub(super) fn new(law: &'g Law, root: &'g YamlNode) -> Self {
        Self { law, policy: &law.policy, root, taken: RefCell::default() }
    }

    /// The rules that would answer a group, the narrowest first.
    ///
    /// # Errors
    /// Says why none can be written.
    pub(super) fn ladder(&self, group: &Group, word: Verdict) -> Result<Vec<Rung>, String> {
        let first = group.wishes.first().ok_or_else(String::new)?;
        let because = because(&group.calls);
        match &first.what {
            What::Path(tool, _) => self.paths(tool, group, word, &because),
            What::Page(origin, _) => self.pages(origin, group, word, &because),
            What::Program(names) => Ok(vec![self.program(names, word)]),
            What::Tool(tool) => Ok(vec![self.tool(tool, word)]),
        }
    }

    /// The key that the author has for a tool, if it stands in the policy's own text.
    fn key(&self, tool: &ToolName) -> Option<String> {
        let tools = Place::root(self.root).get("tools")?;
        let keys = tools.entries().into_iter().filter_map(|(key, _)| key.text());
        let mut named =
            keys.filter(|name| CATALOGUE.find(name).is_some_and(|own| own.id == tool.as_str()));
        named.next().map(str::to_owned)
    }

    /// What the author's own text says about a tool.
    pub(super) fn own(&self, tool: &ToolName) -> Option<Place<'_>> {
        Place::root(self.root).get("tools")?.get(&self.key(tool)?)
    }

    pub(super) fn beneath(&self, tool: &ToolName, inner: Wanted) -> Wanted {
        let key = self.key(tool).unwrap_or_else(|| tool.as_str().to_owned());
        inner.beneath(&["tools", &key])
    }

    /// A name for a rule of a tool that no other has, among `others` or those that are proposed.
    pub(super) fn free_id(&self, tool: &ToolName, about: &str, others: &[&str]) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let about: String = about.chars().map(plain).take(ID_CHARS).collect();
        let about = about.trim_matches(['-', '.']);
        let wanted = if about.is_empty() { "learned".into() } else { format!("learned-{about}") };
        let numbered = (2_u32..).map(|number| format!("{wanted}-{number}"));
        let mut taken = self.taken.borrow_mut();
        let mut ids = std::iter::once(wanted.clone()).chain(numbered);
        let named = |id: &str| format!("{tool}/{id}");
        let is_free = |id: &String| !others.contains(&id.as_str()) && !taken.contains(&named(id));
        let id = ids.find(is_free).unwrap_or(wanted);
        taken.insert(named(&id));
        id
    }

    fn program(&self, names: &[String], word: Verdict) -> Rung {
        let tool = ToolName::unchecked(SHELL);
        let exec = exec_of(self.policy, &tool);
        let program = names.first().map_or("", String::as_str);
        let rule = exec.and_then(|exec| exec.programs.iter().find(|own| own.name == program));
        let mut command = rule.map(|own| &own.command);
        let mut wanted = Wanted::map([("decision", Wanted::word(word.keyword()))]);
        // From the outermost in: whether everything beside the subcommand was decided before, which it
        // would not be where only the subcommand is named.
        let mut rests = Vec::new();
        for name in names.iter().skip(1) {
            let was_decided = match command {
                Some(own) => own.subcommands.is_empty(),
                None => exec.is_some_and(|exec| exec.effects.is_some()),
            };
            rests.push(was_decided);
            command = command
                .and_then(|own| own.subcommands.iter().find(|(own, _)| own == name))
                .map(|(_, inner)| inner);
        }
        for (name, was_decided) in names.iter().skip(1).zip(rests).rev() {
            let mut inner = vec![(name.clone(), wanted)];
            if was_decided {
                inner.push(("*".to_owned(), Wanted::Map(Vec::new())));
            }
            wanted = Wanted::map([("subcommands", Wanted::Map(inner))]);
        }
        let wanted = wanted.beneath(&["executables", program]);
        let shown = match names.split_first() {
            Some((first, [])) => first.clone(),
            Some((first, rest)) => format!("{first}.{}", rest.join(" ")),
            None => String::new(),
        };
        let sample = Sample {
            name: format!("learned: {}", names.join(" ")),
            tool: tool.as_str().to_owned(),
            args: json!({ "argv": names }),
        };
        Rung {
            rule: format!("{tool}/{shown}"),
            opens: vec![names.join(" ")],
            wanted: self.beneath(&tool, wanted),
            samples: vec![sample],
        }
    }

    fn tool(&self, tool: &ToolName, word: Verdict) -> Rung {
        let decision = Wanted::word(word.keyword());
        let wanted = match self.own(tool) {
            Some(own) if own.node.text().is_none() => Wanted::map([("decision", decision)]),
            _ => decision,
        };
        let sample = Sample {
            name: format!("learned: {tool}"),
            tool: tool.as_str().to_owned(),
            args: json!({}),
        };
        Rung {
            rule: tool.as_str().to_owned(),
            opens: vec![tool.as_str().to_owned()],
            wanted: self.beneath(tool, wanted),
            samples: vec![sample],
        }
    }
}

/// How many characters of what a rule is about are in its name.
const ID_CHARS: usize = 40;
/// The tool that runs programs.
pub(super) const SHELL: &str = "shell.run";

pub(super) fn inherited(tool: &ToolName, what: &str) -> String {
    format!("the `{what}` of `{tool}` come from what the policy extends; write them out first")
}

/// A path as the pattern that means it alone.
pub(super) fn escaped(path: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!');
    path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Where a rule comes from.
fn because(calls: &[String]) -> String {
    let shown: Vec<&str> = calls.iter().take(3).map(String::as_str).collect();
    match calls.len().saturating_sub(3) {
        0 => format!("Learned from {}.", shown.join(", ")),
        more => format!("Learned from {} and {more} more.", shown.join(", ")),
    }
}
