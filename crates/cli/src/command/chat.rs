//! `capsule chat`: a model works on a task through tools, under a policy.

use std::io::{self, Read as _};

use capsule_agent::{Conversation, Provider, ProviderVariables, TaskEnd, TaskLimits};
use capsule_base::limits;
use capsule_base::units::parse_duration;
use capsule_core::journal::RunKind;
use capsule_core::policy::PayloadRetention;
use capsule_runtime::{
    BoundPolicy, CommandRunner, LiveRunOptions, ModelSession, NullObserver, SessionChoice,
    SessionRequest, now_micros,
};

use crate::args::ChatArgs;
use crate::command::run::RunEnding;
use crate::command::run_start::{prompt_for_calls, run_options, show_start};
use crate::command::session_choice::find_session;
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{ERROR, HINT, Screen, hint, problem_text};
use crate::signal;
use crate::timeline::Timeline;

/// The policy of a chat where the user has none.
const DEFAULT_POLICY: &str = "builtin:assistant";

pub(crate) fn run(args: &ChatArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let limits = task_limits(args)?;
    let variable = |name: &str| CliContext::variable(name)?.into_string().ok();
    let variables = ProviderVariables { lookup: &variable, file: &ctx.providers_file() };
    let provider = Provider::find(&variables, args.model.as_deref())?;
    let task = read_task(&args.task)?;
    let ctx = args.path.as_ref().map_or_else(|| ctx.clone(), |path| ctx.with_workspace(path));
    let bound = load_policy(args, &ctx)?;
    let choice = match &args.session {
        Some(id) => SessionChoice::Run(find_session(&ctx, id)?),
        // No other call finds it by its name.
        None => SessionChoice::Named(format!("chat:{}:{}", std::process::id(), now_micros())),
    };
    let cancel = signal::cancel_on_signal();
    let commands = CommandRunner::default();
    commands.start();
    let mut timeline = Timeline::new(*screen, screen.json);
    let prompt = prompt_for_calls(args.ask, (&bound, &ctx), &cancel, screen);
    let options = LiveRunOptions {
        accepts_layer: args.layer.accept_layer,
        ..run_options((&bound, &ctx), RunKind::Chat, (&commands, &cancel), prompt, &mut timeline)
    };
    let request = SessionRequest { choice: &choice, policy: &bound, idle: limits::SESSION_IDLE };
    let mut session = ModelSession::open(options, request)?;
    show_start(session.live(), screen);
    let model = Box::new(provider);
    let mut conversation = match args.session {
        Some(_) => Conversation::resume(model, limits, &session)?,
        None => Conversation::new(model, limits),
    };
    let end = conversation.say(&mut session, &task, &cancel, &mut NullObserver)?;
    let named = (session.live().id.to_string(), session.live().label.clone());
    let (exit, waiting) = (end.exit(), session.waiting());
    // A question that waits is answered in the session.
    let finished = match waiting.is_some() || args.session.is_some() {
        true => session.leave(exit)?,
        false => session.end(exit)?,
    };
    commands.detach();
    let status =
        RunEnding::of_task(named, exit, waiting, finished).show(&timeline, &ctx, screen)?;
    show_end(&end, screen);
    Ok(status)
}

/// Says why a task ended before the model was done.
fn show_end(end: &TaskEnd, screen: &Screen) {
    let TaskEnd::Failed(problem) = end else { return };
    screen.eprint(&format!("{ERROR}error{ERROR:#}: {}", problem_text(problem)));
    if let Some(hint) = hint(problem) {
        screen.eprint(&format!("{HINT}hint{HINT:#}: {hint}"));
    }
}

fn task_limits(args: &ChatArgs) -> Result<TaskLimits, Failure> {
    let time = args.max_time.as_ref().map(|text| {
        parse_duration(text)
            .ok_or_else(|| usage_failure(format!("`{text}` is not a duration such as `10m`")))
    });
    let usual = TaskLimits::default();
    Ok(TaskLimits {
        turns: args.max_requests.unwrap_or(usual.turns),
        tokens: args.max_tokens.unwrap_or(usual.tokens),
        time: time.transpose()?.unwrap_or(usual.time),
        ..usual
    })
}

/// The policy: the one that is named, else the user's own, else the one for chats.
fn load_policy(args: &ChatArgs, ctx: &CliContext) -> Result<BoundPolicy, Failure> {
    let mut named = args.policy.clone();
    if named.policy.is_none() && !ctx.has_user_policy() {
        named.policy = Some(DEFAULT_POLICY.to_owned());
    }
    let bound = ctx.load_policy(&named, None)?;
    if bound.policy.audit.payloads != PayloadRetention::Full {
        let message = "a chat needs `audit.payloads: full`, and the policy keeps less";
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
