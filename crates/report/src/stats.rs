//! What refusals add up to over many runs. Patterns only: tools, codes, rules, programs with their
//! subcommand; never an argument, a path or a content (SAF-8).

use std::collections::{BTreeMap, BTreeSet};

use capsule_base::code::Code;
use capsule_command::specs::{self, CommandLine, Effect};
use capsule_core::action::{Action, Facts, sub_actions};
use capsule_core::journal::{DecisionFault, StepEnding};
use serde::Serialize;
use serde_json::Value;

use crate::call_view::CallView;
use crate::distribution::Distribution;
use crate::plain_names::{known_name, plain_rule};
use crate::prompts::PromptStats;
use crate::run_view::RunView;

/// What is counted of a refused call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RefusalPattern {
    /// The tool.
    pub tool: String,
    /// The kind of refusal.
    pub code: Code,
    /// The rule that refused.
    pub rule: Option<String>,
    /// The program, with its subcommand where the program is known to have it.
    pub program: Option<String>,
}

/// A pattern and how often it was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusalCount {
    /// What was refused.
    #[serde(flatten)]
    pub pattern: RefusalPattern,
    /// How many calls.
    pub count: u64,
    /// In how many runs.
    pub runs: u64,
}

/// What many runs add up to.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Runs that were counted.
    pub runs: u64,
    /// Their calls.
    pub calls: u64,
    /// Calls that were refused as the plan expects: tests of a policy, and no one's trouble.
    pub expected: u64,
    refused: BTreeMap<RefusalPattern, (u64, u64)>,
    prevented: BTreeMap<String, u64>,
    effects: BTreeMap<&'static str, u64>,
    wrong_denials: BTreeSet<(String, u64)>,
    wrong_allows: BTreeSet<(String, u64)>,
    friction: FrictionStats,
    prompts: PromptStats,
}

/// How much refusals cost whoever was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrictionStats {
    /// Refused calls.
    pub refusals: u64,
    /// Rows of refusals with no accepted call among them.
    pub rows: u64,
    /// Rows that an accepted call ended.
    pub overcome: u64,
    /// Rows that the run ended with.
    pub ended_the_run: u64,
    /// How many refusals stood before the accepted call, of all rows that one ended.
    pub refusals_until_accepted: Distribution,
    /// Milliseconds from the first refusal of such a row to the accepted call.
    pub millis_until_accepted: Distribution,
    /// Refusals of a call that the same run had asked for in the same words and was refused.
    pub repeated: u64,
    /// The same by the kind of refusal with which a row began: how soon it is adapted to.
    pub by_code: BTreeMap<Code, CodeFriction>,
}

/// How soon one kind of refusal is adapted to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CodeFriction {
    /// Rows of refusals that began with it.
    pub rows: u64,
    /// Those that an accepted call ended.
    pub overcome: u64,
    /// Proposals from that refusal to the accepted call, of those rows.
    pub proposals_until_accepted: Distribution,
}

/// What was prevented, and what people said was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SafetyStats {
    /// Calls that an invariant or another rule of danger refused, by that rule.
    pub prevented: BTreeMap<String, u64>,
    /// The same by what they would have done.
    pub effects: BTreeMap<&'static str, u64>,
    /// All refused calls.
    pub denied: u64,
    /// Of a thousand dangerous calls, as far as people reported those that were not refused, how many were
    /// refused.
    pub prevented_per_mille: Option<u64>,
    /// Refusals that people called wrong.
    pub false_alarms: u64,
    /// Calls that people say should have been refused.
    pub missed: u64,
    /// False alarms in a thousand refusals.
    pub false_alarms_per_mille: Option<u64>,
}

/// What makes a refusal one that prevented something.
const DANGEROUS_EFFECTS: [Effect; 5] =
    [Effect::Publishes, Effect::System, Effect::Destroys, Effect::Secrets, Effect::Shell];

