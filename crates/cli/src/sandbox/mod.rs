//! A whole agent in a sandbox: what it sees of the machine is collected here, and a backend builds it.

mod attach;
mod docker;
mod environment;
pub(crate) mod lease;
mod namespaces;
mod plan;
mod program;

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;

use crate::args::{Globals, SandboxArgs, SandboxBackendArg, SandboxNetworkArg};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{Screen, WARNING};
use plan::{AgentPlan, CAPSULE_DIRECTORY};

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
    let had_layer = plan.has_layer();
    let ended = match args.backend {
        SandboxBackendArg::Namespaces => namespaces::run(&plan, ctx, screen),
        SandboxBackendArg::Docker => docker::run(&plan, ctx, screen),
    };
    if !had_layer && plan.has_layer() {
        screen.eprint(&format!(
            "{WARNING}the agent made `{CAPSULE_DIRECTORY}` in the workspace{WARNING:#}: look at it before you use Capsule there"
        ));
    }
    ended
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
