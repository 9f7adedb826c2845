//! A policy for measures that decide in this process, over tools as far as the policy's reader has
//! to know them; those of the binary take more arguments.

use capsule_core::action::{FileKind, PathFact, Place};
use capsule_core::capability::Capability;
use capsule_core::path::WorkspacePath;
use capsule_core::policy::{Draft, Policy, Roots};
use capsule_core::spelling::Spelling;
use capsule_core::tool::{Argument, Catalogue, Kind, Shape, Signature};

use crate::Answer;

/// Where the workspace and the home are said to be; nothing is looked up there.
const WORKSPACE: &str = "/home/ada/acme";
const HOME: &str = "/home/ada";

const fn tool(
    id: &'static str,
    shape: Shape,
    capabilities: &'static [Capability],
    arguments: &'static [Argument],
) -> Signature {
    let about = "Stands for the tool of this name.";
    Signature {
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

const fn argument(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: false, about: "see the tool" }
}

static RUN: Signature =
    tool("shell.run", Shape::Exec, &[Capability::ProcExec], &[argument("argv", Kind::Argv)]);
static READ: Signature =
    tool("fs.read", Shape::Files, &[Capability::FsRead], &[argument("path", Kind::Path)]);
static WRITE: Signature = tool(
    "fs.write",
    Shape::Files,
    &[Capability::FsWrite],
    &[argument("path", Kind::Path), argument("content", Kind::Text)],
);
const CATALOGUE: Catalogue = Catalogue(&[&RUN, &READ, &WRITE]);

/// Reads a policy over these tools and binds it.
pub(crate) fn policy(text: &str) -> Answer<Policy> {
    bind(text, "bench.yaml", CATALOGUE)
}

/// Reads a policy and binds it.
pub(crate) fn bind(text: &str, name: &str, tools: Catalogue) -> Answer<Policy> {
    let broken = |problems: Vec<capsule_core::diagnostic::Diagnostic>| {
        let first = problems.first().map(|problem| problem.message.clone());
        format!("the policy of the measure is broken: {}", first.unwrap_or_default())
    };
    let (draft, _) = Draft::parse(text, name, HOME, tools).map_err(broken)?;
    let roots = Roots {
        workspace: WORKSPACE.to_owned(),
        own: Vec::new(),
        spelling: Spelling::Exact,
        lifts: true,
    };
    draft.bind(&roots, HOME, tools).map_err(broken)
}

/// What would be found at a path: a plain file of nobody in particular, with one name.
pub(crate) fn plain_file(path: &str) -> Answer<PathFact> {
    let path = WorkspacePath::parse(path).map_err(|problem| problem.reason().to_owned())?;
    let real = Place::Inside(path.clone());
    let (alias, closed, names, ours) = (None, Vec::new(), Vec::new(), false);
    Ok(PathFact { path, real, kind: FileKind::File, alias, closed, names, ours, absent: None })
}
