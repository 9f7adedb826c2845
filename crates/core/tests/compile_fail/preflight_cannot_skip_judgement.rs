use capsule_core::lifecycle::{Cleared, Preflight};

fn unjudged(preflight: Preflight) -> Cleared {
    preflight.clear()
}

fn main() {}
