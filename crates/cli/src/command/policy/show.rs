//! `policy show`: a policy's text, or the policy as it decides.

use capsule_core::digest::Digest;
use capsule_core::escape;
use capsule_report::{RuleLine, layer_rules, policy_lines, policy_rules};
use capsule_runtime::{Law, LayerText};
use serde_json::{Value, json};

use crate::args::{PolicyArg, PolicyShow};
use crate::command::policy::{layers, texts};
use crate::failure::Failure;
use crate::screen::{HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(
    args: &PolicyShow,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let chosen = PolicyArg { policy: args.policy.clone(), profile: args.profile.clone() };
    let law = around.law(&chosen, None)?;
    if !args.resolved {
        return plain(&law, args.policy.as_deref(), screen);
    }
    resolved(&law, screen)
}

/// Every rule that holds: the policy's, then what each layer says.
fn resolved(law: &Law, screen: &Screen) -> Result<u8, Failure> {
    let policy = &law.policy;
    let rules = policy_rules(policy, &texts(law));
    let layers: Vec<Vec<RuleLine>> =
        layers(law).map(|(text, own)| layer_rules(own, text)).collect();
    if screen.json {
        let told: Vec<Value> = law.layers.iter().map(named).collect();
        screen.say_json(&json!({
            "schema": 1,
            "policy": policy.name,
            "file": law.text.name,
            "sha256": Digest::of(law.text.text.as_bytes()),
            "digest": policy.digest(),
            "workspace": law.roots.workspace,
            "profile": policy.profile.name,
            "layers": told,
            "rules": rules.iter().chain(layers.iter().flatten()).collect::<Vec<_>>(),
        }))?;
        return Ok(0);
    }
    screen.say(&format!(
        "policy {} · {} · with the base policy {}",
        escape::line(&policy.name),
        escape::line(&law.text.name),
        policy.digest()
    ))?;
    screen.say_all(&policy_lines(&rules, screen.layout()))?;
    for (layer, rules) in law.layers.iter().zip(&layers) {
        let LayerText { kind, text, .. } = layer;
        let sha256 = Digest::of(text.text.as_bytes());
        screen.say("")?;
        screen.say(&format!(
            "layer {} · {} · {sha256}: tightens what stands above",
            kind.keyword(),
            escape::line(&text.name)
        ))?;
        screen.say_all(&policy_lines(rules, screen.layout()))?;
    }
    Ok(0)
}

/// The text of the policy's own file.
fn plain(law: &Law, named: Option<&str>, screen: &Screen) -> Result<u8, Failure> {
    let source = &law.text.text;
    let text = Digest::of(source.as_bytes());
    if screen.json {
        screen.say_json(&json!({
            "schema": 1,
            "policy": law.policy.name,
            "file": law.text.name,
            "sha256": text,
            "digest": law.policy.digest(),
            "text": source,
        }))?;
        return Ok(0);
    }
    // Behind a mark of a comment, so that what is printed is still a policy.
    screen.say(&format!("# {} · sha256 {text}", escape::line(&law.text.name)))?;
    screen.say(escape::block(source).trim_end())?;
    let named = named.map(|named| format!(" --policy {}", escape::line(named))).unwrap_or_default();
    screen.complain(&format!(
        "{HINT}with the base policy's rules{HINT:#}: capsule policy show --resolved{named}"
    ));
    Ok(0)
}

fn named(layer: &LayerText) -> Value {
    let LayerText { kind, text, .. } = layer;
    json!({ "layer": kind, "file": text.name, "sha256": Digest::of(text.text.as_bytes()) })
}
