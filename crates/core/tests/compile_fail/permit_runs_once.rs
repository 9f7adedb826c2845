use capsule_core::evidence::{Permit, Prepared};

fn twice(permit: Permit<'_>, one: Box<dyn Prepared>, other: Box<dyn Prepared>) {
    let _ = one.run(permit);
    let _ = other.run(permit);
}

fn main() {}
