//! `capsule chat` at a terminal: a person and a model take turns, in one session.
//!
//! Between two turns no process holds the session, so every command of the program works in it, from here and
//! from elsewhere.

mod attach;
mod chip;
mod demo;
mod editor;
mod question;
mod setup;
mod slash;
mod text_flow;
mod turn_keys;
mod view;

use std::path::Path;

use capsule_agent::{Conversation, Model, TaskEnd, TaskLimits};
use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_base::{escape, limits};
use capsule_core::capability::Capabilities;
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_report::{network_text, time_text, wrap};
use capsule_runtime::{
    BoundPolicy, Cancel, CommandRunner, ModelSession, SessionChoice, WaitingChanges, now_micros,
};

use crate::args::{ChatArgs, Globals};
use crate::chat::editor::{Line, LineEditor};
use crate::chat::slash::{SlashCommand, SlashKind, SlashSubject};
use crate::chat::turn_keys::TurnKeys;
use crate::chat::view::ChatView;
use crate::command::run_end::{show_staged, show_waiting};
use crate::command::run_start::{open_model_session, prompt_for_calls};
use crate::command::session::end_run;
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::failure_report::show_problem;
use crate::isolation::isolation;
use crate::screen::{DIMMED, Screen};
use crate::signal;

pub(crate) use attach::AttachedFile;
pub(crate) use demo::{Demo, make_workspace};
pub(crate) use setup::explain_missing_model;
pub(crate) use slash::RunCommand;

/// Gives the model of a name, at the provider that is configured.
pub(crate) type FindModel = fn(&CliContext, Option<&str>) -> Result<Box<dyn Model>, Failure>;

/// The parts of a chat.
pub(crate) struct ChatSetup<'c> {
    pub(crate) args: &'c ChatArgs,
    pub(crate) ctx: &'c CliContext,
    /// The global options of the commands that are typed into the chat.
    pub(crate) globals: Globals,
    pub(crate) run_command: RunCommand,
    pub(crate) bound: &'c BoundPolicy,
    /// The model that is asked first, until the conversation has it, and how much of it may be used.
    pub(crate) model: Option<Box<dyn Model>>,
    pub(crate) limits: TaskLimits,
    pub(crate) find_model: FindModel,
    /// The script, where the model has one.
    pub(crate) demo: Option<Demo>,
    /// The session that is taken up.
    pub(crate) session: Option<String>,
    /// The files that go with the first message.
    pub(crate) attached: Vec<AttachedFile>,
    pub(crate) screen: Screen,
}

/// A chat that goes on.
struct Chat<'c> {
    setup: ChatSetup<'c>,
    /// The conversation, once something was said in it.
    conversation: Option<Conversation>,
    cancel: Cancel,
    view: ChatView,
    editor: LineEditor,
    keys: Option<TurnKeys>,
    /// The session: its full id, and its label once a turn was in it.
    run: Option<(String, String)>,
    /// The files that go with the next message.
    attached: Vec<AttachedFile>,
    /// The call that waits for an answer.
    waiting: Option<u64>,
    /// Text that is typed already when the prompt comes.
    typed: String,
    /// Whether the session was sealed: it was held to the end.
    is_sealed: bool,
}

/// The next step of a chat.
enum Next {
    Say(String),
    End,
}

/// Leads a chat until the person ends it.
///
/// # Errors
/// When there is no terminal, or the session cannot be opened, written or ended.
pub(crate) fn run(mut setup: ChatSetup<'_>) -> Result<u8, Failure> {
    let editor = LineEditor::open(setup.screen.layout().plain)
        .ok_or_else(|| usage_failure("the terminal cannot be used; give the task with `--task`"))?;
    let view = ChatView::new(setup.screen);
    let run = setup.session.clone().map(|run| (run.clone(), run));
    let cancel = signal::cancel_on_signal();
    let (waiting, typed, is_sealed) = (None, String::new(), false);
    let keys = TurnKeys::open();
    let attached = std::mem::take(&mut setup.attached);
    let mut chat = Chat {
        setup,
        conversation: None,
        cancel,
        view,
        editor,
        keys,
        run,
        attached,
        waiting,
        typed,
        is_sealed,
    };
    chat.show_header()?;
    chat.show_attached()?;
    while let Next::Say(text) = chat.next(false)? {
        if let Err(failure) = chat.work(&text) {
            failure.show(&chat.setup.screen);
            chat.typed = text;
        }
        if chat.is_sealed {
            break;
        }
    }
    chat.end()
}

