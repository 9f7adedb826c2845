//! A plan before it runs: what the policy says of each step, as far as that can be told.

use anstyle::Style;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_runtime::Law;
use capsule_runtime::plan::{Foreseen, Outlook, Plan, Scope, Step, foresee, outlook};
use serde_json::{Map, Value, json};

use crate::command::policy::asking_hands;
use crate::failure::Failure;
use crate::screen::{BAD, CARE, GOOD, Screen};
use crate::surroundings::Surroundings;

/// The steps of a plan, ahead of time.
pub(super) struct Ahead<'p> {
    plan: &'p Plan,
    pub(super) steps: Vec<Outlook>,
}

impl<'p> Ahead<'p> {
    /// Looks at every step; nothing runs and nothing is written.
    pub(super) fn of(
        plan: &'p Plan,
        inputs: Map<String, Value>,
        law: &Law,
        around: &Surroundings,
    ) -> Self {
        let scope = Scope { inputs, ..Scope::default() };
        let mut hands = asking_hands(law, around);
        let redactor = hands.redactor().clone();
        let steps = outlook(&law.policy, &mut hands, plan, &scope, &redactor);
        Self { plan, steps }
    }

    fn each(&self) -> impl Iterator<Item = (&'p Step, Option<Decision>, Option<Foreseen>)> {
        self.plan.steps.iter().zip(&self.steps).map(|(step, own)| {
            let decision = match own {
                Outlook::Known(step) => Some(step.decision().clone()),
                Outlook::Refused(problem) => Some(Decision::reject_invalid(problem.clone())),
                Outlook::Later => None,
            };
            let foreseen = decision.as_ref().and_then(|decision| foresee(step, decision));
            (step, decision, foreseen)
        })
    }

    /// How the run would end by what is known, with nobody there to ask.
    pub(super) fn exit(&self) -> Exit {
        let ends = self.each().filter_map(|(_, _, foreseen)| Some(foreseen?.exit));
        ends.fold(Exit::Ok, Exit::min)
    }

    /// The steps for programs.
    pub(super) fn as_json(&self) -> Value {
        let step = |(step, decision, foreseen): (&Step, _, Option<Foreseen>)| {
            json!({
                "step": step.id,
                "tool": step.tool.id,
                "decision": decision,
                "ending": foreseen.map(|own| own.ending),
            })
        };
        self.each().map(step).collect()
    }

    /// The steps for a person, a line each.
    pub(super) fn say(&self, screen: &Screen) -> Result<(), Failure> {
        for (index, (step, decision, foreseen)) in self.each().enumerate() {
            let about = format!("{} {}", step.id, step.tool.id);
            let (style, word, says) = match &decision {
                None => (CARE, "later", String::from("depends on earlier results")),
                Some(own) => {
                    let (style, note) = told(own.verdict, foreseen.as_ref());
                    (style, own.verdict.keyword(), format!("{}{note}", own.reason))
                }
            };
            let says = escape::line(&says);
            screen.say(&format!("{:>2} {style}{word:<9}{style:#} {about}: {says}", index + 1))?;
        }
        Ok(())
    }
}

/// How a decision is shown, and what the plan's expectations make of it.
fn told(verdict: Verdict, foreseen: Option<&Foreseen>) -> (Style, String) {
    let style = match verdict {
        Verdict::Allow => GOOD,
        Verdict::Ask | Verdict::AskEach => CARE,
        Verdict::Deny => BAD,
    };
    match foreseen {
        Some(own) if own.is_expected() => (GOOD, " (as expected)".into()),
        // What the policy allows goes wrong only where something else is expected of the decision.
        Some(Foreseen { problem: Some(problem), .. }) if verdict == Verdict::Allow => {
            (BAD, format!(" ({})", problem.message))
        }
        _ => (style, String::new()),
    }
}
