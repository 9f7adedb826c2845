//! Checks the walls by running into them: a check that was never seen to fail proves little, so each
//! attempt is made for real, and one that must succeed shows that attempts are made at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use capsule_base::root_names::{RootNames, WORKSPACE_MOUNT};
use capsule_base::units;
use capsule_core::confinement::{EnforcementLevel, ProcessLimits, SandboxTier};
use rustix::process::{Pid, test_kill_process};
use rustix::thread::UnshareFlags;

use crate::linux::kernel;
use crate::{
    CommandResult, CommandWatcher, EXECUTOR_ARGUMENT, Executable, Executor, FileIdentity,
    HiddenPath, Launch, LaunchStage, OutputKind, SandboxBackend as _, SandboxError, SandboxView,
    SelfTestResult, StagingMount, Termination,
};

/// The second hidden argument: what follows is attempted from inside.
pub(crate) const PROBE_ARGUMENT: &str = "probe";
/// Where this program appears inside, in a view of its own.
const PROBE_PATH: &str = "/capsule-doctor";
/// What must not come out.
const SECRET: &str = "this must stay a secret";
/// What an attempt ends with when it succeeded; anything else means that it was stopped.
const PROBE_SUCCEEDED: u8 = 42;
/// Processes with numbers of their own begin at 1; an attempt needs no more than these.
const MAX_PROCESSES: u32 = 8;
/// How long an attempt may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the command may take that is to be ended.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

/// Runs into every wall, through a sandbox of its own in a fresh folder.
pub(super) fn self_test() -> Vec<SelfTestResult> {
    match TestSandbox::set_up(None) {
        Ok(mut trial) => trial.run(),
        Err(detail) => {
            vec![SelfTestResult { name: "the sandbox can be set up", passed: false, detail }]
        }
    }
}

/// Has a command write into a staged workspace whose changes are collected in a fresh folder beneath
/// `place`, on the file system that runs will collect them on.
pub(super) fn try_staging(place: &Path) -> SelfTestResult {
    try_staged_write(place, TestChanges::overlay)
}

/// The same with a folder that is shown in place of the workspace, as a copy of it would be.
pub(super) fn try_copying(place: &Path) -> SelfTestResult {
    try_staged_write(place, TestChanges::copied)
}

/// Has the kernel lay changes that are collected beneath `place` over a workspace, in which nothing runs.
///
/// # Errors
/// Why it does not.
pub(super) fn try_overlay(place: &Path, workspace: &Path) -> Result<(), String> {
    let folder = place.join(format!(".capsule-doctor-{}-over", std::process::id()));
    let changes = TestChanges::create(&folder)?;
    let mut executor = Executor::start().map_err(|error| error.to_string())?;
    let view = SandboxView {
        floor: SandboxTier::Basic,
        workspace: File::open(workspace).map_err(error_text)?.into(),
        root_names: RootNames::default(),
        staging: Some(changes.overlay()?),
        hidden: Vec::new(),
        programs: Vec::new(),
        toolchains: Vec::new(),
        repository: None,
        git: crate::GitFiles::default(),
    };
    executor.enter(view).map(drop).map_err(|error| error.to_string())
}

fn try_staged_write(
    place: &Path,
    open: fn(&TestChanges) -> Result<StagingMount, String>,
) -> SelfTestResult {
    let folder = place.join(format!(".capsule-doctor-{}", std::process::id()));
    let tried = TestChanges::create(&folder).and_then(|changes| {
        let mut trial = TestSandbox::set_up(Some(open(&changes)?))?;
        trial.check_staged_write(&changes)
    });
    let passed = tried.is_ok();
    let detail = tried.unwrap_or_else(|why| format!("{why}, in {}", place.display()));
    SelfTestResult { name: "what is written is staged, not done", passed, detail }
}

/// A folder for staged changes. Removed when dropped.
struct TestChanges(PathBuf);

impl TestChanges {
    fn create(folder: &Path) -> Result<Self, String> {
        let make = |path: &Path| fs::create_dir(path).map_err(|error| error.to_string());
        make(folder)?;
        let changes = Self(folder.to_owned());
        make(&changes.0.join("changes"))?;
        make(&changes.0.join("work"))?;
        Ok(changes)
    }

    fn overlay(&self) -> Result<StagingMount, String> {
        Ok(StagingMount::Overlay { changes: self.open("changes")?, work: self.open("work")? })
    }

