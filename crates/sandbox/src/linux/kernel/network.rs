//! The network of a namespace.

use std::os::fd::AsRawFd as _;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::checked;

/// Brings up the loopback interface of the network that this process is in.
///
/// # Errors
/// The kernel refused: the network is not this process's to change.
pub(crate) fn raise_loopback() -> Result<(), Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    let flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    // SAFETY: needs a request whose name ends in NUL and that lives until the call returns; the
    // kernel writes nothing to it. The integration test `a_call_has_a_loopback_of_its_own` would
    // break.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    checked(result.into()).map(|_| ())
}
