//! The hands of a command.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::rc::Rc;

use capsule_core::code::Code;
use capsule_core::confinement::{Confinement, WorkspaceAccess};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::policy::{EnvironmentRule, PathScope, Restrictions};
use capsule_sandbox as sandbox;
use sandbox::{Exit, Held, Launch, Mask, Redirect, Running, SandboxError, Stage};

use super::environment::{PRIVATE, variables};
use super::outcome::confined;
use super::program::Program;
use super::unconfined;
use crate::builtin::wrong_permit;
use crate::commands::{Commands, NotRun, view};
use crate::direct::Ground;
use crate::staging::Staging;
use crate::tool::{Cancel, Host, Sink, Stream};
use crate::veil::{Veil, VeilError};
use crate::workspace::Workspace;

/// A program that is ready to run.
pub(in crate::builtin) struct Ready {
    pub(in crate::builtin) program: Program,
    pub(in crate::builtin) argv: Vec<OsString>,
    /// What is set in its environment besides.
    pub(in crate::builtin) variables: Vec<(OsString, OsString)>,
    /// Where its streams lead.
    pub(in crate::builtin) redirects: Vec<Redirect>,
}

pub(in crate::builtin) struct Runner {
    pub(in crate::builtin) workspace: Rc<Workspace>,
    pub(in crate::builtin) veil: Rc<RefCell<Veil>>,
    pub(in crate::builtin) commands: Commands,
    pub(in crate::builtin) host: Rc<dyn Host>,
    pub(in crate::builtin) sink: Rc<dyn Sink>,
    pub(in crate::builtin) cancel: Cancel,
    pub(in crate::builtin) staging: Option<Rc<Staging>>,
    /// The programs, from the first to the last.
    pub(in crate::builtin) stages: Vec<Ready>,
    pub(in crate::builtin) cwd: OsString,
    pub(in crate::builtin) stdin: Vec<u8>,
    /// How far the command is, or why it could not come so far.
    pub(in crate::builtin) ahead: Option<Result<Ahead, CodedError>>,
}

/// How far a command is before somebody waits for its end.
pub(in crate::builtin) enum Ahead {
    /// It was made ready.
    Held(Held),
    /// It has begun.
    Running(Running),
}

impl Ready {
    pub(super) fn stage(&self, environment: &[(OsString, OsString)]) -> Stage {
        let mut environment = environment.to_vec();
        for (name, value) in &self.variables {
            environment.retain(|(own, _)| own != name);
            environment.push((name.clone(), value.clone()));
        }
        Stage {
            program: self.program.file.clone(),
            argv: self.argv.clone(),
            environment,
            redirects: self.redirects.clone(),
        }
    }
}

impl Operation for Runner {
    fn prepare(&mut self, bounds: &Restrictions) {
        // What changes the workspace itself is looked at behind the intent.
        if let Restrictions::Run { confinement, environment, reads, .. } = bounds
            && confinement.workspace != WorkspaceAccess::Direct
        {
            let held = self.hold(confinement, environment, reads.as_ref(), None);
            self.ahead = Some(held.map(Ahead::Held));
        }
    }

    fn start(&mut self, _: &Permit<'_>) {
        if let Some(ahead) = self.ahead.take() {
            self.ahead = Some(ahead.and_then(|ahead| self.running(ahead)).map(Ahead::Running));
        }
    }

