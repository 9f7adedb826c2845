//! What git says of a workspace: how much of it is in no commit yet.
//!
//! Git is asked as `git.status` asks it, on the one path and behind the same walls, under
//! `builtin:readonly`; the record of that is nobody's run and goes away at once.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_core::call::Origin;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_runtime::{Cancel, CommandRunner, NullSink};
use serde::Deserialize;
use serde_json::json;

use crate::args::{LayerArg, PolicyArg};
use crate::command::{SingleCall, SingleCallResult};
use crate::context::CliContext;
use crate::failure::Failure;

const STATUS_TOOL: &str = "git.status";

/// What is in no commit.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Uncommitted {
    /// The paths that differ from the last commit.
    pub(crate) entries: Vec<StatusEntry>,
    /// How many more there are that are not shown.
    #[serde(default)]
    #[serde(rename = "left_out")]
    pub(crate) hidden: u64,
    /// Whether there are more than were counted.
    #[serde(default)]
    pub(crate) truncated: bool,
    /// The branch that its own follows.
    pub(crate) upstream: Option<String>,
    /// How many commits that one has not.
    pub(crate) ahead: Option<u64>,
}

/// A path that differs from the last commit.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StatusEntry {
    /// The path; of a folder that is new as a whole, with a slash behind it.
    pub(crate) path: String,
    /// How the file differs from what is staged for a commit.
    pub(crate) worktree: String,
}

impl Uncommitted {
    /// Whether a path of the workspace is among them.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.entries.iter().any(|entry| {
            entry.path == path || entry.path.ends_with('/') && path.starts_with(&entry.path)
        })
    }

    /// How many paths there are, as far as they were counted.
    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.entries.len()).unwrap_or(u64::MAX).saturating_add(self.hidden)
    }

    /// Why the workspace is no clean copy of a repository, if it is none: something in it would be lost
    /// with it.
    pub(crate) fn why_not_clean(&self) -> Option<String> {
        let plural = |count, one: &'static str, more| if count == 1 { one } else { more };
        match (self.count(), &self.upstream, self.ahead) {
            (0, _, _) if self.truncated => Some("not all of it was looked at".into()),
            (0, None, _) => Some("its branch follows none that has its commits, too".into()),
            (0, Some(_), Some(0)) => None,
            (0, Some(upstream), ahead) => {
                Some(format!("{upstream} has not all of its commits{}", {
                    ahead.map_or_else(String::new, |own| format!(" ({own} ahead)"))
                }))
            }
            (count, ..) => {
                let (paths, are) = (plural(count, "path", "paths"), plural(count, "is", "are"));
                Some(format!("{count} {paths} in it {are} in no commit"))
            }
        }
    }
}

/// A folder for a store that goes away with it.
struct ScratchStore(PathBuf);

impl ScratchStore {
    fn create_beside(store: &Path) -> Result<Self, CodedError> {
        let folder = store.parent().unwrap_or_else(|| Path::new("."));
        let place = folder.join(format!(".asking-{}", std::process::id()));
        // One of a process that had this number before and was killed.
        let _ = fs::remove_dir_all(&place);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&place);
        made.map_err(|error| {
            let message = format!("`{}` cannot be made: {error}", place.display());
            CodedError::new(Code::StoreWrite, message)
        })?;
        Ok(Self(place))
    }
}

impl Drop for ScratchStore {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks git about a workspace; nothing where it is no repository.
///
/// # Errors
/// Git could not be asked, or says something that is not understood.
pub(crate) fn uncommitted(
    ctx: &CliContext,
    workspace: &Path,
) -> Result<Option<Uncommitted>, Failure> {
    let scratch = ScratchStore::create_beside(&ctx.store)?;
    let asking = ctx.with_workspace_and_store(workspace, scratch.0.join("store.db"));
    let policy = PolicyArg { policy: Some("builtin:readonly".into()), profile: None };
    let bound = asking.load_policy(&policy, Some(&ctx.store))?;
    let one = SingleCall {
        name: STATUS_TOOL.to_owned(),
        kind: RunKind::Call,
        subject: None,
        tool: STATUS_TOOL,
        args: json!({}),
        policy: &bound,
        layer: LayerArg { accept_layer: false },
        prompt: Box::new(capsule_runtime::NoPrompt),
        command_runner: CommandRunner::default(),
        sink: Rc::new(NullSink),
        cancel: Cancel::default(),
        out: None,
        origin: Origin::Person,
        resumption: None,
        session: None,
    };
    let SingleCallResult { delivered, .. } = one.submit(&asking, None)?;
    match (delivered.problem, delivered.value) {
        (Some(problem), _) if problem.code == Code::GitNone => Ok(None),
        (Some(problem), _) => Err(problem.into()),
        (None, value) => {
            let read = value.and_then(|value| serde_json::from_value(value).ok());
            let unread = || CodedError::new(Code::GitFailed, "git's answer is not understood");
            read.map(Some).ok_or_else(|| unread().into())
        }
    }
}

/// Why a workspace is no clean copy of a repository.
///
/// # Errors
/// It is none.
pub(crate) fn require_clean_copy(ctx: &CliContext, workspace: &Path) -> Result<(), String> {
    match uncommitted(ctx, workspace) {
        Ok(Some(told)) => told.why_not_clean().map_or(Ok(()), Err),
        Ok(None) => Err("it is no repository".into()),
        Err(Failure::Problem(problem)) => Err(problem.message),
        Err(_) => Err("git cannot be asked".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_copy_has_nothing_to_lose() {
        let told = |text: &str| serde_json::from_str::<Uncommitted>(text).unwrap().why_not_clean();
        let rows = [
            (r#"{"entries": [], "upstream": "o/m", "ahead": 0}"#, None),
            (r#"{"entries": [], "upstream": "o/m", "ahead": 2}"#, Some("2 ahead")),
            (r#"{"entries": [], "upstream": "o/m"}"#, Some("not all of its commits")),
            (r#"{"entries": []}"#, Some("follows none")),
            (
                r#"{"entries": [], "left_out": 1, "upstream": "o/m", "ahead": 0}"#,
                Some("1 path in it is"),
            ),
            (
                r#"{"entries": [], "truncated": true, "upstream": "o/m", "ahead": 0}"#,
                Some("not all"),
            ),
        ];
        for (text, why) in rows {
            let told = told(text);
            assert_eq!(told.is_some(), why.is_some(), "{text}");
            assert!(told.unwrap_or_default().contains(why.unwrap_or_default()), "{text}");
        }
        let entries = r#"{"entries": [{"path": "new/", "worktree": "untracked"},
            {"path": "a", "worktree": "modified"}], "upstream": "o/m", "ahead": 0}"#;
        let told: Uncommitted = serde_json::from_str(entries).unwrap();
        assert!(told.why_not_clean().unwrap().starts_with("2 paths in it are"));
        let held = ["a", "new/b", "new", "ab"].map(|path| told.contains(path));
        assert_eq!(held, [true, true, false, false]);
    }
}
