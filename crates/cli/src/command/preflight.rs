//! `capsule plan preflight`: what a plan will need and what the policy says to it, before anything of
//! it runs.

use capsule_base::escape;
use capsule_base::units::show_size;
use capsule_core::capability::Capability;
use capsule_runtime::plan::PlanRequirements;
use serde_json::json;

use crate::args::PlanPreflightArgs;
use crate::command::plan_preview::PlanPreview;
use crate::command::run::{parse_inputs, read_plan};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{HINT, Screen};

pub(crate) fn run(
    args: &PlanPreflightArgs,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (_, plan) = read_plan(&args.plan)?;
    let bound = ctx.load_policy(&args.policy, None)?;
    let ahead = PlanPreview::new(&plan, parse_inputs(&plan, &args.inputs)?, &bound, ctx);
    let requirements = PlanRequirements::combine(&ahead.steps);
    let asks_once = bound.policy.approves_plans;
    if screen.json {
        screen.print_json(&json!({
            "schema": 1,
            "plan": plan.name,
            "asks_once": asks_once,
            "steps": ahead.as_json(),
            "union": requirements,
        }))?;
    } else {
        ahead.show(screen)?;
        screen.print_line("")?;
        for (name, value) in requirement_lines(&requirements) {
            screen.print_fitted(&format!("{name:<13} {value}"))?;
        }
        let how = match (requirements.asks, asks_once) {
            (0, _) => "no approval is needed for the steps that are known",
            (1, _) | (_, false) => "a person is asked at each step that the policy asks about",
            _ => "a person is asked once for what is known, before the first step",
        };
        screen.eprint(&format!("{HINT}preflight{HINT:#}: nothing ran; {how}"));
    }
    Ok(ahead.exit().status())
}

/// What the plan needs, a line each; what it does not need has none.
fn requirement_lines(requirements: &PlanRequirements) -> Vec<(&'static str, String)> {
    let powers: Vec<&str> = requirements.capabilities.iter().map(Capability::name).collect();
    let list = |item: &std::collections::BTreeSet<String>| {
        item.iter()
            .map(|text| escape::strict_line(text).into_owned())
            .collect::<Vec<_>>()
            .join("  ")
    };
    let count = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let bytes = if requirements.written_bytes == 0 {
        String::new()
    } else {
        show_size(requirements.written_bytes)
    };
    let all = [
        ("capabilities", powers.join("  ")),
        ("reads", list(&requirements.reads)),
        ("writes", list(&requirements.writes)),
        ("deletes", list(&requirements.deletes)),
        ("hosts", list(&requirements.hosts)),
        ("programs", list(&requirements.programs)),
        ("calls", count(requirements.calls)),
        ("bytes written", bytes),
        ("asked", count(requirements.asks)),
        ("denied", count(requirements.denied)),
        ("not yet known", count(requirements.open)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
