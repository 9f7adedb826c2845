//! `shell.run`: a program with its arguments, confined. Never a shell.

mod change;
mod command;
mod git_alias;
mod git_repository;
mod group_files;
mod impossible;
mod jobs;
mod list;
mod part_place;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::units;
use capsule_command::shell_syntax::{ElementKind, ListOperator, Script, ValueProblem, parse};
use capsule_command::steps::ReachedState;
use capsule_core::action::{
    Action, CommandStep, Facts, FileKind, PathTarget, StepContext, UnsupportedStep,
};
use capsule_core::capability::Capability;
use capsule_core::confinement::SandboxTier;
use capsule_core::outcome::CodedError;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use serde_json::{Map, Value};

use self::change::Change;
use self::group_files::{check_group_files, removed_group_file};
use self::jobs::{JobOperation, has_known_jobs, unknown_form};
use self::list::ListParts;
use self::part_place::PartPlace;
use crate::command::code_files::CodeFiles;
use crate::command::operation::{CommandOperation, ReadyStage, no_background};
use crate::command::program::{find_command, missing};
use crate::tool::args::{invalid_args, number_arg, text_arg};
use crate::tool::prepare::{FailedOperation, command_facts, command_operation, failed_operation};
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `shell.run` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "shell.run",
    model_name: "shell_run",
    aliases: &["command_exec"],
    about: "Runs a program, or a command of pipelines and lists, confined and without a shell.",
    shape: ToolShape::Exec,
    capabilities: &[Capability::ProcExec],
    arguments: &[
        ToolArgument {
            name: "argv",
            kind: ArgumentKind::Argv,
            required: false,
            about: "the program's name and its arguments, as a list",
        },
        ToolArgument {
            name: "command",
            kind: ArgumentKind::Text,
            required: false,
            about: "a text of the command language, in place of `argv`; its parts share a `/tmp`, which is empty for the next call",
        },
        ToolArgument {
            name: "part",
            kind: ArgumentKind::Number,
            required: false,
            about: "which part of the list that `command` is, from 1; all of them if left out",
        },
        ToolArgument {
            name: "reached",
            kind: ArgumentKind::Text,
            required: false,
            about: "for a part, the values that the parts before it left, as JSON",
        },
        ToolArgument {
            name: "cwd",
            kind: ArgumentKind::Path,
            required: false,
            about: "the folder to run in; the workspace if left out",
        },
        ToolArgument {
            name: "stdin",
            kind: ArgumentKind::Text,
            required: false,
            about: "what the program reads from its standard input",
        },
        ToolArgument {
            name: "timeout",
            kind: ArgumentKind::Duration,
            required: false,
            about: "how long it may take",
        },
    ],
    results: &[
        ResultField { name: "exit_code", about: "the program's status; none if a signal ended it" },
        ResultField { name: "signal", about: "the signal that ended it" },
        ResultField { name: "stdout", about: "its standard output" },
        ResultField { name: "stdout_base64", about: "its standard output, where it is not text" },
        ResultField { name: "stderr", about: "its standard error" },
        ResultField { name: "stderr_base64", about: "its standard error, where it is not text" },
        ResultField { name: "stdout_tail", about: "the end of a standard output that was cut" },
        ResultField { name: "stdout_tail_base64", about: "the same, where it is not text" },
        ResultField { name: "stderr_tail", about: "the end of a standard error that was cut" },
        ResultField { name: "stderr_tail_base64", about: "the same, where it is not text" },
        ResultField {
            name: "stdout_bytes_total",
            about: "how much it wrote to its standard output",
        },
        ResultField {
            name: "stderr_bytes_total",
            about: "how much it wrote to its standard error",
        },
        ResultField {
            name: "truncated",
            about: "whether bytes between beginning and end of either were left out",
        },
        ResultField { name: "limits_reached", about: "the limits that it ran into" },
        ResultField {
            name: "refused_hosts",
            about: "the hosts that were refused to it, each with a code and a reason",
        },
        ResultField { name: "left_running", about: "how many processes it left, which were ended" },
        ResultField {
            name: "job",
            about: "the number of the part that it started in the background",
        },
        ResultField { name: "jobs", about: "how parts that ran in the background ended" },
        ResultField { name: "changes", about: "what it changed, where the workspace is staged" },
        ResultField { name: "changes_total", about: "how many paths it changed there" },
        ResultField { name: "direct", about: "whether it could change the workspace itself" },
        ResultField { name: "unconfined", about: "whether it ran with nothing around it" },
        ResultField {
            name: "parts",
            about: "the parts of a list, each of which is a call of its own",
        },
        ResultField { name: "root", about: "where the workspace is for the parts of a list" },
        ResultField { name: "folder", about: "where a part of a list that is a `cd` goes" },
        ResultField { name: "clamped", about: "whether more time was asked for than it may have" },
    ],
};

