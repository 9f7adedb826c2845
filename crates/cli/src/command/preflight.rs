//! `capsule plan preflight`: what a plan will need and what the policy says to it, before anything of
//! it runs.

use capsule_core::capability::Capability;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_core::units::show_size;
use capsule_runtime::plan::{Outlook, Plan, Scope, Union, foresee, outlook};
use serde_json::{Value, json};

use crate::args::PlanPreflight;
use crate::command::policy::asking_hands;
use crate::command::run::{inputs, read_plan};
use crate::failure::Failure;
use crate::screen::{BAD, CARE, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(
    args: &PlanPreflight,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (_, plan) = read_plan(&args.plan)?;
    let scope = Scope { inputs: inputs(&plan, &args.inputs)?, ..Scope::default() };
    let law = around.law(&args.policy, None)?;
    let mut hands = asking_hands(&law, around);
    let redactor = hands.redactor().clone();
    let steps = outlook(&law.policy, &mut hands, &plan, &scope, &redactor);
    let union = Union::of(&steps);
    let asks_once = law.policy.composites;
    if screen.json {
        screen.say_json(&json!({
            "schema": 1,
            "plan": plan.name,
            "asks_once": asks_once,
            "steps": plan.steps.iter().zip(&steps).map(as_json).collect::<Vec<Value>>(),
            "union": union,
        }))?;
    } else {
        for (number, (step, own)) in plan.steps.iter().zip(&steps).enumerate() {
            let (style, word, says) = words(own);
            let about = format!("{} {}", step.id, step.tool.id);
            let says = escape::line(&says).into_owned();
            screen.say(&format!("{:>2} {style}{word:<9}{style:#} {about}: {says}", number + 1))?;
        }
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
    Ok(exit(&plan, &steps).status())
}

/// How the run would end by what is known, with nobody there to ask.
fn exit(plan: &Plan, steps: &[Outlook]) -> Exit {
    let own = plan.steps.iter().zip(steps).filter_map(|(step, own)| {
        let decision = decision(own)?;
        foresee(step, &decision).map(|foreseen| foreseen.exit)
    });
    own.fold(Exit::Ok, Exit::min)
}

fn decision(own: &Outlook) -> Option<Decision> {
    match own {
        Outlook::Known(step) => Some(step.decision().clone()),
        Outlook::Refused(problem) => Some(Decision::misunderstood(problem.clone())),
        Outlook::Later => None,
    }
}

fn words(own: &Outlook) -> (anstyle::Style, &'static str, String) {
    let Some(decision) = decision(own) else {
        return (CARE, "later", "depends on earlier results".into());
    };
    let style = match decision.verdict {
        Verdict::Allow => GOOD,
        Verdict::Ask | Verdict::AskEach => CARE,
        Verdict::Deny => BAD,
    };
    (style, decision.verdict.word(), decision.reason)
}

fn as_json((step, own): (&capsule_runtime::plan::Step, &Outlook)) -> Value {
    json!({ "step": step.id, "tool": step.tool.id, "decision": decision(own) })
}

/// What the plan needs, a line each; what it does not need has none.
fn needs(union: &Union) -> Vec<(&'static str, String)> {
    let powers: Vec<&str> = union.capabilities.iter().map(Capability::name).collect();
    let list = |own: &std::collections::BTreeSet<String>| {
        own.iter().map(|own| escape::exact(own).into_owned()).collect::<Vec<_>>().join("  ")
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
