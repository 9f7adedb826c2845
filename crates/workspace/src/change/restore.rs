//! Brings back what stood somewhere before calls changed it: all of it, or nothing.
//!
//! Every path is compared with what the call left before the first is touched, and everything that is to
//! come back is read and compared with its digest. What goes away for it is kept first, so that an undo
//! is undone like any other call, and so that one which fails half-way is taken back at once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path_aliases::PathAliases;
use capsule_core::change::{Change, FileState};
use capsule_core::lifecycle::SavedUndo;
use capsule_core::outcome::{CodedError, Output};
use rustix::fs::{FileType, Timestamps};

use super::undo_entry::{UndoEntry, UndoStatus, differs_problem};
use crate::backup::{BackupReader, BackupStore, MissingBackup};
use crate::cancel::Cancel;
use crate::change::applier::{
    ChangeApplier, ChangeSource, is_half_applied, link_paths, replaced_size, replaces_other_kind,
    system_problem,
};
use crate::change::undo_comparison::{is_before, is_left};
use crate::change_path::split_parent;
use crate::hidden_paths::HiddenPaths;
use crate::line_count::changed_line_counts;
use crate::repository::is_same_index;
use crate::resolve::{Workspace, file_type};
use crate::staging::{is_index, read_index};
use crate::temporary_names::{apply_name, undo_name};

/// The largest file whose lines are counted for a preview.
const MAX_COUNTED_BYTES: u64 = 1_000_000;

/// What is to be undone.
pub struct UndoPlan {
    applier: ChangeApplier,
    backups: BackupReader,
    run: String,
    /// What comes of it, by path.
    changes: Vec<Change>,
    /// Whether somebody began to before and was killed, so that a path may be half done.
    is_retry: bool,
    /// Whether a run made what goes, so that it need not be kept.
    made_by_run: bool,
}

/// What stands at a path, and when it last changed.
type CurrentNode = (Option<FileState>, Option<i64>);

fn busy() -> CodedError {
    CodedError::new(Code::UndoConflict, "an undo or apply is at work here")
        .with_suggestion("wait for its end")
}

impl UndoPlan {
    /// What calls of a run changed in a workspace, the other way round. It is looked for among what the
    /// run, or else another one, has kept. `again` are the runs that began to undo it, or are undone, and
    /// were killed; `made` says whether the run made what goes for it, and did not bring it back itself.
    #[must_use]
    pub fn new(
        workspace: &Rc<Workspace>,
        kept: BackupReader,
        (run, mut changes): (String, Vec<Change>),
        (again, made): (&[String], bool),
    ) -> Self {
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        // Whoever was killed may have been undoing it, or applying it.
        let all = again.iter().chain(again.first().map(|_| &run));
        let leftovers = all.flat_map(|run| [undo_name(run), apply_name(run)]).collect();
        let (workspace, beside) = (Rc::clone(workspace), String::new());
        let applier = ChangeApplier {
            workspace,
            temporary_name: beside,
            leftover_names: leftovers,
            link_paths: link_paths(&changes),
            conflict_problem: differs_problem,
        };
        Self {
            applier,
            backups: kept,
            run,
            changes,
            is_retry: !again.is_empty(),
            made_by_run: made,
        }
    }

    /// Removes what a run that was killed left beside the paths.
    ///
    /// # Errors
    /// It cannot be removed, or somebody else is at work here.
    pub fn clear_leftovers(&self) -> Result<(), CodedError> {
        let _lock = self.applier.lock_workspace().ok_or_else(busy)?;
        self.applier.clear_leftovers(&self.changes)
    }

