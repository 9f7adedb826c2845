//! What a session was opened with: calls that bring something else belong to another session.

use capsule_base::digest::Digest;
use capsule_base::json;
use serde_json::json;

use crate::bound_policy::BoundPolicy;
use crate::run::{engine_version, tools_digest};

/// The digest of the policy with its layers and profile, of the workspace, and of the tools of this build.
pub(crate) fn session_identity(bound: &BoundPolicy) -> Digest {
    let text_digest = |text: &str| Digest::of(text.as_bytes());
    let layers: Vec<_> =
        bound.layers.iter().map(|layer| (layer.kind, text_digest(&layer.text.text))).collect();
    let identity = json!({
        "engine": engine_version(),
        "tools": tools_digest(),
        "policy": text_digest(&bound.text.text),
        "extends": bound.extended.as_ref().map(|extended| text_digest(&extended.text)),
        "layers": layers,
        "profile": bound.policy.profile.name,
        "workspace": [
            bound.roots.workspace.clone(),
            bound.workspace.device().to_string(),
            bound.workspace.inode().to_string(),
        ],
        "names": bound.workspace.root_names(),
        "home": bound.home,
    });
    Digest::of(&json::canonical_value(&identity))
}
