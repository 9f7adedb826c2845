//! What is at stake in a workspace: staged changes that nobody applied, and what is in no commit.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::units::counted;
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::CodedError;
use capsule_runtime::{StagedRun, UnappliedRun, UndoRequest, Workspace, unapplied_runs};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::command::open_store;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::repository::{StatusEntry, Uncommitted, uncommitted};
use crate::screen::{SUCCESS, Screen, WARNING};

/// How many paths that are in no commit are shown by name.
const MAX_SHOWN_PATHS: usize = 20;

/// What git says, or why it says nothing.
type GitAnswer = Result<Option<Uncommitted>, String>;

fn ask_git(ctx: &CliContext, workspace: &Path) -> GitAnswer {
    // Most folders are none, and git takes a process.
    if workspace.join(".git").symlink_metadata().is_err() {
        return Ok(None);
    }
    uncommitted(ctx, workspace).map_err(|failure| match failure {
        Failure::Problem(problem) => problem.message,
        _ => "git cannot be asked".into(),
    })
}

/// No commit has a folder of its own.
const fn is_directory(change: &Change) -> bool {
    let node = match &change.after {
        Some(after) => Some(after),
        None => change.before.as_ref(),
    };
    matches!(node, Some(FileState::Directory { .. }))
}

/// What a run changed in the workspace itself, and how much of it is in no commit.
pub(super) struct DirectChanges {
    /// What is there now because of it, as far as its record says.
    pub(super) changes: Vec<Change>,
    /// The paths that are asked about.
    paths: Vec<String>,
    git_answer: GitAnswer,
}

impl DirectChanges {
    pub(super) fn find(
        store: &Store,
        ctx: &CliContext,
        subject: &StagedRun,
    ) -> Result<Self, Failure> {
        let id = subject.id.to_string();
        let changes = match (subject.changes.0.is_empty(), subject.is_staged) {
            (true, false) => match UndoRequest::read(store, &ctx.store, &id, None) {
                Ok(undoing) => undoing.changes.into_iter().map(Change::reverted).collect(),
                // It changed nothing, or nobody knows what.
                Err(_) => Vec::new(),
            },
            _ => Vec::new(),
        };
        let applied = subject.changes.0.values().filter(|_| !subject.is_staged);
        let made = changes.iter().chain(applied).filter(|change| !is_directory(change));
        let paths: Vec<String> = made.map(|change| change.path.clone()).collect();
        let told = match paths.is_empty() {
            true => Ok(None),
            false => ask_git(ctx, Path::new(subject.workspace())),
        };
        Ok(Self { changes, paths, git_answer: told })
    }

    /// Those of the paths that are in no commit; none where git does not say.
    pub(super) fn uncommitted(&self) -> Option<Vec<&String>> {
        let told = self.git_answer.as_ref().ok()?.as_ref()?;
        Some(self.paths.iter().filter(|path| told.contains(path)).collect())
    }

    pub(super) fn show(&self, screen: &Screen) -> Result<(), Failure> {
        if let Err(why) = &self.git_answer {
            screen.eprint(&format!("{WARNING}git{WARNING:#}: {}", escape::line(why)));
        }
        let Some(open) = self.uncommitted() else { return Ok(()) };
        let (all, open) = (self.paths.len(), open.len());
        screen.print_line(&match open {
            0 => format!("{SUCCESS}all of it is in a commit{SUCCESS:#}, or is as it was"),
            open => format!(
                "{open} of {all} paths {} in no commit",
                if open == 1 { "is" } else { "are" }
            ),
        })
    }
}