    fn run(mut self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let ahead = self.ahead.take();
        let permit = match permit.unconfined() {
            Ok(leave) => return unconfined::run(&self, &leave),
            Err(permit) => permit,
        };
        let Restrictions::Run { confinement, clamped, environment, reads, writes } =
            permit.restrictions()
        else {
            return wrong_permit();
        };
        let direct = writes.as_ref().filter(|_| confinement.workspace == WorkspaceAccess::Direct);
        let workspace = Rc::clone(&self.workspace);
        let survey = |writes| {
            let orders = self.veil.borrow().orders_now(&workspace)?;
            let by = (&*self.veil.borrow(), (*orders).clone());
            Ground::survey(&workspace, writes, by, self.host.store())
        };
        let mut ground = match direct.map(survey).transpose() {
            Ok(ground) => ground,
            Err(problem) => return Outcome::failed(problem),
        };
        let ahead = ahead.unwrap_or_else(|| {
            let held = self.hold(confinement, environment, reads.as_ref(), ground.as_mut());
            held.map(Ahead::Held)
        });
        let staged = confinement.workspace == WorkspaceAccess::Staged;
        let staging = self.staging.as_deref().filter(|_| staged);
        let ended = match ahead.and_then(|ahead| self.ended(ahead, (staging, ground.as_ref()))) {
            Ok((exit, None)) => confined(exit, confinement, *clamped),
            Ok((exit, Some(full))) => confined(exit, confinement, *clamped).with_end(full),
            Err(problem) => Outcome::failed(problem),
        };
        match ground {
            Some(ground) => {
                let veil = self.veil.borrow();
                ground.judged(ended, (&veil, veil.orders_now(&workspace)))
            }
            None => ended,
        }
    }
}

impl Runner {
    /// Runs the programs, which can change nothing, and gives how they ended.
    ///
    /// # Errors
    /// They could not be run as they must be.
    pub(in crate::builtin) fn launch(
        &self,
        confinement: &Confinement,
        environment: &EnvironmentRule,
    ) -> Result<Exit, CodedError> {
        let held = self.hold(confinement, environment, None, None)?;
        self.ended(Ahead::Held(held), (None, None)).map(|(exit, _)| exit)
    }

    /// Has the programs made ready.
    ///
    /// # Errors
    /// They cannot be run as they must be.
    fn hold(
        &self,
        confinement: &Confinement,
        environment: &EnvironmentRule,
        reads: Option<&PathScope>,
        mut ground: Option<&mut Ground<'_>>,
    ) -> Result<Held, CodedError> {
        let drawn = |veil: &Veil| Ok((veil.hidden(&self.workspace)?, veil.way()));
        let drawn = match reads.filter(|own| own.hides_paths()).cloned() {
            None => drawn(&self.veil.borrow()),
            // A walk of its own for each call: few programs have a view of their own.
            Some(reads) => {
                let conceals = Box::new(move |path: &_, folder| reads.conceals(path, folder));
                drawn(&Veil::new(conceals).cutting_off()).and_then(|(mut hidden, way)| {
                    // Only that of the run knows what was moved since it began.
                    if self.workspace.lower().is_some() {
                        hidden.extend(self.veil.borrow().hidden(&self.workspace)?);
                    }
                    Ok((hidden, way))
                })
            }
        };
        let (hidden, way) = drawn.map_err(VeilError::problem)?;
        let hidden: BTreeSet<OsString> = hidden.into_iter().collect();
        let mut masks: Vec<Mask> = hidden.into_iter().map(|path| Mask { path }).collect();
        let hidden: Vec<OsString> = masks.iter().map(|own| own.path.clone()).collect();
        let has_more = ground.is_some() && self.workspace.has_aliases();
        if has_more || !hidden.is_empty() && self.workspace.may_alias(&hidden) {
            return Err(unhidable());
        }
        let direct = ground.as_mut().map(|ground| ground.bounds(&mut masks, way)).transpose()?;
        let environment = variables(environment, self.host.as_ref());
        let set = |name: &str| environment.iter().any(|(own, _)| own == name);
        let private = PRIVATE.into_iter().filter(|name| !set(name)).map(OsString::from).collect();
        let floor = confinement.floor;
        let launch = Launch {
            stages: self.stages.iter().map(|own| own.stage(&environment)).collect(),
            private,
            cwd: self.cwd.clone(),
            stdin: self.stdin.clone(),
            limits: confinement.limits,
            writes: confinement.workspace == WorkspaceAccess::Staged,
            direct,
            // All of them each time: what was hidden before may be another file by now.
            masks,
            last: self.commands.is_one(),
        };
        let view = |launch: &Launch| {
            view(&self.workspace, self.host.as_ref(), floor, None, launch.masks.clone())
        };
        self.commands.hold(launch, view).map_err(|why| match why {
            NotRun::Sandbox(error) => sandbox_problem(&self.stages, &error),
            NotRun::View(error) => CodedError::new(
                Code::SandboxFailed,
                format!("the workspace cannot be shown: {error}"),
            ),
        })
    }

