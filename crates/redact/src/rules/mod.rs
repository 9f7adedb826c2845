//! The shipped kinds of credential, each with its form, one file for each family of providers. The
//! form is what a provider chose so that its tokens can be found; where the provider says so in
//! public, a comment names the place.

mod ai;
mod business;
mod cloud;
mod code;
mod infra;
mod keys;
mod rule;

pub(super) use rule::{Check, Rule};

/// The rules that this build ships, by family. Where two fit, the first counts.
pub(super) const FAMILIES: &[&[Rule]] =
    &[code::RULES, cloud::RULES, ai::RULES, infra::RULES, business::RULES, keys::RULES];

/// How many there are.
#[expect(clippy::indexing_slicing, reason = "a constant: out of bounds does not compile")]
pub(super) const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
};

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.iter().copied().flatten()
}
