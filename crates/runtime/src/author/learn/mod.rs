//! What recorded runs were refused, as rules that a policy could have: proposed as a changed text that
//! was checked and tested, and never written anywhere.

mod ladder;
mod pages;
mod paths;
mod programs;
mod splice;
mod trial;
mod wishes;

use std::collections::BTreeSet;
use std::sync::Arc;

use capsule_core::decision::{Decision, Verdict};
use capsule_core::diagnostic::Diagnostics;
use capsule_core::limits;
use capsule_core::policy::{Policy, builtin_text};

use super::{Answer, Authored, Past};
use crate::check::{check_claims, claims};
use ladder::{Ground, Groups, Rung, add};
use splice::Wanted;
use trial::{Patched, Trial, tests};
pub(crate) use wishes::is_own_word;
use wishes::wishes;

/// What was learned from recorded calls.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// The rules that are proposed.
    pub proposals: Vec<Proposal>,
    /// Calls that stay refused, each with the reason.
    pub kept: Vec<Kept>,
    /// Calls that were refused, and that the policy as it is now allows.
    pub allowed: Vec<String>,
    /// The calls that the proposals together change.
    pub changed: Vec<Changed>,
    /// The text of the policy with the proposals and tests for them; none where there is none.
    pub text: Option<String>,
}

/// A rule that is proposed.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its name, as decisions show it.
    pub rule: String,
    /// Its word.
    pub decision: Verdict,
    /// The calls that wished for it.
    pub calls: Vec<String>,
    /// How many of them a person approved.
    pub approved: usize,
    /// What it opens: the narrowest, which is proposed, then wider ones.
    pub steps: Vec<Step>,
}

/// What a rule could open.
#[derive(Clone, Debug)]
pub struct Step {
    /// Paths, addresses, a program with its subcommand, or a tool.
    pub opens: Vec<String>,
    /// The recorded calls that it would have changed, beside those that the other proposals change.
    pub calls: Vec<String>,
}

/// A call that stays refused.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The call.
    pub call: String,
    /// What is decided about it.
    pub decision: Decision,
    /// Why no rule is proposed.
    pub why: String,
}

/// A call that is decided otherwise with the proposals.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The call.
    pub call: String,
    /// As it is decided now.
    pub before: Decision,
    /// As it would be.
    pub after: Decision,
}

/// Why nothing is proposed at all.
#[derive(Clone, Debug)]
pub enum LearnError {
    /// The policy is not what it says of itself, so that nothing can be built on it.
    Wrong(Diagnostics),
    /// What was proposed is no policy, or not what it says of itself. It is not shown.
    Refused(String),
}

/// A group of wishes, and the rules that would answer it.
struct Offer {
    word: Verdict,
    calls: Vec<String>,
    rungs: Vec<Rung>,
}

impl Offer {
    fn narrowest(&self) -> Wanted {
        self.rungs.first().map_or_else(nothing, |rung| rung.wanted.clone())
    }
}

const fn nothing() -> Wanted {
    Wanted::Map(Vec::new())
}

fn all<'a>(offers: impl Iterator<Item = &'a Offer>) -> Wanted {
    offers.fold(nothing(), |all, own| all.and(own.narrowest()))
}

