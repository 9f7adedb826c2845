use capsule_core::evidence::Permit;

fn both(permit: Permit<'_>) {
    let leave = permit.unconfined();
    let bounds = permit.bounds();
    drop((leave, bounds));
}

fn main() {}