    /// Looks at every path, and at what was kept. Nothing is changed.
    ///
    /// # Errors
    /// Something cannot be looked at.
    pub fn compare(&self) -> Result<Vec<UndoEntry>, CodedError> {
        // What goes, so far: a folder goes once all that is in it does. From the inside out.
        let mut going = BTreeSet::new();
        let mut all = Vec::new();
        for change in self.changes.iter().rev() {
            let looked = self.compare_path(change, &going)?;
            let goes =
                matches!(looked.status, UndoStatus::Ready { .. } | UndoStatus::AlreadyRestored);
            if goes && change.after.is_none() {
                going.insert(change.path.as_str());
            }
            all.push(looked);
        }
        all.reverse();
        let mut bytes = 0_u64;
        // What takes the place of something goes first, and the small before the large: of what a program made, most
        // can be made again.
        let mut by_worth: Vec<&mut UndoEntry> = all.iter_mut().collect();
        by_worth.sort_by_key(|entry| {
            (entry.change.after.is_none(), replaced_size(&entry.change).unwrap_or_default())
        });
        for entry in by_worth {
            if let (UndoStatus::Ready { backed_up: kept, .. }, Some(more)) =
                (&mut entry.status, replaced_size(&entry.change))
            {
                let now = bytes.saturating_add(more);
                *kept = !self.made_by_run || now <= limits::UNDO_BYTES;
                bytes = if *kept { now } else { bytes };
            }
        }
        Ok(all)
    }

    fn compare_path(
        &self,
        change: &Change,
        going: &BTreeSet<&str>,
    ) -> Result<UndoEntry, CodedError> {
        let looked = |status| UndoEntry { change: change.clone(), status };
        let (now, at) = match self.current_node(change)? {
            Some(found) => found,
            None => return Ok(looked(UndoStatus::Changed { now: None, at: None })),
        };
        let here = now.as_ref();
        let is_ready = is_left(change, here)
            || self.is_retry && is_half_applied(change, here)
            || self.is_same(change, change.before.as_ref());
        if is_before(change, here) || !is_ready && self.is_same(change, change.after.as_ref()) {
            return Ok(looked(UndoStatus::AlreadyRestored));
        }
        if !is_ready || here.is_none() && !self.has_parent(change) {
            return Ok(looked(UndoStatus::Changed { now, at }));
        }
        let is_folder = matches!(now, Some(FileState::Directory { .. }));
        let comes = matches!(change.after, Some(FileState::Directory { .. }));
        // What is in a folder that was half made comes with it; in one that goes, all goes before it.
        let known =
            |path: &str| if comes { self.change_at(path).is_some() } else { going.contains(path) };
        if is_folder && replaces_other_kind(change) && !self.applier.holds_only(change, &known)? {
            return Ok(match change.after {
                None => looked(UndoStatus::DirectoryInUse),
                Some(_) => looked(UndoStatus::Changed { now, at }),
            });
        }
        let status = match self.check_backup(change, here) {
            Ok(lines) => UndoStatus::Ready { lines, backed_up: true },
            Err(MissingBackup::Removed) => UndoStatus::BackupGone,
            Err(MissingBackup::Damaged) => UndoStatus::BackupDamaged,
        };
        Ok(UndoEntry { change: Change { before: now, ..change.clone() }, status })
    }

    /// Whether what stands there is an index with the entries of another: whoever looks at a repository may
    /// write it anew.
    fn is_same(&self, change: &Change, other: Option<&FileState>) -> bool {
        let Some(FileState::File { sha256, .. }) = other.filter(|_| is_index(&change.path)) else {
            return false;
        };
        let here = || self.applier.open_current(change).ok().as_ref().and_then(read_index);
        let kept = self.backups.open(&self.run, *sha256).ok().as_ref().and_then(read_index);
        kept.zip(here()).is_some_and(|(kept, here)| is_same_index(&kept, &here))
    }

    /// What comes of a path, if something does.
    fn change_at(&self, path: &str) -> Option<&Change> {
        let at = self.changes.binary_search_by(|change| change.path.as_str().cmp(path)).ok()?;
        self.changes.get(at)
    }

    /// Whether there is a folder for what comes back, or one comes back, too.
    fn has_parent(&self, change: &Change) -> bool {
        let (folder, _) = split_parent(&change.path);
        let comes = self.change_at(folder).and_then(|change| change.after.as_ref());
        matches!(comes, Some(FileState::Directory { .. }))
            || self.applier.open_directory(folder).is_ok()
    }

