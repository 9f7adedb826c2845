use capsule_core::lifecycle::Permit;

fn twice(permit: Permit<'_>) -> (Permit<'_>, Permit<'_>) {
    (permit.clone(), permit)
}

fn main() {}
