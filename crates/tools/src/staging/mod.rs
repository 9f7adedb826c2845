//! A staged workspace: what a run changes is collected in a folder of ours, and the workspace stays
//! what it is until a person takes the changes over.
//!
//! The kernel lays that folder over the workspace ([`capsule_sandbox`]); here is what becomes of it:
//! [`scan`] reads the changes out of it, [`Staged`] has those of each call judged and recorded, and
//! [`take`] takes them over.

mod clear;
mod diff;
mod node;
mod scan;
mod take;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_core::capability::Capabilities;
use capsule_core::change::{Change, Changes, Node};
use capsule_core::code::Code;
use capsule_core::evidence::{Permit, Prepared as Hands};
use capsule_core::limits;
use capsule_core::outcome::{Ending, Outcome, Problem};
use capsule_core::policy::{Bounds, Writes};
use capsule_core::redact::excerpt;
use capsule_sandbox as sandbox;
use rustix::fs::{Mode, OFlags};
use serde_json::json;

use crate::commands::Commands;
use crate::tool::Host;
use crate::workspace::Workspace;
use scan::Scan;
pub(crate) use take::Taking;

/// What commands and tools change.
const CHANGES: &str = "changes";
/// What the kernel needs for itself.
const WORK: &str = "work";
/// How often the size of the changes is looked at while a command runs.
const LOOKING: Duration = Duration::from_millis(200);

/// A staged workspace.
#[derive(Debug)]
pub struct Staging {
    /// The workspace as it is, beneath the changes.
    beneath: Rc<Workspace>,
    changes: OwnedFd,
    /// What differs, as it was when it was last looked at.
    known: RefCell<Changes>,
    /// What stood in the workspace at each path of the changes when that was first seen.
    first: RefCell<BTreeMap<String, First>>,
    /// The digests of files, by how they looked.
    digests: RefCell<BTreeMap<String, (node::Looks, Node)>>,
    looked: Cell<Option<(Instant, Duration)>>,
    /// Whether the changes could not be read once.
    unread: Cell<bool>,
    /// Whether a change was refused once.
    refused: Cell<bool>,
}

/// What stood in the workspace when a change of it was first seen.
#[derive(Clone, Debug)]
struct First {
    node: Option<Node>,
    refused: Option<String>,
}

/// A workspace with changes laid over it, and what they are collected in.
pub struct Laid {
    /// What tools and commands see.
    pub workspace: Rc<Workspace>,
    /// Where the changes are collected.
    pub staging: Rc<Staging>,
}

impl Staging {
    /// Makes a folder for the changes of a run and has the kernel lay it over the workspace.
    ///
    /// # Errors
    /// [`Code::SandboxFailed`] where the folder cannot be made or cannot be laid over.
    pub fn lay(
        folder: &Path,
        workspace: &Rc<Workspace>,
        commands: &Commands,
        host: &dyn Host,
    ) -> Result<Laid, Problem> {
        let unmade = |error: io::Error| {
            let message = format!("`{}` cannot be made: {error}", folder.display());
            Problem::new(Code::SandboxFailed, message)
        };
        let private = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        private(&folder.join(WORK)).map_err(unmade)?;
        private(&folder.join(CHANGES)).map_err(unmade)?;
        let staging = Self::open(folder, workspace).map_err(unmade)?;
        let held = |name| Workspace::open(&folder.join(name)).map(Workspace::into_root);
        let collected = sandbox::Staging {
            changes: held(CHANGES).map_err(unmade)?,
            work: held(WORK).map_err(unmade)?,
        };
        let handle = commands.stage(workspace, host, collected)?;
        let workspace = Rc::new(workspace.beneath_changes(handle));
        Ok(Laid { workspace, staging: Rc::new(staging) })
    }

    /// Opens the changes of an earlier run.
    ///
    /// # Errors
    /// When they are not there.
    pub fn open(folder: &Path, workspace: &Rc<Workspace>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let changes = rustix::fs::open(folder.join(CHANGES), flags, Mode::empty())?;
        Ok(Self {
            beneath: Rc::clone(workspace),
            changes,
            known: RefCell::default(),
            first: RefCell::default(),
            digests: RefCell::default(),
            looked: Cell::default(),
            unread: Cell::default(),
            refused: Cell::default(),
        })
    }

    /// Removes the changes of a run. Whatever their permissions say, it is we who made them.
    ///
    /// # Errors
    /// When something cannot be removed; what is left can be removed later.
    pub fn discard(folder: &Path) -> io::Result<()> {
        clear::remove(folder)
    }

    /// How many paths differ from the workspace, as far as was looked; at least one where nobody can
    /// say.
    #[must_use]
    pub fn paths(&self) -> usize {
        self.known.borrow().len().max(usize::from(self.unread.get()))
    }

