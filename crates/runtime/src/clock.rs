//! The clock of the machine.

use std::time::SystemTime;

/// The time in microseconds since 1970.
#[must_use]
pub fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