/// The workspace that a command is given in, and the runs with staged changes of it, the oldest first, each with
/// its label.
pub(super) fn waiting_runs(
    ctx: &CliContext,
    screen: &Screen,
) -> Result<(Workspace, Vec<(UnappliedRun, String)>), Failure> {
    let path = ctx.start_directory();
    let workspace = Workspace::open(&path).map_err(|error| {
        let message = format!("`{}` cannot be opened: {error}", path.display());
        CodedError::new(Code::WorkspaceMissing, message)
    })?;
    let item = (workspace.device(), workspace.inode());
    if !ctx.store.exists() {
        return Ok((workspace, Vec::new()));
    }
    let store = open_store(ctx, screen)?;
    let waiting = unapplied_runs(&store, &ctx.store, item).into_iter();
    let labelled = waiting.map(|run| {
        let label = store.label(&run.run);
        (run, label)
    });
    Ok((workspace, labelled.collect()))
}

/// Shows what waits in the workspace.
pub(super) fn show(ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (workspace, staged) = waiting_runs(ctx, screen)?;
    let told = ask_git(ctx, workspace.path());
    if screen.json {
        screen.print_json(&json!({
            "schema": 1,
            "workspace": workspace.path(),
            "staged": staged.iter().map(staged_json).collect::<Vec<_>>(),
            "repository": told.as_ref().ok().and_then(Option::as_ref).map(repository_json),
            "why": told.as_ref().err(),
        }))?;
        return Ok(0);
    }
    screen
        .print_line(&format!("workspace  {}", escape::line(&workspace.path().to_string_lossy())))?;
    if staged.is_empty() {
        screen.print_line("staged     nothing waits")?;
    }
    for (run, label) in staged {
        let what = match (run.paths, run.refused) {
            (None, _) => format!("the run did not come to its end · capsule discard {label}"),
            (Some(paths), true) => format!("{} · not to be applied", counted(paths, "change")),
            (Some(paths), false) => counted(paths, "change"),
        };
        screen.print_line(&format!("staged     {label} · {what} · capsule changes {label}"))?;
    }
    show_repository(&told, screen)?;
    Ok(0)
}

fn show_repository(told: &GitAnswer, screen: &Screen) -> Result<(), Failure> {
    let told = match told {
        Ok(Some(told)) => told,
        Ok(None) => return screen.print_line("git        no repository"),
        Err(why) => return screen.print_line(&format!("git        {}", escape::line(why))),
    };
    let more = if told.truncated { "more than " } else { "" };
    let count = told.count();
    let paths = if count == 1 { "path is" } else { "paths are" };
    let ahead = match (&told.upstream, told.ahead) {
        (Some(upstream), Some(ahead)) if ahead > 0 => {
            format!(" · {} that {} has not", counted(ahead, "commit"), escape::line(upstream))
        }
        (Some(_), _) => String::new(),
        (None, _) => " · its commits are on no other branch that git knows of".into(),
    };
    screen.print_line(&format!("git        {more}{count} {paths} in no commit{ahead}"))?;
    for StatusEntry { path, worktree } in told.entries.iter().take(MAX_SHOWN_PATHS) {
        screen.print_line(&format!(
            "           {} ({})",
            escape::line(path),
            escape::line(worktree)
        ))?;
    }
    let hidden = told.entries.len().saturating_sub(MAX_SHOWN_PATHS);
    if hidden > 0 {
        screen.print_line(&format!("           and {hidden} more"))?;
    }
    if told.hidden > 0 {
        let more = counted(told.hidden, "more path");
        screen.print_line(&format!(
            "           and {more} with names that `builtin:readonly` does not show"
        ))?;
    }
    Ok(())
}

fn staged_json((run, label): &(UnappliedRun, String)) -> Value {
    json!({ "run": run.run, "label": label, "paths": run.paths, "refused": run.refused })
}

fn repository_json(told: &Uncommitted) -> Value {
    let entries: Vec<&String> = told.entries.iter().map(|entry| &entry.path).collect();
    json!({
        "uncommitted": told.count(),
        "paths": entries,
        "left_out": told.hidden,
        "truncated": told.truncated,
        "upstream": told.upstream,
        "ahead": told.ahead,
        "clean": told.why_not_clean().is_none(),
    })
}
