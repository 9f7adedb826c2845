//! From wishes to rules: what belongs together gets one rule, the narrowest first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use capsule_core::decision::Verdict;
use capsule_core::policy::Policy;
use capsule_core::tool::ToolName;
use serde_json::{Value, json};

use super::missing_rule::{MissingRule, RuleSubject};
use super::yaml_edit::YamlInsertion;
use crate::editable_policy::EditablePolicy;
use crate::policy_text::tree::NodePath;

/// Wishes that one rule answers, and the calls that wished for it.
#[derive(Clone, Debug, Default)]
pub(super) struct MissingRuleGroup {
    pub(super) missing: BTreeSet<MissingRule>,
    pub(super) calls: Vec<String>,
}

/// Wishes by what they have in common: the folder of a path, the origin of a page.
pub(super) type RuleGroups = BTreeMap<(String, Verdict), MissingRuleGroup>;

/// Adds what a call wished for.
pub(super) fn add_to_group(groups: &mut RuleGroups, wish: MissingRule, call: &str) {
    let common = match &wish.subject {
        RuleSubject::Path(tool, path) => format!("path {tool} {}", directory(path.as_str())),
        RuleSubject::Page(origin, _) => format!("page {origin}"),
        RuleSubject::Program(names) => format!("program {}", names.join(" ")),
        RuleSubject::Tool(tool) => format!("tool {tool}"),
    };
    let group = groups.entry((common, wish.verdict)).or_default();
    group.missing.insert(wish);
    if group.calls.last().is_none_or(|last| last != call) {
        group.calls.push(call.to_owned());
    }
}

pub(super) fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A rule that would answer a group.
#[derive(Clone, Debug)]
pub(super) struct RuleCandidate {
    /// The rule's name, as decisions show it.
    pub(super) rule: String,
    /// What it opens, in the words of the policy.
    pub(super) allows: Vec<String>,
    /// What has to stand in the text.
    pub(super) insertion: YamlInsertion,
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
pub(super) struct RuleGenerator<'g> {
    pub(super) authored: &'g EditablePolicy<'g>,
    pub(super) policy: &'g Policy,
    /// The names of rules that are proposed already.
    pub(super) used_ids: RefCell<BTreeSet<String>>,
}

impl<'g> RuleGenerator<'g> {
    pub(super) fn new(authored: &'g EditablePolicy<'g>) -> Self {
        Self { authored, policy: &authored.loaded.policy, used_ids: RefCell::default() }
    }

    /// The rules that would answer a group, the narrowest first.
    ///
    /// # Errors
    /// Says why none can be written.
    pub(super) fn candidates(
        &self,
        group: &MissingRuleGroup,
        word: Verdict,
    ) -> Result<Vec<RuleCandidate>, String> {
        let first = group.missing.first().ok_or_else(String::new)?;
        let because = origin_text(&group.calls);
        match &first.subject {
            RuleSubject::Path(tool, _) => self.path_rules(tool, group, word, &because),
            RuleSubject::Page(origin, _) => self.page_rules(origin, group, word, &because),
            RuleSubject::Program(names) => Ok(vec![self.program_rule(names, word)]),
            RuleSubject::Tool(tool) => Ok(vec![self.tool_rule(tool, word)]),
        }
    }

    /// The key that the author has for a tool, if it stands in the policy's own text.
    fn authored_key(&self, tool: &ToolName) -> Option<String> {
        let tools = NodePath::root(&self.authored.root).get("tools")?;
        let keys = tools.entries().into_iter().filter_map(|(key, _)| key.text());
        let mut named = keys.filter(|name| {
            self.authored
                .tools
                .catalogue
                .find(name)
                .is_some_and(|signature| signature.id == tool.as_str())
        });
        named.next().map(str::to_owned)
    }

