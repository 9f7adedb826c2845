//! Ctrl+C and its like: the running call is cancelled, the run is sealed, the exit is 130.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use capsule_runtime::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that the signals set which ask us to end. A second Ctrl+C ends us at once.
pub(crate) fn cancel_on_signal() -> Cancel {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: what ends us looks at the flag before it is set the first time. A
        // signal that cannot be caught ends us the way it always would.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    Cancel::new(flag)
}