/// Runs a program.
#[derive(Clone, Copy, Debug)]
pub struct ShellRun;

impl Tool for ShellRun {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let stdin = text_arg(args, "stdin");
        if stdin.is_some_and(|stdin| stdin.len() > limits::STDIN_BYTES) {
            return Err(invalid_args(format!("`stdin` has at most {} bytes", limits::STDIN_BYTES)));
        }
        let timeout_ms = match text_arg(args, "timeout") {
            Some(text) => Some(
                units::parse_duration(text)
                    .map(units::millis)
                    .ok_or_else(|| invalid_args("`timeout` is a duration such as `10s`"))?,
            ),
            None => None,
        };
        let stdin = stdin.map(|stdin| {
            let bytes = u64::try_from(stdin.len()).unwrap_or(u64::MAX);
            (Digest::of(stdin.as_bytes()), bytes)
        });
        let cwd = context.path(text_arg(args, "cwd").unwrap_or("."));
        let words = args.get("argv").and_then(Value::as_array);
        match (words, text_arg(args, "command")) {
            (Some(words), None) => {
                let argv = words.iter().filter_map(Value::as_str).collect();
                let argv = git_alias::expand_argv(argv, context.git_aliases);
                Ok(Action::Run { argv, cwd, stdin, timeout_ms, unconfined: false })
            }
            (None, Some(command)) => {
                let part = match (number_arg(args, "part"), text_arg(args, "reached")) {
                    (Some(number), Some(text)) => {
                        let state = serde_json::from_str(text)
                            .map_err(|_| invalid_args("`reached` is not what a list leaves"))?;
                        Some((number, state))
                    }
                    (number, _) => number.map(|number| (number, ReachedState::default())),
                };
                let (steps, text) = parse_steps(command, (&cwd, context), part)?;
                Ok(Action::Command { steps, text, cwd, stdin, timeout_ms })
            }
            _ => Err(invalid_args("a command is either `argv` or `command`")
                .with_suggestion("send `argv` as a list of words, or `command` as a text")),
        }
    }

    fn prepare(&self, action: &Action, args: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let stdin = args.get("stdin").and_then(Value::as_str).unwrap_or_default();
        match action {
            Action::Run { argv, cwd, .. } => prepare_program(action, (argv, cwd), stdin, context),
            Action::Command { steps, .. } => {
                let reached = args.get("reached").and_then(Value::as_str);
                let pipe_fail = reached
                    .and_then(|text| serde_json::from_str(text).ok())
                    .is_some_and(|state: ReachedState| state.pipe_fail);
                let part = args.get("part").and_then(Value::as_u64);
                let place = PartPlace::of(args.get("command").and_then(Value::as_str), part);
                if let Some(problem) = refused_background(steps, context) {
                    let facts =
                        Facts { sandbox: context.commands.sandbox_status(), ..Facts::default() };
                    let operation = failed_operation(problem.clone(), context);
                    let facts = impossible_call(facts, problem).facts;
                    return PreparedCall { facts, operation };
                }
                prepare_command(action, (steps, pipe_fail), (stdin, &place), context)
            }
            _ => failed_call(Facts::default(), CodedError::new(Code::EngineFault, "not a command")),
        }
    }
}

/// Why parts that run in the background are refused, if they are.
fn refused_background(steps: &[CommandStep], context: &ToolContext<'_>) -> Option<CodedError> {
    if !steps.iter().any(|step| step.is_background) {
        return None;
    }
    let status = context.commands.sandbox_status();
    let is_weak = match &status {
        Some(Ok(status)) => status.tier != SandboxTier::Full,
        Some(Err(_)) => true,
        // Commands are only judged.
        None => context.is_gate,
    };
    is_weak.then(no_background)
}

fn failed_call(facts: Facts, problem: CodedError) -> PreparedCall {
    PreparedCall { facts, operation: Box::new(FailedOperation(problem)) }
}

/// A call that fails whatever a person says, so that none is asked. Where commands are only judged, what a policy
/// says does not depend on what is installed.
fn impossible_call(facts: Facts, problem: CodedError) -> PreparedCall {
    let impossible = facts.sandbox.is_some().then(|| problem.clone());
    failed_call(Facts { impossible, ..facts }, problem)
}

