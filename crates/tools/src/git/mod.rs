//! Asking git about the workspace's repository, whatever the repository would have git do meanwhile.
//!
//! A repository can name programs in its own configuration: filters, monitors, converters, pagers,
//! helpers. Git answers here behind the same walls as any command, under a command line and an
//! environment that are ours, and by itself:
//!
//! - what has a fixed name is switched off by that name (`hardened`);
//! - what the repository names itself is asked for first, with everything that its configuration
//!   includes, and switched off by the names that came (`drivers`);
//! - git finds no program by name, not even parts of itself, and may have no second process.

mod drivers;
mod hardened;
mod output;

use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::action::{Action, FileKind, PathLocation, PathTarget, RepositoryQuery};
use capsule_core::confinement::{Confinement, Enforcement, ProcessLimits, SandboxStatus};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{ContentScope, EnvironmentRule, Restrictions};
use capsule_redact::excerpt;
use capsule_sandbox::{CapturedOutput, CommandResult, Termination};
use capsule_workspace::{LookupError, OutsideRepository, look_up};
use serde_json::{Map, Value};

use self::drivers::Drivers;
pub(crate) use self::output::{lossy_text, nul_fields};
use crate::command::operation::{CommandOperation, ReadyStage};
use crate::command::outcome::confined_outcome;
use crate::command::program::{ResolvedProgram, find_program};
use crate::fault::wrong_permit_outcome;
use crate::host::NullSink;
use crate::tool::args::invalid_args;
use crate::tool::prepare::{FailedOperation, command_operation, path_facts};
use crate::tool::{DescribeContext, PreparedCall, ToolContext};

/// The paths that a call names; none if it names no `paths` at all.
///
/// # Errors
/// When there are too many, or a list without any, which would mean all of them.
pub(super) fn parse_paths(
    args: &Map<String, Value>,
    context: &DescribeContext<'_>,
) -> Result<Vec<PathTarget>, CodedError> {
    let Some(list) = args.get("paths").and_then(Value::as_array) else { return Ok(Vec::new()) };
    if list.is_empty() {
        let problem = invalid_args("`paths` names no path");
        return Err(problem.with_suggestion("leave `paths` out to mean all of them"));
    }
    if list.len() > limits::GIT_PATHS {
        return Err(invalid_args(format!("`paths` names at most {} paths", limits::GIT_PATHS)));
    }
    Ok(list.iter().filter_map(Value::as_str).map(|path| context.path(path)).collect())
}

/// How a question is put and its answer read.
pub(super) type QueryHandler =
    fn(&mut GitSession<'_>, &RepositoryQuery) -> Result<Output, CodedError>;

/// The preflight of a question.
pub(super) fn prepare(
    action: &Action,
    context: &ToolContext<'_>,
    reply: QueryHandler,
) -> PreparedCall {
    let program = find_program("git", context.host.as_ref());
    let mut facts = path_facts(action, context);
    facts.program = program.as_ref().map(|program| program.fact.clone());
    facts.sandbox = context.commands.sandbox_status();
    let (Some(program), Action::Git { query: ask }) = (program, action) else {
        let message = "there is no program `git` in the system's folders";
        let operation = Box::new(FailedOperation(CodedError::new(Code::ExecNotFound, message)));
        return PreparedCall { facts, operation };
    };
    let here = PathTarget::parse(".");
    let runner = CommandOperation {
        ignores_tmp_links: false,
        sink: Rc::new(NullSink),
        ..command_operation(Vec::new(), &here, "", &facts, context)
    };
    PreparedCall {
        facts,
        operation: Box::new(GitOperation {
            command: runner,
            program,
            question: ask.clone(),
            handler: reply,
        }),
    }
}

/// The operation of a question.
struct GitOperation {
    command: CommandOperation,
    program: ResolvedProgram,
    question: RepositoryQuery,
    handler: QueryHandler,
}

impl Operation for GitOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Git { confinement, results, clamped, bytes, contents } =
            permit.restrictions()
        else {
            return wrong_permit_outcome();
        };
        let Self { command: runner, program, question: ask, handler: reply } = *self;
        let time = Duration::from_millis(confinement.limits.timeout_ms);
        let mut asking = GitSession {
            command: runner,
            program,
            confinement: *confinement,
            deadline: Instant::now() + time,
            drivers: Drivers::default(),
            sandbox_status: None,
            max_results: usize::try_from(*results).unwrap_or(usize::MAX),
            max_bytes: usize::try_from(*bytes).unwrap_or(usize::MAX),
            contents,
        };
        let ended = asking.check_repository().and_then(|()| reply(&mut asking, &ask));
        let outcome = match ended {
            Ok(output) => Outcome::done(output.with("clamped", *clamped)),
            Err(problem) => Outcome::failed(problem),
        };
        match asking.sandbox_status {
            Some(status) => Outcome { enforcement: Enforcement::Sandboxed(status), ..outcome },
            None => outcome,
        }
    }
}

/// A question that is being put.
pub(super) struct GitSession<'b> {
    command: CommandOperation,
    program: ResolvedProgram,
    confinement: Confinement,
    deadline: Instant,
    /// What the repository names, to be switched off.
    drivers: Drivers,
    /// The walls that git last stood behind.
    sandbox_status: Option<SandboxStatus>,
    /// The most results.
    pub(super) max_results: usize,
    /// The most bytes of text.
    pub(super) max_bytes: usize,
    contents: &'b ContentScope,
}

