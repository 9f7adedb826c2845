//! Reads the policy language: version 1.
//!
//! Keys that the language has and this build does not enforce yet are known and refused; keys that
//! it does not have are errors with a suggestion. Nothing is ignored.

mod approval;
mod audit;
mod context;
mod exec;
mod fetch;
mod files;
mod git_and_tests;
mod hard_deny;
mod layer;
mod layer_defaults;
mod overlay;
mod policy_tests;
mod profiles;
mod risk;
mod rule_value;
mod sandbox;
mod secrets;
mod tool;

pub(super) use context::ExtendedText;
pub use layer::is_layer;
pub(super) use layer::parse_layer;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::language::{BASE_POLICY, POLICY, WORKSPACE};
use crate::parse::context::Context;
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::yaml::{self, POLICY_DIALECT, Section, YamlNode};
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::policy::LayerKind;
use capsule_core::policy::PathPattern;
use capsule_core::policy::{AuditRule, PayloadRetention};
use capsule_core::policy::{
    Constraint, HostRules, PolicyRules, SandboxRule, ToolRule, UnboundPolicy,
};
use capsule_core::policy::{Hazard, RiskPolicy};
use capsule_core::tool::{Catalogue, ToolName};

/// Where the text of an extended policy is found by the name that `extends` has for it.
pub(super) type ExtendedLookup<'u> = &'u dyn Fn(&'static str) -> Option<ExtendedText<'u>>;

/// What was read of a policy.
pub(super) struct ParsedPolicy<'u> {
    pub(super) policy: Option<UnboundPolicy>,
    pub(super) problems: Diagnostics,
    /// What it extends, and where it says so.
    pub(super) extended: Option<(ExtendedText<'u>, Range<usize>)>,
}

impl ParsedPolicy<'_> {
    fn failed(problem: Diagnostic) -> Self {
        Self { policy: None, problems: alloc::vec![problem], extended: None }
    }
}

/// The tree of a text.
fn parse_tree(text: &str) -> Result<YamlNode, Diagnostic> {
    if text.len() > limits::POLICY_BYTES {
        let message = format!("{} bytes; at most {} are read", text.len(), limits::POLICY_BYTES);
        return Err(Diagnostic::error(Code::PolicyUnreadable, 0..0, message));
    }
    match yaml::parse(text, &POLICY_DIALECT)? {
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
    layers: ExtendedLookup<'u>,
) -> ParsedPolicy<'u> {
    let root = match parse_tree(text) {
        Ok(root) => root,
        Err(problem) => return ParsedPolicy::failed(problem),
    };
    let mut context = Context::of(text, name, home, tools);
    let under = extended(&mut context, &root, layers);
    let root = match &under {
        Some((under, at)) => overlay_on(&mut context, root, *under, at),
        None => root,
    };
    let policy = read_policy(&mut context, &root, under.as_ref().map(|(under, _)| *under));
    let mut problems = context.reader.problems;
    if let Some((under, at)) = &under {
        problems
            .iter_mut()
            .for_each(|problem| relocate_problem(problem, text.len(), under.name, at));
    }
    problems.sort_by_key(|problem| problem.span.start);
    ParsedPolicy { policy, problems, extended: under }
}

/// The policies that can be extended. The base policy always applies, and is named only so that a
/// reader sees it.
const EXTENDABLE: [(&str, Option<&str>); 8] = [
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
    root: &YamlNode,
    layers: ExtendedLookup<'u>,
) -> Option<(ExtendedText<'u>, Range<usize>)> {
    let node = root.get("extends")?;
    let word = context.reader.keyword(node, &EXTENDABLE.map(|(word, _)| word))?;
    let (_, name) = EXTENDABLE.iter().find(|(text, _)| *text == word)?;
    let found = layers((*name)?);
    if found.is_none() {
        context.error(Code::PolicyUnreadable, node, "the policy that is extended is not there");
    }
    Some((found?, node.span.clone()))
}

