//! Ctrl+C and its like: the running call is cancelled, the run is sealed, the exit is 130.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use capsule_runtime::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// What the signals of this process set.
struct SignalFlags {
    /// What goes on has to stop.
    stop: Arc<AtomicBool>,
    /// The process has to end: what asked for it was no key.
    end: Arc<AtomicBool>,
}

static FLAGS: OnceLock<SignalFlags> = OnceLock::new();

fn flags() -> &'static SignalFlags {
    FLAGS.get_or_init(|| {
        let flags = SignalFlags { stop: Arc::default(), end: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: what ends us looks at the flag before it is set the first time. A
            // signal that cannot be caught ends us the way it always would.
            let stop = Arc::clone(&flags.stop);
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, stop);
            let _ = signal_hook::flag::register(signal, Arc::clone(&flags.stop));
        }
        for signal in [SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&flags.end));
        }
        flags
    })
}

/// A flag that the signals set which ask us to end. A second Ctrl+C ends us at once.
pub(crate) fn cancel_on_signal() -> Cancel {
    Cancel::new(Arc::clone(&flags().stop))
}

/// Stops what goes on, as Ctrl+C does.
pub(crate) fn interrupt() {
    flags().stop.store(true, Ordering::Relaxed);
}

/// Takes an interruption as dealt with: what comes next may go on. A request to end the process stays.
pub(crate) fn resume_after_interrupt() {
    flags().stop.store(is_asked_to_end(), Ordering::Relaxed);
}

/// Whether the process was asked to end by anything but a key.
pub(crate) fn is_asked_to_end() -> bool {
    flags().end.load(Ordering::Relaxed)
}
