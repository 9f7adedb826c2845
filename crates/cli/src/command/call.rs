//! `capsule call`: one tool call, recorded as a run.

use std::path::Path;
use std::rc::Rc;

use capsule_core::call::ToolCall;
use capsule_core::exit::Exit;
use capsule_core::id::RunId;
use capsule_core::journal::RunKind;
use capsule_runtime::{
    Cancel, Commands, Delivered, Law, Session, Silent, Sink, Start, Waiting, signature_of, submit,
};
use serde_json::{Value, json};

use crate::args::Call;
use crate::command::changes::{tell_copied, tell_staged};
use crate::failure::Failure;
use crate::screen::Screen;
use crate::signal;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Call, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let call = super::call_args(&args.tool, args.args.as_deref(), &args.words)?;
    let out = around.out(args.out.as_deref())?;
    let law = around.law(&args.policy.policy, out.as_deref())?;
    let one = One {
        origin: RunKind::Call,
        subject: None,
        tool: &args.tool,
        args: call,
        law: &law,
        commands: Commands::default(),
        sink: Rc::new(capsule_runtime::Hush),
        cancel: signal::cancel(),
        out: out.as_deref(),
    };
    let done = one.submit(around)?;
    tell_copied(done.copied.as_deref(), screen);
    if screen.json {
        screen.say_json(&one_run_json(&done))?;
    } else {
        screen.say_json(&done.delivered.to_json())?;
        let label = &done.label;
        screen.complain(&format!("recorded as {label} · capsule show-run {label}:1"));
        tell_staged(done.staged, label, screen);
    }
    Ok(done.exit.status())
}

/// A run of one call.
pub(super) struct One<'o> {
    pub(super) origin: RunKind,
    pub(super) subject: Option<RunId>,
    pub(super) tool: &'o str,
    pub(super) args: Value,
    pub(super) law: &'o Law,
    pub(super) commands: Commands,
    pub(super) sink: Rc<dyn Sink>,
    pub(super) cancel: Cancel,
    pub(super) out: Option<&'o Path>,
}

/// What came of a run of one call.
pub(super) struct Ended {
    pub(super) delivered: Delivered,
    pub(super) exit: Exit,
    pub(super) label: String,
    /// Why it was made in a copy of the workspace, if it was.
    pub(super) copied: Option<String>,
    /// The changes that wait for a person.
    pub(super) staged: Option<Waiting>,
}

/// What came of a call, and of its run, for programs.
pub(super) fn one_run_json(done: &Ended) -> Value {
    let mut answer = done.delivered.to_json();
    if let Value::Object(map) = &mut answer {
        map.insert("run".into(), done.label.as_str().into());
        let staged = done.staged.map(|own| json!({ "paths": own.paths, "refused": own.refused }));
        map.insert("staged".into(), json!(staged));
    }
    answer
}

impl One<'_> {
    /// Makes the call.
    pub(super) fn submit(self, around: &Surroundings) -> Result<Ended, Failure> {
        let able = signature_of(self.tool).map(|own| own.capabilities).unwrap_or_default();
        let cancel = self.cancel;
        let mut silent = Silent;
        let mut session = Session::open(Start {
            law: self.law,
            store: &around.store,
            origin: self.origin,
            subject: self.subject,
            name: self.tool.to_owned(),
            plan: None,
            steps: 0,
            inputs: json!({}),
            commands: self.commands,
            capabilities: able.iter().copied().collect(),
            cancel: cancel.clone(),
            sink: self.sink,
            variables: Box::new(Surroundings::variable),
            observer: &mut silent,
        })?;
        let delivered = submit(&mut session.run, ToolCall::by_person(self.tool, self.args))?;
        let exit = if cancel.is_set() { Exit::Interrupted } else { delivered.exit() };
        let (label, copied) = (session.label.clone(), session.copied.clone());
        let staged = session.finish(exit, None, self.out)?.staged;
        Ok(Ended { delivered, exit, label, copied, staged })
    }
}
