//! Applies staged changes to the workspace: all of them are compared before the first is made, each is
//! made whole or not at all, and what they replace is kept for an undo first. Whoever is interrupted
//! can begin again: what was applied already is known by its content.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use capsule_base::code::Code;
use capsule_base::path_aliases::PathAliases;
use capsule_core::change::{Change, FileState};
use capsule_core::lifecycle::SavedUndo;
use capsule_core::outcome::{CodedError, Output};
use rustix::fs::Timestamps;
use rustix::io::Errno;

use crate::backup::{BackupStore, CallBackup};
use crate::cancel::Cancel;
use crate::change::applier::{
    ChangeApplier, ChangeSource, is_half_applied, link_paths, replaced_size, replaces_other_kind,
    system_problem, try_lock,
};
use crate::change_path::{ChangePath, split_parent};
use crate::hidden_paths::HiddenPaths;
use crate::node;
use crate::repository::{LinkedTrees, Reviewed, RunChanges};
use crate::resolve::{LookupError, Workspace};
use crate::staging::{Staging, is_index};
use crate::temporary_names::apply_name;

/// How many conflicts are named.
const MAX_SHOWN_CONFLICTS: usize = 10;

const RETRY_HINT: &str = "apply them again: it continues where it stopped";

/// Changes that are to be applied.
pub struct StagedApply {
    staging: Rc<Staging>,
    backups: Rc<BackupStore>,
    run: String,
    changes: Vec<Change>,
    /// Whether somebody began to before, so that a change may be half done.
    is_retry: bool,
    cancel: Cancel,
    applier: ChangeApplier,
    /// What knows by which other names the host comes to what is changed, and those as they are now:
    /// the workspace may have changed since the run.
    aliases: (Rc<RefCell<HiddenPaths>>, Rc<PathAliases>),
    /// Nobody drops them, and nobody applies others to the same workspace meanwhile.
    _locks: [OwnedFd; 2],
}

impl StagedApply {
    /// # Errors
    /// [`Code::ChangeConflict`] while somebody else applies something to the same workspace.
    pub fn new(
        (staging, backups): (Rc<Staging>, Rc<BackupStore>),
        (run, changes): (String, Vec<Change>),
        again: bool,
        (cancel, hidden_paths): (Cancel, &Rc<RefCell<HiddenPaths>>),
    ) -> Result<Self, CodedError> {
        let aliases = hidden_paths.borrow().path_aliases_now(staging.lower())?;
        let names = (Rc::clone(hidden_paths), aliases);
        let applier = applier_of_run(staging.lower(), &run, &changes);
        let hold = |folder: Result<OwnedFd, LookupError>| -> Result<OwnedFd, CodedError> {
            let folder =
                folder.map_err(|_| conflict_problem("a folder cannot be opened".into()))?;
            let held = Some(folder).filter(try_lock);
            held.ok_or_else(|| {
                conflict_problem("somebody else applies or drops changes here".into())
                    .with_suggestion("try again when that is over")
            })
        };
        let locks = [hold(staging.open_upper(""))?, hold(applier.open_directory(""))?];
        Ok(Self {
            staging,
            backups,
            run,
            changes,
            is_retry: again,
            cancel,
            applier,
            aliases: names,
            _locks: locks,
        })
    }

    /// Keeps what the changes replace and remove for an undo.
    ///
    /// # Errors
    /// [`Code::ChangeConflict`] where the workspace or the staged files are not what the record
    /// says; or it cannot be kept.
    pub fn back_up(&self) -> Result<SavedUndo, CodedError> {
        let mut backup = self.backups.begin(self.changes.iter().filter_map(replaced_size));
        let mut apart = Vec::new();
        let (linked, reviewed) = self.review();
        for change in &self.changes {
            let before = match self.require_unchanged(change, (&reviewed, &linked)) {
                Ok(before) => before,
                // Whoever has to put things right is told of all of them at once.
                Err(problem) if problem.code == Code::ChangeConflict => {
                    apart.push((change.path.as_str(), problem));
                    continue;
                }
                Err(problem) => return Err(problem),
            };
            if before == change.after || !apart.is_empty() {
                continue;
            }
            if let Some(FileState::File { mode, .. }) = &before {
                let (kept, _) = backup.add_file(&self.applier.open_current(change)?, *mode)?;
                if before.as_ref() != Some(&kept) {
                    return Err(differs_problem(change));
                }
            }
            self.keep_index(&mut backup, change)?;
            backup.add(Change { before, ..change.clone() });
        }
        if apart.is_empty() { backup.finish() } else { Err(self.combine_conflicts(&apart)) }
    }

    /// Keeps an index that comes, so that one that git only looked at since is known for it by an undo.
    fn keep_index(&self, backup: &mut CallBackup<'_>, change: &Change) -> Result<(), CodedError> {
        match &change.after {
            Some(FileState::File { .. }) if is_index(&change.path) => {
                backup.beside(&self.open(change)?.0)
            }
            _ => Ok(()),
        }
    }

