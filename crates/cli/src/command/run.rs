//! `capsule run`: a plan, step by step, under a policy.

use std::path::Path;
use std::rc::Rc;

use anstyle::Style;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::code::Code;
use capsule_core::decision::Verdict;
use capsule_core::exit::Exit;
use capsule_core::journal::RunKind;
use capsule_core::limits;
use capsule_core::outcome::Problem;
use capsule_runtime::plan::{Executed, Foreseen, Plan, Scope, execute, foresee};
use capsule_runtime::{
    CATALOGUE, Cancel, Commands, Finished, Hush, Law, Session, Start, Text, explain, read_text,
    real,
};
use serde_json::{Map, Value, json};

use crate::args::Run;
use crate::card;
use crate::command::rules::{rules, tell_rules};
use crate::failure::{Failure, usage};
use crate::live::Timeline;
use crate::repository::is_clean_copy;
use crate::screen::{BAD, CARE, GOOD, HINT, Screen};
use crate::signal;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Run, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (text, plan) = read_plan(&args.plan)?;
    let inputs = inputs(&plan, &args.inputs)?;
    let tools = plan.steps.iter().flat_map(|step| step.tool.capabilities.iter().copied());
    let capabilities: Capabilities = tools.collect();
    let commands = Commands::default();
    if capabilities.contains(Capability::ProcExec) && !args.dry_run {
        commands.start();
    }
    let out = around.out(args.out.as_deref())?;
    let law = around.law(&args.policy, out.as_deref())?;
    if args.dry_run {
        return dry_run(&plan, inputs, &law, around, screen);
    }
    let mut timeline = Timeline::new(*screen, screen.json);
    let path = real(&args.plan);
    let path = path.to_string_lossy();
    let cancel = signal::cancel();
    let mut session = Session::open(Start {
        law: &law,
        store: &around.store,
        origin: RunKind::Plan,
        subject: None,
        name: plan.name.clone(),
        plan: Some((&path, &text.text)),
        steps: u64::try_from(plan.steps.len()).unwrap_or(u64::MAX),
        inputs: Value::Object(inputs.clone()),
        commands: commands.clone(),
        capabilities,
        cancel: cancel.clone(),
        sink: Rc::new(Hush),
        disposable: Box::new(|| is_clean_copy(around, law.workspace.path())),
        variables: Box::new(Surroundings::variable),
        prompt: card::prompt(args.ask.unattended, screen, &cancel, rules(&law, around)),
        accepts_layer: args.layer.accept_layer,
        observer: &mut timeline,
    })?;
    super::layers::tell_news(&session.news, screen);
    super::changes::tell_copied(session.copied.as_deref(), screen);
    let executed = execute(&mut session.run, &plan, inputs)?;
    let ending = Ending::of(session, &executed, &cancel, out.as_deref())?;
    commands.part();
    ending.tell(&timeline, around, screen)
}

/// How a run of a plan ended.
pub(super) struct Ending {
    id: String,
    label: String,
    exit: Exit,
    /// The call that waits for an answer.
    waiting: Option<u64>,
    finished: Finished,
}

impl Ending {
    /// Ends a run.
    pub(super) fn of(
        session: Session<'_>,
        executed: &Executed,
        cancel: &Cancel,
        out: Option<&Path>,
    ) -> Result<Self, Failure> {
        let exit = if cancel.is_set() { Exit::Interrupted } else { executed.exit };
        let (id, label) = (session.id.to_string(), session.label.clone());
        let waiting = session.run.waiting();
        let finished = session.finish(exit, executed.outputs.as_ref(), out)?;
        Ok(Self { id, label, exit, waiting, finished })
    }

    /// Says how it ended, and what can be done next.
    pub(super) fn tell(
        self,
        timeline: &Timeline,
        around: &Surroundings,
        screen: &Screen,
    ) -> Result<u8, Failure> {
        let Self { id, label, exit, waiting, finished } = self;
        if screen.json {
            let store = super::open_store(around)?;
            screen.say_json(&capsule_report::run_json(&store, &id)?)?;
            return Ok(exit.status());
        }
        screen.say(&timeline.console.seal(finished.size, &finished.root))?;
        if let Some((path, digest)) = &finished.exported {
            screen.complain(&format!("written {} · sha256 {digest}", path.display()));
        }
        if let Some(call) = waiting {
            tell_waiting(&label, call, screen);
            return Ok(exit.status());
        }
        super::changes::tell_staged(finished.staged, &label, screen);
        tell_rules(&timeline.console.story, &label, screen);
        let undo = timeline.console.story.undoable();
        let undo = undo.map_or_else(String::new, |named| format!(" · capsule undo {named}"));
        screen.complain(&format!("next: capsule report {label}{undo} · capsule replay {label}"));
        Ok(exit.status())
    }
}

/// Says how a question that waits is answered.
pub(super) fn tell_waiting(label: &str, call: u64, screen: &Screen) {
    screen.complain(&format!(
        "next: capsule approvals show {label}:{call} · capsule approvals answer {label}:{call} · \
         capsule resume {label}"
    ));
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
pub(super) fn inputs(plan: &Plan, given: &[String]) -> Result<Map<String, Value>, Failure> {
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
    let mut hands = super::policy::asking_hands(law, around);
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
        let foreseen = decision.as_ref().and_then(|own| foresee(step, own));
        exit = foreseen.as_ref().map_or(exit, |own| exit.min(own.exit));
        if screen.json {
            decisions.push(json!({
                "step": step.id,
                "tool": step.tool.id,
                "decision": decision,
                "ending": foreseen.map(|own| own.ending),
            }));
            continue;
        }
        let about = format!("{} {}", step.id, step.tool.id);
        let (style, word, says) = match &decision {
            None => (CARE, "later", String::from("depends on earlier results")),
            Some(own) => {
                let (style, note) = told(own.verdict, foreseen.as_ref());
                (style, own.verdict.word(), format!("{}{note}", own.reason))
            }
        };
        let says = capsule_core::escape::line(&says);
        screen.say(&format!("{:>2} {style}{word:<9}{style:#} {about}: {says}", index + 1))?;
    }
    if screen.json {
        screen.say_json(&json!({ "dry_run": true, "steps": decisions }))?;
    } else {
        screen.complain(&format!("{HINT}dry run{HINT:#}: nothing ran and nothing was recorded"));
    }
    Ok(exit.status())
}

/// How a decision is shown, and what the plan's expectations make of it.
fn told(verdict: Verdict, foreseen: Option<&Foreseen>) -> (Style, String) {
    let style = match verdict {
        Verdict::Allow => GOOD,
        Verdict::Ask | Verdict::AskEach => CARE,
        Verdict::Deny => BAD,
    };
    match foreseen {
        Some(own) if own.is_expected() => (GOOD, " (as expected)".into()),
        // What the policy allows goes wrong only where something else is expected of the decision.
        Some(Foreseen { problem: Some(problem), .. }) if verdict == Verdict::Allow => {
            (BAD, format!(" ({})", problem.message))
        }
        _ => (style, String::new()),
    }
}
