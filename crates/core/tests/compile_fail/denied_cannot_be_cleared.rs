use capsule_core::evidence::{Cleared, Denied};

fn anyway(denied: Denied) -> Cleared {
    denied.clear()
}

fn main() {}
