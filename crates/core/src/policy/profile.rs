//! What decides where a rule has no word of its own, and the ceiling over rules that have one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::decision::Verdict;
use crate::policy::source_location::SourceLocation;

/// A word for each capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What it is called.
    pub name: String,
    /// Where it stands; none for one that is built in.
    pub source: Option<SourceLocation>,
    /// The words for capabilities that it names.
    pub verdicts: Vec<(Capability, Verdict)>,
    /// The word for all others.
    pub default: Verdict,
    /// What a question becomes with nobody there.
    pub unattended: Unattended,
    /// What must hold before a run begins.
    pub requires: ProfileRequirements,
}

/// What a question becomes with nobody there to answer it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unattended {
    /// The call is denied, and whoever asked may go on with something else.
    #[default]
    Deny,
    /// The run ends with it.
    Fail,
    /// It waits with its card, the run is suspended, and a person answers later.
    Wait,
}

/// What must hold before a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileRequirements {
    /// Commands stand behind the walls that the policy wants, or the run does not begin.
    pub sandbox: bool,
    /// What the run changes is staged, so that it can be dropped.
    pub disposable: bool,
    /// Capsule itself runs in a sandbox, a container or a virtual machine; unknown counts as no (APR-10).
    pub isolated: bool,
}

impl Profile {
    /// The names of those that are built in.
    pub const BUILTIN: [&'static str; 3] = ["supervised", "autonomous", "readonly"];

    /// The word in place of a capability that stands for all that are not named.
    pub const WILDCARD: &'static str = "*";

    /// One that is built in.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        match name {
            "supervised" => Some(Self::supervised()),
            "autonomous" => Some(Self::autonomous()),
            "readonly" => Some(Self::readonly()),
            _ => None,
        }
    }

    fn of(name: &str, words: &[(Capability, Verdict)]) -> Self {
        Self {
            name: name.to_string(),
            source: None,
            verdicts: words.to_vec(),
            default: Verdict::Deny,
            unattended: Unattended::Deny,
            requires: ProfileRequirements::default(),
        }
    }

    /// Reading is free; writing, running and fetching are asked (APR-9).
    #[must_use]
    pub fn supervised() -> Self {
        let words = Capability::ALL.map(|capability| {
            let word = match capability {
                Capability::FsMeta | Capability::FsRead => Verdict::Allow,
                Capability::FsWrite
                | Capability::FsDelete
                | Capability::NetEgress
                | Capability::ProcExec
                | Capability::DataUser => Verdict::Ask,
                Capability::ProcUnconfined | Capability::SecretsAccess => Verdict::AskEach,
            };
            (capability, word)
        });
        Self::of("supervised", &words)
    }

    /// Reading, writing and running are free behind walls that hold and in a workspace that can be
    /// thrown away; nothing leaves it (APR-9).
    #[must_use]
    pub fn autonomous() -> Self {
        let words = Capability::ALL.map(|capability| {
            let word = match capability {
                Capability::FsMeta
                | Capability::FsRead
                | Capability::FsWrite
                | Capability::ProcExec => Verdict::Allow,
                Capability::FsDelete => Verdict::Ask,
                Capability::NetEgress
                | Capability::ProcUnconfined
                | Capability::DataUser
                | Capability::SecretsAccess => Verdict::Deny,
            };
            (capability, word)
        });
        let requires = ProfileRequirements { sandbox: true, disposable: true, isolated: false };
        Self { requires, ..Self::of("autonomous", &words) }
    }

    /// Looking, and nothing else.
    #[must_use]
    pub fn readonly() -> Self {
        let look = [(Capability::FsMeta, Verdict::Allow), (Capability::FsRead, Verdict::Allow)];
        Self::of("readonly", &look)
    }

    /// That of a layer which names none: it has no opinion on what its rules do not name.
    #[must_use]
    pub fn neutral() -> Self {
        let words = [(Capability::ProcUnconfined, Verdict::Allow)];
        Self { default: Verdict::Allow, ..Self::of("none", &words) }
    }

    /// The same, with what another one wants beyond its words.
    #[must_use]
    pub(crate) fn with_requirements_of(self, other: &Self) -> Self {
        let unattended = match other.unattended {
            Unattended::Fail => Unattended::Fail,
            Unattended::Deny | Unattended::Wait => self.unattended,
        };
        let requires = ProfileRequirements {
            sandbox: self.requires.sandbox || other.requires.sandbox,
            disposable: self.requires.disposable || other.requires.disposable,
            isolated: self.requires.isolated || other.requires.isolated,
        };
        Self { unattended, requires, ..self }
    }

    /// The first capability for which it has a milder word than another one.
    #[must_use]
    pub fn milder_than(&self, other: &Self) -> Option<Capability> {
        Capability::ALL
            .into_iter()
            .find(|capability| self.verdict_for(*capability) < other.verdict_for(*capability))
    }

    /// The word for a capability. The one for all others is none for running unconfined, which has to
    /// be named.
    #[must_use]
    pub fn verdict_for(&self, capability: Capability) -> Verdict {
        let named = self.verdicts.iter().find(|(candidate, _)| *candidate == capability);
        let rest = match capability {
            Capability::ProcUnconfined => Verdict::Deny,
            _ => self.default,
        };
        named.map_or(rest, |(_, word)| *word)
    }

    /// The strictest word over these capabilities; an action that needs none is denied, since
    /// nothing is known to need nothing.
    #[must_use]
    pub fn strictest_verdict(&self, capabilities: Capabilities) -> Verdict {
        capabilities.iter().map(|capability| self.verdict_for(capability)).max().unwrap_or_default()
    }

    /// The first of these capabilities that it denies: a ceiling, whatever a rule says.
    #[must_use]
    pub fn first_denied(&self, capabilities: Capabilities) -> Option<Capability> {
        capabilities.iter().find(|capability| self.verdict_for(*capability) == Verdict::Deny)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::readonly()
    }
}
