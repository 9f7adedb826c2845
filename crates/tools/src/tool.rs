//! The form of a tool, and what it is given.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_command::program::ProgramFact;
use capsule_core::action::{Action, Facts, PathLocation, PathTarget};
use capsule_core::id::RunId;
use capsule_core::lifecycle::Operation;
use capsule_core::outcome::CodedError;
use capsule_core::tool::ToolSignature;
use capsule_core::undo::NoUndoReason;
use capsule_redact::{Redactor, Secret};
use capsule_sandbox::FileIdentity;
pub use capsule_sandbox::OutputKind;
use serde_json::{Map, Value};

use crate::builtin::FailedOperation;
use crate::command_runner::CommandRunner;
use crate::hidden_paths::HiddenPaths;
use crate::staging::Staging;
use crate::undo::BackupStore;
use crate::workspace::{PathLookup, Workspace};

/// A tool.
pub trait Tool: Sync {
    /// What it is called, takes and gives.
    fn signature(&self) -> &'static ToolSignature;

    /// What a call with these arguments means. The arguments fit the signature. `now` is the time
    /// that relative times count from, in microseconds since 1970.
    ///
    /// # Errors
    /// [`capsule_base::code::Code::ArgsInvalid`] where the arguments make no sense together.
    fn describe(&self, args: &Map<String, Value>, now: u64) -> Result<Action, CodedError>;

    /// What is found about an action, and the hands that could do it.
    fn prepare(&self, action: &Action, args: &Value, context: &ToolContext<'_>) -> PreparedCall;
}

/// What a tool's preflight comes to.
pub struct PreparedCall {
    /// What was found.
    pub facts: Facts,
    /// The hands that could do it.
    pub operation: Box<dyn Operation>,
}

/// What tools are given to work with.
pub struct ToolContext<'c> {
    /// The folder that everything happens in.
    pub workspace: &'c Rc<Workspace>,
    /// What must not be seen in it.
    pub hidden_paths: &'c Rc<RefCell<HiddenPaths>>,
    /// The run's executor, started when the first command needs it.
    pub commands: &'c CommandRunner,
    /// Where changes are collected, if the workspace is staged; why they cannot be, where it should.
    pub staging: Result<Option<&'c Rc<Staging>>, &'c CodedError>,
    /// What masks.
    pub redactor: &'c Redactor,
    /// Where what calls replace and delete is kept.
    pub backups: &'c Rc<BackupStore>,
    /// What the machine around the workspace tells.
    pub host: &'c Rc<dyn ToolHost>,
    /// Whether to stop.
    pub cancel: &'c Cancel,
    /// Where output goes while it is made.
    pub sink: &'c Rc<dyn Sink>,
    /// The time that relative times count from, in microseconds since 1970.
    pub now: u64,
}

/// What the machine around the workspace tells.
pub trait ToolHost {
    /// Where the policy says that a program is.
    fn program_path(&self, name: &str) -> Option<String>;
    /// Every place that the policy names for a program.
    fn program_paths(&self) -> Vec<String>;
    /// A digest that was computed before, for a program with this identity.
    fn known_digest(&self, path: &Path, identity: &FileIdentity) -> Option<Digest>;
    /// Remembers a digest.
    fn remember_digest(&self, path: &Path, identity: &FileIdentity, digest: Digest);
    /// The command line that the policy names for the project's tests, with the word that picks some
    /// of them, and the folder that it runs in.
    fn test_command(&self, filter: Option<&str>) -> Option<(Vec<String>, String)>;
    /// Where the record of this run is kept.
    fn store_path(&self) -> &Path;
    /// Writes down that so many files are about to be dropped that a run has kept for an undo.
    ///
    /// # Errors
    /// It cannot be written, so nothing may be dropped.
    fn record_dropped_backups(&self, run: RunId, files: u64) -> Result<(), String>;
    /// The value of a secret of the policy, as it was when the run began.
    fn secret(&self, name: &str) -> Option<Secret>;
    /// A variable of the user's environment.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// The names of all of them.
    fn variables(&self) -> Vec<OsString>;
}

/// Where the output of a command goes while it is made, before anything is masked: whoever shows it
/// masks it first.
pub trait Sink {
    /// What masks in the run whose output comes.
    fn use_redactor(&self, redactor: &Redactor);
    /// More output.
    fn output(&self, stream: OutputKind, bytes: &[u8]);
}

/// A sink that drops everything.
#[derive(Clone, Copy, Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn use_redactor(&self, _: &Redactor) {}
    fn output(&self, _: OutputKind, _: &[u8]) {}
}

/// Says to stop; shared with whoever catches signals.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that something else sets.
    #[must_use]
    pub const fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was found at the paths that an action is about.
pub(crate) fn path_facts(action: &Action, context: &ToolContext<'_>) -> Facts {
    let look =
        |path: &WorkspacePath| context.workspace.look_up(path, &context.hidden_paths.borrow()).0;
    let paths = action.named_paths().into_iter().filter_map(PathTarget::inside);
    Facts { paths: paths.map(look).collect(), ..Facts::default() }
}

/// What was found for a command: its program, its folder, and then every path that its arguments
/// name, which depend on both.
pub(crate) fn command_facts(
    action: &Action,
    program: Option<ProgramFact>,
    context: &ToolContext<'_>,
) -> Facts {
    let mut facts = Facts { program, ..path_facts(action, context) };
    let named = action.argument_paths(&facts);
    let hidden_paths = context.hidden_paths.borrow();
    facts.paths.extend(named.iter().map(|path| context.workspace.look_up(path, &hidden_paths).0));
    facts
}

/// Tells by which protected names the host comes to what is to be changed.
///
/// # Errors
/// Why that cannot be told, so that nothing may be changed.
pub(crate) fn name_aliases(facts: &mut Facts, context: &ToolContext<'_>) -> Result<(), CodedError> {
    let hidden_paths = context.hidden_paths.borrow();
    facts.paths.iter_mut().try_for_each(|fact| hidden_paths.name_aliases(context.workspace, fact))
}

/// The hands of a change, and what of it could not be kept for an undo.
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
        prepared.operation = Box::new(FailedOperation(problem));
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

/// The preflight of an action on one path. The facts that are judged and what the hands hold come
/// out of one look at it.
pub(crate) fn prepare_path(
    action: &Action,
    context: &ToolContext<'_>,
    hands: impl FnOnce(&WorkspacePath, PathLookup) -> Result<Box<dyn Operation>, CodedError>,
) -> PreparedCall {
    let Some(path) = action.path().and_then(PathTarget::inside) else {
        let problem = CodedError::new(Code::PathOutside, "the path is not inside");
        return PreparedCall {
            facts: Facts::default(),
            operation: Box::new(FailedOperation(problem)),
        };
    };
    let (fact, stands) = context.workspace.look_up(path, &context.hidden_paths.borrow());
    let operation =
        hands(path, stands).unwrap_or_else(|problem| Box::new(FailedOperation(problem)));
    PreparedCall { facts: Facts { paths: vec![fact], ..Facts::default() }, operation }
}
