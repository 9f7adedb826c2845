//! `capsule chat`: a model works on a task through tools, under a policy.

use std::io::{self, IsTerminal as _, Read as _};

use capsule_agent::{Conversation, Model, Provider, ProviderVariables, TaskEnd, TaskLimits};
use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_base::units::{parse_duration, parse_usd};
use capsule_core::capability::Capabilities;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_core::policy::PayloadRetention;
use capsule_runtime::{BoundPolicy, CommandRunner, ModelSession, NullObserver, SessionChoice};

use crate::args::{ChatArgs, Globals, PolicyArg};
use crate::card;
use crate::chat::{self, AttachedFile, ChatSetup, Demo, RunCommand};
use crate::command::run::RunEnding;
use crate::command::run_start::{open_model_session, prompt_for_calls};
use crate::command::session_choice::find_session;
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::failure_report::show_problem;
use crate::screen::Screen;
use crate::signal;
use crate::timeline::Timeline;

/// The policy of a chat where the user has none.
const DEFAULT_POLICY: &str = "builtin:assistant";

pub(crate) fn run(
    args: &ChatArgs,
    (globals, run_command): (&Globals, RunCommand),
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let may_use = task_limits(args)?;
    let is_interactive = args.task.is_none() && is_at_terminal(screen);
    if args.demo {
        return run_demo(args, (may_use, is_interactive), (globals, run_command), ctx, screen);
    }
    if args.task.is_none() && !is_interactive {
        return Err(usage_failure(
            "a conversation needs a terminal; without one, give a task with `--task`",
        ));
    }
    let provider = match find_provider(ctx, args.model.as_deref()) {
        Ok(provider) => provider,
        Err(problem) if is_interactive && problem.code == Code::ModelNotConfigured => {
            chat::explain_missing_model(args.model.is_some(), &ctx.providers_file(), screen);
            if card::choose(screen, OFFER).as_deref() == Some("y") {
                return run_demo(args, (may_use, true), (globals, run_command), ctx, screen);
            }
            return Err(problem.into());
        }
        Err(problem) => return Err(problem.into()),
    };
    let ctx = args.path.as_ref().map_or_else(|| ctx.clone(), |path| ctx.with_workspace(path));
    let bound = load_session_policy(&args.policy, &ctx, ctx.has_user_policy())?;
    let asked = Asked { model: Box::new(provider), limits: may_use, demo: None };
    match &args.task {
        Some(task) => run_tasks(args, &[read_task(task)?], asked, (&bound, &ctx), screen),
        None => converse(args, asked, (globals, run_command), (&bound, &ctx), screen),
    }
}

/// What a conversation is led with.
struct Asked {
    model: Box<dyn Model>,
    limits: TaskLimits,
    /// The script, where the model has one.
    demo: Option<Demo>,
}

/// What is asked where no model is configured.
const OFFER: &str = "Show the demo now? y: yes · anything else: no ";

/// Whether a person sits in front of a terminal, to type and to read.
fn is_at_terminal(screen: &Screen) -> bool {
    !screen.json
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
        && io::stderr().is_terminal()
}

/// The provider that the environment names, with a model.
fn find_provider(ctx: &CliContext, model: Option<&str>) -> Result<Provider, CodedError> {
    let variable = |name: &str| CliContext::variable(name)?.into_string().ok();
    let file = ctx.providers_file();
    Provider::find(&ProviderVariables { lookup: &variable, file: &file }, model)
}

/// The model of a name, at the provider that the environment names.
fn named_model(ctx: &CliContext, name: Option<&str>) -> Result<Box<dyn Model>, Failure> {
    Ok(Box::new(find_provider(ctx, name)?))
}

/// A chat with a scripted model, in a workspace that is made for it.
fn run_demo(
    args: &ChatArgs,
    (may_use, is_interactive): (TaskLimits, bool),
    (globals, run_command): (&Globals, RunCommand),
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let named = args.path.as_ref().filter(|_| args.demo).map(|path| ctx.cwd.join(path));
    let workspace = chat::make_workspace(named.as_deref())?;
    let ctx = ctx.with_workspace(&workspace);
    let bound = load_session_policy(&args.policy, &ctx, false)?;
    let demo = Demo::new(workspace);
    let texts: Vec<String> = demo.messages().into_iter().map(str::to_owned).collect();
    let model = Box::new(Demo::silent_model());
    let asked = Asked { model, limits: may_use, demo: Some(demo) };
    match is_interactive {
        true => converse(args, asked, (globals, run_command), (&bound, &ctx), screen),
        false => run_tasks(args, &texts, asked, (&bound, &ctx), screen),
    }
}

/// A conversation at the terminal.
fn converse(
    args: &ChatArgs,
    asked: Asked,
    (globals, run_command): (&Globals, RunCommand),
    (bound, ctx): (&BoundPolicy, &CliContext),
    screen: &Screen,
) -> Result<u8, Failure> {
    let Asked { model, limits, demo } = asked;
    let session = args.session.as_deref().map(|id| find_session(ctx, id)).transpose()?;
    let workspace = Some(bound.roots.workspace.clone().into());
    chat::run(ChatSetup {
        args,
        ctx,
        globals: Globals { workspace, ..globals.clone() },
        run_command,
        bound,
        model: Some(model),
        limits,
        find_model: named_model,
        demo,
        session,
        attached: attached_files(args, ctx)?,
        screen: *screen,
    })
}