    /// Whether what stands at the place of a change is an index with the entries of another.
    fn is_same(&self, change: &Change, other: Option<&FileState>) -> Result<bool, CodedError> {
        if !is_index(&change.path)
            || !matches!(self.applier.current_node(change)?, Some(FileState::File { .. }))
        {
            return Ok(false);
        }
        Ok(self.staging.is_same(other, change, &self.applier.open_current(change)?))
    }

    /// The working trees that the changes link or unlink, and why some of the changes may not be made for the sake of
    /// what git would make of them.
    fn review(&self) -> (LinkedTrees, Reviewed) {
        let (hidden_paths, aliases) = &self.aliases;
        let hidden_paths = hidden_paths.borrow();
        let protects = hidden_paths.protecting(aliases);
        let known = BTreeMap::new();
        let all = || RunChanges::new(&known, &self.changes);
        let linked = self.staging.linked((all(), &self.changes), (aliases, &protects));
        let reviewed =
            self.staging.reviewed((all(), self.changes.iter()), (aliases, &protects), &linked);
        (linked, reviewed)
    }

    /// What stands at the place of a change, if that is what the record says, or the change is made there
    /// already.
    fn require_unchanged(
        &self,
        change: &Change,
        (reviewed, linked): (&Reviewed, &LinkedTrees),
    ) -> Result<Option<FileState>, CodedError> {
        let here = self.applier.current_node(change)?;
        if here == change.after || self.is_same(change, change.after.as_ref())? {
            return Ok(change.after.clone());
        }
        let (hidden_paths, aliases) = &self.aliases;
        let by_name = hidden_paths.borrow().alias_refusal(aliases, change);
        let around = || {
            hidden_paths
                .borrow()
                .alias_refusal(&self.staging.enclosing_repositories(change), change)
        };
        let in_git = || reviewed.get(&change.path).cloned();
        if let Some(why) = by_name
            .or_else(in_git)
            .or_else(|| self.staging.repository_refusal(change, linked))
            .or_else(around)
            .or_else(|| unlinked(change, linked))
        {
            let message = format!("`{}`: {why}", change.path);
            return Err(CodedError::new(Code::ChangeRefused, message));
        }
        self.require_recorded(change, here.as_ref())?;
        if self.lost_parent(change)? {
            let path = &change.path;
            return Err(conflict_problem(match self.blocking_parent(change) {
                Some(above) => {
                    format!("`{above}` is no longer a directory, and `{path}` belongs in it")
                }
                None => format!("the folder of `{path}` is gone"),
            }));
        }
        Ok(here)
    }

    /// Whether the folder of a path is gone that none of the changes makes.
    fn lost_parent(&self, change: &Change) -> Result<bool, CodedError> {
        let (folder, _) = split_parent(&change.path);
        let known =
            self.changes.binary_search_by(|change| change.path.as_str().cmp(folder)).is_ok();
        Ok(!folder.is_empty() && !known && self.applier.find_change_path(change)?.is_none())
    }

