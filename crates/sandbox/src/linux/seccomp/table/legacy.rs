//! The older forms of calls, which only some machines still have.

use crate::linux::seccomp::rule::Call;
#[cfg(target_arch = "x86_64")]
use crate::linux::seccomp::rule::{
    Clause,
    Rule::{Allow, Refuse, When},
    call,
};
#[cfg(target_arch = "x86_64")]
use crate::linux::seccomp::table::files::makeable;

#[cfg(target_arch = "x86_64")]
const NODES: &[Clause] = &[&[makeable(1)]];

#[cfg(not(target_arch = "x86_64"))]
pub(super) const CALLS: &[Call] = &[];

#[cfg(target_arch = "x86_64")]
pub(super) const CALLS: &[Call] = &[
    call!(SYS_open, Allow, "openat"),
    call!(SYS_creat, Allow, "openat"),
    call!(SYS_stat, Allow, "newfstatat"),
    call!(SYS_lstat, Allow, "newfstatat"),
    call!(SYS_access, Allow, "faccessat"),
    call!(SYS_readlink, Allow, "readlinkat"),
    call!(SYS_getdents, Allow, "getdents64"),
    call!(SYS_mkdir, Allow, "mkdirat"),
    call!(SYS_rmdir, Allow, "unlinkat"),
    call!(SYS_unlink, Allow, "unlinkat"),
    call!(SYS_rename, Allow, "renameat"),
    call!(SYS_link, Allow, "linkat"),
    call!(SYS_symlink, Allow, "symlinkat"),
    call!(SYS_mknod, When(NODES, libc::EPERM), "mknodat"),
    call!(SYS_chmod, Allow, "fchmodat"),
    call!(SYS_chown, Allow, "fchownat"),
    call!(SYS_lchown, Allow, "fchownat"),
    call!(SYS_utime, Allow, "utimensat"),
    call!(SYS_utimes, Allow, "utimensat"),
    call!(SYS_futimesat, Allow, "utimensat"),
    call!(SYS_dup2, Allow, "dup3"),
    call!(SYS_pipe, Allow, "pipe2"),
    call!(SYS_poll, Allow, "ppoll"),
    call!(SYS_select, Allow, "pselect6"),
    call!(SYS_epoll_create, Allow, "epoll_create1"),
    call!(SYS_epoll_wait, Allow, "epoll_pwait"),
    call!(SYS_eventfd, Allow, "eventfd2"),
    call!(SYS_signalfd, Allow, "signalfd4"),
    call!(SYS_inotify_init, Allow, "inotify_init1"),
    call!(SYS_fork, Allow, "clone"),
    call!(SYS_vfork, Allow, "clone"),
    call!(SYS_pause, Allow, "ppoll"),
    call!(SYS_alarm, Allow, "setitimer"),
    call!(SYS_time, Allow, "clock_gettime"),
    call!(SYS_getpgrp, Allow, "getpgid"),
    call!(SYS_modify_ldt, Refuse, "segments for 16-bit programs; a source of kernel faults"),
    call!(SYS_iopl, Refuse, "ports of devices"),
    call!(SYS_ioperm, Refuse, "ports of devices"),
    call!(SYS_uselib, Refuse, "long gone"),
    call!(SYS_ustat, Refuse, "long replaced by statfs"),
    call!(SYS_sysfs, Refuse, "long gone"),
    call!(SYS__sysctl, Refuse, "long gone"),
];
