//! What a run did, in numbers.

use crate::approval::ApprovalView;
use crate::call_view::CallView;
use capsule_base::exit::Exit;
use capsule_base::path::WorkspacePath;
use capsule_command::specs::{CommandLine, PathAccess, base_name};
use capsule_core::action::{Action, Facts, FileKind, ParsedUrl, PathFact, PathTarget, sub_actions};
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::{Ending, Status};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a run did, in numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Steps (or calls) that went as asked.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were denied.
    #[serde(rename = "denied_unexpectedly")]
    pub stopped: u64,
    /// Those that needed an approval that nobody was there to give.
    #[serde(rename = "approval_needed")]
    pub unanswered: u64,
    /// Those that wait for an answer, with the run suspended.
    pub waiting: u64,
    /// Those that a person ended.
    pub cancelled: u64,
    /// Those that were denied as the plan expects.
    pub expected_denials: u64,
    /// Those that were skipped.
    pub skipped: u64,
    /// Those that the run ended before.
    pub not_reached: u64,
    /// All calls.
    pub calls: u64,
    /// All calls that were denied, whether expected or not.
    pub denied: u64,
    /// All calls that needed an approval that nobody was there to give.
    pub asked: u64,
    /// Calls that were started and have no end.
    pub unknown: u64,
    /// Calls whose changes of the workspace can be undone.
    pub undoable: u64,
    /// Times that a person was asked.
    pub prompts: u64,
    /// How long the run took, in microseconds.
    pub micros: u64,
    /// The files that were read.
    pub files_read: Vec<String>,
    /// The files that were written.
    pub files_written: Vec<String>,
    /// The files that were deleted.
    pub files_deleted: Vec<String>,
    /// The hosts that were contacted.
    pub hosts: Vec<String>,
    /// The programs that ran.
    pub programs: Vec<String>,
}

impl Summary {
    /// The exit as a word for people.
    #[must_use]
    pub const fn exit_text(exit: Exit) -> &'static str {
        match exit {
            Exit::Ok => "ok",
            Exit::ToolFailed => "a tool failed",
            Exit::BadUsage => "bad usage",
            Exit::Denied => "denied",
            Exit::ApprovalNeeded => "approval needed",
            Exit::ReplayDiverged => "replay diverged",
            Exit::IntegrityFailed => "integrity failed",
            Exit::BudgetUsedUp => "budget used up",
            Exit::SandboxBelowFloor => "sandbox below floor",
            Exit::RuntimeError => "runtime error",
            Exit::Interrupted => "interrupted",
        }
    }
}

/// What calls come to, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    summary: Summary,
    touched: Touched,
    /// Whether the last of them waits for an answer.
    last_waits: bool,
}

impl Tally {
    /// Adds a call; those of a plan count by their steps.
    pub(crate) fn add(&mut self, call: &CallView, has_steps: bool) {
        let summary = &mut self.summary;
        summary.calls += 1;
        summary.denied += u64::from(call.was_denied());
        summary.asked += u64::from(call.lacked_approval());
        summary.unknown += u64::from(call.is_unknown());
        summary.undoable += u64::from(call.can_be_undone());
        summary.prompts += u64::from(call.approval.as_ref().is_some_and(ApprovalView::was_shown));
        summary.prompts += call.host_questions;
        self.last_waits = call.is_waiting();
        // A command list is counted by its parts, which are calls of their own.
        if call.is_list() {
            return;
        }
        if !has_steps {
            match call.status() {
                _ if call.is_waiting() => summary.waiting += 1,
                _ if call.lacked_approval() => summary.unanswered += 1,
                _ if call.was_cancelled() => summary.cancelled += 1,
                Some(Status::Ok) => summary.ok += 1,
                Some(Status::Denied) => summary.stopped += 1,
                _ => summary.failed += 1,
            }
        }
        if call.started.is_some() {
            self.touched.add(call);
        }
    }

    /// The summary of the calls, and whether the last of them waits for an answer.
    pub(crate) fn finish(self) -> (Summary, bool) {
        let Self { mut summary, touched, last_waits } = self;
        let sorted = |set: BTreeSet<String>| set.into_iter().collect();
        summary.files_read = sorted(touched.read);
        summary.files_written = sorted(touched.written);
        summary.files_deleted = sorted(touched.deleted);
        summary.hosts = sorted(touched.hosts);
        summary.programs = sorted(touched.programs);
        (summary, last_waits)
    }
}

/// What calls read, changed, contacted and ran.
#[derive(Clone, Debug, Default)]
struct Touched {
    read: BTreeSet<String>,
    written: BTreeSet<String>,
    deleted: BTreeSet<String>,
    hosts: BTreeSet<String>,
    programs: BTreeSet<String>,
}

