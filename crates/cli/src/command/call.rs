//! `capsule call`: one tool call, recorded as a run.

use std::path::Path;
use std::rc::Rc;

use capsule_core::call::ToolCall;
use capsule_core::decision::Verdict;
use capsule_core::exit::Exit;
use capsule_core::id::RunId;
use capsule_core::journal::RunKind;
use capsule_core::limits;
use capsule_runtime::{
    Cancel, Commands, Delivered, Finished, Law, Prompt, Resumption, Session, Silent, Sink, Start,
    Waiting, signature_of, submit,
};
use serde_json::{Value, json};

use crate::args::{Call, LayerArg};
use crate::card;
use crate::command::changes::{tell_copied, tell_staged};
use crate::command::layers::{tell_key, tell_news};
use crate::command::rules::{self, rules};
use crate::command::run::{tell_trouble, tell_waiting};
use crate::command::undo;
use crate::failure::{Failure, usage};
use crate::repository::is_clean_copy;
use crate::screen::Screen;
use crate::signal;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Call, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    // It is the name of the run as well.
    if args.tool.chars().count() > limits::NAME_CHARS {
        let most = limits::NAME_CHARS;
        return Err(usage(format!("the name of a tool has at most {most} characters")));
    }
    let call = super::call_args(&args.tool, args.args.as_deref(), &args.words)?;
    let out = around.out(args.out.as_deref())?;
    let law = around.law(&args.policy, out.as_deref())?;
    let cancel = signal::cancel();
    let one = One {
        name: args.tool.clone(),
        origin: RunKind::Call,
        subject: None,
        tool: &args.tool,
        args: call,
        law: &law,
        commands: Commands::default(),
        sink: Rc::new(capsule_runtime::Hush),
        prompt: card::prompt((args.ask.unattended, true), screen, &cancel, rules(&law, around)),
        cancel,
        out: out.as_deref(),
        layer: args.layer,
        with: None,
    };
    let done = one.submit(around, Some(screen))?;
    done.tell(around, screen)?;
    Ok(done.exit.status())
}

/// A run of one call.
pub(crate) struct One<'o> {
    /// What the run is called.
    pub(crate) name: String,
    pub(crate) origin: RunKind,
    pub(crate) subject: Option<RunId>,
    pub(crate) tool: &'o str,
    pub(crate) args: Value,
    pub(crate) law: &'o Law,
    pub(crate) commands: Commands,
    pub(crate) sink: Rc<dyn Sink>,
    pub(crate) cancel: Cancel,
    pub(crate) prompt: Box<dyn Prompt>,
    pub(crate) out: Option<&'o Path>,
    pub(crate) layer: LayerArg,
    /// The suspended call that it goes on with.
    pub(crate) with: Option<&'o Resumption>,
}

/// What came of a run of one call.
pub(crate) struct Ended {
    pub(crate) delivered: Delivered,
    pub(crate) exit: Exit,
    pub(crate) label: String,
    /// Why it was made in a copy of the workspace, if it was.
    pub(crate) copied: Option<String>,
    /// The changes that wait for a person.
    pub(crate) staged: Option<Waiting>,
    /// Whether its policy is a file, into which rules can be put.
    is_file: bool,
    /// The call that waits for an answer.
    waiting: Option<u64>,
}

impl Ended {
    /// Says what came of it.
    pub(super) fn tell(&self, around: &Surroundings, screen: &Screen) -> Result<(), Failure> {
        tell_copied(self.copied.as_deref(), screen);
        if screen.json {
            return screen.say_json(&one_run_json(self));
        }
        screen.say_json(&self.delivered.to_json())?;
        let (label, call) = (&self.label, self.delivered.call);
        // What is staged is dropped, not undone.
        let kept = self.delivered.kept && self.staged.is_none();
        let undo =
            match kept && (self.delivered.problem.is_none() || undo::is_possible(around, label)) {
                true => format!(" · capsule undo {label}"),
                false => String::new(),
            };
        screen.complain(&format!("recorded as {label} · capsule show-run {label}:{call}{undo}"));
        self.tell_next(screen);
        Ok(())
    }

    /// Says what can be done next: with what is staged, with a question that waits, with a yes.
    pub(super) fn tell_next(&self, screen: &Screen) {
        if let Some(call) = self.waiting {
            return tell_waiting(&self.label, call, screen);
        }
        tell_staged(self.staged, &self.label, screen);
        let Delivered { call, decision, value, .. } = &self.delivered;
        if self.is_file && decision.verdict == Verdict::Ask && value.is_some() {
            rules::tell(&self.label, &[*call], screen);
        }
    }
}

/// What came of a call, and of its run, for programs.
pub(super) fn one_run_json(done: &Ended) -> Value {
    let mut answer = done.delivered.to_json();
    if let Value::Object(map) = &mut answer {
        map.insert("run".into(), done.label.as_str().into());
        let staged = done.staged.map(
            |own| json!({ "paths": own.paths, "refused": own.refused, "asked": own.asked > 0 }),
        );
        map.insert("staged".into(), json!(staged));
    }
    answer
}

impl One<'_> {
    /// Makes the call.
    pub(crate) fn submit(
        self,
        around: &Surroundings,
        screen: Option<&Screen>,
    ) -> Result<Ended, Failure> {
        let able = signature_of(self.tool).map(|own| own.capabilities).unwrap_or_default();
        let (cancel, commands) = (self.cancel, self.commands.clone());
        let mut silent = Silent;
        let start = Start {
            law: self.law,
            store: &around.store,
            origin: self.origin,
            subject: self.subject,
            name: self.name,
            plan: None,
            steps: 0,
            inputs: json!({}),
            commands: self.commands,
            capabilities: able.iter().copied().collect(),
            cancel: cancel.clone(),
            sink: self.sink,
            disposable: Box::new(|| is_clean_copy(around, self.law.workspace.path())),
            variables: Box::new(Surroundings::variable),
            prompt: self.prompt,
            accepts_layer: self.layer.accept_layer,
            observer: &mut silent,
        };
        let mut session = match self.with {
            Some(with) => Session::resume(start, with)?,
            None => Session::open(start)?,
        };
        if let Some(screen) = screen {
            tell_news(&session.news, screen);
            tell_key(session.made_key.as_deref(), screen);
        }
        let delivered = submit(&mut session.run, ToolCall::by_person(self.tool, self.args))?;
        let exit = if cancel.is_set() { Exit::Interrupted } else { delivered.exit() };
        let (label, copied) = (session.label.clone(), session.copied.clone());
        let (waiting, is_file) = (session.run.waiting(), self.law.file.is_some());
        let Finished { staged, trouble, .. } = session.finish(exit, None, self.out)?;
        commands.part();
        let exit = exit.min(tell_trouble(trouble.as_ref(), screen));
        Ok(Ended { delivered, exit, label, copied, staged, is_file, waiting })
    }
}
