//! Applies staged changes to the workspace: all of them are compared before the first is made, each is
//! made whole or not at all, and what they replace is kept for an undo first. Whoever is interrupted
//! can begin again: what was applied already is known by its content.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use capsule_core::change::{Change, FileState};
use capsule_core::code::Code;
use capsule_core::lifecycle::SavedUndo;
use capsule_core::outcome::{CodedError, Output};
use capsule_core::path_aliases::PathAliases;
use rustix::fs::Timestamps;
use rustix::io::Errno;

use super::judge::OURS;
use super::{Staging, is_index};
use crate::making::{
    Maker, Place, Source, is_half_done, links, lock, makes_room, replaced, split, system,
};
use crate::node;
use crate::repository::{Reviewed, RunChanges};
use crate::tool::Cancel;
use crate::undo::{Keeper, Keeping};
use crate::veil::Veil;
use crate::workspace::NotFound;

/// How many conflicts are named.
const CONFLICTS: usize = 10;

const AGAIN: &str = "apply them again: it goes on where it stopped";

/// Changes that are to be applied.
pub(crate) struct Applying {
    staging: Rc<Staging>,
    keeper: Rc<Keeper>,
    run: String,
    changes: Vec<Change>,
    /// Whether somebody began to before, so that a change may be half done.
    again: bool,
    cancel: Cancel,
    maker: Maker,
    /// What knows by which other names the host comes to what is changed, and those as they are now:
    /// the workspace may have changed since the run.
    names: (Rc<RefCell<Veil>>, Rc<PathAliases>),
    /// Nobody drops them, and nobody applies others to the same workspace meanwhile.
    _locks: [OwnedFd; 2],
}

/// The name under which something stands beside its target until it takes that one's place.
pub(crate) fn beside(run: &str) -> String {
    format!("{OURS}{run}.tmp")
}

impl Applying {
    /// # Errors
    /// [`Code::ChangeConflict`] while somebody else applies something to the same workspace.
    pub(crate) fn new(
        (staging, keeper): (Rc<Staging>, Rc<Keeper>),
        (run, changes): (String, Vec<Change>),
        again: bool,
        (cancel, veil): (Cancel, &Rc<RefCell<Veil>>),
    ) -> Result<Self, CodedError> {
        let orders = veil.borrow().orders_now(&staging.lower)?;
        let names = (Rc::clone(veil), orders);
        let (workspace, leftovers) = (Rc::clone(&staging.lower), Vec::new());
        let links = links(&changes);
        let maker = Maker { workspace, beside: beside(&run), leftovers, links, differs };
        let hold = |folder: Result<OwnedFd, NotFound>| -> Result<OwnedFd, CodedError> {
            let folder = folder.map_err(|_| conflict("a folder cannot be opened".into()))?;
            let held = Some(folder).filter(lock);
            held.ok_or_else(|| {
                conflict("somebody else applies or drops changes here".into())
                    .with_suggestion("try again when that is over")
            })
        };
        let locks = [hold(staging.upper_folder(""))?, hold(maker.folder(""))?];
        Ok(Self { staging, keeper, run, changes, again, cancel, maker, names, _locks: locks })
    }

    /// Keeps what the changes replace and remove for an undo.
    ///
    /// # Errors
    /// [`Code::ChangeConflict`] where the workspace or the staged files are not what the record
    /// says; or it cannot be kept.
    pub(crate) fn preserve(&self) -> Result<SavedUndo, CodedError> {
        let mut keeping = self.keeper.begin(self.changes.iter().filter_map(replaced));
        let mut apart = Vec::new();
        let reviewed = self.reviewed();
        for change in &self.changes {
            let before = match self.unchanged(change, &reviewed) {
                Ok(before) => before,
                // Whoever has to put things right is told of all of them at once.
                Err(problem) if problem.code == Code::ChangeConflict => {
                    apart.push(problem);
                    continue;
                }
                Err(problem) => return Err(problem),
            };
            if before == change.after || !apart.is_empty() {
                continue;
            }
            if let Some(FileState::File { mode, .. }) = &before {
                let (kept, _) = keeping.file(&self.maker.old(change)?, *mode)?;
                if before.as_ref() != Some(&kept) {
                    return Err(differs(change));
                }
            }
            self.keep_index(&mut keeping, change)?;
            keeping.change(change.path.clone(), before, change.after.clone());
        }
        if apart.is_empty() { keeping.finish() } else { Err(self.together(&apart)) }
    }

