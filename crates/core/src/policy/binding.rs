//! From what a policy says to a policy that decides: bound to a workspace, with the rules of the base policy.
//!
//! A reader of texts makes [`PolicyRules`], and no more. Here are added, and cannot be left out: the rules of the base
//! policy, which only the user's own policy drops; the rule that protects the runtime's own files; and the digests.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::policy::layer::LayerKind;
use crate::policy::model::{
    Constraint, DroppedRule, HardDenyRule, Policy, PolicyLayer, PolicyRules,
};
use crate::policy::path_pattern::{NameIndex, PathPattern};
use crate::policy::source_location::SourceLocation;
use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics};
use capsule_base::digest::Digest;
use capsule_base::spelling::Spelling;
use capsule_base::suggestion::closest;

/// What the base policy is called where a rule's place is shown.
pub const BASE_NAME: &str = "builtin:base";

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

/// The rules of a text with its digest, not bound to a workspace yet. They cannot decide.
#[derive(Clone, Debug)]
pub struct UnboundPolicy {
    /// What the text says.
    pub rules: PolicyRules,
    /// The digest of the text.
    pub digest: Digest,
    /// The digest of the text of the policy that it extends.
    pub extended_digest: Option<Digest>,
}

impl UnboundPolicy {
    /// Adds the base policy and sees every pattern from the workspace.
    ///
    /// # Errors
    /// Names each `allow` pattern that lies outside of the workspace, and each rule of the base policy that cannot be
    /// dropped.
    pub fn bind(self, base: Self, roots: &BindRoots) -> Result<Policy, Diagnostics> {
        let Self { mut rules, digest, extended_digest } = self;
        let Self { rules: mut base, digest: base_digest, .. } = base;
        let mut problems = drop_base_rules(&rules, &mut base, roots.may_drop_base_rules);
        rules.hard_denies.extend(base.hard_denies);
        rules.base_denials.extend(base.base_denials);
        rules.base_questions.extend(base.base_questions);
        rules.hard_denies.push(runtime_files_rule(&roots.runtime_files));
        problems.extend(bind_patterns(&mut rules, roots));
        let digest = match extended_digest {
            Some(under) => Digest::of_parts(&[&digest.0, &under.0, &base_digest.0]),
            None => Digest::of_parts(&[&digest.0, &base_digest.0]),
        };
        bound(rules, (digest, roots.may_drop_base_rules), problems)
    }

    /// Sees every pattern of a layer from the workspace. The base policy and the runtime's own files stay with the policy
    /// that is tightened.
    ///
    /// # Errors
    /// Names each `allow` pattern that lies outside of the workspace.
    pub fn bind_layer(
        self,
        kind: LayerKind,
        location: String,
        roots: &BindRoots,
    ) -> Result<PolicyLayer, Diagnostics> {
        let Self { mut rules, digest, .. } = self;
        let problems = bind_patterns(&mut rules, roots);
        let policy = Arc::new(bound(rules, (digest, false), problems)?);
        Ok(PolicyLayer { kind, location, policy })
    }
}

fn bound(
    rules: PolicyRules,
    (digest, may_drop_base_rules): (Digest, bool),
    problems: Diagnostics,
) -> Result<Policy, Diagnostics> {
    let (layers, program_directories) = (Vec::new(), Vec::new());
    let policy = Policy { rules, layers, program_directories, digest, may_drop_base_rules };
    if problems.is_empty() { Ok(policy) } else { Err(problems) }
}

/// Sees every pattern of a policy from the workspace; gives those that open what lies outside.
fn bind_patterns(policy: &mut PolicyRules, roots: &BindRoots) -> Diagnostics {
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
        let bind = |pattern: &mut PathPattern| {
            if !pattern.bind(root, spelling) {
                problems.push(outside_diagnostic(pattern, root));
            }
        };
        if let Constraint::Exec(exec) = &mut rule.constraint {
            let folders = exec.cwd.iter_mut().flat_map(|directories| &mut directories.beneath);
            let programs = exec.programs.iter_mut();
            folders.chain(programs.flat_map(|program| program.command.paths_mut())).for_each(bind);
            continue;
        }
        let Constraint::Files(files) = &mut rule.constraint else { continue };
        files.spelling = spelling;
        for pattern in &mut files.deny {
            pattern.bind(root, spelling);
        }
        let nested = files.rules.iter_mut().flat_map(|rule| &mut rule.paths);
        files.allow.iter_mut().chain(nested).for_each(bind);
    }
    problems
}

/// Drops what a policy drops of the base policy; gives what is wrong with that. What a policy of this program drops, it
/// drops for every policy that extends it: the user, who named that policy, could as well have named this one.
fn drop_base_rules(policy: &PolicyRules, base: &mut PolicyRules, may: bool) -> Diagnostics {
    let mut problems = Vec::new();
    for DroppedRule { id, source, inherited, .. } in &policy.dropped_rules {
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
        } else if !may && !inherited {
            let message = "a policy that lies in the workspace only tightens";
            let problem = Diagnostic::error(Code::PolicyLift, at, message);
            problems.push(problem.hint("leave `lift` out"));
        }
    }
    let dropped = |rule: &HardDenyRule| policy.dropped_rules.iter().any(|item| item.id == rule.id);
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
    let source = SourceLocation { at: BASE_NAME.to_string(), span: 0..0 };
    let paths = item.iter().map(|path| PathPattern::literal(path, source.clone())).collect();
    HardDenyRule {
        capabilities: Capabilities::of(Capability::FsMeta)
            .with(Capability::FsRead)
            .with(Capability::FsWrite)
            .with(Capability::FsDelete),
        paths,
        because: Some("A run must not read or change its own rules, record or keys".to_string()),
        suggest: Some("Tell the user what you need from there, and why".to_string()),
        ..HardDenyRule::named(HardDenyRule::RUNTIME_FILES.to_string(), source)
    }
}