/// The tree of the policy over that of the one that it extends.
fn overlay_on<'c>(
    context: &mut Context<'c>,
    root: YamlNode,
    under: ExtendedText<'c>,
    at: &Range<usize>,
) -> YamlNode {
    match yaml::parse(under.text, &POLICY_DIALECT) {
        Ok(Some(mut tree)) => {
            context.append_underlying(&mut tree, under);
            let mut root = root;
            layer_defaults::normalize_tool_names(&mut root, context.tools);
            layer_defaults::normalize_tool_names(&mut tree, context.tools);
            overlay::merge(root, tree)
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
pub(super) fn relocate_problem(
    problem: &mut Diagnostic,
    number: usize,
    name: &str,
    at: &Range<usize>,
) {
    if problem.span.start > number {
        problem.span = at.clone();
        problem.message = format!("what `{name}` hands on: {}", problem.message);
    }
}

const NOT_KEPT: &str =
    "staged changes are applied from the record, which this policy does not keep";

fn read_policy(
    context: &mut Context<'_>,
    root: &YamlNode,
    under: Option<ExtendedText<'_>>,
) -> Option<UnboundPolicy> {
    let section = context.section_for_base(root, "a policy", (&POLICY, &BASE_POLICY))?;
    version(context, &section);
    check_layer_key(context, &section);
    // Version 1 knows only this one; it is written out so that a reader sees it.
    let _default = section.get("default").and_then(|node| context.reader.keyword(node, &["deny"]));
    let named = section.get("name").and_then(|node| context.reader.name(node));
    let description = section.get("description").and_then(|node| context.reader.text(node));
    let [hard_denies, base_denials, base_questions] =
        ["never", "deny", "ask"].map(|key| read_key(context, &section, key, hard_deny::rules));
    let tools = read_key(context, &section, "tools", tools);
    let (sandbox, hosts, audit) = read_sandbox_and_audit(context, root, &section, &tools);
    let profiles = read_key(context, &section, "profiles", profiles::profiles);
    let profile = profiles::in_force(context, section.get("profile"), &profiles);
    let risk_policy = risk::risk_policy(context, &section);
    check_pins(context, &tools, &risk_policy);
    let approves_plans = read_key(context, &section, "composites", approval::composites);
    let tests = section.get("tests").map(|node| policy_tests::tests(context, node, &profiles));
    let rules = PolicyRules {
        name: named.unwrap_or_else(|| context.name.to_string()),
        description: description.map(ToString::to_string),
        root: section.get("workspace").and_then(|node| workspace(context, node)),
        hard_denies,
        base_denials,
        base_questions,
        dropped_rules: read_key(context, &section, "lift", hard_deny::dropped_rules),
        secrets: secrets::secrets(context, section.get("secrets"), &tools),
        tools,
        profile,
        profiles,
        risk_policy,
        budgets: read_key(context, &section, "budgets", risk::budgets),
        grants: read_key(context, &section, "grants", approval::grants),
        approves_plans,
        tests: tests.unwrap_or_default(),
        sandbox,
        hosts,
        toolchains: read_key(context, &section, "toolchains", |context, node| {
            context.reader.lines(node, "a list of toolchains")
        }),
        redaction: secrets::redaction(context, section.get("redaction")),
        audit,
    };
    let digest = Digest::of(context.lines.text().as_bytes());
    let extended_digest = under.map(|under| Digest::of(under.text.as_bytes()));
    Some(UnboundPolicy { rules, digest, extended_digest })
}

/// Reads what stands under a key; the default where the key is not there.
fn read_key<'n, T: Default>(
    context: &mut Context<'_>,
    section: &Section<'n>,
    key: &str,
    read: impl FnOnce(&mut Context<'_>, &'n YamlNode) -> T,
) -> T {
    section.get(key).map(|node| read(context, node)).unwrap_or_default()
}

/// How commands are confined, and what is kept of them; the two have to go together.
fn read_sandbox_and_audit(
    context: &mut Context<'_>,
    root: &YamlNode,
    section: &Section<'_>,
    tools: &BTreeMap<ToolName, ToolRule>,
) -> (SandboxRule, HostRules, AuditRule) {
    let writes: Vec<&PathPattern> = tools.values().flat_map(ToolRule::writes).collect();
    let (sandbox, hosts) = sandbox::rule(context, section.get("sandbox"), !writes.is_empty());
    if sandbox.workspace == WorkspaceAccess::Direct {
        check_literal_writes(context, &writes);
    }
    let audit = section.get("audit").map(|node| audit::rule(context, node)).unwrap_or_default();
    if let (WorkspaceAccess::Staged, PayloadRetention::Digest) = (sandbox.workspace, audit.payloads)
    {
        context.error(Code::PolicyValue, section.get("audit").unwrap_or(root), NOT_KEPT);
    }
    (sandbox, hosts, audit)
}

/// A pin that nothing looks at would be worse than none.
fn check_pins(
    context: &mut Context<'_>,
    tools: &BTreeMap<ToolName, ToolRule>,
    risk_policy: &RiskPolicy,
) {
    if risk_policy.raised_by(Hazard::ExecutableChanged).is_some() {
        return;
    }
    for rule in tools.values() {
        let Constraint::Exec(exec) = &rule.constraint else { continue };
        for program in exec.programs.iter().filter(|program| program.sha256.is_some()) {
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
fn check_literal_writes(context: &mut Context<'_>, writes: &[&PathPattern]) {
    // What the policy beneath a layer names counts by itself.
    let counts =
        |item: &PathPattern| context.layer.is_none() || !context.is_underlying(&item.source.span);
    let loose: Vec<_> =
        writes.iter().filter(|write| !write.is_literal() && counts(write)).collect();
    for pattern in loose {
        let message =
            format!("`{}` names no one place, which is all that `direct` can bound", pattern.text);
        let problem = Diagnostic::error(Code::PolicyGlob, pattern.source.span.clone(), message);
        context.reader.problem(
            problem.hint("name a file, or a folder as in `out/**`; or use `workspace: staged`"),
        );
    }
}

/// Whether a text says that it is a layer where one is read, and of whom it is one.
fn check_layer_key(context: &mut Context<'_>, section: &Section<'_>) {
    let node = section.get(LayerKind::KEY);
    let problem = match (context.layer, node) {
        (None, None) => return,
        (Some(kind), Some(node)) => {
            let word = context.reader.keyword(node, &LayerKind::WORDS);
            let Some(word) = word.filter(|word| *word != kind.keyword()) else { return };
            let message =
                format!("by its place it is a layer of the {}, not `{word}`", kind.keyword());
            let problem = Diagnostic::error(Code::PolicyLayer, node.span.clone(), message);
            problem.hint(format!("write `layer: {}`", kind.keyword()))
        }
        (Some(_), None) => {
            let message = "it does not say that it is a layer";
            Diagnostic::error(Code::PolicyLayer, section.span.clone(), message)
        }
        (None, Some(_)) => {
            let at = section.key_span(LayerKind::KEY);
            let message = "a layer tightens a policy, and is none by itself";
            let hint = "name the policy that it tightens; a layer holds by its place";
            Diagnostic::error(Code::PolicyLayer, at, message).hint(hint)
        }
    };
    context.reader.problem(problem);
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

fn workspace(context: &mut Context<'_>, node: &YamlNode) -> Option<String> {
    let section = context.section(node, "`workspace`", &WORKSPACE)?;
    let root = context.reader.required(&section, "root", "`workspace`")?;
    context.reader.line(root)
}

fn tools(context: &mut Context<'_>, node: &YamlNode) -> BTreeMap<ToolName, ToolRule> {
    let mut rules = BTreeMap::new();
    let Some(section) = context.reader.map(node, "`tools`") else { return rules };
    for (name, at, node) in section.entries() {
        let Some(signature) = context.tools.find(name) else {
            context.reader.problem(unknown_tool(name, at, context.tools));
            continue;
        };
        let Some(rule) = tool::rule(context, signature, at, node) else { continue };
        if rules.insert(ToolName::unchecked(signature.id), rule).is_some() {
            let message = format!("`{}` is named twice, once by another name", signature.id);
            context.error(Code::PolicyDuplicateKey, at, message);
        }
    }
    rules
}

fn unknown_tool(name: &str, at: &YamlNode, tools: Catalogue) -> Diagnostic {
    if name.starts_with("mcp:") {
        let message = format!("this build has no tool `{name}` yet, so a rule for it is refused");
        return Diagnostic::error(Code::PolicyNotYetSupported, at.span.clone(), message);
    }
    let message = format!("there is no tool `{}`", capsule_base::escape::line(name));
    let problem = Diagnostic::error(Code::PolicyUnknownKey, at.span.clone(), message);
    match tools.closest(name) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem,
    }
}
