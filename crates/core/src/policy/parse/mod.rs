//! Reads the policy language: version 1.
//!
//! Keys that the language has and this build does not enforce yet are known and refused; keys that
//! it does not have are errors with a suggestion. Nothing is ignored.

mod approval;
mod audit;
mod exec;
mod fetch;
mod files;
mod layer;
mod narrow;
mod never;
mod profiles;
mod sandbox;
mod secrets;
mod silence;
mod stakes;
mod tests;
mod tighten;
mod tool;

pub(super) use tighten::layer;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::confinement::WorkspaceAccess;
use crate::diagnostic::{Diagnostic, Diagnostics, Lines, Position};
use crate::digest::Digest;
use crate::limits;
use crate::policy::audit::Payloads;
use crate::policy::base;
use crate::policy::foreign;
use crate::policy::layer::LayerKind;
use crate::policy::model::{Constraint, Policy, Source, ToolRule};
use crate::policy::patterns::PathPattern;
use crate::policy::stakes::{Hazard, Stakes};
use crate::tool::{Catalogue, ToolName};
use crate::yaml::{self, Dialect, Key, Node, Reader, Section, key};

/// The codes of the policy language.
pub static DIALECT: Dialect = Dialect {
    syntax: Code::PolicySyntax,
    yaml: Code::PolicyYaml,
    duplicate_key: Code::PolicyDuplicateKey,
    unknown_key: Code::PolicyUnknownKey,
    not_yet: Code::PolicyNotYetSupported,
    missing_key: Code::PolicyMissingKey,
    wrong_type: Code::PolicyType,
    unknown_value: Code::PolicyValue,
    unit: Code::PolicyUnit,
};

const TOP: &[Key] = &[
    key("version"),
    key("name"),
    key("description"),
    key("extends"),
    key(LayerKind::KEY),
    key("workspace"),
    key("default"),
    key("never"),
    key("lift"),
    key("tools"),
    key("sandbox"),
    key("audit"),
    key("profile"),
    key("profiles"),
    key("capabilities"),
    key("risk"),
    key("budgets"),
    key("tests"),
    key("grants"),
    key("composites"),
    key("secrets"),
    key("redaction"),
];
/// The base policy has two sections more: what it denies, and what it has a person asked about, unless the
/// user's own policy lifts it.
const BASE_ONLY: [Key; 2] = [key("deny"), key("ask")];

/// What every part of the parser needs.
struct Context<'c> {
    reader: Reader,
    lines: Lines<'c>,
    name: &'c str,
    home: &'c str,
    tools: Catalogue,
    /// The texts that it is laid over, whose places are counted behind the end of its own.
    beneath: Vec<Beneath<'c>>,
    /// Whose layer it is, if it is one.
    layer: Option<LayerKind>,
}

/// A text that another one is laid over.
struct Beneath<'c> {
    /// Where its places begin.
    start: usize,
    lines: Lines<'c>,
    name: &'c str,
}

/// The text of a policy that another one extends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under<'u> {
    /// How its place is shown.
    pub(super) name: &'u str,
    /// The text.
    pub(super) text: &'u str,
}

/// Where the text of an extended policy is found by the name that `extends` has for it.
pub(super) type Layers<'u> = &'u dyn Fn(&'static str) -> Option<Under<'u>>;

/// What was read of a policy.
pub(super) struct Parsed<'u> {
    pub(super) policy: Option<Policy>,
    pub(super) problems: Diagnostics,
    /// What it extends, and where it says so.
    pub(super) under: Option<(Under<'u>, Range<usize>)>,
}

impl Parsed<'_> {
    fn wrong(problem: Diagnostic) -> Self {
        Self { policy: None, problems: alloc::vec![problem], under: None }
    }
}

impl<'c> Context<'c> {
    fn of(text: &'c str, name: &'c str, home: &'c str, tools: Catalogue) -> Self {
        let (reader, lines) = (Reader::new(&DIALECT), Lines::of(text));
        Self { reader, lines, name, home, tools, beneath: Vec::new(), layer: None }
    }

    fn source(&self, node: &Node) -> Source {
        self.source_at(node.span.clone())
    }

    fn source_at(&self, span: Range<usize>) -> Source {
        let (lines, name, start) = match self.beneath.iter().rfind(|own| span.start >= own.start) {
            Some(own) => (&own.lines, own.name, span.start - own.start),
            None => (&self.lines, self.name, span.start),
        };
        let Position { line, column } = lines.position(start);
        Source { at: format!("{name}:{line}:{column}"), span }
    }

