#![allow(unused_assignments)]

use capsule_core::journal::Journal;
use capsule_core::lifecycle::{self, Cleared};
use capsule_redact::Redactor;

fn keep<J: Journal>(cleared: Cleared, redactor: &Redactor, journal: &mut J) {
    let mut kept = None;
    let _ = lifecycle::run(cleared, redactor, journal, |permit, prepared| {
        kept = Some(permit);
        drop(prepared);
        loop {}
    });
    drop(kept);
}

fn main() {}
