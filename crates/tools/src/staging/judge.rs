//! What a call changed is collected when it ends, judged within the bounds of its permit, and handed
//! over with its outcome.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use capsule_core::change::{Change, ChangeSet, FileState};
use capsule_core::code::Code;
use capsule_core::confinement::ResourceLimit;
use capsule_core::lifecycle::{Operation, Permit, Preview, SavedUndo};
use capsule_core::limits;
use capsule_core::outcome::{CodedError, Ending, Outcome};
use capsule_core::path::WorkspacePath;
use capsule_core::path_aliases::PathAliases;
use capsule_core::policy::{PathScope, Restrictions};
use capsule_redact::{Redactor, excerpt};
use rustix::fs::{FileType, Mode, OFlags, openat};
use serde_json::json;

use super::scan::entries;
use super::{Staging, split};
use crate::node;
use crate::orders::{GIT, PARTS, around, is_whole};
use crate::repository::{Protects, Reviewed, RunChanges, review};
use crate::veil::Veil;
use crate::workspace::own::{is_store, stores_of};
use crate::workspace::pointer::SHARED;
use crate::workspace::{NotFound, Workspace, kind, listed};

/// How the names begin that applying gives its unfinished files.
pub(super) const OURS: &str = ".capsule-apply-";

/// Operation whose effects are collected, judged and recorded.
pub(crate) struct Staged {
    /// What acts.
    pub hands: Box<dyn Operation>,
    /// The one place that a tool changes which changes no more than that.
    pub place: Option<WorkspacePath>,
    /// Where it is collected.
    pub staging: Rc<Staging>,
    /// What is seen of the workspace, and what knows its folders.
    pub seen: (Rc<RefCell<Veil>>, Rc<Workspace>),
    /// What masks.
    pub redactor: Redactor,
}

impl Operation for Staged {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.hands.save_undo()
    }

    fn prepare(&mut self, bounds: &Restrictions) {
        self.hands.prepare(bounds);
    }

    fn start(&mut self, permit: &Permit<'_>) {
        // What changes something has to wait for what is looked at before.
        if writes(permit.restrictions()).is_none() {
            self.hands.start(permit);
        }
    }

    fn preview(&mut self) -> Preview {
        self.hands.preview()
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Some(writes) = writes(permit.restrictions()) else { return self.hands.run(permit) };
        let (veil, workspace) = &self.seen;
        // What may not be changed has to be known before anything is.
        let orders = match veil.borrow().orders(workspace) {
            Ok(orders) => orders,
            Err(problem) => return Outcome::failed(problem),
        };
        let largest = match permit.restrictions() {
            Restrictions::Run { confinement, .. } => Some(confinement.limits.file_bytes),
            _ => None,
        };
        self.staging.begin();
        let outcome = self.hands.run(permit);
        let place = match writes {
            Writes::Command(_) => None,
            Writes::File => self.place.as_ref(),
            Writes::Gone(path) => Some(path),
        };
        let collected = match place {
            Some(path) => self.staging.collect_at(path, (&veil.borrow(), workspace)),
            None => self.staging.collect((&veil.borrow(), workspace)),
        };
        let outcome = match collected {
            Ok(changes) => {
                let by_name =
                    |change: &Change, orders: &PathAliases| veil.borrow().refuses(orders, change);
                let reviewed = {
                    let veil = veil.borrow();
                    let known = self.staging.known.borrow();
                    let all = RunChanges::new(&known.0, &changes);
                    self.staging
                        .reviewed((all, changes.iter()), (&orders, &veil.protecting(&orders)))
                };
                let scope = match writes {
                    Writes::Command(scope) => Some(scope),
                    Writes::File | Writes::Gone(_) => None,
                };
                let question = |change: &Change| {
                    let is_new = |path: &WorkspacePath| self.staging.is_new(path);
                    veil.borrow().question(&orders, change, scope, &is_new)
                };
                let reasons = Reasons {
                    orders: &orders,
                    by_name: &by_name,
                    reviewed: &reviewed,
                    question: &question,
                };
                self.staging.judged(outcome, changes, (writes, &self.redactor), &reasons)
            }
            Err(problem) => unread(outcome, problem),
        };
        self.staging.recorded.borrow_mut().add(outcome.changes.clone());
        match largest {
            Some(largest) => with_full_file(outcome, largest),
            None => outcome,
        }
    }
}

