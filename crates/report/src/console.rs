//! A run as lines for a terminal: the timeline while it is written, and the summary behind it.

mod conversation;
mod list;
mod other_runs;
mod sandbox;
mod sign;

pub use sandbox::network_text;

use anstyle::Style;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::escape;
use capsule_base::units::{counted, show_duration, show_size};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{Event, StepEnding};
use capsule_core::outcome::CodedError;
use capsule_store::{SignedNote, is_origin};

use crate::approval::{AnsweredBy, ApprovalView};
use crate::call_view::CallView;
use crate::changes::{change_count, change_lines};
use crate::columns::{Layout, clip, pad, thousands, width, wrap};
use crate::connections::connection_lines;
use crate::layers::policy_lines;
use crate::payloads::PayloadLookup;
use crate::run_view::{RunHeader, RunView, StepView};
use crate::style::DIMMED;
use crate::summary::Summary;
use sign::Sign;

/// How many changed paths are shown with a call.
const CHANGES_SHOWN: usize = 8;

/// Makes lines of events as they come.
#[derive(Clone, Debug)]
pub struct Console {
    /// What the events add up to so far.
    pub run: RunView,
    layout: Layout,
    /// A call that the policy asks about, of which nothing was said yet: it may be answered.
    has_open_question: bool,
}

