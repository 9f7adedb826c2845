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

use capsule_core::confinement::{EnforcementLevel, ProcessLimits, SandboxTier};
use capsule_core::path::WORKSPACE_MOUNT;
use capsule_core::units;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::UnshareFlags;

use crate::{
    EXECUTOR_ARGUMENT, Executor, Exit, FileIdentity, How, Launch, Mask, Program, SandboxError,
    Stage, Staging, Stream, View, Watch, kernel,
};

/// The second hidden argument: what follows is attempted from inside.
pub(crate) const PROBE: &str = "probe";
/// Where this program appears inside, in a view of its own.
const ATTEMPTER: &str = "/capsule-doctor";
/// What must not come out.
const SECRET: &str = "this must stay a secret";
/// What an attempt ends with when it succeeded; anything else means that it was stopped.
const SUCCEEDED: u8 = 42;
/// Processes with numbers of their own begin at 1; an attempt needs no more than these.
const INSIDE: u32 = 8;
/// How long an attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the command may take that is to be ended.
const BRIEFLY: Duration = Duration::from_millis(300);

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub name: &'static str,
    /// Whether all is well.
    pub passed: bool,
    /// What happened.
    pub detail: String,
}

/// Runs into every wall, through a sandbox of its own in a fresh folder.
#[must_use]
pub fn self_test() -> Vec<Finding> {
    match Trial::set_up(None) {
        Ok(mut trial) => trial.run(),
        Err(detail) => vec![Finding { name: "the sandbox can be set up", passed: false, detail }],
    }
}

/// Has a command write into a staged workspace whose changes are collected in a fresh folder beneath
/// `place`, on the file system that runs will collect them on.
#[must_use]
pub fn try_staging(place: &Path) -> Finding {
    try_writing(place, Changes::overlay)
}

/// The same with a folder that is shown in place of the workspace, as a copy of it would be.
#[must_use]
pub fn try_copying(place: &Path) -> Finding {
    try_writing(place, Changes::copied)
}

/// Has the kernel lay changes that are collected beneath `place` over a workspace, in which nothing runs.
///
/// # Errors
/// Why it does not.
pub fn try_laying(place: &Path, workspace: &Path) -> Result<(), String> {
    let folder = place.join(format!(".capsule-doctor-{}-over", std::process::id()));
    let changes = Changes::lay(&folder)?;
    let mut executor = Executor::start().map_err(|error| error.to_string())?;
    let view = View {
        floor: SandboxTier::Landlock,
        workspace: File::open(workspace).map_err(text)?.into(),
        staging: Some(changes.overlay()?),
        masks: Vec::new(),
        programs: Vec::new(),
    };
    executor.enter(view).map(drop).map_err(|error| error.to_string())
}

fn try_writing(place: &Path, open: fn(&Changes) -> Result<Staging, String>) -> Finding {
    let folder = place.join(format!(".capsule-doctor-{}", std::process::id()));
    let tried = Changes::lay(&folder).and_then(|changes| {
        let mut trial = Trial::set_up(Some(open(&changes)?))?;
        trial.stages(&changes)
    });
    let passed = tried.is_ok();
    let detail = tried.unwrap_or_else(|why| format!("{why}, in {}", place.display()));
    Finding { name: "what is written is staged, not done", passed, detail }
}

/// A folder for staged changes. Removed when dropped.
struct Changes(PathBuf);

impl Changes {
    fn lay(folder: &Path) -> Result<Self, String> {
        let make = |path: &Path| fs::create_dir(path).map_err(|error| error.to_string());
        make(folder)?;
        let own = Self(folder.to_owned());
        make(&own.0.join("changes"))?;
        make(&own.0.join("work"))?;
        Ok(own)
    }

    fn overlay(&self) -> Result<Staging, String> {
        Ok(Staging::Overlay { changes: self.open("changes")?, work: self.open("work")? })
    }

    fn copied(&self) -> Result<Staging, String> {
        self.open("changes").map(Staging::Copied)
    }

