//! What is at stake in a workspace: staged changes that nobody applied, and what is in no commit.

use std::path::Path;

use capsule_core::change::{Change, FileState};
use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::outcome::CodedError;
use capsule_core::units::counted;
use capsule_runtime::{Subject, Unapplied, Undoing, Workspace, unapplied};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::command::open_store;
use crate::failure::Failure;
use crate::repository::{Entry, Uncommitted, uncommitted};
use crate::screen::{CARE, GOOD, Screen};
use crate::surroundings::Surroundings;

/// How many paths that are in no commit are shown by name.
const SHOWN: usize = 20;

/// What git says, or why it says nothing.
type Told = Result<Option<Uncommitted>, String>;

fn ask(around: &Surroundings, workspace: &Path) -> Told {
    // Most folders are none, and git takes a process.
    if workspace.join(".git").symlink_metadata().is_err() {
        return Ok(None);
    }
    uncommitted(around, workspace).map_err(|failure| match failure {
        Failure::Problem(problem) => problem.message,
        _ => "git cannot be asked".into(),
    })
}

/// No commit has a folder of its own.
const fn is_folder(change: &Change) -> bool {
    let node = match &change.after {
        Some(after) => Some(after),
        None => change.before.as_ref(),
    };
    matches!(node, Some(FileState::Directory { .. }))
}

/// What a run changed in the workspace itself, and how much of it is in no commit.
pub(super) struct Made {
    /// What is there now because of it, as far as its record says.
    pub(super) changes: Vec<Change>,
    /// The paths that are asked about.
    paths: Vec<String>,
    told: Told,
}

impl Made {
    pub(super) fn of(
        store: &Store,
        around: &Surroundings,
        subject: &Subject,
    ) -> Result<Self, Failure> {
        let id = subject.id.to_string();
        let changes = match (subject.changes.0.is_empty(), subject.is_staged) {
            (true, false) => match Undoing::read(store, &around.store, &id, None) {
                Ok(undoing) => undoing.changes.into_iter().map(Change::reverted).collect(),
                // It changed nothing, or nobody knows what.
                Err(_) => Vec::new(),
            },
            _ => Vec::new(),
        };
        let applied = subject.changes.0.values().filter(|_| !subject.is_staged);
        let made = changes.iter().chain(applied).filter(|own| !is_folder(own));
        let paths: Vec<String> = made.map(|own| own.path.clone()).collect();
        let told = match paths.is_empty() {
            true => Ok(None),
            false => ask(around, Path::new(subject.workspace())),
        };
        Ok(Self { changes, paths, told })
    }

    /// Those of the paths that are in no commit; none where git does not say.
    pub(super) fn uncommitted(&self) -> Option<Vec<&String>> {
        let told = self.told.as_ref().ok()?.as_ref()?;
        Some(self.paths.iter().filter(|path| told.holds(path)).collect())
    }

    pub(super) fn tell(&self, screen: &Screen) -> Result<(), Failure> {
        if let Err(why) = &self.told {
            screen.complain(&format!("{CARE}git{CARE:#}: {}", escape::line(why)));
        }
        let Some(open) = self.uncommitted() else { return Ok(()) };
        let (all, open) = (self.paths.len(), open.len());
        screen.say(&match open {
            0 => format!("{GOOD}all of it is in a commit{GOOD:#}, or is as it was"),
            open => format!(
                "{open} of {all} paths {} in no commit",
                if open == 1 { "is" } else { "are" }
            ),
        })
    }
}

/// Shows what waits in the workspace.
pub(super) fn show(around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let path = around.beginning();
    let workspace = Workspace::open(&path).map_err(|error| {
        let message = format!("`{}` cannot be opened: {error}", path.display());
        CodedError::new(Code::WorkspaceMissing, message)
    })?;
    let own = (workspace.device(), workspace.inode());
    let (waiting, labels) = match around.store.exists() {
        true => {
            let store = open_store(around, screen)?;
            let waiting = unapplied(&store, &around.store, own);
            let labels = waiting.iter().map(|own| store.label(&own.run)).collect();
            (waiting, labels)
        }
        false => (Vec::new(), Vec::<String>::new()),
    };
    let told = ask(around, workspace.path());
    let staged: Vec<(&Unapplied, &String)> = waiting.iter().zip(&labels).collect();
    if screen.json {
        screen.say_json(&json!({
            "schema": 1,
            "workspace": workspace.path(),
            "staged": staged.iter().map(staged_json).collect::<Vec<_>>(),
            "repository": told.as_ref().ok().and_then(Option::as_ref).map(repository_json),
            "why": told.as_ref().err(),
        }))?;
        return Ok(0);
    }
    screen.say(&format!("workspace  {}", escape::line(&workspace.path().to_string_lossy())))?;
    if staged.is_empty() {
        screen.say("staged     nothing waits")?;
    }
    for (own, label) in staged {
        let what = match (own.paths, own.refused) {
            (None, _) => format!("the run did not come to its end · capsule discard {label}"),
            (Some(paths), true) => format!("{} · not to be applied", counted(paths, "change")),
            (Some(paths), false) => counted(paths, "change"),
        };
        screen.say(&format!("staged     {label} · {what} · capsule changes {label}"))?;
    }
    repository(&told, screen)?;
    Ok(0)
}

fn repository(told: &Told, screen: &Screen) -> Result<(), Failure> {
    let told = match told {
        Ok(Some(told)) => told,
        Ok(None) => return screen.say("git        no repository"),
        Err(why) => return screen.say(&format!("git        {}", escape::line(why))),
    };
    let more = if told.truncated { "more than " } else { "" };
    let count = told.count();
    let paths = if count == 1 { "path is" } else { "paths are" };
    let ahead = match (&told.upstream, told.ahead) {
        (Some(upstream), Some(ahead)) if ahead > 0 => {
            format!(" · {} that {} has not", counted(ahead, "commit"), escape::line(upstream))
        }
        (Some(_), _) => String::new(),
        (None, _) => " · no other branch has its commits".into(),
    };
    screen.say(&format!("git        {more}{count} {paths} in no commit{ahead}"))?;
    for Entry { path, worktree } in told.entries.iter().take(SHOWN) {
        screen.say(&format!("           {} ({})", escape::line(path), escape::line(worktree)))?;
    }
    let hidden = told.entries.len().saturating_sub(SHOWN);
    if hidden > 0 {
        screen.say(&format!("           and {hidden} more"))?;
    }
    if told.left_out > 0 {
        let more = counted(told.left_out, "more path");
        screen.say(&format!(
            "           and {more} with names that `builtin:readonly` does not show"
        ))?;
    }
    Ok(())
}

fn staged_json((own, label): &(&Unapplied, &String)) -> Value {
    json!({ "run": own.run, "label": label, "paths": own.paths, "refused": own.refused })
}

fn repository_json(told: &Uncommitted) -> Value {
    let entries: Vec<&String> = told.entries.iter().map(|own| &own.path).collect();
    json!({
        "uncommitted": told.count(),
        "paths": entries,
        "left_out": told.left_out,
        "truncated": told.truncated,
        "upstream": told.upstream,
        "ahead": told.ahead,
        "clean": told.unclean().is_none(),
    })
}
