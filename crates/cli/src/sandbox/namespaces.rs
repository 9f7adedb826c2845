//! An agent behind namespaces.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::root_names::WORKSPACE_MOUNT;
use capsule_core::outcome::CodedError;
use capsule_runtime::{ToolchainDirectory, well_known_toolchains};
use capsule_sandbox::{
    AgentEvent, AgentLaunch, AgentMount, AgentNetwork, Executor, SandboxBackend as _, SandboxError,
    open_place,
};

use super::attach;
use super::lease::SIGNAL_STATUS;
use super::plan::{AgentPlan, CAPSULE_DIRECTORY, inside};
use super::program::ProgramSearch;
use crate::args::SandboxNetworkArg;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::Screen;

/// The directories of programs of every system, behind those of the user.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// The home directory where that of the user cannot be one.
const OTHER_HOME: &str = "/home/agent";
/// Places of the sandbox itself, in which no home directory can be.
const TAKEN: [&str; 6] = ["/proc", "/dev", "/sys", "/etc", "/var/tmp", WORKSPACE_MOUNT];
/// What of `/etc` programs with a network look for.
const NETWORK_FILES: [&str; 3] = ["/etc/services", "/etc/protocols", "/etc/gai.conf"];
/// Where the agent finds this program, behind all others.
const CAPSULE_PROGRAMS: &str = "/run/capsule/bin";
const CAPSULE_PROGRAM: &str = "/run/capsule/bin/capsule";

