//! From a text to a policy that is bound to a workspace.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::capability::{Capabilities, Capability};
use crate::policy::builtin::{self, builtin_text};
use crate::policy::layer::LayerKind;
use crate::policy::model::PolicyLayer;
use crate::policy::model::{Constraint, DroppedRule, HardDenyRule, Policy};
use crate::policy::parse::{self, ExtendedLookup, ExtendedText, ParsedPolicy};
use crate::policy::path_pattern::{NameIndex, PathPattern};
use crate::policy::source_location::SourceLocation;
use crate::tool::Catalogue;
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics, Severity};
use capsule_base::digest::Digest;
use capsule_base::spelling::Spelling;
use capsule_base::suggestion::closest;
use capsule_command::specs::Effects;

/// A policy that was read and is not bound to a workspace yet. It cannot decide.
#[derive(Clone, Debug)]
pub struct PolicyDraft {
    policy: Policy,
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

/// Where a policy is bound to.
#[derive(Clone, Debug, Default)]
pub struct BindRoots {
    /// The real path of the workspace.
    pub workspace: String,
    /// The real paths of the runtime's own files: the store, the policy, keys. Out of reach of
    /// every tool, wherever they lie.
    pub runtime_files: Vec<String>,
    /// How the file system of the workspace compares names.
    pub spelling: Spelling,
    /// Whether the policy may drop rules of the base policy: it is the user's own, and did not come
    /// with the workspace.
    pub may_drop_base_rules: bool,
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
                let is_base = name == builtin::BASE_NAME && builtin_text("base") == Some(text);
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

    /// The folder that the policy names for a workspace, relative to its own place.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        self.policy.root.as_deref()
    }

    /// The files that checkpoints are added to, from the root on.
    pub fn anchors(&self) -> impl Iterator<Item = &str> {
        self.policy.audit.anchors.iter().map(|anchor| anchor.path.as_str())
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
        let mut policy = self.policy;
        let base = parse::policy(builtin::BASE_TEXT, builtin::BASE_NAME, home, tools, &|_| None);
        let ParsedPolicy { policy: base, mut problems, .. } = base;
        // By itself it holds once.
        if let Some(mut base) = base.filter(|_| !self.is_base) {
            problems.extend(drop_base_rules(&policy, &mut base, roots.may_drop_base_rules));
            policy.hard_denies.extend(base.hard_denies);
            policy.base_denials.extend(base.base_denials);
            policy.base_questions.extend(base.base_questions);
        }
        problems.retain(|problem| problem.severity == Severity::Error);
        policy.hard_denies.push(runtime_files_rule(&roots.runtime_files));
        problems.extend(bind_patterns(&mut policy, roots));
        let (digest, base) = (policy.digest, builtin::digest());
        policy.digest = match policy.extended_digest {
            Some(under) => Digest::of_parts(&[&digest.0, &under.0, &base.0]),
            None => Digest::of_parts(&[&digest.0, &base.0]),
        };
        if let Some(ExtendedPolicy { name, .. }) = &self.extended {
            let (at, number) = &self.extends_span;
            problems
                .iter_mut()
                .for_each(|problem| parse::relocate_problem(problem, *number, name, at));
        }
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }
}

/// A layer that was read and is not bound to a workspace yet.
#[derive(Clone, Debug)]
pub struct LayerDraft {
    policy: Policy,
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
        let Self { mut policy, kind, location: place } = self;
        let problems = bind_patterns(&mut policy, roots);
        match problems.is_empty() {
            true => Ok(PolicyLayer { kind, location: place, policy: Arc::new(policy) }),
            false => Err(problems),
        }
    }
}

