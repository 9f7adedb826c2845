//! What runs in a container first: it starts the agent, passes signals on, and ends everything when the wrapper on the
//! host has ended.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// The hidden first argument, before the version of the wrapper and the command of the agent.
pub(crate) const ARGUMENT: &str = "__capsule-lease";
/// Where the pipe is.
pub(super) const LEASE: &str = "/run/capsule/lease";
/// Where the user's configuration is, to which a link of the home directory leads.
pub(super) const CONFIGURATION: &str = "/run/capsule/config";

/// How long a terminal is waited for to have a size, and how long between two looks.
const SIZE_TIME: Duration = Duration::from_secs(2);
const SIZE_PAUSE: Duration = Duration::from_millis(5);

/// The exit status where nothing is run.
const REFUSED: u8 = 8;
/// The exit status where the program is not there, as shells have it.
const NOT_FOUND: u8 = 127;
/// Signals show in exit statuses from here on, as in shells.
pub(super) const SIGNAL_STATUS: i32 = 128;

/// Lives the whole life of that process.
pub(crate) fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(2);
    let version = arguments.next().unwrap_or_default();
    if version != env!("CARGO_PKG_VERSION") {
        let version_here = env!("CARGO_PKG_VERSION");
        let theirs = version.to_string_lossy();
        eprint(&format!(
            "error: the Docker image has Capsule {version_here}, and this is {theirs} [sandbox.failed]"
        ));
        eprint("hint: run `docker compose build` in the directory of Capsule's sources");
        return ExitCode::from(REFUSED);
    }
    let Some(lease) = Lease::take() else { return ExitCode::from(REFUSED) };
    link_configuration();
    wait_for_size();
    let Some(program) = arguments.next() else { return ExitCode::from(REFUSED) };
    let mut child = match Command::new(&program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = program.to_string_lossy();
            eprint(&format!(
                "error: `{program}` cannot be started in the container: {error} [exec.not-found]"
            ));
            eprint(
                "hint: the image has its own programs: name one of them, or build an image that has it",
            );
            return ExitCode::from(NOT_FOUND);
        }
    };
    let agent = Pid::from_child(&child);
    pass_signals(agent);
    std::thread::spawn(move || {
        lease.wait_for_end();
        let _ = kill_process(agent, Signal::KILL);
    });
    let status = child.wait().ok();
    let code = status.and_then(|status| {
        status.code().or_else(|| status.signal().map(|signal| SIGNAL_STATUS + signal))
    });
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// There is no screen so far.
fn eprint(line: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), format!("{line}\n").as_bytes());
}

/// The configuration where it is looked for without a variable. The home directory is the agent's own.
fn link_configuration() {
    let Some(home) = std::env::var_os("HOME") else { return };
    let directory = Path::new(&home).join(".config");
    if Path::new(CONFIGURATION).exists() && std::fs::create_dir_all(&directory).is_ok() {
        let _ = symlink(CONFIGURATION, directory.join("capsule"));
    }
}

/// Waits until the terminal has a size: Docker gives it one once the container has begun, and a program that looks before
/// draws for a window of nothing.
fn wait_for_size() {
    let end = Instant::now() + SIZE_TIME;
    let has_none = || {
        let size = tcgetwinsize(io::stdout());
        size.is_ok_and(|size| (size.ws_row, size.ws_col) == (0, 0))
    };
    while has_none() && Instant::now() < end {
        std::thread::sleep(SIZE_PAUSE);
    }
}

/// Passes signals on to the agent. Keys of a terminal reach it by themselves.
fn pass_signals(agent: Pid) {
    let is_terminal = io::stdin().is_terminal();
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    else {
        return;
    };
    std::thread::spawn(move || {
        for number in signals.forever() {
            let is_key = is_terminal && matches!(number, SIGINT | SIGQUIT);
            if let Some(signal) = Signal::from_named_raw(number).filter(|_| !is_key) {
                let _ = kill_process(agent, signal);
            }
        }
    });
}

/// The reading end of the pipe.
struct Lease(File);

impl Lease {
    /// Opens it. What the wrapper wrote before it started the container is there as long as it holds the other end.
    fn take() -> Option<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
        let pipe = File::options().read(true).custom_flags(flags).open(LEASE).ok()?;
        let is_held = (&pipe).read(&mut [0; 1]).is_ok_and(|count| count == 1);
        is_held.then_some(Self(pipe))
    }

    /// Waits until the other end is closed.
    fn wait_for_end(&self) {
        loop {
            let mut pipe = PollFd::new(&self.0, PollFlags::empty());
            let waited = poll(std::slice::from_mut(&mut pipe), None);
            let is_interrupted = waited == Err(Errno::INTR);
            if !is_interrupted && (waited.is_err() || pipe.revents().contains(PollFlags::HUP)) {
                return;
            }
        }
    }
}
