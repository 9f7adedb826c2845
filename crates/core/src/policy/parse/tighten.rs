//! Reads a layer: a text that tightens a policy.
//!
//! It is read over that policy's own text, so that it can name a part of it (`git: commit: deny`)
//! without saying the rest again; what it does not say it does not judge. ADR 23 says why.

use alloc::format;

use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::policy::layer::LayerKind;
use crate::policy::parse::layer::{self, DECIDED};
use crate::policy::parse::silence::{self, entries};
use crate::policy::parse::{Context, Parsed, Under, ground, read, top};
use crate::tool::Catalogue;
use crate::yaml::{Node, Section, Value};
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
pub(in crate::policy) fn layer<'u>(
    (text, name): (&'u str, &'u str),
    kind: LayerKind,
    (own, extended): (Under<'u>, Option<Under<'u>>),
    home: &'u str,
    tools: Catalogue,
) -> Parsed<'u> {
    let root = match read(text) {
        Ok(root) => root,
        Err(problem) => return Parsed::wrong(problem),
    };
    let mut context = Context::of(text, name, home, tools);
    context.layer = Some(kind);
    allowed(&mut context, &root);
    let at = root.get(LayerKind::KEY).map_or(0..0, |node| node.span.clone());
    let Some(tree) = beneath(&mut context, own, extended) else {
        let message = format!("`{}` cannot be read", own.name);
        return Parsed::wrong(Diagnostic::error(Code::PolicyUnreadable, at, message));
    };
    let (mut root, mut tree) = (root, silence::unspoken(tree));
    silence::by_one_name(&mut root, tools);
    silence::by_one_name(&mut tree, tools);
    silence::fitted(&mut root, &mut tree);
    if kind == LayerKind::Workspace {
        in_its_name("", &mut root);
    }
    let mut root = layer::over(root, tree);
    silence::raised(&mut root, text.len());
    let policy = top(&mut context, &root, None);
    let mut problems = context.reader.problems;
    problems.iter_mut().for_each(|problem| ground(problem, text.len(), own.name, &at));
    problems.sort_by_key(|problem| problem.span.start);
    Parsed { policy, problems, under: None }
}

/// Whether a text says that it is a layer where one is read, and of whom it is one.
pub(super) fn mark(context: &mut Context<'_>, section: &Section<'_>) {
    let node = section.get(LayerKind::KEY);
    let problem = match (context.layer, node) {
        (None, None) => return,
        (Some(kind), Some(node)) => {
            let word = context.reader.word(node, &LayerKind::ALL.map(LayerKind::word));
            let Some(word) = word.filter(|word| *word != kind.word()) else { return };
            let message =
                format!("by its place it is a layer of the {}, not `{word}`", kind.word());
            let problem = Diagnostic::error(Code::PolicyLayer, node.span.clone(), message);
            problem.hint(format!("write `layer: {}`", kind.word()))
        }
        (Some(_), None) => {
            let message = "it does not say that it is a layer";
            Diagnostic::error(Code::PolicyLayer, section.span.clone(), message)
        }
        (None, Some(_)) => {
            let at = section.place(LayerKind::KEY);
            let message = "a layer tightens a policy, and is none by itself";
            let hint = "name the policy that it tightens; a layer holds by its place";
            Diagnostic::error(Code::PolicyLayer, at, message).hint(hint)
        }
    };
    context.reader.problem(problem);
}

/// Notes what a layer may not say: what no layer could tighten by it.
fn allowed(context: &mut Context<'_>, root: &Node) {
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

fn refuse_in(context: &mut Context<'_>, map: &Node, names: &[&str]) {
    for (key, _) in
        entries(map).iter().filter(|(key, _)| key.text().is_some_and(|own| names.contains(&own)))
    {
        refuse(context, key);
    }
}

fn refuse(context: &mut Context<'_>, key: &Node) {
    let name = crate::escape::line(key.text().unwrap_or("")).into_owned();
    let message = format!("a layer only tightens, so it has no `{name}`");
    let problem = Diagnostic::error(Code::PolicyLayer, key.span.clone(), message);
    context.reader.problem(problem.hint("leave it to the policy that the layer tightens"));
}

/// The tree that the layer is laid over, behind the end of its text.
fn beneath<'u>(
    context: &mut Context<'u>,
    own: Under<'u>,
    extended: Option<Under<'u>>,
) -> Option<Node> {
    let mut tree = read(own.text).ok()?;
    context.lay_beneath(&mut tree, own);
    let Some(extended) = extended else { return Some(tree) };
    let mut under = read(extended.text).ok()?;
    context.lay_beneath(&mut under, extended);
    Some(layer::over(tree, under))
}

/// What came with the workspace does not speak in the user's name: whoever is refused is told who
/// says so, and not at any length.
fn in_its_name(name: &str, node: &mut Node) {
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| in_its_name("", item)),
        Value::Map(entries) => {
            let are_names = DECIDED.contains(&name);
            for (key, value) in entries {
                let name = if are_names { "" } else { key.text().unwrap_or("") };
                let says = match name {
                    "because" => "the workspace says",
                    "suggest" => "the workspace suggests",
                    "tests" | "examples" => continue,
                    _ => {
                        in_its_name(name, value);
                        continue;
                    }
                };
                if let Value::Scalar(own) = &mut value.value {
                    own.text =
                        format!("{says}: {}", excerpt(own.text.trim(), limits::QUOTED_CHARS));
                }
            }
        }
    }
}
