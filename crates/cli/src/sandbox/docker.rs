//! An agent in a container of Docker, by its program `docker`.
//!
//! The container is removed with its end, whatever ends the wrapper: it holds the writing end of a pipe by name, and a
//! small process in the container ends everything there when it is closed.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use capsule_base::code::Code;
use capsule_base::root_names::WORKSPACE_MOUNT;
use capsule_core::outcome::CodedError;
use capsule_sandbox::make_named_pipe;
use rustix::process::{Pid, Signal, getgid, getuid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::lease;
use super::plan::{AgentPlan, CAPSULE_DIRECTORY, inside};
use crate::args::SandboxNetworkArg;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::Screen;

/// The image, where no other one is named.
const IMAGE: &str = "capsule-sandbox";
/// The variable that names another one.
const IMAGE_VARIABLE: &str = "CAPSULE_SANDBOX_IMAGE";
/// The program in the image.
const PROGRAM: &str = "/app/capsule";
/// The home directory in the container.
const HOME: &str = "/home/agent";
/// How often the container is asked for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a container that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);
/// Signals that are passed on to `docker run`, which passes them on to the agent.
const PASSED: [i32; 2] = [SIGTERM, SIGHUP];
/// Those that the keys of a terminal send to `docker run`, too.
const KEYS: [i32; 2] = [SIGINT, SIGQUIT];

pub(super) fn run(plan: &AgentPlan, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let image = std::env::var(IMAGE_VARIABLE).unwrap_or_else(|_| IMAGE.to_owned());
    require_image(&image)?;
    let lease = Lease::create(&ctx.store.with_file_name("leases")).map_err(|error| {
        let message = format!("the lease of the container cannot be made: {error}");
        Failure::from(CodedError::new(Code::SandboxFailed, message))
    })?;
    let signals = Signals::catch();
    plan.show_header(&format!("docker · image {image}"), None, screen);
    let name = format!("capsule-sandbox-{}-{}", std::process::id(), micros());
    let child = command(plan, (&image, &name), &lease.path).spawn();
    let child = child.map_err(|error| missing_docker(&error))?;
    let (status, was_signalled) =
        wait(child, lease, &signals).map_err(|error| missing_docker(&error))?;
    if was_signalled {
        // `docker run` may have ended between making the container and starting it.
        let _ = runs_quietly(&["rm", "--force", &name]);
    }
    Ok(exit_status(status))
}

/// The time, which no two wrappers with the same number share.
fn micros() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros()
}

fn exit_status(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn docker() -> Command {
    Command::new("docker")
}

/// Whether `docker` does this.
fn runs_quietly(words: &[&str]) -> Result<bool, Failure> {
    let mut command = docker();
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(|status| status.success()).map_err(|error| missing_docker(&error))
}

fn missing_docker(error: &io::Error) -> Failure {
    let (message, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            "Docker is required for `--backend docker`, and there is no program `docker`"
                .to_owned(),
            "install Docker, or leave `--backend docker` away: namespaces need none",
        ),
        _ => (format!("`docker` cannot be started: {error}"), "see whether `docker version` works"),
    };
    CodedError::new(Code::SandboxFailed, message).with_suggestion(hint).into()
}

/// Makes sure that a daemon listens and has the image.
fn require_image(image: &str) -> Result<(), Failure> {
    if runs_quietly(&["image", "inspect", image])? {
        return Ok(());
    }
    let (message, hint) = match runs_quietly(&["version"])? {
        true => (
            format!("the Docker image `{image}` is not built"),
            "run `docker compose build` in the directory of Capsule's sources",
        ),
        false => (
            "the Docker daemon does not answer this user".to_owned(),
            "start it (`sudo systemctl start docker`), and see whether `docker version` works",
        ),
    };
    Err(CodedError::new(Code::SandboxFailed, message).with_suggestion(hint).into())
}

