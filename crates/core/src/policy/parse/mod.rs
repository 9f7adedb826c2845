//! Reads the policy language: version 1.
//!
//! Keys that the language has and this build does not enforce yet are known and refused; keys that
//! it does not have are errors with a suggestion. Nothing is ignored.

mod exec;
mod fetch;
mod files;
mod never;
mod tool;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::code::Code;
use crate::confinement::{Network, Tier, WorkspaceAccess};
use crate::diagnostic::{Diagnostic, Diagnostics, Lines, Position};
use crate::digest::Digest;
use crate::limits;
use crate::policy::base;
use crate::policy::model::{AuditRule, Payloads, Policy, SandboxRule, Source, ToolRule};
use crate::policy::patterns::PathPattern;
use crate::policy::profile::Profile;
use crate::tool::{Catalogue, ToolName};
use crate::yaml::{self, Dialect, Key, Node, Reader, Section, key, later};

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
    key("workspace"),
    key("default"),
    key("never"),
    key("tools"),
    key("sandbox"),
    key("audit"),
    later("profile"),
    later("profiles"),
    later("capabilities"),
    later("risk"),
    later("grants"),
    later("budgets"),
    later("composites"),
    later("lift"),
    later("secrets"),
    later("redaction"),
    later("tests"),
];
/// The base policy has one section more: what it denies unless the user's own policy lifts it.
const BASE_ONLY: Key = key("deny");
const SANDBOX: &[Key] =
    &[key("require"), key("floor"), key("level"), key("network"), key("tmp"), key("workspace")];
const AUDIT: &[Key] =
    &[key("payloads"), later("checkpoint"), later("anchors"), key("erase_payloads_after")];

/// What every part of the parser needs.
struct Context<'c> {
    reader: Reader,
    lines: Lines<'c>,
    name: &'c str,
    home: &'c str,
    tools: Catalogue,
}

impl Context<'_> {
    fn source(&self, node: &Node) -> Source {
        self.source_at(node.span.clone())
    }

    fn source_at(&self, span: core::ops::Range<usize>) -> Source {
        let Position { line, column } = self.lines.position(span.start);
        Source { at: format!("{}:{line}:{column}", self.name), span }
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
            match PathPattern::parse(text, self.source(item), self.home) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => self.error(Code::PolicyGlob, item, format!("{error}")),
            }
        }
        patterns
    }

    /// The name of a rule: letters, digits, dashes and dots.
    fn id(&mut self, node: &Node) -> Option<String> {
        let text = self.reader.line(node)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() || !text.chars().all(plain) {
            self.error(Code::PolicyType, node, "an id has letters, digits, `-`, `_` and `.`");
            return None;
        }
        Some(text)
    }
}

/// Reads a policy; gives what could be read, and every problem.
pub(super) fn policy(
    text: &str,
    name: &str,
    home: &str,
    tools: Catalogue,
) -> (Option<Policy>, Diagnostics) {
    if text.len() > limits::POLICY_BYTES {
        let message = format!("{} bytes; at most {} are read", text.len(), limits::POLICY_BYTES);
        return (None, alloc::vec![Diagnostic::error(Code::PolicyUnreadable, 0..0, message)]);
    }
    let root = match yaml::parse(text, &DIALECT) {
        Ok(Some(root)) if !root.is_null() => root,
        Ok(_) => {
            let problem = Diagnostic::error(Code::PolicyEmpty, 0..0, "the policy is empty");
            let problem = problem.hint("start from `version: 1` and `tools:`");
            return (None, alloc::vec![problem]);
        }
        Err(problem) => return (None, alloc::vec![problem]),
    };
    let lines = Lines::of(text);
    let mut context = Context { reader: Reader::new(&DIALECT), lines, name, home, tools };
    let policy = top(&mut context, &root);
    let mut problems = context.reader.problems;
    problems.sort_by_key(|problem| problem.span.start);
    (policy, problems)
}