    /// Whether a change was refused, so that none may be applied.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused.get() || self.unread.get()
    }

    fn root(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// What changed since somebody last asked. `since` is when the call began that is asked about.
    fn collect(&self, since: Since) -> Result<Vec<Change>, Problem> {
        let now = Scan::of(self, since).run().inspect_err(|_| self.unread.set(true))?;
        let mut known = self.known.borrow_mut();
        let between = known.until(&now);
        *known = now;
        Ok(between)
    }

    /// Whether a command has written more than may be staged. Looked at now and then, and never for
    /// more than a tenth of the time.
    pub(crate) fn is_full(&self) -> bool {
        if let Some((last, took)) = self.looked.get()
            && last.elapsed() < LOOKING.max(took * 10)
        {
            return false;
        }
        let began = Instant::now();
        let full = scan::is_full(self);
        self.looked.set(Some((Instant::now(), began.elapsed())));
        full
    }
}

/// When a call began, by the clock that files are dated with.
pub(crate) type Since = (i64, i64);

fn now() -> Since {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

pub(crate) fn too_many() -> Problem {
    let message = format!(
        "more than {} paths or {} would be staged",
        limits::STAGED_PATHS,
        capsule_core::units::show_size(limits::STAGED_BYTES)
    );
    Problem::new(Code::ChangeTooMany, message)
}

/// Hands whose effects are collected, judged and recorded.
pub(crate) struct Staged {
    /// What acts.
    pub hands: Box<dyn Hands>,
    /// Where it is collected.
    pub staging: Rc<Staging>,
}

impl Hands for Staged {
    fn preserve(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        self.hands.preserve()
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let writes = match permit.bounds() {
            Bounds::Run { writes: Some(writes), .. } => Some(writes),
            Bounds::Write { .. } => None,
            _ => return self.hands.run(permit),
        };
        let since = now();
        let outcome = self.hands.run(permit);
        match self.staging.collect(since) {
            Ok(changes) => {
                let outcome = judged(outcome, changes, writes);
                let refused = outcome.changes.iter().any(|own| own.refused.is_some());
                self.staging.refused.set(self.staging.refused.get() || refused);
                outcome
            }
            Err(problem) => unread(outcome, problem),
        }
    }
}

/// Judges what a call changed. What a tool writes was judged before it was written.
fn judged(outcome: Outcome, mut changes: Vec<Change>, writes: Option<&Writes>) -> Outcome {
    let Some(writes) = writes else { return Outcome { changes, ..outcome } };
    for change in &mut changes {
        if change.refused.is_none() && change.after != change.before {
            change.refused = writes.judge(change).err();
        }
    }
    let shown: Vec<_> = changes
        .iter()
        .take(limits::STAGED_SHOWN)
        .map(|own| json!({ "path": own.path, "change": own.kind().word() }))
        .collect();
    let refused = changes.iter().filter(|own| own.refused.is_some()).count();
    let first = changes.iter().find_map(|own| Some((&own.path, own.refused.as_ref()?)));
    let problem = first.map(|(path, why)| {
        let path = excerpt(path, limits::QUOTED_CHARS);
        let message =
            format!("{refused} of {} changes cannot be applied; `{path}`: {why}", changes.len());
        Problem::new(Code::ChangeRefused, message)
    });
    let total = u64::try_from(changes.len()).unwrap_or(u64::MAX);
    let output = outcome.output.with("changes", shown).with("changes_total", total);
    let outcome = Outcome { output, changes, ..outcome };
    match problem {
        Some(problem) if outcome.ending != Ending::Cancelled => {
            Outcome { ending: Ending::Refused, problem: Some(problem), ..outcome }
        }
        _ => outcome,
    }
}

/// A call of which nobody can say what it changed: nothing of its run can be applied.
fn unread(outcome: Outcome, problem: Problem) -> Outcome {
    let spoiled = Change {
        path: ".".into(),
        before: None,
        after: Some(Node::Special),
        refused: Some(problem.message.clone()),
    };
    Outcome { changes: vec![spoiled], ..outcome.instead(problem) }
}

/// What a tool of the catalogue may do that has to be collected.
#[must_use]
pub fn needs_staging(capabilities: Capabilities) -> bool {
    use capsule_core::capability::Capability::{FsDelete, FsWrite, ProcExec};
    [FsWrite, FsDelete, ProcExec].into_iter().any(|own| capabilities.contains(own))
}

/// A name in a folder, as a path beneath the root.
fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A folder and a name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Opens a folder of a tree, without following any link.
fn open_folder(
    workspace: &Workspace,
    root: BorrowedFd<'_>,
    path: &str,
) -> Result<OwnedFd, crate::workspace::NotFound> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    workspace.open_plain(root, OsStr::new(path), flags)
}

/// What a call gave before it was taken for another kind of end.
trait Instead {
    fn instead(self, problem: Problem) -> Self;
}

impl Instead for Outcome {
    fn instead(self, problem: Problem) -> Self {
        let Self { output, enforcement, .. } = self;
        Self { output, enforcement, ..Self::failed(problem) }
    }
}
