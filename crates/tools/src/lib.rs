//! `tools` acts and never decides.
//!
//! A tool is one file under [`builtin`]: its signature (facts for everyone), its preflight (what a
//! call means, what is found on disk, and the hands that could do it), and its run, which needs a
//! permit. A new tool is a file and a line in the list of [`TOOLS`].

pub mod builtin;
mod command_words;
mod commands;
mod deleting;
mod direct;
pub mod edit;
mod encoding;
pub mod git_config;
mod making;
mod node;
mod orders;
mod repository;
mod returned;
mod saving;
mod staging;
mod still;
mod tool;
mod undo;
mod veil;
mod walk;
mod workspace;

use std::rc::Rc;

use capsule_core::action::{Action, Facts, PathLocation};
use capsule_core::call::{Origin, ToolCall};
use capsule_core::code::Code;
use capsule_core::lifecycle::{Operation, PreflightReport};
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::WorkspacePath;
use capsule_core::tool::{Catalogue, ToolSignature};
use capsule_redact::excerpt;
use serde_json::Value;

use staging::{Staged, Unstaged};

pub use capsule_sandbox::{FileIdentity, taken};
pub use commands::Commands;
pub use making::is_half_done;
pub use staging::{Laid, Staging};
pub use tool::{Cancel, Context, Host, Hush, Prepared, Sink, Stream, Tool};
pub use undo::{Keeper, Kept, Looked, Standing, Undo};
pub use veil::{Conceals, Veil, VeilError};
pub use workspace::Workspace;

macro_rules! tools {
    ($($file:ident::$tool:ident,)*) => {
        /// Every tool of this build.
        pub const TOOLS: &[&dyn Tool] = &[$(&builtin::$file::$tool,)*];

        /// Their signatures.
        pub const CATALOGUE: Catalogue = Catalogue(&[$(&builtin::$file::SIGNATURE,)*]);
    };
}

tools! {
    fs_search::FsSearch,
    fs_list::FsList,
    fs_read::FsRead,
    fs_write::FsWrite,
    fs_edit::FsEdit,
    fs_delete::FsDelete,
    http_get::HttpGet,
    shell_run::ShellRun,
    git_status::GitStatus,
    git_diff::GitDiff,
    git_log::GitLog,
    test_run::TestRun,
}

/// What is behind commands that only a person can give. No policy, plan or model can name these.
const OF_PERSONS: &[&dyn Tool] =
    &[&builtin::changes_apply::ChangesApply, &builtin::changes_undo::ChangesUndo];

fn find(name: &str) -> Result<&'static dyn Tool, CodedError> {
    let known = CATALOGUE.find(name);
    let tool =
        known.and_then(|own| TOOLS.iter().find(|tool| tool.signature().id == own.id).copied());
    tool.ok_or_else(|| {
        let shown = excerpt(name, limits::QUOTED_CHARS);
        let problem = CodedError::new(Code::ToolUnknown, format!("there is no tool `{shown}`"));
        match CATALOGUE.closest(name) {
            Some(near) => problem.with_suggestion(format!("did you mean `{near}`?")),
            None => {
                let ids: Vec<&str> = CATALOGUE.0.iter().map(|own| own.id).collect();
                problem.with_suggestion(format!("there are `{}`", ids.join("`, `")))
            }
        }
    })
}

/// The signature of the tool that a call names.
///
/// # Errors
/// [`Code::ToolUnknown`] where there is none.
pub fn signature_of(name: &str) -> Result<&'static ToolSignature, CodedError> {
    find(name).map(Tool::signature)
}

/// What a call means, without a look at the disk.
///
/// # Errors
/// [`Code::ToolUnknown`] or [`Code::ArgsInvalid`].
pub fn describe(name: &str, args: &Value, now: u64) -> Result<Action, CodedError> {
    find(name).and_then(|tool| meaning(tool, args, now))
}

fn meaning(tool: &dyn Tool, args: &Value, now: u64) -> Result<Action, CodedError> {
    let args = tool.signature().check(args).map_err(|error| CodedError {
        code: Code::ArgsInvalid,
        message: error.message,
        suggestion: error.suggestion,
    })?;
    tool.describe(args, now)
}

/// Where the file is that a tool writes.
fn written_place(action: &Action, facts: &Facts) -> Option<WorkspacePath> {
    let (Action::Write { path, .. } | Action::Edit { path, .. }) = action else { return None };
    match &facts.path_fact(path.inside()?)?.real {
        PathLocation::Inside(real) => Some(real.clone()),
        PathLocation::Outside(_) => None,
    }
}

/// What a call means, what is found about it, and the hands that could do it. Nothing is changed,
/// sent, started or looked up in a name service.
///
/// # Errors
/// [`Code::ToolUnknown`] or [`Code::ArgsInvalid`]. What is on disk is never an error here: it is a
/// fact, and is judged.
pub fn preflight(call: &ToolCall, context: &Context<'_>) -> Result<PreflightReport, CodedError> {
    let of_persons = || {
        let own = OF_PERSONS.iter().find(|tool| tool.signature().id == call.tool.as_str());
        own.filter(|_| call.origin == Origin::Person).copied()
    };
    let tool = of_persons().map_or_else(|| find(call.tool.as_str()), Ok)?;
    let action = meaning(tool, &call.args, context.now)?;
    let Prepared { facts, hands } = tool.prepare(&action, &call.args, context);
    let action = action.resolve_confinement(&facts);
    let hands: Box<dyn Operation> = match context.staging {
        _ if matches!(action, Action::Apply { .. } | Action::Undo { .. }) => hands,
        Ok(Some(staging)) => {
            let seen = (Rc::clone(context.veil), Rc::clone(context.workspace));
            let (staging, redactor) = (Rc::clone(staging), context.redactor.clone());
            let place = written_place(&action, &facts);
            Box::new(Staged { hands, place, staging, seen, redactor })
        }
        Ok(None) => hands,
        Err(problem) => Box::new(Unstaged { hands, problem: problem.clone() }),
    };
    Ok(PreflightReport { action, facts, operation: hands })
}
