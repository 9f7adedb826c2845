//! Layers: texts that tighten a policy and can do nothing else.
//!
//! A layer is laid over the policy that it tightens without that policy's words and invariants, so
//! that it judges what it says itself and has no opinion on the rest. A call is judged under both,
//! and the strictest counts. What comes out cannot be looser than the policy alone, whatever the
//! layer says: that rests on `max` and on intersections, and not on how the layer is read.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::policy::model::{Policy, SandboxRule};
use crate::policy::profile::{Profile, Unattended};
use capsule_base::diagnostic::Diagnostic;
use capsule_base::digest::Digest;
use capsule_base::yaml;
use capsule_base::yaml::POLICY_DIALECT;

/// Whose a layer is, by the place where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// The user's own: it lies in their folder for configuration, and tightens every policy.
    User,
    /// It came with the workspace, and nobody vouches for it.
    Workspace,
}

impl LayerKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::User, Self::Workspace];

    /// The key by which a text says that it is a layer.
    pub const KEY: &'static str = "layer";

    /// The word of the policy language.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Workspace => "workspace",
        }
    }
}

/// A layer that is bound to a workspace.
#[derive(Clone, Debug)]
pub struct PolicyLayer {
    /// Whose it is.
    pub kind: LayerKind,
    /// How its place is shown.
    pub location: String,
    /// What it judges by.
    pub policy: Arc<Policy>,
}

/// Whether a text says of itself that it is a layer.
///
/// # Errors
/// When it cannot be read, so that nobody can tell.
pub fn is_layer(text: &str) -> Result<bool, Diagnostic> {
    let root = yaml::parse(text, &POLICY_DIALECT)?;
    Ok(root.is_some_and(|root| root.get(LayerKind::KEY).is_some()))
}

impl Policy {
    /// The same policy, tightened.
    #[must_use]
    pub fn with_layers(mut self, layers: Vec<PolicyLayer>) -> Self {
        for layer in &layers {
            self.digest = Digest::of_parts(&[&self.digest.0, &layer.policy.digest.0]);
        }
        self.layers = layers;
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
}
