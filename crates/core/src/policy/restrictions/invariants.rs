//! What the invariants of a policy keep from being changed, whoever changes it.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use crate::capability::Capabilities;
use crate::change::{Change, FileState};
use crate::policy::decide::check::reason_or;
use crate::policy::model::{HardDenyRule, Policy};
use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;

use super::{applicable_path, check_unprotected};

/// What the invariants of a policy, and of the layers over it, keep from being changed.
#[derive(Clone, Debug)]
pub struct Invariants {
    policy: Arc<Policy>,
}

impl Invariants {
    /// Those of a policy.
    #[must_use]
    pub const fn of(policy: Arc<Policy>) -> Self {
        Self { policy }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether one keeps a path from being written or deleted, or has a person asked about it before.
    #[must_use]
    pub fn protects(&self, path: &WorkspacePath) -> bool {
        let asks = |rule: &HardDenyRule| rule.covers(path);
        self.policy.forbids(path, Capabilities::CHANGES).is_some()
            || self.policy.base_questions.iter().any(asks)
    }

    /// Whether a name leads to orders: an invariant protects it, or speaks of what is beneath it in
    /// particular, as `.github/workflows/**` does of `.github`; or a person is asked about it.
    #[must_use]
    pub fn concerns(&self, name: &WorkspacePath) -> bool {
        let asks = |rule: &HardDenyRule| !rule.new && leads(rule, name);
        self.protect(name) || self.policy.base_questions.iter().any(asks)
    }

    fn protect(&self, name: &WorkspacePath) -> bool {
        let mut rules = self
            .policy
            .self_and_layers()
            .flat_map(|layer| layer.hard_denies.iter().chain(&layer.base_denials));
        rules.any(|rule| leads(rule, name))
    }

    /// Why a change may not be made for the sake of other names than its own, if it may not.
    #[must_use]
    pub fn refusal_reason(&self, change: &Change, aliases: &PathAliases) -> Option<String> {
        let path = WorkspacePath::from_fs_name(change.judged_as.as_ref().unwrap_or(&change.path))?;
        let capabilities = Capabilities::of(change.kind().capability());
        let names = aliases.aliases_of(&path);
        let is_folder = |node: &FileState| matches!(node, FileState::Directory { .. });
        // What a name leads through is no longer that once a folder replaces a link; one that comes where
        // nothing was, or goes, leaves the name leading where it did.
        let stays = [&change.before, &change.after]
            .into_iter()
            .all(|node| node.as_ref().is_none_or(is_folder));
        let is_link = matches!(change.after, Some(FileState::Link { .. }));
        if is_link && names.iter().chain([&path]).any(|name| self.protect(name)) {
            return Some("it is a link in a place where orders are looked for".into());
        }
        if let Some(name) = aliases.names_through(&path).next().filter(|_| !stays) {
            return Some(format!("`{name}` leads through it, where orders are looked for"));
        }
        let target =
            change.link_target().map(|target| aliases.aliases_of(&target)).unwrap_or_default();
        let mut named = names.into_iter().chain(target);
        named.find_map(|name| {
            Some(format!(
                "it is what `{name}` leads to: {}",
                self.denial_reason(&name, capabilities)?
            ))
        })
    }

    /// Why a change may not be made by any name, its own among them.
    #[must_use]
    pub fn refuse_by_any_name(&self, change: &Change, aliases: &PathAliases) -> Option<String> {
        let refused = applicable_path(&self.policy, change)
            .and_then(|path| check_unprotected(&self.policy, change, &path));
        refused.err().or_else(|| self.refusal_reason(change, aliases))
    }

    /// Why one keeps a power from a path.
    fn denial_reason(&self, path: &WorkspacePath, capabilities: Capabilities) -> Option<String> {
        let rule = self.policy.forbids(path, capabilities)?;
        Some(reason_or(&rule.because, || format!("forbidden by the rule `{}`", rule.id)))
    }
}

/// Whether a rule is about a name, or about what is beneath it in particular.
fn leads(rule: &HardDenyRule, name: &WorkspacePath) -> bool {
    rule.capabilities.intersects(Capabilities::CHANGES)
        && (rule.covers(name) || rule.paths.iter().any(|path| path.has_prefix(name)))
}
