//! `capsule resume`: a run that was suspended for an answer goes on.

use std::path::Path;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_core::call::Origin;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_runtime::plan::resume_plan;
use capsule_runtime::{
    BoundPolicy, CommandRunner, LiveRun, LiveRunOptions, NullSink, PendingQuestion, Resumption,
    Sink, now_micros,
};
use serde_json::Value;

use crate::args::{LayerArg, PolicyArg, ResumeArgs};
use crate::card;
use crate::command::exec::show_result;
use crate::command::open_store;
use crate::command::rule_hints::rule_patch_lookup;
use crate::command::run::{RunEnding, read_plan};
use crate::command::run_start::{prompt_for_calls, run_options, show_start};
use crate::command::single_call::SingleCall;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::output_relay::OutputRelay;
use crate::screen::Screen;
use crate::signal;
use crate::timeline::Timeline;

pub(crate) fn run(args: &ResumeArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let out = ctx.check_out_file(args.out.as_deref())?;
    let store = open_store(ctx, screen)?;
    let id = PendingQuestion::resolve_run(&store, store.find(&args.run)?)?;
    // What was tampered with is not gone on with.
    if let Err(fault) = store.verify(Some(&id))? {
        let message = format!("{}: {}", fault.place, fault.what);
        return Err(CodedError::new(Code::Integrity, message)
            .with_suggestion("`capsule verify` says more")
            .into());
    }
    drop(store);
    let with = Resumption::open(&ctx.store, &id, now_micros())?;
    match with.call.clone() {
        Some(call) => resume_call(call, with, (args, out.as_deref()), ctx, screen),
        None => resume_plan_run(with, (args, out.as_deref()), ctx, screen),
    }
}

/// The policy of a suspended run, if it is still what it was.
fn load_policy(
    with: &Resumption,
    out: Option<&Path>,
    ctx: &CliContext,
) -> Result<BoundPolicy, Failure> {
    let opened = &with.pending.opened;
    let policy = PolicyArg {
        policy: Some(opened.policy.path.clone()),
        profile: Some(opened.profile.clone()),
    };
    let bound = ctx.with_workspace(Path::new(&opened.workspace.path)).load_policy(&policy, out)?;
    with.check_policy(&bound)?;
    Ok(bound)
}

/// Makes a single call again, now that it was answered. What a command says passes through.
fn resume_call(
    (tool, call): (String, Value),
    with: Resumption,
    (args, out): (&ResumeArgs, Option<&Path>),
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let bound = load_policy(&with, out, ctx)?;
    let cancel = signal::cancel_on_signal();
    let opened = &with.pending.opened;
    let relay = (opened.origin == RunKind::Exec).then(|| OutputRelay::new(cancel.clone()));
    let sink: Rc<dyn Sink> = match &relay {
        Some(relay) if !screen.json => Rc::clone(relay) as _,
        _ => Rc::new(NullSink),
    };
    let one = SingleCall {
        name: opened.name.clone(),
        kind: RunKind::Resume,
        subject: Some(with.pending.run),
        tool: &tool,
        args: call,
        policy: &bound,
        command_runner: CommandRunner::default(),
        sink,
        prompt: card::make_prompt(
            (args.ask.unattended, true),
            screen,
            &cancel,
            rule_patch_lookup(&bound, ctx),
        ),
        cancel,
        out,
        layer: LayerArg { accept_layer: false },
        origin: Origin::Person,
        resumption: Some(&with),
        session: None,
    };
    let done = one.submit(ctx, Some(screen))?;
    match relay {
        Some(relay) => show_result(&done, &relay, ctx, screen)?,
        None => done.show(ctx, screen)?,
    }
    Ok(done.exit.status())
}

/// Goes on with a plan from where it waited.
fn resume_plan_run(
    with: Resumption,
    (args, out): (&ResumeArgs, Option<&Path>),
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let place = with.pending.opened.plan.as_ref().map_or("", |plan| plan.path.as_str());
    let (text, plan) = read_plan(Path::new(place))?;
    with.check_plan(&text.text)?;
    let bound = load_policy(&with, out, ctx)?;
    let tools = plan.steps.iter().flat_map(|step| step.tool.capabilities.iter().copied());
    let capabilities: Capabilities = tools.collect();
    let commands = CommandRunner::default();
    if capabilities.contains(Capability::ProcExec) {
        commands.start();
    }
    let mut timeline = Timeline::new(*screen, screen.json);
    let cancel = signal::cancel_on_signal();
    let prompt = prompt_for_calls(args.ask, (&bound, ctx), &cancel, screen);
    let start =
        run_options((&bound, ctx), RunKind::Resume, (&commands, &cancel), prompt, &mut timeline);
    let start = LiveRunOptions {
        subject: Some(with.pending.run),
        name: plan.name.clone(),
        plan: Some((place, &text.text)),
        steps: u64::try_from(plan.steps.len()).unwrap_or(u64::MAX),
        inputs: Value::Object(with.inputs.clone()),
        capabilities,
        ..start
    };
    let mut live = LiveRun::resume(start, &with)?;
    show_start(&live, screen);
    let executed = resume_plan(&mut live.run, &plan, with.inputs.clone(), with.progress.clone())?;
    let ending = RunEnding::finish(live, &executed, &cancel, out)?;
    commands.detach();
    // Another question may be answered at once.
    drop(with);
    ending.show(&timeline, ctx, screen)
}
