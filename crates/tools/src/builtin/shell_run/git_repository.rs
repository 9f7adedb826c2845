//! Commands of git where the repository of the workspace lies outside of it: they are refused with the reason before
//! anything runs, if git could only fail.

use std::ffi::OsString;

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_core::action::PathTarget;
use capsule_core::confinement::SandboxTier;
use capsule_core::outcome::CodedError;
use capsule_workspace::{OutsideRepository, Workspace};

use crate::command::operation::ReadyStage;
use crate::tool::ToolContext;

/// Subcommands that write to a repository, whatever their words are.
const WRITING: [&str; 22] = [
    "add",
    "am",
    "cherry-pick",
    "checkout",
    "commit",
    "fetch",
    "gc",
    "merge",
    "mv",
    "pull",
    "rebase",
    "repack",
    "reset",
    "restore",
    "revert",
    "rm",
    "stage",
    "switch",
    "update-index",
    "update-ref",
    "write-tree",
    "prune",
];
/// Subcommands that read one.
const READING: [&str; 16] = [
    "blame",
    "branch",
    "cat-file",
    "describe",
    "diff",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "reflog",
    "rev-list",
    "shortlog",
    "show",
    "status",
    "tag",
];
/// Options before a subcommand that do not change which repository is meant.
const PLAIN_OPTIONS: [&str; 4] = ["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"];
/// Words of `git stash` behind which nothing is written.
const STASH_READING: [&str; 2] = ["list", "show"];

/// What helps.
const SUGGESTION: &str =
    "open the main working tree as the workspace, or tell the user, who can run it";

/// Why programs could only fail: one is git, and it would change a repository that is shown read-only, or read one
/// that is not shown.
pub(super) fn problem(
    stages: &[ReadyStage],
    cwd: &PathTarget,
    context: &ToolContext<'_>,
) -> Option<CodedError> {
    let mut commands = stages.iter().filter_map(|stage| subcommand(&stage.argv));
    let (name, writes) =
        commands.find(|(name, writes)| *writes || READING.contains(&name.as_str()))?;
    is_of_root(context.workspace, cwd.inside()?).then_some(())?;
    let found = match OutsideRepository::find(context.workspace) {
        Ok(found) => Ok(found?),
        Err(reason) => {
            Err(format!("the `.git` file names a directory that is not shown: {reason}"))
        }
    };
    let status = context.commands.sandbox_status().and_then(Result::ok);
    let has_mounts = status.is_none_or(|status| status.tier == SandboxTier::Full);
    let why = match found {
        Err(why) => why,
        Ok(_) if !has_mounts => {
            "the repository lies outside of the workspace and is not shown without namespaces"
                .into()
        }
        Ok(found) if writes => format!(
            "the repository `{}` lies outside of the workspace and is shown read-only: `git {name}` would change it",
            found.path.display()
        ),
        Ok(_) => return None,
    };
    Some(CodedError::new(Code::GitElsewhere, why).with_suggestion(SUGGESTION))
}

/// The subcommand of a command line of git, and whether it writes.
pub(super) fn subcommand(argv: &[OsString]) -> Option<(String, bool)> {
    let mut words = argv.iter().filter_map(|word| word.to_str());
    words.next().filter(|program| *program == "git" || program.ends_with("/git"))?;
    let mut words = words.skip_while(|word| PLAIN_OPTIONS.contains(word));
    let name = words.next()?;
    let writes = match name {
        "stash" => words.next().is_none_or(|word| !STASH_READING.contains(&word)),
        name => WRITING.contains(&name),
    };
    Some((name.to_owned(), writes))
}

/// Whether git finds the `.git` of the workspace's root first from a directory.
pub(super) fn is_of_root(workspace: &Workspace, cwd: &WorkspacePath) -> bool {
    let mut between = cwd.ancestors().filter(|path| !path.is_root());
    !between.any(|path| workspace.resolve(&path.join(".git")).is_ok())
}
