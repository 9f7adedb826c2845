//! What was found at a path.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::action::PathLocation;
use capsule_base::path::WorkspacePath;

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFact {
    /// The path by its text.
    pub path: WorkspacePath,
    /// Where it leads once every link is followed, or why that is not inside. For a file that is
    /// not there yet: where it would be.
    pub real: PathLocation,
    /// What is there.
    pub kind: FileKind,
    /// A protected path that is another name of the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<WorkspacePath>,
    /// Names of the same file that rules of the policy close to a tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "closed")]
    pub denied_names: Vec<WorkspacePath>,
    /// Further protected names: of the same file, and, where it is to be changed, those by which the host comes
    /// to it for its orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "names")]
    pub protected_names: Vec<WorkspacePath>,
    /// The topmost of it and the folders above it that is not there yet, where it is to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<WorkspacePath>,
    /// Whether it is a store of ours by what it holds, or lies beside one by its name.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    #[serde(rename = "ours")]
    pub is_capsule_store: bool,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    /// A folder.
    #[serde(rename = "folder")]
    Directory,
    /// A pipe, socket or device.
    Special,
    /// A link, where it is the link itself that is meant.
    Link,
}
