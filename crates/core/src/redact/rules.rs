//! The shipped kinds of credential. Each line is a format that its provider documents; the prefix
//! is what makes it recognisable without guessing.

/// Which characters may stand behind a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// `A-Z 0-9`
    Upper,
    /// `0-9 a-f`
    Hex,
    /// `A-Z a-z 0-9`
    Alnum,
    /// `A-Z a-z 0-9 _ -`
    Url,
    /// `A-Z a-z 0-9 _ - .`
    Dotted,
}

impl Alphabet {
    pub(super) const fn holds(self, byte: u8) -> bool {
        match self {
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }

    #[cfg(test)]
    pub(super) const fn sample(self) -> &'static str {
        match self {
            Self::Upper => "A",
            _ => "a",
        }
    }
}

/// One kind of credential.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// What it is called in a mask.
    pub kind: &'static str,
    /// Whose it is.
    pub name: &'static str,
    /// How it begins.
    pub prefix: &'static str,
    /// What stands behind.
    pub alphabet: Alphabet,
    /// The fewest characters behind the prefix.
    pub shortest: usize,
}

impl Rule {
    /// The length of the credential that begins here. Where the text goes on unseen, what reaches
    /// its end need not be long enough.
    pub(super) fn length_at(&self, text: &[u8], cut_after: bool) -> Option<usize> {
        let rest = text.strip_prefix(self.prefix.as_bytes())?;
        let length = rest.iter().take_while(|byte| self.alphabet.holds(**byte)).count();
        let cut = cut_after && length > 0 && length == rest.len();
        (cut || length >= self.shortest).then_some(self.prefix.len() + length)
    }
}

const fn token(
    name: &'static str,
    prefix: &'static str,
    alphabet: Alphabet,
    shortest: usize,
) -> Rule {
    Rule { kind: "token", name, prefix, alphabet, shortest }
}

/// The rules that this build ships.
pub(super) const BUILTIN: &[Rule] = &[
    token("github", "ghp_", Alphabet::Alnum, 36),
    token("github", "gho_", Alphabet::Alnum, 36),
    token("github", "ghu_", Alphabet::Alnum, 36),
    token("github", "ghs_", Alphabet::Alnum, 36),
    token("github", "ghr_", Alphabet::Alnum, 36),
    token("github", "github_pat_", Alphabet::Url, 60),
    token("gitlab", "glpat-", Alphabet::Url, 20),
    token("aws", "AKIA", Alphabet::Upper, 16),
    token("aws", "ASIA", Alphabet::Upper, 16),
    token("slack", "xoxb-", Alphabet::Url, 20),
    token("slack", "xoxp-", Alphabet::Url, 20),
    token("slack", "xapp-", Alphabet::Url, 20),
    token("stripe", "sk_live_", Alphabet::Alnum, 24),
    token("stripe", "rk_live_", Alphabet::Alnum, 24),
    token("anthropic", "sk-ant-", Alphabet::Url, 32),
    token("openai", "sk-proj-", Alphabet::Url, 40),
    token("google", "AIza", Alphabet::Url, 35),
    token("google", "GOCSPX-", Alphabet::Url, 28),
    token("npm", "npm_", Alphabet::Alnum, 36),
    token("pypi", "pypi-AgEIcHlwaS5vcmc", Alphabet::Url, 50),
    token("huggingface", "hf_", Alphabet::Alnum, 34),
    token("digitalocean", "dop_v1_", Alphabet::Hex, 64),
    token("sendgrid", "SG.", Alphabet::Dotted, 60),
    token("shopify", "shpat_", Alphabet::Hex, 32),
];
