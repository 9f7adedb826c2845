//! `capsule run`: a plan, step by step, under a policy.

use std::path::Path;
use std::rc::Rc;

use capsule_core::code::Code;
use capsule_core::decision::Verdict;
use capsule_core::exit::Exit;
use capsule_core::journal::RunKind;
use capsule_core::limits;
use capsule_core::outcome::Problem;
use capsule_core::tool::Shape;
use capsule_runtime::plan::{Plan, Scope, execute};
use capsule_runtime::{CATALOGUE, Commands, Hush, Law, Session, Start, Text, explain, read_text};
use serde_json::{Map, Value, json};

use crate::args::Run;
use crate::failure::{Failure, usage};
use crate::live::Timeline;
use crate::screen::{CARE, GOOD, HINT, Screen};
use crate::signal;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Run, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (text, plan) = read_plan(&args.plan)?;
    let inputs = inputs(&plan, &args.inputs)?;
    let has_commands = plan.steps.iter().any(|step| step.tool.shape == Shape::Exec);
    let commands = Commands::default();
    if has_commands && !args.dry_run {
        commands.start();
    }
    let out = around.out(args.out.as_deref())?;
    let law = around.law(&args.policy.policy, out.as_deref())?;
    if args.dry_run {
        return dry_run(&plan, inputs, &law, around, screen);
    }
    let mut timeline = Timeline::new(*screen, screen.json);
    let path = args.plan.canonicalize().unwrap_or_else(|_| args.plan.clone());
    let path = path.to_string_lossy();
    let cancel = signal::cancel();
    let mut session = Session::open(Start {
        law: &law,
        store: &around.store,
        origin: RunKind::Plan,
        name: plan.name.clone(),
        plan: Some((&path, &text.text)),
        steps: u64::try_from(plan.steps.len()).unwrap_or(u64::MAX),
        inputs: Value::Object(inputs.clone()),
        commands,
        has_commands,
        cancel: cancel.clone(),
        sink: Rc::new(Hush),
        variables: Box::new(Surroundings::variable),
        observer: &mut timeline,
    })?;
    let executed = execute(&mut session.run, &plan, inputs)?;
    let exit = if cancel.is_set() { Exit::Interrupted } else { executed.exit };
    let (id, label) = (session.id.to_string(), session.label.clone());
    let finished = session.finish(exit, executed.outputs.as_ref(), out.as_deref())?;
    if screen.json {
        let store = super::open_store(around)?;
        screen.say_json(&capsule_report::run_json(&store, &id)?)?;
        return Ok(exit.status());
    }
    screen.say(&timeline.console.seal(finished.size, &finished.root))?;
    if let Some((path, digest)) = &finished.exported {
        screen.complain(&format!("written {} · sha256 {digest}", path.display()));
    }
    screen.complain(&format!("next: capsule report {label} · capsule replay {label}"));
    Ok(exit.status())
}

/// Reads and checks a plan.
pub(super) fn read_plan(path: &Path) -> Result<(Text, Plan), Failure> {
    let text = read_text(path, limits::PLAN_BYTES, Code::PlanUnreadable)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let fallback = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let text = Text { name, text };
    match Plan::parse(&text.text, &fallback, CATALOGUE) {
        Ok(plan) => Ok((text, plan)),
        Err(problems) => Err(Failure::Texts(text, problems)),
    }
}

/// The inputs of a plan: given ones, and defaults for the others.
fn inputs(plan: &Plan, given: &[String]) -> Result<Map<String, Value>, Failure> {
    let wrong = |message: String| Failure::from(Problem::new(Code::PlanInput, message));
    let mut inputs = Map::new();
    for pair in given {
        let (name, text) =
            pair.split_once('=').ok_or_else(|| usage(format!("`{pair}` is not `name=value`")))?;
        let known = plan.inputs.iter().find(|input| input.name == name);
        let input = known.ok_or_else(|| wrong(format!("the plan has no input `{name}`")))?;
        let value = input.read(text).map_err(wrong)?;
        if inputs.insert(name.to_owned(), value).is_some() {
            return Err(wrong(format!("the input `{name}` is given twice")));
        }
    }
    for input in &plan.inputs {
        if inputs.contains_key(&input.name) {
            continue;
        }
        let default = input.default.clone().ok_or_else(|| {
            wrong(format!("the input `{}` is needed: --input {}=...", input.name, input.name))
        })?;
        inputs.insert(input.name.clone(), default);
    }
    Ok(inputs)
}

/// Decides every step and runs none. Arguments that wait for results are decided when they are
/// reached.
fn dry_run(
    plan: &Plan,
    inputs: Map<String, Value>,
    law: &Law,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let mut hands = super::policy::judging_hands(law, around);
    let scope = Scope { inputs, ..Scope::default() };
    let mut decisions = Vec::new();
    let mut exit = Exit::Ok;
    for (index, step) in plan.steps.iter().enumerate() {
        let made = step.args.iter().map(|(name, expression)| {
            scope.make(expression).map(|(value, _)| (name.clone(), value))
        });
        let made: Result<Map<String, Value>, Problem> = made.collect();
        let decision =
            made.ok().map(|args| explain(&law.policy, &mut hands, step.tool.id, args.into()));
        let expected = step.expect.denied.as_ref().zip(decision.as_ref());
        let as_expected =
            expected.is_some_and(|(denial, own)| denial.is(own.rule.as_deref(), own.code));
        if let Some(own) = decision.as_ref().filter(|own| own.verdict != Verdict::Allow) {
            exit = if as_expected { exit } else { exit.min(own.code.exit()) };
        }
        if screen.json {
            decisions.push(json!({ "step": step.id, "tool": step.tool.id, "decision": decision }));
            continue;
        }
        let number = index + 1;
        screen.say(&match &decision {
            None => format!(
                "{number:>2} {CARE}later{CARE:#}     {} {}: depends on earlier results",
                step.id, step.tool.id
            ),
            Some(own) => {
                let style = match own.verdict {
                    Verdict::Allow => GOOD,
                    Verdict::Ask | Verdict::AskEach => CARE,
                    Verdict::Deny if as_expected => GOOD,
                    Verdict::Deny => crate::screen::BAD,
                };
                let word = own.verdict.word();
                let note = if as_expected { " (as expected)" } else { "" };
                let reason = capsule_core::escape::line(&own.reason).into_owned();
                format!(
                    "{number:>2} {style}{word:<9}{style:#} {} {}: {reason}{note}",
                    step.id, step.tool.id
                )
            }
        })?;
    }
    if screen.json {
        screen.say_json(&json!({ "dry_run": true, "steps": decisions }))?;
    } else {
        screen.complain(&format!("{HINT}dry run{HINT:#}: nothing ran and nothing was recorded"));
    }
    Ok(exit.status())
}
