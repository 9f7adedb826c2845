//! One call with everything that is known about it.

use capsule_base::escape;
use capsule_base::units::{show_duration, show_size};
use capsule_core::capability::Capability;
use capsule_core::confinement::{Enforcement, EnforcementLevel};
use capsule_core::decision::Decision;
use capsule_core::journal::UndoCoverage;

use crate::call_view::CallView;
use crate::changes::change_lines;
use crate::columns::{Layout, wrap};
use crate::connections::connection_lines;

/// How wide the names are, with the space behind them.
const LABEL_COLUMNS: usize = 13;

/// Everything about one call.
#[must_use]
pub fn call_detail(call: &CallView, layout: Layout) -> Vec<String> {
    let mut sheet =
        DetailLines { lines: Vec::new(), width: layout.width.saturating_sub(LABEL_COLUMNS) };
    sheet.add("call", &format!("{} {}", call.call, call.tool));
    if let Some(step) = &call.step {
        sheet.add("step", &format!("{step} (attempt {})", call.attempt));
    }
    if let Some(args) = &call.args {
        sheet.add("arguments", &serde_json::to_string_pretty(args).unwrap_or_default());
    }
    if let Some(program) = call.facts.as_ref().and_then(|facts| facts.program.as_ref()) {
        sheet.add("program", &format!("{} · sha256 {}", program.real, program.sha256));
    }
    if let Some(decision) = &call.decision {
        sheet.add_decision(decision, call.output.is_some());
    }
    if let Some(approval) = &call.approval {
        sheet.add("approval", &approval.summary());
    }
    sheet.add_end(call);
    if !call.changes.is_empty() {
        let lines: Vec<String> = change_lines(&call.changes).collect();
        sheet.add("changes", &lines.join("\n"));
    }
    if !call.connections.is_empty() {
        sheet.add("network", &connection_lines(&call.connections).join("\n"));
    }
    if call.writes_directly() {
        sheet.add("changes", "made in the workspace itself, and not collected");
    }
    match (call.can_be_undone(), call.undo_coverage()) {
        (true, Some(UndoCoverage { paths, bytes })) => {
            let plural = if paths == 1 { "path" } else { "paths" };
            sheet.add("undo", &format!("{paths} {plural}, {} kept", show_size(bytes)));
        }
        (true, None) => sheet.add("undo", "kept"),
        (false, _) if call.is_irreversible() => sheet.add("undo", "cannot be undone"),
        (false, _) => {}
    }
    if let Some(output) = &call.output {
        sheet.add("result", &serde_json::to_string_pretty(output).unwrap_or_default());
    }
    sheet.lines
}

/// Lines of names and values; a long value goes on below itself.
struct DetailLines {
    lines: Vec<String>,
    width: usize,
}

impl DetailLines {
    fn add(&mut self, name: &str, value: &str) {
        let value = escape::block(value);
        let mut lines = value.lines().flat_map(|line| wrap(line, self.width));
        let names = LABEL_COLUMNS - 1;
        self.lines.push(format!("{name:<names$} {}", lines.next().unwrap_or_default()));
        self.lines.extend(lines.map(|more| format!("{:names$} {more}", "")));
    }

    fn add_decision(&mut self, decision: &Decision, has_run: bool) {
        self.add("decision", &format!("{} · {}", decision.verdict, decision.code));
        let rule = decision.rule.as_deref().unwrap_or("(none)");
        self.add("rule", &format!("{rule} · {}", decision.at.as_deref().unwrap_or("")));
        self.add("risk", decision.risk.name());
        let needs: Vec<&str> = decision.capabilities.iter().map(Capability::name).collect();
        self.add("needs", &needs.join(" "));
        self.add("reason", &decision.reason);
        // Of what ran, nothing else is wanted.
        if let Some(suggestion) = decision.suggestion.as_ref().filter(|_| !has_run) {
            self.add("instead", suggestion);
        }
    }

    fn add_end(&mut self, call: &CallView) {
        if let Some((_, finished)) = &call.finished {
            let ended = format!("{:?} · {}", finished.ending, finished.status.name());
            self.add("ended", &ended.to_lowercase());
            self.add("held by", &enforcement_text(&finished.enforcement));
        } else if call.is_unknown() {
            self.add("ended", "outcome unknown: it was started and its end was never written");
        }
        if let Some(micros) = call.micros() {
            self.add("took", &show_duration(micros));
        }
        if let Some(names) = call.limits_text() {
            self.add("limits", &format!("reached: {names}"));
        }
        if let Some(left) = call.left_running_text() {
            self.add("left running", &format!("{left}, ended with the command"));
        }
        if let Some(problem) = &call.problem {
            self.add("problem", &format!("{} ({})", problem.message, problem.code));
        }
    }
}

fn enforcement_text(enforcement: &Enforcement) -> String {
    match enforcement {
        Enforcement::InProcess => "in process, by descriptors".into(),
        Enforcement::Unconfined { limits: bounds } => {
            let bounds =
                bounds.iter().map(|status| format!(" · {} {}", status.limit.name(), status.detail));
            format!("nothing: it could do whatever you can{}", bounds.collect::<String>())
        }
        Enforcement::Sandboxed(status) => {
            let layers = status.layers.iter();
            let layers = layers.map(|layer| match layer.level {
                EnforcementLevel::Missing => format!(" · no {}", layer.layer.name()),
                _ if layer.detail.is_empty() => format!(" · {}", layer.layer.name()),
                _ => format!(" · {}: {}", layer.layer.name(), layer.detail),
            });
            format!("{}{}", status.tier, layers.collect::<String>())
        }
    }
}