/// Tasks, one after the other, without a person who could go on with them.
fn run_tasks(
    args: &ChatArgs,
    tasks: &[String],
    asked: Asked,
    (bound, ctx): (&BoundPolicy, &CliContext),
    screen: &Screen,
) -> Result<u8, Failure> {
    let choice = match &args.session {
        Some(id) => SessionChoice::Run(find_session(ctx, id)?),
        None => SessionChoice::Named(chat::session_name()),
    };
    let attached = attached_files(args, ctx)?;
    let cancel = signal::cancel_on_signal();
    let commands = CommandRunner::default();
    commands.start();
    let mut timeline = Timeline::new(*screen, screen.json);
    let prompt = prompt_for_calls(args.ask, (bound, ctx), &cancel, screen);
    let (place, steered) = ((bound, ctx), (&commands, &cancel));
    let how = (RunKind::Chat, args.layer, Capabilities::NONE);
    let mut session =
        open_model_session(how, place, &choice, steered, prompt, &mut timeline, screen)?;
    let Asked { model, limits, mut demo } = asked;
    let mut conversation = match args.session {
        Some(_) => Conversation::resume(model, limits, &session)?,
        None => Conversation::new(model, limits),
    };
    let (mut end, mut exit) = (TaskEnd::Interrupted, Exit::Ok);
    if let Some(problem) = attach_files(&mut conversation, &mut session, &attached)? {
        exit = problem.code.exit();
        end = TaskEnd::Failed(problem);
    }
    let tasks = if exit == Exit::Ok { tasks } else { &[] };
    for task in tasks {
        if let Some(demo) = &mut demo {
            conversation.set_model(Box::new(demo.next_model()));
        }
        end = conversation.say(&mut session, task, &cancel, &mut NullObserver)?;
        exit = exit.min(end.exit());
        if !matches!(end, TaskEnd::Answered { .. }) {
            break;
        }
    }
    let named = (session.live().id.to_string(), session.live().label.clone());
    let waiting = session.waiting();
    // A question that waits is answered in the session.
    let finished = match waiting.is_some() || args.session.is_some() {
        true => session.leave(exit)?,
        false => session.end(exit)?,
    };
    commands.detach();
    let status = RunEnding::of_task(named, exit, waiting, finished).show(&timeline, ctx, screen)?;
    if let TaskEnd::Failed(problem) = &end {
        show_problem(screen, problem);
    }
    if let Some(demo) = &demo {
        demo.show_end(screen);
    }
    Ok(status)
}

/// The files that go with the first message.
fn attached_files(args: &ChatArgs, ctx: &CliContext) -> Result<Vec<AttachedFile>, Failure> {
    Ok(args.attach.iter().map(|name| AttachedFile::named(name, ctx)).collect::<Result<_, _>>()?)
}

/// Gives the model the files; says why one cannot be given.
fn attach_files(
    conversation: &mut Conversation,
    session: &mut ModelSession<'_>,
    files: &[AttachedFile],
) -> Result<Option<CodedError>, Failure> {
    for file in files {
        if let Err(problem) = conversation.attach(session, &file.path, &mut NullObserver)? {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

fn task_limits(args: &ChatArgs) -> Result<TaskLimits, Failure> {
    let time = args.max_time.as_ref().map(|text| {
        parse_duration(text)
            .ok_or_else(|| usage_failure(format!("`{text}` is not a duration such as `10m`")))
    });
    let cost = args.max_cost.as_ref().map(|text| {
        let problem = || usage_failure(format!("`{text}` is no sum in US dollars such as `0.50`"));
        parse_usd(text).ok_or_else(problem)
    });
    let usual = TaskLimits::default();
    Ok(TaskLimits {
        turns: args.max_requests.unwrap_or(usual.turns),
        tokens: args.max_tokens.unwrap_or(usual.tokens),
        time: time.transpose()?.unwrap_or(usual.time),
        cost: cost.transpose()?,
    })
}

/// The policy of a model's session: the one that is named, else the user's own, else the one for chats.
///
/// # Errors
/// When it cannot be read, or keeps less on record than a session needs.
pub(crate) fn load_session_policy(
    named: &PolicyArg,
    ctx: &CliContext,
    has_user_policy: bool,
) -> Result<BoundPolicy, Failure> {
    let mut named = named.clone();
    if named.policy.is_none() && !has_user_policy {
        named.policy = Some(DEFAULT_POLICY.to_owned());
    }
    let bound = ctx.load_policy(&named, None)?;
    if bound.policy.audit.payloads != PayloadRetention::Full {
        let message =
            "the session of a model needs `audit.payloads: full`, and the policy keeps less";
        return Err(usage_failure(message));
    }
    Ok(bound)
}

/// The task, where it is no `-`; else all of standard input.
fn read_task(task: &str) -> Result<String, Failure> {
    let mut text = task.to_owned();
    if task == "-" {
        text.clear();
        let most = u64::try_from(limits::TASK_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let read = io::stdin().lock().take(most).read_to_string(&mut text);
        read.map_err(|error| usage_failure(format!("the task cannot be read: {error}")))?;
    }
    if text.len() > limits::TASK_BYTES {
        let most = limits::TASK_BYTES;
        let message =
            format!("the task has more than {most} bytes; put it into a file of the workspace");
        return Err(usage_failure(message));
    }
    if text.trim().is_empty() {
        return Err(usage_failure("the task is empty"));
    }
    Ok(text)
}
