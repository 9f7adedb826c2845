//! The operation of a command.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_core::confinement::{Confinement, Enforcement, SandboxTier, WorkspaceAccess};
use capsule_core::lifecycle::{Operation, Permit, Preview};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{EnvironmentRule, HostScope, PathScope, Restrictions};
use capsule_sandbox as sandbox;
use capsule_workspace::{Cancel, HiddenPaths, HiddenPathsError, LinkChain, Staging, Workspace};
use serde_json::Value;

use sandbox::{
    CommandResult, HiddenPath, Launch, LaunchStage, PreparedCommand, RunningCommand, SandboxError,
    SandboxView, StreamRedirect,
};

use super::environment::{unset_private_variables, variables};
use super::outcome::{confined_outcome, with_pipe_fail};
use super::program::ResolvedProgram;
use crate::command::code_files::CodeFiles;
use crate::command::direct_write::DirectWriteGuard;
use crate::command::runner::{CommandError, CommandRunner, sandbox_view};
use crate::fault::wrong_permit_outcome;
use crate::host::{OutputKind, Sink, ToolHost};
use crate::network::{CommandNetwork, NetworkReport};

/// A program that is ready to run.
pub(crate) struct ReadyStage {
    pub(crate) program: ResolvedProgram,
    pub(crate) argv: Vec<OsString>,
    /// What is set in its environment besides.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Where its streams lead.
    pub(crate) redirects: Vec<StreamRedirect>,
}

pub(crate) struct CommandOperation {
    pub(crate) workspace: Rc<Workspace>,
    pub(crate) hidden_paths: Rc<RefCell<HiddenPaths>>,
    pub(crate) commands: CommandRunner,
    pub(crate) host: Rc<dyn ToolHost>,
    pub(crate) sink: Rc<dyn Sink>,
    pub(crate) cancel: Cancel,
    pub(crate) staging: Option<Rc<Staging>>,
    /// The programs, from the first to the last.
    pub(crate) stages: Vec<ReadyStage>,
    pub(crate) cwd: OsString,
    /// Whether links in `/tmp` lead them nowhere.
    pub(crate) ignores_tmp_links: bool,
    pub(crate) stdin: Vec<u8>,
    /// What a person is shown of it, where one may be asked.
    pub(crate) code_files: Option<CodeFiles>,
    /// Whether they fail together with any of them.
    pub(crate) pipe_fail: bool,
    /// Its number among the parts of a list that run in the background, if it is one.
    pub(crate) background: Option<u64>,
    /// How far the command is, or why it could not come so far.
    pub(crate) progress: Option<Result<CommandProgress, CodedError>>,
}

/// How far a command is before its end is waited for, and what serves its connections.
pub(crate) enum CommandProgress {
    /// It was made ready.
    Prepared(PreparedCommand, Option<CommandNetwork>),
    /// It has begun.
    Running(RunningCommand, Option<CommandNetwork>),
}

impl ReadyStage {
    pub(super) fn to_stage(&self, environment: &[(OsString, OsString)]) -> LaunchStage {
        let mut environment = environment.to_vec();
        for (name, value) in &self.variables {
            environment.retain(|(known, _)| known != name);
            environment.push((name.clone(), value.clone()));
        }
        LaunchStage {
            program: self.program.file.clone(),
            argv: self.argv.clone(),
            environment,
            redirects: self.redirects.clone(),
        }
    }
}

impl Operation for CommandOperation {
    fn prepare(&mut self, bounds: &Restrictions) {
        // What changes the workspace itself is looked at behind the intent.
        if let Restrictions::Run { confinement, environment, reads, hosts, .. } = bounds
            && confinement.workspace != WorkspaceAccess::Direct
            && self.background.is_none()
        {
            let scopes = (reads.as_ref(), hosts.as_deref());
            let held = self.prepare_command(confinement, environment, scopes, None);
            self.progress = Some(held);
        }
    }

    fn start(&mut self, _: &Permit<'_>) {
        if let Some(ahead) = self.progress.take() {
            let begun = ahead.and_then(|ahead| self.start_command(ahead));
            self.progress =
                Some(begun.map(|(run, network)| CommandProgress::Running(run, network)));
        }
    }

