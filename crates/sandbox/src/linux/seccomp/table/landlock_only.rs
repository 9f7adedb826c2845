//! What is taken away further where no namespaces stand behind the filter: there the host's own
//! sockets, queues and processes are in reach, and Landlock says nothing of permissions and dates.

use crate::linux::seccomp::rule::Rule::{self, Refuse, When};
use crate::linux::seccomp::rule::{Clause, high_is_zero, one_of};
use crate::linux::seccomp::table::files::PLAIN_REQUESTS;
use crate::linux::seccomp::table::network::PAIRS;
use crate::linux::seccomp::table::process::LIMITS;

/// Of oneself.
const SELF_ONLY: &[Clause] = &[&[one_of(0, &[0])]];

/// Of oneself as a process, and not of a group or of all processes of a user.
const SELF_PRIORITY: &[Clause] = &[&[one_of(0, &[libc::PRIO_PROCESS]), one_of(1, &[0])]];

/// The same for disks, where processes are 1.
const SELF_DISK_PRIORITY: &[Clause] = &[&[one_of(0, &[1]), one_of(1, &[0])]];

/// Setting one's own limits, or asking for any of them.
const SELF_LIMITS: &[Clause] =
    &[&[one_of(0, &[0]), one_of(1, LIMITS)], &[one_of(0, &[0]), one_of(2, &[0]), high_is_zero(2)]];

/// As on a file system without attributes, so that nobody complains.
const NO_ATTRIBUTES: Rule = When(&[], libc::EOPNOTSUPP);

/// Answered as done, and not done: Landlock judges neither dates, owners nor permissions, so none may be changed, and programs
/// that set them on what they just wrote (`touch`, `tar`, `cp -p`, `git init`) take a refusal for a failure. The call that `chmod` itself
/// makes, by a path from a directory, is refused: who asks for nothing but permissions is told.
const PRETENDED: Rule = When(&[], 0);

/// A row: the number of a call, its rule, why.
pub(crate) type OverrideRow = (i64, Rule, &'static str);

pub(crate) const ROWS: &[OverrideRow] = &[
    (libc::SYS_socket, Refuse, "the host's network and its sockets"),
    (libc::SYS_socketpair, When(PAIRS, libc::EPERM), "a datagram pair sends to any path"),
    (libc::SYS_shmget, Refuse, "the host's shared memory"),
    (libc::SYS_shmat, Refuse, "the host's shared memory"),
    (libc::SYS_shmctl, Refuse, "the host's shared memory"),
    (libc::SYS_semget, Refuse, "the host's semaphores"),
    (libc::SYS_semop, Refuse, "the host's semaphores"),
    (libc::SYS_semtimedop, Refuse, "the host's semaphores"),
    (libc::SYS_semctl, Refuse, "the host's semaphores"),
    (libc::SYS_msgget, Refuse, "the host's queues"),
    (libc::SYS_msgsnd, Refuse, "the host's queues"),
    (libc::SYS_msgrcv, Refuse, "the host's queues"),
    (libc::SYS_msgctl, Refuse, "the host's queues"),
    (libc::SYS_mq_open, Refuse, "the host's queues"),
    (libc::SYS_mq_unlink, Refuse, "the host's queues"),
    (libc::SYS_fchmod, PRETENDED, "Landlock does not judge permissions"),
    (libc::SYS_fchmodat, Refuse, "Landlock does not judge permissions"),
    (452, Refuse, "fchmodat2; Landlock does not judge permissions"),
    (libc::SYS_fchown, PRETENDED, "Landlock does not judge owners"),
    (libc::SYS_fchownat, PRETENDED, "Landlock does not judge owners"),
    (libc::SYS_utimensat, PRETENDED, "Landlock does not judge dates"),
    (libc::SYS_setxattr, NO_ATTRIBUTES, "Landlock does not judge attributes"),
    (libc::SYS_lsetxattr, NO_ATTRIBUTES, "Landlock does not judge attributes"),
    (libc::SYS_fsetxattr, NO_ATTRIBUTES, "Landlock does not judge attributes"),
    (libc::SYS_removexattr, NO_ATTRIBUTES, "Landlock does not judge attributes"),
    (libc::SYS_lremovexattr, NO_ATTRIBUTES, "Landlock does not judge attributes"),
    (libc::SYS_fremovexattr, NO_ATTRIBUTES, "Landlock does not judge attributes"),
    (463, NO_ATTRIBUTES, "setxattrat; Landlock does not judge attributes"),
    (466, NO_ATTRIBUTES, "removexattrat; Landlock does not judge attributes"),
    (libc::SYS_getxattr, NO_ATTRIBUTES, "Landlock does not judge who reads attributes"),
    (libc::SYS_lgetxattr, NO_ATTRIBUTES, "Landlock does not judge who reads attributes"),
    (libc::SYS_fgetxattr, NO_ATTRIBUTES, "Landlock does not judge who reads attributes"),
    (libc::SYS_listxattr, NO_ATTRIBUTES, "Landlock does not judge who reads attributes"),
    (libc::SYS_llistxattr, NO_ATTRIBUTES, "Landlock does not judge who reads attributes"),
    (libc::SYS_flistxattr, NO_ATTRIBUTES, "Landlock does not judge who reads attributes"),
    (464, NO_ATTRIBUTES, "getxattrat; Landlock does not judge who reads attributes"),
    (465, NO_ATTRIBUTES, "listxattrat; Landlock does not judge who reads attributes"),
    (libc::SYS_bind, Refuse, "one end of a pair takes a name of the whole machine"),
    (libc::SYS_listen, Refuse, "there is nobody to listen to"),
    (libc::SYS_connect, Refuse, "there is nobody to connect to"),
    (libc::SYS_accept, Refuse, "there is nobody to accept"),
    (libc::SYS_accept4, Refuse, "there is nobody to accept"),
    (libc::SYS_ioctl, When(PLAIN_REQUESTS, libc::ENOTTY), "a pair tells the host's addresses"),
    (libc::SYS_inotify_init1, Refuse, "Landlock does not judge who watches a folder"),
    (libc::SYS_inotify_add_watch, Refuse, "Landlock does not judge who watches a folder"),
    (libc::SYS_prlimit64, When(SELF_LIMITS, libc::EINVAL), "other processes of the user"),
    (libc::SYS_setpriority, When(SELF_PRIORITY, libc::EPERM), "other processes of the user"),
    (libc::SYS_ioprio_set, When(SELF_DISK_PRIORITY, libc::EPERM), "other processes of the user"),
    (libc::SYS_sched_setaffinity, When(SELF_ONLY, libc::EPERM), "other processes of the user"),
    (libc::SYS_sched_setparam, When(SELF_ONLY, libc::EPERM), "other processes of the user"),
    (libc::SYS_sched_setscheduler, When(SELF_ONLY, libc::EPERM), "other processes of the user"),
    (libc::SYS_sched_setattr, When(SELF_ONLY, libc::EPERM), "other processes of the user"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_inotify_init, Refuse, "Landlock does not judge who watches a folder"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, PRETENDED, "Landlock does not judge permissions"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, PRETENDED, "Landlock does not judge owners"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, PRETENDED, "Landlock does not judge owners"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utime, PRETENDED, "Landlock does not judge dates"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utimes, PRETENDED, "Landlock does not judge dates"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_futimesat, PRETENDED, "Landlock does not judge dates"),
];
