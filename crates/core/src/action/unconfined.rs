//! A program where nothing can hold it: another action than the same program behind walls, with a
//! capability and a fingerprint of its own.

use crate::action::{Action, Facts};
use crate::confinement::SandboxTier;

impl Action {
    /// What it is on the machine that was found: a program that runs where no sandbox of any kind can
    /// be had is another action than one that is confined. Where the machine did not answer it stays
    /// what it is, and is refused.
    #[must_use]
    pub fn resolve_confinement(self, facts: &Facts) -> Self {
        let bare = matches!(&facts.sandbox, Some(Ok(walls)) if !walls.meets(SandboxTier::Basic));
        match self {
            Self::Run { argv, cwd, stdin, timeout_ms, .. } => {
                Self::Run { argv, cwd, stdin, timeout_ms, unconfined: bare }
            }
            other => other,
        }
    }

    /// Whether it is a program that nothing would confine.
    #[must_use]
    pub const fn is_unconfined(&self) -> bool {
        matches!(self, Self::Run { unconfined: true, .. })
    }
}
