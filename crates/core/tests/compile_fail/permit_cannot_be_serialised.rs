use capsule_core::lifecycle::Permit;

fn send(permit: Permit<'_>) -> String {
    serde_json::to_string(&permit).unwrap()
}

fn main() {}