/// What was found, with why a person need not be asked about the call, if it can only fail. Where its rule allows it
/// without a question, it fails as it would anywhere.
fn with_impossible(
    facts: Facts,
    stages: &[ReadyStage],
    at: Option<(&PathTarget, &str)>,
    context: &ToolContext<'_>,
) -> Facts {
    // Where commands are only judged, what a policy says does not depend on what is there.
    let at = at.filter(|_| facts.sandbox.is_some());
    let impossible = at.and_then(|at| impossible::reason(stages, at, &facts, context));
    Facts { impossible, ..facts }
}

/// What a text of the command language means, or one part of the list that it is, with the text of
/// that. A list begins in the folder, a part of it runs there: which one that is depends on the parts
/// before it.
fn parse_steps(
    text: &str,
    (cwd, context): (&PathTarget, &DescribeContext<'_>),
    part: Option<(u64, ReachedState)>,
) -> Result<(Vec<CommandStep>, String), CodedError> {
    let of = StepContext { names: context.root_names, is_file: context.is_program };
    let mut script = parse(text).map_err(|refusal| {
        let shown = refusal.underlined(text);
        outside_language(format!("{}\n{shown}", refusal.message), &refusal.suggestion)
    })?;
    if !has_known_jobs(&script) {
        return Err(unknown_form());
    }
    git_alias::expand_script(&mut script, context.git_aliases);
    if let Some((number, reached)) = part {
        return one_part(&script, (cwd, &reached), number, &of);
    }
    let steps = CommandStep::of(&script, cwd, &of).map_err(unsupported)?;
    for step in &steps {
        check_group_files(script.elements.get(step.number - 1), step, of.names)?;
    }
    let last = script.elements.iter().rposition(|element| element.kind == ElementKind::Run);
    let is_whole = steps.last().map(|step| step.number) == last.map(|last| last + 1);
    if is_whole && steps.iter().all(CommandStep::is_cd) {
        let why = "the command only goes to a folder, and where it goes does not last";
        let suggestion = "write `cd FOLDER && PROGRAM ...`, or name it in `cwd`";
        return Err(outside_language(why, suggestion));
    }
    Ok((steps, text.to_owned()))
}

fn outside_language(message: impl Into<String>, suggestion: &str) -> CodedError {
    CodedError::new(Code::ExecNotInLanguage, message).with_suggestion(suggestion.to_owned())
}

fn unsupported(why: UnsupportedStep) -> CodedError {
    match why {
        UnsupportedStep::UnsupportedCd => outside_language(
            "this `cd`, `wait` or `kill` is none of this language",
            "write `cd FOLDER && PROGRAM ...`, and `wait` and `kill %1` without a pipe",
        ),
        UnsupportedStep::TooManyFolders => outside_language(
            "too many folders come into question for what runs behind every `cd`",
            "join what belongs together by `&&`: `cd FOLDER && PROGRAM ...`",
        ),
        UnsupportedStep::TooManyWays => outside_language(
            "the list may go more ways than can be judged before it runs",
            "split it into several calls",
        ),
        UnsupportedStep::Value(ValueProblem::TooLong) => outside_language(
            "the values of variables make the command too long",
            "write the text to a file, and name the file",
        ),
        UnsupportedStep::Value(ValueProblem::Unset(name)) => outside_language(
            format!("`${name}` may have no value where it is read"),
            "give it a value before, in any case",
        ),
        UnsupportedStep::Value(ValueProblem::Pattern(name)) => {
            let shown = if name.starts_with('(') { "$(..)".into() } else { format!("${name}") };
            outside_language(
                format!("what `{shown}` means could be read as several words or a pattern"),
                "put it in double quotes",
            )
        }
        UnsupportedStep::Value(ValueProblem::Output(why)) => outside_language(
            format!("what a program printed {why}"),
            "run the inner command first, then write what it printed into this one",
        ),
    }
}

/// One part of a list, in the directory and with the values that it is reached with.
fn one_part(
    script: &Script,
    at: (&PathTarget, &ReachedState),
    number: u64,
    context: &StepContext<'_>,
) -> Result<(Vec<CommandStep>, String), CodedError> {
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let started = script.elements.iter().filter(|element| element.is_background).count();
    if started > 0 && index == Some(script.elements.len()) {
        let (number, join) = (script.elements.len() + 1, ListOperator::Then);
        let (stages, unless) = (Vec::new(), Vec::new());
        let (is_captured, is_background) = (false, false);
        let cwd = at.0.clone();
        let step = CommandStep { number, join, cwd, stages, unless, is_captured, is_background };
        let names: Vec<String> = (1..=started).map(|job| format!("%{job}")).collect();
        return Ok((vec![step], format!("kill {}", names.join(" "))));
    }
    let element = index.and_then(|index| script.elements.get(index));
    let element = element.filter(|element| element.kind == ElementKind::Run);
    let (Some(element), Some(index)) = (element, index) else {
        return Err(invalid_args(format!("the list has no part {number}")));
    };
    let (step, only) = CommandStep::reached(element, index, at, context).map_err(unsupported)?;
    check_group_files(Some(element), &step, context.names)?;
    Ok((vec![step], only.to_string()))
}

fn prepare_program(
    action: &Action,
    (argv, cwd): (&[String], &PathTarget),
    stdin: &str,
    context: &ToolContext<'_>,
) -> PreparedCall {
    let program = argv.first().and_then(|name| find_command(name, cwd, context));
    let found = program.as_ref().map(|program| program.fact.clone());
    let facts = Facts {
        sandbox: context.commands.sandbox_status(),
        ..command_facts(action, found, context)
    };
    let nowhere = |path| facts.path_fact(path).is_some_and(|fact| fact.kind == FileKind::Missing);
    match (program, cwd.inside()) {
        (_, Some(path)) if nowhere(path) => {
            let message = format!("there is no folder `{path}` to run in");
            failed_call(facts, CodedError::new(Code::FileNotFound, message))
        }
        (Some(program), Some(_)) => {
            let argv = argv.iter().map(Into::into).collect();
            let (variables, redirects) = (Vec::new(), Vec::new());
            let stages = vec![ReadyStage { program, argv, variables, redirects }];
            if let Some(problem) = git_repository::problem(&stages, cwd, context) {
                return impossible_call(facts, problem);
            }
            let facts = with_impossible(facts, &stages, Some((cwd, stdin)), context);
            let operation = command_operation(stages, cwd, stdin, &facts, context);
            let code_files = Some(CodeFiles::of(action, (&facts, false), context));
            let operation = Box::new(CommandOperation { code_files, ..operation });
            PreparedCall { facts, operation }
        }
        (None, _) => {
            let name = argv.first().map_or("", String::as_str);
            impossible_call(facts, missing(name, context.host.as_ref()))
        }
        (_, None) => failed_call(facts, CodedError::new(Code::PathOutside, "`cwd` is not inside")),
    }
}

fn prepare_command(
    action: &Action,
    (steps, pipe_fail): (&[CommandStep], bool),
    (stdin, place): (&str, &PartPlace),
    context: &ToolContext<'_>,
) -> PreparedCall {
    let (facts, programs) = match command::gather_facts(action, steps, context) {
        Ok(found) => found,
        Err(problem) => return failed_call(Facts::default(), problem),
    };
    let step = match (steps, action) {
        // Of a list whose first `cd` cannot succeed, nothing else may be reached.
        ([step], Action::Command { text, .. }) if step.is_cd() && place.is_single => {
            match JobOperation::of(text, place.is_end, context) {
                Some(Ok(operation)) => {
                    return PreparedCall { facts, operation: Box::new(operation) };
                }
                Some(Err(problem)) => return failed_call(facts, problem),
                None => {}
            }
            let operation = Box::new(Change::of(text, &step.cwd, &facts, context));
            return PreparedCall { facts, operation };
        }
        ([step], _) if !step.is_cd() && place.is_single => step,
        _ => {
            let code_files = CodeFiles::of(action, (&facts, true), context);
            let names = context.workspace.root_names();
            let operation = Box::new(ListParts::from_steps(steps, names, code_files));
            return PreparedCall { facts, operation };
        }
    };
    if let Some(path) = command::missing_cwd(step, &facts) {
        let message = format!("there is no folder `{path}` to run in");
        return failed_call(facts, CodedError::new(Code::FileNotFound, message));
    }
    if let Some(problem) = removed_group_file(place.element.as_ref(), step, &facts) {
        return failed_call(facts, problem);
    }
    match command::ready_stages(step, &facts, (&programs, context.host.as_ref())) {
        Ok((stages, input)) => {
            let stdin = input.as_deref().unwrap_or(stdin);
            let cwd = facts.real_directory(step);
            if let Some(problem) = git_repository::problem(&stages, &cwd, context) {
                return impossible_call(facts, problem);
            }
            // What a part of a list comes to is for the list to say.
            let single = (!place.is_part).then_some((&cwd, stdin));
            let facts = with_impossible(facts, &stages, single, context);
            let operation = command_operation(stages, &step.cwd, stdin, &facts, context);
            let code_files = Some(CodeFiles::of(action, (&facts, false), context));
            let background = place.job.filter(|_| step.is_background);
            let operation =
                Box::new(CommandOperation { pipe_fail, background, code_files, ..operation });
            PreparedCall { facts, operation }
        }
        Err(problem) if problem.code == Code::ExecNotFound => impossible_call(facts, problem),
        Err(problem) => failed_call(facts, problem),
    }
}
