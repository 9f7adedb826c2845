//! One fuzz target under libFuzzer: that whose name `CAPSULE_FUZZ_TARGET` holds. Start it with `fuzz/run`.

#![no_main]

use std::sync::LazyLock;

use fuzz::targets::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("CAPSULE_FUZZ_TARGET").expect("CAPSULE_FUZZ_TARGET names a target");
    let named = TARGETS.iter().find(|target| target.name == name);
    *named.expect("CAPSULE_FUZZ_TARGET is the name of a target")
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