    fn open(&self, name: &str) -> Result<OwnedFd, String> {
        File::open(self.0.join(name)).map(OwnedFd::from).map_err(|error| error.to_string())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // What the kernel keeps there can be entered by nobody.
        let private = fs::Permissions::from_mode(0o700);
        let _ = fs::set_permissions(self.0.join("work/work"), private);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A sandbox with bait in and around it.
struct Trial {
    executor: Executor,
    walls: String,
    bait: Bait,
    /// Where this program appears inside, to make the attempts.
    attempter: PathBuf,
    /// Where the workspace appears inside.
    workspace: PathBuf,
}

/// What lies in and around the sandbox. Removed when dropped.
struct Bait {
    folder: PathBuf,
    listener: TcpListener,
    _socket: UnixListener,
}

impl Trial {
    fn set_up(staging: Option<Staging>) -> Result<Self, String> {
        let bait = Bait::lay().map_err(|error| format!("no bait could be laid: {error}"))?;
        let mut executor = Executor::start().map_err(|error| error.to_string())?;
        let walls = executor.walls().map_err(|error| error.to_string())?;
        let tier = walls.tier;
        let gaps: Vec<String> = walls
            .gaps()
            .filter(|gap| tier.layers().contains(&gap.layer))
            .map(|gap| format!("{}: {:?}, {}", gap.layer.name(), gap.level, gap.detail))
            .collect();
        let held =
            walls.layers.iter().filter(|layer| layer.level == EnforcementLevel::Held).count();
        let walls =
            if gaps.is_empty() { format!("{tier}, {held} layers held") } else { gaps.join("; ") };
        // Without namespaces everything is where it is.
        let (attempter, inside) = match tier {
            SandboxTier::Namespaces => (PathBuf::from(ATTEMPTER), PathBuf::from(WORKSPACE_MOUNT)),
            SandboxTier::Landlock => {
                let shown = match &staging {
                    Some(Staging::Copied(copy)) => place_of(copy),
                    _ => Ok(bait.workspace()),
                };
                own_path().and_then(|own| Ok((own, shown?))).map_err(text)?
            }
        };
        let own = File::open("/proc/self/exe").map_err(|error| error.to_string())?;
        let workspace = File::open(bait.workspace()).map_err(|error| error.to_string())?;
        let view = View {
            floor: SandboxTier::Landlock,
            workspace: workspace.into(),
            staging,
            masks: hidden(),
            programs: vec![(attempter.clone(), own.into())],
        };
        executor.enter(view).map_err(|error| error.to_string())?;
        Ok(Self { executor, walls, bait, attempter, workspace: inside })
    }

    /// Writes into the staged workspace.
    fn stages(&mut self, changes: &Changes) -> Result<String, String> {
        let aim = self.inside("new");
        let words = ["capsule-doctor", EXECUTOR_ARGUMENT, PROBE, "write", &aim];
        let exit = self.execute(None, &words, PATIENCE, true)?;
        let said = String::from_utf8_lossy(&exit.stdout.bytes).trim().to_owned();
        let is_there = |folder: PathBuf| folder.join("new").exists();
        match (exit.how, is_there(changes.0.join("changes")), is_there(self.bait.workspace())) {
            (How::Exited(code), true, false) if code == i32::from(SUCCEEDED) => {
                Ok("written, and the workspace is as it was".into())
            }
            (_, _, true) => Err("it was written into the workspace".into()),
            (how, false, false) => Err(format!("the attempt ended with {how:?}: {said}")),
            (how, true, false) => Err(format!("written, and ended with {how:?}")),
        }
    }

    fn run(&mut self) -> Vec<Finding> {
        let walls = Finding { name: "walls", passed: true, detail: self.walls.clone() };
        let outside = self.bait.folder.join("outside");
        let port = self.bait.listener.local_addr().map_or(0, |address| address.port());
        let parent = std::process::id();
        let executor = self.executor.id();
        vec![
            walls,
            self.reads("a file of the workspace is read", &self.inside("open"), true),
            self.reads("a file outside is not read", &outside.to_string_lossy(), false),
            self.reads("a hidden file is not read", &self.inside("masked"), false),
            self.reads("the host's accounts are not read", "/etc/passwd", false),
            self.stops("the workspace is not written", &["write", &self.inside("new")]),
            self.stops("the host's network is not reached", &["tcp", &port.to_string()]),
            self.stops(
                "a socket in the workspace is not reached",
                &["local", &self.inside("socket")],
            ),
            self.signals("this process is not signalled", parent),
            self.signals("the executor is not signalled", executor),
            self.stops("no namespace is made", &["namespace"]),
            self.ends_in_time(),
        ]
    }

    /// Reads a file with the system's own `cat`.
    fn reads(&mut self, name: &'static str, path: &str, expected: bool) -> Finding {
        let exit = self.execute(Some("/bin/cat"), &["cat", path], PATIENCE, false);
        let (passed, detail) = match exit {
            Ok(exit) => {
                let came_out = contains(&exit.stdout.bytes, SECRET);
                let errors = String::from_utf8_lossy(&exit.stderr.bytes).trim().to_owned();
                let detail = if came_out { "it was read".to_owned() } else { errors };
                (came_out == expected, detail)
            }
            Err(error) => (false, error),
        };
        Finding { name, passed, detail }
    }

    /// Attempts something that must be stopped.
    fn stops(&mut self, name: &'static str, attempt: &[&str]) -> Finding {
        let mut words = vec!["capsule-doctor", EXECUTOR_ARGUMENT, PROBE];
        words.extend(attempt);
        let (passed, detail) = match self.execute(None, &words, PATIENCE, false) {
            Ok(exit) => {
                let said = String::from_utf8_lossy(&exit.stdout.bytes).trim().to_owned();
                match exit.how {
                    How::Exited(code) if code == i32::from(SUCCEEDED) => {
                        (false, "it succeeded".to_owned())
                    }
                    How::Exited(0) => (true, said),
                    how => (false, format!("the attempt ended with {how:?}")),
                }
            }
            Err(error) => (false, error),
        };
        Finding { name, passed, detail }
    }

    fn signals(&mut self, name: &'static str, number: u32) -> Finding {
        // With numbers of its own, the attempt may have this one itself. So does whoever runs as the
        // first process of a container.
        if self.attempter == Path::new(ATTEMPTER) && number < INSIDE {
            let detail = format!("the number {number} means another process inside");
            return Finding { name, passed: true, detail };
        }
        self.stops(name, &["signal", &number.to_string()])
    }

    fn ends_in_time(&mut self) -> Finding {
        let exit = self.execute(Some("/bin/sleep"), &["sleep", "60"], BRIEFLY, false);
        let (passed, detail) = match exit {
            Ok(exit) => {
                let how = if exit.how == How::TimedOut { "ended" } else { "it ended by itself" };
                (exit.how == How::TimedOut, format!("{how} after {} ms", exit.micros / 1000))
            }
            Err(error) => (false, error),
        };
        Finding { name: "a command that takes too long is ended", passed, detail }
    }

    /// A path of the workspace as it is seen inside.
    fn inside(&self, name: &str) -> String {
        self.workspace.join(name).to_string_lossy().into_owned()
    }

    /// Runs a program of the system, or else this one.
    fn execute(
        &mut self,
        program: Option<&str>,
        words: &[&str],
        patience: Duration,
        writes: bool,
    ) -> Result<Exit, String> {
        let on_host = Path::new(program.unwrap_or("/proc/self/exe"));
        let path = program.map_or(self.attempter.as_path(), Path::new);
        let facts =
            fs::metadata(on_host).map_err(|error| format!("{}: {error}", path.display()))?;
        let launch = Launch {
            stages: vec![Stage {
                program: Program { path: path.to_owned(), identity: FileIdentity::of(&facts) },
                argv: words.iter().map(OsString::from).collect(),
                environment: vec![("LC_ALL".into(), "C".into())],
                redirects: Vec::new(),
            }],
            private: vec!["TMPDIR".into()],
            cwd: OsString::new(),
            stdin: Vec::new(),
            limits: ProcessLimits {
                timeout_ms: units::millis(patience),
                ..ProcessLimits::default()
            },
            writes,
            direct: None,
            masks: hidden(),
            last: false,
        };
        let exit = self.executor.run(launch, &mut Silent);
        exit.map_err(|error: SandboxError| error.to_string())
    }
}

impl Bait {
    fn lay() -> std::io::Result<Self> {
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
            Ok((listener, socket)) => Ok(Self { folder, listener, _socket: socket }),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }

    fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What is hidden from every attempt.
fn hidden() -> Vec<Mask> {
    vec![Mask { path: "masked".into() }]
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

/// Where an open folder is.
fn place_of(folder: &OwnedFd) -> std::io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Where this program is.
fn own_path() -> std::io::Result<PathBuf> {
    std::env::current_exe()?.canonicalize()
}

/// Nobody watches a check.
struct Silent;

impl Watch for Silent {
    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// Makes one attempt, inside. Ends with [`SUCCEEDED`] if nothing stopped it, and with 0 and the
/// reason on its standard output if something did.
pub(crate) fn probe(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(what), aim) = (words.next(), words.next().unwrap_or_default()) else {
        return ExitCode::FAILURE;
    };
    match attempt(&what, &aim) {
        Some(Ok(())) => ExitCode::from(SUCCEEDED),
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
