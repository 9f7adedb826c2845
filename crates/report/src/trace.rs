//! What was asked on the way to a decision, for people: every check, what it said, and which one
//! decided.

use capsule_core::decision::{Decision, Verdict};
use capsule_core::escape;
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
    let mut told = Told { policy, decision, layout, is_told: false, lines: Vec::new() };
    told.trace(trace, 2);
    told.lines
}

struct Told<'t> {
    policy: &'t Policy,
    decision: &'t Decision,
    layout: Layout,
    /// Whether it was said which check decided.
    is_told: bool,
    lines: Vec<String>,
}

impl Told<'_> {
    fn trace(&mut self, trace: &DecisionTrace, indent: usize) {
        for (check, said) in &trace.checks {
            match said.as_slice() {
                // What is about the whole is shown only where it says something.
                [] if *check == PolicyCheck::Command => {}
                [] => self.put(indent, "✔", name(*check), &self.passed(*check)),
                all => all.iter().for_each(|own| self.said(indent, *check, own)),
            }
        }
        for part in &trace.parts {
            let line = format!("{:indent$}part {}", "", escape::line(&part.subject));
            self.lines.push(line);
            self.trace(part, indent + 2);
        }
        for layer in &trace.layers {
            let place = escape::line(&layer.subject);
            self.lines.push(format!("{:indent$}layer {place}", ""));
            let before = self.lines.len();
            self.layer(layer, &format!("{}:", layer.subject), indent + 2);
            if self.lines.len() == before {
                self.lines.push(format!("{:indent$}  ✔ says nothing against it", ""));
            }
        }
    }

    /// What a layer says itself; the rest it has from the policy, which says it above.
    fn layer(&mut self, trace: &DecisionTrace, place: &str, indent: usize) {
        let is_own = |own: &&Decision| own.at.as_deref().is_some_and(|at| at.starts_with(place));
        for (check, said) in &trace.checks {
            said.iter().filter(is_own).for_each(|own| self.said(indent, *check, own));
        }
        trace.parts.iter().for_each(|part| self.layer(part, place, indent));
    }

    fn said(&mut self, indent: usize, check: PolicyCheck, own: &Decision) {
        let key = |own: &Decision| {
            (own.verdict, own.code, own.rule.clone(), own.at.clone(), own.reason.clone())
        };
        let decides = !self.is_told && key(own) == key(self.decision);
        self.is_told |= decides;
        let sign = match own.verdict {
            Verdict::Allow => "✔",
            Verdict::Ask | Verdict::AskEach => "?",
            Verdict::Deny => "✖",
        };
        let who = if decides { ", which decides" } else { "" };
        let rule = own.rule.as_deref().unwrap_or("no rule");
        let at = own.at.as_deref().map(|at| format!(" {at}")).unwrap_or_default();
        let text = format!("{}{who} · {rule}{at} · {}", own.verdict, own.reason);
        self.put(indent, sign, name(check), &text);
    }

    /// What a check says that found nothing.
    fn passed(&self, check: PolicyCheck) -> String {
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

    fn put(&mut self, indent: usize, sign: &str, name: &str, text: &str) {
        let head = format!("{:indent$}{sign} {name:<NAMES$}", "");
        let columns = indent + 2 + NAMES;
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
const NAMES: usize = 9;

const fn name(check: PolicyCheck) -> &'static str {
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