    /// Keeps an index that comes, so that one that git only looked at since is known for it by an undo.
    fn keep_index(&self, keeping: &mut Keeping<'_>, change: &Change) -> Result<(), CodedError> {
        match &change.after {
            Some(FileState::File { .. }) if is_index(&change.path) => {
                keeping.beside(&self.open(change)?.0)
            }
            _ => Ok(()),
        }
    }

    /// Whether what stands at the place of a change is an index with the entries of another.
    fn is_same(&self, change: &Change, other: Option<&FileState>) -> Result<bool, CodedError> {
        if !is_index(&change.path)
            || !matches!(self.maker.here(change)?, Some(FileState::File { .. }))
        {
            return Ok(false);
        }
        Ok(self.staging.is_same(other, change, &self.maker.old(change)?))
    }

    /// Why some of the changes may not be made for the sake of what git would make of them.
    fn reviewed(&self) -> Reviewed {
        let (veil, orders) = &self.names;
        let veil = veil.borrow();
        let protects = veil.protecting(orders);
        let known = BTreeMap::new();
        let all = RunChanges::new(&known, &self.changes);
        self.staging.reviewed((all, self.changes.iter()), (orders, &protects))
    }

    /// What stands at the place of a change, if that is what the record says, or the change is made there
    /// already.
    fn unchanged(
        &self,
        change: &Change,
        reviewed: &Reviewed,
    ) -> Result<Option<FileState>, CodedError> {
        let here = self.maker.here(change)?;
        if here == change.after || self.is_same(change, change.after.as_ref())? {
            return Ok(change.after.clone());
        }
        let (veil, orders) = &self.names;
        let by_name = veil.borrow().refuses(orders, change);
        let around = || veil.borrow().refuses(&self.staging.around(change), change);
        let in_git = || reviewed.get(&change.path).cloned();
        if let Some(why) =
            by_name.or_else(in_git).or_else(|| self.staging.odd(change)).or_else(around)
        {
            let message = format!("`{}`: {why}", change.path);
            return Err(CodedError::new(Code::ChangeRefused, message));
        }
        self.is_as_recorded(change, here.as_ref())?;
        if self.has_lost_its_folder(change)? {
            let path = &change.path;
            return Err(conflict(match self.stands_in_the_way(change) {
                Some(above) => {
                    format!("`{above}` is no folder any more, and `{path}` belongs in it")
                }
                None => format!("the folder of `{path}` is gone"),
            }));
        }
        Ok(here)
    }

    /// Whether the folder of a path is gone that none of the changes makes.
    fn has_lost_its_folder(&self, change: &Change) -> Result<bool, CodedError> {
        let (folder, _) = split(&change.path);
        let known = self.changes.binary_search_by(|own| own.path.as_str().cmp(folder)).is_ok();
        Ok(!folder.is_empty() && !known && self.maker.there(change)?.is_none())
    }

