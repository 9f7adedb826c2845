//! `capsule plan preflight`: what a plan will need and what the policy says to it, before anything of
//! it runs.

use capsule_core::capability::Capability;
use capsule_core::escape;
use capsule_core::units::show_size;
use capsule_runtime::plan::Union;
use serde_json::json;

use crate::args::PlanPreflight;
use crate::command::ahead::Ahead;
use crate::command::run::{inputs, read_plan};
use crate::failure::Failure;
use crate::screen::{HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(
    args: &PlanPreflight,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (_, plan) = read_plan(&args.plan)?;
    let law = around.law(&args.policy, None)?;
    let ahead = Ahead::of(&plan, inputs(&plan, &args.inputs)?, &law, around);
    let union = Union::of(&ahead.steps);
    let asks_once = law.policy.approves_plans;
    if screen.json {
        screen.say_json(&json!({
            "schema": 1,
            "plan": plan.name,
            "asks_once": asks_once,
            "steps": ahead.as_json(),
            "union": union,
        }))?;
    } else {
        ahead.say(screen)?;
        screen.say("")?;
        for (name, value) in needs(&union) {
            screen.say(&format!("{name:<13} {value}"))?;
        }
        let how = match (union.asks, asks_once) {
            (0, _) => "nobody is asked about what is known",
            (1, _) | (_, false) => "a person is asked at each step that the policy asks about",
            _ => "a person is asked once for what is known, before the first step",
        };
        screen.complain(&format!("{HINT}preflight{HINT:#}: nothing ran; {how}"));
    }
    Ok(ahead.exit().status())
}

/// What the plan needs, a line each; what it does not need has none.
fn needs(union: &Union) -> Vec<(&'static str, String)> {
    let powers: Vec<&str> = union.capabilities.iter().map(Capability::name).collect();
    let list = |own: &std::collections::BTreeSet<String>| {
        own.iter().map(|own| escape::strict_line(own).into_owned()).collect::<Vec<_>>().join("  ")
    };
    let count = |own: u64| if own == 0 { String::new() } else { own.to_string() };
    let bytes =
        if union.written_bytes == 0 { String::new() } else { show_size(union.written_bytes) };
    let all = [
        ("capabilities", powers.join("  ")),
        ("reads", list(&union.reads)),
        ("writes", list(&union.writes)),
        ("deletes", list(&union.deletes)),
        ("hosts", list(&union.hosts)),
        ("programs", list(&union.programs)),
        ("calls", count(union.calls)),
        ("bytes written", bytes),
        ("asked", count(union.asks)),
        ("denied", count(union.denied)),
        ("not yet known", count(union.open)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