    /// Has them begin, if they have not.
    ///
    /// # Errors
    /// They cannot be run as they must be.
    fn running(&self, ahead: Ahead) -> Result<Running, CodedError> {
        match ahead {
            Ahead::Running(running) => Ok(running),
            Ahead::Held(held) => {
                self.commands.begin(held).map_err(|error| sandbox_problem(&self.stages, &error))
            }
        }
    }

    /// Waits for their end, and gives it, and why they were ended if they changed too much. What they
    /// change is collected, or bounded, by one of the two.
    ///
    /// # Errors
    /// They could not be run as they must be.
    fn ended(
        &self,
        ahead: Ahead,
        (staging, ground): (Option<&Staging>, Option<&Ground<'_>>),
    ) -> Result<(Exit, Option<CodedError>), CodedError> {
        let running = self.running(ahead)?;
        let full = RefCell::new(None);
        let mut watch = Watch {
            sink: self.sink.as_ref(),
            cancel: &self.cancel,
            staging,
            full: Some(&full),
            ground,
        };
        let ended = self.commands.wait(running, &mut watch);
        let exit = ended.map_err(|error| sandbox_problem(&self.stages, &error))?;
        Ok((exit, full.into_inner()))
    }
}

pub(super) struct Watch<'w> {
    sink: &'w dyn Sink,
    cancel: &'w Cancel,
    /// Where the command's changes go, if it may make any.
    staging: Option<&'w Staging>,
    /// Why it was ended, if it changed too much.
    full: Option<&'w RefCell<Option<CodedError>>>,
    /// What bounds it, if it changes the workspace itself.
    ground: Option<&'w Ground<'w>>,
}

impl<'w> Watch<'w> {
    /// One that only shows what comes, and says when nobody wants it any more.
    pub(super) fn plain(runner: &'w Runner) -> Self {
        let (sink, cancel) = (runner.sink.as_ref(), &runner.cancel);
        Self { sink, cancel, staging: None, full: None, ground: None }
    }
}

impl sandbox::Watch for Watch<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.sink.output(stream, bytes);
    }

    fn cancelled(&self) -> bool {
        let is_full = self.full.zip(self.staging).is_some_and(|(full, staging)| {
            let mut full = full.borrow_mut();
            *full = full.take().or_else(|| staging.overfull());
            full.is_some()
        });
        is_full || self.cancel.is_set() || self.ground.is_some_and(Ground::is_lost)
    }
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
const UNHIDDEN: &str = "use `fs.read` and `fs.write`, which are judged file by file; `capsule doctor` tells the person \
    how to get namespaces";

pub(super) fn sandbox_problem(stages: &[Ready], error: &SandboxError) -> CodedError {
    let names = stages.iter().filter_map(|own| own.argv.first());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    let name = names.join(" | ");
    let code = match error {
        SandboxError::ProgramChanged { .. } => Code::ApprovalChangedAfter,
        SandboxError::ProgramMissing { .. } | SandboxError::NotExecutable { .. } => {
            Code::ExecNotFound
        }
        SandboxError::Launch { .. } => Code::ExecArgv,
        SandboxError::Redirect { .. } => Code::FileSystem,
        _ => Code::SandboxFailed,
    };
    let problem = CodedError::new(code, format!("`{name}`: {error}"));
    match error {
        SandboxError::Unhidden => problem.with_suggestion(UNHIDDEN),
        _ => problem,
    }
}
