//! The session of an MCP client.

use std::path::Path;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::approval::Card;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_report::{network_text, policy_lines, policy_rules};
use capsule_runtime::{
    Cancel, CommandRunner, ModelSession, ModelTool, NullObserver, Prompt, SessionChoice,
    end_session, now_micros, offered_tools, tool_capabilities,
};
use capsule_serve::{CallAnswer, McpHost, PolicyWatch};
use serde_json::{Value, json};

use crate::args::{LayerArg, McpServeArgs};
use crate::command::run_end::show_staged;
use crate::command::run_start::open_model_session;
use crate::command::{Dropped, REFUSED_CHANGE, SettledChanges, policy_texts, settle_changes};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::mcp::card_text::card_text;
use crate::mcp::followed_policy::FollowedPolicy;
use crate::screen::Screen;
use crate::signal;

/// The session of an MCP client; it is opened by the first call.
pub(super) struct McpSession<'c> {
    args: &'c McpServeArgs,
    policy: FollowedPolicy<'c>,
    screen: &'c Screen,
    cancel: Cancel,
    name: String,
    /// The full id of its run, and its label.
    run: Option<(String, String)>,
    /// The session as the last call left it, if that only read.
    held: Option<HeldSession>,
}

/// A session that was taken up, for the calls that come at once after the first one: to take it up and lay it down takes
/// longer than to read a file.
struct HeldSession {
    session: ModelSession<'static>,
    commands: CommandRunner,
    since: Instant,
}

/// How long other processes wait at most for a session whose client never pauses.
const LONGEST_HOLD: Duration = Duration::from_secs(1);

impl<'c> McpSession<'c> {
    /// A session that no call has opened yet.
    ///
    /// # Errors
    /// As [`FollowedPolicy::read`].
    pub(super) fn new(
        args: &'c McpServeArgs,
        started: &'c CliContext,
        screen: &'c Screen,
    ) -> Result<Self, Failure> {
        Ok(Self {
            args,
            policy: FollowedPolicy::read(args, started)?,
            screen,
            cancel: signal::cancel_on_signal(),
            name: format!("mcp:{}:{}", std::process::id(), now_micros()),
            run: None,
            held: None,
        })
    }

    /// Ends the session: its run is sealed.
    ///
    /// # Errors
    /// When it cannot be.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.lay_down();
        let Some((run, label)) = self.run.take() else { return Ok(()) };
        // A stop of the last call does not stop this, and a second signal of another kind does not kill it.
        signal::resume_after_interrupt();
        match end_session(&self.policy.ctx().store, &run, &Cancel::default()).map_err(Failure::from)
        {
            Ok(ended) => {
                show_staged(ended.staged, &label, self.screen);
                Ok(())
            }
            // It was ended elsewhere, or with its last call.
            Err(Failure::Problem(problem)) if problem.code == Code::SessionUnknown => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    fn workspace(&self) -> Option<String> {
        self.policy.bound().ok().map(|bound| bound.roots.workspace.clone())
    }

    /// Takes up the session for a call that needs these capabilities.
    fn take_up(
        &self,
        needed: Capabilities,
        prompt: Box<dyn Prompt>,
    ) -> Result<HeldSession, Failure> {
        let commands = CommandRunner::default();
        if needed.contains(Capability::ProcExec) {
            commands.start();
        }
        // It has no size, so nothing is lost with it.
        let silent = Box::leak(Box::new(NullObserver));
        // One that was ended elsewhere, or had another policy, is followed by a new one.
        let choice = SessionChoice::Named(self.name.clone());
        let place = (self.policy.bound()?, self.policy.ctx());
        let steered = (&commands, &self.cancel);
        // The user accepted the layers as they were when the server was started, and no later change of them.
        let accept_layer = self.args.layer.accept_layer && self.run.is_none();
        let how = (RunKind::Mcp, LayerArg { accept_layer }, needed);
        let session =
            open_model_session(how, place, &choice, steered, prompt, silent, self.screen)?;
        Ok(HeldSession { session, commands, since: Instant::now() })
    }

    /// Leaves a session that is held. What only read left nothing to be told of.
    fn lay_down(&mut self) {
        if let Some(HeldSession { session, commands, .. }) = self.held.take() {
            // Where its end cannot be written, the next call finds it as a process that was killed leaves it.
            let _ = session.leave(Exit::Ok);
            commands.detach();
        }
    }

    /// Makes a call in the session. After one that changes something, or is waited for, the session is left again.
    fn call_once(
        &mut self,
        (tool, args): (&str, &str),
        prompt: Box<dyn Prompt>,
    ) -> Result<CallAnswer, Failure> {
        let needed = tool_capabilities(tool);
        let only_reads = !needed.have_side_effects() && !needed.contains(Capability::ProcExec);
        let is_due = |held: &HeldSession| held.since.elapsed() >= LONGEST_HOLD;
        if !only_reads || self.held.as_ref().is_some_and(is_due) {
            self.lay_down();
        }
        let mut held = match self.held.take() {
            Some(held) => held,
            None => self.take_up(needed, prompt)?,
        };
        let session = &mut held.session;
        let (run, label) = (session.live().id.to_string(), session.live().label.clone());
        self.run = Some((run.clone(), label.clone()));
        let called = session.call(tool, args);
        let made = called.map(|answer| call_answer(session, answer.result, &answer.text));
        if only_reads && made.as_ref().is_ok_and(|answer| !answer.is_error) {
            self.held = Some(held);
            return made.map_err(Failure::from);
        }
        let finished = held.session.leave(Exit::Ok)?;
        held.commands.detach();
        let mut answer = made?;
        if finished.staged.is_some() {
            // The result is told, whatever became of the changes.
            let not_applied = match settle_changes(&run, self.policy.ctx(), self.screen) {
                Ok(settled) if settled.is_whole() => None,
                Ok(settled) => Some(settled.to_json(&label)),
                Err(failure) => Some(unsettled(&CodedError::from(failure), &label)),
            };
            if let (Some(map), Some(report)) = (answer.value.as_object_mut(), not_applied) {
                map.insert("not_applied".into(), report);
                answer.is_error = true;
            }
        }
        Ok(answer)
    }
}

/// The answer to the client for a call. A question that waits comes with the command that answers it.
fn call_answer(
    session: &ModelSession<'_>,
    result: Option<capsule_runtime::CallResult>,
    text: &str,
) -> CallAnswer {
    let Some(mut result) = result else {
        let value =
            serde_json::from_str(text).unwrap_or_else(|_| json!({ "status": "tool_error" }));
        return CallAnswer { value, is_error: true, call: None };
    };
    let call = format!("{}:{}", session.live().label, result.call);
    if let Some(problem) = &mut result.problem {
        match problem.code {
            Code::ApprovalWaiting => {
                problem.suggestion = Some(format!(
                    "ask the user to run `capsule approvals answer {call} --allow once`, then make the same call again"
                ));
            }
            // Nothing waits at the end of the call.
            Code::ChangeRefused => problem.suggestion = Some(REFUSED_CHANGE.into()),
            _ => {}
        }
    }
    CallAnswer { is_error: result.problem.is_some(), value: result.to_json(), call: Some(call) }
}

impl McpHost for McpSession<'_> {
    fn offer(&self) -> Result<(Vec<ModelTool>, String), CodedError> {
        let bound = self.policy.bound()?;
        let policy = &bound.policy;
        let network = network_text(policy.sandbox_in_force().network);
        let head = format!(
            "Policy {}, profile {}. Commands: {network}. Paths are relative to the workspace. A call is denied unless a \
             rule below allows it, or the user does when asked. Credentials and what other programs obey are closed \
             whatever the rules say.",
            policy.name, policy.profile.name
        );
        let mut rules = policy_rules(policy, &policy_texts(bound));
        rules.retain(|rule| rule.section == "tools");
        let lines = policy_lines(&rules, self.screen.layout());
        Ok((offered_tools(policy, false), format!("{head}\n{}", lines.join("\n"))))
    }