    /// Whether a place is in a text that this one is laid over.
    fn is_beneath(&self, span: &Range<usize>) -> bool {
        span.start > self.lines.text().len()
    }

    /// Lays a tree where its text stands behind those before it.
    fn lay_beneath(&mut self, tree: &mut Node, text: Under<'c>) {
        let last = self.beneath.last();
        let end = last.map_or(self.lines.text().len(), |own| own.start + own.lines.text().len());
        let start = end + 1;
        layer::shift(tree, start);
        self.beneath.push(Beneath { start, lines: Lines::of(text.text), name: text.name });
    }

    fn error(&mut self, code: Code, node: &Node, message: impl Into<String>) {
        self.reader.problem(Diagnostic::error(code, node.span.clone(), message));
    }

    /// A list of patterns for paths.
    fn paths(&mut self, node: &Node) -> Vec<PathPattern> {
        let items = self.reader.list(node, "a list of patterns").unwrap_or_default();
        let mut patterns = Vec::new();
        for item in items {
            let Some(text) = self.reader.text(item) else { continue };
            let pattern = foreign::check(text).and_then(|()| {
                PathPattern::parse(text, self.source(item), self.home)
                    .map_err(|error| foreign::Refused::by_glob(text, error))
            });
            match pattern {
                Ok(pattern) => patterns.push(pattern),
                Err(foreign::Refused { why, hint }) => {
                    let problem = Diagnostic::error(Code::PolicyGlob, item.span.clone(), why);
                    self.reader.problem(hint.into_iter().fold(problem, Diagnostic::hint));
                }
            }
        }
        patterns
    }

    /// A list of capabilities.
    fn capabilities(&mut self, node: &Node) -> Capabilities {
        let names = Capability::ALL.map(Capability::name);
        let items = self.reader.list(node, "a list of capabilities").unwrap_or_default();
        let words = items.iter().filter_map(|item| self.reader.word(item, &names));
        words.filter_map(Capability::from_name).collect()
    }

    /// The name of a rule: letters, digits, dashes and dots.
    fn id(&mut self, node: &Node) -> Option<String> {
        let text = self.reader.name(node)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() || !text.chars().all(plain) {
            self.error(Code::PolicyType, node, "an id has letters, digits, `-`, `_` and `.`");
            return None;
        }
        Some(text)
    }
}

/// The tree of a text.
fn read(text: &str) -> Result<Node, Diagnostic> {
    if text.len() > limits::POLICY_BYTES {
        let message = format!("{} bytes; at most {} are read", text.len(), limits::POLICY_BYTES);
        return Err(Diagnostic::error(Code::PolicyUnreadable, 0..0, message));
    }
    match yaml::parse(text, &DIALECT)? {
        Some(root) if !root.is_null() => Ok(root),
        _ => {
            let problem = Diagnostic::error(Code::PolicyEmpty, 0..0, "the policy is empty");
            Err(problem.hint("start from `version: 1` and `tools:`"))
        }
    }
}

/// Reads a policy; gives what could be read, and every problem.
pub(super) fn policy<'u>(
    text: &str,
    name: &str,
    home: &str,
    tools: Catalogue,
    layers: Layers<'u>,
) -> Parsed<'u> {
    let root = match read(text) {
        Ok(root) => root,
        Err(problem) => return Parsed::wrong(problem),
    };
    let mut context = Context::of(text, name, home, tools);
    let under = extended(&mut context, &root, layers);
    let root = match &under {
        Some((under, at)) => laid_over(&mut context, root, *under, at),
        None => root,
    };
    let policy = top(&mut context, &root, under.as_ref().map(|(under, _)| *under));
    let mut problems = context.reader.problems;
    if let Some((under, at)) = &under {
        problems.iter_mut().for_each(|problem| ground(problem, text.len(), under.name, at));
    }
    problems.sort_by_key(|problem| problem.span.start);
    Parsed { policy, problems, under }
}

/// The policies that can be extended. The base policy always applies, and is named only so that a
/// reader sees it.
const EXTENDED: [(&str, Option<&str>); 8] = [
    ("builtin:base", None),
    ("builtin:base@1", None),
    ("builtin:developer", Some("builtin:developer")),
    ("builtin:developer@1", Some("builtin:developer")),
    ("builtin:readonly", Some("builtin:readonly")),
    ("builtin:readonly@1", Some("builtin:readonly")),
    ("builtin:assistant", Some("builtin:assistant")),
    ("builtin:assistant@1", Some("builtin:assistant")),
];