impl Chat<'_> {
    fn show_header(&self) -> Result<(), Failure> {
        let ChatSetup { bound, ctx, screen, demo, .. } = &self.setup;
        let screen = screen.measured();
        let workspace = bound.roots.workspace.as_str();
        let home = ctx.home.to_string_lossy();
        let workspace = match workspace.strip_prefix(&*home) {
            Some(rest) if rest.starts_with('/') => format!("~{rest}"),
            _ => workspace.to_owned(),
        };
        let sandbox = bound.policy.sandbox_in_force();
        let changes = match sandbox.workspace {
            WorkspaceAccess::ReadOnly => "commands make none",
            WorkspaceAccess::Staged => "staged until you apply them",
            WorkspaceAccess::Direct => "made in the workspace itself",
        };
        let policy = &bound.policy;
        let profile = &policy.profile.name;
        let policy = format!("{} · {} · profile {profile}", policy.name, bound.place());
        let mut lines = vec![
            ("workspace", workspace),
            ("policy", policy),
            ("sandbox", format!("{} at least · {}", sandbox.floor, network_text(sandbox.network))),
            ("changes", changes.to_owned()),
            ("model", self.model_line()),
        ];
        lines.extend(isolation().map(|place| ("isolation", place.to_owned())));
        if demo.is_some() {
            let what = "the model is a script: it says the same whatever you type";
            lines.push(("demo", what.to_owned()));
        }
        let room = screen.layout().width.saturating_sub(12);
        for (name, text) in lines {
            for (at, line) in wrap(&escape::line(&text), room).into_iter().enumerate() {
                let name = if at == 0 { name } else { "" };
                screen.print_line(&format!("{DIMMED}{name:<9}{DIMMED:#}  {line}"))?;
            }
        }
        let keys = "/help lists the commands · Esc ends a turn · Ctrl+D ends the chat";
        screen.print_lines(&wrap(keys, screen.layout().width.saturating_sub(1)))?;
        screen.print_line("")
    }

    /// Reads until the person says something to the model, or ends the chat. While the session is held, what takes it
    /// is refused.
    fn next(&mut self, is_held: bool) -> Result<Next, Failure> {
        loop {
            signal::resume_after_interrupt();
            if signal::is_asked_to_end() {
                return Ok(Next::End);
            }
            let suggested = self.setup.demo.as_ref().and_then(Demo::suggestion).unwrap_or_default();
            let typed = std::mem::take(&mut self.typed);
            let initial = if typed.is_empty() { suggested } else { &typed };
            let text = match self.editor.read(initial) {
                Line::Text(text) => text,
                Line::Interrupted => {
                    self.say_dimmed("Ctrl+D ends the chat")?;
                    continue;
                }
                Line::End => return Ok(Next::End),
            };
            if let Some(demo) = &mut self.setup.demo {
                demo.note_line(&text);
            }
            match slash::parse(&text) {
                _ if text.trim().is_empty() => {}
                None if text.len() > limits::TASK_BYTES => {
                    usage_failure("the message is too long").show(&self.setup.screen);
                }
                None => return Ok(Next::Say(text)),
                Some(Ok((command, _))) if command.kind == SlashKind::Quit => return Ok(Next::End),
                Some(parsed) => {
                    let done =
                        parsed.and_then(|(command, words)| self.command(&command, &words, is_held));
                    if let Err(failure) = done {
                        failure.show(&self.setup.screen);
                    }
                }
            }
        }
    }

    /// Carries out a command of the chat.
    fn command(
        &mut self,
        command: &SlashCommand,
        words: &[String],
        is_held: bool,
    ) -> Result<(), Failure> {
        let screen = self.setup.screen.measured();
        match command.kind {
            SlashKind::Help => screen.print_lines(&slash::help_lines()),
            SlashKind::Quit => Ok(()),
            SlashKind::Stop => self.say_dimmed("no turn goes on; while one does, Esc ends it"),
            SlashKind::Model => self.choose_model(words),
            SlashKind::Attach => self.attach(words),
            SlashKind::Program(_) if command.takes_session && is_held => Err(usage_failure(
                "the session works in a copy of the workspace, which ends with the chat: `/quit` first",
            )),
            SlashKind::Program(program) => {
                let bound = self.setup.bound;
                let (policy, profile) = (bound.place(), &bound.policy.profile.name);
                let run = self.run.as_ref().map(|(_, label)| label.as_str());
                let subject = SlashSubject { run, policy: &policy, profile };
                let how = (&self.setup.globals, &screen, self.setup.run_command);
                slash::run_program(command, program, words, &subject, how)
            }
        }
    }

    /// Has a file go with the next message; without a name, says which ones do.
    fn attach(&mut self, words: &[String]) -> Result<(), Failure> {
        if words.is_empty() && self.attached.is_empty() {
            return Err(usage_failure("a file is needed; usage: /attach PATH"));
        }
        if !words.is_empty() {
            let name = words.join(" ");
            self.attached.push(AttachedFile::named(Path::new(&name), self.setup.ctx)?);
        }
        self.show_attached()
    }

    fn show_attached(&self) -> Result<(), Failure> {
        let with_next = |file: &AttachedFile| format!("with your next message: {}", file.text());
        self.attached.iter().try_for_each(|file| self.say_dimmed(&with_next(file)))
    }

    fn choose_model(&mut self, words: &[String]) -> Result<(), Failure> {
        match words {
            [] => {}
            [name] if self.setup.demo.is_none() => {
                let model = (self.setup.find_model)(self.setup.ctx, Some(name))?;
                match &mut self.conversation {
                    Some(conversation) => conversation.set_model(model),
                    None => self.setup.model = Some(model),
                }
            }
            [_] => return Err(usage_failure("a demo has its own model")),
            _ => return Err(usage_failure("a model is named by one word")),
        }
        self.setup.screen.print_line(&format!("model {}", self.model_line()))
    }

    /// Which model is asked, and where.
    fn model_line(&self) -> String {
        let model = match &self.conversation {
            Some(conversation) => Some(conversation.model()),
            None => self.setup.model.as_deref(),
        };
        let line = model.map(|model| format!("{} · {}", model.name(), model.endpoint()));
        escape::line(&line.unwrap_or_default()).into_owned()
    }

    fn say_dimmed(&self, text: &str) -> Result<(), Failure> {
        self.setup.screen.print_line(&format!("{DIMMED}{text}{DIMMED:#}"))
    }

    /// Opens the session, lets the model work on what was said, and leaves the session again. Where it works in a copy
    /// of the workspace, which no other process can take up, it is held until the chat ends.
    fn work(&mut self, text: &str) -> Result<(), Failure> {
        let commands = CommandRunner::default();
        commands.start();
        let (mut observer, mut observer_again) = (self.view.clone(), self.view.clone());
        let mut session = match self.open_session(&commands, &mut observer) {
            Err(Failure::Problem(problem)) if self.is_ended_elsewhere(&problem) => {
                self.forget_session()?;
                self.open_session(&commands, &mut observer_again)?
            }
            opened => opened?,
        };
        self.run = Some((session.live().id.to_string(), session.live().label.clone()));
        let end = self.turn(&mut session, text)?;
        if session.live().copy_reason.is_some() {
            return self.hold(session, end.as_ref());
        }
        let finished = session.leave(end.as_ref().map_or(Exit::Ok, TaskEnd::exit))?;
        commands.detach();
        self.show_turn_end(end.as_ref(), finished.staged);
        Ok(())
    }

    /// Takes the chat's session up, or opens one.
    fn open_session<'o>(
        &self,
        commands: &CommandRunner,
        observer: &'o mut ChatView,
    ) -> Result<ModelSession<'o>, Failure> {
        let ChatSetup { args, ctx, bound, screen, .. } = &self.setup;
        let screen = screen.measured();
        let choice = match &self.run {
            Some((run, _)) => SessionChoice::Run(run.clone()),
            None => SessionChoice::Named(session_name()),
        };
        let prompt = prompt_for_calls(args.ask, (bound, ctx), &self.cancel, &screen);
        let prompt = match &self.keys {
            Some(keys) => keys.behind(prompt),
            None => prompt,
        };
        let (place, steered) = ((*bound, *ctx), (commands, &self.cancel));
        let how = (RunKind::Chat, args.layer, Capabilities::NONE);
        let mut session =
            open_model_session(how, place, &choice, steered, prompt, observer, &screen)?;
        if let Some(keys) = self.keys.as_ref().filter(|_| !args.ask.unattended) {
            session.set_question_prompt(keys.questions(self.view.clone(), self.cancel.clone()));
        }
        Ok(session)
    }

    /// Whether a session could not be taken up because it was ended since the last turn.
    fn is_ended_elsewhere(&self, problem: &CodedError) -> bool {
        problem.code == Code::SessionUnknown && self.conversation.is_some()
    }

    /// Has the conversation go on in a new session.
    fn forget_session(&mut self) -> Result<(), Failure> {
        if let Some((_, label)) = self.run.take() {
            let text = format!(
                "session {label} was ended; going on in a new one · capsule changes {label}"
            );
            self.say_dimmed(&text)?;
        }
        self.setup.session = None;
        if let Some(conversation) = &mut self.conversation {
            conversation.begin_record();
        }
        Ok(())
    }

    /// One turn: the model works on what was said until it answers. None where an attached file cannot be given, so
    /// that the message is not sent.
    fn turn(
        &mut self,
        session: &mut ModelSession<'_>,
        text: &str,
    ) -> Result<Option<TaskEnd>, Failure> {
        let mut conversation = match self.conversation.take() {
            Some(conversation) => conversation,
            None => self.first_conversation(session)?,
        };
        self.view.begin_turn();
        let mut view = self.view.clone();
        for file in std::mem::take(&mut self.attached) {
            if conversation.attach(session, &file.path, &mut view)?.is_err() {
                self.conversation = Some(conversation);
                self.view.end_turn();
                self.say_dimmed("the message was not sent")?;
                text.clone_into(&mut self.typed);
                return Ok(None);
            }
        }
        if let Some(demo) = &mut self.setup.demo {
            conversation.set_model(Box::new(demo.next_model()));
        }
        if let Some(keys) = &mut self.keys {
            keys.start();
        }
        let end = conversation.say(session, text, &self.cancel, &mut view);
        self.conversation = Some(conversation);
        self.typed = self.keys.as_mut().map(TurnKeys::stop).unwrap_or_default();
        self.view.end_turn();
        self.waiting = session.waiting();
        Ok(Some(end?))
    }

    /// The conversation of a session that was taken up, or one that begins.
    fn first_conversation(&mut self, session: &ModelSession<'_>) -> Result<Conversation, Failure> {
        let ChatSetup { limits, find_model, session: taken_up, args, ctx, model, .. } =
            &mut self.setup;
        let model = match model.take() {
            Some(model) => model,
            None => find_model(ctx, args.model.as_deref())?,
        };
        Ok(match taken_up {
            Some(_) => Conversation::resume(model, *limits, session)?,
            None => Conversation::new(model, *limits),
        })
    }

    /// Goes on in a session that has to be held.
    fn hold(
        &mut self,
        mut session: ModelSession<'_>,
        end: Option<&TaskEnd>,
    ) -> Result<(), Failure> {
        self.show_turn_end(end, None);
        let mut exit = end.map_or(Exit::Ok, TaskEnd::exit);
        while let Next::Say(text) = self.next(true)? {
            let end = self.turn(&mut session, &text)?;
            exit = end.as_ref().map_or(exit, TaskEnd::exit);
            self.show_turn_end(end.as_ref(), None);
        }
        let finished = session.leave(exit)?;
        self.is_sealed = true;
        if let Some((_, label)) = &self.run {
            show_staged(finished.staged, label, &self.setup.screen);
        }
        Ok(())
    }

    fn show_turn_end(&self, end: Option<&TaskEnd>, staged: Option<WaitingChanges>) {
        let screen = self.setup.screen.measured();
        let Some(end) = end else { return };
        match end {
            TaskEnd::Answered { .. } => {}
            TaskEnd::Failed(problem) => show_problem(&screen, problem),
            TaskEnd::Interrupted => {
                screen.eprint("the turn was ended; the model goes on from here")
            }
            TaskEnd::Waiting(call) => {
                if let Some((_, label)) = &self.run {
                    show_waiting(label, *call, "say `go on`", &screen);
                }
            }
        }
        if let Some((_, label)) = &self.run {
            let profile = &self.setup.bound.policy.profile.name;
            let cost = self.conversation.as_ref().map_or(0, Conversation::cost);
            self.view.show_status((label, profile), staged, cost);
        }
    }

    /// Ends the chat: its session is sealed, unless it was taken up from elsewhere or one of its questions waits.
    fn end(self) -> Result<u8, Failure> {
        let ChatSetup { session, ctx, screen, demo, .. } = &self.setup;
        let Some((run, label)) = &self.run else { return Ok(0) };
        let stays = session.is_some() || self.waiting.is_some();
        match () {
            () if self.is_sealed => {}
            () if stays => screen.eprint(&format!(
                "session {label} stays open · capsule chat --session {label} · capsule session end {label}"
            )),
            () => match end_run(run, ctx, screen) {
                // It was ended from elsewhere.
                Err(Failure::Problem(problem)) if problem.code == Code::SessionUnknown => {}
                ended => drop(ended?),
            },
        }
        screen.eprint(&format!("next: capsule report {label} · capsule replay {label}"));
        if let Some(demo) = demo {
            demo.show_end(screen);
        }
        let exit = if signal::is_asked_to_end() { Exit::Interrupted } else { Exit::Ok };
        Ok(exit.status())
    }
}

/// The name of a chat's session: no other call finds the session by that.
pub(crate) fn session_name() -> String {
    let now = now_micros();
    let (minute, seconds) = (time_text(now), now % 60_000_000);
    let minute = minute.trim_end_matches('Z');
    format!("chat of {minute}:{:02}.{:06}Z", seconds / 1_000_000, seconds % 1_000_000)
}
