//! A plan as one question: what its steps need is shown before any of them runs, as far as it is known
//! then. A yes is leave for exactly these calls; each is judged again when it is reached, and what has
//! become another call since is asked about by itself.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::Value;

use crate::action::{Action, Facts};
use crate::approval::{Ahead, Answer, Approver};
use crate::call::ToolCall;
use crate::code::Code;
use crate::confinement::Confinement;
use crate::decision::{Decision, Verdict};
use crate::digest::Digest;
use crate::evidence::asking::{answer_event, said};
use crate::evidence::seen::Seen;
use crate::evidence::{Preview, Understanding};
use crate::journal::{ApprovalShown, Durability, Event, Journal, PayloadClass};
use crate::json;
use crate::outcome::Problem;
use crate::policy::{Case, Judgement, Policy, Usage, decide};
use capsule_redact::Redactor;

/// A call that a plan will come to, as it is found before the plan begins. Nothing can run from it.
pub struct Upcoming {
    call: ToolCall,
    seen: Seen,
    decision: Decision,
    confinement: Option<Confinement>,
    /// The lines that would change, masked, where a person is asked about them.
    diff: Preview,
    tries: u64,
}

impl Upcoming {
    /// Judges a call that is tried up to so many times.
    ///
    /// # Errors
    /// When it cannot be recorded what it is, as which it will be denied.
    pub fn of(
        (call, tries): (ToolCall, u64),
        understanding: Understanding,
        policy: &Arc<Policy>,
        usage: &Usage,
        redactor: &Redactor,
    ) -> Result<Self, Problem> {
        let Understanding { action, facts, mut prepared } = understanding;
        let (tool, tainted) = (&call.tool, call.tainted.as_slice());
        let case = Case { tool, action: &action, facts: &facts, usage, tainted, call: None };
        let Judgement { decision, bounds, .. } = decide(policy, &case);
        let seen = Seen::of(tool, (action, facts), policy.digest(), redactor)?;
        let asked = decision.verdict == Verdict::Ask;
        let diff = if asked { prepared.preview() } else { Preview::Nothing };
        let diff = diff.masked(redactor);
        Ok(Self { call, seen, decision, confinement: bounds.confinement(), diff, tries })
    }

    /// What the policy says now.
    #[must_use]
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What it means, masked.
    #[must_use]
    pub const fn action(&self) -> &Action {
        self.seen.action()
    }

    /// What was found, masked.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        self.seen.facts()
    }

    /// How often it is tried at most.
    #[must_use]
    pub const fn tries(&self) -> u64 {
        self.tries
    }

    /// Whether a person is asked about it, and may be asked together with other steps.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.decision.verdict == Verdict::Ask
    }

    fn question<'q>(&'q self, args: &'q Value, bound: Digest) -> Ahead<'q> {
        let said = (&self.decision, self.confinement);
        let shown = (args, bound, self.diff.lines());
        Ahead { question: self.seen.question((0, &self.call), shown, said), tries: self.tries }
    }
}

/// What became of the question about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Its steps are taken one by one, within what was allowed, if anything was.
    Begins,
    /// None of it runs, for this reason.
    Denied(Problem),
}

/// Asks about what a plan will come to. `open` is the number of steps of which nothing is known yet.
///
/// # Errors
/// When it cannot be written.
pub fn ask_whole<J: Journal>(
    steps: &[Upcoming],
    open: u64,
    approver: &mut dyn Approver,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<Whole, J::Error> {
    let mut ready = Vec::new();
    for step in steps.iter().filter(|own| own.is_asked()) {
        let bound = journal.seal_arguments(&json::canonical(&step.seen.bound))?;
        ready.push((step, redactor.value(step.call.args.clone(), &mut 0), bound));
    }
    let ahead: Vec<Ahead<'_>> =
        ready.iter().map(|(step, args, bound)| step.question(args, *bound)).collect();
    let card = approver.plan(&ahead, open).and_then(|card| card.clean(redactor));
    let Some(card) = card else { return Ok(Whole::Begins) };
    let shown = ApprovalShown {
        call: 0,
        card: journal.keep(PayloadClass::Text, &json::canonical(&card))?,
        sha256: card.digest(),
        offers: u64::try_from(card.offers.len()).unwrap_or(u64::MAX),
    };
    journal.append(Event::PlanShown(shown), Durability::Process)?;
    let given = approver.ask(&card);
    let event = answer_event(0, &given, redactor, journal)?;
    journal.append(Event::PlanAnswered(event), Durability::Process)?;
    Ok(match given.answer {
        Answer::Denied(_, why) => Whole::Denied(said(Code::ApprovalDenied, why)),
        Answer::Stopped(_, why) => Whole::Denied(said(Code::ApprovalStopped, why)),
        // What was not answered is asked step by step; so is what nobody can change as a whole.
        Answer::Approved(..)
        | Answer::Changed(..)
        | Answer::Later(_)
        | Answer::Expired
        | Answer::Withdrawn => Whole::Begins,
    })
}
