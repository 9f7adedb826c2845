//! A run as lines for a terminal: the timeline while it is written, and the summary behind it.

mod list;
mod other_runs;
mod sandbox;

use anstyle::{AnsiColor, Style};
use capsule_core::code::Code;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::digest::Digest;
use capsule_core::escape;
use capsule_core::journal::{Event, StepEnding};
use capsule_core::outcome::{CodedError, Status};
use capsule_core::units::{counted, show_duration, show_size};
use capsule_store::{Note, is_origin};

use crate::approval::{AnsweredBy, Approval};
use crate::changes::{change_count, change_lines};
use crate::columns::{Layout, clip, pad, thousands, width, wrap};
use crate::layers::judged_by;
use crate::story::{CallStory, Header, Payloads, StepStory, Story};
use crate::summary::Summary;

/// How many changed paths are shown with a call.
const CHANGES_SHOWN: usize = 8;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
const QUIET: Style = Style::new().dimmed();

/// Makes lines of events as they come.
#[derive(Clone, Debug)]
pub struct Console {
    /// What the events add up to so far.
    pub story: Story,
    layout: Layout,
    /// A call that the policy asks about, of which nothing was said yet: it may be answered.
    asked: bool,
}

impl Console {
    /// Lines in a layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { story: Story::default(), layout, asked: false }
    }

    /// The same where calls that were shown are only counted, so that it does not grow with the run.
    #[must_use]
    pub fn counting(layout: Layout) -> Self {
        Self { story: Story::counting(), ..Self::new(layout) }
    }

    /// Takes the next event; gives the lines that it completes.
    pub fn see(&mut self, at: u64, event: &Event, payloads: &Payloads<'_>) -> Vec<String> {
        let mut before = self.unanswered(event);
        before.extend(self.next(at, event, payloads));
        before
    }

    /// The lines of a call that the policy asked about, once it is known that nobody will answer.
    fn unanswered(&mut self, next: &Event) -> Vec<String> {
        let answered = matches!(
            next,
            Event::ApprovalShown(_)
                | Event::ApprovalWaiting(_)
                | Event::GrantUsed(_)
                | Event::ApprovalCovered { .. }
        );
        match std::mem::take(&mut self.asked) && !answered {
            true => self.last_call(),
            false => Vec::new(),
        }
    }

    fn next(&mut self, at: u64, event: &Event, payloads: &Payloads<'_>) -> Vec<String> {
        self.story.see(at, event, payloads);
        let has_steps = self.story.header.as_ref().is_some_and(|own| own.opened.plan.is_some());
        match event {
            Event::RunOpened(_) => self.story.header.as_ref().map_or_else(Vec::new, header),
            Event::StepEnded(_) => match self.story.steps.last() {
                Some(step) => self.step(step),
                None => Vec::new(),
            },
            Event::CallDecided(decided) if !has_steps => match decided.decision {
                Verdict::Allow => Vec::new(),
                Verdict::Deny => self.last_call(),
                Verdict::Ask | Verdict::AskEach => {
                    self.asked = true;
                    Vec::new()
                }
            },
            Event::CallFinished(_) if !has_steps => self.last_call(),
            Event::ApprovalWaiting(_) => self.waiting_call(),
            Event::PlanAnswered(_) => self.plan(),
            Event::RunResumed(_) => self.resumed(),
            Event::AnswerGiven(_) => self.answer(),
            Event::FeedbackGiven(_) => self.feedback(),
            Event::RunSealed(_) => self.summary(),
            _ => Vec::new(),
        }
    }

    /// What became of the question about the whole plan.
    fn plan(&self) -> Vec<String> {
        let Some(asked) = &self.story.plan else { return Vec::new() };
        let mut lines = vec![format!("plan: {}", asked.words())];
        if let AnsweredBy::Person { why: Some(why), .. } = &asked.by {
            lines.extend(self.bar(why));
        }
        lines
    }

    fn last_call(&self) -> Vec<String> {
        let Some(call) = self.story.calls.last() else { return Vec::new() };
        let mut lines = self.line(call.call, &Sign::of_call(call), "", Some(call));
        lines.extend(self.changed(call));
        lines.extend(self.trouble(call, None));
        lines
    }

    fn step(&self, step: &StepStory) -> Vec<String> {
        let call = match step.ended.ending {
            StepEnding::Skipped | StepEnding::NotReached => None,
            _ => self.story.call_of(step),
        };
        let sign = Sign::of_step(step);
        let list = call.and_then(|call| self.story.list_of(call));
        let shown = list.as_ref().map(|(whole, _)| *whole).or(call);
        let mut lines = self.line(step.number, &sign, &step.ended.step, shown);
        match list {
            Some((_, parts)) => lines.extend(self.parts(&parts)),
            None => lines.extend(call.into_iter().flat_map(|call| self.changed(call))),
        }
        match step.ended.ending {
            StepEnding::Denied | StepEnding::Failed => match call {
                Some(call) => lines.extend(self.trouble(call, step.note.as_ref())),
                None => lines.extend(self.note(step.note.as_ref())),
            },
            StepEnding::DeniedAsExpected => {
                let decision = call.and_then(|call| call.decision.as_ref());
                if let Some(suggestion) = decision.and_then(|own| own.suggestion.as_ref()) {
                    lines.extend(self.bar(&format!("Instead: {}", sentence_end(suggestion))));
                }
            }
            _ => {}
        }
        lines
    }

    /// One line if everything fits, else a second one for the details.
    fn line(&self, number: u64, sign: &Sign, id: &str, call: Option<&CallStory>) -> Vec<String> {
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
        let about = call.map(|call| escape::line(&call.about()).into_owned()).unwrap_or_default();
        let subject = format!("{named}{} {about}", pad(&escape::line(tool), 9));
        let details = call.map(|call| details(call, sign)).unwrap_or_default();
        let used = width(&head) + icon_width + width(&word) + 1;
        let styled = format!("{head}{style}{mark}{word}{style:#} ");
        let room = self.layout.width.saturating_sub(used);
        let one_line = width(&subject) + 2 + width(&details) <= room;
        if details.is_empty() || one_line {
            let gap = room.saturating_sub(width(&subject) + width(&details));
            let line = match details.is_empty() {
                true => format!("{styled}{subject}"),
                false => {
                    format!("{styled}{subject}{}{QUIET}{details}{QUIET:#}", " ".repeat(gap))
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
            wrap(&details, room).into_iter().map(|line| format!("{indent}{QUIET}{line}{QUIET:#}")),
        );
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    /// The first paths that a call changed in a staged workspace.
    fn changed(&self, call: &CallStory) -> Vec<String> {
        let shown = call.changes.iter().take(CHANGES_SHOWN);
        let mut lines: Vec<String> = change_lines(shown).flat_map(|line| self.bar(&line)).collect();
        let more = call.changes.len().saturating_sub(CHANGES_SHOWN);
        if more > 0 {
            let label =
                self.story.header.as_ref().map_or("latest", |own| own.opened.label.as_str());
            lines.extend(
                self.bar(&format!("and {more} more: capsule show-run {label}:{}", call.call)),
            );
        }
        lines
    }

    /// What a denial or failure is about, and what to do instead.
    fn trouble(&self, call: &CallStory, note: Option<&CodedError>) -> Vec<String> {
        let unexpected = note.is_some_and(|note| note.code == Code::PlanExpectation);
        let denied =
            call.decision.as_ref().filter(|own| call.was_held(own) && !own.is_misunderstood());
        if let (Some(decision), false) = (denied, unexpected) {
            let mut lines = self.denial(call, decision);
            // A denial that is not the expected one.
            let said = call.approval.as_ref().and(call.problem.as_ref());
            let other = note.or(said).filter(|note| note.message != decision.reason);
            lines.splice(
                0..0,
                other.into_iter().flat_map(|note| self.bar(&sentence(&note.message))),
            );
            return lines;
        }
        let misunderstood = call.decision.as_ref().filter(|own| own.is_misunderstood());
        let misunderstood = misunderstood.cloned().map(CodedError::from);
        let problem = note.or(call.problem.as_ref()).or(misunderstood.as_ref());
        let mut lines = self.note(problem);
        if let Some(stderr) = first_lines(call) {
            lines.extend(self.bar(&stderr));
        }
        lines
    }

    fn denial(&self, call: &CallStory, decision: &Decision) -> Vec<String> {
        let mut lines = Vec::new();
        let place = match (&decision.at, &decision.rule) {
            (Some(at), Some(rule)) => format!("{at} · rule {rule} · {}", decision.code),
            (None, Some(rule)) => format!("rule {rule} · {}", decision.code),
            _ => decision.code.slug().to_owned(),
        };
        lines.extend(self.bar(&place));
        lines.extend(self.bar(&sentence(&decision.reason)));
        // Whoever was asked knows where.
        if let Some(suggestion) = decision.suggestion.as_ref().filter(|_| call.approval.is_none()) {
            lines.extend(self.bar(&format!("Instead: {}", sentence_end(suggestion))));
        }
        let label = self.story.header.as_ref().map_or("latest", |own| own.opened.label.as_str());
        let name = call.step.clone().unwrap_or_else(|| call.call.to_string());
        let lift = Approval::lift(call, decision.verdict);
        let last = format!("{lift} · capsule policy explain {label}:{}", escape::line(&name));
        let corner = if self.layout.plain { "   " } else { "   └ " };
        let room = self.layout.width.saturating_sub(width(corner));
        let mut wrapped = wrap(&last, room).into_iter();
        lines.extend(wrapped.next().map(|first| format!("{QUIET}{corner}{first}{QUIET:#}")));
        lines.extend(wrapped.map(|more| format!("{QUIET}     {more}{QUIET:#}")));
        lines
    }

    fn note(&self, problem: Option<&CodedError>) -> Vec<String> {
        let Some(problem) = problem else { return Vec::new() };
        let mut lines = self.bar(&format!("{} ({})", sentence(&problem.message), problem.code));
        if let Some(suggestion) = &problem.suggestion {
            lines.extend(self.bar(&format!("Instead: {}", sentence_end(suggestion))));
        }
        lines
    }

    fn bar(&self, text: &str) -> Vec<String> {
        let bar = if self.layout.plain { "   " } else { "   │ " };
        let room = self.layout.width.saturating_sub(width(bar));
        let text = escape::block(text);
        let lines = text.lines().flat_map(|line| wrap(line, room));
        lines.map(|line| format!("{bar}{line}")).collect()
    }

    fn summary(&self) -> Vec<String> {
        let summary = self.story.summary();
        let Some(end) = &self.story.sealed else { return Vec::new() };
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
        let ended = || Summary::exit_word(end.sealed.exit);
        let word = end.sealed.suspended.map_or_else(ended, |_| "suspended");
        let status = self.story.status().unwrap_or_else(|| end.sealed.exit.status());
        lines.push(format!("{word} · exit {status}"));
        lines
    }

    /// Where the run stands in the store's tree, and the checkpoint that was signed when it ended: one line
    /// that can be noted down elsewhere.
    #[must_use]
    pub fn seal(&self, size: u64, root: &Digest, note: Option<&Note>) -> Vec<String> {
        let events = self.story.sealed.as_ref().map_or(0, |end| end.sealed.events);
        let (events, size_told) = (counted(events, "event"), thousands(size));
        let sealed = format!("sealed {events} · size {size_told} · root {}", root.short());
        let own = note.and_then(Note::checkpoint);
        let own = own.filter(|own| own.size == size && is_origin(&own.origin));
        let signed = own.map(|own| format!("checkpoint {}", own.line()));
        std::iter::once(sealed).chain(signed).collect()
    }
}

/// The lines above the timeline.
fn header(header: &Header) -> Vec<String> {
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
    lines.extend(judged_by(opened));
    lines.extend([format!(
        "workspace  {}{}",
        escape::line(&path),
        match (opened.staged, opened.direct) {
            (true, _) => " · staged",
            (false, true) => " · direct: changes are not collected",
            (false, false) => "",
        }
    )]);
    lines.extend(opened.walls.as_ref().map(sandbox::walls));
    lines.extend(opened.bare.as_ref().map(sandbox::bare).into_iter().flatten());
    lines.extend(opened.unpulled.map(crate::undo::waiting));
    lines.push(String::new());
    lines
}

/// An icon, and always a word with it.
struct Sign {
    icon: &'static str,
    word: &'static str,
    style: Style,
}

impl Sign {
    const fn new(icon: &'static str, word: &'static str, style: Style) -> Self {
        Self { icon, word, style }
    }

    fn of_step(step: &StepStory) -> Self {
        match step.ended.ending {
            StepEnding::Ok => Self::new("✔", "ok", GOOD),
            StepEnding::DeniedAsExpected => Self::new("✔", "denied", GOOD),
            StepEnding::FailedAsExpected => Self::new("✔", "failed", GOOD),
            StepEnding::Denied if step.was_asked() => Self::new("?", "ASKED", CARE),
            StepEnding::Denied => Self::new("✖", "DENIED", BAD),
            StepEnding::Failed if step.was_cancelled() => Self::new("⊘", "CANCELLED", CARE),
            StepEnding::Failed if step.ended.goes_on => Self::new("⚠", "failed", CARE),
            StepEnding::Failed => Self::new("✖", "FAILED", BAD),
            StepEnding::Skipped => Self::new("↷", "skipped", QUIET),
            StepEnding::NotReached => Self::new("·", "not run", QUIET),
        }
    }

    fn of_call(call: &CallStory) -> Self {
        match call.status() {
            _ if call.waits() => Self::new("?", "WAITS", CARE),
            _ if call.was_asked() => Self::new("?", "ASKED", CARE),
            _ if call.was_cancelled() => Self::new("⊘", "CANCELLED", CARE),
            // Its parts follow, each with its own end.
            _ if call.is_list() => Self::new("·", "list", QUIET),
            Some(Status::Ok) => Self::new("✔", "ok", GOOD),
            Some(Status::Denied) => Self::new("✖", "DENIED", BAD),
            Some(Status::ToolError | Status::RuntimeError) => Self::new("✖", "FAILED", BAD),
            None if call.is_unknown() => Self::new("?", "UNKNOWN", CARE),
            None => Self::new("…", "running", QUIET),
        }
    }
}

/// Risk, duration, size and rule of a call.
fn details(call: &CallStory, sign: &Sign) -> String {
    let mut parts: Vec<String> = Vec::new();
    let decision = call.decision.as_ref();
    let denied = decision.is_some_and(|own| call.was_held(own));
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
    parts.extend(decision.map(|own| own.risk.to_string()));
    parts.extend(call.micros().map(show_duration));
    parts.extend(change(call).or_else(|| call.bytes().map(show_size)));
    parts.extend(decision.and_then(|own| own.rule.as_deref()).map(|rule| short_rule(rule, call)));
    parts.extend(call.approval.as_ref().map(Approval::words));
    parts.extend(call.can_be_undone().then(|| "↶ undo".into()));
    parts.extend(call.is_irreversible().then(|| "cannot be undone".into()));
    if !call.changes.is_empty() {
        parts.push(change_count(&call.changes));
    }
    if call.is_direct() {
        parts.push("changes not collected".into());
    }
    if call.is_unconfined() {
        parts.push("NOT CONFINED".into());
    }
    parts.extend(call.limits().map(|names| format!("⚠ limit reached: {names}")));
    parts.extend(call.left_running().map(|left| format!("⚠ left running, and ended: {left}")));
    if !call.tainted.is_empty() || call.tool.as_str() == "http.get" {
        parts.push("⚠ untrusted".into());
    }
    if call.finished.as_ref().is_some_and(|(_, finished)| finished.masked > 0) {
        parts.push("masked".into());
    }
    parts.join(" · ")
}

/// Lines added and removed by a write.
fn change(call: &CallStory) -> Option<String> {
    let output = call.output.as_ref()?;
    let added = output.get("added")?.as_u64()?;
    let removed = output.get("removed")?.as_u64()?;
    Some(format!("+{added} −{removed}"))
}

/// `shell.run/git.log` as `rule git.log`; the profile by its word.
fn short_rule(rule: &str, call: &CallStory) -> String {
    if let Some(profile) = rule.strip_prefix("profile/") {
        return format!("profile {profile}");
    }
    let own = rule.strip_prefix(call.tool.as_str()).and_then(|rest| rest.strip_prefix('/'));
    format!("rule {}", escape::line(own.unwrap_or(rule)))
}

/// The first lines of a failed program's standard error.
fn first_lines(call: &CallStory) -> Option<String> {
    let stderr = call.output.as_ref()?.get("stderr")?.as_str()?;
    let line = stderr.lines().find(|line| !line.trim().is_empty())?;
    Some(format!("stderr: {}", clip(line.trim(), 300)))
}

fn sentence(fragment: &str) -> String {
    let mut chars = fragment.chars();
    let capital = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
    sentence_end(&capital.unwrap_or_default())
}

fn sentence_end(fragment: &str) -> String {
    let ends = fragment.ends_with(['.', '?', '!']);
    if ends { fragment.into() } else { format!("{fragment}.") }
}
