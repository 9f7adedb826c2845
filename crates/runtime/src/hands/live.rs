//! Hands that touch the world, through the tools.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use capsule_core::call::ToolCall;
use capsule_core::confinement::Walls;
use capsule_core::digest::Digest;
use capsule_core::evidence::Understanding;
use capsule_core::outcome::Problem;
use capsule_core::policy::{Constraint, Policy};
use capsule_store::Store;
use capsule_tools::{
    Cancel, Commands, Context, FileIdentity, Host, Laid, Sink, Staging, Veil, Workspace, preflight,
};

use crate::changes::Waiting;
use crate::hands::Hands;

/// Hands that touch the world.
pub struct Live {
    workspace: Rc<Workspace>,
    /// Where changes are collected; why they cannot be, where they should.
    staging: Result<Option<Rc<Staging>>, Problem>,
    veil: Rc<RefCell<Veil>>,
    commands: Commands,
    host: Rc<dyn Host>,
    cancel: Cancel,
    sink: Rc<dyn Sink>,
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
        let veil = veil(policy);
        Self { workspace, staging: Ok(None), veil, commands, host, cancel, sink }
    }

    /// Has everything that the calls change collected in a folder, if that can be done; if not, no
    /// call that could change something is carried out.
    #[must_use]
    pub(crate) fn staged(self, policy: &Arc<Policy>, folder: &Path) -> Self {
        let by = (&self.commands, self.host.as_ref(), policy.sandbox.floor);
        let laid = {
            let veil = self.veil.borrow();
            Staging::lay(folder, &self.workspace, by, (&veil, &self.cancel))
        };
        match laid {
            Ok(Laid { workspace, staging }) => {
                let veil = veil(policy);
                // At once: later nobody could say which folders were there when the run began.
                veil.borrow().draw(&workspace);
                Self { workspace, staging: Ok(Some(staging)), veil, ..self }
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

    /// The walls that commands will stand behind; none if there are none, or none are needed.
    #[must_use]
    pub fn walls(&self) -> Option<Walls> {
        self.commands.walls().and_then(Result::ok)
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

    /// What was collected, if anything was.
    pub(crate) fn staged_changes(&self) -> Option<Waiting> {
        let staging = self.staging.as_ref().ok()?.as_ref()?;
        let paths = staging.paths();
        (paths > 0).then(|| Waiting { paths, refused: staging.is_refused() })
    }
}

impl Hands for Live {
    fn preflight(&mut self, call: &ToolCall) -> Result<Understanding, Problem> {
        let context = Context {
            workspace: &self.workspace,
            veil: &self.veil,
            commands: &self.commands,
            staging: self.staging.as_ref().map(Option::as_ref),
            host: &self.host,
            cancel: &self.cancel,
            sink: &self.sink,
            now: now(),
        };
        preflight(call, &context)
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

/// What must not be seen in the workspace.
fn veil(policy: &Arc<Policy>) -> Rc<RefCell<Veil>> {
    let seen_by = Arc::clone(policy);
    Rc::new(RefCell::new(Veil::new(Box::new(move |path, _| seen_by.conceals(path)))))
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

/// What the machine tells: the policy's places for programs, digests that were computed before, and
/// the user's environment.
pub struct Machine {
    places: Vec<(String, String)>,
    /// The digests that this run has taken, by path.
    digests: RefCell<BTreeMap<String, (FileIdentity, Digest)>>,
    store: PathBuf,
    /// A second connection for the cache of digests, opened when it is first needed.
    cache: OnceCell<Option<Store>>,
    variable: Variables,
}

impl Machine {
    /// What the machine tells, with the store that the run is recorded in.
    #[must_use]
    pub fn new(policy: &Policy, store: &Path, variable: Variables) -> Self {
        let places = policy
            .tools
            .values()
            .filter_map(|rule| match &rule.constraint {
                Constraint::Exec(exec) => Some(&exec.programs),
                _ => None,
            })
            .flatten()
            .filter_map(|program| Some((program.name.clone(), program.path.clone()?)))
            .collect();
        Self {
            places,
            digests: RefCell::default(),
            store: store.to_owned(),
            cache: OnceCell::new(),
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

    fn store(&self) -> &Path {
        &self.store
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (self.variable)(name)
    }
}
