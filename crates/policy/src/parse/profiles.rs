//! Reads profiles.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::language::{PROFILE, REQUIRES};
use crate::parse::context::Context;
use crate::parse::rule_value::verdict;
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::suggestion::closest;
use capsule_base::yaml::{KeySpec, Section, YamlNode, key};
use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::policy::{Profile, ProfileRequirements, Unattended};

/// The profiles that a policy defines. One that has the name of a built-in one takes its place.
pub(super) fn profiles(context: &mut Context<'_>, node: &YamlNode) -> Vec<Profile> {
    let Some(map) = context.reader.map(node, "`profiles`") else { return Vec::new() };
    let mut profiles = Vec::new();
    for (_, at, body) in map.entries() {
        let Some(name) = context.id(at) else { continue };
        let what = format!("the profile `{name}`");
        let Some(section) = context.section(body, &what, &PROFILE) else { continue };
        let Some(node) = context.reader.required(&section, "decide", &what) else { continue };
        let (words, rest) = words(context, node);
        profiles.push(Profile {
            name,
            source: Some(context.source(at)),
            verdicts: words,
            default: rest,
            unattended: unattended(context, &section),
            requires: section
                .get("requires")
                .map(|node| requires(context, node))
                .unwrap_or_default(),
        });
    }
    profiles
}

/// A word for each capability; `*` stands for all others, which are denied where it is not there.
fn words(context: &mut Context<'_>, node: &YamlNode) -> (Vec<(Capability, Verdict)>, Verdict) {
    let keys = Capability::WORDS.map(key);
    let keys: Vec<KeySpec> = keys.into_iter().chain([key(Profile::WILDCARD)]).collect();
    let (mut words, mut rest) = (Vec::new(), Verdict::Deny);
    let Some(section) = context.reader.section(node, "`decide`", &keys) else {
        return (words, rest);
    };
    for (name, _, node) in section.entries() {
        match (Capability::from_word(name), verdict(context, node)) {
            (Some(capability), Some(word)) => words.push((capability, word)),
            (None, Some(word)) => rest = word,
            (_, None) => {}
        }
    }
    (words, rest)
}

fn unattended(context: &mut Context<'_>, section: &Section<'_>) -> Unattended {
    let Some(node) = section.get("unattended") else { return Unattended::Deny };
    match context.reader.keyword(node, &["deny", "fail", "wait"]) {
        Some("fail") => Unattended::Fail,
        Some("wait") => Unattended::Wait,
        _ => Unattended::Deny,
    }
}

fn requires(context: &mut Context<'_>, node: &YamlNode) -> ProfileRequirements {
    let section = context.section(node, "`requires`", &REQUIRES);
    let mut wants = |name, word| {
        let node = section.as_ref().and_then(|section| section.get(name));
        node.is_some_and(|node| context.reader.keyword(node, &[word]).is_some())
    };
    ProfileRequirements {
        sandbox: wants("sandbox", "enforced"),
        disposable: wants("workspace", "disposable"),
        isolated: wants("isolated", "yes"),
    }
}

/// The profile that holds where none is chosen. A layer that names none has no opinion.
pub(super) fn in_force(
    context: &mut Context<'_>,
    node: Option<&YamlNode>,
    item: &[Profile],
) -> Profile {
    match (node, context.layer) {
        (Some(node), _) => chosen(context, node, item).unwrap_or_default(),
        (None, Some(_)) => Profile::neutral(),
        (None, None) => Profile::supervised(),
    }
}

fn chosen(context: &mut Context<'_>, node: &YamlNode, item: &[Profile]) -> Option<Profile> {
    let name: String = context.reader.name(node)?;
    let found = item.iter().find(|profile| profile.name == name).cloned();
    // A layer that chooses one says where.
    let source = context.layer.map(|_| context.source(node));
    let found = found.or_else(|| Some(Profile { source, ..Profile::builtin(&name)? }));
    if found.is_none() {
        let message = format!("there is no profile `{name}`");
        let problem = Diagnostic::error(Code::PolicyValue, node.span.clone(), message);
        let names = || item.iter().map(|profile| profile.name.as_str()).chain(Profile::BUILTIN);
        let near = closest(&name, names());
        context.reader.problem(match near {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => {
                let names: Vec<&str> = names().collect();
                problem.hint(format!("there are `{}`", names.join("`, `")))
            }
        });
    }
    found
}
