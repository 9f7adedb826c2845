use capsule_core::evidence::Permit;

fn twice(permit: Permit<'_>) -> (Permit<'_>, Permit<'_>) {
    (permit.clone(), permit)
}

fn main() {}
