//! What a call changed is collected when it ends, judged within the bounds of its permit, and handed
//! over with its outcome.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::change::{Change, ChangeSet, FileState};
use capsule_core::confinement::ResourceLimit;
use capsule_core::lifecycle::{Operation, Permit, Preview, SavedUndo};
use capsule_core::outcome::{CodedError, Ending, Outcome};
use capsule_core::path_aliases::PathAliases;
use capsule_core::policy::{PathScope, Restrictions};
use capsule_redact::{Redactor, excerpt};
use rustix::fs::{FileType, Mode, OFlags, openat};
use serde_json::json;

use super::scan::entry_names;
use super::{Staging, split_parent};
use crate::control_files::{
    GIT_NAME, REPOSITORY_PARTS, enclosing_repositories, has_repository_parts,
};
use crate::hidden_paths::HiddenPaths;
use crate::node;
use crate::repository::{Protects, Reviewed, RunChanges, review};
use crate::temporary_names;
use crate::workspace::git_pointer::COMMONDIR;
use crate::workspace::store_files::{is_store, stores_of};
use crate::workspace::{LookupError, Workspace, file_type, listed};

/// Operation whose effects are collected, judged and recorded.
pub(crate) struct StagedOperation {
    /// What acts.
    pub operation: Box<dyn Operation>,
    /// The one place that a tool changes which changes no more than that.
    pub place: Option<WorkspacePath>,
    /// Where it is collected.
    pub staging: Rc<Staging>,
    /// What is seen of the workspace, and what knows its folders.
    pub view: (Rc<RefCell<HiddenPaths>>, Rc<Workspace>),
    /// What masks.
    pub redactor: Redactor,
}

impl Operation for StagedOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.operation.save_undo()
    }

    fn prepare(&mut self, bounds: &Restrictions) {
        self.operation.prepare(bounds);
    }

    fn start(&mut self, permit: &Permit<'_>) {
        // What changes something has to wait for what is looked at before.
        if write_scope(permit.restrictions()).is_none() {
            self.operation.start(permit);
        }
    }

    fn preview(&mut self) -> Preview {
        self.operation.preview()
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Some(writes) = write_scope(permit.restrictions()) else {
            return self.operation.run(permit);
        };
        let (hidden_paths, workspace) = &self.view;
        // What may not be changed has to be known before anything is.
        let aliases = match hidden_paths.borrow().path_aliases(workspace) {
            Ok(aliases) => aliases,
            Err(problem) => return Outcome::failed(problem),
        };
        let largest = match permit.restrictions() {
            Restrictions::Run { confinement, .. } => Some(confinement.limits.file_bytes),
            _ => None,
        };
        self.staging.begin_command();
        let outcome = self.operation.run(permit);
        let place = match writes {
            WriteScope::Command(_) => None,
            WriteScope::File => self.place.as_ref(),
            WriteScope::Deletion(path) => Some(path),
        };
        let collected = match place {
            Some(path) => self.staging.collect_at(path, (&hidden_paths.borrow(), workspace)),
            None => self.staging.collect((&hidden_paths.borrow(), workspace)),
        };
        let outcome = match collected {
            Ok(changes) => self.staging.judge_collected(
                (outcome, changes),
                writes,
                (&hidden_paths.borrow(), &aliases),
                &self.redactor,
            ),
            Err(problem) => unreadable_outcome(outcome, problem),
        };
        self.staging.recorded.borrow_mut().add(outcome.changes.clone());
        match largest {
            Some(largest) => with_file_size_note(outcome, largest),
            None => outcome,
        }
    }
}

/// Operation that would change something where nothing can be staged: they do not.
pub(crate) struct UnstageableOperation {
    /// What would act.
    pub operation: Box<dyn Operation>,
    /// Why nothing can be staged.
    pub problem: CodedError,
}

impl Operation for UnstageableOperation {
    fn prepare(&mut self, bounds: &Restrictions) {
        if write_scope(bounds).is_none() {
            self.operation.prepare(bounds);
        }
    }

    fn start(&mut self, permit: &Permit<'_>) {
        if write_scope(permit.restrictions()).is_none() {
            self.operation.start(permit);
        }
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        match write_scope(permit.restrictions()) {
            Some(_) => Outcome::failed(self.problem),
            None => self.operation.run(permit),
        }
    }
}

/// Why a change may not be made for the sake of other names than its own.
type AliasCheck<'b> = dyn Fn(&Change, &PathAliases) -> Option<String> + 'b;