impl Authored<'_> {
    /// Proposes rules for what recorded calls were refused. Each is the narrowest that answers them;
    /// none touches an invariant, the base policy or a program that runs whatever it is given.
    ///
    /// # Errors
    /// When the policy, or what would become of it, is not what it says of itself.
    pub fn learn(&self, past: &[Past]) -> Result<Learned, LearnError> {
        let about = past.iter().filter(|call| call.is_wish()).map(|call| call.label.clone());
        self.learn_about(past, &about.collect())
    }

    /// The same for some of the calls, by their labels. The others are not asked for; what a person said
    /// no to among them stays refused all the same.
    ///
    /// # Errors
    /// When the policy, or what would become of it, is not what it says of itself.
    pub fn learn_about(
        &self,
        past: &[Past],
        about: &BTreeSet<String>,
    ) -> Result<Learned, LearnError> {
        let policy = &self.alone;
        let wrong = check_claims(policy);
        if !wrong.is_empty() {
            return Err(LearnError::Wrong(wrong));
        }
        let base = self.base().map_err(LearnError::Wrong)?;
        let mut learned = Learned::default();
        let mut groups = Groups::new();
        for call in past.iter().filter(|call| about.contains(&call.label)) {
            let decision = call.decide(&self.law.policy);
            if decision.verdict == Verdict::Allow {
                learned.allowed.push(call.label.clone());
                continue;
            }
            let wishes = match call.answer {
                Answer::No => Err("a person said no to it".into()),
                // What is laid over a policy it cannot loosen.
                _ if call.decide(policy).verdict < decision.verdict => {
                    Err(format!("a layer over the policy says so: {}", decision.reason))
                }
                Answer::None | Answer::Yes => wishes(call, policy, &base),
            };
            match wishes {
                Ok(wishes) => wishes.into_iter().for_each(|own| add(&mut groups, own, &call.label)),
                Err(why) => learned.kept.push(Kept { call: call.label.clone(), decision, why }),
            }
        }
        let trial = Trial::new(self, past, claims(policy));
        let mut offers = self.offers(&groups, &trial, &mut learned);
        let steps = steps(&trial, &mut offers, &mut learned);
        if offers.is_empty() {
            return Ok(learned);
        }
        let wanted = all(offers.iter());
        let wanted = tests(&trial, wanted, offers.iter().filter_map(|own| own.rungs.first()))
            .map_err(LearnError::Refused)?;
        let patched = trial.patched(&wanted).map_err(LearnError::Refused)?;
        self.sound(&patched, &trial)?;
        learned.changed = trial.changed(&patched.whole);
        // What one of the rules changes as well does not stay as it is.
        let changed: BTreeSet<&str> = learned.changed.iter().map(|own| own.call.as_str()).collect();
        learned.kept.retain(|own| !changed.contains(own.call.as_str()));
        learned.text = Some(patched.text);
        let proposals = offers.into_iter().zip(steps).filter_map(|(offer, steps)| {
            let rule = offer.rungs.into_iter().next()?.rule;
            let (decision, calls) = (offer.word, offer.calls);
            let said_yes = |own: &&Past| own.answer == Answer::Yes && calls.contains(&own.label);
            let approved = past.iter().filter(said_yes).count();
            Some(Proposal { rule, decision, calls, approved, steps })
        });
        learned.proposals = proposals.collect();
        Ok(learned)
    }

    /// The base policy by itself, bound as the author's is.
    fn base(&self) -> Result<Arc<Policy>, Diagnostics> {
        let text = builtin_text("base").unwrap_or_default();
        let home = &self.law.home;
        let (draft, _) =
            capsule_core::policy::PolicyDraft::parse(text, "builtin:base", home, super::CATALOGUE)?;
        Ok(Arc::new(draft.bind(&self.law.roots, home, super::CATALOGUE)?))
    }

    /// The rules for each group that stand by themselves: the text can be read with them, what the
    /// policy says of itself still holds, and no recorded call is decided more strictly.
    fn offers(&self, groups: &Groups, trial: &Trial<'_>, learned: &mut Learned) -> Vec<Offer> {
        let ground = Ground::new(self.law, &self.root);
        let mut groups: Vec<_> = groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.calls.len()));
        let mut offers = Vec::new();
        for (index, ((_, word), group)) in groups.into_iter().enumerate() {
            let made = match index < limits::LEARNED_RULES {
                true => ground.ladder(group, *word).and_then(|rungs| {
                    let offer = Offer { word: *word, calls: group.calls.clone(), rungs };
                    trial.stands(&offer.narrowest()).map(|()| offer)
                }),
                false => Err("there are more proposals than one patch holds; learn again".into()),
            };
            match made {
                Ok(offer) => offers.push(offer),
                Err(why) => trial.keep(&group.calls, &why, learned),
            }
        }
        offers
    }

    /// That the whole is what it says of itself, and changed nothing but what tools may do.
    fn sound(&self, patched: &Patched, trial: &Trial<'_>) -> Result<(), LearnError> {
        let refused = |why: String| Err(LearnError::Refused(why));
        let (before, after) = (&self.alone, &patched.alone);
        let ids = |policy: &Policy| {
            let rules = policy.hard_denies.iter().chain(&policy.base_denials);
            let lifts = policy.dropped_rules.iter().map(|own| own.id.clone());
            rules.map(|own| own.id.clone()).chain(lifts).collect::<Vec<_>>()
        };
        if ids(before) != ids(after) || before.profile != after.profile {
            return refused("what was proposed would touch more than what tools may do".into());
        }
        if let Some(wrong) = check_claims(after).first() {
            return refused(format!("what was proposed is not what it says: {}", wrong.message));
        }
        trial.milder(&patched.whole).map(drop).or_else(refused)
    }
}

/// What each rule changes beside the others, step by step. Whoever changes nothing is no proposal; what
/// hangs on it may change nothing then, so the others are asked again.
fn steps(trial: &Trial<'_>, offers: &mut Vec<Offer>, learned: &mut Learned) -> Vec<Vec<Step>> {
    loop {
        let mut found = Vec::new();
        let mut idle = None;
        for (index, offer) in offers.iter().enumerate() {
            let others = offers.iter().enumerate().filter(|(other, _)| *other != index);
            let others = all(others.map(|(_, own)| own));
            let before = trial.calls(&others);
            let step = |rung: &Rung| {
                let with = trial.calls(&others.clone().and(rung.wanted.clone()))?;
                let known = before.as_ref()?;
                let calls: Vec<String> = with.difference(known).cloned().collect();
                Some(Step { opens: rung.opens.clone(), calls })
            };
            let own: Vec<Option<Step>> = offer.rungs.iter().map(step).collect();
            let narrowest = own.first().and_then(Option::as_ref);
            if narrowest.is_none_or(|own| own.calls.is_empty()) {
                idle = Some(index);
                break;
            }
            found.push(own.into_iter().flatten().collect());
        }
        let Some(index) = idle else { return found };
        let offer = offers.remove(index);
        let why = "no rule this narrow changes what is decided; a stricter one speaks as well";
        trial.keep(&offer.calls, why, learned);
    }
}

/// Labels of calls.
type Calls = BTreeSet<String>;
