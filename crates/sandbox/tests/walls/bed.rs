//! A workspace with an executor, to try things in.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use capsule_base::root_names::RootNames;
use capsule_core::confinement::ProcessLimits;
use capsule_sandbox::{
    CommandResult, CommandWatcher, Executable, Executor, FileIdentity, HiddenPath, Launch,
    LaunchStage, OutputKind, PreparedCommand, SandboxBackend as _, SandboxError, SandboxView,
    StagingMount, Termination,
};
use tempfile::TempDir;

use crate::bubblewrap::Bubblewrap;
use crate::{probe, world};

/// Where the probe appears inside.
pub(crate) const PROBE: &str = "/probe";

/// Where a directory of a program appears inside, if the workspace is staged.
pub(crate) const TOOL: &str = "/tool";

pub(crate) struct Bed {
    pub(crate) executor: Executor,
    /// What else runs commands, in a world where the executor does not.
    peer: Option<Bubblewrap>,
    folder: TempDir,
    /// What is hidden from every command.
    masks: Vec<HiddenPath>,
}

/// A watcher that keeps nothing and never cancels.
pub(crate) struct Nobody;

impl CommandWatcher for Nobody {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {}

    fn is_cancelled(&self) -> bool {
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
            return (Self { executor, peer, folder, masks: Vec::new() }, None);
        }
        let staging = staged.then(|| StagingMount::Overlay {
            changes: own_folder("changes"),
            work: own_folder("work"),
        });
        let tool = folder.path().join("tool");
        fs::create_dir(&tool).unwrap();
        let tool = staged.then(|| (PathBuf::from(TOOL), File::open(&tool).unwrap().into()));
        let masks: Vec<HiddenPath> = masks.iter().map(|path| mask(path)).collect();
        let view = SandboxView {
            git: capsule_sandbox::GitFiles::default(),
            floor: world::current().floor(),
            workspace,
            root_names: RootNames::default(),
            staging,
            hidden: masks.clone(),
            programs: own().into_iter().chain(tool).collect(),
            toolchains: Vec::new(),
            repository: None,
        };
        let shared = executor.enter(view).unwrap();
        (Self { executor, peer: None, folder, masks }, shared)
    }

    /// One in which a copy of the workspace, made by `lay` too, is shown in its place.
    pub(crate) fn copied(lay: impl Fn(&Path), masks: &[&[u8]]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own_folder = |name: &str| -> OwnedFd {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            lay(&path);
            File::open(path).unwrap().into()
        };
        let (workspace, copy) = (own_folder("workspace"), own_folder("changes"));
        let mut executor = Executor::start().unwrap();
        let masks: Vec<HiddenPath> = masks.iter().map(|path| mask(path)).collect();
        let view = SandboxView {
            git: capsule_sandbox::GitFiles::default(),
            floor: world::current().floor(),
            workspace,
            root_names: RootNames::default(),
            staging: Some(StagingMount::Copied(copy)),
            hidden: masks.clone(),
            programs: own(),
            toolchains: Vec::new(),
            repository: None,
        };
        let shared = executor.enter(view).unwrap();
        assert!(shared.is_none(), "whoever made the copy can open it");
        Self { executor, peer: None, folder, masks }
    }

    /// Where the changes of a staged workspace lie.
    pub(crate) fn changes(&self) -> PathBuf {
        self.folder.path().join("changes")
    }

    /// A directory of the host that commands of a staged workspace see at [`TOOL`].
    pub(crate) fn tool_directory(&self) -> PathBuf {
        self.changes().with_file_name("tool")
    }

    /// Runs a line of a shell that may write.
    pub(crate) fn write(&mut self, line: &str) -> CommandResult {
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
        assert_eq!(exit.termination, Termination::Exited(0), "{script}: {errors}");
        String::from_utf8_lossy(&exit.stdout.bytes).lines().map(str::to_owned).collect()
    }

    /// One answer to one line.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.probe(line).join("\n")
    }

    /// Runs the probe, with changes to the launch.
    pub(crate) fn probe_with(
        &mut self,
        script: &str,
        change: impl FnOnce(&mut Launch),
    ) -> CommandResult {
        let mut launch = launch("/proc/self/exe", &["probe", probe::ARGUMENT]);
        launch.stages[0].program.path = probe_place();
        launch.stdin = self.as_seen(script).into_bytes();
        change(&mut launch);
        self.try_run(launch).unwrap()
    }

    /// Runs a program of the system.
    pub(crate) fn run(&mut self, program: &str, words: &[&str]) -> CommandResult {
        self.try_run(launch(program, words)).unwrap()
    }

    /// Has a command begin that is held, and waits for its end.
    pub(crate) fn begin(
        &mut self,
        held: PreparedCommand,
        watch: &mut dyn CommandWatcher,
    ) -> CommandResult {
        let running = self.executor.start_command(held).unwrap();
        self.executor.wait(running, watch).unwrap()
    }

    /// A text with the names that places have inside: without namespaces, those of the host.
    pub(crate) fn as_seen(&self, text: &str) -> String {
        if !world::current().is_lower() {
            return text.to_owned();
        }
        // What has the host's name already is left alone.
        let workspace = self.workspace().to_str().unwrap().to_owned();
        let text = text.replace(&workspace, "/workspace");
        let start = format!("capsule-tmp-{}-", self.executor.id());
        let mut names = fs::read_dir("/tmp").unwrap().map(|entry| entry.unwrap().file_name());
        let tmp = names.find(|name| name.to_string_lossy().starts_with(&start));
        let tmp = format!("/tmp/{}", tmp.unwrap_or_default().to_string_lossy());
        let pieces: Vec<&str> = text.split("/tmp").collect();
        let mut seen = pieces[0].to_owned();
        for piece in &pieces[1..] {
            let ours = ["/.tmp", "/capsule"].iter().any(|start| piece.starts_with(start));
            seen.push_str(if ours { "/tmp" } else { &tmp });
            seen.push_str(piece);
        }
        seen.replace("/workspace", &workspace).replace(PROBE, probe_place().to_str().unwrap())
    }

    pub(crate) fn try_run(&mut self, mut launch: Launch) -> Result<CommandResult, SandboxError> {
        if world::current().is_lower() {
            for stage in &mut launch.stages {
                for word in &mut stage.argv {
                    if let Some(text) = word.to_str() {
                        *word = self.as_seen(text).into();
                    }
                }
                let path = stage.program.path.to_str().unwrap();
                stage.program.path = self.as_seen(path).into();
            }
            // They are told anew with each command.
            launch.hidden.extend(self.masks.iter().cloned());
        }
        match &self.peer {
            Some(peer) => Ok(peer.run(&launch, self.executor.sandbox_status()?.clone())),
            None => self.executor.run(launch, &mut Nobody),
        }
    }
}

