//! What a command may change in the workspace itself: the places that its rule names, without what
//! an invariant protects in them.
//!
//! Mounts bound it while it runs, and mounts know only what is there. So the workspace is walked
//! before, for what has to be held, and looked at again afterwards, for what was made meanwhile. A
//! mount is lost where somebody else replaces what it lies on, so that is looked at as well.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capsule_core::code::Code;
use capsule_core::limits;
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::path::WorkspacePath;
use capsule_core::path_aliases::PathAliases;
use capsule_core::policy::PathScope;
use capsule_redact::excerpt;
use capsule_sandbox::{Direct, Mask};
use rustix::fs::{FileType, OFlags, fstat};

use crate::repository::{Protects, RepositorySnapshot};
use crate::still::{Stays, Still, is_beside};
use crate::veil::{Stand, Veil, VeilError, names};
use crate::walk::{Entry, Next, Visitor, walk};
use crate::workspace::{Way, Workspace, told};

/// The workspace as one command may change it.
pub(crate) struct Ground<'w> {
    workspace: &'w Workspace,
    /// The places that its rule names.
    open: Vec<OsString>,
    /// What is held.
    places: Arc<Places>,
    /// Finds it.
    veil: Veil,
    /// What else the veil finds.
    noted: Arc<Noted>,
    /// What was held or had to stay when the command began.
    before: Kept,
    /// What stood there then.
    still: Still<'w>,
    /// The repositories that it can change, as they were then.
    repositories: RepositorySnapshot,
}

/// Paths, as a walk finds them.
#[derive(Default)]
struct Noted {
    /// The folders that can be written to and have to stay.
    pinned: Mutex<BTreeSet<OsString>>,
    /// What a person would be asked about if it was new.
    asked: Mutex<BTreeSet<OsString>>,
}

fn locked(paths: &Mutex<BTreeSet<OsString>>) -> MutexGuard<'_, BTreeSet<OsString>> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What invariants hold, by every name that it goes by.
struct Places {
    scope: PathScope,
    orders: PathAliases,
}

impl Places {
    /// Whether what stands at a path must stay there: it is protected, or orders are found through it.
    fn has_to_stay(&self, path: &WorkspacePath, stand: Stand) -> bool {
        self.is_protected(path, stand) || self.is_on_a_way(path)
    }

    /// Whether no command may change what stands at a path, or not before a person was asked, which nobody can
    /// be while a command runs.
    fn is_protected(&self, path: &WorkspacePath, stand: Stand) -> bool {
        self.is_forbidden(path) || self.scope.asks(path, &names(&self.orders, path, stand), false)
    }

    fn is_forbidden(&self, path: &WorkspacePath) -> bool {
        let names = self.orders.aliases_of(path);
        self.scope.is_protected(path) || names.iter().any(|name| self.scope.is_protected(name))
    }

    /// Whether a person would have been asked before a path was made.
    fn is_asked(&self, path: &WorkspacePath) -> bool {
        self.scope.asks(path, &[], true)
    }

    /// Whether that, or what a person would have been asked before it was changed, is all that holds a path.
    fn is_only_asked(&self, path: &OsStr) -> bool {
        let asks = |path: &WorkspacePath| {
            self.is_asked(path) || self.is_protected(path, Stand::File) && !self.is_on_a_way(path)
        };
        told(path).is_ok_and(|path| !self.is_forbidden(&path) && asks(&path))
    }

    fn is_on_a_way(&self, path: &WorkspacePath) -> bool {
        self.orders.names_through(path).next().is_some()
    }

    /// Whether a folder may come where there was none: names led there already.
    fn may_come(&self, folder: &OsStr) -> bool {
        told(folder)
            .is_ok_and(|path| self.is_on_a_way(&path) && !self.is_protected(&path, Stand::Folder))
    }

