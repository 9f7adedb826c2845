//! Whether the examples and tests of a policy would notice a slip of its author.

use capsule_base::limits;

use crate::check::{PolicyAssertion, all_assertions_hold};
use crate::editable_policy::{EditablePolicy, TextLocation};
use crate::policy_text::site_collector::{Mutation, RuleSite};
use crate::policy_text::tree::{self, TreeEdit};

/// A policy that differs from the author's by one slip.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The rule that differs.
    pub rule: String,
    /// How, in words.
    pub description: String,
    /// Where.
    pub location: TextLocation,
    /// What came of it.
    pub result: MutantResult,
}

/// What came of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutantResult {
    /// At least one claim fails.
    Killed,
    /// Every claim holds as before.
    Survived,
    /// It is no policy, so that nobody can write it by a slip.
    Invalid,
}

/// A policy has more slips than are tried.
#[derive(Clone, Copy, Debug)]
pub struct TooManyMutants(pub usize);

impl EditablePolicy<'_> {
    /// Makes every slip that is known, and asks whether the claims notice it. They are to hold
    /// without one.
    ///
    /// # Errors
    /// Where there are more than are tried; none is tried then.
    pub fn mutants(&self, assertions: &[PolicyAssertion]) -> Result<Vec<Mutant>, TooManyMutants> {
        let number = self.sites.iter().map(|site| site.mutations.len()).sum();
        if number > limits::POLICY_MUTANTS {
            return Err(TooManyMutants(number));
        }
        // What the policy says of itself is asked of every mutant and need not be read each time.
        let tests = tree::NodePath::root(&self.root).get("tests");
        let without_tests =
            tests.and_then(|test| TreeEdit::Put(test.path, tree::list_node([])).apply(&self.root));
        let root = without_tests.as_ref().unwrap_or(&self.root);
        let all = self
            .sites
            .iter()
            .flat_map(|site| site.mutations.iter().map(move |mutation| (site, mutation)));
        let mutant = |(site, slip): (&RuleSite, &Mutation)| {
            let policy = slip.edit.apply(root).map(|changed| self.bind_tree(&changed));
            let fate = match policy {
                Some(Ok(policy)) if all_assertions_hold(&policy, assertions, self.tools) => {
                    MutantResult::Survived
                }
                Some(Ok(_)) => MutantResult::Killed,
                Some(Err(_)) | None => MutantResult::Invalid,
            };
            let place = TextLocation { shown: slip.shown.clone(), span: slip.span.clone() };
            Mutant {
                rule: site.rule.clone(),
                description: slip.description.clone(),
                location: place,
                result: fate,
            }
        };
        Ok(all.map(mutant).collect())
    }
}