    /// What stands where a folder above a path was.
    fn stands_in_the_way<'c>(&self, change: &'c Change) -> Option<&'c str> {
        let mut way = split(&change.path).0;
        while !way.is_empty() {
            let (above, name) = split(way);
            if let Ok(above) = self.maker.folder(above) {
                return node::stat_at(above.as_fd(), name).ok()?.map(|_| way);
            }
            way = above;
        }
        None
    }

    /// Several conflicts as one, and what to do about them.
    fn together(&self, apart: &[CodedError]) -> CodedError {
        let told: Vec<&str> =
            apart.iter().take(CONFLICTS).map(|own| own.message.as_str()).collect();
        let more = match apart.len().saturating_sub(CONFLICTS) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let run = &self.run;
        conflict(format!("{}{more}", told.join("; "))).with_suggestion(format!(
            "put back what stood there, or `capsule discard {run}` and run it again; \
             `capsule changes {run} --diff` shows what was to be applied"
        ))
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// At the first one that cannot be made; those before it are made.
    pub(crate) fn apply(&self, deadline: Instant) -> Result<Output, CodedError> {
        self.maker.clear_leftovers(&self.changes)?;
        let mut ready = Vec::new();
        for change in &self.changes {
            let here = self.maker.here(change)?;
            if here != change.after && !self.is_same(change, change.after.as_ref())? {
                self.is_as_recorded(change, here.as_ref())?;
                // What git noted there meanwhile goes with it.
                let is_refreshed = self.is_same(change, change.before.as_ref())?;
                let before = if is_refreshed { here.clone() } else { change.before.clone() };
                ready.push((Change { before, ..change.clone() }, here));
            }
        }
        let waiting: Vec<_> = ready.iter().map(|(change, here)| (change, here.clone())).collect();
        self.maker.all(&waiting, self, &|| self.goes_on(deadline))?;
        self.maker.close(&self.changes)?;
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Ok(Output::default()
            .with("run", self.run.clone())
            .with("applied", count(waiting.len()))
            .with("applied_before", count(self.changes.len() - waiting.len())))
    }

    fn goes_on(&self, deadline: Instant) -> Result<(), CodedError> {
        if self.cancel.is_set() {
            let problem = CodedError::new(Code::ExecCancelled, "not all changes were applied");
            return Err(problem.with_suggestion(AGAIN));
        }
        if Instant::now() <= deadline {
            return Ok(());
        }
        let message = "the changes could not be applied in time";
        Err(CodedError::new(Code::FileSystem, message).with_suggestion(AGAIN))
    }

    /// Whether what stands in the workspace, and the staged file, are what the record says.
    fn is_as_recorded(&self, change: &Change, here: Option<&FileState>) -> Result<(), CodedError> {
        let half_done = self.again && is_half_done(change, here);
        let is_other = here != change.before.as_ref() && !half_done;
        if is_other && !self.is_same(change, change.before.as_ref())? {
            return Err(self.moved(change, here));
        }
        let is_folder = matches!(here, Some(FileState::Directory { .. }));
        let known =
            |path: &str| self.changes.binary_search_by(|own| own.path.as_str().cmp(path)).is_ok();
        if is_folder
            && (makes_room(change) || change.before.is_none())
            && !self.maker.holds_nothing_else(change, &known)?
        {
            return Err(conflict(format!("`{}` holds something new", change.path)));
        }
        let Some(after) = &change.after else { return Ok(()) };
        let staged = self.staged(change)?.node().map_err(|errno| system(change, errno))?;
        if staged.as_ref() == Some(after) { Ok(()) } else { Err(self.other(change)) }
    }

    /// What somebody did to a path since.
    fn moved(&self, change: &Change, here: Option<&FileState>) -> CodedError {
        let path = &change.path;
        conflict(match (&change.before, here) {
            (Some(_), None) if matches!(self.maker.there(change), Ok(None)) => {
                match self.stands_in_the_way(change) {
                    Some(above) => {
                        format!("`{above}` is no folder any more, and `{path}` was in it")
                    }
                    None => format!("`{path}` was deleted since the command ran, with its folder"),
                }
            }
            (Some(_), None) => format!("`{path}` was deleted since the command ran"),
            (None, Some(_)) => format!("`{path}` was made by somebody else since the command ran"),
            _ => format!("`{path}` was changed since the command ran"),
        })
    }

    fn staged<'c>(&self, change: &'c Change) -> Result<Place<'c>, CodedError> {
        let (folder, name) = split(&change.path);
        match self.staging.upper_folder(folder) {
            Ok(folder) => Ok(Place { folder, name }),
            Err(_) => Err(conflict(format!("what was staged for `{}` is gone", change.path))),
        }
    }
}

impl Source for Applying {
    fn open(&self, change: &Change) -> Result<(File, Option<Timestamps>), CodedError> {
        let failed = |errno: Errno| system(change, errno);
        let staged = self.staged(change)?;
        let stat = staged.stat().map_err(failed)?.ok_or_else(|| differs(change))?;
        let file = node::open(staged.folder.as_fd(), staged.name, &stat).map_err(failed)?;
        Ok((file, Some(node::times(&stat))))
    }

    fn other(&self, change: &Change) -> CodedError {
        conflict(format!("`{}` was staged as something else", change.path))
    }
}

fn conflict(message: String) -> CodedError {
    CodedError::new(Code::ChangeConflict, message)
}

/// What is said of a path that is something else by now.
pub(super) fn differs(change: &Change) -> CodedError {
    conflict(format!("`{}` is not what it was when the command ran", change.path))
}
