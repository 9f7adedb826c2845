//! A run of one call: how it is made, and what comes of it.

use std::path::Path;
use std::rc::Rc;

use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_core::call::{Origin, ToolCall};
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::decision::Verdict;
use capsule_core::id::RunId;
use capsule_core::journal::RunKind;
use capsule_report::age_text;
use capsule_runtime::{
    AgentHost, BoundPolicy, CallResult, Cancel, CommandRunner, EndedSession, FinishedRun, LiveRun,
    LiveRunOptions, NullObserver, Prompt, Resumption, SessionChoice, SessionRequest, Sink,
    WaitingChanges, signature_of, submit,
};
use serde_json::{Value, json};

use crate::args::LayerArg;
use crate::command::layers::{show_layer_changes, tell_key};
use crate::command::rule_hints;
use crate::command::run_end::{show_late_error, show_staged, show_waiting};
use crate::command::run_start::run_options;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{HINT, Screen};

/// A run of one call.
pub(crate) struct SingleCall<'o> {
    /// What the run is called.
    pub(crate) name: String,
    pub(crate) kind: RunKind,
    pub(crate) subject: Option<RunId>,
    pub(crate) tool: &'o str,
    pub(crate) args: Value,
    pub(crate) policy: &'o BoundPolicy,
    pub(crate) command_runner: CommandRunner,
    pub(crate) sink: Rc<dyn Sink>,
    pub(crate) cancel: Cancel,
    pub(crate) prompt: Box<dyn Prompt>,
    pub(crate) out: Option<&'o Path>,
    pub(crate) layer: LayerArg,
    /// The suspended call that it goes on with.
    pub(crate) resumption: Option<&'o Resumption>,
    /// The session that it belongs to, if it is no run of its own.
    pub(crate) session: Option<SessionChoice>,
    /// The caller: a person or a model.
    pub(crate) origin: Origin,
}

/// What came of a run of one call.
pub(crate) struct SingleCallResult {
    pub(crate) delivered: CallResult,
    pub(crate) exit: Exit,
    /// The full id of the run.
    pub(crate) run: RunId,
    pub(crate) label: String,
    /// Why it was made in a copy of the workspace, if it was.
    pub(crate) copy_reason: Option<String>,
    /// The changes that wait for a person.
    pub(crate) staged: Option<WaitingChanges>,
    /// Whether the call added to them.
    has_new_changes: bool,
    /// Whether its run is a session that stays open.
    goes_on: bool,
    /// Whether its policy is a file, into which rules can be put.
    is_file: bool,
    /// The call that waits for an answer.
    waiting: Option<u64>,
}

impl SingleCallResult {
    /// Says what can be done next: with what is staged, with a question that waits, with a yes.
    pub(crate) fn show_next(&self, ctx: &CliContext, screen: &Screen) {
        if let Some(call) = self.waiting {
            let then = match self.goes_on {
                true => "make the call again".to_owned(),
                false => format!("capsule resume {}", self.label),
            };
            return show_waiting(&self.label, call, &then, screen);
        }
        show_staged(self.staged.filter(|_| self.has_new_changes), &self.label, screen);
        let CallResult { call, decision, value, problem, .. } = &self.delivered;
        let has_worked = value.is_some() && problem.is_none();
        if self.is_file && decision.verdict == Verdict::Ask && has_worked {
            rule_hints::show_rule_command_of(
                &self.run.to_string(),
                &self.label,
                *call,
                ctx,
                screen,
            );
        }
    }
}

/// What came of a call, and of its run, for programs.
pub(super) fn call_json(done: &SingleCallResult) -> Value {
    let mut answer = done.delivered.to_json();
    if let Value::Object(map) = &mut answer {
        map.insert("run".into(), done.label.as_str().into());
        let staged = done.staged.map(
            |changes| json!({ "paths": changes.paths, "refused": changes.refused, "asked": changes.asked > 0 }),
        );
        map.insert("staged".into(), json!(staged));
    }
    answer
}