    /// What the author's own text says about a tool.
    pub(super) fn authored_rule(&self, tool: &ToolName) -> Option<NodePath<'_>> {
        NodePath::root(&self.authored.root).get("tools")?.get(&self.authored_key(tool)?)
    }

    pub(super) fn nest_under_tool(&self, tool: &ToolName, inner: YamlInsertion) -> YamlInsertion {
        let key = self.authored_key(tool).unwrap_or_else(|| tool.as_str().to_owned());
        inner.under_keys(&["tools", &key])
    }

    /// A name for a rule of a tool that no other has, among `others` or those that are proposed.
    pub(super) fn free_id(&self, tool: &ToolName, about: &str, others: &[&str]) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let about: String = about.chars().map(plain).take(MAX_ID_CHARS).collect();
        let about = about.trim_matches(['-', '.']);
        let wanted = if about.is_empty() { "learned".into() } else { format!("learned-{about}") };
        let numbered = (2_u32..).map(|number| format!("{wanted}-{number}"));
        let mut taken = self.used_ids.borrow_mut();
        let mut ids = std::iter::once(wanted.clone()).chain(numbered);
        let named = |id: &str| format!("{tool}/{id}");
        let is_free = |id: &String| !others.contains(&id.as_str()) && !taken.contains(&named(id));
        let id = ids.find(is_free).unwrap_or(wanted);
        taken.insert(named(&id));
        id
    }

    fn program_rule(&self, names: &[String], word: Verdict) -> RuleCandidate {
        let tool = ToolName::unchecked(SHELL_TOOL);
        let exec = self.policy.exec_rule(&tool);
        let program = names.first().map_or("", String::as_str);
        let rule = exec.and_then(|exec| exec.programs.iter().find(|rule| rule.name == program));
        let mut command = rule.map(|rule| &rule.command);
        let mut wanted = YamlInsertion::map([("decision", YamlInsertion::scalar(word.keyword()))]);
        // From the outermost in: whether everything beside the subcommand was decided before, which it
        // would not be where only the subcommand is named.
        let mut rests = Vec::new();
        for name in names.iter().skip(1) {
            let was_decided = match command {
                Some(rule) => rule.subcommands.is_empty(),
                None => exec.is_some_and(|exec| exec.effects.is_some()),
            };
            rests.push(was_decided);
            command = command
                .and_then(|rule| rule.subcommands.iter().find(|(text, _)| text == name))
                .map(|(_, inner)| inner);
        }
        for (name, was_decided) in names.iter().skip(1).zip(rests).rev() {
            let mut inner = vec![(name.clone(), wanted)];
            if was_decided {
                inner.push(("*".to_owned(), YamlInsertion::Map(Vec::new())));
            }
            wanted = YamlInsertion::map([("subcommands", YamlInsertion::Map(inner))]);
        }
        let wanted = wanted.under_keys(&["executables", program]);
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
        RuleCandidate {
            rule: format!("{tool}/{shown}"),
            allows: vec![names.join(" ")],
            insertion: self.nest_under_tool(&tool, wanted),
            samples: vec![sample],
        }
    }

    fn tool_rule(&self, tool: &ToolName, word: Verdict) -> RuleCandidate {
        let decision = YamlInsertion::scalar(word.keyword());
        let wanted = match self.authored_rule(tool) {
            Some(path) if path.node.text().is_none() => {
                YamlInsertion::map([("decision", decision)])
            }
            _ => decision,
        };
        let sample = Sample {
            name: format!("learned: {tool}"),
            tool: tool.as_str().to_owned(),
            args: json!({}),
        };
        RuleCandidate {
            rule: tool.as_str().to_owned(),
            allows: vec![tool.as_str().to_owned()],
            insertion: self.nest_under_tool(tool, wanted),
            samples: vec![sample],
        }
    }
}

/// How many characters of what a rule is about are in its name.
const MAX_ID_CHARS: usize = 40;
/// The tool that runs programs.
pub(super) const SHELL_TOOL: &str = "shell.run";

pub(super) fn inherited_problem(tool: &ToolName, what: &str) -> String {
    format!("the `{what}` of `{tool}` come from what the policy extends; write them out first")
}

/// A path as the pattern that means it alone.
pub(super) fn escape_pattern(path: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!');
    path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Where a rule comes from.
fn origin_text(calls: &[String]) -> String {
    let shown: Vec<&str> = calls.iter().take(3).map(String::as_str).collect();
    match calls.len().saturating_sub(3) {
        0 => format!("Learned from {}.", shown.join(", ")),
        more => format!("Learned from {} and {more} more.", shown.join(", ")),
    }
}
