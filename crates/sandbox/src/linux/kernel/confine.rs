//! Namespaces, mounts, Landlock and seccomp.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use libc::sock_filter;
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::thread::UnshareFlags;

use super::checked;

/// Moves this process into new namespaces.
///
/// # Errors
/// The kernel refused.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: needs that `FILES` is not among the flags, or that no thread holds descriptors which
    // it then cannot use. No caller passes it, and the executor has one thread; the integration
    // test `executor_has_one_thread` would break.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Adds attributes to a mount, and to all beneath it if `recursive`, and cuts it off from what is
/// mounted elsewhere. Attributes are only added.
///
/// # Errors
/// The kernel refused.
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    recursive: bool,
    attributes: MountAttrFlags,
) -> Result<(), Errno> {
    change_mount(mount, recursive, attributes, MountAttrFlags::empty())
}

/// Makes a mount writable, and nothing that is mounted in it.
///
/// # Errors
/// The kernel refused.
pub(crate) fn make_writable(mount: BorrowedFd<'_>) -> Result<(), Errno> {
    change_mount(mount, false, MountAttrFlags::empty(), MountAttrFlags::MOUNT_ATTR_RDONLY)
}

fn change_mount(
    mount: BorrowedFd<'_>,
    recursive: bool,
    added: MountAttrFlags,
    removed: MountAttrFlags,
) -> Result<(), Errno> {
    let request = libc::mount_attr {
        attr_set: u64::from(added.bits()),
        attr_clr: u64::from(removed.bits()),
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: needs a path that ends in NUL and a pointer to as many readable bytes as the last
    // argument says. Both are values that live until the call returns; the kernel writes to
    // neither. The integration tests of read-only mounts would break.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const request,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(result).map(|_| ())
}

/// The newest Landlock interface that the kernel has; an error if it has none.
///
/// # Errors
/// `ENOSYS` if it was built without Landlock, `EOPNOTSUPP` if it was started without it.
pub(crate) fn landlock_abi() -> Result<i32, Errno> {
    const VERSION: libc::c_uint = 1; // LANDLOCK_CREATE_RULESET_VERSION
    // SAFETY: asked for the version, the kernel takes no attributes: the pointer is null and the
    // length 0. `walls_name_every_layer` would break.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    checked(result).map(|abi| i32::try_from(abi).unwrap_or(i32::MAX))
}

/// Attaches a filter on system calls to this process, for good.
///
/// # Errors
/// The kernel refused; no_new_privs must have been set.
pub(crate) fn attach_filter(filter: &[sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: needs a program whose pointer and length describe readable instructions. They come
    // from one slice that outlives the call; the kernel copies it and writes nothing back (the
    // pointer is mutable only in the C declaration). Every test of seccomp would break.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u32, &raw const program)
    };
    checked(result).map(|_| ())
}