    /// Whether whatever is made in a folder is protected.
    fn are_held_beneath(&self, folder: &WorkspacePath) -> bool {
        let names = names(&self.orders, folder, Stand::Folder);
        [folder].into_iter().chain(&names).any(|name| self.scope.protects_children(name))
            || self.scope.asks_beneath(folder, &names)
    }
}

/// What has to be as it is.
#[derive(Default)]
struct Kept {
    /// What nobody may change, and what nobody can look into.
    held: BTreeSet<OsString>,
    /// The folders that can be written to and have to stay. None of them is held: a folder that is
    /// held by now is not the one that only had to stay.
    pinned: BTreeSet<OsString>,
    /// What a person would be asked about if it was new.
    asked: BTreeSet<OsString>,
}

impl<'w> Ground<'w> {
    /// Finds out what is open and what is held.
    ///
    /// # Errors
    /// When a place that the rule names is not there, what must be held cannot be known, or names
    /// can be made beside the store of this run.
    pub(crate) fn survey(
        workspace: &'w Workspace,
        writes: &PathScope,
        (veil, orders): (&Veil, PathAliases),
        store: &Path,
    ) -> Result<Self, CodedError> {
        let open = open(workspace, writes)?;
        let places = Arc::new(Places { scope: writes.clone(), orders });
        let repositories = veil.repositories(workspace);
        let (veil, noted) = finding(&places);
        let (before, still) = (Kept::default(), Still::new(workspace));
        let none = RepositorySnapshot::default();
        let mut ground =
            Self { workspace, open, places, veil, noted, before, still, repositories: none };
        let touched = repositories.into_iter().filter(|own| ground.touches(OsStr::new(own)));
        ground.repositories = RepositorySnapshot::new(workspace, touched.collect());
        ground.before = ground.kept().map_err(VeilError::problem)?;
        match folders_of(workspace, store).into_iter().find(|folder| ground.lets_make(folder)) {
            Some(folder) => Err(beside_store(&folder)),
            None => Ok(ground),
        }
    }

    /// Whether the command can make names in a folder.
    fn lets_make(&self, folder: &Path) -> bool {
        let is_held = |above: &Path| self.before.held.contains(above.as_os_str());
        self.open.iter().any(|open| folder.starts_with(open)) && !folder.ancestors().any(is_held)
    }

