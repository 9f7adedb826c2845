//! What a command does, as far as its words tell.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One thing that a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It reads what its words name, or the workspace, and prints.
    Reads,
    /// It reads files that its words do not name, so that no rule about words can judge them.
    Opens,
    /// It creates or changes files.
    Writes,
    /// It removes files, or throws away work that is nowhere else.
    Deletes,
    /// It starts the project's own code, or tools that take orders from files of the project.
    Runs,
    /// It starts a program that an option or a configuration names, where the command by its nature
    /// starts none.
    Starts,
    /// It runs a program text that stands in its words or comes on its standard input.
    Code,
    /// It wants a person at a terminal.
    Interactive,
    /// It talks to another computer, or to a service of this one, to fetch or to ask.
    Network,
    /// It sends data or changes to another computer.
    Publishes,
    /// It changes this machine, its services, users, devices or other processes.
    System,
    /// It loses what no undo record can bring back.
    Destroys,
    /// It prints or copies stored credentials.
    Secrets,
    /// It is a shell, or gives text to one.
    Shell,
    /// Nobody knows: a program, a subcommand or an option that no table knows.
    Unknown,
    /// It writes entries, objects or references of a repository by hand, past the files.
    Plumbing,
    /// It sends data to the host that its words name.
    Sends,
}

capsule_base::words! {
    Effect::name:
    Reads = "reads", Opens = "opens", Writes = "writes", Deletes = "deletes", Runs = "runs",
    Starts = "starts", Code = "code", Interactive = "interactive", Network = "network",
    Publishes = "publishes", System = "system", Destroys = "destroys", Secrets = "secrets",
    Shell = "shell", Unknown = "unknown", Plumbing = "plumbing",
    Sends = "sends",
}

impl Effect {
    /// What it is, for a sentence about a command: "it ...".
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Opens => "reads files that its words do not name",
            Self::Writes => "changes files",
            Self::Deletes => "removes files or work",
            Self::Runs => "runs the project's own code",
            Self::Starts => "starts a program that its words or a configuration name",
            Self::Code => "runs a program text that it is given",
            Self::Interactive => "wants a person at a terminal",
            Self::Network => "contacts another computer or a service",
            Self::Publishes => "sends data or changes to another computer",
            Self::System => "changes this machine",
            Self::Destroys => "loses what cannot be brought back",
            Self::Secrets => "prints stored credentials",
            Self::Shell => "is a shell, or gives text to one",
            Self::Unknown => "is not known",
            Self::Plumbing => "changes by hand what a repository holds, past the files",
            Self::Sends => "sends data to the host that its words name",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of effects.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects(u32);

impl Effects {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// Those of a program that does what files say.
    pub const BY_FILES: Self =
        Self::of(Effect::Runs).with(Effect::Starts).with(Effect::Code).with(Effect::Unknown);

    /// One.
    #[must_use]
    pub const fn of(effect: Effect) -> Self {
        Self(effect.bit())
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, effect: Effect) -> Self {
        Self(self.0 | effect.bit())
    }

    /// Those of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without one.
    #[must_use]
    pub const fn without(self, effect: Effect) -> Self {
        Self(self.0 & !effect.bit())
    }

    /// Whether one is among them.
    #[must_use]
    pub const fn contains(self, effect: Effect) -> bool {
        self.0 & effect.bit() != 0
    }

    /// Whether the sets have one in common.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is none but these.
    #[must_use]
    pub const fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL.into_iter().filter(move |effect| self.contains(*effect))
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Effect> for Effects {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        effects.into_iter().fold(Self::NONE, Self::with)
    }
}

/// What a word of a command line adds to what the command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedEffect {
    /// The effects; none for what a request carries to the host that the words name.
    pub effects: Effects,
    /// The word.
    pub argument: String,
    /// Why, as a fragment: "removes what it finds".
    pub why: String,
    /// What to do instead, where the table knows something better.
    pub alternative: Option<String>,
    /// Whether this is only what a program text seems to say. It bounds what nobody named, and forbids
    /// nothing that a policy names.
    pub guessed: bool,
}

/// Takes the network away. What was only fetched is then taken from this machine, and written where it belongs.
pub(super) fn take_network(found: &mut MatchedEffect) {
    if found.effects.contains(Effect::Network) {
        let left = found.effects.without(Effect::Network);
        found.effects = if left.is_empty() { Effects::of(Effect::Writes) } else { left };
    }
}

/// All effects of some additions that are known.
pub fn combined_effects(added: &[MatchedEffect]) -> Effects {
    added
        .iter()
        .filter(|effect| !effect.guessed)
        .fold(Effects::NONE, |sum, effect| sum.union(effect.effects))
}

/// What something adds by the table: its effects, why, and what to do instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectSpec {
    /// The effects.
    pub effects: Effects,
    /// Why they are named.
    pub why: Option<String>,
    /// What to do instead.
    pub alternative: Option<String>,
    /// Places that are changed without being named, from the top of the repository.
    pub touches: Vec<String>,
}

impl EffectSpec {
    /// The same for a word of a command line.
    pub(super) fn matched(&self, word: &str) -> MatchedEffect {
        let words: Vec<&str> = self.effects.iter().map(Effect::description).collect();
        MatchedEffect {
            effects: self.effects,
            argument: word.into(),
            why: self.why.clone().unwrap_or_else(|| words.join(", ")),
            alternative: self.alternative.clone(),
            guessed: false,
        }
    }
}

/// One effect by its usual description.
pub(super) fn matched_effect(effect: Effect, word: &str) -> MatchedEffect {
    EffectSpec { effects: Effects::of(effect), ..EffectSpec::default() }.matched(word)
}

/// What subcommands of programs in the table do that are called so, and those of unknown programs, too.
const VERBS: &[(Effect, &str)] = &[
    (Effect::Publishes, "publish unpublish deploy redeploy undeploy upload push"),
    (Effect::Destroys, "destroy drop dropdb wipe purge nuke teardown obliterate"),
];

/// What a subcommand of an unknown program does by its name: `deploy`, `deploy:prod`, `db:drop`.
pub(super) fn effect_of_verb(word: &str) -> Option<MatchedEffect> {
    let is_named = |verb: &str| word.split(':').any(|part| part == verb);
    let (effect, _) = VERBS.iter().find(|(_, verbs)| verbs.split(' ').any(is_named))?;
    Some(matched_effect(*effect, word))
}

/// Effects of commands whose words may name files of other computers.
pub(super) const REMOTE_EFFECTS: Effects = Effects::of(Effect::Network)
    .with(Effect::Publishes)
    .with(Effect::System)
    .with(Effect::Shell)
    .with(Effect::Secrets)
    .with(Effect::Destroys);
