//! Which rules decide something.

use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_core::decision::Decision;
use capsule_core::policy::Policy;

use crate::editable_policy::{EditablePolicy, TextLocation};
use crate::policy_text::site_collector::{DecisionEvidence, RuleSite};
use crate::recorded_calls::PastCall;

/// A rule, and how much hangs on it.
#[derive(Clone, Debug)]
pub struct RuleUsage {
    /// Its name, as decisions show it.
    pub rule: String,
    /// Where it stands.
    pub location: TextLocation,
    /// Whether something is open because of it.
    pub allows: bool,
    /// How many decisions are its own; none where it hangs on what a run has used.
    pub decisions: Option<usize>,
}

impl EditablePolicy<'_> {
    /// How many of the decisions each rule of the text makes. `decide` decides the same calls by
    /// the policy that it is given.
    pub fn rule_usage(&self, decide: impl Fn(&Arc<Policy>) -> Vec<Decision>) -> Vec<RuleUsage> {
        let decided = decide(&self.authored);
        let count = |site: &RuleSite| match site.decides {
            DecisionEvidence::RunUsage => None,
            DecisionEvidence::Location => {
                let item = |decision: &&Decision| decision.at.as_ref() == Some(&site.shown);
                Some(decided.iter().filter(item).count())
            }
            // A rule without a word of its own leaves no name. What would be decided otherwise
            // without it was decided because of it.
            DecisionEvidence::Removal => Some(self.decisions_lost(site, &decided, &decide)),
        };
        let used = |site: &RuleSite| RuleUsage {
            rule: site.rule.clone(),
            location: TextLocation { shown: site.shown.clone(), span: site.span.clone() },
            allows: site.allows,
            decisions: count(site),
        };
        self.sites.iter().map(used).collect()
    }

    /// Rules that open something that none of these calls needed. `told` says which calls they are.
    #[must_use]
    pub fn unused_rules(&self, calls: &[PastCall], told: &str) -> Diagnostics {
        let rules =
            self.rule_usage(|policy| calls.iter().map(|call| call.decide(policy)).collect());
        let unused = |rule: &&RuleUsage| rule.allows && rule.decisions == Some(0);
        let unused: Vec<&RuleUsage> = rules.iter().filter(unused).collect();
        // Where the whole rule is not needed, its parts are not reported, too.
        let within = |part: &RuleUsage, whole: &RuleUsage| {
            let rest = part.rule.strip_prefix(&whole.rule);
            rest.is_some_and(|rest| rest.starts_with(['/', '.', ' ']))
        };
        let whole = unused.iter().filter(|rule| !unused.iter().any(|usage| within(rule, usage)));
        let note = |rule: &&RuleUsage| {
            let message = format!("`{}` opens something that {told} did not need", rule.rule);
            Diagnostic::warning(Code::PolicyLint, rule.location.span.clone(), message)
                .hint("what nobody needs can stay closed")
        };
        whole.map(note).collect()
    }

    /// How many decisions are others without a rule.
    fn decisions_lost(
        &self,
        site: &RuleSite,
        decided: &[Decision],
        decide: impl Fn(&Arc<Policy>) -> Vec<Decision>,
    ) -> usize {
        let without = site.mutations.first().and_then(|slip| slip.edit.apply(&self.root));
        let Some(policy) = without.and_then(|root| self.bind_tree(&root).ok()) else { return 0 };
        let differ = |(old, new): &(&Decision, Decision)| {
            (old.verdict, old.code, old.capabilities, old.risk, &old.rule)
                != (new.verdict, new.code, new.capabilities, new.risk, &new.rule)
        };
        decided.iter().zip(decide(&policy)).filter(differ).count()
    }
}