impl Console {
    /// Lines in a layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { run: RunView::default(), layout, has_open_question: false }
    }

    /// The same where calls that were shown are only counted, so that it does not grow with the run.
    #[must_use]
    pub fn counting(layout: Layout) -> Self {
        Self { run: RunView::counting(), ..Self::new(layout) }
    }

    /// Takes the next event; gives the lines that it completes.
    pub fn on_event(
        &mut self,
        at: u64,
        event: &Event,
        payloads: &PayloadLookup<'_>,
    ) -> Vec<String> {
        let mut before = self.unanswered_lines(event);
        before.extend(self.event_lines(at, event, payloads));
        before
    }

    /// The lines of a call that the policy asked about, once it is known that nobody will answer.
    fn unanswered_lines(&mut self, next: &Event) -> Vec<String> {
        let answered = matches!(
            next,
            Event::ApprovalShown(_)
                | Event::ApprovalWaiting(_)
                | Event::GrantUsed(_)
                | Event::ApprovalCovered { .. }
        );
        match std::mem::take(&mut self.has_open_question) && !answered {
            true => self.last_call_lines(),
            false => Vec::new(),
        }
    }

    fn event_lines(&mut self, at: u64, event: &Event, payloads: &PayloadLookup<'_>) -> Vec<String> {
        self.run.apply_event(at, event, payloads);
        let has_steps = self.run.header.as_ref().is_some_and(|header| header.opened.plan.is_some());
        match event {
            Event::RunOpened(_) => self.run.header.as_ref().map_or_else(Vec::new, header_lines),
            Event::StepEnded(_) => match self.run.steps.last() {
                Some(step) => self.step_lines(step),
                None => Vec::new(),
            },
            Event::CallDecided(decided) if !has_steps => match decided.decision {
                Verdict::Allow => Vec::new(),
                Verdict::Deny => self.last_call_lines(),
                Verdict::Ask | Verdict::AskEach => {
                    self.has_open_question = true;
                    Vec::new()
                }
            },
            Event::CallFinished(_) if !has_steps => self.last_call_lines(),
            Event::ApprovalWaiting(_) => self.waiting_call_lines(),
            Event::PlanAnswered(_) => self.plan_approval_lines(),
            Event::RunResumed(_) => self.resumed_lines(),
            Event::AnswerGiven(_) => self.answer_lines(),
            Event::FeedbackGiven(_) => self.feedback_lines(),
            Event::RunSealed(_) => self.summary_lines(),
            _ => self.conversation_lines(event, payloads),
        }
    }

    /// What became of the question about the whole plan.
    fn plan_approval_lines(&self) -> Vec<String> {
        let Some(asked) = &self.run.plan else { return Vec::new() };
        let mut lines = vec![format!("plan: {}", asked.summary())];
        if let AnsweredBy::Person { why: Some(why), .. } = &asked.answered_by {
            lines.extend(self.wrapped_bar(why));
        }
        lines
    }

    fn last_call_lines(&self) -> Vec<String> {
        let Some(call) = self.run.calls.last() else { return Vec::new() };
        let mut lines = self.timeline_lines(call.call, &Sign::of_call(call), "", Some(call));
        lines.extend(self.effect_lines(call));
        lines.extend(self.problem_lines(call, None));
        lines
    }

    fn step_lines(&self, step: &StepView) -> Vec<String> {
        let call = match step.ended.ending {
            StepEnding::Skipped | StepEnding::NotReached => None,
            _ => self.run.call_of(step),
        };
        let sign = Sign::of_step(step);
        let list = call.and_then(|call| self.run.list_of(call));
        let shown = list.as_ref().map(|(whole, _)| *whole).or(call);
        let mut lines = self.timeline_lines(step.number, &sign, &step.ended.step, shown);
        match list {
            Some((_, parts)) => lines.extend(self.parts(&parts)),
            None => lines.extend(call.into_iter().flat_map(|call| self.effect_lines(call))),
        }
        match step.ended.ending {
            StepEnding::Denied | StepEnding::Failed => match call {
                Some(call) => lines.extend(self.problem_lines(call, step.note.as_ref())),
                None => lines.extend(self.note_lines(step.note.as_ref())),
            },
            StepEnding::DeniedAsExpected => {
                let decision = call.and_then(|call| call.decision.as_ref());
                if let Some(suggestion) = decision.and_then(|decision| decision.suggestion.as_ref())
                {
                    lines.extend(
                        self.wrapped_bar(&format!("Instead: {}", end_sentence(suggestion))),
                    );
                }
            }
            _ => {}
        }
        lines
    }

    /// One line if everything fits, else a second one for the details.
    fn timeline_lines(
        &self,
        number: u64,
        sign: &Sign,
        id: &str,
        call: Option<&CallView>,
    ) -> Vec<String> {
        let icon = if self.layout.plain { "" } else { sign.icon };
        let style = sign.style;
        let word = pad(sign.word, 8);
        let id = if id == number.to_string() { "" } else { id };
        let name = escape::line(id);
        let tool = call.map_or("", |call| call.tool.as_str());
        let head = format!("{number:>2} ");
        let icon_width = if icon.is_empty() { 0 } else { width(icon) + 1 };
        let mark = if icon.is_empty() { String::new() } else { format!("{icon} ") };
        let named = if name.is_empty() { String::new() } else { format!("{} ", pad(&name, 9)) };
        let about = call.map(|call| escape::line(&call.summary()).into_owned()).unwrap_or_default();
        let subject = format!("{named}{} {about}", pad(&escape::line(tool), 9));
        let details = call.map(|call| details_text(call, sign)).unwrap_or_default();
        let used = width(&head) + icon_width + width(&word) + 1;
        let styled = format!("{head}{style}{mark}{word}{style:#} ");
        let room = self.layout.width.saturating_sub(used);
        let one_line = width(&subject) + 2 + width(&details) <= room;
        if details.is_empty() || one_line {
            let gap = room.saturating_sub(width(&subject) + width(&details));
            let line = match details.is_empty() {
                true => format!("{styled}{subject}"),
                false => {
                    format!("{styled}{subject}{}{DIMMED}{details}{DIMMED:#}", " ".repeat(gap))
                }
            };
            return vec![line.trim_end().to_owned()];
        }
        let mut wrapped = wrap(&subject, room).into_iter();
        let indent = " ".repeat(used);
        let first = wrapped.next().unwrap_or_default();
        let mut lines = vec![format!("{styled}{first}")];
        lines.extend(wrapped.map(|more| format!("{indent}{more}")));
        lines.extend(
            wrap(&details, room)
                .into_iter()
                .map(|line| format!("{indent}{DIMMED}{line}{DIMMED:#}")),
        );
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    /// The first paths that a call changed in a staged workspace, and the first hosts that it connected to.
    fn effect_lines(&self, call: &CallView) -> Vec<String> {
        let shown = call.changes.iter().take(CHANGES_SHOWN);
        let mut lines: Vec<String> =
            change_lines(shown).flat_map(|line| self.wrapped_bar(&line)).collect();
        lines.extend(self.more_line(call, call.changes.len()));
        let hosts = connection_lines(&call.connections);
        let shown = hosts.iter().take(CHANGES_SHOWN);
        lines.extend(shown.flat_map(|line| self.wrapped_bar(&format!("⇄ {line}"))));
        lines.extend(self.more_line(call, hosts.len()));
        lines
    }

    /// Says where the rest of a list is that is longer than what is shown of it.
    fn more_line(&self, call: &CallView, length: usize) -> Vec<String> {
        let label = self.run.header.as_ref().map_or("latest", |header| &header.opened.label);
        match length.saturating_sub(CHANGES_SHOWN) {
            0 => Vec::new(),
            more => self
                .wrapped_bar(&format!("and {more} more: capsule show-run {label}:{}", call.call)),
        }
    }

    /// What a denial or failure is about, and what to do instead.
    fn problem_lines(&self, call: &CallView, note: Option<&CodedError>) -> Vec<String> {
        let unexpected = note.is_some_and(|note| note.code == Code::PlanExpectation);
        let denied = call
            .decision
            .as_ref()
            .filter(|decision| call.was_stopped_by(decision) && !decision.is_misunderstood());
        if let (Some(decision), false) = (denied, unexpected) {
            let mut lines = self.denial_lines(call, decision);
            // A denial that is not the expected one.
            let said = call.approval.as_ref().and(call.problem.as_ref());
            let other = note.or(said).filter(|note| note.message != decision.reason);
            // What a person wrote stays as it is.
            let told = |note: &CodedError| match note.code {
                Code::ApprovalDenied | Code::ApprovalStopped => note.message.clone(),
                _ => to_sentence(&note.message),
            };
            lines.splice(0..0, other.into_iter().flat_map(|note| self.wrapped_bar(&told(note))));
            return lines;
        }
        let misunderstood = call.decision.as_ref().filter(|decision| decision.is_misunderstood());
        let misunderstood = misunderstood.cloned().map(CodedError::from);
        let problem = note.or(call.problem.as_ref()).or(misunderstood.as_ref());
        let mut lines = self.note_lines(problem);
        if let Some(stderr) = first_error_lines(call) {
            lines.extend(self.wrapped_bar(&stderr));
        }
        lines
    }

    fn denial_lines(&self, call: &CallView, decision: &Decision) -> Vec<String> {
        let mut lines = Vec::new();
        let place = match (&decision.at, &decision.rule) {
            (Some(at), Some(rule)) => format!("{at} · rule {rule} · {}", decision.code),
            (None, Some(rule)) => format!("rule {rule} · {}", decision.code),
            _ => decision.code.slug().to_owned(),
        };
        lines.extend(self.wrapped_bar(&place));
        lines.extend(self.wrapped_bar(&to_sentence(&decision.reason)));
        // Whoever was asked knows where.
        if let Some(suggestion) = decision.suggestion.as_ref().filter(|_| call.approval.is_none()) {
            lines.extend(self.wrapped_bar(&format!("Instead: {}", end_sentence(suggestion))));
        }
        let label =
            self.run.header.as_ref().map_or("latest", |header| header.opened.label.as_str());
        let name = call.step.clone().unwrap_or_else(|| call.call.to_string());
        let lift = call.approval_text(decision.verdict);
        let last = format!("{lift} · capsule policy explain {label}:{}", escape::line(&name));
        let corner = if self.layout.plain { "   " } else { "   └ " };
        let room = self.layout.width.saturating_sub(width(corner));
        let mut wrapped = wrap(&last, room).into_iter();
        lines.extend(wrapped.next().map(|first| format!("{DIMMED}{corner}{first}{DIMMED:#}")));
        lines.extend(wrapped.map(|more| format!("{DIMMED}     {more}{DIMMED:#}")));
        lines
    }

    fn note_lines(&self, problem: Option<&CodedError>) -> Vec<String> {
        let Some(problem) = problem else { return Vec::new() };
        let mut lines =
            self.wrapped_bar(&format!("{} ({})", to_sentence(&problem.message), problem.code));
        if let Some(suggestion) = &problem.suggestion {
            lines.extend(self.wrapped_bar(&format!("Instead: {}", end_sentence(suggestion))));
        }
        lines
    }

    fn wrapped_bar(&self, text: &str) -> Vec<String> {
        let bar = if self.layout.plain { "   " } else { "   │ " };
        let room = self.layout.width.saturating_sub(width(bar));
        let text = escape::block(text);
        let lines = text.lines().flat_map(|line| wrap(line, room));
        lines.map(|line| format!("{bar}{line}")).collect()
    }

    fn summary_lines(&self) -> Vec<String> {
        let summary = self.run.summary();
        let Some(end) = &self.run.sealed else { return Vec::new() };
        let mut lines = vec![String::new()];
        let mut first = vec![
            format!("{} ok", summary.ok),
            format!("{} failed", summary.failed),
            format!("{} denied", summary.stopped),
        ];
        let waits = || format!("{} waits for an answer", summary.waiting);
        first.extend((summary.waiting > 0).then(waits));
        if summary.unanswered > 0 {
            first.push(format!("{} without approval", summary.unanswered));
        }
        if summary.cancelled > 0 {
            first.push(format!("{} cancelled", summary.cancelled));
        }
        if summary.expected_denials > 0 {
            first.push(format!("{} denied as expected", summary.expected_denials));
        }
        if summary.skipped > 0 {
            first.push(format!("{} skipped", summary.skipped));
        }
        if summary.not_reached > 0 {
            first.push(format!("{} not reached", summary.not_reached));
        }
        first.push(show_duration(summary.micros));
        lines.extend(wrap(&first.join(" · "), self.layout.width));
        let deleted = match summary.files_deleted.len() {
            0 => String::new(),
            some => format!(" {some} deleted"),
        };
        let second = format!(
            "files {} read {} written{deleted} · hosts {} · programs {} · prompts {}",
            summary.files_read.len(),
            summary.files_written.len(),
            summary.hosts.len(),
            summary.programs.len(),
            summary.prompts
        );
        lines.extend(wrap(&second, self.layout.width));
        if let Some(outputs) = &end.outputs {
            for (name, value) in outputs.as_object().into_iter().flatten() {
                let value = value.as_str().map_or_else(|| value.to_string(), Into::into);
                let line = format!("output {}: {}", escape::line(name), escape::line(&value));
                lines.push(clip(&line, self.layout.width));
            }
        }
        let ended = || Summary::exit_text(end.sealed.exit);
        let word = end.sealed.suspended.map_or_else(ended, |_| "suspended");
        let status = self.run.status().unwrap_or_else(|| end.sealed.exit.status());
        lines.push(format!("{word} · exit {status}"));
        lines
    }

    /// Where the run stands in the store's tree, and the checkpoint that was signed when it ended: one line
    /// that can be noted down elsewhere.
    #[must_use]
    pub fn seal_lines(&self, size: u64, root: &Digest, note: Option<&SignedNote>) -> Vec<String> {
        let events = self.run.sealed.as_ref().map_or(0, |end| end.sealed.events);
        let (events, size_told) = (counted(events, "event"), thousands(size));
        let sealed = format!("sealed {events} · size {size_told} · root {}", root.short());
        let checkpoint = note.and_then(SignedNote::checkpoint);
        let checkpoint = checkpoint
            .filter(|checkpoint| checkpoint.size == size && is_origin(&checkpoint.origin));
        let signed = checkpoint.map(|checkpoint| format!("checkpoint {}", checkpoint.line()));
        std::iter::once(sealed).chain(signed).collect()
    }
}

