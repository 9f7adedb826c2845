//! A call in a conversation: one line, and for a refusal why, and what to do instead.

use anstyle::Style;
use capsule_base::escape;
use capsule_base::units::show_duration;
use capsule_core::outcome::{CodedError, Status};
use capsule_report::{CallView, Layout, change_count, clip, wrap};

use crate::screen::{DIMMED, ERROR, SUCCESS, WARNING};

/// How many lines what a call is about may take.
const ABOUT_LINES: usize = 2;

/// The lines of a call that is over.
pub(crate) fn call_lines(call: &CallView, layout: Layout) -> Vec<String> {
    let (icon, word, style) = mark(call);
    let mut details: Vec<String> = Vec::new();
    details.extend((!word.is_empty()).then(|| word.to_owned()));
    let decision = call.decision.as_ref();
    if is_refused(call) {
        let rule = decision.and_then(|decision| decision.rule.as_deref());
        details.extend(rule.map(|rule| format!("rule {}", escape::line(rule))));
    }
    details.extend(call.approval.as_ref().map(capsule_report::ApprovalView::summary));
    details.extend(call.micros().map(show_duration));
    if !call.changes.is_empty() {
        details.push(change_count(&call.changes));
    }
    details.extend(call.limits_text().map(|limits| format!("limit reached: {limits}")));
    let about = escape::line(&call.summary()).into_owned();
    let chip = Chip { icon, style, tool: call.tool.as_str(), about: &about };
    let mut lines = chip.lines(&details, layout);
    if let Some(problem) = problem(call) {
        lines.extend(problem_lines(&problem, layout));
    }
    lines
}

/// The lines of a call that was never proposed: its arguments are none.
pub(crate) fn malformed_lines(tool: &str, layout: Layout) -> Vec<String> {
    let tool = escape::line(tool);
    let chip = Chip { icon: "✖", style: WARNING, tool: &tool, about: "" };
    chip.lines(&["arguments that cannot be read; the model was told".into()], layout)
}

/// The head of a call's line.
struct Chip<'c> {
    icon: &'c str,
    style: Style,
    tool: &'c str,
    about: &'c str,
}

impl Chip<'_> {
    fn lines(&self, details: &[String], layout: Layout) -> Vec<String> {
        let room = layout.width.saturating_sub(5);
        let about = clip(self.about, room * ABOUT_LINES);
        let subject = [self.tool, &about].join(" ");
        let all = [&[subject.trim_end().to_owned()], details].concat().join(" · ");
        let icon = if layout.plain { "-" } else { self.icon };
        let Self { style, .. } = self;
        let lines = wrap(&all, room).into_iter().enumerate();
        lines
            .map(|(at, line)| match at {
                0 => format!("  {style}{icon}{style:#} {line}"),
                _ => format!("    {line}"),
            })
            .collect()
    }
}

fn is_refused(call: &CallView) -> bool {
    call.status() == Some(Status::Denied)
}

/// An icon, and a word where it needs one.
fn mark(call: &CallView) -> (&'static str, &'static str, Style) {
    match call.status() {
        _ if call.was_cancelled() => ("⊘", "cancelled", WARNING),
        _ if call.is_waiting() => ("?", "waits for an answer", WARNING),
        Some(Status::Ok) => ("✔", "", SUCCESS),
        Some(Status::Denied) if call.lacked_approval() => ("?", "not approved", WARNING),
        Some(Status::Denied) => ("✖", "denied", ERROR),
        Some(Status::ToolError | Status::RuntimeError) | None => ("✖", "failed", ERROR),
    }
}

/// The problem of a call, or the reason of its refusal.
fn problem(call: &CallView) -> Option<CodedError> {
    let refusal = || call.decision.clone().filter(|_| is_refused(call)).map(CodedError::from);
    call.problem.clone().or_else(refusal)
}

fn problem_lines(problem: &CodedError, layout: Layout) -> Vec<String> {
    let mut text = escape::line(&problem.message).into_owned();
    if let Some(suggestion) = &problem.suggestion {
        text.push_str(&format!("; instead: {}", escape::line(suggestion)));
    }
    let lines = wrap(&text, layout.width.saturating_sub(5)).into_iter();
    lines.map(|line| format!("    {DIMMED}{line}{DIMMED:#}")).collect()
}
