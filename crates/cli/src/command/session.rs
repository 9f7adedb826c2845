//! `capsule session`: opens, lists, shows and ends sessions.

use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_base::units::{counted, parse_duration};
use capsule_core::journal::RunKind;
use capsule_report::age_text;
use capsule_runtime::{
    Cancel, CommandRunner, EndedSession, LiveRun, NoPrompt, NullObserver, OpenSession,
    SessionChoice, SessionRequest, end_session, now_micros, open_sessions,
};
use serde_json::{Value, json};

use crate::args::{ReportArgs, ReportFormat, SessionCommand, SessionId, SessionStartArgs};
use crate::command::report;
use crate::command::run_end::show_staged;
use crate::command::run_start::{run_options, show_start};
use crate::command::session_choice::find_session;
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{HINT, SUCCESS, Screen};
use crate::signal;

pub(crate) fn run(of: &SessionCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    match of {
        SessionCommand::Start(args) => start(args, ctx, screen),
        SessionCommand::List => list(ctx, screen),
        SessionCommand::Show(args) => show(args, ctx, screen),
        SessionCommand::End(args) => end(args, ctx, screen),
    }
}

fn start(args: &SessionStartArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let idle = parse_duration(&args.idle)
        .ok_or_else(|| usage_failure(format!("`{}` is not a duration such as `4h`", args.idle)))?;
    let bound = ctx.load_policy(&args.policy, None)?;
    let commands = CommandRunner::default();
    let mut silent = NullObserver;
    // No other call finds it by its name: it is named by its id.
    let choice = SessionChoice::Named(format!("started:{}:{}", std::process::id(), now_micros()));
    let steered = (&commands, &signal::cancel_on_signal());
    let prompt = Box::new(NoPrompt);
    let options = run_options((&bound, ctx), RunKind::Session, steered, prompt, &mut silent);
    let live = LiveRun::join(options, SessionRequest { choice: &choice, policy: &bound, idle })?;
    let label = live.label.clone();
    show_start(&live, screen);
    let copied = live.copy_reason.clone();
    live.end_call(Exit::Ok, None)?;
    commands.detach();
    if let Some(why) = copied {
        return Err(usage_failure(format!(
            "calls cannot share the workspace: it cannot be mounted as an overlay ({why})"
        )));
    }
    if screen.json {
        screen.print_json(&json!({ "schema": 1, "session": label }))?;
    } else {
        screen.print_line(&label)?;
    }
    Ok(0)
}

fn list(ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    // A store that is not there yet holds no sessions.
    let open = match ctx.store.exists() {
        true => open_sessions(&ctx.store)?,
        false => Vec::new(),
    };
    if screen.json {
        let open: Vec<Value> = open.iter().map(session_json).collect();
        screen.print_json(&json!({ "schema": 1, "sessions": open }))?;
        return Ok(0);
    }
    if open.is_empty() {
        screen.print_line("no session is open")?;
        return Ok(0);
    }
    let now = now_micros();
    for session in &open {
        let OpenSession { label, workspace, policy, calls, staged, used_at, .. } = session;
        let workspace = escape::line(workspace);
        screen.print_fitted(&format!(
            "{label}  {workspace} · {} · {} · {} staged · used {} ago · {}",
            escape::line(policy),
            counted(*calls, "call"),
            counted(*staged, "path"),
            age_text(now.saturating_sub(*used_at)),
            escape::line(&session.name),
        ))?;
    }
    screen.eprint(&format!("{HINT}end one{HINT:#}: capsule session end ID"));
    Ok(0)
}

fn session_json(session: &OpenSession) -> Value {
    json!({
        "session": session.label,
        "run": session.run,
        "name": session.name,
        "workspace": session.workspace,
        "policy": session.policy,
        "profile": session.profile,
        "used_at": session.used_at,
        "ends_at": session.ends_at,
        "calls": session.calls,
        "staged": session.staged,
    })
}

fn show(args: &SessionId, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let run = find_session(ctx, &args.id)?;
    report::run(&ReportArgs { run, format: ReportFormat::Console }, ctx, screen)
}

fn end(args: &SessionId, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let run = find_session(ctx, &args.id)?;
    end_run(&run, ctx, screen)
}

/// Ends the session of a run, and says what it leaves.
pub(crate) fn end_run(run: &str, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let cancel: Cancel = signal::cancel_on_signal();
    let EndedSession { run, label, calls, staged } = end_session(&ctx.store, run, &cancel)?;
    if screen.json {
        let staged = staged.map(|changes| {
            json!({ "paths": changes.paths, "refused": changes.refused, "asked": changes.asked > 0 })
        });
        let ended =
            json!({ "schema": 1, "session": label, "run": run, "calls": calls, "staged": staged });
        screen.print_json(&ended)?;
        return Ok(0);
    }
    let calls = counted(calls, "call");
    screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} session {label} ended after {calls}"));
    show_staged(staged, &label, screen);
    Ok(0)
}