impl Stats {
    /// Counts a run.
    pub fn add(&mut self, view: &RunView) {
        let subject = view.header.as_ref().and_then(|header| header.opened.subject);
        if let (Some(feedback), Some(subject)) = (&view.feedback, subject) {
            let about = (subject.to_string(), feedback.given.call);
            match feedback.given.fault {
                DecisionFault::WrongDenial => self.wrong_denials.insert(about),
                DecisionFault::WrongAllow => self.wrong_allows.insert(about),
            };
            return;
        }
        if view.answer.is_some() {
            return;
        }
        self.runs += 1;
        self.prompts.add(view);
        let expected: BTreeSet<&str> = view
            .steps
            .iter()
            .filter(|step| step.ended.ending == StepEnding::DeniedAsExpected)
            .map(|step| step.ended.step.as_str())
            .collect();
        let mut met = BTreeSet::new();
        let mut row = OpenRefusals::default();
        for call in &view.calls {
            self.calls += 1;
            let is_refused = call.was_denied() || call.lacked_approval();
            if is_refused && call.step.as_deref().is_some_and(|step| expected.contains(step)) {
                self.expected += 1;
            } else if is_refused {
                self.add_refusal(call, &mut met);
                row.refuse(call, &mut self.friction);
            } else if call.started.is_some() {
                row.accept(call, &mut self.friction);
            }
        }
        row.end(&mut self.friction);
    }

    fn add_refusal(&mut self, call: &CallView, met: &mut BTreeSet<RefusalPattern>) {
        let Some(pattern) = refusal_pattern(call) else { return };
        let is_new = met.insert(pattern.clone());
        let effects = prevented_effects(call);
        let of_effect = pattern.rule.as_deref().and_then(|rule| rule.split_once("/effects."));
        let dangerous = DANGEROUS_EFFECTS
            .iter()
            .any(|effect| of_effect.is_some_and(|(_, name)| name == effect.name()));
        if matches!(pattern.code, Code::Never | Code::BaseDenied) || dangerous {
            let rule = pattern.rule.clone().unwrap_or_default();
            *self.prevented.entry(rule).or_default() += 1;
            for effect in effects {
                *self.effects.entry(effect).or_default() += 1;
            }
        }
        let (count, runs) = self.refused.entry(pattern).or_default();
        *count += 1;
        *runs += u64::from(is_new);
    }

    /// Refusals by pattern, the most frequent first.
    #[must_use]
    pub fn refusal_counts(&self) -> Vec<RefusalCount> {
        let row = |(pattern, (count, runs)): (&RefusalPattern, &(u64, u64))| RefusalCount {
            pattern: pattern.clone(),
            count: *count,
            runs: *runs,
        };
        let mut rows: Vec<RefusalCount> = self.refused.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// What was prevented, and what was wrong.
    #[must_use]
    pub fn safety(&self) -> SafetyStats {
        let count = |set: &BTreeSet<_>| u64::try_from(set.len()).unwrap_or(u64::MAX);
        let denied: u64 = self.refused.values().map(|(count, _)| count).sum();
        let (false_alarms, missed) = (count(&self.wrong_denials), count(&self.wrong_allows));
        let prevented: u64 = self.prevented.values().sum();
        SafetyStats {
            prevented: self.prevented.clone(),
            effects: self.effects.clone(),
            denied,
            prevented_per_mille: prevented.saturating_mul(1_000).checked_div(prevented + missed),
            false_alarms,
            missed,
            false_alarms_per_mille: false_alarms.saturating_mul(1_000).checked_div(denied),
        }
    }

    /// What people were asked.
    #[must_use]
    pub const fn prompts(&self) -> &PromptStats {
        &self.prompts
    }

    /// What refusals cost.
    #[must_use]
    pub const fn friction(&self) -> &FrictionStats {
        &self.friction
    }
}

/// The refusals of a run since its last accepted call.
#[derive(Default)]
struct OpenRefusals<'s> {
    since: Option<u64>,
    count: u64,
    /// The code with which the row began.
    first: Option<Code>,
    asked: Vec<(&'s str, &'s Value)>,
}

