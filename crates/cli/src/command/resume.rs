//! `capsule resume`: a run that was suspended for an answer goes on.

use std::path::Path;
use std::rc::Rc;

use capsule_core::capability::{Capabilities, Capability};
use capsule_core::code::Code;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_runtime::plan::go_on;
use capsule_runtime::{
    Commands, Hush, Law, Pending, Resumption, Session, Sink, Start, this_moment,
};
use serde_json::Value;

use crate::args::{LayerArg, PolicyArg, Resume};
use crate::card;
use crate::command::call::One;
use crate::command::exec::told;
use crate::command::open_store;
use crate::command::rules::rules;
use crate::command::run::{Ending, read_plan};
use crate::failure::Failure;
use crate::live::Timeline;
use crate::repository::is_clean_copy;
use crate::screen::Screen;
use crate::signal;
use crate::surroundings::Surroundings;
use crate::through::Through;

pub(crate) fn run(args: &Resume, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let out = around.out(args.out.as_deref())?;
    let store = open_store(around, screen)?;
    let id = Pending::meant(&store, store.find(&args.run)?)?;
    // What was tampered with is not gone on with.
    if let Err(fault) = store.verify(Some(&id))? {
        let message = format!("{}: {}", fault.place, fault.what);
        return Err(CodedError::new(Code::Integrity, message)
            .with_suggestion("`capsule verify` says more")
            .into());
    }
    drop(store);
    let with = Resumption::take(&around.store, &id, this_moment())?;
    match with.call.clone() {
        Some(call) => one_call(call, with, (args, out.as_deref()), around, screen),
        None => a_plan(with, (args, out.as_deref()), around, screen),
    }
}

/// The policy of a suspended run, if it is still what it was.
fn law(with: &Resumption, out: Option<&Path>, around: &Surroundings) -> Result<Law, Failure> {
    let opened = &with.pending.opened;
    let policy = PolicyArg {
        policy: Some(opened.policy.path.clone()),
        profile: Some(opened.profile.clone()),
    };
    let law = around.within(Path::new(&opened.workspace.path)).law(&policy, out)?;
    with.is_law(&law)?;
    Ok(law)
}

/// Makes a single call again, now that it was answered. What a command says passes through.
fn one_call(
    (tool, call): (String, Value),
    with: Resumption,
    (args, out): (&Resume, Option<&Path>),
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let law = law(&with, out, around)?;
    let cancel = signal::cancel();
    let opened = &with.pending.opened;
    let through = (opened.origin == RunKind::Exec).then(|| Through::new(cancel.clone()));
    let sink: Rc<dyn Sink> = match &through {
        Some(through) if !screen.json => Rc::clone(through) as _,
        _ => Rc::new(Hush),
    };
    let one = One {
        name: opened.name.clone(),
        origin: RunKind::Resume,
        subject: Some(with.pending.run),
        tool: &tool,
        args: call,
        law: &law,
        commands: Commands::default(),
        sink,
        prompt: card::prompt((args.ask.unattended, true), screen, &cancel, rules(&law, around)),
        cancel,
        out,
        layer: LayerArg { accept_layer: false },
        with: Some(&with),
    };
    let done = one.submit(around, Some(screen))?;
    match through {
        Some(through) => told(&done, &through, screen)?,
        None => done.tell(around, screen)?,
    }
    Ok(done.exit.status())
}

/// Goes on with a plan from where it waited.
fn a_plan(
    with: Resumption,
    (args, out): (&Resume, Option<&Path>),
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let place = with.pending.opened.plan.as_ref().map_or("", |plan| plan.path.as_str());
    let (text, plan) = read_plan(Path::new(place))?;
    with.is_plan(&text.text)?;
    let law = law(&with, out, around)?;
    let tools = plan.steps.iter().flat_map(|step| step.tool.capabilities.iter().copied());
    let capabilities: Capabilities = tools.collect();
    let commands = Commands::default();
    if capabilities.contains(Capability::ProcExec) {
        commands.start();
    }
    let mut timeline = Timeline::new(*screen, screen.json);
    let cancel = signal::cancel();
    let start = Start {
        law: &law,
        store: &around.store,
        origin: RunKind::Resume,
        subject: Some(with.pending.run),
        name: plan.name.clone(),
        plan: Some((place, &text.text)),
        steps: u64::try_from(plan.steps.len()).unwrap_or(u64::MAX),
        inputs: Value::Object(with.inputs.clone()),
        commands: commands.clone(),
        capabilities,
        cancel: cancel.clone(),
        sink: Rc::new(Hush),
        variables: Box::new(Surroundings::variable),
        prompt: card::prompt((args.ask.unattended, false), screen, &cancel, rules(&law, around)),
        observer: &mut timeline,
        accepts_layer: false,
        disposable: Box::new(|| is_clean_copy(around, law.workspace.path())),
    };
    let mut session = Session::resume(start, &with)?;
    super::layers::tell_news(&session.news, screen);
    super::layers::tell_key(session.made_key.as_deref(), screen);
    super::changes::tell_copied(session.copied.as_deref(), screen);
    let executed = go_on(&mut session.run, &plan, with.inputs.clone(), with.progress.clone())?;
    let ending = Ending::of(session, &executed, &cancel, out)?;
    commands.part();
    // Another question may be answered at once.
    drop(with);
    ending.tell(&timeline, around, screen)
}