    /// What stands there now, and when it last changed; none where another folder is on the way. A file of
    /// another size that is larger than any that is kept is not read to be known for another.
    fn current_node(&self, change: &Change) -> Result<Option<CurrentNode>, CodedError> {
        let Ok(there) = self.applier.find_change_path(change) else { return Ok(None) };
        let Some(place) = there else { return Ok(Some((None, None))) };
        let failed = |errno| system_problem(change, errno);
        let Some(stat) = place.stat().map_err(failed)? else { return Ok(Some((None, None))) };
        let at = Some(stat.st_ctime);
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let known = [&change.before, &change.after].into_iter().flatten();
        let mut sizes = known.filter_map(|node| match node {
            FileState::File { bytes, .. } => Some(*bytes),
            _ => None,
        });
        let is_other = size > limits::UNDO_BYTES && !sizes.any(|number| number == size);
        if file_type(&stat) == FileType::RegularFile && is_other {
            return Ok(Some((Some(FileState::Special), at)));
        }
        Ok(Some((place.node().map_err(failed)?, at)))
    }

    /// Whether what comes back is there; with the lines that come and go.
    fn check_backup(
        &self,
        change: &Change,
        now: Option<&FileState>,
    ) -> Result<Option<(u64, u64)>, MissingBackup> {
        let kept = match &change.after {
            Some(FileState::File { sha256, .. }) => Some(self.backups.open(&self.run, *sha256)?),
            _ => None,
        };
        let old = || match now {
            Some(FileState::File { .. }) => countable_text(self.applier.open_current(change).ok()?),
            Some(_) => None,
            None => Some(Vec::new()),
        };
        let new = || match (kept, &change.after) {
            (Some(file), _) => countable_text(file),
            (None, None) => Some(Vec::new()),
            (None, Some(_)) => None,
        };
        Ok(old().zip(new()).map(|(old, new)| changed_line_counts(&old, &new)))
    }
}

impl ChangeSource for UndoPlan {
    fn open(&self, change: &Change) -> Result<(File, Option<Timestamps>), CodedError> {
        let Some(FileState::File { sha256, .. }) = &change.after else {
            return Err(differs_problem(change));
        };
        let lost = |status| UndoEntry { change: change.clone(), status }.problem();
        match self.backups.open(&self.run, *sha256) {
            Ok(file) => Ok((file, None)),
            Err(MissingBackup::Removed) => {
                Err(lost(UndoStatus::BackupGone).unwrap_or_else(|| differs_problem(change)))
            }
            Err(MissingBackup::Damaged) => Err(self.mismatch_problem(change)),
        }
    }

    fn mismatch_problem(&self, change: &Change) -> CodedError {
        let looked = UndoEntry { change: change.clone(), status: UndoStatus::BackupDamaged };
        looked.problem().unwrap_or_else(|| differs_problem(change))
    }
}

/// An undo that is about to be made.
pub struct Restoration {
    plan: UndoPlan,
    backups: Rc<BackupStore>,
    cancel: Cancel,
    /// What knows by which other names the host comes to what is changed, and those as they are now:
    /// the workspace may have changed since the run.
    aliases: (Rc<RefCell<HiddenPaths>>, Rc<PathAliases>),
    /// What comes of it, of what is not there already.
    remaining: Vec<Change>,
    entries: Vec<UndoEntry>,
    /// The paths of it whose bytes are more than is kept.
    not_backed_up: BTreeSet<String>,
    /// Nobody else undoes or applies something in the same workspace meanwhile.
    _lock: OwnedFd,
}

impl Restoration {
    /// # Errors
    /// [`Code::UndoConflict`] while somebody else undoes or applies something here, and
    /// [`Code::PathOrders`] where it cannot be told what the host takes orders from.
    pub fn new(
        mut undo: UndoPlan,
        backups: Rc<BackupStore>,
        (cancel, hidden_paths): (Cancel, &Rc<RefCell<HiddenPaths>>),
    ) -> Result<Self, CodedError> {
        let aliases = hidden_paths.borrow().path_aliases_now(&undo.applier.workspace)?;
        let names = (Rc::clone(hidden_paths), aliases);
        undo.applier.temporary_name = undo_name(&backups.run());
        let lock = undo.applier.lock_workspace().ok_or_else(busy)?;
        let (ready, looked, unkept) = (Vec::new(), Vec::new(), BTreeSet::new());
        Ok(Self {
            plan: undo,
            backups,
            cancel,
            aliases: names,
            remaining: ready,
            entries: looked,
            not_backed_up: unkept,
            _lock: lock,
        })
    }