    /// What the sandbox is told. Pipes and sockets that stand in an open place lead to processes of
    /// the host: they are hidden. No mask hides a link: those among them, and what they lead through,
    /// are held, or they would lead elsewhere by the next call, and what they lead to now be seen.
    ///
    /// # Errors
    /// When it is more than can be held or hidden.
    pub(crate) fn bounds(&mut self, masks: &mut Vec<Mask>, way: Way) -> Result<Direct, CodedError> {
        let too_many = || VeilError::TooMany.problem();
        let special = Special::default();
        let from = self.open.iter().map(|path| (path.clone(), false)).collect();
        walk(self.workspace, from, &special);
        for path in special.found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let mask = Mask { path };
            if !masks.contains(&mask) {
                masks.push(mask);
            }
        }
        let held = self.before.held.iter().chain(&way.links).filter(|own| self.touches(own));
        let held: BTreeSet<OsString> = held.cloned().collect();
        let stays = |own: &&OsString| self.touches(own) && !held.contains(*own);
        let pinned = self.before.pinned.iter().chain(&way.left).filter(stays);
        let pinned: BTreeSet<OsString> = pinned.cloned().collect();
        if masks.len() > limits::HIDDEN_PATHS
            || held.len() + pinned.len() + self.open.len() > limits::HIDDEN_PATHS
        {
            return Err(too_many());
        }
        self.note(&held, &pinned, masks);
        let (held, pinned) = (held.into_iter().collect(), pinned.into_iter().collect());
        Ok(Direct { open: self.open.clone(), held, pinned })
    }

    /// Notes what stands where a mount is going to lie.
    fn note(&mut self, held: &BTreeSet<OsString>, pinned: &BTreeSet<OsString>, masks: &[Mask]) {
        held.iter().for_each(|path| self.still.note(path, Stays::Unwritten));
        pinned.iter().for_each(|path| self.still.note(path, Stays::Itself));
        let hidden: BTreeSet<&OsStr> = masks.iter().map(|own| own.path.as_os_str()).collect();
        for path in hidden.iter().filter(|path| !is_beside(path, |own| hidden.contains(own))) {
            self.still.note(path, Stays::Itself);
        }
    }

    /// Whether the command must not go on: a mount that held or hid something is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.still.is_replaced()
    }

    /// The end of the command, with what it made although an invariant protects it: no mount keeps a
    /// name from being made. What names lead to by now counts as well.
    pub(crate) fn judged(
        mut self,
        outcome: Outcome,
        (veil, orders): (&Veil, Result<Rc<PathAliases>, CodedError>),
    ) -> Outcome {
        let changed = named(&self.still.changed()).map(|changed| {
            format!(
                "{changed} was changed while the command ran, by it or by somebody else: it has to \
                 stay what it is, and nothing may have held or hidden what stood there since"
            )
        });
        let reviewed = orders.as_ref().map(|orders| {
            let by = (orders.as_ref(), &veil.protecting(orders) as &dyn Protects);
            self.repositories.review(self.workspace, by)
        });
        let reviewed = reviewed.ok().and_then(|own| own.into_iter().next());
        let reviewed = reviewed.map(|(path, why)| format!("`{path}` was changed: {why}"));
        let now = orders.and_then(|orders| {
            self.look_anew(&orders);
            self.kept().map_err(VeilError::problem)
        });
        let (made, asked) = match now {
            Ok(now) => (self.told_made(&now), self.told_asked(&now)),
            Err(problem) => (Some(problem.message), None),
        };
        let code = match (&changed, &made, &reviewed) {
            (None, None, None) => Code::ChangeAsked,
            _ => Code::ChangeProtected,
        };
        let told: Vec<String> =
            changed.into_iter().chain(made).chain(reviewed).chain(asked).collect();
        if told.is_empty() {
            return outcome;
        }
        let message = told.join("; ");
        let message = match &outcome.problem {
            Some(first) => format!("{message}; {}", first.message),
            None => message,
        };
        outcome.with_end(CodedError::new(code, message))
    }

    /// What was made although it is protected, in words.
    fn told_made(&self, now: &Kept) -> Option<String> {
        let made = self.made(now).into_iter().filter(|own| !self.places.is_only_asked(own));
        let made = named(&made.collect())?;
        Some(format!(
            "{made} was made or closed meanwhile: an invariant protects it, or nobody can look into it"
        ))
    }

    /// What was made that a person would have been asked about, in words.
    fn told_asked(&self, now: &Kept) -> Option<String> {
        let asked = now.asked.difference(&self.before.asked).cloned();
        let made = self.made(now).into_iter().filter(|own| self.places.is_only_asked(own));
        let made = named(&asked.chain(made).filter(|own| self.touches(own)).collect())?;
        Some(format!(
            "{made} is new: programs of this machine may take orders from it; look at what stands there"
        ))
    }

    /// What has to be as it is by now, and had not when the command began.
    fn made(&self, now: &Kept) -> BTreeSet<OsString> {
        let held = now.held.difference(&self.before.held);
        let pinned = now.pinned.difference(&self.before.pinned);
        let made = held.chain(pinned.filter(|own| !self.places.may_come(own)));
        made.filter(|own| self.touches(own)).cloned().collect()
    }

    /// Has everything looked at again, if names lead elsewhere than they did.
    fn look_anew(&mut self, orders: &PathAliases) {
        if *orders != self.places.orders {
            let scope = self.places.scope.clone();
            self.places = Arc::new(Places { scope, orders: orders.clone() });
            (self.veil, self.noted) = finding(&self.places);
        }
    }

    /// What is held now, and the folders that have to stay.
    fn kept(&self) -> Result<Kept, VeilError> {
        let hidden = self.veil.hidden(self.workspace)?;
        let Way { links, left } = self.veil.way();
        let held: BTreeSet<_> = hidden.into_iter().chain(links).collect();
        let pinned = locked(&self.noted.pinned);
        let pinned = pinned.union(&left).filter(|own| !held.contains(*own)).cloned().collect();
        Ok(Kept { held, pinned, asked: locked(&self.noted.asked).clone() })
    }

    /// Whether a path lies in an open place, or an open place in it.
    fn touches(&self, path: &OsStr) -> bool {
        let path = Path::new(path);
        self.open.iter().any(|open| path.starts_with(open) || Path::new(open).starts_with(path))
    }
}

