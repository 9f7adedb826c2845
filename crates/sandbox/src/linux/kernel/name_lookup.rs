//! How names of hosts and users are looked up.

/// Has the C library look names of hosts up in the machine's own file and by DNS, and users in the
/// machine's own file, and nowhere else. Otherwise it loads whatever modules the machine is set up
/// for (`nsswitch.conf(5)`) into this process, which decides; and a program that holds the library
/// in itself would load another one with them.
#[cfg(target_env = "gnu")]
pub(crate) fn use_builtin_resolvers() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for (kind, means) in [(c"hosts", c"files dns"), (c"passwd", c"files")] {
            // SAFETY: both are texts that end in a zero and stand for ever; the library keeps its own
            // copy. Nobody looks anything up meanwhile: whoever does comes by here before.
            let _ = unsafe { __nss_configure_lookup(kind.as_ptr(), means.as_ptr()) };
        }
    });
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// Of `<nss.h>`; gives 0, or -1 with `errno` where it does not know the kind.
    fn __nss_configure_lookup(kind: *const libc::c_char, means: *const libc::c_char)
    -> libc::c_int;
}

/// Other libraries load nothing.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn use_builtin_resolvers() {}
