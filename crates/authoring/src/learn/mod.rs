//! Refusals of recorded runs, as rules that a policy could have: proposed as a changed text that
//! was checked and tested, and never written anywhere.

mod generalize;
mod missing_rule;
mod missing_rules;
mod pages;
mod paths;
mod programs;
mod report;
mod trial;
mod yaml_edit;

use std::collections::BTreeSet;
use std::sync::Arc;

use capsule_base::diagnostic::Diagnostics;
use capsule_base::limits;
use capsule_core::decision::Verdict;
use capsule_core::policy::Policy;
use capsule_policy::{LoadedPolicy, PolicyDraft, builtin_text};

use crate::check::{assertion_diagnostics, assertions};
use crate::editable_policy::EditablePolicy;
use crate::recorded_calls::{PastCall, RecordedAnswer};
use generalize::{RuleCandidate, RuleGenerator, RuleGroups, add_to_group};
use missing_rules::missing_rules;
pub use report::{
    ChangedDecision, LearnError, LearnReport, ProposalStep, RefusedCall, RuleProposal,
};
use trial::{PatchedPolicy, PolicyTrial, with_tests};
use yaml_edit::YamlInsertion;

/// A group of wishes, and the rules that would answer it.
struct CandidateRules {
    verdict: Verdict,
    calls: Vec<String>,
    candidates: Vec<RuleCandidate>,
}

impl CandidateRules {
    fn narrowest_insertion(&self) -> YamlInsertion {
        self.candidates.first().map_or_else(no_insertion, |candidate| candidate.insertion.clone())
    }
}

const fn no_insertion() -> YamlInsertion {
    YamlInsertion::Map(Vec::new())
}

fn merge_insertions<'a>(offers: impl Iterator<Item = &'a CandidateRules>) -> YamlInsertion {
    offers.fold(no_insertion(), |all, rules| all.merge(rules.narrowest_insertion()))
}

/// Proposes the narrowest rule of each group, with the number of its calls that a person approved.
fn rule_proposals(
    past: &[PastCall],
    offers: impl Iterator<Item = (CandidateRules, Vec<ProposalStep>)>,
) -> Vec<RuleProposal> {
    let proposals = offers.filter_map(|(offer, steps)| {
        let rule = offer.candidates.into_iter().next()?.rule;
        let (decision, calls) = (offer.verdict, offer.calls);
        let said_yes =
            |call: &&PastCall| call.answer == RecordedAnswer::Yes && calls.contains(&call.label);
        let approved = past.iter().filter(said_yes).count();
        Some(RuleProposal { rule, decision, calls, approvals: approved, steps })
    });
    proposals.collect()
}

