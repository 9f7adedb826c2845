use capsule_core::lifecycle::{AwaitingApproval, Cleared};

fn without_asking(asking: AwaitingApproval) -> Cleared {
    asking.clear()
}

fn main() {}
