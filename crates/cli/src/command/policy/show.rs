//! `policy show`: a policy's text, or the policy as it decides.

use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_report::{RuleLine, layer_rules, policy_lines, policy_rules};
use capsule_runtime::{BoundPolicy, LayerText};
use serde_json::{Value, json};

use crate::args::{PolicyArg, PolicyShowArgs};
use crate::command::policy::{policy_layers, policy_texts};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{HINT, Screen};

pub(crate) fn run(args: &PolicyShowArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let policy = args.file.as_ref().or(args.policy.as_ref());
    let chosen = PolicyArg { policy: policy.cloned(), profile: args.profile.clone() };
    let bound = ctx.load_policy(&chosen, None)?;
    if !args.resolved {
        return show_text(&bound, policy.map(String::as_str), screen);
    }
    show_resolved(&bound, screen)
}

/// Every rule that holds: the policy's, then what each layer says.
fn show_resolved(bound: &BoundPolicy, screen: &Screen) -> Result<u8, Failure> {
    let policy = &bound.policy;
    let rules = policy_rules(policy, &policy_texts(bound));
    let layers: Vec<Vec<RuleLine>> =
        policy_layers(bound).map(|(text, layer)| layer_rules(layer, text)).collect();
    if screen.json {
        let told: Vec<Value> = bound.layers.iter().map(layer_json).collect();
        screen.print_json(&json!({
            "schema": 1,
            "policy": policy.name,
            "file": bound.text.name,
            "sha256": Digest::of(bound.text.text.as_bytes()),
            "digest": policy.digest(),
            "workspace": bound.roots.workspace,
            "profile": policy.profile.name,
            "layers": told,
            "rules": rules.iter().chain(layers.iter().flatten()).collect::<Vec<_>>(),
        }))?;
        return Ok(0);
    }
    screen.print_line(&format!(
        "policy {} · {} · with the base policy {}",
        escape::line(&policy.name),
        escape::line(&bound.text.name),
        policy.digest()
    ))?;
    screen.print_lines(&policy_lines(&rules, screen.layout()))?;
    for (layer, rules) in bound.layers.iter().zip(&layers) {
        let LayerText { kind, text, .. } = layer;
        let sha256 = Digest::of(text.text.as_bytes());
        screen.print_line("")?;
        screen.print_line(&format!(
            "layer {} · {} · {sha256}: tightens what stands above",
            kind.keyword(),
            escape::line(&text.name)
        ))?;
        screen.print_lines(&policy_lines(rules, screen.layout()))?;
    }
    Ok(0)
}

/// The text of the policy's own file.
fn show_text(bound: &BoundPolicy, named: Option<&str>, screen: &Screen) -> Result<u8, Failure> {
    let source = &bound.text.text;
    let text = Digest::of(source.as_bytes());
    if screen.json {
        screen.print_json(&json!({
            "schema": 1,
            "policy": bound.policy.name,
            "file": bound.text.name,
            "sha256": text,
            "digest": bound.policy.digest(),
            "text": source,
        }))?;
        return Ok(0);
    }
    // Behind a mark of a comment, so that what is printed is still a policy.
    screen.print_line(&format!("# {} · sha256 {text}", escape::line(&bound.text.name)))?;
    screen.print_line(escape::block(source).trim_end())?;
    let named = named.map(|named| format!(" --policy {}", escape::line(named))).unwrap_or_default();
    screen.eprint(&format!(
        "{HINT}with the base policy's rules{HINT:#}: capsule policy show --resolved{named}"
    ));
    Ok(0)
}

fn layer_json(layer: &LayerText) -> Value {
    let LayerText { kind, text, .. } = layer;
    json!({ "layer": kind, "file": text.name, "sha256": Digest::of(text.text.as_bytes()) })
}
