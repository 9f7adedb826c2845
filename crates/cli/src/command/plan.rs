//! `capsule plan`: check a plan, print the language.

use capsule_base::escape;
use capsule_runtime::CATALOGUE;
use capsule_runtime::plan::{lint, plan_schema};
use serde_json::json;

use crate::args::PlanCheckArgs;
use crate::command::run::read_plan;
use crate::diagnostic;
use crate::failure::Failure;
use crate::screen::{SUCCESS, Screen};

/// `plan check`.
pub(crate) fn check(args: &PlanCheckArgs, screen: &Screen) -> Result<u8, Failure> {
    let plan = match read_plan(&args.plan) {
        Err(Failure::InvalidText(text, problems)) if screen.json => {
            let problems = diagnostic::to_json(&text, &problems);
            screen.print_json(&json!({ "ok": false, "problems": problems }))?;
            return Ok(2);
        }
        other => other?,
    };
    let (text, plan) = plan;
    let notes = lint(&plan);
    if screen.json {
        screen.print_json(&json!({
            "ok": true,
            "name": plan.name,
            "steps": plan.steps.len(),
            "problems": diagnostic::to_json(&text, &notes),
        }))?;
    } else {
        if !notes.is_empty() {
            screen.eprint(&diagnostic::render(&text, &notes, screen));
        }
        let steps = plan.steps.len();
        let plural = if steps == 1 { "step" } else { "steps" };
        screen.print_line(&format!(
            "{SUCCESS}✔ ok{SUCCESS:#} {} · {steps} {plural} · {} inputs",
            escape::line(&plan.name),
            plan.inputs.len()
        ))?;
    }
    Ok(0)
}

/// `plan schema`.
pub(crate) fn print_schema(screen: &Screen) -> Result<u8, Failure> {
    screen.print_json(&plan_schema(CATALOGUE))?;
    Ok(0)
}
