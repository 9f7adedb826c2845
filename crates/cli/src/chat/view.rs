//! The view that a person has of a conversation: the model's words as they come, a line for each call, and how a turn ended.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::time::Instant;

use capsule_agent::{ConversationEvent, ConversationObserver};
use capsule_base::escape;
use capsule_base::units::{counted, show_duration, show_usd};
use capsule_core::journal::{Event, PayloadRef};
use capsule_report::{RunView, width, wrap};
use capsule_runtime::{Observer, QUESTION_TOOL, ToolAnswer, WaitingChanges, WrittenEvent};

use crate::chat::chip;
use crate::chat::text_flow::TextFlow;
use crate::screen::{DIMMED, HINT, Screen};
use crate::timeline::ProgressLine;

/// The text of the progress line while no word and no call comes.
const WAITING: &str = "the model · Esc ends the turn";

/// The view of a conversation, shared by those who tell of it.
#[derive(Clone)]
pub(crate) struct ChatView(Rc<RefCell<ViewState>>);

struct ViewState {
    screen: Screen,
    /// The sum of the run's events.
    run: RunView,
    flow: TextFlow,
    progress: ProgressLine,
    turn: TurnCounts,
    /// The tool that the model named last.
    tool: String,
    /// The first line that could not be printed ends the printing, not the run.
    is_quiet: bool,
}

/// The numbers of a turn.
struct TurnCounts {
    since: Instant,
    calls: u64,
    denied: u64,
    prompts: u64,
}

impl TurnCounts {
    fn new() -> Self {
        Self { since: Instant::now(), calls: 0, denied: 0, prompts: 0 }
    }
}

impl ChatView {
    /// A view on a screen.
    pub(crate) fn new(screen: Screen) -> Self {
        Self(Rc::new(RefCell::new(ViewState {
            screen,
            run: RunView::counting(),
            flow: flow(&screen),
            progress: ProgressLine::new(false, screen.layout()),
            turn: TurnCounts::new(),
            tool: String::new(),
            is_quiet: false,
        })))
    }

    /// Begins a turn, in the window as it is now.
    pub(crate) fn begin_turn(&self) {
        let state = &mut *self.state();
        let screen = state.screen.measured();
        state.screen = screen;
        state.flow = flow(&screen);
        state.progress = ProgressLine::new(true, screen.layout());
        state.turn = TurnCounts::new();
    }

    /// Ends a turn: nothing is written over what comes next.
    pub(crate) fn end_turn(&self) {
        let state = &mut *self.state();
        state.end_text();
        state.progress = ProgressLine::new(false, state.screen.layout());
    }

    /// The line behind a turn: where it ran, what it came to, and what the conversation has cost in millionths of a US dollar.
    pub(crate) fn show_status(
        &self,
        (label, profile): (&str, &str),
        staged: Option<WaitingChanges>,
        cost: u64,
    ) {
        let state = &mut *self.state();
        let mut parts = vec![label.to_owned(), format!("profile {}", escape::line(profile))];
        parts.extend(state.sandbox_text());
        let TurnCounts { since, calls, denied, prompts } = state.turn;
        let denied = if denied > 0 { format!(", {denied} denied") } else { String::new() };
        parts.push(format!("{}{denied}", counted(calls, "call")));
        parts.push(counted(prompts, "prompt"));
        parts.push(match staged {
            Some(WaitingChanges { paths, .. }) => {
                format!("{} staged: /apply", counted(paths, "change"))
            }
            None => "nothing staged".into(),
        });
        parts.extend((cost > 0).then(|| format!("{} so far", show_usd(cost))));
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        parts.push(show_duration(micros));
        let room = state.screen.layout().width.saturating_sub(1);
        for line in joined_lines(&parts, room) {
            state.print(&format!("{DIMMED}{line}{DIMMED:#}"));
        }
        state.print("");
    }

    /// Ends the line that the model's words are in: something else is shown.
    pub(crate) fn interrupt_text(&self) {
        self.state().end_text();
    }

