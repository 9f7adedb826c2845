#![allow(unused_assignments)]

use capsule_core::journal::Journal;
use capsule_core::lifecycle::{self, Cleared, RunningCall};
use capsule_redact::Redactor;

fn keep<J: Journal>(
    cleared: Cleared,
    running: RunningCall<'_>,
    redactor: &Redactor,
    journal: &mut J,
) {
    let mut kept = None;
    let _ = lifecycle::run(cleared, running, redactor, journal, |permit, prepared| {
        kept = Some(permit);
        drop(prepared);
        loop {}
    });
    drop(kept);
}

fn main() {}
