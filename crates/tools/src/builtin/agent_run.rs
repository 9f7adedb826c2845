//! `agent.run`: runs a whole agent, which the user started. It is behind a person's own command and in no catalogue: no
//! plan, no policy and no model can name it. A policy denies it by its capabilities.

use std::rc::Rc;

use capsule_base::code::Code;
use capsule_core::action::{Action, Facts};
use capsule_core::capability::Capability;
use capsule_core::confinement::{Enforcement, WorkspaceAccess};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{AGENT_TOOL, Restrictions};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_sandbox::Termination;
use capsule_workspace::Staging;
use serde_json::{Map, Value};

use crate::command::runner::CommandRunner;
use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::host::ToolHost;
use crate::network::{AgentConnections, AgentHost};
use crate::tool::args::invalid_args;
use crate::tool::prepare::FailedOperation;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `agent.run` is called, takes and gives. Not one of the tools that the reference lists.
static AGENT_SIGNATURE: ToolSignature = ToolSignature {
    id: AGENT_TOOL,
    model_name: "agent_run",
    aliases: &[],
    about: "Runs a whole agent that the user started.",
    shape: ToolShape::User,
    capabilities: &[
        Capability::ProcExec,
        Capability::FsWrite,
        Capability::FsDelete,
        Capability::NetEgress,
    ],
    arguments: &[ToolArgument {
        name: "argv",
        kind: ArgumentKind::Argv,
        required: true,
        about: "the program and its arguments",
    }],
    results: &[
        ResultField { name: "exit_code", about: "its status" },
        ResultField { name: "refused_hosts", about: "the hosts that were refused to it" },
    ],
};

/// Runs an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentRun;

impl Tool for AgentRun {
    fn signature(&self) -> &'static ToolSignature {
        &AGENT_SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let argv = args.get("argv").and_then(Value::as_array).into_iter().flatten();
        let argv: Vec<String> = argv.filter_map(Value::as_str).map(str::to_owned).collect();
        match argv.is_empty() {
            true => Err(invalid_args("`argv` is empty")),
            false => Ok(Action::Agent { argv }),
        }
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let operation: Box<dyn Operation> = match (action, context.agent) {
            (Action::Agent { .. }, Some(agent)) => Box::new(AgentOperation {
                agent: Rc::clone(agent),
                commands: context.commands.clone(),
                host: Rc::clone(context.host),
                staging: context.staging.ok().flatten().cloned(),
            }),
            (Action::Agent { .. }, None) => {
                let message = "an agent is started by `capsule sandbox`";
                Box::new(FailedOperation(CodedError::new(Code::ToolUnknown, message)))
            }
            _ => Box::new(FailedOperation(wrong_action_problem())),
        };
        PreparedCall { facts: Facts::default(), operation }
    }
}

struct AgentOperation {
    agent: Rc<dyn AgentHost>,
    commands: CommandRunner,
    host: Rc<dyn ToolHost>,
    staging: Option<Rc<Staging>>,
}

impl Operation for AgentOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Run { confinement, hosts, .. } = permit.restrictions() else {
            return wrong_permit_outcome();
        };
        let status = match self.commands.sandbox_status() {
            Some(Ok(status)) if status.meets(confinement.floor) => status,
            _ => {
                let message = "an agent needs namespaces, which this machine does not give";
                return Outcome::failed(CodedError::new(Code::SandboxBelowFloor, message));
            }
        };
        let is_staged = confinement.workspace == WorkspaceAccess::Staged;
        let copy = self.staging.as_ref().filter(|_| is_staged).and_then(|staging| staging.copy());
        if copy.is_none() && is_staged {
            let message = "the workspace was not copied for the agent";
            return Outcome::failed(CodedError::new(Code::EngineFault, message));
        }
        let mut connections = AgentConnections::new(hosts.as_deref(), &permit, self.host.as_ref());
        let ended = self.agent.run(copy, &mut connections);
        let report = connections.finish();
        let outcome = match ended {
            Ok(Termination::Exited(code)) => {
                let outcome = Outcome::done(Output::default().with("exit_code", code));
                match code {
                    0 => outcome,
                    _ => outcome.with_end(CodedError::new(
                        Code::ExecFailed,
                        format!("the agent ended with status {code}"),
                    )),
                }
            }
            Ok(Termination::Signalled(signal)) => {
                let message = format!("the agent was ended by signal {signal}");
                Outcome::done(Output::default().with("signal", signal))
                    .with_end(CodedError::new(Code::ExecSignal, message))
            }
            Ok(_) => {
                let message = "the agent ended in a way that no agent does";
                Outcome::failed(CodedError::new(Code::EngineFault, message))
            }
            Err(problem) => Outcome::failed(problem),
        };
        let output = match report.refused.is_empty() {
            true => outcome.output,
            false => outcome.output.with("refused_hosts", report.refused),
        };
        let outcome = Outcome { output, enforcement: Enforcement::Sandboxed(status), ..outcome };
        match report.stopped {
            None => outcome,
            Some(problem) => outcome.with_end(problem),
        }
    }
}
