//! An agent that is the call of a run: it reaches the hosts that its policy names, or its changes are staged, or both.

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_core::call::Origin;
use capsule_core::confinement::NetworkAccess;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{AGENT_TOOL, Policy};
use capsule_report::refused_host_texts;
use capsule_runtime::{AgentConnections, AgentHost, BoundPolicy, Cancel, CommandRunner, NullSink};
use capsule_sandbox::{
    AgentEvent, AgentLaunch, AgentNetwork, Executor, SandboxBackend as _, Termination,
};
use serde_json::json;

use super::attach;
use super::namespaces::{launch, sandbox_problem};
use super::plan::AgentPlan;
use crate::args::{LayerArg, PolicyArg, SandboxArgs, SandboxNetworkArg, UnattendedArg};
use crate::command::SingleCall;
use crate::command::run_start::prompt_for_calls;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::failure_report::show_problem;
use crate::screen::{HINT, Screen};

/// The policy of an agent where its user names none.
const DEFAULT_POLICY: &str = "builtin:developer";

/// Runs an agent as the call of a run; gives its exit status.
pub(super) fn run(
    args: &SandboxArgs,
    plan: &AgentPlan,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let here = ctx.with_workspace_and_store(&plan.workspace, ctx.store.clone());
    let bound = bind_policy(args, plan, &here)?;
    let launch = launch(plan, ctx)?;
    plan.show_header("namespaces", Some(&bound.policy.name), screen);
    let words = launch.argv.iter().map(|word| word.to_string_lossy().into_owned());
    let argv: Vec<String> = words.collect();
    let (ask, cancel) = (UnattendedArg { unattended: false }, Cancel::default());
    let call = SingleCall {
        name: argv.first().cloned().unwrap_or_default(),
        kind: RunKind::Agent,
        subject: None,
        tool: AGENT_TOOL,
        args: json!({ "argv": argv }),
        policy: &bound,
        command_runner: CommandRunner::default(),
        sink: Rc::new(NullSink),
        prompt: prompt_for_calls(ask, (&bound, &here), &cancel, screen),
        cancel,
        out: None,
        layer: LayerArg { accept_layer: false },
        origin: Origin::Person,
        resumption: None,
        session: None,
    };
    let agent = Rc::new(AgentProcess { launch: RefCell::new(Some(launch)) });
    let done = call.submit_with(Some(agent), &here, Some(screen))?;
    let delivered = &done.delivered;
    for refused in delivered.value.as_ref().map(refused_host_texts).unwrap_or_default() {
        screen.eprint(&format!("{HINT}refused{HINT:#}: {refused}"));
    }
    if let Some(problem) = &delivered.problem
        && !matches!(problem.code, Code::ExecFailed | Code::ExecSignal)
    {
        show_problem(screen, problem);
    }
    screen.eprint(&format!("recorded as {} · capsule report {0}", done.label));
    done.show_next(&here, screen);
    Ok(delivered.command_status(done.exit))
}

/// The policy of an agent's run.
fn bind_policy(
    args: &SandboxArgs,
    plan: &AgentPlan,
    ctx: &CliContext,
) -> Result<BoundPolicy, Failure> {
    let named = args.policy.clone().or_else(|| std::env::var("CAPSULE_POLICY").ok());
    let default = || (!ctx.has_user_policy()).then(|| DEFAULT_POLICY.to_owned());
    let policy = PolicyArg { policy: named.or_else(default), profile: None };
    let bound = ctx.load_policy(&policy, None)?;
    let network = match plan.network {
        SandboxNetworkArg::Proxy => NetworkAccess::Proxy,
        SandboxNetworkArg::Open | SandboxNetworkArg::None => NetworkAccess::None,
    };
    if network > bound.policy.sandbox_in_force().network {
        let message = format!("the policy `{}` opens no host", escape::line(&bound.policy.name));
        let hint = "name hosts in it under `sandbox.network`, or use another one";
        return Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into());
    }
    let policy = Policy::clone(&bound.policy).for_agent(plan.is_staged, network);
    Ok(BoundPolicy { policy: Arc::new(policy), ..bound })
}

/// The process of an agent that was not started so far.
struct AgentProcess {
    launch: RefCell<Option<AgentLaunch>>,
}

impl AgentHost for AgentProcess {
    fn run(
        &self,
        copy: Option<OwnedFd>,
        connections: &mut AgentConnections<'_, '_>,
    ) -> Result<Termination, CodedError> {
        let Some(mut launch) = self.launch.borrow_mut().take() else {
            return Err(CodedError::new(Code::EngineFault, "the agent has run before"));
        };
        if let Some(copy) = copy {
            launch.workspace = copy;
        }
        if let (AgentNetwork::Private(ports), Some(served)) =
            (&mut launch.network, connections.ports())
        {
            for (name, value) in
                served.first().into_iter().flat_map(|port| AgentConnections::variables(*port))
            {
                let name = OsString::from(name);
                launch.environment.retain(|(known, _)| *known != name);
                launch.environment.push((name, value.into()));
            }
            *ports = served;
        }
        let mut agent =
            Executor::prepare_agent(&launch).map_err(|error| sandbox_problem(&error))?;
        if let Some(listeners) = agent.listeners() {
            connections.start(listeners)?;
        }
        let ended = attach::attach(&mut agent, Some(connections));
        Ok(match ended.map_err(|error| sandbox_problem(&error))? {
            AgentEvent::Exited(code) => Termination::Exited(code),
            AgentEvent::Killed(signal) | AgentEvent::Stopped(signal) => {
                Termination::Signalled(signal)
            }
        })
    }
}