/// What a person is asked before a change is applied.
type Question<'b> = dyn Fn(&Change) -> Option<String> + 'b;

/// What speaks against a change, or for a question, besides the rule of the call.
struct Reasons<'r> {
    /// The other names of what is protected.
    orders: &'r PathAliases,
    /// Why a change may not be made for their sake.
    by_name: &'r AliasCheck<'r>,
    /// Why changes may not be made for the sake of what git would make of them.
    reviewed: &'r Reviewed,
    /// What a person is asked before a change is applied.
    question: &'r Question<'r>,
}

/// What a call may change.
#[derive(Clone, Copy)]
enum WriteScope<'w> {
    /// A command: what its rule names.
    Command(&'w PathScope),
    /// A tool: the one file that it was judged for.
    File,
    /// A tool: it takes this away, and what is beneath it.
    Deletion(&'w WorkspacePath),
}

/// What a call may change, if it may change something.
fn write_scope(bounds: &Restrictions) -> Option<WriteScope<'_>> {
    match bounds {
        Restrictions::Run { writes: Some(writes), .. } => Some(WriteScope::Command(writes)),
        Restrictions::Write { .. } | Restrictions::Edit { .. } => Some(WriteScope::File),
        Restrictions::Delete { path, .. } => Some(WriteScope::Deletion(path)),
        _ => None,
    }
}

impl Staging {
    /// Judges the changes of a call by its rule, by the other names of what is protected, and by what git
    /// would make of them.
    fn judge_collected(
        &self,
        (outcome, changes): (Outcome, Vec<Change>),
        writes: WriteScope<'_>,
        (hidden_paths, aliases): (&HiddenPaths, &PathAliases),
        redactor: &Redactor,
    ) -> Outcome {
        let by_name =
            |change: &Change, aliases: &PathAliases| hidden_paths.alias_refusal(aliases, change);
        let reviewed = {
            let known = self.last_scan.borrow();
            let all = RunChanges::new(&known.0, &changes);
            self.reviewed((all, changes.iter()), (aliases, &hidden_paths.protecting(aliases)))
        };
        let scope = match writes {
            WriteScope::Command(scope) => Some(scope),
            WriteScope::File | WriteScope::Deletion(_) => None,
        };
        let question = |change: &Change| {
            let is_new = |path: &WorkspacePath| self.is_new(path);
            hidden_paths.question(aliases, change, scope, &is_new)
        };
        let reasons = Reasons {
            orders: aliases,
            by_name: &by_name,
            reviewed: &reviewed,
            question: &question,
        };
        self.judge_changes(outcome, changes, (writes, redactor), &reasons)
    }

    fn judge_changes(
        &self,
        outcome: Outcome,
        mut changes: Vec<Change>,
        (writes, redactor): (WriteScope<'_>, &Redactor),
        reasons: &Reasons<'_>,
    ) -> Outcome {
        let Reasons { orders: aliases, by_name, reviewed, question } = reasons;
        let recorded = self.recorded.borrow();
        let item = match writes {
            WriteScope::Command(_) | WriteScope::Deletion(_) => None,
            WriteScope::File => changes
                .iter()
                .find(|change| matches!(change.after, Some(FileState::File { .. })))
                .cloned(),
        };
        for change in changes.iter_mut().filter(|change| change.refused.is_none()) {
            if is_reverted(change, &recorded) {
                continue;
            }
            let by_rule = || match writes {
                WriteScope::Command(scope) => scope.judge_change(change).err(),
                // It was judged before it was written.
                WriteScope::File if belongs_to_write(change, item.as_ref()) => None,
                WriteScope::Deletion(path) if belongs_to_deletion(change, path) => None,
                _ => Some("it was changed by something else than this call".into()),
            };
            let refused = by_rule().or_else(|| by_name(change, aliases));
            let refused = refused.or_else(|| change_refusal(change, redactor));
            let refused =
                refused.or_else(|| self.repository_refusal(change)).or_else(|| self.twin(change));
            let refused = refused.or_else(|| reviewed.get(&change.path).cloned());
            change.refused =
                refused.or_else(|| by_name(change, &self.enclosing_repositories(change)));
            change.asked = if change.refused.is_none() { question(change) } else { None };
        }
        let refused = refused_problem(&changes);
        let outcome = match writes {
            WriteScope::Command(_) => with_changes(outcome, &changes),
            _ => outcome,
        };
        let outcome = Outcome { changes, ..outcome };
        match refused {
            // Whoever cancelled it knows that it did not end well.
            Some(problem) if outcome.ending != Ending::Cancelled => {
                replace_problem(outcome, problem)
            }
            _ => outcome,
        }
    }
}

/// What sends git elsewhere for its orders, whatever else is in the folder.
const GIT_POINTERS: [&str; 3] = [COMMONDIR, "config.worktree", "gitdir"];

impl Staging {
    /// Why some changes may not be made for the sake of what git would make of them, among all that the run
    /// made.
    pub(super) fn reviewed<'c>(
        &'c self,
        (all, some): (RunChanges<'c>, impl Iterator<Item = &'c Change>),
        (aliases, protects): (&'c PathAliases, &'c dyn Protects),
    ) -> Reviewed {
        let seen = (self.lower.root(), self.upper.as_fd());
        review(&self.lower, seen, (all, some), (aliases, protects))
    }