impl GitSession<'_> {
    /// Makes sure that there is a repository here and nowhere else, and asks what it names.
    fn check_repository(&mut self) -> Result<(), CodedError> {
        self.require_plain_repository()?;
        let listed = self.run_git(&["config", "--null", "--list"], &[])?;
        self.drivers = Drivers::parse(&listed)?;
        Ok(())
    }

    /// Whether the workspace's own folder `.git` is the whole repository.
    fn require_plain_repository(&self) -> Result<(), CodedError> {
        let elsewhere = |what: &str| CodedError::new(Code::GitElsewhere, what);
        let workspace = &self.command.workspace;
        // The directory that a `.git` file names is shown where it names this workspace in turn.
        match OutsideRepository::find(workspace) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(why) => return Err(elsewhere(&format!("`.git` leads somewhere else: {why}"))),
        }
        let path = |name: &str| WorkspacePath::from_fs_name(name).unwrap_or_default();
        let folder = path(".git");
        match workspace.resolve(&folder) {
            Ok(found) if found.kind() == FileKind::Directory && found.real_path == folder => {}
            Ok(_) => return Err(elsewhere("`.git` is not a folder, and leads somewhere else")),
            Err(LookupError::Missing) => {
                return Err(CodedError::new(Code::GitNone, "there is no repository here"));
            }
            Err(_) => return Err(elsewhere("`.git` leads somewhere else, or cannot be opened")),
        }
        match workspace.resolve(&path(".git/commondir")) {
            Err(LookupError::Missing) => Ok(()),
            _ => Err(elsewhere("`.git/commondir` leads to another repository")),
        }
    }

    /// Has git answer with these words, about these paths of the repository; all of it if there are
    /// none.
    ///
    /// # Errors
    /// It did not.
    pub(super) fn run_git(
        &mut self,
        words: &[&str],
        paths: &[String],
    ) -> Result<CapturedOutput, CodedError> {
        let mut argv: Vec<OsString> = ["git"]
            .iter()
            .chain(hardened::GLOBAL_OPTIONS)
            .chain(words)
            .map(OsString::from)
            .collect();
        if !paths.is_empty() {
            argv.push("--".into());
            argv.extend(paths.iter().map(|path| format!(":(top,literal){path}").into()));
        }
        let variables = hardened::environment(&self.drivers);
        let program = self.program.clone();
        self.command.stages = vec![ReadyStage { program, argv, variables, redirects: Vec::new() }];
        let left = self.deadline.saturating_duration_since(Instant::now()).as_millis();
        let timeout_ms = u64::try_from(left).unwrap_or(u64::MAX).max(1);
        let limits = ProcessLimits { timeout_ms, ..self.confinement.limits };
        let confinement = Confinement { limits, ..self.confinement };
        let exit = self.command.run_to_end(&confinement, &EnvironmentRule::default())?;
        self.sandbox_status = Some(exit.sandbox_status.clone());
        match exit.termination {
            Termination::Exited(0) => Ok(exit.stdout),
            Termination::Exited(code) => Err(git_problem(code, &exit)),
            _ => Err(confined_outcome(exit, &self.confinement, false)
                .problem
                .unwrap_or_else(|| CodedError::new(Code::GitFailed, "git did not end by itself"))),
        }
    }

    /// Whether a path of the repository may be shown: no invariant protects it, it is open to `fs.read` under
    /// every name of the file that stands there, and nothing hides it from commands.
    pub(super) fn is_visible(&self, path: &[u8], hidden: &[OsString]) -> bool {
        let name = std::str::from_utf8(path).ok().map(|name| name.trim_end_matches('/'));
        let Some(path) = name.and_then(WorkspacePath::from_fs_name) else { return false };
        let is_hidden = |name: &OsString| Path::new(path.as_str()).starts_with(Path::new(name));
        let (fact, _) =
            look_up(&self.command.workspace, &path, &self.command.hidden_paths.borrow());
        // Nobody can say which names it has.
        let is_unknown =
            fact.kind == FileKind::File && matches!(fact.real, PathLocation::Outside(_));
        let mut names = [&path].into_iter().chain(&fact.denied_names);
        names.all(|name| self.contents.shows(name)) && !is_unknown && !hidden.iter().any(is_hidden)
    }

    /// What is hidden from commands now.
    pub(super) fn hidden_paths(&self) -> Result<Vec<OsString>, CodedError> {
        let hidden_paths = self.command.hidden_paths.borrow();
        hidden_paths
            .hidden_now(&self.command.workspace)
            .map_err(capsule_workspace::HiddenPathsError::problem)
    }
}

/// The paths of a question as they stand in the repository; none where all of it is meant.
pub(super) fn question_paths(ask: &RepositoryQuery) -> Vec<String> {
    let paths: Vec<&WorkspacePath> = ask.paths().iter().filter_map(PathTarget::inside).collect();
    if paths.iter().any(|path| path.is_root()) {
        return Vec::new();
    }
    paths.iter().map(|path| path.as_str().to_owned()).collect()
}

/// Why git did not answer, in the first line that it says.
fn git_problem(code: i32, exit: &CommandResult) -> CodedError {
    let said = lossy_text(&exit.stderr.bytes);
    let first = said.lines().find(|line| !line.starts_with("warning:"));
    let why = first.unwrap_or_default().trim_start_matches("fatal: ").trim_start_matches("error: ");
    let why = excerpt(why, limits::QUOTED_CHARS);
    CodedError::new(Code::GitFailed, format!("git ended with status {code}: {why}"))
}