/// Says what is new about the layers, the key and the session of a run that begins.
fn show_beginning(live: &LiveRun<'_>, screen: &Screen) {
    show_layer_changes(&live.layer_changes, screen);
    tell_key(live.made_key.as_deref(), screen);
    if let Some(EndedSession { label, staged, .. }) = &live.ended_session {
        let changed = "its policy, profile or workspace changed, or Capsule did";
        screen.eprint(&format!("{HINT}session{HINT:#}: {label} ended: {changed}"));
        show_staged(*staged, label, screen);
    }
    if !live.is_new_session || live.copy_reason.is_some() {
        return;
    }
    let micros = u64::try_from(limits::SESSION_IDLE.as_micros()).unwrap_or(u64::MAX);
    let (label, idle) = (&live.label, age_text(micros));
    screen.eprint(&format!(
        "{HINT}session{HINT:#}: {label} begins; later calls here join it · \
         capsule session end {label} ends it, or {idle} without a call"
    ));
}

/// The powers that the tool of a call may need. An agent changes files, so that they may have to be staged.
fn needed_capabilities(tool: &str, is_agent: bool) -> Capabilities {
    let signature = signature_of(tool);
    let of_tool = signature.map(|signature| signature.capabilities).unwrap_or_default();
    of_tool.iter().copied().chain(is_agent.then_some(Capability::ProcExec)).collect()
}

impl SingleCall<'_> {
    /// Makes the call.
    pub(crate) fn submit(
        self,
        ctx: &CliContext,
        screen: Option<&Screen>,
    ) -> Result<SingleCallResult, Failure> {
        self.submit_with(None, ctx, screen)
    }

    /// Makes the call, which is an agent if one is given.
    pub(crate) fn submit_with(
        self,
        agent: Option<Rc<dyn AgentHost>>,
        ctx: &CliContext,
        screen: Option<&Screen>,
    ) -> Result<SingleCallResult, Failure> {
        let capabilities = needed_capabilities(self.tool, agent.is_some());
        let (cancel, commands) = (self.cancel, self.command_runner.clone());
        let mut silent = NullObserver;
        let steered = (&self.command_runner, &cancel);
        let start = LiveRunOptions {
            subject: self.subject,
            name: self.name,
            capabilities,
            sink: self.sink,
            accepts_layer: self.layer.accept_layer,
            agent_host: agent,
            for_agent: self.origin == Origin::Model,
            ..run_options((self.policy, ctx), self.kind, steered, self.prompt, &mut silent)
        };
        let mut live = match (self.resumption, &self.session) {
            (Some(with), _) => LiveRun::resume(start, with)?,
            (None, Some(choice)) => {
                let idle = limits::SESSION_IDLE;
                LiveRun::join(start, SessionRequest { choice, policy: self.policy, idle })?
            }
            (None, None) => LiveRun::open(start)?,
        };
        if let Some(screen) = screen {
            show_beginning(&live, screen);
        }
        let call = match self.origin {
            Origin::Model => live.call_by_model(&ctx.store, (self.tool, self.args))?,
            origin => ToolCall::by(origin, self.tool, self.args),
        };
        let delivered = submit(&mut live.run, call)?;
        let exit = if cancel.is_set() { Exit::Interrupted } else { delivered.exit() };
        let (run, label, copy_reason) = (live.id, live.label.clone(), live.copy_reason.clone());
        let waiting = live.run.waiting();
        let finished = live.end_call(exit, self.out)?;
        let FinishedRun { staged, has_new_changes, late_error, .. } = finished;
        commands.detach();
        let exit = exit.min(show_late_error(late_error.as_ref(), screen));
        Ok(SingleCallResult {
            goes_on: self.session.is_some() && copy_reason.is_none(),
            delivered,
            exit,
            run,
            label,
            copy_reason,
            staged,
            has_new_changes,
            is_file: self.policy.file.is_some(),
            waiting,
        })
    }
}
