//! The shipped kinds of credential, each with its form, one file for each family of providers. The
//! form is what a provider chose so that its tokens can be found; where the provider says so in
//! public, a comment names the place.

mod ai;
mod business;
mod cloud;
mod code;
mod infra;
mod keys;

/// One kind of credential.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// What it is called in a mask.
    pub(super) kind: &'static str,
    /// Whose it is.
    pub(super) name: &'static str,
    /// How it looks; see `form`.
    pub(super) pattern: &'static str,
    /// What has to hold besides.
    pub(super) check: Check,
    /// What it is.
    pub(super) description: &'static str,
}

/// What has to hold besides the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The form is telling enough; only what stands for a token in a text is left alone.
    FormOnly,
    /// The form has little of its own: the rest must look as if nobody made it up.
    Random,
    /// As `Mixed`, and it is no part of a longer word.
    RandomWord,
    /// Six characters at the end are a checksum of the 30 before them. One that is right proves the
    /// token, whatever it looks like; one that is wrong proves nothing: formats change.
    Crc,
    /// Two bytes at the end are a checksum, without which it is none.
    Nkey,
    /// What it says in base64 is that it is a private key.
    PemInBase64,
}

const fn token(name: &'static str, form: &'static str, check: Check, what: &'static str) -> Rule {
    Rule { kind: "token", name, pattern: form, check, description: what }
}

const fn form_only(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::FormOnly, what)
}

const fn random(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::Random, what)
}

const fn random_word(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::RandomWord, what)
}

const fn crc(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::Crc, what)
}

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
