//! One call with everything that is known about it.

use capsule_core::capability::Capability;
use capsule_core::confinement::{Enforcement, EnforcementLevel};
use capsule_core::decision::Decision;
use capsule_core::escape;
use capsule_core::journal::UndoCoverage;
use capsule_core::units::{show_duration, show_size};

use crate::changes::change_lines;
use crate::columns::{Layout, wrap};
use crate::story::CallStory;

/// How wide the names are, with the space behind them.
const NAMES: usize = 13;

/// Everything about one call.
#[must_use]
pub fn call_detail(call: &CallStory, layout: Layout) -> Vec<String> {
    let mut sheet = Sheet { lines: Vec::new(), room: layout.width.saturating_sub(NAMES) };
    sheet.put("call", &format!("{} {}", call.call, call.tool));
    if let Some(step) = &call.step {
        sheet.put("step", &format!("{step} (attempt {})", call.attempt));
    }
    if let Some(args) = &call.args {
        sheet.put("arguments", &serde_json::to_string_pretty(args).unwrap_or_default());
    }
    if let Some(program) = call.facts.as_ref().and_then(|facts| facts.program.as_ref()) {
        sheet.put("program", &format!("{} · sha256 {}", program.real, program.sha256));
    }
    if let Some(decision) = &call.decision {
        sheet.decision(decision);
    }
    if let Some(approval) = &call.approval {
        sheet.put("approval", &approval.words());
    }
    sheet.end(call);
    if !call.changes.is_empty() {
        let lines: Vec<String> = change_lines(&call.changes).collect();
        sheet.put("changes", &lines.join("\n"));
    }
    if call.is_direct() {
        sheet.put("changes", "made in the workspace itself, and not collected");
    }
    match (call.can_be_undone(), call.covers()) {
        (true, Some(UndoCoverage { paths, bytes })) => {
            let plural = if paths == 1 { "path" } else { "paths" };
            sheet.put("undo", &format!("{paths} {plural}, {} kept", show_size(bytes)));
        }
        (true, None) => sheet.put("undo", "kept"),
        (false, _) if call.is_irreversible() => sheet.put("undo", "cannot be undone"),
        (false, _) => {}
    }
    if let Some(output) = &call.output {
        sheet.put("result", &serde_json::to_string_pretty(output).unwrap_or_default());
    }
    sheet.lines
}

/// Lines of names and values; a long value goes on below itself.
struct Sheet {
    lines: Vec<String>,
    room: usize,
}

impl Sheet {
    fn put(&mut self, name: &str, value: &str) {
        let value = escape::block(value);
        let mut lines = value.lines().flat_map(|line| wrap(line, self.room));
        let names = NAMES - 1;
        self.lines.push(format!("{name:<names$} {}", lines.next().unwrap_or_default()));
        self.lines.extend(lines.map(|more| format!("{:names$} {more}", "")));
    }

    fn decision(&mut self, decision: &Decision) {
        self.put("decision", &format!("{} · {}", decision.verdict, decision.code));
        let rule = decision.rule.as_deref().unwrap_or("(none)");
        self.put("rule", &format!("{rule} · {}", decision.at.as_deref().unwrap_or("")));
        self.put("risk", decision.risk.name());
        let needs: Vec<&str> = decision.capabilities.iter().map(Capability::name).collect();
        self.put("needs", &needs.join(" "));
        self.put("reason", &decision.reason);
        if let Some(suggestion) = &decision.suggestion {
            self.put("instead", suggestion);
        }
    }

    fn end(&mut self, call: &CallStory) {
        if let Some((_, finished)) = &call.finished {
            let ended = format!("{:?} · {}", finished.ending, finished.status.name());
            self.put("ended", &ended.to_lowercase());
            self.put("held by", &held(&finished.enforcement));
        } else if call.is_unknown() {
            self.put("ended", "outcome unknown: it was started and its end was never written");
        }
        if let Some(micros) = call.micros() {
            self.put("took", &show_duration(micros));
        }
        if let Some(names) = call.limits() {
            self.put("limits", &format!("reached: {names}"));
        }
        if let Some(left) = call.left_running() {
            self.put("left running", &format!("{left}, ended with the command"));
        }
        if let Some(problem) = &call.problem {
            self.put("problem", &format!("{} ({})", problem.message, problem.code));
        }
    }
}

fn held(enforcement: &Enforcement) -> String {
    match enforcement {
        Enforcement::InProcess => "in process, by descriptors".into(),
        Enforcement::Unconfined { limits: bounds } => {
            let bounds = bounds.iter().map(|own| format!(" · {} {}", own.limit.name(), own.detail));
            format!("nothing: it could do whatever you can{}", bounds.collect::<String>())
        }
        Enforcement::Sandboxed(walls) => {
            let layers = walls.layers.iter();
            let layers = layers.map(|own| match own.level {
                EnforcementLevel::Missing => format!(" · no {}", own.layer.name()),
                _ => format!(" · {} {}", own.layer.name(), own.detail),
            });
            format!("{}{}", walls.tier, layers.collect::<String>())
        }
    }
}