impl<'s> OpenRefusals<'s> {
    fn refuse(&mut self, call: &'s CallView, friction: &mut FrictionStats) {
        friction.refusals += 1;
        if self.count == 0 {
            friction.rows += 1;
            self.first = refusal_code(call);
            if let Some(code) = self.first {
                friction.by_code.entry(code).or_default().rows += 1;
            }
        }
        self.since.get_or_insert(call.proposed_at);
        self.count += 1;
        if let Some(args) = &call.args {
            let item = (call.tool.as_str(), args);
            match self.asked.contains(&item) {
                true => friction.repeated += 1,
                false => self.asked.push(item),
            }
        }
    }

    fn accept(&mut self, call: &CallView, friction: &mut FrictionStats) {
        let Some(since) = self.since.take() else { return };
        friction.overcome += 1;
        let refusals = std::mem::take(&mut self.count);
        friction.refusals_until_accepted.add(refusals);
        if let Some(of_code) = self.first.take().and_then(|code| friction.by_code.get_mut(&code)) {
            of_code.overcome += 1;
            of_code.proposals_until_accepted.add(refusals);
        }
        let waited = call.proposed_at.saturating_sub(since) / 1_000;
        friction.millis_until_accepted.add(waited);
    }

    fn end(self, friction: &mut FrictionStats) {
        friction.ended_the_run += u64::from(self.count > 0);
    }
}

/// The kind of a refusal: a call that was allowed and refused while it ran has the code of that.
fn refusal_code(call: &CallView) -> Option<Code> {
    let ran = call.finished.as_ref().and_then(|(_, finished)| finished.code);
    ran.or_else(|| call.decision.as_ref().map(|decision| decision.code))
}

fn refusal_pattern(call: &CallView) -> Option<RefusalPattern> {
    let decision = call.decision.as_ref()?;
    let lines = command_lines(call);
    let mut programs: Vec<String> = Vec::new();
    for name in lines.iter().filter_map(|argv| program_name(argv)) {
        if !programs.contains(&name) && programs.len() < MAX_PROGRAMS {
            programs.push(name);
        }
    }
    Some(RefusalPattern {
        tool: known_name(call.tool.as_str()).to_owned(),
        code: refusal_code(call)?,
        rule: decision.rule.as_deref().map(plain_rule),
        program: (!programs.is_empty()).then(|| programs.join(" | ")),
    })
}

/// How many programs of one command line are named.
const MAX_PROGRAMS: usize = 4;
/// The command lines of a call.
fn command_lines(call: &CallView) -> Vec<Vec<String>> {
    match &call.action {
        Some(Action::Run { argv, .. }) => vec![argv.clone()],
        Some(Action::Command { steps, timeout_ms, .. }) => {
            // Each pipeline once, in however many folders it may run.
            let once = steps.chunk_by(|one, other| one.number == other.number);
            let parts = |step| sub_actions(step, *timeout_ms, &Facts::default());
            let actions =
                once.filter_map(|all| all.first()).flat_map(parts).map(|part| part.action);
            actions
                .filter_map(|action| match action {
                    Action::Run { argv, .. } => Some(argv),
                    _ => None,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// `git push`: the words behind the program only as far as the table of programs has them.
fn program_name(argv: &[String]) -> Option<String> {
    let name = known_name(specs::base_name(argv.first()?));
    let line = CommandLine::parse(argv, None, false);
    let levels = line.parsed_argvs().next().map(|reading| reading.levels.as_slice());
    let inner = levels.unwrap_or_default().iter().skip(1).take_while(|level| level.known);
    let words: Vec<&str> =
        std::iter::once(name).chain(inner.map(|level| level.name.as_str())).collect();
    Some(words.join(" "))
}

/// What a refused command would have done.
fn prevented_effects(call: &CallView) -> BTreeSet<&'static str> {
    let lines = command_lines(call);
    let of = |argv: &Vec<String>| CommandLine::parse(argv, None, false).effects();
    lines.iter().flat_map(|argv| of(argv).iter()).map(Effect::name).collect()
}
