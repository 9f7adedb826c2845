//! Hands that touch the world, through the tools.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use capsule_core::approval::{Approver, NoApprover};
use capsule_core::call::ToolCall;
use capsule_core::change::ChangeSet;
use capsule_core::confinement::{SandboxStatus, SandboxTier};
use capsule_core::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{Event, UNDO_SUFFIX};
use capsule_core::lifecycle::PreflightReport;
use capsule_core::outcome::CodedError;
use capsule_core::path::WorkspacePath;
use capsule_core::policy::{Constraint, Invariants, Policy, TestRule};
use capsule_redact::{Redactor, Secret};
use capsule_store::{Store, beside};
use capsule_tools::{
    Cancel, Commands, Context, FileIdentity, Host, Keeper, Laid, Sink, Staging, Veil, Workspace,
    preflight,
};
use zeroize::Zeroizing;

use crate::changes::Waiting;
use crate::hands::Hands;

/// Hands that touch the world.
pub struct Live {
    workspace: Rc<Workspace>,
    /// Where changes are collected; why they cannot be, where they should.
    staging: Result<Option<Rc<Staging>>, CodedError>,
    veil: Rc<RefCell<Veil>>,
    commands: Commands,
    keeper: Rc<Keeper>,
    redactor: Redactor,
    host: Rc<dyn Host>,
    cancel: Cancel,
    sink: Rc<dyn Sink>,
    approver: Box<dyn Approver>,
}

impl Live {
    /// Hands in a workspace, under a policy.
    #[must_use]
    pub fn new(
        workspace: Rc<Workspace>,
        policy: &Arc<Policy>,
        commands: Commands,
        host: Rc<dyn Host>,
        cancel: Cancel,
        sink: Rc<dyn Sink>,
    ) -> Self {
        let veil = veil(policy, &host);
        let (keeper, approver) = (keeper(&host, None), Box::new(NoApprover));
        let secrets = policy.secrets.iter().filter_map(|own| host.secret(&own.name));
        let redactor = Redactor::with(&secrets.collect::<Vec<_>>(), &policy.redaction_patterns());
        sink.masked_by(&redactor);
        let staging = Ok(None);
        Self { workspace, staging, veil, commands, keeper, redactor, host, cancel, sink, approver }
    }

    /// What masks: the shipped rules, what the policy adds, and the values of its secrets.
    #[must_use]
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The same with somebody to ask.
    #[must_use]
    pub(crate) fn asking(self, approver: impl Approver + 'static) -> Self {
        Self { approver: Box::new(approver), ..self }
    }

    /// The hands of a run, which keep what its calls replace and delete.
    #[must_use]
    pub(crate) fn of_run(self, run: RunId) -> Self {
        Self { keeper: keeper(&self.host, Some(run)), ..self }
    }

    /// Has everything that the calls change collected in a folder, if that can be done; if not, no
    /// call that could change something is carried out.
    /// What an earlier run collected is taken up first, if there is such.
    #[must_use]
    pub(crate) fn staged(
        self,
        policy: &Arc<Policy>,
        folder: &Path,
        earlier: Option<(&Path, &ChangeSet)>,
    ) -> Self {
        let by = (&self.commands, self.host.as_ref(), policy.sandbox_in_force().floor);
        let laid = match earlier {
            Some((from, _)) => Staging::lay_again((from, folder), &self.workspace, by),
            None => {
                let veil = self.veil.borrow();
                Staging::lay(folder, &self.workspace, by, (&veil, &self.cancel))
            }
        };
        match laid {
            Ok(Laid { workspace, staging }) => {
                let veil = veil(policy, &self.host);
                // At once: later nobody could say which folders were there when the run began.
                veil.borrow().draw(&workspace);
                staging.hold_indexes(&veil.borrow().repositories(&workspace));
                let taken = earlier.map_or(Ok(()), |(_, changes)| {
                    staging.take_up(changes, (&veil.borrow(), &workspace))
                });
                let staging = taken.map(|()| Some(staging));
                Self { workspace, staging, veil, ..self }
            }
            Err(problem) => Self { staging: Err(problem), ..self },
        }
    }