    fn preview(&mut self) -> Preview {
        self.code_files.as_ref().map_or(Preview::Unavailable, CodeFiles::preview)
    }

    fn run(mut self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let ahead = self.progress.take();
        let permit = match permit.unconfined() {
            Ok(leave) => return self.run_unconfined_command(&leave),
            Err(permit) => permit,
        };
        let Restrictions::Run { confinement, clamped, environment, reads, writes, hosts } =
            permit.restrictions()
        else {
            return wrong_permit_outcome();
        };
        if let Some(number) = self.background {
            return self
                .start_in_background(number, (confinement, environment, reads.as_ref()))
                .unwrap_or_else(Outcome::failed);
        }
        let direct = writes.as_ref().filter(|_| confinement.workspace == WorkspaceAccess::Direct);
        let workspace = Rc::clone(&self.workspace);
        let survey = |writes| {
            let aliases = self.hidden_paths.borrow().path_aliases_now(&workspace)?;
            let by = (&*self.hidden_paths.borrow(), (*aliases).clone());
            DirectWriteGuard::survey(&workspace, writes, by, self.host.store_path())
        };
        let mut ground = match direct.map(survey).transpose() {
            Ok(ground) => ground,
            Err(problem) => return Outcome::failed(problem),
        };
        let ahead = ahead.unwrap_or_else(|| {
            let scopes = (reads.as_ref(), hosts.as_deref());
            self.prepare_command(confinement, environment, scopes, ground.as_mut())
        });
        let staged = confinement.workspace == WorkspaceAccess::Staged;
        // What a part in the background changes is bounded while others run, too.
        let staging = self.staging.as_deref().filter(|_| staged || self.commands.jobs().exist());
        let ended = ahead
            .and_then(|ahead| self.wait_for_end(ahead, (staging, ground.as_ref()), Some(&permit)));
        let ended = match ended {
            Ok(EndedCommand { exit, refused, ended_for }) => {
                let mut outcome = confined_outcome(exit, confinement, *clamped);
                if !refused.is_empty() {
                    outcome.output = outcome.output.with("refused_hosts", refused);
                }
                match ended_for {
                    None => outcome,
                    Some(problem) => outcome.with_end(problem),
                }
            }
            Err(problem) => Outcome::failed(problem),
        };
        match ground {
            Some(ground) => {
                let hidden_paths = self.hidden_paths.borrow();
                ground.judge_outcome(
                    ended,
                    (&hidden_paths, hidden_paths.path_aliases_now(&workspace)),
                )
            }
            None => ended,
        }
    }
}

impl CommandOperation {
    /// Runs the programs, which can change nothing, and gives how they ended.
    ///
    /// # Errors
    /// They could not be run as they must be.
    pub(crate) fn run_to_end(
        &self,
        confinement: &Confinement,
        environment: &EnvironmentRule,
    ) -> Result<CommandResult, CodedError> {
        let held = self.prepare_command(confinement, environment, (None, None), None)?;
        self.wait_for_end(held, (None, None), None).map(|ended| ended.exit)
    }

    /// Finds the paths that are hidden from the programs, and the links that lead to protected paths.
    ///
    /// # Errors
    /// They cannot be found.
    fn find_hidden_paths(
        &self,
        reads: Option<&PathScope>,
    ) -> Result<(Vec<OsString>, LinkChain), CodedError> {
        let drawn = |hidden_paths: &HiddenPaths| {
            Ok((hidden_paths.hidden_now(&self.workspace)?, hidden_paths.link_chain()))
        };
        let drawn = match reads.filter(|read| read.hides_paths()).cloned() {
            None => drawn(&self.hidden_paths.borrow()),
            // A walk of its own for each call: few programs have a view of their own.
            Some(reads) => {
                let conceals = Box::new(move |path: &_, folder| reads.conceals(path, folder));
                drawn(&HiddenPaths::new(conceals).hiding_special_files()).and_then(
                    |(mut hidden, link_chain)| {
                        // Only that of the run knows what was moved since it began.
                        if self.workspace.lower().is_some() {
                            hidden.extend(self.hidden_paths.borrow().hidden_now(&self.workspace)?);
                        }
                        Ok((hidden, link_chain))
                    },
                )
            }
        };
        drawn.map_err(HiddenPathsError::problem)
    }

