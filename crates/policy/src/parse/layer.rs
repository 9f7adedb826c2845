//! Reads a layer: a text that tightens a policy.
//!
//! It is read over that policy's own text, so that it can name a part of it (`git: commit: deny`)
//! without saying the rest again; what it does not say it does not judge. ADR 23 says why.

use alloc::format;

use crate::parse::context::{Context, ExtendedText};
use crate::parse::layer_defaults::{self, entries};
use crate::parse::overlay::{self, VERDICT_MAPS};
use crate::parse::{ParsedPolicy, parse_tree, read_policy, relocate_problem};
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::limits;
use capsule_base::yaml::{self, POLICY_DIALECT, YamlNode, YamlValue};
use capsule_core::policy::LayerKind;
use capsule_core::tool::Catalogue;
use capsule_redact::excerpt;

/// The sections that a layer may have. What else there is says whose policy it is, or what is
/// recorded, or what is dropped: none of that tightens anything.
const SECTIONS: &[&str] = &[
    "version",
    LayerKind::KEY,
    "name",
    "description",
    "default",
    "never",
    "tools",
    "sandbox",
    "profile",
    "profiles",
    "capabilities",
    "risk",
    "budgets",
    "redaction",
    "tests",
];
/// Reads a layer over a policy, and over what that one extends.
pub(crate) fn parse_layer<'u>(
    (text, name): (&'u str, &'u str),
    kind: LayerKind,
    (base, extended): (ExtendedText<'u>, Option<ExtendedText<'u>>),
    home: &'u str,
    tools: Catalogue,
) -> ParsedPolicy<'u> {
    let root = match parse_tree(text) {
        Ok(root) => root,
        Err(problem) => return ParsedPolicy::failed(problem),
    };
    let mut context = Context::of(text, name, home, tools);
    context.layer = Some(kind);
    refuse_unsupported(&mut context, &root);
    let at = root.get(LayerKind::KEY).map_or(0..0, |node| node.span.clone());
    let Some(tree) = underlying_tree(&mut context, base, extended) else {
        let message = format!("`{}` cannot be read", base.name);
        return ParsedPolicy::failed(Diagnostic::error(Code::PolicyUnreadable, at, message));
    };
    let (mut root, mut tree) = (root, layer_defaults::with_mildest_verdicts(tree));
    layer_defaults::normalize_tool_names(&mut root, tools);
    layer_defaults::normalize_tool_names(&mut tree, tools);
    layer_defaults::fit_layer(&mut root, &mut tree);
    if kind == LayerKind::Workspace {
        attribute_reasons("", &mut root);
    }
    let mut root = overlay::merge(root, tree);
    layer_defaults::raise_verdicts(&mut root, text.len());
    let policy = read_policy(&mut context, &root, None);
    let mut problems = context.reader.problems;
    problems.iter_mut().for_each(|problem| relocate_problem(problem, text.len(), base.name, &at));
    problems.sort_by_key(|problem| problem.span.start);
    ParsedPolicy { policy, problems, extended: None }
}

/// Notes what a layer may not say: what no layer could tighten by it.
fn refuse_unsupported(context: &mut Context<'_>, root: &YamlNode) {
    for (key, _) in entries(root) {
        if !SECTIONS.contains(&key.text().unwrap_or("")) {
            refuse(context, key);
        }
    }
    for (_, capability) in root.get("capabilities").into_iter().flat_map(entries) {
        refuse_in(context, capability, &["label"]);
    }
    if let Some(budgets) = root.get("budgets") {
        refuse_in(context, budgets, &["attention"]);
    }
    for (_, tool) in root.get("tools").into_iter().flat_map(entries) {
        refuse_in(context, tool, &["command", "cwd", "filter"]);
        if let Some(env) = tool.get("env") {
            refuse_in(context, env, &["set"]);
        }
        for (_, program) in tool.get("executables").into_iter().flat_map(entries) {
            refuse_in(context, program, &["path"]);
        }
    }
}

fn refuse_in(context: &mut Context<'_>, map: &YamlNode, names: &[&str]) {
    for (key, _) in
        entries(map).iter().filter(|(key, _)| key.text().is_some_and(|text| names.contains(&text)))
    {
        refuse(context, key);
    }
}

fn refuse(context: &mut Context<'_>, key: &YamlNode) {
    let name = capsule_base::escape::line(key.text().unwrap_or("")).into_owned();
    let message = format!("a layer only tightens, so it has no `{name}`");
    let problem = Diagnostic::error(Code::PolicyLayer, key.span.clone(), message);
    context.reader.problem(problem.hint("leave it to the policy that the layer tightens"));
}

/// The tree that the layer is laid over, behind the end of its text.
fn underlying_tree<'u>(
    context: &mut Context<'u>,
    text: ExtendedText<'u>,
    extended: Option<ExtendedText<'u>>,
) -> Option<YamlNode> {
    let mut tree = parse_tree(text.text).ok()?;
    context.append_underlying(&mut tree, text);
    let Some(extended) = extended else { return Some(tree) };
    let mut under = parse_tree(extended.text).ok()?;
    context.append_underlying(&mut under, extended);
    Some(overlay::merge(tree, under))
}

/// What came with the workspace does not speak in the user's name: whoever is refused is told who
/// says so, and not at any length.
fn attribute_reasons(name: &str, node: &mut YamlNode) {
    match &mut node.value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(items) => items.iter_mut().for_each(|item| attribute_reasons("", item)),
        YamlValue::Map(entries) => {
            let are_names = VERDICT_MAPS.contains(&name);
            for (key, value) in entries {
                let name = if are_names { "" } else { key.text().unwrap_or("") };
                let says = match name {
                    "because" => "the workspace says",
                    "suggest" => "the workspace suggests",
                    "tests" | "examples" => continue,
                    _ => {
                        attribute_reasons(name, value);
                        continue;
                    }
                };
                if let YamlValue::Scalar(scalar) = &mut value.value {
                    scalar.text =
                        format!("{says}: {}", excerpt(scalar.text.trim(), limits::QUOTED_CHARS));
                }
            }
        }
    }
}

/// Whether a text says of itself that it is a layer.
///
/// # Errors
/// When it cannot be read, so that nobody can tell.
pub fn is_layer(text: &str) -> Result<bool, Diagnostic> {
    let root = yaml::parse(text, &POLICY_DIALECT)?;
    Ok(root.is_some_and(|root| root.get(LayerKind::KEY).is_some()))
}
