//! What the preflights of tools share: the facts of paths, and operations on them.

use std::ffi::OsString;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_command::program::ProgramFact;
use capsule_command::specs::{CommandLine, Effects};
use capsule_core::action::{Action, Facts, PathLocation, PathTarget};
use capsule_core::confinement::SandboxTier;
use capsule_core::lifecycle::{Operation, Permit, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::undo::NoUndoReason;
use capsule_workspace::{PathLookup, look_up};

use crate::command::operation::{CommandOperation, ReadyStage};
use crate::tool::{PreparedCall, ToolContext};

/// An operation that always fails, since nothing is left to do.
pub(crate) struct FailedOperation(pub(crate) CodedError);

impl Operation for FailedOperation {
    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::failed(self.0)
    }
}

/// An operation that may not even be left to the program that hosts a model.
struct RefusedOperation(CodedError);

impl Operation for RefusedOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        Err(self.0.clone())
    }

    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::failed(self.0)
    }
}

/// The operation of a call that nothing can carry out.
pub(crate) fn failed_operation(
    problem: CodedError,
    context: &ToolContext<'_>,
) -> Box<dyn Operation> {
    match context.is_gate {
        true => Box::new(RefusedOperation(problem)),
        false => Box::new(FailedOperation(problem)),
    }
}

/// What was found at the paths that an action is about.
pub(crate) fn path_facts(action: &Action, context: &ToolContext<'_>) -> Facts {
    let look =
        |path: &WorkspacePath| look_up(context.workspace, path, &context.hidden_paths.borrow()).0;
    let paths = action.named_paths().into_iter().filter_map(PathTarget::inside);
    let paths = paths.filter(|path| path.as_temporary().is_none());
    Facts { paths: paths.map(look).collect(), ..Facts::default() }
}

/// What was found for a command: its program, its folder, and then every path that its arguments
/// name, which depend on both.
pub(crate) fn command_facts(
    action: &Action,
    program: Option<ProgramFact>,
    context: &ToolContext<'_>,
) -> Facts {
    let root_names = needed_root_names(action, context);
    let mut facts = Facts { program, root_names, ..path_facts(action, context) };
    let named = action.argument_paths(&facts);
    let hidden_paths = context.hidden_paths.borrow();
    facts.paths.extend(named.iter().map(|path| look_up(context.workspace, path, &hidden_paths).0));
    facts
}

/// The names of the root that the words of a command mention, and whether it may share a `/tmp` that they mention. Where
/// commands are only judged, they will.
fn needed_root_names(action: &Action, context: &ToolContext<'_>) -> RootNames {
    let text = serde_json::to_string(action).unwrap_or_default();
    let names = context.workspace.root_names().needed_for(&text);
    let is_shared = text.contains("/tmp")
        && context
            .commands
            .sandbox_status()
            .is_none_or(|status| status.is_ok_and(|status| status.tier == SandboxTier::Full));
    if is_shared { names.with_shared_tmp() } else { names }
}

/// Tells by which protected names the host comes to what is to be changed.
///
/// # Errors
/// Why that cannot be told, so that nothing may be changed.
pub(crate) fn name_aliases(facts: &mut Facts, context: &ToolContext<'_>) -> Result<(), CodedError> {
    let hidden_paths = context.hidden_paths.borrow();
    facts.paths.iter_mut().try_for_each(|fact| hidden_paths.name_aliases(context.workspace, fact))
}

/// The operation of a change, and what of it could not be kept for an undo.
pub(crate) type PreparedChange = Result<(Box<dyn Operation>, Option<NoUndoReason>), CodedError>;

/// The preflight of an action that changes what stands at one path, with what could not be kept of it
/// for an undo, and how many masks stand in what it would write.
pub(crate) fn prepare_change(
    action: &Action,
    context: &ToolContext<'_>,
    (operation, masks): (impl FnOnce(&WorkspacePath, PathLookup) -> PreparedChange, u64),
) -> PreparedCall {
    let mut unkept = None;
    let mut prepared = prepare_path(action, context, |path, stands| {
        let (operation, why) = operation(path, stands)?;
        unkept = why;
        Ok(operation)
    });
    let shown = require_in_copy(&prepared.facts, context);
    if let Err(problem) = shown.and_then(|()| name_aliases(&mut prepared.facts, context)) {
        prepared.operation = failed_operation(problem, context);
    }
    PreparedCall { facts: Facts { no_undo: unkept, masks, ..prepared.facts }, ..prepared }
}

/// Whether tools see what is to be changed, where they work in a copy of the workspace.
fn require_in_copy(facts: &Facts, context: &ToolContext<'_>) -> Result<(), CodedError> {
    let Ok(Some(staging)) = context.staging else { return Ok(()) };
    facts.paths.iter().try_for_each(|fact| match &fact.real {
        PathLocation::Inside(real) => staging.require_in_copy(real),
        PathLocation::Outside(_) => Ok(()),
    })
}

/// The preflight of an action on one path. The facts that are judged and what the operation holds come
/// out of one look at it.
pub(crate) fn prepare_path(
    action: &Action,
    context: &ToolContext<'_>,
    operation: impl FnOnce(&WorkspacePath, PathLookup) -> Result<Box<dyn Operation>, CodedError>,
) -> PreparedCall {
    let Some(path) = action.path().and_then(PathTarget::inside) else {
        let problem = CodedError::new(Code::PathOutside, "the path is not inside");
        return PreparedCall {
            facts: Facts::default(),
            operation: failed_operation(problem, context),
        };
    };
    let (fact, stands) = look_up(context.workspace, path, &context.hidden_paths.borrow());
    let operation =
        operation(path, stands).unwrap_or_else(|problem| failed_operation(problem, context));
    PreparedCall { facts: Facts { paths: vec![fact], ..Facts::default() }, operation }
}

/// The operation of a command with the run's means.
pub(crate) fn command_operation(
    stages: Vec<ReadyStage>,
    cwd: &PathTarget,
    stdin: &str,
    facts: &Facts,
    context: &ToolContext<'_>,
) -> CommandOperation {
    // Of what does no more than its words say, the paths in these were judged as they stand.
    let is_judged_by_paths = |stage: &ReadyStage| {
        let argv: Vec<String> =
            stage.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let line = CommandLine::parse(&argv, Some(&stage.program.fact), false);
        let mut paths = line.parsed_argvs().flat_map(|argv| &argv.paths);
        let names_tmp = paths.any(|used| used.is_temporary(&facts.root_names));
        names_tmp && !line.effects().intersects(Effects::BY_FILES)
    };
    CommandOperation {
        ignores_tmp_links: stages.iter().any(is_judged_by_paths),
        code_files: None,
        workspace: Rc::clone(context.workspace),
        hidden_paths: Rc::clone(context.hidden_paths),
        commands: context.commands.clone(),
        host: Rc::clone(context.host),
        sink: Rc::clone(context.sink),
        cancel: context.cancel.clone(),
        staging: context.staging.ok().flatten().cloned(),
        stages,
        cwd: real_cwd(cwd, facts),
        stdin: stdin.as_bytes().to_vec(),
        pipe_fail: false,
        background: None,
        progress: None,
    }
}

/// The real place of a folder that a step runs in.
fn real_cwd(cwd: &PathTarget, facts: &Facts) -> OsString {
    let Some(path) = cwd.inside() else { return OsString::new() };
    match facts.path_fact(path).map(|fact| &fact.real) {
        Some(PathLocation::Inside(real)) => real.as_str().into(),
        _ => path.as_str().into(),
    }
}