    /// Takes up what an earlier run collected.
    #[must_use]
    pub(crate) fn with_changes(self, folder: &Path) -> Self {
        // Where it is not there, the call says so.
        let staging = Staging::open(folder, &self.workspace).ok().map(Rc::new);
        Self { staging: Ok(staging), ..self }
    }

    /// The walls that commands will stand behind, or why there are none; nothing where commands are
    /// only judged.
    #[must_use]
    pub fn walls(&self) -> Option<Result<SandboxStatus, String>> {
        self.commands.walls()
    }

    /// Has the executor build what commands will see while the record is begun, where nothing is staged
    /// and it does not take long to tell what is to be hidden.
    pub(crate) fn show_ahead(&self, floor: SandboxTier) {
        let (workspace, veil) = (&self.workspace, self.veil.borrow());
        if veil.draw_if_small(workspace) {
            self.commands.show_ahead(workspace, self.host.as_ref(), floor, &veil);
        }
    }

    /// Why the calls work in a copy of the workspace, if they do.
    pub(crate) fn why_copied(&self) -> Option<&str> {
        self.staging.as_ref().ok()?.as_ref()?.why_copied()
    }

    /// Frees what the changes do not need any more, once the last call has ended.
    pub(crate) fn settle(&self) {
        if let Ok(Some(staging)) = &self.staging {
            staging.settle();
        }
    }

    /// Ends the executor, and with it what the kernel laid over the workspace.
    pub(crate) fn end_commands(&self) {
        self.commands.end();
    }

    /// What was collected, if anything was.
    pub(crate) fn staged_changes(&self) -> Option<Waiting> {
        let staging = self.staging.as_ref().ok()?.as_ref()?;
        let paths = staging.paths();
        let (refused, asked) = (staging.is_refused(), staging.asked());
        (paths > 0).then_some(Waiting { paths, refused, asked })
    }
}