    /// What is odd about a change where it stands.
    pub(super) fn repository_refusal(&self, change: &Change) -> Option<String> {
        if self.touches_store(change) {
            return Some("it is a store of Capsule, or lies beside one by its name".into());
        }
        let (folder, name) = split_parent(&change.path);
        let name = self.lower.spelling().name(name);
        // One that was there takes commits; what it takes orders from, invariants keep.
        let was = || {
            self.open_lower(folder).is_ok_and(|fd| has_repository_parts(|part| exists(&fd, part)))
        };
        let is_one =
            |parts: &[&str]| parts.iter().any(|part| self.lower.spelling().is_same(part, &name));
        let is_part = is_one(&REPOSITORY_PARTS) && !was() || is_one(&["config", "hooks"]);
        let is_now = || has_repository_parts(|part| self.staged_kind(folder, part).is_some());
        let item = self.lower.spelling().is_same(split_parent(folder).1, GIT_NAME);
        if change.after.is_some() && (is_one(&GIT_POINTERS) || is_part && !item && is_now()) {
            return Some(
                "git would take orders from its folder, which looks like a repository".into(),
            );
        }
        let target = change.link_target()?;
        let mut way = target.parent();
        while let Some(above) = way.filter(|above| !above.is_root()) {
            let (folder, name) = split_parent(above.as_str());
            if self.staged_kind(folder, name) == Some(FileType::Symlink) {
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
        let (folder, name) = split_parent(&change.path);
        let names = entry_names(&self.open_upper(folder).ok()?).ok()?;
        let mut names = names.iter().filter_map(|name| name.to_str());
        let twin = names.find(|text| *text != name && spelling.is_same(text, name))?;
        Some(format!("`{twin}` is the same name to the file system of the workspace"))
    }

    /// The repositories that a change is made in, whatever they are called.
    pub(super) fn enclosing_repositories(&self, change: &Change) -> PathAliases {
        let path = WorkspacePath::from_fs_name(&change.path).unwrap_or_default();
        enclosing_repositories(&path, |folder, part| {
            self.staged_kind(folder.as_str(), part).is_some()
        })
    }

    /// Whether a change is of a store, or of what would be read with one because of its name.
    fn touches_store(&self, change: &Change) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let holds = |folder: Result<OwnedFd, LookupError>, name: &str| {
            let file = folder.ok().map(|folder| openat(folder, name, flags, Mode::empty()));
            file.is_some_and(|file| file.is_ok_and(|file| is_store(file.as_fd())))
        };
        let (folder, name) = split_parent(&change.path);
        if matches!(change.before, Some(FileState::File { .. }))
            && holds(self.open_lower(folder), name)
        {
            return true;
        }
        let Ok(path) = WorkspacePath::parse(&format!("./{}", change.path)) else { return false };
        let spelled = self.lower.spelling().path(&path);
        let stores: Vec<_> = [Some(path), spelled].iter().flatten().flat_map(stores_of).collect();
        stores.iter().map(|store| split_parent(store.as_str())).any(|(folder, name)| {
            holds(self.open_upper(folder), name) || holds(self.open_lower(folder), name)
        })
    }

    /// Whether nothing stood at a path before the run.
    fn is_new(&self, path: &WorkspacePath) -> bool {
        let (folder, name) = split_parent(path.as_str());
        !self.open_lower(folder).is_ok_and(|fd| exists(&fd, name))
    }

    /// What stands at a name, among the changes or else beneath them.
    fn staged_kind(&self, folder: &str, name: &str) -> Option<FileType> {
        let look = |folder: Result<OwnedFd, LookupError>| {
            let folder = folder.ok()?;
            let text = match self.lower.spelling().is_exact() {
                true => name.to_owned(),
                false => listed(folder.as_fd(), OsStr::new(name))?.into_string().ok()?,
            };
            node::stat_optional(folder.as_fd(), &text).ok()?.map(|stat| file_type(&stat))
        };
        look(self.open_upper(folder)).or_else(|| look(self.open_lower(folder)))
    }
}

/// Whether something stands at a name in a folder.
fn exists(folder: &OwnedFd, name: &str) -> bool {
    node::stat_optional(folder.as_fd(), name).is_ok_and(|stat| stat.is_some())
}

/// Whether a path is again what it was before the run.
fn is_reverted(change: &Change, recorded: &ChangeSet) -> bool {
    recorded.0.get(&change.path).is_some_and(|item| item.before == change.after)
}

/// Whether a change belongs to a call that writes one file: that file, or a new folder above it.
fn belongs_to_write(change: &Change, file: Option<&Change>) -> bool {
    let is_way = |file: &Change| {
        matches!((&change.before, &change.after), (None, Some(FileState::Directory { .. })))
            && file.path.strip_prefix(&change.path).is_some_and(|rest| rest.starts_with('/'))
    };
    file.is_some_and(|file| file.path == change.path || is_way(file))
}

/// Whether a change belongs to a call that takes something away.
fn belongs_to_deletion(change: &Change, path: &WorkspacePath) -> bool {
    let beneath = change.path.strip_prefix(path.as_str());
    change.after.is_none() && beneath.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a change can never be applied, whatever stands around it.
fn change_refusal(change: &Change, redactor: &Redactor) -> Option<String> {
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
        let most = capsule_base::units::show_size(limits::UNDO_BYTES);
        return Some(format!(
            "what it replaces is larger than the {most} that are kept for an undo"
        ));
    }
    split_parent(&change.path)
        .1
        .starts_with(temporary_names::APPLY_PREFIX)
        .then(|| "it has a name that applying uses itself".into())
}

fn refused_problem(changes: &[Change]) -> Option<CodedError> {
    let refused = changes.iter().filter(|change| change.refused.is_some()).count();
    let (path, why) =
        changes.iter().find_map(|change| Some((&change.path, change.refused.as_ref()?)))?;
    let path = excerpt(path, limits::QUOTED_CHARS);
    let message =
        format!("{refused} of {} changes cannot be applied; `{path}`: {why}", changes.len());
    Some(CodedError::new(Code::ChangeRefused, message))
}

/// The result with what was changed.
fn with_changes(outcome: Outcome, changes: &[Change]) -> Outcome {
    let shown: Vec<_> = changes
        .iter()
        .take(limits::STAGED_SHOWN)
        .map(|change| json!({ "path": change.path, "change": change.kind().name() }))
        .collect();
    let total = u64::try_from(changes.len()).unwrap_or(u64::MAX);
    let output = outcome.output.with("changes", shown).with("changes_total", total);
    Outcome { output, ..outcome }
}

/// The same, where a file that it left is as large as one may be, and says so. A program that ignores the
/// kernel's signal is not ended by it, and the kernel counts nowhere that it sent one.
fn with_file_size_note(outcome: Outcome, largest: u64) -> Outcome {
    let is_full = |change: &Change| matches!(change.after, Some(FileState::File { bytes, .. }) if bytes == largest);
    if !outcome.changes.iter().any(is_full) {
        return outcome;
    }
    let output = outcome.output.push_unique("limits_reached", json!(ResourceLimit::FileSize));
    Outcome { output, ..outcome }
}

/// A call of which nobody can say what it changed: nothing of its run can be applied.
fn unreadable_outcome(outcome: Outcome, problem: CodedError) -> Outcome {
    let spoiled = Change {
        path: ".".into(),
        before: None,
        after: Some(FileState::Special),
        refused: Some(problem.message.clone()),
        asked: None,
    };
    Outcome { changes: vec![spoiled], ..replace_problem(outcome, problem) }
}

/// The same end for another reason; what went wrong before is told with it.
fn replace_problem(outcome: Outcome, mut problem: CodedError) -> Outcome {
    // What a running command is ended for is found once more when it has ended.
    if let Some(first) = outcome.problem.as_ref().filter(|error| error.message != problem.message) {
        problem.message = format!("{}; {}", problem.message, first.message);
    }
    outcome.with_end(problem)
}
