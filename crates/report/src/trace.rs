//! What was asked on the way to a decision, for people: every check, what it said, and which one
//! decided.

use capsule_base::escape;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{DecisionTrace, Policy, PolicyCheck};

use crate::columns::{Layout, wrap};

/// Every check of a decision in a line of its own, as wide as the screen.
#[must_use]
pub fn trace_lines(
    policy: &Policy,
    decision: &Decision,
    trace: &DecisionTrace,
    layout: Layout,
) -> Vec<String> {
    let mut told = TraceLines { policy, decision, layout, decider_shown: false, lines: Vec::new() };
    told.add_trace(trace, 2);
    told.lines
}

struct TraceLines<'t> {
    policy: &'t Policy,
    decision: &'t Decision,
    layout: Layout,
    /// Whether it was said which check decided.
    decider_shown: bool,
    lines: Vec<String>,
}

impl TraceLines<'_> {
    fn add_trace(&mut self, trace: &DecisionTrace, indent: usize) {
        for (check, said) in &trace.checks {
            match said.as_slice() {
                // What is about the whole is shown only where it says something.
                [] if *check == PolicyCheck::Command => {}
                [] => self.add_line(indent, "✔", check_name(*check), &self.passed_text(*check)),
                all => all.iter().for_each(|decision| self.add_check(indent, *check, decision)),
            }
        }
        for part in &trace.parts {
            let line = format!("{:indent$}part {}", "", escape::line(&part.subject));
            self.lines.push(line);
            self.add_trace(part, indent + 2);
        }
        for layer in &trace.layers {
            let place = escape::line(&layer.subject);
            self.lines.push(format!("{:indent$}layer {place}", ""));
            let before = self.lines.len();
            self.add_layer(layer, &format!("{}:", layer.subject), indent + 2);
            if self.lines.len() == before {
                self.lines.push(format!("{:indent$}  ✔ says nothing against it", ""));
            }
        }
    }

    /// What a layer says itself; the rest it has from the policy, which says it above.
    fn add_layer(&mut self, trace: &DecisionTrace, place: &str, indent: usize) {
        let is_own =
            |decision: &&Decision| decision.at.as_deref().is_some_and(|at| at.starts_with(place));
        for (check, said) in &trace.checks {
            said.iter()
                .filter(is_own)
                .for_each(|decision| self.add_check(indent, *check, decision));
        }
        trace.parts.iter().for_each(|part| self.add_layer(part, place, indent));
    }

    fn add_check(&mut self, indent: usize, check: PolicyCheck, decision: &Decision) {
        let key = |decision: &Decision| {
            (
                decision.verdict,
                decision.code,
                decision.rule.clone(),
                decision.at.clone(),
                decision.reason.clone(),
            )
        };
        let decides = !self.decider_shown && key(decision) == key(self.decision);
        self.decider_shown |= decides;
        let sign = match decision.verdict {
            Verdict::Allow => "✔",
            Verdict::Ask | Verdict::AskEach => "?",
            Verdict::Deny => "✖",
        };
        let who = if decides { ", which decides" } else { "" };
        let rule = decision.rule.as_deref().unwrap_or("no rule");
        let at = decision.at.as_deref().map(|at| format!(" {at}")).unwrap_or_default();
        let text = format!("{}{who} · {rule}{at} · {}", decision.verdict, decision.reason);
        self.add_line(indent, sign, check_name(check), &text);
    }

    /// What a check says that found nothing.
    fn passed_text(&self, check: PolicyCheck) -> String {
        let policy = self.policy;
        match check {
            PolicyCheck::Budgets => "the run has not used itself up".into(),
            PolicyCheck::HardDeny => {
                let rules = policy.hard_denies.len() + policy.base_denials.len();
                format!("none of {rules} rules forbids it")
            }
            PolicyCheck::Rule => "says nothing".into(),
            PolicyCheck::Quota => "the run has not used the tool up".into(),
            PolicyCheck::Profile => {
                format!("`{}` denies nothing of what it needs", policy.profile.name)
            }
            PolicyCheck::Risk => match policy.risk_policy.block_at {
                Some(level) => format!("below {level}, where calls are refused"),
                None => "not high enough to be asked every time".into(),
            },
            PolicyCheck::Command => String::new(),
        }
    }

    fn add_line(&mut self, indent: usize, sign: &str, name: &str, text: &str) {
        let head = format!("{:indent$}{sign} {name:<NAME_COLUMNS$}", "");
        let columns = indent + 2 + NAME_COLUMNS;
        let text = escape::line(text);
        let lines = wrap(&text, self.layout.width.saturating_sub(columns));
        for (index, line) in lines.iter().enumerate() {
            self.lines.push(match index {
                0 => format!("{head}{line}"),
                _ => format!("{:columns$}{line}", ""),
            });
        }
    }
}

/// How wide the names of checks are.
const NAME_COLUMNS: usize = 9;

const fn check_name(check: PolicyCheck) -> &'static str {
    match check {
        PolicyCheck::Budgets => "budgets",
        PolicyCheck::HardDeny => "never",
        PolicyCheck::Rule => "rule",
        PolicyCheck::Quota => "quota",
        PolicyCheck::Profile => "profile",
        PolicyCheck::Risk => "risk",
        PolicyCheck::Command => "command",
    }
}