/// The lines above the timeline.
fn header_lines(header: &RunHeader) -> Vec<String> {
    let opened = &header.opened;
    let strong = Style::new().bold();
    let name = escape::line(&opened.name).into_owned();
    let mut run = format!("{strong}run {}{strong:#}  {name}", opened.label);
    if opened.plan.is_some() {
        run.push_str(&format!(" · {}", counted(opened.steps, "step")));
    }
    run.push_str(&format!(" · profile {}", opened.profile));
    let home = opened.home.trim_end_matches('/');
    let path = match opened.workspace.path.strip_prefix(home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("~{rest}")
        }
        _ => opened.workspace.path.clone(),
    };
    let mut lines = vec![run];
    lines.extend(policy_lines(opened));
    lines.extend([format!(
        "workspace  {}{}",
        escape::line(&path),
        match (opened.staged, opened.direct) {
            (true, _) => " · staged",
            (false, true) => " · direct: changes are not collected",
            (false, false) => "",
        }
    )]);
    if let Some(mount) = opened.mount.as_ref().filter(|mount| **mount != opened.workspace.path) {
        lines.push(format!("           commands see it at {}", escape::line(mount)));
    }
    lines.extend(
        header.sandbox().map(|status| sandbox::sandbox_status_text(status, opened.network)),
    );
    lines.extend(opened.bare.as_ref().map(sandbox::unconfined_lines).into_iter().flatten());
    lines.extend(opened.unpulled.map(crate::undo::pending_text));
    lines.push(String::new());
    lines
}