    fn problem(&self, why: &CommandError) -> CodedError {
        match why {
            CommandError::Sandbox(error) => sandbox_problem(&self.stages, error),
            CommandError::View(error) => unseen(error),
        }
    }

    fn view(&self, launch: &Launch, confinement: &Confinement) -> io::Result<SandboxView> {
        let masks = launch.hidden.clone();
        sandbox_view(&self.workspace, self.host.as_ref(), confinement.floor, None, masks)
    }

    /// Has the programs begin beside the parts of the list behind them. No host is reached by them.
    ///
    /// # Errors
    /// They could not be run as they must be.
    fn start_in_background(
        self,
        number: u64,
        (confinement, environment, reads): (&Confinement, &EnvironmentRule, Option<&PathScope>),
    ) -> Result<Outcome, CodedError> {
        let status = self.commands.sandbox_status().and_then(Result::ok);
        let full = status.filter(|status| status.tier == SandboxTier::Full);
        let Some(status) = full.filter(|_| confinement.workspace != WorkspaceAccess::Direct) else {
            return Err(no_background());
        };
        let (launch, _) = self.launch(confinement, environment, (reads, None), None)?;
        let launch = Launch { is_last: true, ..launch };
        let view = |launch: &Launch| self.view(launch, confinement);
        let copy = self.commands.fork_executor(&launch, view);
        let copy = copy.map_err(|why| self.problem(&why))?;
        let Self { commands, stages, pipe_fail, cancel, .. } = self;
        let describe = Box::new(move |error: &SandboxError| sandbox_problem(&stages, error));
        let job = (number, describe as _, *confinement, pipe_fail);
        commands.jobs().start(copy, (launch, cancel), job)?;
        let output = Output::default()
            .with("exit_code", 0)
            .with("stdout", "")
            .with("stderr", "")
            .with("job", number);
        Ok(Outcome { enforcement: Enforcement::Sandboxed(status), ..Outcome::done(output) })
    }

    /// What the sandbox is told of the programs, and whether they may reach hosts.
    ///
    /// # Errors
    /// What is hidden from them cannot be told.
    fn launch(
        &self,
        confinement: &Confinement,
        environment: &EnvironmentRule,
        (reads, hosts): (Option<&PathScope>, Option<&HostScope>),
        mut ground: Option<&mut DirectWriteGuard<'_>>,
    ) -> Result<(Launch, bool), CodedError> {
        let (hidden, link_chain) = self.find_hidden_paths(reads)?;
        let hidden: BTreeSet<OsString> = hidden.into_iter().collect();
        if let Some(staging) = self.staging.as_ref().filter(|_| self.background.is_none()) {
            let repositories = self.hidden_paths.borrow().known_repositories();
            staging.hide_in_indexes(&self.workspace, &repositories, &hidden);
        }
        let mut masks: Vec<HiddenPath> =
            hidden.into_iter().map(|path| HiddenPath { path }).collect();
        let hidden: Vec<OsString> = masks.iter().map(|mask| mask.path.clone()).collect();
        let has_more = ground.is_some() && self.workspace.has_aliases();
        if has_more || !hidden.is_empty() && self.workspace.may_alias(&hidden) {
            return Err(unhidable());
        }
        let direct = ground
            .as_mut()
            .map(|ground| ground.direct_writes(&mut masks, link_chain))
            .transpose()?;
        let status = self.commands.sandbox_status().and_then(Result::ok);
        let tier = status.map(|status| status.tier);
        let memory = Some(confinement.limits.memory_bytes);
        // Only namespaces give a network that leads nowhere else.
        let reaches = hosts.is_some() && tier == Some(SandboxTier::Full);
        let environment = variables(environment, self.host.as_ref(), (tier, memory), reaches);
        let launch = Launch {
            stages: self.stages.iter().map(|stage| stage.to_stage(&environment)).collect(),
            private_directory_variables: unset_private_variables(&environment),
            cwd: self.cwd.clone(),
            stdin: self.stdin.clone(),
            limits: confinement.limits,
            writes: confinement.workspace == WorkspaceAccess::Staged,
            ignores_tmp_links: self.ignores_tmp_links,
            direct,
            // All of them each time: what was hidden before may be another file by now.
            hidden: masks,
            is_last: self.commands.is_single(),
        };
        Ok((launch, reaches))
    }