    fn refresh(&mut self) -> bool {
        let workspace = self.workspace();
        let is_read = self.policy.refresh();
        if is_read {
            self.lay_down();
        }
        if is_read && self.workspace() != workspace {
            // The next call is in another place. Where its end cannot be written, the session ends by being idle.
            let _ = self.end();
        }
        is_read
    }

    fn policy_watch(&self) -> PolicyWatch {
        self.policy.watch()
    }

    fn awaits_root(&self) -> bool {
        self.policy.awaits_root()
    }

    fn take_root(&mut self, root: Option<&Path>) {
        self.lay_down();
        self.policy.take_root(root);
    }

    fn card_text(&self) -> fn(&Card) -> Option<String> {
        card_text
    }

    fn interrupter(&self) -> fn() {
        signal::interrupt
    }

    fn resumer(&self) -> fn() {
        signal::resume_after_interrupt
    }

    fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    fn call(
        &mut self,
        call: (&str, &str),
        prompt: Box<dyn Prompt>,
    ) -> Result<CallAnswer, CodedError> {
        self.call_once(call, prompt).map_err(CodedError::from)
    }

    fn rest(&mut self) {
        self.lay_down();
    }
}

impl SettledChanges {
    fn to_json(&self, label: &str) -> Value {
        let change = |Dropped { path, why }: &Dropped| json!({ "path": path, "why": why });
        let dropped: Vec<Value> = self.dropped.iter().take(NAMED_CHANGES).map(change).collect();
        let note = match self.stay {
            0 => "these changes are not in the workspace and were dropped".to_owned(),
            stay => format!(
                "{stay} of the changes are in the workspace, the rest was dropped; the user can take them back with \
                 `capsule undo {label}`"
            ),
        };
        json!({
            "dropped": dropped,
            "more": self.dropped.len().saturating_sub(NAMED_CHANGES),
            "reason": self.problem.as_ref().map(|problem| &problem.message),
            "note": note,
        })
    }
}

/// How many changes that were dropped are told by name.
const NAMED_CHANGES: usize = 50;

/// The report where it is not known what became of the changes.
fn unsettled(problem: &CodedError, label: &str) -> Value {
    let note = format!(
        "the call is over, but its changes could not be applied or dropped; `capsule changes {label}` shows the user those \
         that wait"
    );
    json!({ "code": problem.code, "reason": problem.message, "note": note })
}
