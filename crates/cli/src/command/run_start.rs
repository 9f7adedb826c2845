//! The beginning of a run: the options that every run of this program has, and what is said of it first.

use std::rc::Rc;

use capsule_base::limits;
use capsule_core::capability::Capabilities;
use capsule_core::journal::RunKind;
use capsule_runtime::{
    BoundPolicy, Cancel, CommandRunner, LiveRun, LiveRunOptions, ModelSession, NullSink, Observer,
    Prompt, SessionChoice, SessionRequest,
};
use serde_json::json;

use crate::args::{LayerArg, UnattendedArg};
use crate::card;
use crate::command::layers::{show_layer_changes, tell_key};
use crate::command::rule_hints::rule_patch_lookup;
use crate::command::run_end::show_copied;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::isolation::isolation;
use crate::repository::require_clean_copy;
use crate::screen::Screen;

/// The options of a run that has no plan, no subject and no name, and whose tools need nothing yet.
pub(crate) fn run_options<'s, 'o>(
    (policy, ctx): (&'s BoundPolicy, &'s CliContext),
    kind: RunKind,
    (command_runner, cancel): (&CommandRunner, &Cancel),
    prompt: Box<dyn Prompt>,
    observer: &'o mut dyn Observer,
) -> LiveRunOptions<'s, 'o> {
    LiveRunOptions {
        policy,
        store: &ctx.store,
        kind,
        subject: None,
        name: String::new(),
        plan: None,
        steps: 0,
        inputs: json!({}),
        command_runner: command_runner.clone(),
        capabilities: Capabilities::NONE,
        cancel: cancel.clone(),
        sink: Rc::new(NullSink),
        why_not_disposable: Box::new(|| require_clean_copy(ctx, policy.workspace.path())),
        is_isolated: || isolation().is_some(),
        env: Box::new(CliContext::variable),
        prompt,
        accepts_layer: false,
        is_gate: false,
        agent_host: None,
        for_agent: false,
        observer,
    }
}

/// The prompt of a run of several calls.
pub(crate) fn prompt_for_calls(
    ask: UnattendedArg,
    (policy, ctx): (&BoundPolicy, &CliContext),
    cancel: &Cancel,
    screen: &Screen,
) -> Box<dyn Prompt> {
    let rules = rule_patch_lookup(policy, ctx);
    card::make_prompt((ask.unattended, false), screen, cancel, rules)
}

/// Opens the session in which a model works, or takes it up, and says what is new about it. The capabilities are those of
/// the one call that is made before it is left again; none for what is not known.
///
/// # Errors
/// As [`ModelSession::open`].
pub(crate) fn open_model_session<'o>(
    (kind, layer, capabilities): (RunKind, LayerArg, Capabilities),
    (bound, ctx): (&BoundPolicy, &CliContext),
    choice: &SessionChoice,
    steered: (&CommandRunner, &Cancel),
    prompt: Box<dyn Prompt>,
    observer: &'o mut dyn Observer,
    screen: &Screen,
) -> Result<ModelSession<'o>, Failure> {
    let options = LiveRunOptions {
        accepts_layer: layer.accept_layer,
        // The client of a server is told of a question that waits.
        for_agent: kind == RunKind::Mcp,
        capabilities,
        ..run_options((bound, ctx), kind, steered, prompt, observer)
    };
    let request = SessionRequest { choice, policy: bound, idle: limits::SESSION_IDLE };
    let session = ModelSession::open(options, request)?;
    show_start(session.live(), screen);
    Ok(session)
}

/// Says what is new about the layers and the key of a run, and whether it works in a copy.
pub(crate) fn show_start(live: &LiveRun<'_>, screen: &Screen) {
    show_layer_changes(&live.layer_changes, screen);
    tell_key(live.made_key.as_deref(), screen);
    show_copied(live.copy_reason.as_deref(), screen);
}
