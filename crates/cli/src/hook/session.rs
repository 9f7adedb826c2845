//! A call of a host, judged and recorded in the session of that host.

use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_core::decision::Verdict;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_core::policy::PayloadRetention;
use capsule_runtime::{
    CallResult, Cancel, CommandRunner, LiveRunOptions, ModelSession, NoPrompt, NullObserver,
    SessionChoice, SessionRequest,
};
use serde_json::{Map, Value, json};

use crate::args::{Globals, HookArgs};
use crate::command::run_start::run_options;
use crate::command::session_choice::checked_name;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::hook::answer::HookAnswer;
use crate::hook::calls::{ToolArgs, content_calls, file_calls};
use crate::hook::dialect::Dialect;
use crate::hook::host_tool::Meaning;
use crate::hook::input::HookInput;
use crate::hook::rewrite::ConfinedCommand;

/// The answer to a call.
///
/// # Errors
/// When it cannot be judged or recorded: it is denied then.
pub(super) fn answer(
    input: &HookInput,
    (args, globals): (&HookArgs, &Globals),
    cancel: &Cancel,
) -> Result<HookAnswer, CodedError> {
    let dialect = args.dialect.dialect();
    let meaning = dialect.tools.iter().find(|tool| tool.names.contains(&input.tool.as_str()));
    let meaning = meaning.map(|tool| &tool.meaning);
    if let Some(Meaning::Internal) = meaning {
        return Ok(HookAnswer::Silent);
    }
    let name = checked_name(&format!("{}:{}", dialect.name, input.session))?;
    let ctx = CliContext::read(globals)?;
    let workspace = workspace(input, dialect, &ctx)?;
    let ctx = ctx.with_workspace(&workspace);
    let bound = ctx.load_policy(&args.policy, None)?;
    if bound.policy.audit.payloads != PayloadRetention::Full {
        let message = "a session needs `audit.payloads: full`, and the policy keeps less";
        return Err(CodedError::new(Code::Usage, message));
    }
    let command_runner = CommandRunner::default();
    let mut silent = NullObserver;
    let prompt = Box::new(NoPrompt);
    let steered = (&command_runner, cancel);
    let options = LiveRunOptions {
        is_gate: true,
        for_agent: true,
        ..run_options((&bound, &ctx), RunKind::Call, steered, prompt, &mut silent)
    };
    let choice = SessionChoice::Named(name.clone());
    let request = SessionRequest { choice: &choice, policy: &bound, idle: limits::SESSION_IDLE };
    let mut session = ModelSession::open(options, request).map_err(Failure::from)?;
    let answer = match meaning {
        None => Err(unknown_tool(input, dialect)),
        Some(Meaning::Command { text, directory, background }) => {
            let work = bound.workspace.path();
            // What goes on beside other calls has a run of its own: it would hold the session for its whole life.
            let is_true = |name: &&str| input.args.get(*name) == Some(&Value::Bool(true));
            let line = ConfinedCommand {
                session: if background.iter().any(is_true) { "none" } else { &name },
                workspace: work,
                policy: &args.policy,
                globals,
            };
            HostCommand::read(input, (text, directory), work)
                .map(|command| command.answer(&line, &mut session))
        }
        Some(meaning) => answer_files(&mut session, input, meaning),
    };
    let answer = answer.unwrap_or_else(|problem| {
        record_unjudged(input, dialect, &mut session)?;
        Err(problem)
    });
    // What cannot be recorded is not allowed.
    let left = session.leave(Exit::Ok).map_err(Failure::from);
    command_runner.detach();
    left?;
    answer
}

fn unknown_tool(input: &HookInput, dialect: &Dialect) -> CodedError {
    let message = format!("the policy knows no tool `{}` of {}", input.tool, dialect.name);
    CodedError::new(Code::ToolUnknown, message)
        .with_suggestion("use a command, or a tool that reads, writes or edits one file")
}

/// The directory of the project, if the host names one above its current directory, else that.
///
/// # Errors
/// When everything of the user lies in it: as for `capsule sandbox`, the home directory has to be named.
fn workspace(
    input: &HookInput,
    dialect: &Dialect,
    ctx: &CliContext,
) -> Result<PathBuf, CodedError> {
    let project = || {
        let project = (!dialect.project.is_empty()).then(|| CliContext::variable(dialect.project));
        project.flatten().map(PathBuf::from).filter(|project| input.cwd.starts_with(project))
    };
    let named = ctx.named_workspace();
    let chosen = named.or_else(project).unwrap_or_else(|| input.cwd.clone());
    // A directory that is not there is refused with the policy.
    let Ok(real) = chosen.canonicalize() else { return Ok(chosen) };
    let hint = "tell the user to start the agent in the directory of a project";
    ctx.refuse_too_wide(&real, hint)?;
    Ok(chosen)
}

/// The answer to a call to a file or a host; the outer error is that it cannot be judged.
///
/// # Errors
/// When it cannot be told what the call would do.
fn answer_files(
    session: &mut ModelSession<'_>,
    input: &HookInput,
    meaning: &Meaning,
) -> Result<Result<HookAnswer, CodedError>, CodedError> {
    for call in content_calls(input, meaning)? {
        let decision = session.judge(call.0, call.1.clone());
        // A file that is not there has no content. Every other reading that is not allowed is recorded as a call.
        if !matches!(decision.verdict, Verdict::Allow)
            && decision.code != Code::FileNotFound
            && let Err(problem) = submit_allowed(session, call)
        {
            return Ok(Err(problem));
        }
    }
    Ok(gate(session, file_calls(input, meaning)?))
}

