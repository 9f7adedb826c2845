//! The policy that is in force: the policy itself, and the layers that tighten it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::policy::commands::ExecRule;
use crate::policy::model::{Constraint, FetchRule, Policy, PolicyLayer, SandboxRule};
use crate::policy::profile::{Profile, Unattended};
use crate::tool::ToolName;
use capsule_base::digest::Digest;
use capsule_redact::CustomPattern;

impl Policy {
    /// The constraints on programs that the policy puts on a tool.
    #[must_use]
    pub fn exec_rule(&self, tool: &ToolName) -> Option<&ExecRule> {
        match self.tool(tool).map(|rule| &rule.constraint) {
            Some(Constraint::Exec(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The constraints that the policy puts on addresses for a tool.
    pub(crate) fn fetch_rule(&self, tool: &ToolName) -> Option<&FetchRule> {
        match self.tool(tool).map(|rule| &rule.constraint) {
            Some(Constraint::Fetch(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The same policy, tightened.
    #[must_use]
    pub fn with_layers(mut self, layers: Vec<PolicyLayer>) -> Self {
        for layer in &layers {
            self.digest = Digest::of_parts(&[&self.digest.0, &layer.policy.digest.0]);
        }
        self.layers = layers;
        self
    }

    /// The same policy, by which links to programs in these directories are applied; its layers, too.
    #[must_use]
    pub fn with_programs(mut self, directories: &[String]) -> Self {
        for layer in &mut self.layers {
            Arc::make_mut(&mut layer.policy).program_directories = directories.to_vec();
        }
        self.program_directories = directories.to_vec();
        self
    }

    /// It and its layers: whatever holds has to hold under all of them.
    pub fn self_and_layers(&self) -> impl Iterator<Item = &Self> {
        core::iter::once(self).chain(self.layers.iter().map(|layer| layer.policy.as_ref()))
    }

    /// What commands are confined to under all of them.
    #[must_use]
    pub fn sandbox_in_force(&self) -> SandboxRule {
        self.self_and_layers().fold(self.sandbox, |held, policy| SandboxRule {
            floor: held.floor.max(policy.sandbox.floor),
            network: held.network.min(policy.sandbox.network),
            workspace: held.workspace.min(policy.sandbox.workspace),
            mount: held.mount.max(policy.sandbox.mount),
            changes: held.changes.intersect(policy.sandbox.changes),
            read_only: held.read_only,
            writes_by_default: held.writes_by_default && policy.sandbox.writes_by_default,
            optional: held.optional && policy.sandbox.optional,
        })
    }

    /// The profiles that hold: its own, and those that layers name.
    pub fn profiles_in_force(&self) -> impl Iterator<Item = &Profile> {
        self.self_and_layers().map(|layer| &layer.profile)
    }

    /// Whether a question that nobody is there to answer ends the run.
    #[must_use]
    pub fn fails_unattended(&self) -> bool {
        self.profiles_in_force().any(|profile| profile.unattended == Unattended::Fail)
    }

    /// The patterns that are masked under it and its layers.
    #[must_use]
    pub fn redaction_patterns(&self) -> Vec<CustomPattern> {
        let rules = self.self_and_layers().flat_map(|layer| &layer.redaction.patterns);
        rules.map(|rule| rule.pattern.clone()).collect()
    }
}
