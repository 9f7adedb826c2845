//! The policies that come with the program.

use capsule_base::digest::Digest;
use capsule_core::control_files;

/// The text of the base policy. It is written in the policy language; see the file for every rule and its reason.
pub(crate) const BASE_TEXT: &str = include_str!("../../../policies/base.yaml");

/// The digest of the base policy, with the lists that it means.
pub(crate) fn digest() -> Digest {
    use control_files::{ASK, HARMLESS, PACKAGED, TREE};
    let lists = [TREE, PACKAGED, ASK, HARMLESS];
    let listed = lists.map(|list| list.join("\n")).join("\n\n");
    Digest::of_parts(&[BASE_TEXT.as_bytes(), listed.as_bytes()])
}

/// The policies that can be named in place of a file, as `builtin:NAME`, each with its text. The base
/// policy always applies; by itself it allows nothing, and says in tests what it decides.
const BUILTIN: [(&str, &str); 4] = [
    (
        "base",
        concat!(
            include_str!("../../../policies/base.yaml"),
            include_str!("../../../policies/base.tests.yaml")
        ),
    ),
    ("developer", include_str!("../../../policies/developer.yaml")),
    ("readonly", include_str!("../../../policies/readonly.yaml")),
    ("assistant", include_str!("../../../policies/assistant.yaml")),
];

/// The text of a policy that comes with the program.
#[must_use]
pub fn builtin_text(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(text, _)| *text == name).map(|(_, text)| *text)
}

/// The names of those policies.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}