/// Sees every pattern of a policy from the workspace; gives those that open what lies outside.
fn bind_patterns(policy: &mut Policy, roots: &BindRoots) -> Diagnostics {
    let (root, spelling) = (roots.workspace.as_str(), roots.spelling);
    let mut problems = Vec::new();
    let questions = &mut policy.base_questions;
    for never in policy.hard_denies.iter_mut().chain(&mut policy.base_denials).chain(questions) {
        for pattern in never.paths.iter_mut().chain(&mut never.except) {
            pattern.bind(root, spelling);
        }
        never.index = NameIndex::of(&never.paths, spelling);
    }
    for rule in policy.tools.values_mut() {
        if let Constraint::Exec(exec) = &mut rule.constraint {
            for pattern in exec.cwd.iter_mut().flat_map(|directories| &mut directories.beneath) {
                if !pattern.bind(root, spelling) {
                    problems.push(outside_diagnostic(pattern, root));
                }
            }
            for program in &mut exec.programs {
                for pattern in program.command.paths_mut() {
                    if !pattern.bind(root, spelling) {
                        problems.push(outside_diagnostic(pattern, root));
                    }
                }
            }
        }
        let Constraint::Files(files) = &mut rule.constraint else { continue };
        files.spelling = spelling;
        for pattern in &mut files.deny {
            pattern.bind(root, spelling);
        }
        let nested = files.rules.iter_mut().flat_map(|rule| &mut rule.paths);
        for pattern in files.allow.iter_mut().chain(nested) {
            if !pattern.bind(root, spelling) {
                problems.push(outside_diagnostic(pattern, root));
            }
        }
    }
    problems
}

/// Drops what a policy drops of the base policy; gives what is wrong with that.
fn drop_base_rules(policy: &Policy, base: &mut Policy, may: bool) -> Diagnostics {
    let mut problems = Vec::new();
    for DroppedRule { id, source, inherited, .. } in &policy.dropped_rules {
        if *inherited && !may {
            continue;
        }
        let at = source.span.clone();
        let rules =
            || base.hard_denies.iter().chain(&base.base_denials).chain(&base.base_questions);
        if !rules().any(|rule| rule.id == *id) {
            let message = alloc::format!("the base policy has no rule `{id}`");
            let names = rules().map(|rule| rule.id.as_str());
            let problem = Diagnostic::error(Code::PolicyValue, at, message);
            problems.push(match closest(id, names) {
                Some(near) => problem.hint(alloc::format!("did you mean `{near}`?")),
                None => problem.hint("`capsule policy show --policy builtin:base` lists them"),
            });
        } else if !may {
            let message = "a policy that lies in the workspace only tightens";
            let problem = Diagnostic::error(Code::PolicyLift, at, message);
            problems.push(problem.hint("leave `lift` out"));
        }
    }
    // What is handed on by a policy of ours drops nothing for a text that may only tighten.
    let dropped = |rule: &HardDenyRule| {
        policy.dropped_rules.iter().any(|item| item.id == rule.id && (may || !item.inherited))
    };
    base.hard_denies.retain(|rule| !dropped(rule));
    base.base_denials.retain(|rule| !dropped(rule));
    base.base_questions.retain(|rule| !dropped(rule));
    problems
}

fn outside_diagnostic(pattern: &PathPattern, root: &str) -> Diagnostic {
    let message = alloc::format!("`{}` lies outside of the workspace `{root}`", pattern.text);
    Diagnostic::error(Code::PolicyGlob, pattern.source.span.clone(), message)
        .hint("write it relative to the workspace, or choose another with `--workspace`")
}

fn runtime_files_rule(item: &[String]) -> HardDenyRule {
    let source = SourceLocation { at: builtin::BASE_NAME.to_string(), span: 0..0 };
    let paths = item.iter().map(|path| PathPattern::literal(path, source.clone())).collect();
    HardDenyRule {
        id: HardDenyRule::RUNTIME_FILES.to_string(),
        source,
        capabilities: Capabilities::of(Capability::FsMeta)
            .with(Capability::FsRead)
            .with(Capability::FsWrite)
            .with(Capability::FsDelete),
        paths,
        index: NameIndex::default(),
        except: Vec::new(),
        new: false,
        tool: None,
        argv: Vec::new(),
        effects: Effects::NONE,
        into: Effects::NONE,
        because: Some("A run must not read or change its own rules, record or keys".to_string()),
        suggest: Some("Tell the user what you need from there, and why".to_string()),
    }
}
