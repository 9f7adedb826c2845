//! A rule: one kind of credential, told by its form.

/// One kind of credential.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// What it is called in a mask.
    pub(crate) kind: &'static str,
    /// Whose it is.
    pub(crate) name: &'static str,
    /// How it looks; see `form`.
    pub(crate) pattern: &'static str,
    /// What has to hold besides.
    pub(crate) check: Check,
    /// What it is.
    pub(crate) description: &'static str,
}

/// What has to hold besides the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
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

pub(super) const fn token(
    name: &'static str,
    form: &'static str,
    check: Check,
    what: &'static str,
) -> Rule {
    Rule { kind: "token", name, pattern: form, check, description: what }
}

pub(super) const fn form_only(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::FormOnly, what)
}

pub(super) const fn random(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::Random, what)
}

pub(super) const fn random_word(
    name: &'static str,
    form: &'static str,
    what: &'static str,
) -> Rule {
    token(name, form, Check::RandomWord, what)
}

pub(super) const fn crc(name: &'static str, form: &'static str, what: &'static str) -> Rule {
    token(name, form, Check::Crc, what)
}
