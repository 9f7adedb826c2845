//! Layers: texts that tighten a policy and can do nothing else.
//!
//! A layer is laid over the policy that it tightens without that policy's words and invariants, so
//! that it judges what it says itself and has no opinion on the rest. A call is judged under both,
//! and the strictest counts. What comes out cannot be looser than the policy alone, whatever the
//! layer says: that rests on `max` and on intersections, and not on how the layer is read.

use serde::{Deserialize, Serialize};

/// Whose a layer is, by the place where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// The user's own: it lies in their folder for configuration, and tightens every policy.
    User,
    /// It came with the workspace, and nobody vouches for it.
    Workspace,
}

capsule_base::words! {
    LayerKind::keyword:
    User = "user", Workspace = "workspace",
}

impl LayerKind {
    /// The key by which a text says that it is a layer.
    pub const KEY: &'static str = "layer";
}
