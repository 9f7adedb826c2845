//! What power an action needs.
//!
//! A tool declares capabilities and never an opinion on whether they should be granted; the policy
//! alone decides. Source: APR-4, APR-5; `fs.meta` is split off so that names and dates can be
//! shown without opening a file (FR-9).

use core::fmt;

use serde::{Deserialize, Serialize};

/// One power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Capability {
    /// See file names, sizes and dates.
    #[serde(rename = "fs.meta")]
    FsMeta,
    /// Read files in the workspace.
    #[serde(rename = "fs.read")]
    FsRead,
    /// Create or change files.
    #[serde(rename = "fs.write")]
    FsWrite,
    /// Delete files.
    #[serde(rename = "fs.delete")]
    FsDelete,
    /// Contact another computer.
    #[serde(rename = "net.egress")]
    NetEgress,
    /// Run a program.
    #[serde(rename = "proc.exec")]
    ProcExec,
    /// Run a program with nothing around it, on a machine that has no sandbox.
    #[serde(rename = "proc.unconfined")]
    ProcUnconfined,
    /// Use data that the user attached.
    #[serde(rename = "data.user")]
    DataUser,
    /// Use a stored secret.
    #[serde(rename = "secrets.access")]
    SecretsAccess,
}

capsule_base::words! {
    Capability::name:
    FsMeta = "fs.meta", FsRead = "fs.read", FsWrite = "fs.write", FsDelete = "fs.delete",
    NetEgress = "net.egress", ProcExec = "proc.exec", ProcUnconfined = "proc.unconfined",
    DataUser = "data.user", SecretsAccess = "secrets.access",
}

impl Capability {
    /// Whether using it changes something or sends something away, so that the record of the
    /// intent must be durable first. A program counts only when it may write: confined without
    /// `fs.write` and without a network it can change nothing.
    #[must_use]
    pub const fn has_side_effects(self) -> bool {
        !matches!(self, Self::FsMeta | Self::FsRead | Self::ProcExec)
    }
}

/// A set of capabilities; the default is empty.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u16);

impl Capabilities {
    /// No capability.
    pub const NONE: Self = Self(0);

    /// Those of whoever changes files.
    pub const CHANGES: Self = Self::of(Capability::FsWrite).with(Capability::FsDelete);

    const fn bit(capability: Capability) -> u16 {
        1 << capability as u8
    }

    /// The set of one.
    #[must_use]
    pub const fn of(capability: Capability) -> Self {
        Self(Self::bit(capability))
    }

    /// This set and one more.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | Self::bit(capability))
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the capability is in the set.
    #[must_use]
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & Self::bit(capability) != 0
    }

    /// Whether the two sets share a capability.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The capabilities in their listed order.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }

    /// Whether any of them changes or sends something.
    #[must_use]
    pub fn have_side_effects(self) -> bool {
        self.iter().any(Capability::has_side_effects)
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(iter: I) -> Self {
        iter.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Capability::name)).finish()
    }
}

impl Serialize for Capabilities {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = alloc::vec::Vec::<Capability>::deserialize(deserializer)?;
        Ok(list.into_iter().collect())
    }
}