    fn state(&self) -> RefMut<'_, ViewState> {
        self.0.borrow_mut()
    }
}

fn flow(screen: &Screen) -> TextFlow {
    let layout = screen.layout();
    // The last column is left alone: terminals differ in what the cursor does there.
    TextFlow::new((!layout.plain).then(|| layout.width.saturating_sub(1)))
}

/// Parts in lines, broken between parts.
fn joined_lines(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(part) <= columns => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines.iter().flat_map(|line| wrap(line, columns)).collect()
}

impl ViewState {
    fn print(&mut self, line: &str) {
        self.progress.end();
        if !self.is_quiet {
            self.is_quiet = self.screen.print_line(line).is_err();
        }
    }

    fn write(&mut self, piece: &str) {
        self.progress.end();
        if !self.is_quiet && !piece.is_empty() {
            self.is_quiet = self.screen.print_piece(piece).is_err();
        }
    }

    fn end_text(&mut self) {
        let end = self.flow.end();
        self.write(end);
    }

    /// The line of a call that is over.
    fn show_call(&mut self, answer: &ToolAnswer) {
        let layout = self.screen.layout();
        let lines = match &answer.result {
            None => chip::malformed_lines(&self.tool, layout),
            Some(result) => {
                let call = self.run.calls.iter().rev().find(|call| call.call == result.call);
                // A question was seen, with its answer.
                let is_question = call.is_some_and(|call| call.tool.as_str() == QUESTION_TOOL);
                if is_question && !result.was_denied() {
                    return;
                }
                self.turn.denied +=
                    u64::from(call.is_some_and(capsule_report::CallView::was_denied));
                call.map_or_else(Vec::new, |call| chip::call_lines(call, layout))
            }
        };
        self.turn.calls += 1;
        lines.iter().for_each(|line| self.print(line));
    }

    /// The sandbox of the run's commands, as it was found when the run began.
    fn sandbox_text(&self) -> Option<String> {
        let header = self.run.header.as_ref()?;
        let Some(status) = header.sandbox() else {
            return header
                .opened
                .bare
                .as_ref()
                .map(|_| "no sandbox: commands are refused or unconfined".into());
        };
        let tier = status.tier;
        Some(match status.missing_layer(tier) {
            None => format!("sandbox {tier}"),
            Some(_) => format!("sandbox {tier}, weaker"),
        })
    }
}

impl Observer for ChatView {
    fn on_event(&mut self, note: &WrittenEvent<'_>) {
        let payloads = |wanted: &PayloadRef| {
            note.payloads.iter().find(|(item, _)| item == wanted).map(|(_, bytes)| bytes.clone())
        };
        let state = &mut *self.state();
        state.run.apply_event(note.at, note.event, &payloads);
        match note.event {
            Event::CallStarted(_) => {
                let about = state.run.calls.last().map(capsule_report::CallView::summary);
                state.progress.begin(about.unwrap_or_default());
            }
            Event::ApprovalShown(_) | Event::ConnectionShown(_) => {
                state.turn.prompts += 1;
                state.end_text();
            }
            _ => {}
        }
    }
}

impl ConversationObserver for ChatView {
    fn on_conversation(&mut self, event: &ConversationEvent<'_>) {
        let state = &mut *self.state();
        match event {
            ConversationEvent::Requested { .. } => state.progress.begin(WAITING.into()),
            ConversationEvent::Text(piece) => {
                let piece = state.flow.push(piece);
                state.write(&piece);
            }
            ConversationEvent::TextDropped => {
                state.end_text();
                state.print(&format!(
                    "{HINT}the answer broke off{HINT:#}: the model is asked again"
                ));
                state.progress.begin(WAITING.into());
            }
            ConversationEvent::Answered { .. } => state.end_text(),
            ConversationEvent::CallProposed { tool, .. } => (*tool).clone_into(&mut state.tool),
            ConversationEvent::CallFinished { answer, .. } => state.show_call(answer),
        }
    }
}