/// What the policy extends, and where it says so.
fn extended<'u>(
    context: &mut Context<'_>,
    root: &Node,
    layers: Layers<'u>,
) -> Option<(Under<'u>, Range<usize>)> {
    let node = root.get("extends")?;
    let word = context.reader.word(node, &EXTENDED.map(|(word, _)| word))?;
    let (_, name) = EXTENDED.iter().find(|(own, _)| *own == word)?;
    let found = layers((*name)?);
    if found.is_none() {
        context.error(Code::PolicyUnreadable, node, "the policy that is extended is not there");
    }
    Some((found?, node.span.clone()))
}

/// The tree of the policy over that of the one that it extends.
fn laid_over<'c>(
    context: &mut Context<'c>,
    root: Node,
    under: Under<'c>,
    at: &Range<usize>,
) -> Node {
    match yaml::parse(under.text, &DIALECT) {
        Ok(Some(mut tree)) => {
            context.lay_beneath(&mut tree, under);
            let mut root = root;
            silence::by_one_name(&mut root, context.tools);
            silence::by_one_name(&mut tree, context.tools);
            layer::over(root, tree)
        }
        _ => {
            let message = format!("`{}` cannot be read", under.name);
            let problem = Diagnostic::error(Code::PolicyUnreadable, at.clone(), message);
            context.reader.problem(problem);
            root
        }
    }
}

/// A problem that stands in the text which is extended is shown where the policy says so.
pub(super) fn ground(problem: &mut Diagnostic, own: usize, name: &str, at: &Range<usize>) {
    if problem.span.start > own {
        problem.span = at.clone();
        problem.message = format!("what `{name}` hands on: {}", problem.message);
    }
}

const NOT_KEPT: &str =
    "staged changes are applied from the record, which this policy does not keep";

fn top(context: &mut Context<'_>, root: &Node, under: Option<Under<'_>>) -> Option<Policy> {
    let mut keys = TOP.to_vec();
    if context.name == base::NAME {
        keys.extend(BASE_ONLY);
    }
    let section = context.reader.section(root, "a policy", &keys)?;
    version(context, &section);
    tighten::mark(context, &section);
    // Version 1 knows only this one; it is written out so that a reader sees it.
    let _default = section.get("default").and_then(|node| context.reader.word(node, &["deny"]));
    let named = section.get("name").and_then(|node| context.reader.name(node));
    let description = section.get("description").and_then(|node| context.reader.text(node));
    let [never, base_denials, base_questions] = ["never", "deny", "ask"]
        .map(|key| section.get(key).map(|node| never::rules(context, node)).unwrap_or_default());
    let tools = section.get("tools").map(|node| tools(context, node)).unwrap_or_default();
    let writes: Vec<&PathPattern> = tools.values().flat_map(ToolRule::writes).collect();
    let sandbox = sandbox::rule(context, section.get("sandbox"), !writes.is_empty());
    if sandbox.workspace == WorkspaceAccess::Direct {
        places(context, &writes);
    }
    let audit = section.get("audit").map(|node| audit::rule(context, node)).unwrap_or_default();
    if let (WorkspaceAccess::Staged, Payloads::Digest) = (sandbox.workspace, audit.payloads) {
        context.error(Code::PolicyValue, section.get("audit").unwrap_or(root), NOT_KEPT);
    }
    let profiles = section.get("profiles").map(|own| profiles::profiles(context, own));
    let profiles = profiles.unwrap_or_default();
    let profile = profiles::in_force(context, section.get("profile"), &profiles);
    let stakes = stakes::stakes(context, &section);
    pins(context, &tools, &stakes);
    let composites = section.get("composites").map(|own| approval::composites(context, own));
    let tests = section.get("tests").map(|own| tests::tests(context, own, &profiles));
    Some(Policy {
        name: named.unwrap_or_else(|| context.name.to_string()),
        description: description.map(ToString::to_string),
        root: section.get("workspace").and_then(|node| workspace(context, node)),
        never,
        base_denials,
        base_questions,
        lifts: section.get("lift").map(|node| never::lifts(context, node)).unwrap_or_default(),
        secrets: secrets::secrets(context, section.get("secrets"), &tools),
        tools,
        profile,
        profiles,
        stakes,
        budgets: section
            .get("budgets")
            .map(|own| stakes::budgets(context, own))
            .unwrap_or_default(),
        grants: section.get("grants").map(|own| approval::grants(context, own)).unwrap_or_default(),
        composites: composites.unwrap_or_default(),
        tests: tests.unwrap_or_default(),
        sandbox,
        redaction: secrets::redaction(context, section.get("redaction")),
        audit,
        layers: Vec::new(),
        digest: Digest::of(context.lines.text().as_bytes()),
        under: under.map(|under| Digest::of(under.text.as_bytes())),
    })
}

