//! Capabilities: only ever given up.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

/// Takes all but these out of what this process and all that it starts can ever have, and locks the
/// rules by which root would get capabilities back.
///
/// # Errors
/// The kernel refused.
pub(super) fn drop_all_but(kept: &[CapabilitySet]) -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    drop_bounds(kept)
}

/// The same, and leaves what was chosen to be inherited.
///
/// # Errors
/// The kernel refused.
pub(super) fn drop_bounds(kept: &[CapabilitySet]) -> Result<(), Errno> {
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(&capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last one that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
}

/// Keeps this one alone, also for programs that are started: to be called before [`drop_all_but`], which forbids it.
///
/// # Errors
/// The kernel refused.
pub(super) fn inherit_one(kept: CapabilitySet) -> Result<(), Errno> {
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: kept, ..held })?;
    configure_capability_in_ambient_set(kept, true)
}

/// Gives up all but one.
///
/// # Errors
/// The kernel refused.
pub(super) fn drop_all_but_one(kept: CapabilitySet) -> Result<(), Errno> {
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })
}

/// Gives up all that are left.
///
/// # Errors
/// The kernel refused.
pub(super) fn drop_all() -> Result<(), Errno> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
