//! What decides where a rule has no word of its own: the strictest word over the capabilities.

use crate::capability::{Capabilities, Capability};
use crate::decision::Verdict;

/// A ceiling for each capability.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What it is called.
    pub name: &'static str,
    word: fn(Capability) -> Verdict,
}

impl Profile {
    /// Reading is free; writing, running and fetching are asked (APR-9).
    #[must_use]
    pub const fn supervised() -> Self {
        Self {
            name: "supervised",
            word: |capability| match capability {
                Capability::FsMeta | Capability::FsRead => Verdict::Allow,
                Capability::FsWrite
                | Capability::FsDelete
                | Capability::NetEgress
                | Capability::ProcExec
                | Capability::DataUser => Verdict::Ask,
                Capability::SecretsAccess => Verdict::AskEach,
            },
        }
    }

    /// The strictest word over these capabilities; an action that needs none is denied, since
    /// nothing is known to need nothing.
    #[must_use]
    pub fn word(&self, capabilities: Capabilities) -> Verdict {
        capabilities.iter().map(self.word).max().unwrap_or_default()
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::supervised()
    }
}
