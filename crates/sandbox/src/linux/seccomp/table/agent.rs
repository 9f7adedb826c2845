//! Rows that are otherwise for a whole agent: a program that a person started, with a terminal, which may itself
//! confine what it starts. Everything else is as for the executor.

use crate::linux::seccomp::rule::Rule::{Allow, When};
use crate::linux::seccomp::rule::{Clause, none_of};
use crate::linux::seccomp::table::landlock_only::OverrideRow;

/// Anything but what types into a terminal.
const NO_TYPING: &[Clause] = &[&[none_of(1, &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32])]];

pub(crate) const ROWS: &[OverrideRow] = &[
    (libc::SYS_ioctl, When(NO_TYPING, libc::EPERM), "terminals of its own: editors, multiplexers"),
    (libc::SYS_prctl, Allow, "sandboxes inside set more of themselves than commands do"),
    (libc::SYS_setns, Allow, "enters namespaces of its own, as a sandbox inside does"),
    (libc::SYS_sethostname, Allow, "takes a host name namespace of its own"),
    (libc::SYS_chroot, Allow, "takes a user namespace of its own; sandboxes of browsers use it"),
    (
        libc::SYS_inotify_add_watch,
        Allow,
        "watchers of files; the host shows itself only in the workspace",
    ),
];
