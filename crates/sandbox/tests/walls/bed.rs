//! A workspace with an executor, to try things in.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use capsule_core::confinement::ProcessLimits;
use capsule_sandbox::{
    Executor, Exit, FileIdentity, How, Launch, Mask, Program, SandboxError, Staging, Stream, View,
    Watch,
};
use tempfile::TempDir;

use crate::bubblewrap::Bubblewrap;
use crate::{probe, world};

/// Where the probe appears inside.
pub(crate) const PROBE: &str = "/probe";

pub(crate) struct Bed {
    pub(crate) executor: Executor,
    /// What else runs commands, in a world where the executor does not.
    peer: Option<Bubblewrap>,
    folder: TempDir,
}

/// A watcher that keeps nothing and never cancels.
pub(crate) struct Nobody;

impl Watch for Nobody {
    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}

    fn cancelled(&self) -> bool {
        false
    }
}

impl Bed {
    /// A workspace as `lay` makes it, with these paths hidden.
    pub(crate) fn new(lay: impl FnOnce(&Path), masks: &[&[u8]]) -> Self {
        Self::make(lay, masks, false).0
    }

    /// One whose changes are collected in [`Bed::changes`], with the workspace as commands see it.
    pub(crate) fn staged(lay: impl FnOnce(&Path), masks: &[&[u8]]) -> (Self, OwnedFd) {
        let (bed, shared) = Self::make(lay, masks, true);
        (bed, shared.unwrap())
    }

    fn make(lay: impl FnOnce(&Path), masks: &[&[u8]], staged: bool) -> (Self, Option<OwnedFd>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        fs::write(folder.path().join("sibling"), "the sibling").unwrap();
        lay(&folder.path().join("workspace"));
        let mut executor = Executor::start().unwrap();
        let workspace = File::open(folder.path().join("workspace")).unwrap().into();
        let own_folder = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            File::open(path).unwrap().into()
        };
        if world::current() == world::World::Bubblewrap {
            let peer = Some(Bubblewrap::new(&folder.path().join("workspace"), masks));
            return (Self { executor, peer, folder }, None);
        }
        let staging =
            staged.then(|| Staging { changes: own_folder("changes"), work: own_folder("work") });
        let masks = masks.iter().map(|path| mask(path)).collect();
        let shared = executor.enter(View { workspace, staging, masks, programs: own() }).unwrap();
        (Self { executor, peer: None, folder }, shared)
    }

    /// Where the changes of a staged workspace lie.
    pub(crate) fn changes(&self) -> PathBuf {
        self.folder.path().join("changes")
    }

    /// Runs a line of a shell that may write.
    pub(crate) fn write(&mut self, line: &str) -> Exit {
        let mut launch = launch("/bin/sh", &["sh", "-c", line]);
        launch.writes = true;
        self.try_run(launch).unwrap()
    }

    /// A workspace with one file in it.
    pub(crate) fn plain() -> Self {
        Self::new(|workspace| fs::write(workspace.join("file"), "content").unwrap(), &[])
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Runs the probe with a script and gives its answers, a line each.
    pub(crate) fn probe(&mut self, script: &str) -> Vec<String> {
        let exit = self.probe_with(script, |_| {});
        let errors = String::from_utf8_lossy(&exit.stderr.bytes).into_owned();
        assert_eq!(exit.how, How::Exited(0), "{script}: {errors}");
        String::from_utf8_lossy(&exit.stdout.bytes).lines().map(str::to_owned).collect()
    }

    /// One answer to one line.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.probe(line).join("\n")
    }

    /// Runs the probe, with changes to the launch.
    pub(crate) fn probe_with(&mut self, script: &str, change: impl FnOnce(&mut Launch)) -> Exit {
        let mut launch = launch("/proc/self/exe", &["probe", probe::ARGUMENT]);
        launch.program.path = PROBE.into();
        launch.stdin = script.as_bytes().to_vec();
        change(&mut launch);
        self.try_run(launch).unwrap()
    }

    /// Runs a program of the system.
    pub(crate) fn run(&mut self, program: &str, words: &[&str]) -> Exit {
        self.try_run(launch(program, words)).unwrap()
    }

    pub(crate) fn try_run(&mut self, launch: Launch) -> Result<Exit, SandboxError> {
        match &self.peer {
            Some(peer) => Ok(peer.run(&launch, self.executor.walls()?.clone())),
            None => self.executor.run(launch, &mut Nobody),
        }
    }
}

/// The probe, to be shown inside.
pub(crate) fn own() -> Vec<(PathBuf, OwnedFd)> {
    vec![(PathBuf::from(PROBE), File::open("/proc/self/exe").unwrap().into())]
}

pub(crate) fn mask(path: &[u8]) -> Mask {
    Mask { path: std::os::unix::ffi::OsStringExt::from_vec(path.to_vec()) }
}

/// A launch of a program that is found at the same path outside.
pub(crate) fn launch(program: &str, words: &[&str]) -> Launch {
    let facts = fs::metadata(program).unwrap_or_else(|error| panic!("{program}: {error}"));
    Launch {
        program: Program { path: program.into(), identity: FileIdentity::of(&facts) },
        argv: words.iter().map(OsString::from).collect(),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), "/tmp".into()),
            ("LC_ALL".into(), "C".into()),
        ],
        cwd: OsString::new(),
        stdin: Vec::new(),
        limits: ProcessLimits::default(),
        writes: false,
        masks: Vec::new(),
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Collects every failing row of a table, so that one look shows all of them.
#[derive(Default)]
pub(crate) struct Rows(Vec<String>);

impl Rows {
    pub(crate) fn check(&mut self, passed: bool, row: impl FnOnce() -> String) {
        if !passed {
            self.0.push(row());
        }
    }

    pub(crate) fn end(self) {
        assert!(self.0.is_empty(), "{} rows failed:\n{}", self.0.len(), self.0.join("\n"));
    }
}