fn top(context: &mut Context<'_>, root: &Node) -> Option<Policy> {
    let mut keys = TOP.to_vec();
    if context.name == base::NAME {
        keys.push(BASE_ONLY);
    }
    let section = context.reader.section(root, "a policy", &keys)?;
    version(context, &section);
    if let Some(node) = section.get("extends") {
        context.reader.word(node, &["builtin:base", "builtin:base@1"]);
    }
    if let Some(node) = section.get("default") {
        // Version 1 knows only this one; it is written out so that a reader sees it.
        context.reader.word(node, &["deny"]);
    }
    let named = section.get("name").and_then(|node| context.reader.line(node));
    let description = section.get("description").and_then(|node| context.reader.text(node));
    let never = section.get("never").map(|node| never::rules(context, node)).unwrap_or_default();
    let denials = section.get("deny").map(|node| never::rules(context, node)).unwrap_or_default();
    let tools = section.get("tools").map(|node| tools(context, node)).unwrap_or_default();
    let writes: Vec<&PathPattern> = tools.values().flat_map(ToolRule::writes).collect();
    let sandbox = sandbox(context, section.get("sandbox"), !writes.is_empty());
    if sandbox.workspace == WorkspaceAccess::Direct {
        places(context, &writes);
    }
    let audit = section.get("audit").map(|node| audit(context, node)).unwrap_or_default();
    if let (WorkspaceAccess::Staged, Payloads::Digest) = (sandbox.workspace, audit.payloads) {
        let message = "staged changes are applied from the record, which this policy does not keep";
        context.error(Code::PolicyValue, section.get("audit").unwrap_or(root), message);
    }
    Some(Policy {
        name: named.unwrap_or_else(|| context.name.to_string()),
        description: description.map(ToString::to_string),
        root: section.get("workspace").and_then(|node| workspace(context, node)),
        never,
        base_denials: denials,
        tools,
        profile: Profile::supervised(),
        sandbox,
        audit,
        digest: Digest::of(context.lines.text().as_bytes()),
    })
}

/// What only mounts can bound must be places.
fn places(context: &mut Context<'_>, writes: &[&PathPattern]) {
    for pattern in writes.iter().filter(|own| !own.is_place()) {
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
    let not_yet =
        ["fs.edit", "fs.delete", "git.status", "git.diff", "git.log", "test.run", "user.ask"];
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

fn sandbox(context: &mut Context<'_>, node: Option<&Node>, writes: bool) -> SandboxRule {
    // Where commands may write, their changes are staged unless the policy says otherwise.
    let staged = |writes| if writes { WorkspaceAccess::Staged } else { WorkspaceAccess::ReadOnly };
    let mut rule = SandboxRule {
        floor: Tier::Namespaces,
        network: Network::None,
        workspace: staged(writes),
        writes: false,
    };
    let keys = |node| context.reader.section(node, "`sandbox`", SANDBOX);
    let Some(section) = node.and_then(keys) else { return rule };
    if let Some(node) = section.get("require") {
        context.reader.only(node, "true", &["false"]);
    }
    if let Some(node) = section.get("level") {
        let level = context.reader.word(node, &["strict", "workspace-write"]);
        rule.writes = level == Some("workspace-write");
        rule.workspace = staged(writes || rule.writes);
    }
    if let Some(node) = section.get("floor")
        && context.reader.word(node, &["namespaces", "landlock"]) == Some("landlock")
    {
        rule.floor = Tier::Landlock;
    }
    if let Some(node) = section.get("tmp") {
        context.reader.only(node, "private", &["none"]);
    }
    if let Some(node) = section.get("workspace") {
        match context.reader.word(node, &["staged", "read-only", "direct"]) {
            Some("staged") => rule.workspace = WorkspaceAccess::Staged,
            // Where no command may write, there is nothing to do directly.
            Some("direct") if writes || rule.writes => rule.workspace = WorkspaceAccess::Direct,
            Some("direct") => rule.workspace = WorkspaceAccess::ReadOnly,
            _ if writes || rule.writes => {
                let message =
                    "commands may write by this policy, which a read-only workspace denies";
                context.error(Code::PolicyValue, node, message);
            }
            _ => rule.workspace = WorkspaceAccess::ReadOnly,
        }
    }
    match section.get("network") {
        Some(node) if node.text().is_some() => {
            context.reader.only(node, "none", &["proxy"]);
        }
        Some(node) => {
            let inner = context.reader.section(node, "`network`", &[key("shell.run")]);
            if let Some(node) = inner.and_then(|section| section.get("shell.run")) {
                context.reader.only(node, "none", &["proxy"]);
            }
        }
        None => {}
    }
    rule
}

fn audit(context: &mut Context<'_>, node: &Node) -> AuditRule {
    let mut rule = AuditRule::default();
    let Some(section) = context.reader.section(node, "`audit`", AUDIT) else { return rule };
    if let Some(node) = section.get("payloads")
        && context.reader.word(node, &["full", "digest"]) == Some("digest")
    {
        rule.payloads = Payloads::Digest;
    }
    if let Some(node) = section.get("erase_payloads_after") {
        context.reader.only(node, "never", &[]);
    }
    rule
}
