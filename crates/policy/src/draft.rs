//! A text that was read, until it is bound to a workspace.

use alloc::string::String;
use core::ops::Range;

use crate::builtin::{self, builtin_text};
use crate::parse::{self, ExtendedLookup, ExtendedText, ParsedPolicy};
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostics, Severity};
use capsule_base::digest::Digest;
use capsule_core::policy::{
    BASE_NAME, BindRoots, LayerKind, Policy, PolicyLayer, PolicyRules, UnboundPolicy,
};
use capsule_core::tool::Catalogue;

/// A policy that was read and is not bound to a workspace yet. It cannot decide.
#[derive(Clone, Debug)]
pub struct PolicyDraft {
    policy: UnboundPolicy,
    /// Its text, behind how its place is shown.
    text: ExtendedPolicy,
    /// What it extends.
    extended: Option<ExtendedPolicy>,
    /// Where its own text says so, and how long that text is.
    extends_span: (Range<usize>, usize),
    /// Whether it is the base policy itself, byte by byte.
    is_base: bool,
    /// Whether its text was recorded.
    is_recorded: bool,
}

/// A policy that another one extends, as its text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedPolicy {
    /// How its place is shown: `builtin:NAME`.
    pub name: String,
    /// The text.
    pub text: String,
}

impl ExtendedPolicy {
    const fn extended_text(&self) -> ExtendedText<'_> {
        ExtendedText { name: self.name.as_str(), text: self.text.as_str() }
    }
}

/// What is refused in a new text alone is read where it was recorded: a run under it is replayed.
fn relax_recorded(mut problems: Diagnostics, again: bool) -> Diagnostics {
    for problem in problems.iter_mut().filter(|problem| !again && problem.code == Code::PolicyValue)
    {
        problem.severity = Severity::Error;
    }
    problems
}

