//! A policy for measures that decide in this process, over tools as far as the policy's reader has
//! to know them; those of the binary take more arguments.

use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_core::action::{FileKind, PathFact, PathLocation};
use capsule_core::capability::Capability;
use capsule_core::policy::{BindRoots, Policy};
use capsule_core::tool::{ArgumentKind, Catalogue, ToolArgument, ToolShape, ToolSignature};
use capsule_policy::PolicyDraft;

use crate::Answer;

/// Where the workspace and the home are said to be; nothing is looked up there.
const WORKSPACE: &str = "/home/ada/acme";
const HOME: &str = "/home/ada";

const fn tool(
    id: &'static str,
    shape: ToolShape,
    capabilities: &'static [Capability],
    arguments: &'static [ToolArgument],
) -> ToolSignature {
    let about = "Stands for the tool of this name.";
    ToolSignature {
        id,
        model_name: id,
        aliases: &[],
        about,
        shape,
        capabilities,
        arguments,
        results: &[],
    }
}

const fn argument(name: &'static str, kind: ArgumentKind) -> ToolArgument {
    ToolArgument { name, kind, required: false, about: "see the tool" }
}

static RUN: ToolSignature = tool(
    "shell.run",
    ToolShape::Exec,
    &[Capability::ProcExec],
    &[argument("argv", ArgumentKind::Argv)],
);
static READ: ToolSignature = tool(
    "fs.read",
    ToolShape::Files,
    &[Capability::FsRead],
    &[argument("path", ArgumentKind::Path)],
);
static WRITE: ToolSignature = tool(
    "fs.write",
    ToolShape::Files,
    &[Capability::FsWrite],
    &[argument("path", ArgumentKind::Path), argument("content", ArgumentKind::Text)],
);
const CATALOGUE: Catalogue = Catalogue(&[&RUN, &READ, &WRITE]);

/// Reads a policy over these tools and binds it.
pub(crate) fn policy(text: &str) -> Answer<Policy> {
    bind(text, "bench.yaml", CATALOGUE)
}

/// Reads a policy and binds it.
pub(crate) fn bind(text: &str, name: &str, tools: Catalogue) -> Answer<Policy> {
    let broken = |problems: Vec<capsule_base::diagnostic::Diagnostic>| {
        let first = problems.first().map(|problem| problem.message.clone());
        format!("the policy of the measure is broken: {}", first.unwrap_or_default())
    };
    let (draft, _) = PolicyDraft::parse(text, name, HOME, tools).map_err(broken)?;
    let roots = BindRoots {
        workspace: WORKSPACE.to_owned(),
        runtime_files: Vec::new(),
        spelling: Spelling::Exact,
        may_drop_base_rules: true,
    };
    draft.bind(&roots, HOME, tools).map_err(broken)
}

/// What would be found at a path: a plain file of nobody in particular, with one name.
pub(crate) fn plain_file(path: &str) -> Answer<PathFact> {
    let path = WorkspacePath::parse(path).map_err(|problem| problem.reason().to_owned())?;
    let real = PathLocation::Inside(path.clone());
    let (denied_names, protected_names) = (Vec::new(), Vec::new());
    Ok(PathFact {
        path,
        real,
        kind: FileKind::File,
        alias: None,
        denied_names,
        protected_names,
        is_capsule_store: false,
        absent: None,
    })
}