    /// What stands where a folder above a path was.
    fn blocking_parent<'c>(&self, change: &'c Change) -> Option<&'c str> {
        let mut way = split_parent(&change.path).0;
        while !way.is_empty() {
            let (above, name) = split_parent(way);
            if let Ok(above) = self.applier.open_directory(above) {
                return node::stat_optional(above.as_fd(), name).ok()?.map(|_| way);
            }
            way = above;
        }
        None
    }

    /// Several conflicts as one, and what to do about them.
    fn combine_conflicts(&self, apart: &[(&str, CodedError)]) -> CodedError {
        let told: Vec<&str> = apart
            .iter()
            .take(MAX_SHOWN_CONFLICTS)
            .map(|(_, error)| error.message.as_str())
            .collect();
        let more = match apart.len().saturating_sub(MAX_SHOWN_CONFLICTS) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let run = &self.run;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-+@".contains(c);
        let paths: Vec<&str> = apart.iter().map(|(path, _)| *path).collect();
        let can_be_named = paths.len() <= MAX_SHOWN_CONFLICTS
            && paths.len() < self.changes.len()
            && paths.iter().all(|path| path.chars().all(is_plain) && !path.starts_with('-'));
        let rest = match can_be_named {
            true => format!(
                "`capsule apply {run} --without {}` applies the rest; or ",
                paths.join(" --without ")
            ),
            false => String::new(),
        };
        conflict_problem(format!("{}{more}", told.join("; "))).with_suggestion(format!(
            "{rest}put back what was there, or `capsule discard {run}` and run it again; \
             `capsule changes {run} --diff` shows what was to be applied"
        ))
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// At the first one that cannot be made; those before it are made.
    pub fn apply(&self, deadline: Instant) -> Result<Output, CodedError> {
        self.applier.clear_leftovers(&self.changes)?;
        let mut ready = Vec::new();
        for change in &self.changes {
            let here = self.applier.current_node(change)?;
            if here != change.after && !self.is_same(change, change.after.as_ref())? {
                self.require_recorded(change, here.as_ref())?;
                // What git noted there meanwhile goes with it.
                let is_refreshed = self.is_same(change, change.before.as_ref())?;
                let before = if is_refreshed { here.clone() } else { change.before.clone() };
                ready.push((Change { before, ..change.clone() }, here));
            }
        }
        let waiting: Vec<_> = ready.iter().map(|(change, here)| (change, here.clone())).collect();
        self.applier.apply_all(&waiting, self, &|| self.check_continue(deadline))?;
        self.applier.close_directories(&self.changes)?;
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Ok(Output::default()
            .with("run", self.run.clone())
            .with("applied", count(waiting.len()))
            .with("applied_before", count(self.changes.len() - waiting.len())))
    }

    fn check_continue(&self, deadline: Instant) -> Result<(), CodedError> {
        if self.cancel.is_set() {
            let problem = CodedError::new(Code::ExecCancelled, "not all changes were applied");
            return Err(problem.with_suggestion(RETRY_HINT));
        }
        if Instant::now() <= deadline {
            return Ok(());
        }
        let message = "the changes could not be applied in time";
        Err(CodedError::new(Code::FileSystem, message).with_suggestion(RETRY_HINT))
    }

    /// Whether what stands in the workspace, and the staged file, are what the record says.
    fn require_recorded(
        &self,
        change: &Change,
        here: Option<&FileState>,
    ) -> Result<(), CodedError> {
        let half_done = self.is_retry && is_half_applied(change, here);
        let is_other = here != change.before.as_ref() && !half_done;
        if is_other && !self.is_same(change, change.before.as_ref())? {
            return Err(self.conflict_problem(change, here));
        }
        let is_folder = matches!(here, Some(FileState::Directory { .. }));
        let known = |path: &str| {
            self.changes.binary_search_by(|change| change.path.as_str().cmp(path)).is_ok()
        };
        if is_folder
            && (replaces_other_kind(change) || change.before.is_none())
            && !self.applier.holds_only(change, &known)?
        {
            return Err(conflict_problem(format!("`{}` holds something new", change.path)));
        }
        let Some(after) = &change.after else { return Ok(()) };
        let staged =
            self.staged_path(change)?.node().map_err(|errno| system_problem(change, errno))?;
        if staged.as_ref() == Some(after) { Ok(()) } else { Err(self.mismatch_problem(change)) }
    }

    /// What somebody did to a path since.
    fn conflict_problem(&self, change: &Change, here: Option<&FileState>) -> CodedError {
        let path = &change.path;
        conflict_problem(match (&change.before, here) {
            (Some(_), None) if matches!(self.applier.find_change_path(change), Ok(None)) => {
                match self.blocking_parent(change) {
                    Some(above) => {
                        format!("`{above}` is no longer a directory, and `{path}` was in it")
                    }
                    None => format!("`{path}` was deleted since the command ran, with its folder"),
                }
            }
            (Some(_), None) => format!("`{path}` was deleted since the command ran"),
            (None, Some(_)) => format!("`{path}` was made since the command ran"),
            _ => format!("`{path}` was changed since the command ran"),
        })
    }

    fn staged_path<'c>(&self, change: &'c Change) -> Result<ChangePath<'c>, CodedError> {
        let (folder, name) = split_parent(&change.path);
        match self.staging.open_upper(folder) {
            Ok(folder) => Ok(ChangePath { parent: folder, name }),
            Err(_) => {
                Err(conflict_problem(format!("what was staged for `{}` is gone", change.path)))
            }
        }
    }
}

impl ChangeSource for StagedApply {
    fn open(&self, change: &Change) -> Result<(File, Option<Timestamps>), CodedError> {
        let failed = |errno: Errno| system_problem(change, errno);
        let staged = self.staged_path(change)?;
        let stat = staged.stat().map_err(failed)?.ok_or_else(|| differs_problem(change))?;
        let file = node::open_regular(staged.parent.as_fd(), staged.name, &stat).map_err(failed)?;
        Ok((file, Some(node::timestamps(&stat))))
    }

    fn mismatch_problem(&self, change: &Change) -> CodedError {
        conflict_problem(format!("`{}` was staged as something else", change.path))
    }
}

/// Makes the staged changes of a run in its workspace.
pub(super) fn applier_of_run(
    workspace: &Rc<Workspace>,
    run: &str,
    changes: &[Change],
) -> ChangeApplier {
    ChangeApplier {
        workspace: Rc::clone(workspace),
        temporary_name: apply_name(run),
        leftover_names: Vec::new(),
        link_paths: link_paths(changes),
        conflict_problem: differs_problem,
    }
}

fn conflict_problem(message: String) -> CodedError {
    CodedError::new(Code::ChangeConflict, message)
}

/// What is said of a path that is something else by now.
fn differs_problem(change: &Change) -> CodedError {
    conflict_problem(format!("`{}` is not what it was when the command ran", change.path))
}

/// Why a change may not be judged by another path any more, if it may not.
fn unlinked(change: &Change, linked: &LinkedTrees) -> Option<String> {
    let is_linked = change.judged_as.as_deref() == linked.judged_as(&change.path);
    (change.judged_as.is_some() && !is_linked)
        .then(|| "without the rest of what git writes with it, it is protected".into())
}