pub(super) fn run(plan: &AgentPlan, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let launch = launch(plan, ctx)?;
    let mut agent = Executor::prepare_agent(&launch).map_err(unable)?;
    plan.show_header("namespaces", None, screen);
    let ended = attach::attach(&mut agent, None).map_err(unable)?;
    let status = match ended {
        AgentEvent::Exited(code) => code,
        AgentEvent::Killed(signal) | AgentEvent::Stopped(signal) => SIGNAL_STATUS + signal,
    };
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

fn unable(error: SandboxError) -> Failure {
    sandbox_problem(&error).into()
}

/// Why an agent is not confined, or not started.
pub(super) fn sandbox_problem(error: &SandboxError) -> CodedError {
    let (code, hint) = match error {
        SandboxError::UnsupportedPlatform { .. } => (
            Code::SandboxUnsupportedPlatform,
            "`--backend docker` needs nothing of this system but Docker",
        ),
        SandboxError::NotExecutable { .. } | SandboxError::ProgramMissing { .. } => {
            (Code::ExecNotFound, "name a program of this machine, by name or path")
        }
        _ => (Code::SandboxFailed, "`capsule doctor` says what this machine allows"),
    };
    CodedError::new(code, error.to_string()).with_suggestion(hint)
}

/// Collects what the agent sees.
pub(super) fn launch(plan: &AgentPlan, ctx: &CliContext) -> Result<AgentLaunch, Failure> {
    let toolchains = well_known_toolchains(&ctx.home, Some(&plan.workspace));
    let home = home(ctx, plan);
    let program = locate(plan, ctx, &toolchains)?;
    let mut view = View { mounts: Vec::new(), links: program.links };
    for shown in &toolchains {
        view.show_toolchain(shown);
    }
    for mount in program.mounts {
        view.show(&mount, &mount);
    }
    view.show_capsule()?;
    if let Some(policy) = plan.policy.as_ref().filter(|path| !path.starts_with(&plan.workspace)) {
        view.show(policy, policy);
    }
    // Wherever the user has it, an agent finds it where it is looked for without a variable.
    view.show(&home.join(".config/capsule"), &plan.config);
    let has_network = plan.network == SandboxNetworkArg::Open;
    for path in NETWORK_FILES.iter().filter(|_| has_network) {
        view.show(Path::new(path), Path::new(path));
    }
    if !plan.has_tmp {
        view.mounts.retain(|mount| !mount.path.starts_with("/tmp"));
        view.links.retain(|(link, _)| !link.starts_with("/tmp"));
    }
    let path = program_path(plan, &view);
    view.mounts.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(AgentLaunch {
        workspace: open_place(&plan.workspace)
            .map_err(|error| cannot_open(&plan.workspace, &error))?,
        read_only: read_only(plan, ctx),
        mounts: view.mounts,
        links: view.links,
        files: configuration(plan.network),
        environment: environment(plan, &home, &path),
        home,
        has_tmp: plan.has_tmp,
        network: match has_network {
            true => AgentNetwork::Host,
            false => AgentNetwork::Private(Vec::new()),
        },
        program: program.path,
        argv: program.argv,
        streams: attach::given_streams()
            .map_err(|error| cannot_open(Path::new("standard streams"), &error))?,
    })
}

fn cannot_open(path: &Path, error: &std::io::Error) -> Failure {
    CodedError::new(Code::SandboxFailed, format!("`{}` cannot be opened: {error}", path.display()))
        .into()
}

/// The home directory inside: at the path of the user's, so that what is installed there is where it was.
fn home(ctx: &CliContext, plan: &AgentPlan) -> PathBuf {
    let is_taken = TAKEN.iter().any(|taken| ctx.home.starts_with(taken))
        || Executor::is_system_path(&ctx.home)
        || !ctx.home.is_absolute()
        || ctx.home.parent().is_none()
        || ctx.home == Path::new("/tmp")
        || (!plan.has_tmp && ctx.home.starts_with("/tmp"));
    if is_taken { OTHER_HOME.into() } else { ctx.home.clone() }
}

/// The program of an agent, and what is shown for it.
struct LocatedProgram {
    path: PathBuf,
    argv: Vec<OsString>,
    mounts: Vec<PathBuf>,
    links: Vec<(PathBuf, PathBuf)>,
}

fn locate(
    plan: &AgentPlan,
    ctx: &CliContext,
    toolchains: &[ToolchainDirectory],
) -> Result<LocatedProgram, Failure> {
    let is_shown = |path: &Path| {
        let is_in = |shown: &ToolchainDirectory| {
            path.starts_with(&shown.real) || path.starts_with(&shown.path)
        };
        Executor::is_system_path(path) || toolchains.iter().any(is_in)
    };
    let search = ProgramSearch {
        path: user_path(),
        cwd: &ctx.cwd,
        home: &ctx.home,
        workspace: &plan.workspace,
        is_shown: &is_shown,
    };
    let (path, argv) = match plan.command.as_deref() {
        None => (PathBuf::from(CAPSULE_PROGRAM), plan.chat.clone()),
        Some([name, ..]) if name == "capsule" => {
            (PathBuf::from(CAPSULE_PROGRAM), plan.command.clone().unwrap_or_default())
        }
        Some(command) => {
            let name = command.first().map_or(OsStr::new(""), OsString::as_os_str);
            let found = search.find(name).ok_or_else(|| {
                let message = format!("there is no program `{}`", name.to_string_lossy());
                let hint = "name it by its path, or install it: what is on the PATH of this shell is found";
                Failure::from(CodedError::new(Code::ExecNotFound, message).with_suggestion(hint))
            })?;
            (found, command.to_vec())
        }
    };
    // Links of directories are followed, the program's own is not: it may choose by the name.
    let real = path.parent().and_then(|parent| parent.canonicalize().ok());
    let path = match (real, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path,
    };
    let shown = search.collect(&path);
    Ok(LocatedProgram {
        path: inside(&plan.workspace, &path),
        argv,
        mounts: shown.mounts,
        links: shown.links,
    })
}

/// What is shown of the host.
struct View {
    mounts: Vec<AgentMount>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl View {
    /// Shows a path of the host, if it is there, and not twice.
    fn show(&mut self, path: &Path, source: &Path) {
        self.add((path, source), &[], false);
    }

    fn add(&mut self, (path, source): (&Path, &Path), hidden: &[PathBuf], discards_writes: bool) {
        let covers = |mount: &AgentMount| path.starts_with(&mount.path) && mount.hidden.is_empty();
        if self.mounts.iter().any(covers) || Executor::is_system_path(path) {
            return;
        }
        if let Ok(source) = source.canonicalize().and_then(|real| open_place(&real)) {
            let (path, hidden) = (path.to_owned(), hidden.to_vec());
            self.mounts.push(AgentMount { path, source, hidden, discards_writes });
        }
    }

    fn show_toolchain(&mut self, shown: &ToolchainDirectory) {
        self.add((&shown.real, &shown.real), &shown.hidden, shown.discards_writes);
        if shown.path != shown.real && !Executor::is_system_path(&shown.path) {
            self.links.push((shown.path.clone(), shown.real.clone()));
        }
    }

    /// Shows this program, which the agent may start for its tools.
    fn show_capsule(&mut self) -> Result<(), Failure> {
        let program = std::env::current_exe();
        let program = program.map_err(|error| cannot_open(Path::new("this program"), &error))?;
        self.show(Path::new(CAPSULE_PROGRAM), &program);
        Ok(())
    }

    fn contains(&self, path: &Path) -> bool {
        Executor::is_system_path(path)
            || self.mounts.iter().any(|mount| path.starts_with(&mount.path))
            || self
                .links
                .iter()
                .any(|(link, _)| path.starts_with(link) || link.parent() == Some(path))
    }
}

fn user_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// The `PATH` inside: the user's directories that are there, and the system's.
fn program_path(plan: &AgentPlan, view: &View) -> OsString {
    let mut all: Vec<PathBuf> = Vec::new();
    let system = SYSTEM_PATH.iter().map(PathBuf::from);
    let user = user_path().into_iter().filter_map(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        match real.starts_with(&plan.workspace) {
            true => Some(inside(&plan.workspace, &real)),
            false => Some(path).filter(|path| view.contains(path)),
        }
    });
    for path in user.chain(system).chain([PathBuf::from(CAPSULE_PROGRAMS)]) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    std::env::join_paths(all).unwrap_or_else(|_| SYSTEM_PATH.join(":").into())
}

/// What the agent may not change in its workspace: what Capsule reads there, and what is Capsule's own where the
/// workspace is above it.
fn read_only(plan: &AgentPlan, ctx: &CliContext) -> Vec<OsString> {
    let files = ctx.own_files(&[]);
    let files = files.iter().filter_map(|path| path.canonicalize().ok());
    let files = files.filter_map(|path| Some(path.strip_prefix(&plan.workspace).ok()?.into()));
    let policy = plan.policy.iter();
    let policy = policy.filter_map(|path| Some(path.strip_prefix(&plan.workspace).ok()?.into()));
    [OsString::from(CAPSULE_DIRECTORY)].into_iter().chain(files).chain(policy).collect()
}

fn environment(plan: &AgentPlan, home: &Path, path: &OsStr) -> Vec<(OsString, OsString)> {
    let mut all = plan.passed.variables.clone();
    let user = std::env::var_os("USER").unwrap_or_else(|| "agent".into());
    for (name, value) in [
        ("HOME", home.as_os_str().to_owned()),
        ("PATH", path.to_owned()),
        ("PWD", WORKSPACE_MOUNT.into()),
        ("SHELL", "/bin/sh".into()),
        ("USER", user.clone()),
        ("LOGNAME", user),
        ("CAPSULE_SANDBOX", "namespaces".into()),
        // What several agents look for before they take all permissions.
        ("IS_SANDBOX", "1".into()),
    ] {
        all.insert(name.into(), value);
    }
    if !plan.has_tmp {
        all.insert("TMPDIR".into(), home.as_os_str().to_owned());
    }
    all.into_iter().collect()
}

/// The files that programs with or without a network ask for names. There is no file of accounts: the user's name
/// and home are in the environment.
fn configuration(network: SandboxNetworkArg) -> Vec<(PathBuf, Vec<u8>)> {
    let host = |path: &str| fs::read(path).unwrap_or_default();
    let has_network = network == SandboxNetworkArg::Open;
    let (hosts, services) = match network {
        SandboxNetworkArg::Open => ("127.0.0.1 host.docker.internal capsule\n", "files dns"),
        // The proxy looks names up; ports of the host's loopback that the policy opens are here.
        SandboxNetworkArg::Proxy => {
            ("127.0.0.1 localhost host.docker.internal capsule\n::1 localhost\n", "files")
        }
        SandboxNetworkArg::None => ("127.0.0.1 localhost capsule\n::1 localhost\n", "files"),
    };
    let mut hosts = hosts.as_bytes().to_vec();
    let mut files = Vec::new();
    if has_network {
        hosts.extend(host("/etc/hosts"));
        files.push(("/etc/resolv.conf".into(), host("/etc/resolv.conf")));
    }
    let services = format!("passwd: files\ngroup: files\nhosts: {services}\nservices: files\n");
    files.push(("/etc/hosts".into(), hosts));
    files.push(("/etc/hostname".into(), b"capsule\n".to_vec()));
    files.push(("/etc/nsswitch.conf".into(), services.into_bytes()));
    files
}