    /// Compares everything, and keeps what goes away; nothing where nothing does.
    ///
    /// # Errors
    /// [`Code::UndoConflict`], [`Code::UndoGone`], [`Code::UndoDamaged`]; or it cannot be kept.
    pub fn back_up(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        let looked = self.plan.compare()?;
        if let Some(problem) = looked.iter().find_map(UndoEntry::problem) {
            return Err(problem);
        }
        let of = |wanted: fn(&UndoStatus) -> bool| {
            looked.iter().filter(move |entry| wanted(&entry.status)).map(|entry| &entry.change)
        };
        self.remaining = of(|status| matches!(status, UndoStatus::Ready { .. })).cloned().collect();
        let unkept = of(|status| matches!(status, UndoStatus::Ready { backed_up: false, .. }));
        self.not_backed_up = unkept.map(|change| change.path.clone()).collect();
        self.entries = looked;
        if self.remaining.is_empty() {
            return Ok(None);
        }
        if let Some(problem) = self.remaining.iter().find_map(|change| self.alias_problem(change)) {
            return Err(problem);
        }
        let is_kept = |item: &&Change| !self.not_backed_up.contains(&item.path);
        let mut backup =
            self.backups.begin(self.remaining.iter().filter(is_kept).filter_map(replaced_size));
        for change in &self.remaining {
            if let (Some(FileState::File { mode, .. }), true) = (&change.before, is_kept(&change)) {
                let (kept, _) = backup.add_file(&self.plan.applier.open_current(change)?, *mode)?;
                if change.before.as_ref() != Some(&kept) {
                    return Err(differs_problem(change));
                }
            }
            backup.add(change.clone());
        }
        backup.finish().map(Some)
    }

    /// Why a path may not be changed for the sake of other names that lead to it.
    fn alias_problem(&self, change: &Change) -> Option<CodedError> {
        let (hidden_paths, aliases) = &self.aliases;
        let why = hidden_paths.borrow().workspace_alias_refusal(
            &self.plan.applier.workspace,
            aliases,
            change,
        )?;
        let message = format!("`{}`: {why}; nothing was undone", change.path);
        let hint = "bring that file back yourself, or undo single calls: `capsule undo RUN:CALL`";
        Some(CodedError::new(Code::ChangeRefused, message).with_suggestion(hint))
    }

    /// Brings it back.
    ///
    /// # Errors
    /// Nothing was undone; where something was and could not be taken back, the error says so.
    pub fn restore(&self, deadline: Instant) -> Result<Output, CodedError> {
        let applier = &self.plan.applier;
        applier.clear_leftovers(&self.plan.changes)?;
        let mut waiting = Vec::new();
        for change in &self.remaining {
            let here = applier.current_node(change)?;
            if here != change.before {
                return Err(differs_problem(change));
            }
            waiting.push((change, here));
        }
        // What cannot be taken back comes once everything else is done, and nobody stops it then.
        let (last, first): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(change, _)| self.is_applied_last(&change.path));
        let made = applier
            .apply_all(&first, &self.plan, &|| self.check_continue(deadline))
            .and_then(|()| self.check_continue(deadline))
            .and_then(|()| applier.apply_all(&last, &self.plan, &|| Ok(())))
            .and_then(|()| applier.close_directories(&self.remaining));
        made.map_err(|problem| self.roll_back(problem))?;
        let count = |is: fn(&UndoStatus) -> bool| {
            let found = self.entries.iter().filter(|entry| is(&entry.status)).count();
            u64::try_from(found).unwrap_or(u64::MAX)
        };
        Ok(Output::default()
            .with("run", self.plan.run.clone())
            .with("undone", count(|status| matches!(status, UndoStatus::Ready { .. })))
            .with("as_before", count(|status| matches!(status, UndoStatus::AlreadyRestored)))
            .with("left", count(|status| matches!(status, UndoStatus::DirectoryInUse)))
            .with(
                "unkept",
                count(|status| matches!(status, UndoStatus::Ready { backed_up: false, .. })),
            ))
    }

    /// Whether a path is one whose bytes are not kept, or above or beneath one.
    fn is_applied_last(&self, path: &str) -> bool {
        let beneath = format!("{path}/");
        let mut inner = self
            .not_backed_up
            .range::<str, _>((Bound::Included(beneath.as_str()), Bound::Unbounded));
        let above = |path| Some(split_parent(path).0).filter(|folder: &&str| !folder.is_empty());
        std::iter::successors(Some(path), |path| above(path))
            .any(|successor| self.not_backed_up.contains(successor))
            || inner.next().is_some_and(|inner| inner.starts_with(&beneath))
    }

    fn check_continue(&self, deadline: Instant) -> Result<(), CodedError> {
        if self.cancel.is_set() {
            return Err(CodedError::new(Code::ExecCancelled, "the undo was cancelled"));
        }
        if Instant::now() <= deadline {
            return Ok(());
        }
        Err(CodedError::new(Code::FileSystem, "it could not be undone in time"))
    }

    /// Puts back what was made before something failed, out of what was kept of it.
    fn roll_back(&self, mut problem: CodedError) -> CodedError {
        let applier = &self.plan.applier;
        let mut made = Vec::new();
        for change in &self.remaining {
            let now = applier.current_node(change).unwrap_or_default();
            let is_ours = now == change.after || is_half_applied(change, now.as_ref());
            if now != change.before && is_ours {
                let after = change.before.clone();
                made.push(Change { before: now, after, ..change.clone() });
            }
        }
        let back = UndoPlan {
            applier: ChangeApplier {
                workspace: Rc::clone(&applier.workspace),
                temporary_name: applier.temporary_name.clone(),
                leftover_names: Vec::new(),
                link_paths: applier.link_paths.clone(),
                conflict_problem: differs_problem,
            },
            backups: self.plan.backups.clone(),
            run: self.backups.run(),
            changes: Vec::new(),
            is_retry: true,
            made_by_run: false,
        };
        let waiting: Vec<_> = made.iter().map(|change| (change, change.before.clone())).collect();
        let put = applier
            .apply_all(&waiting, &back, &|| Ok(()))
            .and_then(|()| applier.close_directories(&made));
        problem.message = match put {
            Ok(()) => format!("{}; nothing was undone", problem.message),
            Err(why) => {
                format!("{}; not all of it could be taken back ({})", problem.message, why.message)
            }
        };
        problem
    }
}

