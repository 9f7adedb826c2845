use capsule_core::lifecycle::Permit;

fn both(permit: Permit<'_>) {
    let leave = permit.unconfined();
    let restrictions = permit.restrictions();
    drop((leave, restrictions));
}

fn main() {}
