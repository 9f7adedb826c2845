//! A whole agent in a sandbox: what it sees of the machine is collected here, and a backend builds it.

mod attach;
mod docker;
mod environment;
pub(crate) mod lease;
mod namespaces;
mod plan;
mod program;
mod recorded;

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
    let is_recorded = args.staged || args.network == SandboxNetworkArg::Proxy;
    refuse_unsupported(args, is_recorded)?;
    let plan = AgentPlan::read(args, globals, ctx)?;
    let had_layer = plan.has_layer();
    let ended = match args.backend {
        SandboxBackendArg::Namespaces if is_recorded => recorded::run(args, &plan, ctx, screen),
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

fn refuse_unsupported(args: &SandboxArgs, is_recorded: bool) -> Result<(), Failure> {
    let refuse = |message: &str, hint: &str| {
        Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into())
    };
    if is_recorded && args.backend == SandboxBackendArg::Docker {
        return refuse(
            "an agent in a container has no proxy, and its changes are not staged",
            "leave `--backend docker` out; `--network none` closes the network of a container",
        );
    }
    if args.policy.is_some() && !args.command.is_empty() && !is_recorded {
        return refuse(
            "a policy judges no agent that writes the workspace and reaches the network directly",
            "add `--network proxy` or `--staged`, or leave the policy out",
        );
    }
    Ok(())
}