/// Operation that would change something where nothing can be staged: they do not.
pub(crate) struct Unstaged {
    /// What would act.
    pub hands: Box<dyn Operation>,
    /// Why nothing can be staged.
    pub problem: CodedError,
}

impl Operation for Unstaged {
    fn prepare(&mut self, bounds: &Restrictions) {
        if writes(bounds).is_none() {
            self.hands.prepare(bounds);
        }
    }

    fn start(&mut self, permit: &Permit<'_>) {
        if writes(permit.restrictions()).is_none() {
            self.hands.start(permit);
        }
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        match writes(permit.restrictions()) {
            Some(_) => Outcome::failed(self.problem),
            None => self.hands.run(permit),
        }
    }
}

/// Why a change may not be made for the sake of other names than its own.
type ByName<'b> = dyn Fn(&Change, &PathAliases) -> Option<String> + 'b;

/// What a person is asked before a change is applied.
type Question<'b> = dyn Fn(&Change) -> Option<String> + 'b;

/// What speaks against a change, or for a question, besides the rule of the call.
struct Reasons<'r> {
    /// The other names of what is protected.
    orders: &'r PathAliases,
    /// Why a change may not be made for their sake.
    by_name: &'r ByName<'r>,
    /// Why changes may not be made for the sake of what git would make of them.
    reviewed: &'r Reviewed,
    /// What a person is asked before a change is applied.
    question: &'r Question<'r>,
}

/// What a call may change.
#[derive(Clone, Copy)]
enum Writes<'w> {
    /// A command: what its rule names.
    Command(&'w PathScope),
    /// A tool: the one file that it was judged for.
    File,
    /// A tool: it takes this away, and what is beneath it.
    Gone(&'w WorkspacePath),
}

/// What a call may change, if it may change something.
fn writes(bounds: &Restrictions) -> Option<Writes<'_>> {
    match bounds {
        Restrictions::Run { writes: Some(writes), .. } => Some(Writes::Command(writes)),
        Restrictions::Write { .. } | Restrictions::Edit { .. } => Some(Writes::File),
        Restrictions::Delete { path, .. } => Some(Writes::Gone(path)),
        _ => None,
    }
}

impl Staging {
    fn judged(
        &self,
        outcome: Outcome,
        mut changes: Vec<Change>,
        (writes, redactor): (Writes<'_>, &Redactor),
        reasons: &Reasons<'_>,
    ) -> Outcome {
        let Reasons { orders, by_name, reviewed, question } = reasons;
        let recorded = self.recorded.borrow();
        let own = match writes {
            Writes::Command(_) | Writes::Gone(_) => None,
            Writes::File => changes
                .iter()
                .find(|own| matches!(own.after, Some(FileState::File { .. })))
                .cloned(),
        };
        for change in changes.iter_mut().filter(|own| own.refused.is_none()) {
            if is_undone(change, &recorded) {
                continue;
            }
            let by_rule = || match writes {
                Writes::Command(scope) => scope.judge_change(change).err(),
                // It was judged before it was written.
                Writes::File if is_part_of(change, own.as_ref()) => None,
                Writes::Gone(path) if is_gone_with(change, path) => None,
                _ => Some("it was changed by something else than this call".into()),
            };
            let refused = by_rule().or_else(|| by_name(change, orders));
            let refused = refused.or_else(|| refusal(change, redactor));
            let refused = refused.or_else(|| self.odd(change)).or_else(|| self.twin(change));
            let refused = refused.or_else(|| reviewed.get(&change.path).cloned());
            change.refused = refused.or_else(|| by_name(change, &self.around(change)));
            change.asked = if change.refused.is_none() { question(change) } else { None };
        }
        let refused = refused(&changes);
        let outcome = match writes {
            Writes::Command(_) => shown(outcome, &changes),
            _ => outcome,
        };
        let outcome = Outcome { changes, ..outcome };
        match refused {
            // Whoever cancelled it knows that it did not end well.
            Some(problem) if outcome.ending != Ending::Cancelled => instead(outcome, problem),
            _ => outcome,
        }
    }
}

/// What sends git elsewhere for its orders, whatever else is in the folder.
const POINTERS: [&str; 3] = [SHARED, "config.worktree", "gitdir"];

impl Staging {
    /// Why some changes may not be made for the sake of what git would make of them, among all that the run
    /// made.
    pub(super) fn reviewed<'c>(
        &'c self,
        (all, some): (RunChanges<'c>, impl Iterator<Item = &'c Change>),
        (orders, protects): (&'c PathAliases, &'c dyn Protects),
    ) -> Reviewed {
        let seen = (self.lower.root(), self.upper.as_fd());
        review(&self.lower, seen, (all, some), (orders, protects))
    }

