//! `capsule run`: a plan, step by step, under a policy.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_core::policy::PayloadRetention;
use capsule_policy::SourceText;
use capsule_report::{RunHeader, write_run};
use capsule_runtime::plan::{Plan, PlanResult, execute};
use capsule_runtime::{
    CATALOGUE, Cancel, CommandRunner, FinishedRun, LiveRun, LiveRunOptions, read_text, real_path,
};
use serde_json::{Map, Value, json};

use crate::args::RunArgs;
use crate::command::plan_preview::PlanPreview;
use crate::command::rule_hints::show_rule_commands;
use crate::command::run_end::{show_late_error, show_staged, show_waiting};
use crate::command::run_start::{prompt_for_calls, run_options, show_start};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{HINT, Screen};
use crate::signal;
use crate::timeline::Timeline;

pub(crate) fn run(args: &RunArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (text, plan) = read_plan(&args.plan)?;
    let inputs = parse_inputs(&plan, &args.inputs)?;
    let tools = plan.steps.iter().flat_map(|step| step.tool.capabilities.iter().copied());
    let capabilities: Capabilities = tools.collect();
    let commands = CommandRunner::default();
    if capabilities.contains(Capability::ProcExec) && !args.dry_run {
        commands.start();
    }
    let out = ctx.check_out_file(args.out.as_deref())?;
    let bound = ctx.load_policy(&args.policy, out.as_deref())?;
    if args.dry_run {
        return dry_run(&PlanPreview::new(&plan, inputs, &bound, ctx), screen);
    }
    let mut timeline = Timeline::new(*screen, screen.json);
    let path = real_path(&args.plan);
    let path = path.to_string_lossy();
    let cancel = signal::cancel_on_signal();
    let prompt = prompt_for_calls(args.ask, (&bound, ctx), &cancel, screen);
    let options =
        run_options((&bound, ctx), RunKind::Plan, (&commands, &cancel), prompt, &mut timeline);
    let mut live = LiveRun::open(LiveRunOptions {
        name: plan.name.clone(),
        plan: Some((&path, &text.text)),
        steps: u64::try_from(plan.steps.len()).unwrap_or(u64::MAX),
        inputs: Value::Object(inputs.clone()),
        capabilities,
        accepts_layer: args.layer.accept_layer,
        ..options
    })?;
    show_start(&live, screen);
    let executed = execute(&mut live.run, &plan, inputs)?;
    let ending = RunEnding::finish(live, &executed, &cancel, out.as_deref())?;
    commands.detach();
    ending.show(&timeline, ctx, screen)
}

/// How a run of a plan ended.
pub(super) struct RunEnding {
    id: String,
    label: String,
    exit: Exit,
    /// The call that waits for an answer.
    waiting: Option<u64>,
    /// What is done once the question is answered, if not to resume the run.
    then: Option<String>,
    finished: FinishedRun,
}

impl RunEnding {
    /// How a task of a model ended, whose session may stay open for an answer.
    pub(super) fn of_task(
        (id, label): (String, String),
        exit: Exit,
        waiting: Option<u64>,
        finished: FinishedRun,
    ) -> Self {
        let then = format!("capsule chat --session {label} --task 'go on'");
        Self { id, label, exit, waiting, then: Some(then), finished }
    }

    /// Ends a run.
    pub(super) fn finish(
        live: LiveRun<'_>,
        executed: &PlanResult,
        cancel: &Cancel,
        out: Option<&Path>,
    ) -> Result<Self, Failure> {
        let exit = if cancel.is_set() { Exit::Interrupted } else { executed.exit };
        let (id, label) = (live.id.to_string(), live.label.clone());
        let waiting = live.run.waiting();
        let finished = live.finish(exit, executed.outputs.as_ref(), out)?;
        Ok(Self { id, label, exit, waiting, then: None, finished })
    }

    /// Says how it ended, and what can be done next.
    pub(super) fn show(
        self,
        timeline: &Timeline,
        ctx: &CliContext,
        screen: &Screen,
    ) -> Result<u8, Failure> {
        let Self { id, label, exit, waiting, then, finished } = self;
        let exit = exit.min(show_late_error(finished.late_error.as_ref(), Some(screen)));
        if screen.json {
            let store = super::open_store(ctx, screen)?;
            screen.print_json_with(|out| write_run(out, &store, &id, Map::new()))?;
            return Ok(exit.status());
        }
        let note = finished.note.as_ref();
        screen.print_lines(&timeline.console.seal_lines(finished.size, &finished.root, note))?;
        if let Some((path, digest)) = &finished.exported {
            screen.eprint(&format!("written {} · sha256 {digest}", path.display()));
        }
        if let Some(call) = waiting {
            show_waiting(
                &label,
                call,
                &then.unwrap_or_else(|| format!("capsule resume {label}")),
                screen,
            );
            return Ok(exit.status());
        }
        show_staged(finished.staged, &label, screen);
        show_rule_commands(&timeline.console.run, &label, ctx, screen);
        let view = &timeline.console.run;
        let has_failed =
            view.calls.iter().any(|call| call.can_be_undone() && call.problem.is_some());
        let undo = view.undo_name();
        let undo = undo.filter(|named| !has_failed || super::undo::is_possible(ctx, named));
        let undo = undo.map_or_else(String::new, |named| format!(" · capsule undo {named}"));
        // A record that was not kept whole is not replayed.
        let is_whole = |header: &RunHeader| header.opened.payloads == PayloadRetention::Full;
        let replay = match view.header.as_ref().is_some_and(is_whole) {
            true => format!(" · capsule replay {label}"),
            false => String::new(),
        };
        screen.eprint(&format!("next: capsule report {label}{undo}{replay}"));
        Ok(exit.status())
    }
}

/// Reads and checks a plan.
pub(super) fn read_plan(path: &Path) -> Result<(SourceText, Plan), Failure> {
    let text = read_text(path, limits::PLAN_BYTES, Code::PlanUnreadable)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let fallback = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let text = SourceText { name, text };
    match Plan::parse(&text.text, &fallback, CATALOGUE) {
        Ok(plan) => Ok((text, plan)),
        Err(problems) => Err(Failure::InvalidText(text, problems)),
    }
}

/// The inputs of a plan: given ones, and defaults for the others.
pub(super) fn parse_inputs(plan: &Plan, given: &[String]) -> Result<Map<String, Value>, Failure> {
    let wrong = |message: String| Failure::from(CodedError::new(Code::PlanInput, message));
    let mut inputs = Map::new();
    for pair in given {
        let (name, text) = pair
            .split_once('=')
            .ok_or_else(|| usage_failure(format!("`{pair}` is not `name=value`")))?;
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
fn dry_run(ahead: &PlanPreview<'_>, screen: &Screen) -> Result<u8, Failure> {
    if screen.json {
        screen.print_json(&json!({ "dry_run": true, "steps": ahead.as_json() }))?;
    } else {
        ahead.show(screen)?;
        screen.eprint(&format!("{HINT}dry run{HINT:#}: nothing ran and nothing was recorded"));
    }
    Ok(ahead.exit().status())
}
