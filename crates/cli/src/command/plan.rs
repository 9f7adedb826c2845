//! `capsule plan`: check a plan, print the language.

use capsule_core::escape;
use capsule_runtime::CATALOGUE;
use capsule_runtime::plan::{lint, schema as plan_schema};
use serde_json::json;

use crate::args::PlanCheck;
use crate::command::run::read_plan;
use crate::diagnostic;
use crate::failure::Failure;
use crate::screen::{GOOD, Screen};

/// `plan check`.
pub(crate) fn check(args: &PlanCheck, screen: &Screen) -> Result<u8, Failure> {
    let plan = match read_plan(&args.plan) {
        Err(Failure::Texts(text, problems)) if screen.json => {
            let problems = diagnostic::to_json(&text, &problems);
            screen.say_json(&json!({ "ok": false, "problems": problems }))?;
            return Ok(2);
        }
        other => other?,
    };
    let (text, plan) = plan;
    let notes = lint(&plan);
    if screen.json {
        screen.say_json(&json!({
            "ok": true,
            "name": plan.name,
            "steps": plan.steps.len(),
            "problems": diagnostic::to_json(&text, &notes),
        }))?;
    } else {
        if !notes.is_empty() {
            screen.complain(&diagnostic::render(&text, &notes, screen));
        }
        let steps = plan.steps.len();
        let plural = if steps == 1 { "step" } else { "steps" };
        screen.say(&format!(
            "{GOOD}✔ ok{GOOD:#} {} · {steps} {plural} · {} inputs",
            escape::line(&plan.name),
            plan.inputs.len()
        ))?;
    }
    Ok(0)
}

/// `plan schema`.
pub(crate) fn schema(screen: &Screen) -> Result<u8, Failure> {
    screen.say_json(&plan_schema(CATALOGUE))?;
    Ok(0)
}