    /// What is odd about a change where it stands.
    pub(super) fn odd(&self, change: &Change) -> Option<String> {
        if self.is_of_a_store(change) {
            return Some("it is a store of Capsule, or lies beside one by its name".into());
        }
        let (folder, name) = split(&change.path);
        let name = self.lower.spelling().name(name);
        // One that was there takes commits; what it takes orders from, invariants keep.
        let was = || self.lower_folder(folder).is_ok_and(|own| is_whole(|part| stands(&own, part)));
        let is_one =
            |parts: &[&str]| parts.iter().any(|own| self.lower.spelling().is_same(own, &name));
        let is_part = is_one(&PARTS) && !was() || is_one(&["config", "hooks"]);
        let is_now = || is_whole(|part| self.kind_of(folder, part).is_some());
        let own = self.lower.spelling().is_same(split(folder).1, GIT);
        if change.after.is_some() && (is_one(&POINTERS) || is_part && !own && is_now()) {
            return Some(
                "git would take orders from its folder, which looks like a repository".into(),
            );
        }
        let target = change.link_target()?;
        let mut way = target.parent();
        while let Some(above) = way.filter(|above| !above.is_root()) {
            let (folder, name) = split(above.as_str());
            if self.kind_of(folder, name) == Some(FileType::Symlink) {
                return Some("it is a link that leads through another link".into());
            }
            way = above.parent();
        }
        None
    }

    /// What else stands beside a change that is the same name to the file system of the workspace.
    fn twin(&self, change: &Change) -> Option<String> {
        let spelling = self.lower.spelling();
        if spelling.is_exact() || change.after.is_none() {
            return None;
        }
        let (folder, name) = split(&change.path);
        let names = entries(&self.upper_folder(folder).ok()?).ok()?;
        let mut names = names.iter().filter_map(|own| own.to_str());
        let twin = names.find(|own| *own != name && spelling.is_same(own, name))?;
        Some(format!("`{twin}` is the same name to the file system of the workspace"))
    }

    /// The repositories that a change is made in, whatever they are called.
    pub(super) fn around(&self, change: &Change) -> PathAliases {
        let path = WorkspacePath::from_fs_name(&change.path).unwrap_or_default();
        around(&path, |folder, part| self.kind_of(folder.as_str(), part).is_some())
    }

    /// Whether a change is of a store, or of what would be read with one because of its name.
    fn is_of_a_store(&self, change: &Change) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let holds = |folder: Result<OwnedFd, NotFound>, name: &str| {
            let file = folder.ok().map(|folder| openat(folder, name, flags, Mode::empty()));
            file.is_some_and(|file| file.is_ok_and(|file| is_store(file.as_fd())))
        };
        let (folder, name) = split(&change.path);
        if matches!(change.before, Some(FileState::File { .. }))
            && holds(self.lower_folder(folder), name)
        {
            return true;
        }
        let Ok(path) = WorkspacePath::parse(&format!("./{}", change.path)) else { return false };
        let spelled = self.lower.spelling().path(&path);
        let stores: Vec<_> = [Some(path), spelled].iter().flatten().flat_map(stores_of).collect();
        stores.iter().map(|store| split(store.as_str())).any(|(folder, name)| {
            holds(self.upper_folder(folder), name) || holds(self.lower_folder(folder), name)
        })
    }

    /// Whether nothing stood at a path before the run.
    fn is_new(&self, path: &WorkspacePath) -> bool {
        let (folder, name) = split(path.as_str());
        !self.lower_folder(folder).is_ok_and(|own| stands(&own, name))
    }

    /// What stands at a name, among the changes or else beneath them.
    fn kind_of(&self, folder: &str, name: &str) -> Option<FileType> {
        let look = |folder: Result<OwnedFd, NotFound>| {
            let folder = folder.ok()?;
            let own = match self.lower.spelling().is_exact() {
                true => name.to_owned(),
                false => listed(folder.as_fd(), OsStr::new(name))?.into_string().ok()?,
            };
            node::stat_at(folder.as_fd(), &own).ok()?.map(|stat| kind(&stat))
        };
        look(self.upper_folder(folder)).or_else(|| look(self.lower_folder(folder)))
    }
}

