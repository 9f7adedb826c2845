//! An agent, as its user asked for it, whatever confines it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::outcome::CodedError;

use super::environment::{self, PassedEnvironment};
use crate::args::{Globals, SandboxArgs, SandboxNetworkArg};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{DIMMED, SUCCESS, Screen, WARNING};

/// What lies in a workspace and is for Capsule.
pub(super) const CAPSULE_DIRECTORY: &str = ".capsule";

/// An agent, whatever confines it.
pub(super) struct AgentPlan {
    /// The real path of its workspace on the host.
    pub(super) workspace: PathBuf,
    /// Its program and arguments; without any, our own chat.
    pub(super) command: Option<Vec<OsString>>,
    /// The arguments of our own chat.
    pub(super) chat: Vec<OsString>,
    /// The file of the policy that they name.
    pub(super) policy: Option<PathBuf>,
    pub(super) passed: PassedEnvironment,
    /// Where the user's configuration of Capsule is.
    pub(super) config: PathBuf,
    pub(super) has_tmp: bool,
    pub(super) network: SandboxNetworkArg,
    /// Whether it works in a copy of the workspace, and its changes wait.
    pub(super) is_staged: bool,
}

impl AgentPlan {
    pub(super) fn read(
        args: &SandboxArgs,
        globals: &Globals,
        ctx: &CliContext,
    ) -> Result<Self, Failure> {
        let workspace = workspace(ctx)?;
        refuse_linked_layer(&workspace)?;
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
            is_staged: args.staged,
        })
    }

    /// Whether its workspace has something for Capsule.
    pub(super) fn has_layer(&self) -> bool {
        self.workspace.join(CAPSULE_DIRECTORY).symlink_metadata().is_ok()
    }

    /// What is said before the agent begins.
    pub(super) fn show_header(&self, backend: &str, policy: Option<&str>, screen: &Screen) {
        let place = escape::line(&self.workspace.display().to_string()).into_owned();
        let network = match (self.network, policy) {
            (SandboxNetworkArg::Open, _) => {
                "network open: all that this machine reaches, its own services too".to_owned()
            }
            (SandboxNetworkArg::Proxy, Some(policy)) => {
                format!("network: the hosts of the policy {}", escape::line(policy))
            }
            (SandboxNetworkArg::None | SandboxNetworkArg::Proxy, _) => "no network".to_owned(),
        };
        let written = match self.is_staged {
            true => "a copy: its changes wait until you apply them",
            false => "written directly",
        };
        screen.eprint(&format!(
            "{SUCCESS}sandbox{SUCCESS:#} {backend} · workspace {place} at /workspace, {written}"
        ));
        let passed = match self.passed.secrets.as_slice() {
            [] => "no keys passed".to_owned(),
            names => format!("passed {}", names.join(", ")),
        };
        let private = if self.has_tmp { "home and /tmp" } else { "the home directory" };
        let style = if self.network == SandboxNetworkArg::Open { WARNING } else { DIMMED };
        screen.eprint(&format!("{style}{network}{style:#} · {passed}"));
        screen.eprint(&format!("{DIMMED}{private} in memory, deleted afterwards{DIMMED:#}"));
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
    if ctx.is_too_wide(&real) {
        return Err(refuse(format!("`{shown}` is no workspace: everything of yours lies in it")));
    }
    Ok(real)
}

/// Refuses a `.capsule` that is a link: what it leads to could be written to, or would not be seen.
fn refuse_linked_layer(workspace: &Path) -> Result<(), Failure> {
    let layer = workspace.join(CAPSULE_DIRECTORY);
    if !layer.is_symlink() {
        return Ok(());
    }
    let message = format!("`{CAPSULE_DIRECTORY}` of the workspace is a link, which cannot be held");
    let hint = "make it a directory: an agent may then read it and not change it";
    Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into())
}

/// The path at which an agent sees a real path of the host: that of the workspace is another one.
pub(super) fn inside(workspace: &Path, real: &Path) -> PathBuf {
    match real.strip_prefix(workspace) {
        Ok(rest) => Path::new(capsule_base::root_names::WORKSPACE_MOUNT).join(rest),
        Err(_) => real.to_owned(),
    }
}
