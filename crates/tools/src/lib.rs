//! `tools` acts and never decides.
//!
//! A tool is one file under [`builtin`]: its signature (facts for everyone), its preflight (what a
//! call means, what is found on disk, and the operation that could do it), and its run, which needs a
//! permit. A new tool is a file and a line in the list of [`TOOLS`].

pub mod builtin;
mod command;
pub mod edit;
mod fault;
mod git;
mod host;
mod list_part;
mod network;
mod staged;
#[cfg(test)]
mod test_backups;
mod tool;
mod toolchain;

use std::path::Path;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_core::action::{Action, Facts, PathLocation, PathTarget};
use capsule_core::call::{Origin, ToolCall};
use capsule_core::lifecycle::{Operation, PreflightReport};
use capsule_core::outcome::CodedError;
use capsule_core::tool::{Catalogue, ToolSet, ToolSignature};
use capsule_redact::excerpt;
use capsule_workspace::{GitAliases, GitPreferences};
use serde_json::Value;

use command::program::find_command;
use staged::{StagedOperation, UnstageableOperation};

pub use builtin::user_ask::QUESTION_TOOL;
pub use capsule_sandbox::FileIdentity;
use capsule_sandbox::{Executor, SandboxBackend as _};
pub use command::root_names::{mount_conflict, root_names};
pub use command::runner::CommandRunner;
pub use host::{ErrorSink, NullSink, OutputKind, QuestionPrompt, Sink, ToolHost};
pub use list_part::ListPart;
pub use network::{AgentConnections, AgentHost};
pub use staged::{CopyMount, SandboxMount, remove_staging};
pub use tool::{DescribeContext, PreparedCall, Tool, ToolContext};
pub use toolchain::{
    FoundToolchain, ToolchainContext, ToolchainDirectory, ToolchainProblem, Toolchains, WELL_KNOWN,
};

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
    fs_grep::FsGrep,
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
    user_ask::UserAsk,
}

/// The same for code that advises on policies.
pub const TOOL_SET: ToolSet = ToolSet {
    catalogue: CATALOGUE,
    describe,
    hiding_directory: |path| Executor::private_directory(Path::new(path)),
};

/// What is behind commands that only a person can give. No policy, plan or model can name these.
const USER_ONLY_TOOLS: &[&dyn Tool] = &[
    &builtin::agent_run::AgentRun,
    &builtin::changes_apply::ChangesApply,
    &builtin::changes_undo::ChangesUndo,
    &builtin::user_attach::UserAttach,
];

fn find_tool(name: &str) -> Result<&'static dyn Tool, CodedError> {
    let known = CATALOGUE.find(name);
    let tool = known.and_then(|signature| {
        TOOLS.iter().find(|tool| tool.signature().id == signature.id).copied()
    });
    tool.ok_or_else(|| {
        let shown = excerpt(name, limits::QUOTED_CHARS);
        let problem = CodedError::new(Code::ToolUnknown, format!("there is no tool `{shown}`"));
        match CATALOGUE.closest(name) {
            Some(near) => problem.with_suggestion(format!("did you mean `{near}`?")),
            None => {
                let ids: Vec<&str> = CATALOGUE.0.iter().map(|signature| signature.id).collect();
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
    find_tool(name).map(Tool::signature)
}

/// What a call means, without a look at the disk, where the workspace's root has no name but the usual
/// one.
///
/// # Errors
/// [`Code::ToolUnknown`] or [`Code::ArgsInvalid`].
pub fn describe(name: &str, args: &Value, now: u64) -> Result<Action, CodedError> {
    let git_aliases = &GitAliases::default;
    let (root_names, is_program) = (&RootNames::default(), &|_: &WorkspacePath| false);
    let context = DescribeContext { now, root_names, git_aliases, is_program };
    find_tool(name).and_then(|tool| describe_call(tool, args, &context))
}

fn describe_call(
    tool: &dyn Tool,
    args: &Value,
    context: &DescribeContext<'_>,
) -> Result<Action, CodedError> {
    let args = tool.signature().check(args).map_err(|error| CodedError {
        code: Code::ArgsInvalid,
        message: error.message,
        suggestion: error.suggestion,
    })?;
    tool.describe(args, context)
}

/// Where the file is that a tool writes.
fn written_place(action: &Action, facts: &Facts) -> Option<WorkspacePath> {
    let (Action::Write { path, .. } | Action::Edit { path, .. }) = action else { return None };
    match &facts.path_fact(path.inside()?)?.real {
        PathLocation::Inside(real) => Some(real.clone()),
        PathLocation::Outside(_) => None,
    }
}

/// What a call means, what is found about it, and the operation that could do it. Nothing is changed,
/// sent, started or looked up in a name service.
///
/// # Errors
/// [`Code::ToolUnknown`] or [`Code::ArgsInvalid`]. What is on disk is never an error here: it is a
/// fact, and is judged.
pub fn preflight(
    call: &ToolCall,
    context: &ToolContext<'_>,
) -> Result<PreflightReport, CodedError> {
    let of_persons = || {
        let item = USER_ONLY_TOOLS.iter().find(|tool| tool.signature().id == call.tool.as_str());
        item.filter(|_| call.origin == Origin::Person).copied()
    };
    let tool = of_persons().map_or_else(|| find_tool(call.tool.as_str()), Ok)?;
    let root_names = context.workspace.root_names();
    let preferences = || GitPreferences::read(context.host.as_ref(), context.workspace.path());
    let git_aliases = &|| preferences().aliases;
    let root = PathTarget::parse(".");
    let is_program = &|path: &WorkspacePath| {
        let path = root_names.absolute(path.components());
        find_command(&path, &root, context).is_some()
    };
    let describe = DescribeContext { now: context.now, root_names, git_aliases, is_program };
    let action = describe_call(tool, &call.args, &describe)?;
    let PreparedCall { facts, operation } = tool.prepare(&action, &call.args, context);
    let action = action.resolve_confinement(&facts);
    let operation: Box<dyn Operation> = match context.staging {
        _ if matches!(action, Action::Apply { .. } | Action::Undo { .. }) => operation,
        Ok(Some(staging)) => {
            let seen = (Rc::clone(context.hidden_paths), Rc::clone(context.workspace));
            let (staging, redactor) = (Rc::clone(staging), context.redactor.clone());
            let place = written_place(&action, &facts);
            let jobs = context.commands.jobs().clone();
            Box::new(StagedOperation { operation, place, staging, view: seen, redactor, jobs })
        }
        Ok(None) => operation,
        Err(problem) => Box::new(UnstageableOperation { operation, problem: problem.clone() }),
    };
    Ok(PreflightReport { action, facts, operation })
}