/// A pin that nothing looks at would be worse than none.
fn pins(context: &mut Context<'_>, tools: &BTreeMap<ToolName, ToolRule>, stakes: &Stakes) {
    if stakes.raised(Hazard::ExecutableChanged).is_some() {
        return;
    }
    for rule in tools.values() {
        let Constraint::Exec(exec) = &rule.constraint else { continue };
        for program in exec.programs.iter().filter(|own| own.sha256.is_some()) {
            let message =
                format!("`{}` is pinned, and a changed program raises no risk", program.name);
            let at = program.source.span.clone();
            let problem = Diagnostic::error(Code::PolicyValue, at, message);
            let hint = "name `executable-changed` under `risk.escalate`";
            context.reader.problem(problem.hint(hint));
        }
    }
}

/// What only mounts can bound must be places.
fn places(context: &mut Context<'_>, writes: &[&PathPattern]) {
    // What the policy beneath a layer names counts by itself.
    let counts =
        |own: &PathPattern| context.layer.is_none() || !context.is_beneath(&own.source.span);
    let loose: Vec<_> = writes.iter().filter(|own| !own.is_place() && counts(own)).collect();
    for pattern in loose {
        let message =
            format!("`{}` names no one place, which is all that `direct` can bound", pattern.text);
        let problem = Diagnostic::error(Code::PolicyGlob, pattern.source.span.clone(), message);
        context.reader.problem(
            problem.hint("name a file, or a folder as in `out/**`; or use `workspace: staged`"),
        );
    }
}

fn version(context: &mut Context<'_>, section: &Section<'_>) {
    let problem = match section.get("version") {
        Some(node) if node.text() == Some("1") => return,
        Some(node) => Diagnostic::error(
            Code::PolicyVersion,
            node.span.clone(),
            "this build knows version 1 of the policy language",
        ),
        None => Diagnostic::error(
            Code::PolicyVersion,
            section.span.clone(),
            "the policy does not say which version of the language it is written in",
        ),
    };
    context.reader.problem(problem.hint("write `version: 1`"));
}

fn workspace(context: &mut Context<'_>, node: &Node) -> Option<String> {
    let section = context.reader.section(node, "`workspace`", &[key("root")])?;
    let root = context.reader.need(&section, "root", "`workspace`")?;
    context.reader.line(root)
}

fn tools(context: &mut Context<'_>, node: &Node) -> BTreeMap<ToolName, ToolRule> {
    let mut rules = BTreeMap::new();
    let Some(section) = context.reader.map(node, "`tools`") else { return rules };
    for (name, at, node) in section.entries() {
        let Some(signature) = context.tools.find(name) else {
            context.reader.problem(unknown_tool(name, at, context.tools));
            continue;
        };
        let Some(rule) = tool::rule(context, signature, at, node) else { continue };
        if rules.insert(ToolName::asked(signature.id), rule).is_some() {
            let message = format!("`{}` is named twice, once by another name", signature.id);
            context.error(Code::PolicyDuplicateKey, at, message);
        }
    }
    rules
}

fn unknown_tool(name: &str, at: &Node, tools: Catalogue) -> Diagnostic {
    let not_yet = ["user.ask"];
    if not_yet.contains(&name) || name.starts_with("mcp:") {
        let message = format!("this build has no tool `{name}` yet, so a rule for it is refused");
        return Diagnostic::error(Code::PolicyNotYetSupported, at.span.clone(), message);
    }
    let message = format!("there is no tool `{}`", crate::escape::line(name));
    let problem = Diagnostic::error(Code::PolicyUnknownKey, at.span.clone(), message);
    match tools.closest(name) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem,
    }
}