impl Touched {
    /// Adds a call that was started.
    fn add(&mut self, call: &CallView) {
        self.change(&call.changes);
        let reached = call.connections.iter().filter(|each| each.requested.refused.is_none());
        self.hosts.extend(reached.map(|connection| connection.host().to_owned()));
        let Some(action) = &call.action else { return };
        let done = call.finished.as_ref().is_some_and(|(_, end)| end.ending == Ending::Done);
        match action {
            // What was tried and did not happen is shown with its call, and counts for nothing.
            Action::Read { .. }
            | Action::Write { .. }
            | Action::Edit { .. }
            | Action::Delete { .. }
            | Action::Attach { .. }
                if !done => {}
            Action::Attach { file } => drop(self.read.insert(file.clone())),
            Action::Read { path, .. } => drop(self.read.insert(path.asked.clone())),
            // Of the files that were searched, those count whose lines were shown.
            Action::Search { .. } => {
                let matches = call.output.as_ref().and_then(|output| output.get("matches"));
                let matches = matches.and_then(serde_json::Value::as_array).into_iter().flatten();
                let paths = matches.filter_map(|found| found.get("path")?.as_str());
                self.read.extend(paths.map(str::to_owned));
            }
            Action::Write { path, .. } | Action::Edit { path, .. } => {
                self.written.insert(path.asked.clone());
            }
            Action::Delete { path, .. } => self.deleted.extend(deleted_here(call, path)),
            Action::Fetch { url, .. } => {
                if let ParsedUrl::Url(address) = &url.parsed {
                    self.hosts.insert(address.host().to_string());
                }
            }
            Action::Apply { changes, .. } | Action::Undo { changes, .. } if done => {
                self.change(changes);
            }
            Action::Run { .. } => self.command(call, action),
            Action::Agent { argv } => self.programs.extend(argv.first().cloned()),
            Action::Command { steps, timeout_ms, .. } => {
                let Some(facts) = &call.facts else { return };
                for part in steps.iter().flat_map(|step| sub_actions(step, *timeout_ms, facts)) {
                    self.command(call, &part.action);
                }
            }
            Action::Git { .. } | Action::Test { .. } => {
                let found = call.facts.as_ref().and_then(|facts| facts.program.as_ref());
                self.programs.extend(found.map(|fact| base_name(&fact.path).to_owned()));
            }
            _ => {}
        }
    }

    fn change(&mut self, changes: &[Change]) {
        self.written.extend(changes.iter().filter_map(written_file));
        self.deleted.extend(changes.iter().filter_map(deleted_file));
    }

    /// Adds a part of a command: a program with the files that its words name to be read, where there were
    /// some, or a file of a redirection.
    fn command(&mut self, call: &CallView, action: &Action) {
        // Something may have kept the programs from being started.
        let has_run = call.output.as_ref().is_some_and(|output| output.get("exit_code").is_some());
        match action {
            Action::Write { path, .. } if has_run => self.written.extend(file_of_workspace(path)),
            Action::Read { path, .. } if has_run => self.read.extend(file_of_workspace(path)),
            Action::Run { argv, .. } => {
                self.programs.extend(argv.first().cloned());
                let facts = call.facts.as_ref().filter(|_| has_run);
                self.read.extend(facts.into_iter().flat_map(|facts| operands(action, argv, facts)));
            }
            _ => {}
        }
    }
}

/// The file that a stream leads to, unless it lies in the `/tmp` that commands share.
fn file_of_workspace(path: &PathTarget) -> Option<String> {
    path.inside().filter(|path| path.as_temporary().is_none()).map(ToString::to_string)
}

/// The files that a command line names to be read.
fn operands(action: &Action, argv: &[String], facts: &Facts) -> Vec<String> {
    let program =
        argv.first().and_then(|name| facts.program_named(name)).or(facts.program.as_ref());
    let line = CommandLine::parse(argv, program, false);
    let lines = line.with_nested();
    let named = lines.iter().flat_map(|line| line.parsed_argvs()).flat_map(|argv| &argv.paths);
    let named = named.filter(|used| used.access == PathAccess::Read && !used.guessed);
    let places =
        named.flat_map(|used| action.resolve_path_argument(used, facts).unwrap_or_default());
    let is_file = |path: &WorkspacePath| {
        facts.path_fact(path).is_some_and(|fact| fact.kind == FileKind::File)
    };
    places.filter(is_file).map(|path| path.to_string()).collect()
}

/// The path of a change, if a file was written there.
fn written_file(change: &Change) -> Option<String> {
    matches!(change.after, Some(FileState::File { .. })).then(|| change.path.clone())
}

/// The path of a change, if a file or a link was there and is gone.
fn deleted_file(change: &Change) -> Option<String> {
    let was_file = matches!(change.before, Some(FileState::File { .. } | FileState::Link { .. }));
    (was_file && change.after.is_none()).then(|| change.path.clone())
}

/// The files and links that a call deleted, as they were found.
fn deleted_here(call: &CallView, path: &PathTarget) -> Vec<String> {
    let facts = call.facts.iter().flat_map(|facts| &facts.paths);
    let files = facts.filter(|fact| fact.kind != FileKind::Directory);
    let here = |fact: &PathFact| match path.inside() {
        Some(inside) if *inside == fact.path => path.asked.clone(),
        _ => fact.path.to_string(),
    };
    files.map(here).collect()
}