impl EditablePolicy<'_> {
    /// Proposes rules for what recorded calls were refused. Each is the narrowest that answers them;
    /// none touches an invariant, the base policy or a program that runs whatever it is given.
    ///
    /// # Errors
    /// When the policy, or what would become of it, is not what it says of itself.
    pub fn learn(&self, past: &[PastCall]) -> Result<LearnReport, LearnError> {
        let about =
            past.iter().filter(|call| call.is_unmet_request()).map(|call| call.label.clone());
        self.learn_about(past, &about.collect())
    }

    /// The same for some of the calls, by their labels. The others are not asked for; what a person said
    /// no to among them stays refused all the same.
    ///
    /// # Errors
    /// When the policy, or what would become of it, is not what it says of itself.
    pub fn learn_about(
        &self,
        past: &[PastCall],
        about: &BTreeSet<String>,
    ) -> Result<LearnReport, LearnError> {
        let policy = &self.authored;
        let wrong = assertion_diagnostics(policy, self.tools);
        if !wrong.is_empty() {
            return Err(LearnError::InvalidPolicy(wrong));
        }
        let mut learned = LearnReport::default();
        let asked = past.iter().filter(|call| about.contains(&call.label));
        let groups = self.group_missing_rules(asked, &mut learned)?;
        let trial = PolicyTrial::new(self, past, assertions(policy));
        let mut offers = self.candidate_rules(&groups, &trial, &mut learned);
        let steps = proposal_steps(&trial, &mut offers, &mut learned);
        if offers.is_empty() {
            return Ok(learned);
        }
        let wanted = merge_insertions(offers.iter());
        let wanted =
            with_tests(&trial, wanted, offers.iter().filter_map(|offer| offer.candidates.first()))
                .map_err(LearnError::Refused)?;
        let patched = trial.patch(&wanted).map_err(LearnError::Refused)?;
        self.check_proposal(&patched, &trial)?;
        learned.changed = trial.changed_decisions(&patched.layered);
        // What one of the rules changes as well does not stay as it is.
        let changed: BTreeSet<&str> =
            learned.changed.iter().map(|decision| decision.call.as_str()).collect();
        learned.still_refused.retain(|call| !changed.contains(call.call.as_str()));
        learned.text = Some(patched.text);
        learned.proposals = rule_proposals(past, offers.into_iter().zip(steps));
        Ok(learned)
    }

    /// Groups the rules that would answer calls. A call that the policy allows by now, or that no rule may
    /// answer, is noted in the report.
    fn group_missing_rules<'c>(
        &self,
        calls: impl Iterator<Item = &'c PastCall>,
        learned: &mut LearnReport,
    ) -> Result<RuleGroups, LearnError> {
        let policy = &self.authored;
        let base = self.base_policy().map_err(LearnError::InvalidPolicy)?;
        let mut groups = RuleGroups::new();
        for call in calls {
            let decision = call.decide(&self.loaded.policy);
            if decision.verdict == Verdict::Allow {
                learned.allowed.push(call.label.clone());
                continue;
            }
            let wishes = match call.answer {
                RecordedAnswer::No => Err("a person said no to it".into()),
                // What is laid over a policy it cannot loosen.
                _ if call.decide(policy).verdict < decision.verdict => {
                    Err(format!("a layer over the policy says so: {}", decision.reason))
                }
                RecordedAnswer::None | RecordedAnswer::Yes => missing_rules(call, policy, &base),
            };
            match wishes {
                Ok(wishes) => {
                    wishes.into_iter().for_each(|wish| add_to_group(&mut groups, wish, &call.label))
                }
                Err(why) => learned.still_refused.push(RefusedCall {
                    call: call.label.clone(),
                    decision,
                    reason: why,
                }),
            }
        }
        Ok(groups)
    }

    /// The base policy by itself, bound as the author's is.
    fn base_policy(&self) -> Result<Arc<Policy>, Diagnostics> {
        let text = builtin_text("base").unwrap_or_default();
        let LoadedPolicy { home, roots, .. } = self.loaded;
        let catalogue = self.tools.catalogue;
        let (draft, _) = PolicyDraft::parse(text, "builtin:base", home, catalogue)?;
        Ok(Arc::new(draft.bind(roots, home, catalogue)?))
    }

    /// The rules for each group that stand by themselves: the text can be read with them, what the
    /// policy says of itself still holds, and no recorded call is decided more strictly.
    fn candidate_rules(
        &self,
        groups: &RuleGroups,
        trial: &PolicyTrial<'_>,
        learned: &mut LearnReport,
    ) -> Vec<CandidateRules> {
        let ground = RuleGenerator::new(self);
        let mut groups: Vec<_> = groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.calls.len()));
        let mut offers = Vec::new();
        for (index, ((_, word), group)) in groups.into_iter().enumerate() {
            let made = match index < limits::LEARNED_RULES {
                true => ground.candidates(group, *word).and_then(|rungs| {
                    let offer = CandidateRules {
                        verdict: *word,
                        calls: group.calls.clone(),
                        candidates: rungs,
                    };
                    trial.check_insertion(&offer.narrowest_insertion()).map(|()| offer)
                }),
                false => Err("there are more proposals than one patch holds; learn again".into()),
            };
            match made {
                Ok(offer) => offers.push(offer),
                Err(why) => trial.add_refused(&group.calls, &why, learned),
            }
        }
        offers
    }

    /// That the whole is what it says of itself, and changed nothing but what tools may do.
    fn check_proposal(
        &self,
        patched: &PatchedPolicy,
        trial: &PolicyTrial<'_>,
    ) -> Result<(), LearnError> {
        let refused = |why: String| Err(LearnError::Refused(why));
        let (before, after) = (&self.authored, &patched.authored);
        let ids = |policy: &Policy| {
            let rules = policy.hard_denies.iter().chain(&policy.base_denials);
            let lifts = policy.dropped_rules.iter().map(|rule| rule.id.clone());
            rules.map(|rule| rule.id.clone()).chain(lifts).collect::<Vec<_>>()
        };
        if ids(before) != ids(after) || before.profile != after.profile {
            return refused("what was proposed would touch more than what tools may do".into());
        }
        if let Some(wrong) = assertion_diagnostics(after, self.tools).first() {
            return refused(format!("what was proposed is not what it says: {}", wrong.message));
        }
        trial.check_milder(&patched.layered).map(drop).or_else(refused)
    }
}

/// What each rule changes beside the others, step by step. Whoever changes nothing is no proposal; what
/// hangs on it may change nothing then, so the others are asked again.
fn proposal_steps(
    trial: &PolicyTrial<'_>,
    offers: &mut Vec<CandidateRules>,
    learned: &mut LearnReport,
) -> Vec<Vec<ProposalStep>> {
    loop {
        let mut found = Vec::new();
        let mut idle = None;
        for (index, offer) in offers.iter().enumerate() {
            let others = offers.iter().enumerate().filter(|(other, _)| *other != index);
            let others = merge_insertions(others.map(|(_, rules)| rules));
            let before = trial.changed_calls(&others);
            let step = |candidate: &RuleCandidate| {
                let with =
                    trial.changed_calls(&others.clone().merge(candidate.insertion.clone()))?;
                let known = before.as_ref()?;
                let calls: Vec<String> = with.difference(known).cloned().collect();
                Some(ProposalStep { allows: candidate.allows.clone(), calls })
            };
            let own: Vec<Option<ProposalStep>> = offer.candidates.iter().map(step).collect();
            let narrowest = own.first().and_then(Option::as_ref);
            if narrowest.is_none_or(|step| step.calls.is_empty()) {
                idle = Some(index);
                break;
            }
            found.push(own.into_iter().flatten().collect());
        }
        let Some(index) = idle else { return found };
        let offer = offers.remove(index);
        let why = "no rule this narrow changes what is decided; a stricter one speaks as well";
        trial.add_refused(&offer.calls, why, learned);
    }
}