/// The probe, to be shown inside.
pub(crate) fn own() -> Vec<(PathBuf, OwnedFd)> {
    vec![(probe_place(), File::open("/proc/self/exe").unwrap().into())]
}

/// Where the probe is inside.
pub(crate) fn probe_place() -> PathBuf {
    if world::current().is_lower() {
        return fs::read_link("/proc/self/exe").unwrap();
    }
    PROBE.into()
}

pub(crate) fn mask(path: &[u8]) -> HiddenPath {
    HiddenPath { path: std::os::unix::ffi::OsStringExt::from_vec(path.to_vec()) }
}

/// A program that is found at the same path outside.
pub(crate) fn stage(program: &str, words: &[&str]) -> LaunchStage {
    let facts = fs::metadata(program).unwrap_or_else(|error| panic!("{program}: {error}"));
    LaunchStage {
        program: Executable { path: program.into(), identity: FileIdentity::from_metadata(&facts) },
        argv: words.iter().map(OsString::from).collect(),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("LC_ALL".into(), "C".into()),
        ],
        redirects: Vec::new(),
    }
}

/// A launch of such a program.
pub(crate) fn launch(program: &str, words: &[&str]) -> Launch {
    pipeline(vec![stage(program, words)])
}

/// A launch of several.
pub(crate) fn pipeline(stages: Vec<LaunchStage>) -> Launch {
    Launch {
        stages,
        private_directory_variables: vec!["HOME".into(), "TMPDIR".into()],
        cwd: OsString::new(),
        stdin: Vec::new(),
        limits: ProcessLimits::default(),
        writes: false,
        direct: None,
        hidden: Vec::new(),
        is_last: false,
        ignores_tmp_links: false,
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
