use capsule_core::lifecycle::{Operation, Permit};

fn twice(permit: Permit<'_>, one: Box<dyn Operation>, other: Box<dyn Operation>) {
    let _ = one.run(permit);
    let _ = other.run(permit);
}

fn main() {}