/// The container: nothing of the host but the workspace, the configuration and the lease.
fn command(plan: &AgentPlan, (image, name): (&str, &str), lease: &Path) -> Command {
    let mut run = docker();
    run.args(["run", "--rm", "--init", "--interactive", "--read-only"]);
    run.args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
    run.args(["--name", name, "--label", "capsule.sandbox=1", "--hostname", "capsule"]);
    run.args(["--user", &format!("{}:{}", getuid().as_raw(), getgid().as_raw())]);
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        run.arg("--tty");
    }
    match plan.network {
        SandboxNetworkArg::Open => {
            run.args(["--add-host", "host.docker.internal:host-gateway"]);
        }
        SandboxNetworkArg::None | SandboxNetworkArg::Proxy => {
            run.args(["--network", "none"]);
        }
    }
    run.args(["--tmpfs", &format!("{HOME}:exec,mode=1777")]);
    if plan.has_tmp {
        run.args(["--tmpfs", "/tmp:exec,mode=1777"]);
    }
    bind(&mut run, &plan.workspace, WORKSPACE_MOUNT, false);
    let layer = plan.workspace.join(CAPSULE_DIRECTORY);
    if layer.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
        bind(&mut run, &layer, &format!("{WORKSPACE_MOUNT}/{CAPSULE_DIRECTORY}"), true);
    }
    if plan.config.is_dir() {
        bind(&mut run, &plan.config, lease::CONFIGURATION, true);
    }
    if let Some(policy) = plan.policy.as_ref().filter(|path| !path.starts_with(&plan.workspace)) {
        bind(&mut run, policy, &inside(&plan.workspace, policy).display().to_string(), true);
    }
    bind(&mut run, lease, lease::LEASE, false);
    for (name, value) in &plan.passed.variables {
        // By name: a value would show in the list of processes.
        run.arg("--env").arg(name).env(name, value);
    }
    let home = format!("HOME={HOME}");
    for variable in [home.as_str(), "CAPSULE_SANDBOX=docker", "IS_SANDBOX=1"] {
        run.args(["--env", variable]);
    }
    run.args(["--workdir", WORKSPACE_MOUNT, "--entrypoint", PROGRAM, image]);
    run.args([lease::ARGUMENT, env!("CARGO_PKG_VERSION")]);
    run.args(plan.command.clone().unwrap_or_else(|| plan.chat.clone()));
    run
}

/// Shows a path of the host in the container.
fn bind(run: &mut Command, source: &Path, target: &str, read_only: bool) {
    let mut mount = OsString::from("type=bind,\"source=");
    mount.push(source.as_os_str());
    mount.push(format!("\",\"target={target}\""));
    if read_only {
        mount.push(",readonly");
    }
    run.arg("--mount").arg(mount);
}

/// A pipe by name, whose writing end this process has.
struct Lease {
    path: PathBuf,
    pipe: File,
    is_named: bool,
}

impl Lease {
    /// Makes one in a directory, and removes those of wrappers that were killed before their container had them.
    fn create(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        for entry in fs::read_dir(directory)?.flatten() {
            if !Path::new("/proc").join(entry.file_name()).exists() {
                let _ = fs::remove_file(entry.path());
            }
        }
        let path = directory.join(std::process::id().to_string());
        make_named_pipe(&path)?;
        // With both ends it does not wait for the other side.
        let pipe = File::options().read(true).write(true).custom_flags(0).open(&path)?;
        (&pipe).write_all(b"!")?;
        Ok(Self { path, pipe, is_named: true })
    }

    /// Takes the name away once the other side has opened it.
    fn forget_name(&mut self) {
        if self.is_named && rustix::io::ioctl_fionread(&self.pipe) == Ok(0) {
            self.is_named = fs::remove_file(&self.path).is_err();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_named {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The signals that this process got.
struct Signals(Vec<(i32, Arc<AtomicBool>)>);

impl Signals {
    fn catch() -> Self {
        let catch = |signal: i32| {
            let came = Arc::new(AtomicBool::new(false));
            let _ = signal_hook::flag::register(signal, Arc::clone(&came));
            (signal, came)
        };
        Self(PASSED.into_iter().chain(KEYS).map(catch).collect())
    }

    /// Those that came since the last time, each with whether it is to be passed on.
    fn take(&self) -> impl Iterator<Item = (i32, bool)> {
        let is_terminal = io::stdin().is_terminal();
        let came = self.0.iter().filter(|(_, came)| came.swap(false, Ordering::Relaxed));
        came.map(move |(signal, _)| (*signal, !is_terminal || PASSED.contains(signal)))
    }
}

/// Waits for the end of `docker run`. The lease ends with it, or some time after the container was asked to end.
fn wait(mut child: Child, lease: Lease, signals: &Signals) -> io::Result<(ExitStatus, bool)> {
    let mut lease = Some(lease);
    let (mut deadline, mut was_signalled) = (None, false);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, was_signalled));
        }
        if let Some(lease) = &mut lease {
            lease.forget_name();
        }
        for (number, is_passed) in signals.take() {
            was_signalled = true;
            if let Some(signal) = Signal::from_named_raw(number).filter(|_| is_passed) {
                let _ = kill_process(Pid::from_child(&child), signal);
                deadline = deadline.or_else(|| Instant::now().checked_add(GRACE));
            }
        }
        if deadline.is_some_and(|end| Instant::now() >= end) {
            lease = None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
