//! Small files of the configuration that name the call itself: its account, its group and its host.
//!
//! None of them holds anything of the host's. Programs ask for the account that they run as, and for
//! `localhost`, and take a failure for a broken machine.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{getgid, getuid};

use super::root::Root;
use crate::linux::backend::system::HOME;
use crate::linux::kernel::errno;

/// The name of the machine that commands see.
pub(super) const HOST_NAME: &str = "capsule";
/// Where names are looked up: in these files, and nowhere else.
const NAME_SERVICES: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\n\
    protocols: files\nnetworks: files\n";

/// Makes the files in the root.
///
/// # Errors
/// One cannot be made.
pub(super) fn write_accounts(root: &Root) -> Result<(), Errno> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let name = if user == 0 { "root" } else { "user" };
    let of_group = if group == 0 { "root" } else { "user" };
    for (path, text) in [
        ("etc/passwd", format!("{name}:x:{user}:{group}:{name}:{HOME}:/bin/sh\n")),
        ("etc/group", format!("{of_group}:x:{group}:\n")),
        ("etc/hosts", format!("127.0.0.1 localhost {HOST_NAME}\n::1 localhost {HOST_NAME}\n")),
        ("etc/hostname", format!("{HOST_NAME}\n")),
        ("etc/nsswitch.conf", NAME_SERVICES.to_owned()),
    ] {
        let mut file = File::from(root.make_file(Path::new(path), Mode::from_raw_mode(0o444))?);
        file.write_all(text.as_bytes()).map_err(|error| errno(&error))?;
    }
    Ok(())
}