    /// Has the programs made ready.
    ///
    /// # Errors
    /// They cannot be run as they must be.
    fn prepare_command(
        &self,
        confinement: &Confinement,
        environment: &EnvironmentRule,
        (reads, hosts): (Option<&PathScope>, Option<&HostScope>),
        ground: Option<&mut DirectWriteGuard<'_>>,
    ) -> Result<CommandProgress, CodedError> {
        // A part that runs in the background would use the proxy of this one.
        let hosts = hosts.filter(|_| !self.commands.jobs().exist());
        let (launch, reaches) = self.launch(confinement, environment, (reads, hosts), ground)?;
        let hosts = hosts.filter(|_| reaches);
        let view = |launch: &Launch| self.view(launch, confinement);
        let loopback = hosts.map(HostScope::loopback_ports);
        let held = self.commands.prepare(launch, loopback.as_deref(), view);
        let held = held.map_err(|why| self.problem(&why))?;
        let listeners = self.commands.listeners();
        let network = hosts.zip(listeners).map(|(scope, all)| {
            CommandNetwork::start(&all, scope, &|name| self.host.variable(name))
        });
        Ok(CommandProgress::Prepared(held, network.transpose()?))
    }

    /// Has them begin, if they have not.
    ///
    /// # Errors
    /// They cannot be run as they must be.
    fn start_command(
        &self,
        ahead: CommandProgress,
    ) -> Result<(RunningCommand, Option<CommandNetwork>), CodedError> {
        match ahead {
            CommandProgress::Running(running, network) => Ok((running, network)),
            CommandProgress::Prepared(held, network) => {
                let begun = self.commands.begin(held);
                let running = begun.map_err(|error| sandbox_problem(&self.stages, &error))?;
                Ok((running, network))
            }
        }
    }

    /// Waits for their end. What they change is collected, or bounded, by one of the two.
    ///
    /// # Errors
    /// They could not be run as they must be.
    fn wait_for_end(
        &self,
        ahead: CommandProgress,
        (staging, ground): (Option<&Staging>, Option<&DirectWriteGuard<'_>>),
        permit: Option<&Permit<'_>>,
    ) -> Result<EndedCommand, CodedError> {
        let (running, network) = self.start_command(ahead)?;
        let full = RefCell::new(None);
        let mut watch = OutputWatcher {
            sink: self.sink.as_ref(),
            cancel: &self.cancel,
            staging,
            overflow: Some(&full),
            direct_guard: ground,
            network: network.zip(permit),
        };
        let ended = self.commands.wait(running, &mut watch);
        let network = watch.network.map(|(network, permit)| network.finish(permit));
        let NetworkReport { refused, stopped } = network.unwrap_or_default();
        if let Some(staging) = &self.staging {
            staging.show_in_indexes(&self.workspace);
        }
        let exit = ended.map_err(|error| sandbox_problem(&self.stages, &error))?;
        let exit = with_pipe_fail(exit, self.pipe_fail);
        Ok(EndedCommand { exit, refused, ended_for: full.into_inner().or(stopped) })
    }
}

/// How programs ended.
struct EndedCommand {
    exit: CommandResult,
    /// The hosts that were refused to them, as JSON.
    refused: Vec<Value>,
    /// Why they were ended, if they changed too much, or a person said that nothing may follow.
    ended_for: Option<CodedError>,
}

pub(super) struct OutputWatcher<'w, 'p> {
    sink: &'w dyn Sink,
    cancel: &'w Cancel,
    /// Where the command's changes go, if it may make any.
    staging: Option<&'w Staging>,
    /// Why it was ended, if it changed too much.
    overflow: Option<&'w RefCell<Option<CodedError>>>,
    /// What bounds it, if it changes the workspace itself.
    direct_guard: Option<&'w DirectWriteGuard<'w>>,
    /// What serves its connections, and where they are written down.
    network: Option<(CommandNetwork, &'w Permit<'p>)>,
}

impl<'w> OutputWatcher<'w, '_> {
    /// One that only shows what comes, and says when nobody wants it any more.
    pub(super) fn for_display(runner: &'w CommandOperation) -> Self {
        let (sink, cancel) = (runner.sink.as_ref(), &runner.cancel);
        Self { sink, cancel, staging: None, overflow: None, direct_guard: None, network: None }
    }
}

