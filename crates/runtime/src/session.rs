//! A live run from its beginning to its end: opened, worked in, sealed, written out.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use capsule_core::capability::{Capabilities, Capability};
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::digest::Digest;
use capsule_core::exit::Exit;
use capsule_core::id::RunId;
use capsule_core::journal::{Event, RunExported, RunKind, Workspace};
use capsule_store::{RunWriter, Store, StoreError};
use capsule_tools::{Cancel, Commands, Sink};
use serde_json::Value;

use crate::changes::{self, Waiting};
use crate::hands::{Live, Machine, Variables, now};
use crate::law::{Law, real};
use crate::observe::{Observed, Observer};
use crate::run::{Opening, Run, seal};

/// What a tool may be able to do that has to be staged; for a command, its rule says.
const CHANGING: Capabilities =
    Capabilities::of(Capability::FsWrite).with(Capability::FsDelete).with(Capability::ProcExec);

/// What a live run starts from.
pub struct Start<'s, 'o> {
    /// The policy and its workspace.
    pub law: &'s Law,
    /// The store.
    pub store: &'s Path,
    /// What started it.
    pub origin: RunKind,
    /// The run that it is about, if it is about one.
    pub subject: Option<RunId>,
    /// What the plan or call is called.
    pub name: String,
    /// The plan: its place and its text.
    pub plan: Option<(&'s str, &'s str)>,
    /// How many steps the plan has.
    pub steps: u64,
    /// The inputs.
    pub inputs: Value,
    /// The run's executor.
    pub commands: Commands,
    /// What the tools of the run can do: for commands, their walls belong into its beginning; for
    /// changes, the workspace may have to be staged.
    pub capabilities: Capabilities,
    /// Says to stop.
    pub cancel: Cancel,
    /// Where output goes while it is made.
    pub sink: Rc<dyn Sink>,
    /// The user's environment.
    pub variables: Variables,
    /// Who watches.
    pub observer: &'o mut dyn Observer,
}

impl Start<'_, '_> {
    /// Whether what the run changes is staged.
    fn stages(&self) -> bool {
        self.subject.is_none()
            && self.law.policy.sandbox.workspace == WorkspaceAccess::Staged
            && self.capabilities.intersects(CHANGING)
    }

    /// Whether its commands may change the workspace itself.
    fn is_direct(&self) -> bool {
        self.subject.is_none()
            && self.law.policy.sandbox.workspace == WorkspaceAccess::Direct
            && self.capabilities.contains(Capability::ProcExec)
    }
}

/// A live run.
pub struct Session<'o> {
    /// What calls are submitted to.
    pub run: Run<Observed<'o, RunWriter>, Live>,
    /// Its full id.
    pub id: RunId,
    /// Its label.
    pub label: String,
    /// Why what it changes is staged in a copy of the workspace, if it is.
    pub copied: Option<String>,
    /// Where its changes are collected.
    staged: Option<PathBuf>,
}

/// What a run came to in the store.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Leaves of the tree when the run was sealed.
    pub size: u64,
    /// The tree's root then.
    pub root: Digest,
    /// The file that the run was written to, and its digest.
    pub exported: Option<(PathBuf, Digest)>,
    /// What it changed and waits to be applied or discarded.
    pub staged: Option<Waiting>,
}

/// The folder that a run works in, as it is recorded.
fn workspace(law: &Law) -> Workspace {
    Workspace {
        path: law.roots.workspace.clone(),
        device: law.workspace.device().to_string(),
        inode: law.workspace.inode().to_string(),
    }
}

impl<'o> Session<'o> {
    /// Opens a run.
    ///
    /// # Errors
    /// When the store cannot be opened or written.
    pub fn open(start: Start<'_, 'o>) -> Result<Self, StoreError> {
        let law = start.law;
        let (stages, direct) = (start.stages(), start.is_direct());
        let store = Store::open(start.store)?;
        let sha256 = Digest::of(law.text.text.as_bytes()).to_string();
        let policy_since = store.policy_since(&law.policy.name, &sha256)?;
        let mut writer = store.begin(Box::new(now), law.policy.audit.payloads)?;
        let id = writer.run();
        let beginning: String = id.to_string().chars().take(6).collect();
        let others = writer.store().beginning_with(&beginning)?;
        let label = id.label(others.iter().map(String::as_str));
        let key = writer.keep_key()?;
        let machine = Machine::new(&law.policy, start.store, start.variables);
        let hands = Live::new(
            Rc::clone(&law.workspace),
            &law.policy,
            start.commands,
            Rc::new(machine),
            start.cancel,
            start.sink,
        );
        let staged = stages.then(|| changes::place(start.store, id));
        let hands = match start.subject {
            Some(subject) => hands.with_changes(&changes::place(start.store, subject)),
            None => hands,
        };
        let has_commands = start.capabilities.contains(Capability::ProcExec);
        let walls = if has_commands { hands.walls() } else { None };
        let journal = Observed::new(writer, start.observer);
        let mut run = Run::new(Arc::clone(&law.policy), journal, hands);
        let place = law
            .file
            .as_deref()
            .map_or_else(|| law.text.name.clone(), |file| file.to_string_lossy().into_owned());
        let opening = Opening {
            label: label.clone(),
            origin: start.origin,
            subject: start.subject,
            name: start.name,
            plan: start.plan,
            policy_text: (&place, &law.text.text),
            policy_since,
            inputs: start.inputs,
            key,
            workspace: workspace(law),
            home: law.home.clone(),
            own: law.roots.own.clone(),
            walls,
            steps: start.steps,
            staged: stages,
            direct,
        };
        opening.write(&mut run)?;
        // The record knows the run before anything is laid down that has to be dropped by its name.
        if let Some(folder) = &staged {
            run.hands = run.hands.staged(&law.policy, folder);
        }
        let copied = run.hands.why_copied().map(str::to_owned);
        Ok(Self { run, id, label, copied, staged })
    }

    /// Seals the run and, if asked, writes it to a file of its own.
    ///
    /// # Errors
    /// When the seal or the file cannot be written.
    pub fn finish(
        mut self,
        exit: Exit,
        outputs: Option<&Value>,
        out: Option<&Path>,
    ) -> Result<Finished, StoreError> {
        seal(&mut self.run, exit, outputs)?;
        let Run { journal, hands, .. } = self.run;
        let staged = hands.staged_changes();
        if staged.is_some() {
            hands.settle();
        }
        // The executor goes with them, and what the kernel laid over the workspace.
        drop(hands);
        if let Some(folder) = self.staged.filter(|_| staged.is_none()) {
            // Nothing is in it; what cannot be removed now is in nobody's way.
            let _ = changes::remove(&folder);
        }
        let (mut store, tree) = journal.into_inner().finish();
        let exported = match out {
            Some(path) => {
                let sha256 = store.export(&self.id.to_string(), path)?;
                let place = real(path);
                let event = RunExported {
                    subject: self.id,
                    sha256,
                    path: place.to_string_lossy().into_owned(),
                };
                store.note(Event::RunExported(event), now())?;
                Some((place, sha256))
            }
            None => None,
        };
        Ok(Finished { size: tree.size(), root: tree.root(), exported, staged })
    }
}
