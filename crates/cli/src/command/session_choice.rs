//! Which session a call belongs to: as it is named, else by the terminal that it is made at.

use std::io::{self, IsTerminal as _};
use std::num::NonZeroU32;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::process_stat::fields_from_state;
use capsule_core::outcome::CodedError;
use capsule_core::policy::PayloadRetention;
use capsule_runtime::{BoundPolicy, SessionChoice, open_sessions};
use capsule_store::Store;

use crate::args::{SessionArg, UnattendedArg};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::Screen;

/// The variable that names the session of every call.
const SESSION_VARIABLE: &str = "CAPSULE_SESSION";

/// Which session a call belongs to; none where it is a run of its own.
///
/// # Errors
/// When the name is none, the session that it names is not open, or the policy keeps too little for one.
pub(super) fn choose_session(
    arg: &SessionArg,
    ask: UnattendedArg,
    bound: &BoundPolicy,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<Option<SessionChoice>, Failure> {
    let variable = || CliContext::variable(SESSION_VARIABLE)?.into_string().ok();
    let named = arg.session.clone().or_else(variable).filter(|name| !name.is_empty());
    let is_named = named.is_some();
    let choice = match named.as_deref() {
        Some("none") => None,
        Some("auto") => Some(SessionChoice::Named(terminal_name().ok_or_else(no_terminal)?)),
        Some(name) if name.contains(':') => Some(SessionChoice::Named(checked_name(name)?)),
        Some(id) => Some(SessionChoice::Run(
            find_session(ctx, id).map_err(|failure| teach_name(failure, id))?,
        )),
        None if is_at_terminal(ask, screen) => terminal_name().map(SessionChoice::Named),
        None => None,
    };
    // What a killed process left is read from the record, which has to hold it.
    if choice.is_some() && bound.policy.audit.payloads != PayloadRetention::Full {
        let message = "a session needs `audit.payloads: full`, and the policy keeps less";
        return match is_named {
            true => Err(usage_failure(message)),
            false => Ok(None),
        };
    }
    Ok(choice)
}

/// The full id of the run that a person means with an open session.
///
/// # Errors
/// When the store holds none like it.
pub(super) fn find_session(ctx: &CliContext, id: &str) -> Result<String, Failure> {
    let unknown = |way: &str| -> Failure {
        let message = format!("`{id}` is no open session");
        CodedError::new(Code::SessionUnknown, message).with_suggestion(way).into()
    };
    if !ctx.store.exists() {
        return Err(unknown(Code::SessionUnknown.next_step()));
    }
    let open = open_sessions(&ctx.store)?;
    let run = match id {
        "latest" => open.first().map(|session| session.run.clone()),
        id => {
            let run = Store::open_read_only(&ctx.store)?.find(id).map_err(|error| {
                match error.code() {
                    Code::RunUnknown => unknown(Code::SessionUnknown.next_step()),
                    _ => error.into(),
                }
            })?;
            if !open.iter().any(|session| session.run == run) {
                let way = format!(
                    "`capsule show-run {id}` shows it, `capsule changes {id}` what it staged"
                );
                return Err(unknown(&way));
            }
            Some(run)
        }
    };
    run.ok_or_else(|| unknown(Code::SessionUnknown.next_step()))
}

/// The same failure where a caller may have meant a name for its session: it says how one is spelled.
fn teach_name(failure: Failure, asked: &str) -> Failure {
    let is_id = asked == "latest" || asked.starts_with("r-");
    match failure {
        Failure::Problem(CodedError { code: Code::RunUnknown | Code::SessionUnknown, .. }) if !is_id => {
            CodedError::new(Code::SessionUnknown, format!("`{asked}` is the id of no open session"))
                .with_suggestion(format!(
                    "a name has a colon in it and opens a session where there is none: `--session {asked}:1`; \
                     `capsule session list` shows the open ones"
                ))
                .into()
        }
        failure => failure,
    }
}

/// A name that a caller gives its session, such as `claude-code:3f2a`.
pub(crate) fn checked_name(name: &str) -> Result<String, Failure> {
    let is_name = name.chars().count() <= limits::NAME_CHARS && !name.contains(char::is_control);
    match is_name {
        true => Ok(name.to_owned()),
        false => {
            let most = limits::NAME_CHARS;
            let message = format!("the name of a session has at most {most} characters");
            Err(usage_failure(message))
        }
    }
}

/// Whether a person sits in front of the command: the next command of the same terminal may go on from it.
fn is_at_terminal(ask: UnattendedArg, screen: &Screen) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_script = ask.unattended || is_set("CAPSULE_UNATTENDED") || is_set("CI") || screen.json;
    !is_script && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The terminal, with the number of the session of processes (setsid(2)) that it belongs to: another shell in a
/// terminal of the same name is another one. None also where that session was begun outside of the process's
/// namespace of processes and so has no number here.
fn terminal_name() -> Option<String> {
    let name = rustix::termios::ttyname(io::stdin(), Vec::new()).ok()?;
    // getsid(2) is not asked: rustix takes its answer 0 for impossible, yet it is the answer in such a namespace.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let leader: NonZeroU32 = fields_from_state(&stat)?.nth(3)?.parse().ok()?;
    Some(format!("terminal:{}:{leader}", name.to_str().ok()?))
}

fn no_terminal() -> Failure {
    usage_failure("`--session auto` needs a terminal; name the session instead, such as `job:1`")
}
