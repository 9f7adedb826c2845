use capsule_core::lifecycle::{Cleared, Denied};

fn anyway(denied: Denied) -> Cleared {
    denied.clear()
}

fn main() {}