/// Makes calls that the host carries out. None is made where one of them is denied.
fn gate(session: &mut ModelSession<'_>, calls: Vec<ToolArgs>) -> Result<HookAnswer, CodedError> {
    let is_denied =
        |(tool, args): &ToolArgs| session.judge(tool, args.clone()).verdict == Verdict::Deny;
    let denied = calls.iter().position(is_denied);
    let calls = match denied {
        Some(at) => calls.into_iter().skip(at).take(1).collect(),
        None => calls,
    };
    for call in calls {
        submit_allowed(session, call)?;
    }
    Ok(HookAnswer::Allow)
}

/// Makes a call that the host carries out.
fn submit_allowed(session: &mut ModelSession<'_>, call: ToolArgs) -> Result<(), CodedError> {
    let is_allowed = |result: &CallResult| result.problem.is_none() && result.value.is_some();
    match result(session, call)? {
        result if is_allowed(&result) => Ok(()),
        result => Err(problem(session, result)),
    }
}

fn result(
    session: &mut ModelSession<'_>,
    (tool, args): (&str, Value),
) -> Result<CallResult, CodedError> {
    let answer = session.call(tool, &args.to_string()).map_err(|error| {
        CodedError::new(error.code(), error.to_string()).with_suggestion(error.suggestion())
    })?;
    answer.result.ok_or_else(|| CodedError::new(Code::ArgsInvalid, answer.text))
}

/// Why a call is not allowed, and how a person can allow it where they can.
fn problem(session: &ModelSession<'_>, result: CallResult) -> CodedError {
    let call = format!("{}:{}", session.live().label, result.call);
    let problem = result.problem.unwrap_or_else(|| result.decision.into());
    match problem.code {
        Code::ApprovalWaiting => {
            let hint = format!(
                "ask the user to run `capsule approvals answer {call} --allow once`, then make the same call again"
            );
            problem.with_suggestion(hint)
        }
        _ => problem,
    }
}

/// Records a call that cannot be judged, under the name of the host's tool, which no policy allows.
fn record_unjudged(
    input: &HookInput,
    dialect: &Dialect,
    session: &mut ModelSession<'_>,
) -> Result<(), CodedError> {
    let name: String = format!("{}:{}", dialect.name, input.tool);
    let name: String = name.chars().take(limits::NAME_CHARS).collect();
    result(session, (&name, Value::Object(input.args.clone()))).map(|_| ())
}

/// A command that a host is about to give to a shell.
struct HostCommand {
    /// The arguments of the host's tool.
    host_args: Map<String, Value>,
    /// Which of them is the command.
    text_name: String,
    /// The command.
    text: String,
    /// Its directory within the workspace, where it is not the workspace itself.
    directory: Option<String>,
    /// How long it may take, in milliseconds.
    timeout: Option<u64>,
}

impl HostCommand {
    fn read(
        input: &HookInput,
        (text_name, directory): (&str, &[&str]),
        workspace: &Path,
    ) -> Result<Self, CodedError> {
        let invalid = |why: &str| CodedError::new(Code::HookUnjudged, format!("the command {why}"));
        let text = input.text(&[text_name]).ok_or_else(|| invalid("is no text"))?;
        let directory = match input.text(directory) {
            Some(directory) => PathBuf::from(input.path(directory)?),
            None => input.cwd.clone(),
        };
        let real = directory.canonicalize().unwrap_or(directory);
        let inside = real.strip_prefix(workspace).map_err(|_| {
            let message =
                format!("the command would run in `{}`, outside of the workspace", real.display());
            CodedError::new(Code::PathOutside, message)
        })?;
        let inside = inside
            .to_str()
            .ok_or_else(|| invalid("runs in a directory whose name is not UTF-8"))?;
        let timeout = input.args.get("timeout").and_then(Value::as_u64);
        Ok(Self {
            host_args: input.args.clone(),
            text_name: text_name.to_owned(),
            text: text.to_owned(),
            directory: (!inside.is_empty()).then(|| inside.to_owned()),
            timeout: timeout.filter(|millis| *millis > 0),
        })
    }

    /// The arguments of our tool.
    fn call_args(&self) -> Value {
        let mut args = Map::from_iter([("command".to_owned(), json!(self.text))]);
        args.extend(self.directory.as_ref().map(|inside| ("cwd".to_owned(), json!(inside))));
        let timeout = self.timeout.map(|millis| json!(format!("{millis}ms")));
        args.extend(timeout.map(|timeout| ("timeout".to_owned(), timeout)));
        Value::Object(args)
    }

    /// A command that may run, or is asked about, is recorded, and asked about, when it runs.
    fn answer(
        mut self,
        line: &ConfinedCommand<'_>,
        session: &mut ModelSession<'_>,
    ) -> Result<HookAnswer, CodedError> {
        let call = ("shell.run", self.call_args());
        if session.judge(call.0, call.1.clone()).verdict == Verdict::Deny {
            let denied = result(session, call)?;
            return Err(problem(session, denied));
        }
        let text = line.text(&self.text, self.directory.as_deref(), self.timeout)?;
        self.host_args.insert(self.text_name, text.into());
        Ok(HookAnswer::Rewrite(self.host_args))
    }
}

impl From<Failure> for CodedError {
    /// A failure as the reason of a denial.
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Problem(problem) => problem,
            Failure::WeakerLayer(change) => change.refusal(),
            Failure::InvalidText(text, problems) => {
                let code = problems.first().map_or(Code::PolicySyntax, |first| first.code);
                let why = problems.first().map_or("", |first| first.message.as_str());
                let message = format!("the policy `{}` is not valid: {why}", text.name);
                Self::new(code, message)
                    .with_suggestion("tell the user that `capsule policy check` shows where")
            }
            Failure::Diverged { .. } | Failure::Quiet(_) => {
                Self::new(Code::EngineFault, "the hook failed")
            }
        }
    }
}