/// What a file holds, if it is small enough for its lines to be counted.
fn countable_text(mut file: File) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(MAX_COUNTED_BYTES + 1).read_to_end(&mut text).ok()?;
    (u64::try_from(text.len()).ok()? <= MAX_COUNTED_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::Duration;

    use capsule_base::digest::Digest;

    use super::*;
    use crate::backup::bed::keeper;

    /// What calls left: `d` was a folder and is a file, `e` the other way round.
    fn put(root: &Path) {
        fs::write(root.join("a"), "new a").unwrap();
        fs::write(root.join("d"), "a file").unwrap();
        fs::create_dir_all(root.join("e/in")).unwrap();
        symlink("../a", root.join("e/in/link")).unwrap();
        fs::write(root.join("new"), "n").unwrap();
        fs::write(root.join("z"), "new z").unwrap();
    }

    fn node(text: &str) -> Option<FileState> {
        let bytes = u64::try_from(text.len()).unwrap();
        Some(FileState::File { sha256: Digest::of(text.as_bytes()), bytes, mode: 0o644 })
    }

    fn changes() -> Vec<Change> {
        let folder = || Some(FileState::Directory { mode: 0o755 });
        let link = || Some(FileState::Link { target: "../a".into() });
        let item = [
            ("a", node("new a"), node("old a")),
            ("d", node("a file"), folder()),
            ("d/in", None, folder()),
            ("d/in/x", None, node("x")),
            ("e", folder(), node("e")),
            ("e/in", folder(), None),
            ("e/in/link", link(), None),
            ("new", node("n"), None),
            ("z", node("new z"), node("old z")),
        ];
        let change = |(path, before, after): (&str, _, _)| Change {
            path: path.into(),
            before,
            after,
            ..Change::default()
        };
        item.map(change).to_vec()
    }

    fn tree(folder: &Path, above: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = format!("{above}{}", entry.file_name().to_string_lossy());
            if entry.path().is_symlink() {
                found.push(format!("{path} -> {}", fs::read_link(entry.path()).unwrap().display()));
            } else if entry.path().is_dir() {
                found.push(format!("{path}/"));
                tree(&entry.path(), &format!("{path}/"), found);
            } else {
                found.push(format!("{path} {}", fs::read_to_string(entry.path()).unwrap()));
            }
        }
        found.sort();
    }

    /// What was kept of something, as an earlier run did.
    fn keep(place: &Path, text: &str) {
        let run = place.join("r-0000000000000001");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join(Digest::of(text.as_bytes()).to_string()), text).unwrap();
    }

    /// Nobody cancels it, and nothing is protected.
    fn with() -> (Cancel, &'static Rc<RefCell<HiddenPaths>>) {
        let hidden_paths = Rc::new(RefCell::new(HiddenPaths::new(Box::new(|_, _| false))));
        (Cancel::default(), Box::leak(Box::new(hidden_paths)))
    }

    type Meanwhile = fn(&Path, &Path);

    /// Whatever happens between the comparison and the end: all of it comes back, or everything is as it
    /// was.
    #[test]
    fn an_undo_is_whole_or_not_at_all() {
        let rows: &[(Option<Code>, Meanwhile)] = &[
            (None, |_, _| {}),
            (Some(Code::UndoGone), |_, place| {
                let name = Digest::of(b"old z").to_string();
                fs::remove_file(place.join("r-0000000000000001").join(name)).unwrap();
            }),
            (Some(Code::UndoDamaged), |_, place| {
                let name = Digest::of(b"old z").to_string();
                fs::write(place.join("r-0000000000000001").join(name), "other").unwrap();
            }),
            (Some(Code::UndoConflict), |root, _| fs::write(root.join("z"), "mine").unwrap()),
            (Some(Code::UndoConflict), |root, _| fs::write(root.join("e/mine"), "mine").unwrap()),
        ];
        for (row, (code, meanwhile)) in rows.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            put(root);
            let (beside, backups) = keeper();
            let place = beside.path().join("store.db.undo");
            for text in ["old a", "x", "e", "old z"] {
                keep(&place, text);
            }
            let workspace = Rc::new(Workspace::open(root).unwrap());
            let what = ("r-0000000000000001".to_owned(), changes());
            let undo =
                UndoPlan::new(&workspace, BackupReader::new(place.clone()), what, (&[], false));
            let mut restoring = Restoration::new(undo, backups, with()).unwrap();
            let record = restoring.back_up().unwrap().unwrap();
            assert_eq!(record.coverage.unwrap().paths, 9);
            meanwhile(root, &place);
            let mut before = Vec::new();
            tree(root, "", &mut before);
            let done = restoring.restore(Instant::now() + Duration::from_secs(9));
            let mut after = Vec::new();
            tree(root, "", &mut after);
            match code {
                None => {
                    assert!(done.is_ok(), "{:?}", done.map(drop));
                    let wanted = ["a old a", "d/", "d/in/", "d/in/x x", "e e", "z old z"];
                    assert_eq!(after, wanted);
                }
                Some(code) => {
                    let problem = done.map(drop).unwrap_err();
                    assert_eq!(problem.code, *code, "row {row}: {problem:?}");
                    assert_eq!(after, before, "row {row}: {problem:?}");
                }
            }
        }
    }

    /// CAP-12: an undo has an end in time, and nothing is undone when it meets it.
    #[test]
    fn a_late_undo_leaves_everything() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path());
        let (beside, backups) = keeper();
        let place = beside.path().join("store.db.undo");
        for text in ["old a", "x", "e", "old z"] {
            keep(&place, text);
        }
        let workspace = Rc::new(Workspace::open(folder.path()).unwrap());
        let undo = UndoPlan::new(
            &workspace,
            BackupReader::new(place),
            (String::new(), changes()),
            (&[], false),
        );
        let mut restoring = Restoration::new(undo, Rc::clone(&backups), with()).unwrap();
        let _ = restoring.back_up().unwrap();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        tree(folder.path(), "", &mut before);
        let late = restoring.restore(Instant::now()).map(drop).unwrap_err();
        assert!(late.message.ends_with("; nothing was undone"), "{late:?}");
        tree(folder.path(), "", &mut after);
        assert_eq!(after, before);
        // While one is at work, no other begins.
        let undo = UndoPlan::new(
            &workspace,
            BackupReader::new(beside.path().into()),
            Default::default(),
            (&[], false),
        );
        let other = Restoration::new(undo, backups, with()).map(drop);
        assert_eq!(other.unwrap_err().code, Code::UndoConflict);
    }
}
