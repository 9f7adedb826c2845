//! The commands, one file each: raw arguments come in, checked ones go on.

mod approvals;
mod audit;
mod call;
mod changes;
mod chat;
mod chosen;
mod connect;
mod dispatch;
mod doctor;
mod exec;
mod explain_code;
mod feedback;
mod grants;
mod init;
pub(crate) mod layers;
mod list_runs;
mod manual;
mod pending;
mod plan;
mod plan_preview;
mod policy;
mod policy_test;
mod preflight;
mod redact;
mod replay;
mod report;
mod resume;
mod rule_hints;
mod run;
pub(crate) mod run_end;
pub(crate) mod run_start;
pub(crate) mod session;
pub(crate) mod session_choice;
mod show_run;
mod single_call;
mod staged_changes;
mod stats;
mod undo;
mod verify;

pub(crate) use changes::{Dropped, REFUSED_CHANGE, SettledChanges, settle_changes};
pub(crate) use chat::load_session_policy;
pub(crate) use dispatch::dispatch;
pub(crate) use policy::policy_texts;
pub(crate) use single_call::{SingleCall, SingleCallResult};
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::limits;
use capsule_base::units::parse_duration;
use capsule_core::outcome::CodedError;
use capsule_core::tool::{ArgumentKind, ToolShape};
use capsule_report::{RunView, payload_lookup};
use capsule_runtime::{edit, real_path, signature_of};
use capsule_store::{Store, StoreError};
use serde_json::{Map, Value};

use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{Screen, WARNING};

/// The id of a tool, by any of its names.
fn tool_id(name: &str) -> Option<&'static str> {
    signature_of(name).ok().map(|signature| signature.id)
}

/// The arguments of a call: JSON, for an edit also its block as models write it, or words behind `--`.
fn parse_call_args(tool: &str, json: Option<&str>, words: &[String]) -> Result<Value, Failure> {
    if let Some(json) = json {
        let read;
        let json = match json {
            "-" => {
                read = read_stdin()?;
                read.as_str()
            }
            json => json,
        };
        if tool_id(tool) == Some(edit::blocks::TOOL) && json.trim_start().starts_with('<') {
            let asked = edit::blocks::parse_single_edit(json).map_err(Failure::from)?;
            return Ok(asked.args);
        }
        return capsule_base::json::parse(json.as_bytes()).map_err(|error| {
            let message = format!("`--args` cannot be read: {}", error.message);
            Failure::from(CodedError::new(Code::Usage, message))
        });
    }
    let signature = signature_of(tool)
        .map_err(|problem| Failure::from(CodedError { code: Code::Usage, ..problem }))?;
    if signature.shape == ToolShape::Exec {
        return Ok(serde_json::json!({ "argv": words }));
    }
    let mut args = Map::new();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| usage_failure(format!("`{word}` is not `name=value`")))?;
        let read = match signature.argument(name).map(|argument| argument.kind) {
            Some(ArgumentKind::Number | ArgumentKind::Size) => {
                value.parse::<u64>().ok().map(Value::from)
            }
            Some(ArgumentKind::Flag) => value.parse::<bool>().ok().map(Value::from),
            Some(ArgumentKind::Paths) => Some(value.split(',').map(Value::from).collect()),
            _ => None,
        };
        let value = read.unwrap_or_else(|| Value::from(value));
        if args.insert(name.to_owned(), value).is_some() {
            return Err(usage_failure(format!("`{name}` is given twice")));
        }
    }
    Ok(Value::Object(args))
}

/// Arguments that are too long for a command line.
fn read_stdin() -> Result<String, Failure> {
    let most = u64::try_from(limits::ARGUMENT_BYTES).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    let read = std::io::stdin().take(most + 1).read_to_end(&mut text);
    read.map_err(|error| usage_failure(format!("standard input cannot be read: {error}")))?;
    String::from_utf8(text)
        .map_err(|_| usage_failure("the arguments on standard input are not UTF-8"))
}

/// A time so long ago, in microseconds since 1970.
fn parse_since(ago: Option<&str>) -> Result<Option<u64>, Failure> {
    let Some(text) = ago else { return Ok(None) };
    let ago = parse_duration(text)
        .ok_or_else(|| usage_failure(format!("`{text}` is not a duration such as `1d`")))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(now.saturating_sub(ago).as_micros()).ok())
}

/// Opens the store for reading. One that is not there yet holds no runs; one that lacks events is told.
fn open_store(ctx: &CliContext, screen: &Screen) -> Result<Store, Failure> {
    if !ctx.store.exists() {
        let message = format!("there is no store at `{}` yet", ctx.store.display());
        return Err(CodedError::new(Code::RunUnknown, message)
            .with_suggestion("it is made by the first run")
            .into());
    }
    open_to_read(&ctx.store, screen)
}

/// Opens a store that is there for reading, and tells if events are missing in it.
fn open_to_read(path: &Path, screen: &Screen) -> Result<Store, Failure> {
    let store = Store::open_read_only(path)?;
    if let Some(what) = store.missing()? {
        let place = escape::line(&path.display().to_string()).into_owned();
        screen.eprint(&format!(
            "{WARNING}warning{WARNING:#}: the store `{place}` {what} · `capsule verify` says where they were"
        ));
    }
    Ok(store)
}

/// Makes sure that a run whose changes somebody wants to make, drop or take back is the one they mean: it
/// worked in the workspace that they name, or `latest` in the one that they stand in.
///
/// # Errors
/// It worked elsewhere; by its own name it can still be meant.
fn require_workspace(
    ctx: &CliContext,
    (asked, label): (&str, &str),
    workspace: &str,
) -> Result<(), Failure> {
    let here = match ctx.named_workspace() {
        Some(named) if real_path(&named) == Path::new(workspace) => return Ok(()),
        Some(named) => named,
        None if asked != "latest" || real_path(&ctx.cwd).starts_with(workspace) => return Ok(()),
        None => ctx.cwd.clone(),
    };
    let (here, text) = (here.display().to_string(), escape::line(workspace));
    let message = format!("`{label}` worked in `{text}`, not in `{}`", escape::line(&here));
    let hint = format!("if it is meant, name it: `{label}` instead of `latest`");
    let problem = CodedError::new(Code::Usage, message);
    let is_named = ctx.named_workspace().is_some();
    Err(if is_named { problem } else { problem.with_suggestion(hint) }.into())
}

/// What the events of a run add up to.
fn read_run(store: &Store, run: &str) -> Result<RunView, StoreError> {
    let mut view = RunView::default();
    store.visit::<StoreError>(run, |stored| {
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        view.apply_event(stored.entry.at, &stored.entry.event, &payload_lookup(&payloads));
        Ok(())
    })?;
    Ok(view)
}

/// A call was named that its run has not.
fn no_such_call(run: &str, step: &str) -> CodedError {
    let problem = CodedError::new(Code::RunUnknown, format!("`{run}` has no call `{step}`"));
    problem.with_suggestion(format!("`capsule report {run}` lists its calls"))
}

/// `RUN:STEP` as its two parts.
fn run_and_step(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((run, step)) => (run, Some(step)),
        None => (text, None),
    }
}
