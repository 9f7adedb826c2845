//! A policy together with the texts that it was read from, for code that compares the two.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use capsule_core::policy::{BindRoots, LayerKind, Policy};

/// A text, and how its location is shown.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// The location, as it is shown.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A bound policy with the texts and the roots that it was made from.
#[derive(Clone, Debug)]
pub struct LoadedPolicy {
    /// The policy, with its layers.
    pub policy: Arc<Policy>,
    /// Its own text.
    pub text: SourceText,
    /// The texts of its layers.
    pub layers: Vec<(LayerKind, SourceText)>,
    /// The roots that it is bound to.
    pub roots: BindRoots,
    /// The directory that `~` stands for.
    pub home: String,
    /// Whether it is the base policy by itself.
    pub is_base: bool,
}