/// Finds what is held, and what else is noted of it.
fn finding(places: &Arc<Places>) -> (Veil, Arc<Noted>) {
    let noted = Arc::new(Noted::default());
    let (places, found) = (Arc::clone(places), Arc::clone(&noted));
    let is_odd = |path: &WorkspacePath| path.as_str().contains(char::REPLACEMENT_CHARACTER);
    let veil = Veil::new(Box::new(move |path, folder| {
        if places.is_asked(path) {
            locked(&found.asked).insert(path.as_str().into());
        }
        let stand = if folder { Stand::Folder } else { Stand::File };
        match places.has_to_stay(path, stand) {
            stays if !folder => stays,
            _ if places.are_held_beneath(path) => true,
            // Its name cannot be told, so that it could not be named later: it is held whole.
            true if is_odd(path) => true,
            true => {
                locked(&found.pinned).insert(path.as_str().into());
                false
            }
            false => false,
        }
    }));
    (veil, noted)
}

/// The folders of the workspace that a store lies in: by its name, and by the name that it leads to.
fn folders_of(workspace: &Workspace, store: &Path) -> Vec<PathBuf> {
    // By its identity: it may be reached by other names than its own.
    let is_workspace = |folder: &Path| {
        let own = (workspace.device(), workspace.inode());
        folder.metadata().is_ok_and(|facts| (facts.dev(), facts.ino()) == own)
    };
    let folder = store.parent().map(|own| if own == Path::new("") { Path::new(".") } else { own });
    let real = store.canonicalize().ok();
    let folders = [folder, real.as_deref().and_then(Path::parent)].into_iter().flatten();
    let folders = folders.filter_map(|folder| folder.canonicalize().ok());
    let within = |folder: PathBuf| {
        let root = folder.ancestors().find(|above| is_workspace(above))?;
        folder.strip_prefix(root).ok().map(Path::to_owned)
    };
    folders.filter_map(within).collect()
}

fn beside_store(folder: &Path) -> CodedError {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let folder = excerpt(&folder.to_string_lossy(), limits::QUOTED_CHARS).into_owned();
    let message = format!(
        "the record of this run is kept in `{folder}`, which the rule's `writes` opens: whoever makes \
         files beside a record can forge it"
    );
    let hint = "keep the record elsewhere (`--store`), or name less under `writes`";
    CodedError::new(Code::SandboxFailed, message).with_suggestion(hint)
}

/// The first of some paths as a message names it, and how many more there are. None if there is none.
fn named(paths: &BTreeSet<OsString>) -> Option<String> {
    let shown = paths.first()?.to_string_lossy();
    let shown = excerpt(&shown, limits::QUOTED_CHARS);
    Some(match paths.len() - 1 {
        0 => format!("`{shown}`"),
        more => format!("`{shown}` (and {more} more)"),
    })
}

/// The places that the rule names, as they are there.
fn open(workspace: &Workspace, writes: &PathScope) -> Result<Vec<OsString>, CodedError> {
    let mut open = Vec::new();
    for (path, beneath) in agreed(writes.literal_paths()) {
        match (path.as_str(), beneath) {
            // The workspace's own folder, and nothing in it.
            ("", false) => {}
            ("", true) if writes.protects_children(&WorkspacePath::root()) => {
                let message = "an invariant protects whatever is made in the workspace";
                return Err(CodedError::new(Code::SandboxFailed, message));
            }
            ("", true) => open.push(OsString::new()),
            (name, _) => {
                is_there(workspace, name, beneath)?;
                open.push(path.into());
            }
        }
    }
    Ok(open)
}