impl Hands for Live {
    fn preflight(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError> {
        let context = Context {
            workspace: &self.workspace,
            veil: &self.veil,
            commands: &self.commands,
            staging: self.staging.as_ref().map(Option::as_ref),
            redactor: &self.redactor,
            keeper: &self.keeper,
            host: &self.host,
            cancel: &self.cancel,
            sink: &self.sink,
            now: now(),
        };
        preflight(call, &context)
    }

    fn foresee(&mut self, call: &ToolCall) -> Option<Result<PreflightReport, CodedError>> {
        Some(self.preflight(call))
    }

    fn again(&mut self, call: &ToolCall) -> Result<PreflightReport, CodedError> {
        self.preflight(call)
    }

    fn approver(&mut self) -> &mut dyn Approver {
        self.approver.as_mut()
    }

    fn pause(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.cancel.is_set() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    fn interrupted(&mut self) -> bool {
        self.cancel.is_set()
    }
}

/// Where what is replaced and deleted is kept.
fn keeper(host: &Rc<dyn Host>, run: Option<RunId>) -> Rc<Keeper> {
    Rc::new(Keeper::new(beside(host.store(), UNDO_SUFFIX), run, Rc::clone(host)))
}

/// What must not be seen in the workspace.
fn veil(policy: &Arc<Policy>, host: &Rc<dyn Host>) -> Rc<RefCell<Veil>> {
    let seen_by = Arc::clone(policy);
    let veil = Veil::new(Box::new(move |path, _| seen_by.conceals(path))).cutting_off();
    let home = host.variable("HOME").map(PathBuf::from);
    let closing = Arc::clone(policy);
    let closes = move |path: &WorkspacePath, _| {
        closing.denied_patterns().any(|own| own.matches_in_walk(path))
    };
    let closes_any = policy.denied_patterns().next().is_some();
    let veil = if closes_any { veil.closing(Box::new(closes)) } else { veil };
    let veil = veil.under(Invariants::of(Arc::clone(policy)), home).on(Rc::clone(host));
    Rc::new(RefCell::new(veil))
}

/// The time in microseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Looks up a variable of the user's environment.
pub type Variables = Box<dyn Fn(&str) -> Option<OsString>>;

/// From how many bytes on a program is looked up in the cache of digests. Reading a smaller one takes
/// less time than opening the cache.
const LARGE: u64 = 256 << 10;

/// The values of a policy's secrets, of those that are there.
pub(crate) fn secrets(policy: &Policy, variable: &Variables) -> Vec<Secret> {
    let value = |name: &str| Some(Zeroizing::new(variable(name)?.into_string().ok()?));
    let named = policy.secrets.iter();
    named.filter_map(|own| Secret::new(&own.name, value(&own.name)?)).collect()
}

/// What the machine tells: the policy's places for programs, digests that were computed before, and
/// the user's environment.
pub struct Machine {
    places: Vec<(String, String)>,
    tests: Option<TestRule>,
    /// The digests that this run has taken, by path.
    digests: RefCell<BTreeMap<String, (FileIdentity, Digest)>>,
    store: PathBuf,
    /// A second connection for the cache of digests, opened when it is first needed.
    cache: OnceCell<Option<Store>>,
    /// The values of the policy's secrets, as they were when the run began.
    secrets: Vec<Secret>,
    variable: Variables,
}

impl Machine {
    /// What the machine tells, with the store that the run is recorded in.
    #[must_use]
    pub fn new(policy: &Policy, store: &Path, variable: Variables) -> Self {
        let tests = policy.tools.values().find_map(|rule| match &rule.constraint {
            Constraint::Test(test) => Some(test.clone()),
            _ => None,
        });
        let by_tests = tests.iter().filter_map(|test| test.command.first());
        let by_tests = by_tests.filter(|name| name.starts_with('/')).cloned();
        let places = policy
            .tools
            .values()
            .filter_map(|rule| match &rule.constraint {
                Constraint::Exec(exec) => Some(&exec.programs),
                _ => None,
            })
            .flatten()
            .filter_map(|program| Some((program.name.clone(), program.path.clone()?)))
            .chain(by_tests.map(|place| (place.clone(), place)))
            .collect();
        let secrets = secrets(policy, &variable);
        Self {
            places,
            tests,
            digests: RefCell::default(),
            store: store.to_owned(),
            cache: OnceCell::new(),
            secrets,
            variable,
        }
    }

    fn with_cache<T>(&self, act: impl FnOnce(&Store) -> Option<T>) -> Option<T> {
        // Without a cache everything works, and takes longer. Whoever only asks makes no store for
        // it; a run has made its own before.
        let open = || self.store.exists().then(|| Store::open(&self.store).ok()).flatten();
        self.cache.get_or_init(open).as_ref().and_then(act)
    }
}

impl Host for Machine {
    fn program_place(&self, name: &str) -> Option<String> {
        let by_name = |(own, place): &&(String, String)| own == name || place == name;
        self.places.iter().find(by_name).map(|(_, place)| place.clone())
    }

    fn program_places(&self) -> Vec<String> {
        self.places.iter().map(|(_, place)| place.clone()).collect()
    }

    fn known_digest(&self, path: &Path, identity: &FileIdentity) -> Option<Digest> {
        let path = path.to_str()?;
        let own = self.digests.borrow().get(path).filter(|(own, _)| own == identity).copied();
        if let Some((_, digest)) = own {
            return Some(digest);
        }
        if identity.size < LARGE {
            return None;
        }
        let known = self.with_cache(|store| store.program_digest(path, &identity.to_string()))?;
        Digest::from_hex(&known)
    }

    fn remember_digest(&self, path: &Path, identity: &FileIdentity, digest: Digest) {
        let Some(path) = path.to_str() else { return };
        self.digests.borrow_mut().insert(path.to_owned(), (*identity, digest));
        if identity.size < LARGE {
            return;
        }
        self.with_cache(|store| {
            store.remember_program(path, &identity.to_string(), &digest.to_string());
            Some(())
        });
    }

    fn tests(&self, filter: Option<&str>) -> Option<(Vec<String>, String)> {
        self.tests.as_ref().map(|test| (test.argv(filter), test.cwd.clone()))
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn undo_dropped(&self, run: RunId, files: u64) -> Result<(), String> {
        let dropped = Event::UndoDropped { subject: run, files };
        let noted = Store::open(&self.store).and_then(|mut store| store.note(dropped, now()));
        noted.map_err(|error| error.to_string())
    }

    fn secret(&self, name: &str) -> Option<Secret> {
        self.secrets.iter().find(|own| own.name() == name).cloned()
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (self.variable)(name)
    }

    fn variables(&self) -> Vec<OsString> {
        std::env::vars_os().map(|(name, _)| name).collect()
    }
}