impl PolicyDraft {
    /// Reads a policy. `name` is how its place is shown; `home` is the folder that `~` stands for.
    ///
    /// # Errors
    /// Every problem of the text, in the order of their places; there is always at least one error.
    pub fn parse(
        text: &str,
        name: &str,
        home: &str,
        tools: Catalogue,
    ) -> Result<(Self, Diagnostics), Diagnostics> {
        let carried = |name: &'static str| {
            let text = builtin_text(name.strip_prefix("builtin:")?)?;
            Some(ExtendedText { name, text })
        };
        Self::read((text, name), home, tools, &carried, false)
    }

    /// Reads a policy again whose text was recorded, over the text that was recorded with it.
    ///
    /// # Errors
    /// As [`PolicyDraft::parse`].
    pub fn parse_recorded(
        text: &str,
        name: &str,
        home: &str,
        tools: Catalogue,
        extended: Option<&ExtendedPolicy>,
    ) -> Result<(Self, Diagnostics), Diagnostics> {
        let recorded = |_: &'static str| extended.map(ExtendedPolicy::extended_text);
        Self::read((text, name), home, tools, &recorded, true)
    }

    fn read(
        (text, name): (&str, &str),
        home: &str,
        tools: Catalogue,
        layers: ExtendedLookup<'_>,
        again: bool,
    ) -> Result<(Self, Diagnostics), Diagnostics> {
        let ParsedPolicy { policy, problems, extended: under } =
            parse::policy(text, name, home, tools, layers);
        let (under, at) = under.unzip();
        let extended = |item: ExtendedText<'_>| ExtendedPolicy {
            name: item.name.into(),
            text: item.text.into(),
        };
        let problems = relax_recorded(problems, again);
        match policy {
            Some(policy) if problems.iter().all(|p| p.severity == Severity::Warning) => {
                let seam = (at.unwrap_or_default(), text.len());
                let is_base = name == BASE_NAME && builtin_text("base") == Some(text);
                let item = extended(ExtendedText { name, text });
                let extended = under.map(extended);
                Ok((
                    Self {
                        policy,
                        text: item,
                        extended,
                        extends_span: seam,
                        is_base,
                        is_recorded: again,
                    },
                    problems,
                ))
            }
            _ => Err(problems),
        }
    }

    /// Reads a layer over the policy.
    ///
    /// # Errors
    /// As [`PolicyDraft::parse`].
    pub fn layer(
        &self,
        (text, name): (&str, &str),
        kind: LayerKind,
        home: &str,
        tools: Catalogue,
    ) -> Result<(LayerDraft, Diagnostics), Diagnostics> {
        let beneath =
            (self.text.extended_text(), self.extended.as_ref().map(ExtendedPolicy::extended_text));
        let ParsedPolicy { policy, problems, .. } =
            parse::parse_layer((text, name), kind, beneath, home, tools);
        let problems = relax_recorded(problems, self.is_recorded);
        match policy {
            Some(policy) if problems.iter().all(|p| p.severity == Severity::Warning) => {
                Ok((LayerDraft { policy, kind, location: name.into() }, problems))
            }
            _ => Err(problems),
        }
    }

    /// What the policy extends besides the base policy, which always applies.
    #[must_use]
    pub const fn extended(&self) -> Option<&ExtendedPolicy> {
        self.extended.as_ref()
    }

    /// What the text says, to be changed before it is bound.
    pub const fn rules_mut(&mut self) -> &mut PolicyRules {
        &mut self.policy.rules
    }

    /// The folder that the policy names for a workspace, relative to its own place.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        self.policy.rules.root.as_deref()
    }

    /// The files that checkpoints are added to, from the root on.
    pub fn anchors(&self) -> impl Iterator<Item = &str> {
        self.policy.rules.audit.anchors.iter().map(|anchor| anchor.path.as_str())
    }

    /// The same policy under the digest of the text that it was recorded from: credentials in the
    /// recorded text are masked, and do not change what it decides.
    #[must_use]
    pub fn recorded_as(mut self, sha256: Digest) -> Self {
        self.policy.digest = sha256;
        self
    }

    /// Adds the base policy and sees every pattern from the workspace.
    ///
    /// # Errors
    /// Names each `allow` pattern that lies outside of the workspace, and, should the base policy
    /// itself be broken, what is wrong with it.
    pub fn bind(
        self,
        roots: &BindRoots,
        home: &str,
        tools: Catalogue,
    ) -> Result<Policy, Diagnostics> {
        let read = parse::policy(builtin::BASE_TEXT, BASE_NAME, home, tools, &|_| None);
        let ParsedPolicy { policy: base, mut problems, .. } = read;
        problems.retain(|problem| problem.severity == Severity::Error);
        let Some(mut base) = base.filter(|_| problems.is_empty()) else { return Err(problems) };
        base.digest = builtin::digest();
        let mut policy = self.policy;
        // By itself it holds once.
        if self.is_base {
            let rules = &mut policy.rules;
            rules.hard_denies.clear();
            rules.base_denials.clear();
            rules.base_questions.clear();
        }
        policy.bind(base, roots).map_err(|mut problems| {
            if let Some(ExtendedPolicy { name, .. }) = &self.extended {
                let (at, number) = &self.extends_span;
                problems
                    .iter_mut()
                    .for_each(|problem| parse::relocate_problem(problem, *number, name, at));
            }
            problems
        })
    }
}

/// A layer that was read and is not bound to a workspace yet.
#[derive(Clone, Debug)]
pub struct LayerDraft {
    policy: UnboundPolicy,
    kind: LayerKind,
    location: String,
}

impl LayerDraft {
    /// The same layer under the digest of the text that it was recorded from.
    #[must_use]
    pub fn recorded_as(mut self, sha256: Digest) -> Self {
        self.policy.digest = sha256;
        self
    }

    /// Sees every pattern from the workspace. The base policy and the runtime's own files stay with
    /// the policy that is tightened.
    ///
    /// # Errors
    /// Names each `allow` pattern that lies outside of the workspace.
    pub fn bind(self, roots: &BindRoots) -> Result<PolicyLayer, Diagnostics> {
        self.policy.bind_layer(self.kind, self.location, roots)
    }
}