impl sandbox::CommandWatcher for OutputWatcher<'_, '_> {
    fn output(&mut self, stream: OutputKind, bytes: &[u8]) {
        self.sink.output(stream, bytes);
    }

    fn attention(&self) -> Option<BorrowedFd<'_>> {
        self.network.as_ref().map(|(network, _)| network.attention())
    }

    fn attend(&mut self, pause: &mut dyn FnMut()) {
        if let Some((network, permit)) = &mut self.network {
            network.attend(permit, pause);
        }
    }

    fn is_cancelled(&self) -> bool {
        let is_full = self.overflow.zip(self.staging).is_some_and(|(full, staging)| {
            let mut full = full.borrow_mut();
            *full = full.take().or_else(|| staging.space_problem());
            full.is_some()
        });
        is_full
            || self.cancel.is_set()
            || self.network.as_ref().is_some_and(|(network, _)| network.has_failed())
            || self.direct_guard.is_some_and(DirectWriteGuard::lost_mount)
    }
}

/// Why no part of a list runs in the background here.
pub(crate) fn no_background() -> CodedError {
    let message = "parts of a list run in the background only where namespaces confine them and their changes are collected";
    let problem = CodedError::new(Code::ExecNotInLanguage, message);
    problem.with_suggestion("leave the `&` out and give the call a `timeout`, or have the person set `sandbox: { workspace: staged }`")
}

/// Why a command cannot be shown the workspace.
fn unseen(error: &io::Error) -> CodedError {
    CodedError::new(Code::SandboxFailed, format!("the workspace cannot be shown: {error}"))
}

/// Why no command sees a workspace in which names have other spellings.
fn unhidable() -> CodedError {
    let message = "the file system of the workspace takes other spellings of a name for the same, so that what is \
        hidden or held could be reached by another";
    CodedError::new(Code::SandboxFailed, message).with_suggestion(
        "`sandbox: { workspace: staged }` has commands work in a copy of the workspace",
    )
}

/// What helps where a program may not see all of the workspace that it changes.
const UNHIDDEN_HINT: &str = "use `fs.read` and `fs.write`, which are judged file by file; `capsule doctor` tells the person \
    how to get namespaces";

pub(super) fn sandbox_problem(stages: &[ReadyStage], error: &SandboxError) -> CodedError {
    let names = stages.iter().filter_map(|stage| stage.argv.first());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    let name = names.join(" | ");
    let code = match error {
        SandboxError::ProgramChanged { .. } => Code::ApprovalChangedAfter,
        SandboxError::ProgramMissing { .. } | SandboxError::NotExecutable { .. } => {
            Code::ExecNotFound
        }
        SandboxError::Launch { .. } => Code::ExecArgv,
        SandboxError::Redirect { .. } => Code::FileSystem,
        SandboxError::UnsupportedPlatform { .. } => Code::SandboxUnsupportedPlatform,
        _ => Code::SandboxFailed,
    };
    let problem = CodedError::new(code, format!("`{name}`: {error}"));
    match error {
        SandboxError::CannotHide => problem.with_suggestion(UNHIDDEN_HINT),
        _ => problem,
    }
}
