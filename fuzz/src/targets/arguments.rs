//! JSON has one reading or none. What was read and written canonically reads back as the same value
//! and is written as the same bytes, and so is what any tool makes of it.

use capsule_base::json;
use capsule_runtime::{CATALOGUE, describe};

pub(super) fn run(bytes: &[u8]) {
    let Ok(value) = json::parse(bytes) else { return };
    let written = json::canonical(&value);
    let read = json::parse(&written).expect("canonical JSON is read");
    assert_eq!(read, value);
    assert_eq!(json::canonical(&read), written);
    for tool in CATALOGUE.0 {
        if let Ok(action) = describe(tool.id, &value, 1_700_000_000_000_000) {
            crate::assert_kept(&action);
        }
    }
}
