//! What the machine tells the tools of a run.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::Event;
use capsule_core::policy::{Constraint, Policy, TestRule};
use capsule_redact::Secret;
use capsule_store::Store;
use capsule_tools::{FileIdentity, ToolHost, Toolchains};
use capsule_workspace::{BackupLog, UserVariables};
use zeroize::Zeroizing;

use crate::bound_policy::BoundPolicy;
use crate::clock::now_micros;

/// Looks up a variable of the user's environment.
pub type EnvLookup = Box<dyn Fn(&str) -> Option<OsString>>;

/// From how many bytes on a program is looked up in the cache of digests. Reading a smaller one takes
/// less time than opening the cache.
const CACHED_DIGEST_MIN_BYTES: u64 = 256 << 10;

/// The values of a policy's secrets, of those that are there.
pub(crate) fn secret_values(policy: &Policy, variable: &EnvLookup) -> Vec<Secret> {
    let value = |name: &str| Some(Zeroizing::new(variable(name)?.into_string().ok()?));
    let named = policy.secrets.iter();
    named.filter_map(|rule| Secret::new(&rule.name, value(&rule.name)?)).collect()
}

/// What the machine tells: the policy's places for programs, digests that were computed before, and
/// the user's environment.
pub struct SystemHost {
    program_paths: Vec<(String, String)>,
    toolchains: Rc<Toolchains>,
    test_rule: Option<TestRule>,
    /// The digests that this run has taken, by path.
    digests: RefCell<BTreeMap<String, (FileIdentity, Digest)>>,
    store: PathBuf,
    /// A second connection for the cache of digests, opened when it is first needed.
    cache: OnceCell<Option<Store>>,
    /// The values of the policy's secrets, as they were when the run began.
    secrets: Vec<Secret>,
    env: EnvLookup,
}

impl SystemHost {
    /// What the machine tells, with the store that the run is recorded in.
    #[must_use]
    pub fn new(bound: &BoundPolicy, store: &Path, variable: EnvLookup) -> Self {
        let policy = &bound.policy;
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
        let secrets = secret_values(policy, &variable);
        Self {
            program_paths: places,
            toolchains: Rc::clone(&bound.toolchains),
            test_rule: tests,
            digests: RefCell::default(),
            store: store.to_owned(),
            cache: OnceCell::new(),
            secrets,
            env: variable,
        }
    }

    fn with_cache<T>(&self, act: impl FnOnce(&Store) -> Option<T>) -> Option<T> {
        // Without a cache everything works, and takes longer. Whoever only asks makes no store for
        // it; a run has made its own before.
        let open = || self.store.exists().then(|| Store::open(&self.store).ok()).flatten();
        self.cache.get_or_init(open).as_ref().and_then(act)
    }
}

impl ToolHost for SystemHost {
    fn program_path(&self, name: &str) -> Option<String> {
        let by_name = |(text, place): &&(String, String)| text == name || place == name;
        self.program_paths.iter().find(by_name).map(|(_, place)| place.clone())
    }

    fn program_paths(&self) -> Vec<String> {
        self.program_paths.iter().map(|(_, place)| place.clone()).collect()
    }

    fn toolchains(&self) -> &Toolchains {
        &self.toolchains
    }

    fn known_digest(&self, path: &Path, identity: &FileIdentity) -> Option<Digest> {
        let path = path.to_str()?;
        let item = self.digests.borrow().get(path).filter(|(known, _)| known == identity).copied();
        if let Some((_, digest)) = item {
            return Some(digest);
        }
        if identity.size < CACHED_DIGEST_MIN_BYTES {
            return None;
        }
        let known = self.with_cache(|store| store.program_digest(path, &identity.to_string()))?;
        Digest::from_hex(&known)
    }

    fn remember_digest(&self, path: &Path, identity: &FileIdentity, digest: Digest) {
        let Some(path) = path.to_str() else { return };
        self.digests.borrow_mut().insert(path.to_owned(), (*identity, digest));
        if identity.size < CACHED_DIGEST_MIN_BYTES {
            return;
        }
        self.with_cache(|store| {
            store.remember_program(path, &identity.to_string(), &digest.to_string());
            Some(())
        });
    }

    fn test_command(&self, filter: Option<&str>) -> Option<(Vec<String>, String)> {
        self.test_rule.as_ref().map(|test| (test.argv(filter), test.cwd.clone()))
    }

    fn store_path(&self) -> &Path {
        &self.store
    }

    fn secret(&self, name: &str) -> Option<Secret> {
        self.secrets.iter().find(|secret| secret.name() == name).cloned()
    }
}

impl BackupLog for SystemHost {
    fn record_dropped_backups(&self, run: RunId, files: u64) -> Result<(), String> {
        let dropped = Event::UndoDropped { subject: run, files };
        let noted = Store::open(&self.store)
            .and_then(|mut store| store.write_unattached(dropped, now_micros()));
        noted.map_err(|error| error.to_string())
    }
}

impl UserVariables for SystemHost {
    fn variable(&self, name: &str) -> Option<OsString> {
        (self.env)(name)
    }

    fn variables(&self) -> Vec<OsString> {
        std::env::vars_os().map(|(name, _)| name).collect()
    }
}