/// A place that a rule names, and whether all beneath it is meant.
type Place = (String, bool);

/// The places that every reading of a command line names, none within another.
fn agreed(readings: impl Iterator<Item = Vec<Place>>) -> BTreeSet<Place> {
    let mut all = BTreeSet::from([(String::new(), true)]);
    for own in readings {
        let narrower = |one| own.iter().filter_map(move |other| narrower(one, other));
        all = all.iter().flat_map(narrower).cloned().collect();
    }
    let wider = |one: &Place| all.iter().any(|other| other != one && is_within(one, other));
    all.iter().filter(|own| !wider(own)).cloned().collect()
}

/// The one of two places that lies within the other, if one does.
fn narrower<'p>(one: &'p Place, other: &'p Place) -> Option<&'p Place> {
    [(one, other), (other, one)]
        .into_iter()
        .find(|(own, wide)| is_within(own, wide))
        .map(|own| own.0)
}

fn is_within(one: &Place, other: &Place) -> bool {
    one == other || other.1 && Path::new(&one.0).starts_with(&other.0)
}

/// A mount needs something to lie on.
fn is_there(workspace: &Workspace, path: &str, folder: bool) -> Result<(), CodedError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = workspace.open_plain(workspace.root(), OsStr::from_bytes(path.as_bytes()), flags);
    let kind = found.ok().and_then(|file| fstat(file.as_fd()).ok());
    let kind = kind.map(|facts| FileType::from_raw_mode(facts.st_mode));
    let missing = |what: &str, hint: String| {
        let message =
            format!("the rule's `writes` opens `{path}`, and there is no {what} of that name");
        Err(CodedError::new(Code::FileNotFound, message).with_suggestion(hint))
    };
    let make = "make it first: `workspace: direct` opens only what is there; `staged` opens names";
    match (kind, folder) {
        (Some(FileType::Directory), true) | (Some(FileType::RegularFile), false) => Ok(()),
        (Some(FileType::Directory), false) => {
            missing("file", format!("write `{path}/**` for what is in the folder"))
        }
        (_, true) => missing("folder", make.into()),
        (_, false) => missing("file", make.into()),
    }
}

/// Finds pipes, sockets and devices.
#[derive(Default)]
struct Special {
    found: Mutex<BTreeSet<OsString>>,
}

impl Visitor for Special {
    fn entry(&self, entry: &Entry<'_>) -> Next {
        if !matches!(entry.kind, FileType::Directory | FileType::RegularFile | FileType::Symlink) {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            // One more than can be hidden is enough to say so.
            if found.len() <= limits::HIDDEN_PATHS {
                found.insert(entry.path.to_owned());
            }
        }
        Next::Enter
    }

    fn stop(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text for each reading, places apart by spaces; `dir/` is a folder with all in it.
    fn check(readings: &[&str], expected: &[&str]) {
        let place = |text: &str| (text.trim_end_matches('/').to_owned(), text.ends_with('/'));
        let own = readings.iter().map(|own| own.split(' ').map(place).collect());
        let expected: BTreeSet<Place> = expected.iter().map(|own| place(own)).collect();
        assert_eq!(agreed(own), expected, "{readings:?}");
    }

    #[test]
    fn all_readings_agree_on_a_place() {
        check(&[], &["/"]);
        check(&["/"], &["/"]);
        check(&["out/ a"], &["out/", "a"]);
        check(&["out/ out/deep/ out/file out"], &["out/"]);
        check(&["out/ outer/"], &["out/", "outer/"]);
        check(&["/", "out/"], &["out/"]);
        check(&["out/ a", "out/deep/ a b"], &["out/deep/", "a"]);
        check(&["out/", "out"], &["out"]);
        check(&["out/", "src/"], &[]);
    }
}
