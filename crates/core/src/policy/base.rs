//! The base policy: what always applies, with or without `extends`.

/// What the base policy is called where a rule's place is shown.
pub(crate) const NAME: &str = "builtin:base";

/// Its text. It is written in the policy language; see the file for every rule and its reason.
pub(crate) const TEXT: &str = include_str!("../../../../policies/base.yaml");