/// Risk, duration, size and rule of a call.
fn details_text(call: &CallView, sign: &Sign) -> String {
    let mut parts: Vec<String> = Vec::new();
    let decision = call.decision.as_ref();
    let denied = decision.is_some_and(|decision| call.was_stopped_by(decision));
    if let (true, Some(decision)) = (denied, decision) {
        if sign.word == "denied" {
            parts.push("as expected".into());
        }
        parts.push(decision.risk.to_string());
        parts.push(match &decision.rule {
            Some(rule) => short_rule(rule, call),
            None => decision.code.slug().to_owned(),
        });
        return parts.join(" · ");
    }
    parts.extend(decision.map(|decision| decision.risk.to_string()));
    parts.extend(call.micros().map(show_duration));
    parts.extend(line_counts(call).or_else(|| call.result_bytes().map(show_size)));
    parts.extend(
        decision.and_then(|decision| decision.rule.as_deref()).map(|rule| short_rule(rule, call)),
    );
    parts.extend(call.approval.as_ref().map(ApprovalView::summary));
    parts.extend(call.can_be_undone().then(|| "↶ undo".into()));
    parts.extend(call.is_irreversible().then(|| "cannot be undone".into()));
    if !call.changes.is_empty() {
        parts.push(change_count(&call.changes));
    }
    if call.writes_directly() {
        parts.push("changes not collected".into());
    }
    if call.is_unconfined() {
        parts.push("NOT CONFINED".into());
    }
    parts.extend(call.limits_text().map(|names| format!("⚠ limit reached: {names}")));
    parts.extend(call.left_running_text().map(|left| format!("⚠ left running, and ended: {left}")));
    if !call.tainted.is_empty() || call.tool.as_str() == "http.get" {
        parts.push("⚠ untrusted".into());
    }
    if call.finished.as_ref().is_some_and(|(_, finished)| finished.masked > 0) {
        parts.push("masked".into());
    }
    parts.join(" · ")
}

