//! Which rules decide something.

use std::sync::Arc;

use capsule_core::code::Code;
use capsule_core::decision::Decision;
use capsule_core::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::policy::Policy;

use super::past::Past;
use super::sites::{Decides, Site};
use super::{Authored, InText};

/// A rule, and how much hangs on it.
#[derive(Clone, Debug)]
pub struct RuleUse {
    /// Its name, as decisions show it.
    pub rule: String,
    /// Where it stands.
    pub place: InText,
    /// Whether something is open because of it.
    pub opens: bool,
    /// How many decisions are its own; none where it hangs on what a run has used.
    pub decides: Option<usize>,
}

impl Authored<'_> {
    /// How many of the decisions each rule of the text makes. `decide` decides the same calls by
    /// whatever policy it is given.
    pub fn use_of_rules(&self, decide: impl Fn(&Arc<Policy>) -> Vec<Decision>) -> Vec<RuleUse> {
        let decided = decide(&self.alone);
        let count = |site: &Site| match site.decides {
            Decides::Beyond => None,
            Decides::ByName => {
                let own = |own: &&Decision| own.at.as_ref() == Some(&site.at);
                Some(decided.iter().filter(own).count())
            }
            // A rule without a word of its own leaves no name. What would be decided otherwise
            // without it was decided because of it.
            Decides::Silently => Some(self.missed(site, &decided, &decide)),
        };
        let used = |site: &Site| RuleUse {
            rule: site.rule.clone(),
            place: InText { at: site.at.clone(), span: site.span.clone() },
            opens: site.opens,
            decides: count(site),
        };
        self.sites.iter().map(used).collect()
    }

    /// What opens something that none of these calls needed. `told` says which calls they are.
    #[must_use]
    pub fn not_needed(&self, calls: &[Past], told: &str) -> Diagnostics {
        let rules =
            self.use_of_rules(|policy| calls.iter().map(|own| own.decide(policy)).collect());
        let unused = |rule: &&RuleUse| rule.opens && rule.decides == Some(0);
        let unused: Vec<&RuleUse> = rules.iter().filter(unused).collect();
        // Whoever can do without the whole need not be told of its parts.
        let within = |part: &RuleUse, whole: &RuleUse| {
            let rest = part.rule.strip_prefix(&whole.rule);
            rest.is_some_and(|rest| rest.starts_with(['/', '.', ' ']))
        };
        let whole = unused.iter().filter(|rule| !unused.iter().any(|own| within(rule, own)));
        let note = |rule: &&RuleUse| {
            let message = format!("`{}` opens something that {told} did not need", rule.rule);
            Diagnostic::warning(Code::PolicyLint, rule.place.span.clone(), message)
                .hint("what nobody needs can stay closed")
        };
        whole.map(note).collect()
    }

    /// How many decisions are others without a rule.
    fn missed(
        &self,
        site: &Site,
        decided: &[Decision],
        decide: impl Fn(&Arc<Policy>) -> Vec<Decision>,
    ) -> usize {
        let without = site.slips.first().and_then(|slip| slip.edit.of(&self.root));
        let Some(policy) = without.and_then(|root| self.policy_of(&root).ok()) else { return 0 };
        let differ = |(old, new): &(&Decision, Decision)| {
            (old.verdict, old.code, old.capabilities, old.risk, &old.rule)
                != (new.verdict, new.code, new.capabilities, new.risk, &new.rule)
        };
        decided.iter().zip(decide(&policy)).filter(differ).count()
    }
}
