//! Reads invariants.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::language::{ANY_WORD, BASE_NEVER, LIFT, NEVER};
use crate::parse::context::Context;
use crate::parse::exec;
use crate::parse::rule_value::text;
use capsule_base::code::Code;
use capsule_base::yaml::YamlNode;
use capsule_command::specs::{Effect, Effects};
use capsule_core::capability::Capability;
use capsule_core::control_files;
use capsule_core::policy::PathPattern;
use capsule_core::policy::TokenMatcher;
use capsule_core::policy::{ArgumentPattern, ArgvPattern};
use capsule_core::policy::{DroppedRule, HardDenyRule};
use capsule_core::tool::ToolName;

/// The lists of [`control_files`] that rules of the base policy may mean.
const LISTS: [(&str, &[&str]); 4] = [
    ("tree", control_files::TREE),
    ("packaged", control_files::PACKAGED),
    ("ask", control_files::ASK),
    ("harmless", control_files::HARMLESS),
];

pub(super) fn rules(context: &mut Context<'_>, node: &YamlNode) -> Vec<HardDenyRule> {
    let items = context.reader.list(node, "a list of rules").unwrap_or_default();
    let mut rules: Vec<HardDenyRule> = Vec::new();
    for item in items {
        let Some(rule) = rule(context, item) else { continue };
        if rules.iter().any(|other| other.id == rule.id) {
            let message = format!("another rule has the id `{}`", rule.id);
            context.error(Code::PolicyDuplicateKey, item, message);
        }
        rules.push(rule);
    }
    rules
}

/// The rules of the base policy that are dropped, each with a reason.
pub(super) fn dropped_rules(context: &mut Context<'_>, node: &YamlNode) -> Vec<DroppedRule> {
    let items = context.reader.list(node, "a list of rules to drop").unwrap_or_default();
    let lift = |item: &YamlNode| {
        let section = context.section(item, "a dropped rule", &LIFT)?;
        let id = context.reader.required(&section, "id", "a dropped rule")?;
        let because = context.reader.required(&section, "because", "a dropped rule")?;
        let (id, source) = (context.id(id)?, context.source(id));
        let inherited = context.is_underlying(&source.span);
        Some(DroppedRule { id, source, because: context.reader.line(because)?, inherited })
    };
    items.iter().filter_map(lift).collect()
}

fn rule(context: &mut Context<'_>, node: &YamlNode) -> Option<HardDenyRule> {
    let section = context.section_for_base(node, "a `never` rule", (&NEVER, &BASE_NEVER))?;
    let id = context.reader.required(&section, "id", "a `never` rule");
    let source = context.source(id.unwrap_or(node));
    let id = id.and_then(|node| context.id(node));
    let capabilities = match section.get("capabilities") {
        Some(node) => context.capabilities(node),
        None => Capability::ALL.into_iter().collect(),
    };
    let [paths, except] = [("paths", "listed"), ("except", "except_listed")].map(|(text, list)| {
        let item = section.get(text).map(|node| context.paths(node)).unwrap_or_default();
        let list = section.get(list).map(|node| listed(context, node)).unwrap_or_default();
        [item, list].concat()
    });
    let new = section.get("new").and_then(|node| context.reader.boolean(node)).unwrap_or_default();
    let tool = section.get("tool").and_then(|node| tool(context, node));
    let argv = section.get("argv").map(|node| command_lines(context, node)).unwrap_or_default();
    let effects = section.get("effects").map(|node| effects_of(context, node)).unwrap_or_default();
    let into = section.get("into").map(|node| effects_of(context, node)).unwrap_or_default();
    let nothing = paths.is_empty() && argv.is_empty() && effects.is_empty() && tool.is_none();
    if nothing && context.reader.problems.is_empty() {
        let message =
            "the rule names no `paths`, `argv`, `effects` or `tool`, so it forbids nothing";
        context.error(Code::PolicyMissingKey, node, message);
    }
    let because = text(context, &section, "because");
    let suggest = text(context, &section, "suggest");
    let mut rule = HardDenyRule::named(id?, source);
    (rule.capabilities, rule.paths, rule.except, rule.new) = (capabilities, paths, except, new);
    (rule.tool, rule.argv, rule.effects, rule.into) = (tool, argv, effects, into);
    (rule.because, rule.suggest) = (because, suggest);
    Some(rule)
}

/// The patterns of a list that comes with the program.
fn listed(context: &mut Context<'_>, node: &YamlNode) -> Vec<PathPattern> {
    let word = context.reader.keyword(node, &LISTS.map(|(name, _)| name));
    let list = LISTS.iter().find(|(name, _)| Some(*name) == word);
    let source = context.source(node);
    let patterns = list.into_iter().flat_map(|(_, patterns)| *patterns);
    patterns.filter_map(|pattern| PathPattern::parse(pattern, source.clone(), "").ok()).collect()
}

/// A list of what commands can do.
fn effects_of(context: &mut Context<'_>, node: &YamlNode) -> Effects {
    let names = Effect::ALL.map(Effect::name);
    let items = context.reader.list(node, "a list of effects").unwrap_or_default();
    let words = items.iter().filter_map(|item| context.reader.keyword(item, &names));
    words.filter_map(Effect::from_word).collect()
}

fn tool(context: &mut Context<'_>, node: &YamlNode) -> Option<ToolName> {
    let name = context.reader.text(node)?;
    match context.tools.find(name) {
        Some(signature) => Some(ToolName::unchecked(signature.id)),
        None => {
            let message = format!("there is no tool `{}`", capsule_base::escape::line(name));
            context.error(Code::PolicyValue, node, message);
            None
        }
    }
}

fn command_lines(context: &mut Context<'_>, node: &YamlNode) -> Vec<ArgvPattern> {
    let items = context.reader.list(node, "a list of command lines").unwrap_or_default();
    items.iter().filter_map(|item| command_line(context, item)).collect()
}

/// One command line: `[git, remote, { any: [add, set-url] }]`; `...` stands for any words.
fn command_line(context: &mut Context<'_>, node: &YamlNode) -> Option<ArgvPattern> {
    let items = context.reader.list(node, "a command line as a list of words")?;
    let mut pattern =
        ArgvPattern { source: context.source(node), arguments: Vec::new(), flags: Vec::new() };
    for item in items {
        match item.text() {
            Some("...") => pattern.arguments.push(ArgumentPattern::Gap),
            Some(flag) if flag.starts_with('-') => pattern.flags.push(flag.to_string()),
            _ => pattern.arguments.push(ArgumentPattern::Any(word(context, item)?)),
        }
    }
    if !matches!(pattern.arguments.first(), Some(ArgumentPattern::Any(_))) {
        context.error(Code::PolicyType, node, "a command line begins with its program");
        return None;
    }
    Some(pattern)
}

fn word(context: &mut Context<'_>, node: &YamlNode) -> Option<Vec<TokenMatcher>> {
    if let Some(text) = node.text() {
        return Some(alloc::vec![TokenMatcher::Exact(text.to_string())]);
    }
    let section = context.section(node, "a word pattern", &ANY_WORD)?;
    if let Some(regex) = section.get("regex") {
        return exec::regex(context, regex).map(|regex| alloc::vec![TokenMatcher::Regex(regex)]);
    }
    let any = context.reader.required(&section, "any", "a word pattern")?;
    let words = context.reader.lines(any, "a list of words");
    Some(words.into_iter().map(|(word, _)| TokenMatcher::Exact(word)).collect())
}
