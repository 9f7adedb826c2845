//! A flag that says to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says to stop; shared with whoever catches signals.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that something else sets.
    #[must_use]
    pub const fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