/// Whether something stands at a name in a folder.
fn stands(folder: &OwnedFd, name: &str) -> bool {
    node::stat_at(folder.as_fd(), name).is_ok_and(|stat| stat.is_some())
}

/// Whether a path is again what it was before the run.
fn is_undone(change: &Change, recorded: &ChangeSet) -> bool {
    recorded.0.get(&change.path).is_some_and(|own| own.before == change.after)
}

/// Whether a change belongs to a call that writes one file: that file, or a new folder above it.
fn is_part_of(change: &Change, file: Option<&Change>) -> bool {
    let is_way = |file: &Change| {
        matches!((&change.before, &change.after), (None, Some(FileState::Directory { .. })))
            && file.path.strip_prefix(&change.path).is_some_and(|rest| rest.starts_with('/'))
    };
    file.is_some_and(|file| file.path == change.path || is_way(file))
}

/// Whether a change belongs to a call that takes something away.
fn is_gone_with(change: &Change, path: &WorkspacePath) -> bool {
    let beneath = change.path.strip_prefix(path.as_str());
    change.after.is_none() && beneath.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a change can never be applied, whatever stands around it.
fn refusal(change: &Change, redactor: &Redactor) -> Option<String> {
    let masked = |text: &str| {
        let mut masked = 0;
        let _ = redactor.text(text, &mut masked);
        masked > 0
    };
    let target = match &change.after {
        Some(FileState::Link { target }) => target.as_str(),
        _ => "",
    };
    if masked(&change.path) || masked(target) {
        return Some("its name looks like a secret, which no record holds".into());
    }
    if let Some(FileState::File { bytes, .. }) = &change.before
        && *bytes > limits::UNDO_BYTES
    {
        let most = capsule_core::units::show_size(limits::UNDO_BYTES);
        return Some(format!(
            "what it replaces is larger than the {most} that are kept for an undo"
        ));
    }
    split(&change.path)
        .1
        .starts_with(OURS)
        .then(|| "it has a name that applying uses itself".into())
}

fn refused(changes: &[Change]) -> Option<CodedError> {
    let refused = changes.iter().filter(|own| own.refused.is_some()).count();
    let (path, why) = changes.iter().find_map(|own| Some((&own.path, own.refused.as_ref()?)))?;
    let path = excerpt(path, limits::QUOTED_CHARS);
    let message =
        format!("{refused} of {} changes cannot be applied; `{path}`: {why}", changes.len());
    Some(CodedError::new(Code::ChangeRefused, message))
}

/// The result with what was changed.
fn shown(outcome: Outcome, changes: &[Change]) -> Outcome {
    let shown: Vec<_> = changes
        .iter()
        .take(limits::STAGED_SHOWN)
        .map(|own| json!({ "path": own.path, "change": own.kind().name() }))
        .collect();
    let total = u64::try_from(changes.len()).unwrap_or(u64::MAX);
    let output = outcome.output.with("changes", shown).with("changes_total", total);
    Outcome { output, ..outcome }
}

/// The same, where a file that it left is as large as one may be, and says so. A program that ignores the
/// kernel's signal is not ended by it, and the kernel counts nowhere that it sent one.
fn with_full_file(outcome: Outcome, largest: u64) -> Outcome {
    let is_full =
        |own: &Change| matches!(own.after, Some(FileState::File { bytes, .. }) if bytes == largest);
    if !outcome.changes.iter().any(is_full) {
        return outcome;
    }
    let output = outcome.output.push_unique("limits_reached", json!(ResourceLimit::FileSize));
    Outcome { output, ..outcome }
}

/// A call of which nobody can say what it changed: nothing of its run can be applied.
fn unread(outcome: Outcome, problem: CodedError) -> Outcome {
    let spoiled = Change {
        path: ".".into(),
        before: None,
        after: Some(FileState::Special),
        refused: Some(problem.message.clone()),
        asked: None,
    };
    Outcome { changes: vec![spoiled], ..instead(outcome, problem) }
}

/// The same end for another reason; what went wrong before is told with it.
fn instead(outcome: Outcome, mut problem: CodedError) -> Outcome {
    // What a running command is ended for is found once more when it has ended.
    if let Some(first) = outcome.problem.as_ref().filter(|own| own.message != problem.message) {
        problem.message = format!("{}; {}", problem.message, first.message);
    }
    outcome.with_end(problem)
}
