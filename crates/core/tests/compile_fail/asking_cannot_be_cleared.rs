use capsule_core::evidence::{Asking, Cleared};

fn without_asking(asking: Asking) -> Cleared {
    asking.clear()
}

fn main() {}
