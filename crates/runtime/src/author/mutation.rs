//! Whether the examples and tests of a policy would notice a slip of its author.

use capsule_core::limits;

use super::sites::Slip;
use super::tree::{self, Edit};
use super::{Authored, InText};
use crate::check::{Claim, all_hold};

/// A policy that differs from the author's by one slip.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The rule that differs.
    pub rule: String,
    /// How, in words.
    pub words: String,
    /// Where.
    pub place: InText,
    /// What came of it.
    pub fate: Fate,
}

/// What came of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// At least one claim fails.
    Noticed,
    /// Every claim holds as before.
    Survived,
    /// It is no policy, so that nobody can write it by a slip.
    Unreadable,
}

/// A policy has more slips than are tried.
#[derive(Clone, Copy, Debug)]
pub struct TooManyMutants(pub usize);

impl Authored<'_> {
    /// Makes every slip that is known, and asks whether the claims notice it. They are to hold
    /// without one.
    ///
    /// # Errors
    /// Where there are more than are tried; none is tried then.
    pub fn mutants(&self, claims: &[Claim]) -> Result<Vec<Mutant>, TooManyMutants> {
        let number = self.sites.iter().map(|site| site.slips.len()).sum();
        if number > limits::POLICY_MUTANTS {
            return Err(TooManyMutants(number));
        }
        // What the policy says of itself is asked of every mutant and need not be read each time.
        let tests = tree::Place::root(&self.root).get("tests");
        let without_tests =
            tests.and_then(|own| Edit::Put(own.path, tree::list([])).of(&self.root));
        let root = without_tests.as_ref().unwrap_or(&self.root);
        let all = self.sites.iter().flat_map(|site| site.slips.iter().map(move |own| (site, own)));
        let mutant = |(site, slip): (&super::Site, &Slip)| {
            let policy = slip.edit.of(root).map(|changed| self.policy_of(&changed));
            let fate = match policy {
                Some(Ok(policy)) if all_hold(&policy, claims) => Fate::Survived,
                Some(Ok(_)) => Fate::Noticed,
                Some(Err(_)) | None => Fate::Unreadable,
            };
            let place = InText { at: slip.at.clone(), span: slip.span.clone() };
            Mutant { rule: site.rule.clone(), words: slip.words.clone(), place, fate }
        };
        Ok(all.map(mutant).collect())
    }
}