    fn copied(&self) -> Result<StagingMount, String> {
        self.open("changes").map(StagingMount::Copied)
    }

    fn open(&self, name: &str) -> Result<OwnedFd, String> {
        File::open(self.0.join(name)).map(OwnedFd::from).map_err(|error| error.to_string())
    }
}

impl Drop for TestChanges {
    fn drop(&mut self) {
        // What the kernel keeps there can be entered by nobody.
        let private = fs::Permissions::from_mode(0o700);
        let _ = fs::set_permissions(self.0.join("work/work"), private);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A sandbox with bait in and around it.
struct TestSandbox {
    executor: Executor,
    status_text: String,
    bait: Bait,
    /// Where this program appears inside, to make the attempts.
    probe_path: PathBuf,
    /// Where the workspace appears inside.
    workspace: PathBuf,
}

/// What lies in and around the sandbox. Removed when dropped.
struct Bait {
    directory: PathBuf,
    listener: TcpListener,
    _socket: UnixListener,
}

impl TestSandbox {
    fn set_up(staging: Option<StagingMount>) -> Result<Self, String> {
        let bait = Bait::create().map_err(|error| format!("no bait could be laid: {error}"))?;
        let mut executor = Executor::start().map_err(|error| error.to_string())?;
        let status = executor.sandbox_status().map_err(|error| error.to_string())?;
        let tier = status.tier;
        let gaps: Vec<String> = status
            .gaps()
            .filter(|gap| tier.layers().contains(&gap.layer))
            .map(|gap| format!("{}: {:?}, {}", gap.layer.name(), gap.level, gap.detail))
            .collect();
        let held =
            status.layers.iter().filter(|layer| layer.level == EnforcementLevel::Held).count();
        let walls =
            if gaps.is_empty() { format!("{tier}, {held} layers held") } else { gaps.join("; ") };
        // Without namespaces everything is where it is.
        let (attempter, inside) = match tier {
            SandboxTier::Full => (PathBuf::from(PROBE_PATH), PathBuf::from(WORKSPACE_MOUNT)),
            SandboxTier::Basic => {
                let shown = match &staging {
                    Some(StagingMount::Copied(copy)) => path_of(copy),
                    _ => Ok(bait.workspace()),
                };
                executable_path().and_then(|path| Ok((path, shown?))).map_err(error_text)?
            }
        };
        let file = File::open("/proc/self/exe").map_err(|error| error.to_string())?;
        let workspace = File::open(bait.workspace()).map_err(|error| error.to_string())?;
        let view = SandboxView {
            floor: SandboxTier::Basic,
            workspace: workspace.into(),
            root_names: RootNames::default(),
            staging,
            hidden: hidden_paths(),
            programs: vec![(attempter.clone(), file.into())],
            toolchains: Vec::new(),
            repository: None,
            git: crate::GitFiles::default(),
        };
        executor.enter(view).map_err(|error| error.to_string())?;
        Ok(Self { executor, status_text: walls, bait, probe_path: attempter, workspace: inside })
    }

    /// Writes into the staged workspace.
    fn check_staged_write(&mut self, changes: &TestChanges) -> Result<String, String> {
        let aim = self.inner_path("new");
        let words = ["capsule-doctor", EXECUTOR_ARGUMENT, PROBE_ARGUMENT, "write", &aim];
        let exit = self.execute(None, &words, PROBE_TIMEOUT, true)?;
        let said = String::from_utf8_lossy(&exit.stdout.bytes).trim().to_owned();
        let is_there = |folder: PathBuf| folder.join("new").exists();
        match (
            exit.termination,
            is_there(changes.0.join("changes")),
            is_there(self.bait.workspace()),
        ) {
            (Termination::Exited(code), true, false) if code == i32::from(PROBE_SUCCEEDED) => {
                let sockets = match self.makes_local_sockets()? {
                    true => "local sockets between processes of a call",
                    false => {
                        "no local sockets: a directory is shown over which the kernel lays no layer"
                    }
                };
                Ok(format!("written, and the workspace is as it was; {sockets}"))
            }
            (_, _, true) => Err("it was written into the workspace".into()),
            (how, false, false) => Err(format!("the attempt ended with {how:?}: {said}")),
            (how, true, false) => Err(format!("written, and ended with {how:?}")),
        }
    }

    /// Whether commands that write make sockets in the file system.
    fn makes_local_sockets(&mut self) -> Result<bool, String> {
        let words =
            ["capsule-doctor", EXECUTOR_ARGUMENT, PROBE_ARGUMENT, "listen", "/tmp/capsule-doctor"];
        let exit = self.execute(None, &words, PROBE_TIMEOUT, true)?;
        Ok(exit.termination == Termination::Exited(i32::from(PROBE_SUCCEEDED)))
    }

    fn run(&mut self) -> Vec<SelfTestResult> {
        let walls =
            SelfTestResult { name: "walls", passed: true, detail: self.status_text.clone() };
        let outside = self.bait.directory.join("outside");
        let port = self.bait.listener.local_addr().map_or(0, |address| address.port());
        let parent = std::process::id();
        let executor = self.executor.id();
        vec![
            walls,
            self.check_read("a file of the workspace is read", &self.inner_path("open"), true),
            self.check_read("a file outside is not read", &outside.to_string_lossy(), false),
            self.check_read("a hidden file is not read", &self.inner_path("masked"), false),
            self.check_read("the host's accounts are not read", "/etc/passwd", false),
            self.check_blocked("the workspace is not written", &["write", &self.inner_path("new")]),
            self.check_blocked("the host's network is not reached", &["tcp", &port.to_string()]),
            self.check_blocked(
                "a socket in the workspace is not reached",
                &["local", &self.inner_path("socket")],
            ),
            self.check_signal("this process is not signalled", parent),
            self.check_signal("the executor is not signalled", executor),
            self.check_blocked("no namespace is made", &["namespace"]),
            self.check_timeout(),
        ]
    }

    /// Reads a file with the system's own `cat`.
    fn check_read(&mut self, name: &'static str, path: &str, expected: bool) -> SelfTestResult {
        let exit = self.execute(Some("/bin/cat"), &["cat", path], PROBE_TIMEOUT, false);
        let (passed, detail) = match exit {
            Ok(exit) => {
                let came_out = contains(&exit.stdout.bytes, SECRET);
                let errors = String::from_utf8_lossy(&exit.stderr.bytes).trim().to_owned();
                let detail = if came_out { "it was read".to_owned() } else { errors };
                (came_out == expected, detail)
            }
            Err(error) => (false, error),
        };
        SelfTestResult { name, passed, detail }
    }

    /// Attempts something that must be stopped.
    fn check_blocked(&mut self, name: &'static str, attempt: &[&str]) -> SelfTestResult {
        let mut words = vec!["capsule-doctor", EXECUTOR_ARGUMENT, PROBE_ARGUMENT];
        words.extend(attempt);
        let (passed, detail) = match self.execute(None, &words, PROBE_TIMEOUT, false) {
            Ok(exit) => {
                let said = String::from_utf8_lossy(&exit.stdout.bytes).trim().to_owned();
                match exit.termination {
                    Termination::Exited(code) if code == i32::from(PROBE_SUCCEEDED) => {
                        (false, "it succeeded".to_owned())
                    }
                    Termination::Exited(0) => (true, said),
                    how => (false, format!("the attempt ended with {how:?}")),
                }
            }
            Err(error) => (false, error),
        };
        SelfTestResult { name, passed, detail }
    }

    fn check_signal(&mut self, name: &'static str, number: u32) -> SelfTestResult {
        // With numbers of its own, the attempt may have this one itself. So does whoever runs as the
        // first process of a container.
        if self.probe_path == Path::new(PROBE_PATH) && number < MAX_PROCESSES {
            let detail = format!("the number {number} means another process inside");
            return SelfTestResult { name, passed: true, detail };
        }
        self.check_blocked(name, &["signal", &number.to_string()])
    }

    fn check_timeout(&mut self) -> SelfTestResult {
        let exit = self.execute(Some("/bin/sleep"), &["sleep", "60"], SHORT_TIMEOUT, false);
        let (passed, detail) = match exit {
            Ok(exit) => {
                let how = if exit.termination == Termination::TimedOut {
                    "ended"
                } else {
                    "it ended by itself"
                };
                (
                    exit.termination == Termination::TimedOut,
                    format!("{how} after {} ms", exit.micros / 1000),
                )
            }
            Err(error) => (false, error),
        };
        SelfTestResult { name: "a command that takes too long is ended", passed, detail }
    }

    /// A path of the workspace as it is seen inside.
    fn inner_path(&self, name: &str) -> String {
        self.workspace.join(name).to_string_lossy().into_owned()
    }

    /// Runs a program of the system, or else this one.
    fn execute(
        &mut self,
        program: Option<&str>,
        words: &[&str],
        patience: Duration,
        writes: bool,
    ) -> Result<CommandResult, String> {
        let on_host = Path::new(program.unwrap_or("/proc/self/exe"));
        let path = program.map_or(self.probe_path.as_path(), Path::new);
        let facts =
            fs::metadata(on_host).map_err(|error| format!("{}: {error}", path.display()))?;
        let launch = Launch {
            stages: vec![LaunchStage {
                program: Executable {
                    path: path.to_owned(),
                    identity: FileIdentity::from_metadata(&facts),
                },
                argv: words.iter().map(OsString::from).collect(),
                environment: vec![("LC_ALL".into(), "C".into())],
                redirects: Vec::new(),
            }],
            private_directory_variables: vec!["TMPDIR".into()],
            cwd: OsString::new(),
            stdin: Vec::new(),
            limits: ProcessLimits {
                timeout_ms: units::millis(patience),
                ..ProcessLimits::default()
            },
            writes,
            ignores_tmp_links: false,
            direct: None,
            hidden: hidden_paths(),
            is_last: false,
        };
        let exit = self.executor.run(launch, &mut NullWatcher);
        exit.map_err(|error: SandboxError| error.to_string())
    }
}

impl Bait {
    fn create() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("capsule-doctor-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().canonicalize()?.join(name);
        // Fails if anybody has made it before, so nobody else's files are used or removed.
        fs::create_dir(&folder)?;
        let workspace = folder.join("workspace");
        let made = fs::create_dir(&workspace).and_then(|()| {
            fs::write(folder.join("outside"), SECRET)?;
            fs::write(workspace.join("open"), SECRET)?;
            fs::write(workspace.join("masked"), SECRET)?;
            let socket = UnixListener::bind(workspace.join("socket"))?;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            Ok((listener, socket))
        });
        match made {
            Ok((listener, socket)) => Ok(Self { directory: folder, listener, _socket: socket }),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }

    fn workspace(&self) -> PathBuf {
        self.directory.join("workspace")
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What is hidden from every attempt.
fn hidden_paths() -> Vec<HiddenPath> {
    vec![HiddenPath { path: "masked".into() }]
}

fn error_text(error: std::io::Error) -> String {
    error.to_string()
}

/// Where an open folder is.
fn path_of(folder: &OwnedFd) -> std::io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Where this program is.
fn executable_path() -> std::io::Result<PathBuf> {
    std::env::current_exe()?.canonicalize()
}

/// Nobody watches a check.
struct NullWatcher;

impl CommandWatcher for NullWatcher {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Makes one attempt, inside. Ends with [`SUCCEEDED`] if nothing stopped it, and with 0 and the
/// reason on its standard output if something did.
pub(crate) fn run_probe(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(what), aim) = (words.next(), words.next().unwrap_or_default()) else {
        return ExitCode::FAILURE;
    };
    match attempt(&what, &aim) {
        Some(Ok(())) => ExitCode::from(PROBE_SUCCEEDED),
        Some(Err(reason)) => {
            let _ = rustix::io::write(rustix::stdio::stdout(), reason.to_string().as_bytes());
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

fn attempt(what: &OsStr, aim: &OsStr) -> Option<std::io::Result<()>> {
    let number = || aim.to_str().and_then(|aim| aim.parse::<u16>().ok());
    Some(match what.to_str()? {
        "write" => File::create(aim).map(drop),
        "tcp" => {
            let host = SocketAddr::from((Ipv4Addr::LOCALHOST, number()?));
            TcpStream::connect_timeout(&host, Duration::from_secs(1)).map(drop)
        }
        "local" => UnixStream::connect(aim).map(drop),
        "listen" => {
            UnixListener::bind(aim).and_then(|_listener| UnixStream::connect(aim)).map(drop)
        }
        "signal" => {
            let process = aim.to_str()?.parse().ok().and_then(Pid::from_raw)?;
            test_kill_process(process).map_err(std::io::Error::from)
        }
        "namespace" => kernel::unshare(UnshareFlags::NEWUSER).map_err(std::io::Error::from),
        _ => return None,
    })
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
