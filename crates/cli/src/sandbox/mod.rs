//! A whole agent in a sandbox: what it sees of the machine is collected here, and a backend builds it.

mod attach;
mod docker;
mod environment;
pub(crate) mod lease;
mod namespaces;
mod program;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::outcome::CodedError;

use crate::args::{Globals, SandboxArgs, SandboxBackendArg, SandboxNetworkArg};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{DIMMED, SUCCESS, Screen, WARNING};
use environment::PassedEnvironment;

/// What lies in a workspace and is for Capsule.
const CAPSULE_DIRECTORY: &str = ".capsule";

/// An agent, whatever confines it.
struct AgentPlan {
    /// The real path of its workspace on the host.
    workspace: PathBuf,
    /// Its program and arguments; without any, our own chat.
    command: Option<Vec<OsString>>,
    /// The arguments of our own chat.
    chat: Vec<OsString>,
    /// The file of the policy that they name.
    policy: Option<PathBuf>,
    passed: PassedEnvironment,
    /// Where the user's configuration of Capsule is.
    config: PathBuf,
    has_tmp: bool,
    network: SandboxNetworkArg,
}

/// Runs an agent in a sandbox; gives its exit status.
///
/// # Errors
/// The arguments make no sense, the sandbox cannot be had, or the program is not there.
pub(crate) fn run(
    args: &SandboxArgs,
    globals: &Globals,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    refuse_unsupported(args)?;
    let plan = AgentPlan::read(args, globals, ctx)?;
    match args.backend {
        SandboxBackendArg::Namespaces => namespaces::run(&plan, ctx, screen),
        SandboxBackendArg::Docker => docker::run(&plan, ctx, screen),
    }
}

fn refuse_unsupported(args: &SandboxArgs) -> Result<(), Failure> {
    let refuse = |message: &str, hint: &str| {
        Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into())
    };
    if args.network == SandboxNetworkArg::Proxy {
        return refuse(
            "a whole agent has no proxy: no policy says which hosts it may reach",
            "`--network none` closes the network; commands of `capsule chat` inside have the proxy of their policy",
        );
    }
    if args.staged {
        return refuse(
            "a whole agent writes its workspace directly: its changes are not staged",
            "begin with a clean copy (`git worktree add`), or use `capsule chat`, which stages what commands change",
        );
    }
    Ok(())
}

impl AgentPlan {
    fn read(args: &SandboxArgs, globals: &Globals, ctx: &CliContext) -> Result<Self, Failure> {
        let workspace = workspace(ctx)?;
        let keys = capsule_agent::provider_keys(&ctx.providers_file()).map_err(Failure::from)?;
        let passed = environment::choose(std::env::vars_os(), &keys, &args.env);
        let passed = passed.map_err(usage_failure)?;
        let mut chat = vec![OsString::from("capsule"), "chat".into()];
        if globals.plain {
            chat.push("--plain".into());
        }
        let mut policy = None;
        if let Some(named) = &args.policy {
            chat.push("--policy".into());
            match named.starts_with("builtin:") {
                true => chat.push(named.into()),
                false => {
                    let path = ctx.cwd.join(named);
                    let real = path.canonicalize().map_err(|error| {
                        usage_failure(format!("the policy `{named}` cannot be read: {error}"))
                    })?;
                    chat.push(inside(&workspace, &real).into_os_string());
                    policy = Some(real);
                }
            }
        }
        Ok(Self {
            workspace,
            command: Some(args.command.clone()).filter(|command| !command.is_empty()),
            chat,
            policy,
            passed,
            config: ctx.config_directory().to_owned(),
            has_tmp: !args.no_tmp,
            network: args.network,
        })
    }

    /// What is said before the agent begins.
    fn show_header(&self, backend: &str, screen: &Screen) {
        let place = escape::line(&self.workspace.display().to_string()).into_owned();
        let network = match self.network {
            SandboxNetworkArg::Open => {
                "network open: all that this machine reaches, its own services too"
            }
            SandboxNetworkArg::None | SandboxNetworkArg::Proxy => "no network",
        };
        screen.eprint(&format!(
            "{SUCCESS}sandbox{SUCCESS:#} {backend} · workspace {place} at /workspace, written directly"
        ));
        let passed = match self.passed.secrets.as_slice() {
            [] => "no keys passed".to_owned(),
            names => format!("passed {}", names.join(", ")),
        };
        let own = if self.has_tmp { "home and /tmp" } else { "the home directory" };
        let style = if self.network == SandboxNetworkArg::Open { WARNING } else { DIMMED };
        screen.eprint(&format!("{style}{network}{style:#} · {passed}"));
        screen.eprint(&format!("{DIMMED}{own} in memory, gone afterwards{DIMMED:#}"));
    }
}

/// The real path of the workspace: the directory that was named, else the current one.
fn workspace(ctx: &CliContext) -> Result<PathBuf, Failure> {
    let named = ctx.start_directory();
    let refuse = |message: String| {
        let hint = "go to the directory of the project, or name it with `--workspace`";
        Failure::from(CodedError::new(Code::Usage, message).with_suggestion(hint))
    };
    let shown = escape::line(&named.display().to_string()).into_owned();
    let real = match named.canonicalize() {
        Ok(real) if real.is_dir() => real,
        Ok(_) => return Err(refuse(format!("the workspace `{shown}` is no directory"))),
        Err(error) => {
            return Err(refuse(format!("the workspace `{shown}` cannot be opened: {error}")));
        }
    };
    let is_home = ctx.home.canonicalize().is_ok_and(|home| home == real);
    if real == Path::new("/") || (is_home && ctx.named_workspace().is_none()) {
        return Err(refuse(format!("`{shown}` is no workspace: everything of yours lies in it")));
    }
    Ok(real)
}

/// The path at which an agent sees a real path of the host: that of the workspace is another one.
fn inside(workspace: &Path, real: &Path) -> PathBuf {
    match real.strip_prefix(workspace) {
        Ok(rest) => Path::new(capsule_base::root_names::WORKSPACE_MOUNT).join(rest),
        Err(_) => real.to_owned(),
    }
}