/// Lines added and removed by a write.
fn line_counts(call: &CallView) -> Option<String> {
    let output = call.output.as_ref()?;
    let added = output.get("added")?.as_u64()?;
    let removed = output.get("removed")?.as_u64()?;
    Some(format!("+{added} −{removed}"))
}

/// `shell.run/git.log` as `rule git.log`; the profile by its word.
fn short_rule(rule: &str, call: &CallView) -> String {
    if let Some(profile) = rule.strip_prefix("profile/") {
        return format!("profile {profile}");
    }
    let text = rule.strip_prefix(call.tool.as_str()).and_then(|rest| rest.strip_prefix('/'));
    format!("rule {}", escape::line(text.unwrap_or(rule)))
}

/// The first lines of a failed program's standard error.
fn first_error_lines(call: &CallView) -> Option<String> {
    let stderr = call.output.as_ref()?.get("stderr")?.as_str()?;
    let line = stderr.lines().find(|line| !line.trim().is_empty())?;
    Some(format!("stderr: {}", clip(line.trim(), 300)))
}

fn to_sentence(fragment: &str) -> String {
    let mut chars = fragment.chars();
    let capital = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
    end_sentence(&capital.unwrap_or_default())
}

fn end_sentence(fragment: &str) -> String {
    // Marks below a text end it, too.
    let ends = fragment.ends_with(['.', '?', '!', '^']);
    if ends { fragment.into() } else { format!("{fragment}.") }
}
