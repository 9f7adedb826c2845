//! What a call changed is collected when it ends, judged within the bounds of its permit, and handed
//! over with its outcome.

mod mount;
mod removal;

use std::cell::RefCell;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_core::change::{Change, FileState};
use capsule_core::confinement::ResourceLimit;
use capsule_core::lifecycle::{Operation, Permit, Preview, SavedUndo};
use capsule_core::outcome::{CodedError, Ending, Outcome};
use capsule_core::policy::{PathScope, Restrictions};
use capsule_redact::{Redactor, excerpt};
use capsule_workspace::{HiddenPaths, LinkedTrees, Reviewed, Staging, Workspace, has_apply_name};
use serde_json::json;

use crate::command::background::BackgroundJobs;

pub use mount::{CopyMount, SandboxMount};
pub use removal::remove_staging;

/// An operation whose effects are collected, judged and recorded.
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
    /// The parts of a list that run in the background.
    pub jobs: BackgroundJobs,
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
        let writes = write_scope(permit.restrictions());
        if writes.is_none() && !self.jobs.left_changes() {
            return self.operation.run(permit);
        }
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
        let scope = match writes {
            Some(WriteScope::Command(scope)) => Some(scope.clone()),
            _ => None,
        };
        let place = match writes {
            Some(WriteScope::File) => self.place.clone(),
            Some(WriteScope::Deletion(path)) => Some(path.clone()),
            _ => None,
        };
        let kind = match writes {
            Some(WriteScope::Deletion(path)) => CallScope::Deletion(path.clone()),
            Some(WriteScope::File) => CallScope::File,
            _ => CallScope::Command,
        };
        self.staging.begin_command();
        let outcome = self.operation.run(permit);
        let commands = self.jobs.writes_until_now(scope);
        let writes = match (&kind, &commands) {
            (CallScope::File, _) => WriteScope::File,
            (CallScope::Deletion(path), _) => WriteScope::Deletion(path),
            (CallScope::Command, Some(scope)) => WriteScope::Command(scope),
            // Files still change: the call that ends what runs in the background tells of them.
            (CallScope::Command, None) => return outcome,
        };
        let collected = match &place {
            Some(path) => self.staging.collect_at(path, (&hidden_paths.borrow(), workspace)),
            None => self.staging.collect((&hidden_paths.borrow(), workspace)),
        };
        let outcome = match collected {
            Ok(changes) => judge_collected(
                &self.staging,
                (outcome, changes),
                writes,
                (&hidden_paths.borrow(), &aliases),
                &self.redactor,
            ),
            Err(problem) => unreadable_outcome(outcome, problem),
        };
        self.staging.record(outcome.changes.clone());
        match largest {
            Some(largest) => with_file_size_note(outcome, largest),
            None => outcome,
        }
    }
}

/// What a call may change without the parts beside it, kept beyond its permit.
enum CallScope {
    Command,
    File,
    Deletion(WorkspacePath),
}

/// An operation that would change something where nothing can be staged: it fails.
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
    /// The working trees that changes link or unlink.
    linked: &'r LinkedTrees,
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

/// Judges the changes of a call by its rule, by the other names of what is protected, and by what git
/// would make of them.
fn judge_collected(
    staging: &Staging,
    (outcome, mut changes): (Outcome, Vec<Change>),
    writes: WriteScope<'_>,
    (hidden_paths, aliases): (&HiddenPaths, &PathAliases),
    redactor: &Redactor,
) -> Outcome {
    let by_name =
        |change: &Change, aliases: &PathAliases| hidden_paths.alias_refusal(aliases, change);
    let protects = hidden_paths.protecting(aliases);
    let linked = staging.linked_trees(&changes, (aliases, &protects));
    linked.mark(&mut changes);
    let reviewed = staging.review(&changes, (aliases, &protects), &linked);
    let scope = match writes {
        WriteScope::Command(scope) => Some(scope),
        WriteScope::File | WriteScope::Deletion(_) => None,
    };
    let question = |change: &Change| {
        let is_new = |path: &WorkspacePath| staging.is_new(path);
        hidden_paths.question(aliases, change, scope, &is_new)
    };
    let reasons = Reasons {
        orders: aliases,
        by_name: &by_name,
        reviewed: &reviewed,
        linked: &linked,
        question: &question,
    };
    judge_changes(staging, outcome, changes, (writes, redactor), &reasons)
}

fn judge_changes(
    staging: &Staging,
    outcome: Outcome,
    mut changes: Vec<Change>,
    (writes, redactor): (WriteScope<'_>, &Redactor),
    reasons: &Reasons<'_>,
) -> Outcome {
    let Reasons { orders: aliases, by_name, reviewed, linked, question } = reasons;
    let item = match writes {
        WriteScope::Command(_) | WriteScope::Deletion(_) => None,
        WriteScope::File => changes
            .iter()
            .find(|change| matches!(change.after, Some(FileState::File { .. })))
            .cloned(),
    };
    for change in changes.iter_mut().filter(|change| change.refused.is_none()) {
        if staging.is_reverted(change) {
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
        let refused = refused
            .or_else(|| staging.repository_refusal(change, linked))
            .or_else(|| staging.twin(change));
        let refused = refused.or_else(|| reviewed.get(&change.path).cloned());
        change.refused =
            refused.or_else(|| by_name(change, &staging.enclosing_repositories(change)));
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
        Some(problem) if outcome.ending != Ending::Cancelled => replace_problem(outcome, problem),
        _ => outcome,
    }
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
    has_apply_name(&change.path).then(|| "it has a name that applying uses itself".into())
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
        after: Some(FileState::Special),
        refused: Some(problem.message.clone()),
        ..Change::default()
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
