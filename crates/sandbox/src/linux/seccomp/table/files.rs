//! Files, folders and descriptors. Which of them can be reached is decided by the view and by
//! Landlock; here is only what can be asked at all.

use crate::linux::seccomp::rule::Rule::{Allow, Refuse, When};
use crate::linux::seccomp::rule::{Call, Check, Clause, call, masked, one_of};

/// A check of the kind that stands in the argument with this number: plain files, FIFOs and sockets
/// may be made, devices may not. A character device 0/0 is the white-out of an overlay.
pub(super) const fn makeable(argument: u32) -> Check {
    masked(argument, libc::S_IFMT, &[0, libc::S_IFREG, libc::S_IFIFO, libc::S_IFSOCK])
}

const NODES: &[Clause] = &[&[makeable(2)]];

/// Without the flag that leaves a device, the mark of overlays, in the place of what is renamed.
const RENAMES: &[Clause] = &[&[masked(4, libc::RENAME_WHITEOUT, &[0])]];

/// What may be asked of a descriptor by `ioctl`. Above all not `TIOCSTI` and `TIOCLINUX`, which
/// type into a terminal. Others get `ENOTTY`, the answer of a device that does not know them.
const PLAIN: &[u32] = &[
    libc::FIONREAD as u32,
    libc::FIONBIO as u32,
    libc::FIOCLEX as u32,
    libc::FIONCLEX as u32,
    libc::FIOASYNC as u32,
    libc::FIOQSIZE as u32,
    2, // FIGETBSZ: the size of a block
    libc::FICLONE as u32,
    libc::FICLONERANGE as u32,
    libc::FS_IOC_GETFLAGS as u32,
    libc::FS_IOC_GETVERSION as u32,
    0xC020_660B, // FS_IOC_FIEMAP: where the holes of a file are
    libc::TCGETS as u32,
    libc::TCSETS as u32,
    libc::TCSETSW as u32,
    libc::TCSETSF as u32,
    libc::TCGETS2 as u32,
    libc::TIOCGWINSZ as u32,
    libc::TIOCGPGRP as u32,
    libc::TIOCSPGRP as u32,
    libc::TIOCGSID as u32,
    libc::TIOCOUTQ as u32,
    0x8905, // SIOCATMARK: whether urgent data comes next
];

/// The addresses of the network that one is in, which for a command is its own.
const ADDRESSES: &[u32] = &[
    libc::SIOCGIFCONF as u32,
    libc::SIOCGIFFLAGS as u32,
    libc::SIOCGIFADDR as u32,
    libc::SIOCGIFINDEX as u32,
    libc::SIOCGIFMTU as u32,
];

/// What makes and serves a terminal. A command has none but those that it makes.
const TERMINALS: &[u32] = &[
    libc::TIOCGPTN as u32,
    libc::TIOCSPTLCK as u32,
    libc::TIOCGPTPEER as u32,
    libc::TIOCSWINSZ as u32,
    libc::TIOCSCTTY as u32,
    libc::TIOCNOTTY as u32,
    libc::TIOCPKT as u32,
    libc::TIOCEXCL as u32,
    libc::TIOCNXCL as u32,
    libc::TCSBRK as u32,
    libc::TCXONC as u32,
    libc::TCFLSH as u32,
];

/// What happens to files that may be watched for: changes. Not that a process opens, reads or closes
/// them: of the system's programs that would tell what the host starts.
const WATCHED: u32 = libc::IN_MODIFY
    | libc::IN_ATTRIB
    | libc::IN_CLOSE_WRITE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_CREATE
    | libc::IN_DELETE
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF
    | libc::IN_ONLYDIR
    | libc::IN_DONT_FOLLOW
    | libc::IN_EXCL_UNLINK
    | libc::IN_MASK_ADD
    | libc::IN_MASK_CREATE
    | libc::IN_ONESHOT;

const WATCHES: &[Clause] = &[&[masked(2, !WATCHED, &[0])]];

/// What may be asked where the network is the host's.
pub(super) const PLAIN_REQUESTS: &[Clause] = &[&[one_of(1, PLAIN)]];

const REQUESTS: &[Clause] =
    &[&[one_of(1, PLAIN)], &[one_of(1, ADDRESSES)], &[one_of(1, TERMINALS)]];

/// What may be asked of a descriptor by `fcntl`. Above all no leases: with one, a command could hold
/// up for a minute whoever opens a file of the workspace outside.
const COMMANDS: &[Clause] = &[&[one_of(
    1,
    &[
        libc::F_DUPFD as u32,
        libc::F_DUPFD_CLOEXEC as u32,
        libc::F_GETFD as u32,
        libc::F_SETFD as u32,
        libc::F_GETFL as u32,
        libc::F_SETFL as u32,
        libc::F_GETLK as u32,
        libc::F_SETLK as u32,
        libc::F_SETLKW as u32,
        libc::F_OFD_GETLK as u32,
        libc::F_OFD_SETLK as u32,
        libc::F_OFD_SETLKW as u32,
        libc::F_GETOWN as u32,
        libc::F_SETOWN as u32,
        10, // F_SETSIG
        11, // F_GETSIG
        15, // F_SETOWN_EX
        16, // F_GETOWN_EX
        libc::F_GETPIPE_SZ as u32,
        libc::F_SETPIPE_SZ as u32,
        libc::F_GET_SEALS as u32,
        libc::F_ADD_SEALS as u32,
        1027, // F_DUPFD_QUERY: whether two descriptors are one
        1035, // F_GET_RW_HINT
        1036, // F_SET_RW_HINT
    ],
)]];

pub(super) const CALLS: &[Call] = &[
    call!(SYS_read, Allow, "read what was opened"),
    call!(SYS_write, Allow, "write what was opened"),
    call!(SYS_readv, Allow, "read into several buffers"),
    call!(SYS_writev, Allow, "write from several buffers"),
    call!(SYS_pread64, Allow, "read at a place"),
    call!(SYS_pwrite64, Allow, "write at a place"),
    call!(SYS_preadv, Allow, "read at a place into several buffers"),
    call!(SYS_pwritev, Allow, "write at a place from several buffers"),
    call!(SYS_preadv2, Allow, "the same with flags"),
    call!(SYS_pwritev2, Allow, "the same with flags"),
    call!(SYS_lseek, Allow, "move in a file, find holes"),
    call!(SYS_close, Allow, "give a descriptor back"),
    call!(SYS_close_range, Allow, "give many back; spawning programs do it"),
    call!(SYS_openat, Allow, "open; Landlock and the view judge the path"),
    call!(SYS_openat2, Allow, "open beneath a folder; judged like openat"),
    call!(SYS_newfstatat, Allow, "facts of a path"),
    call!(SYS_fstat, Allow, "facts of a descriptor"),
    call!(SYS_statx, Allow, "facts of a path, the newer way"),
    call!(SYS_statfs, Allow, "facts of a file system, such as free space"),
    call!(SYS_fstatfs, Allow, "the same by descriptor"),
    call!(SYS_faccessat, Allow, "ask whether a path may be used"),
    call!(SYS_faccessat2, Allow, "the same with flags"),
    call!(SYS_readlinkat, Allow, "read a link"),
    call!(SYS_getdents64, Allow, "list a folder"),
    call!(SYS_getcwd, Allow, "where one stands"),
    call!(SYS_chdir, Allow, "go elsewhere in the view"),
    call!(SYS_fchdir, Allow, "go to an opened folder"),
    call!(SYS_mkdirat, Allow, "make a folder in /tmp"),
    call!(SYS_unlinkat, Allow, "remove in /tmp"),
    call!(SYS_renameat, Allow, "rename in /tmp"),
    call!(
        SYS_renameat2,
        When(RENAMES, libc::EINVAL),
        "rename in /tmp without replacing; a device left in its place would be one"
    ),
    call!(SYS_linkat, Allow, "link in /tmp"),
    call!(SYS_symlinkat, Allow, "link by name in /tmp"),
    call!(SYS_mknodat, When(NODES, libc::EPERM), "FIFOs; devices are refused"),
    call!(SYS_truncate, Allow, "cut a file in /tmp"),
    call!(SYS_ftruncate, Allow, "cut an opened file"),
    call!(SYS_fallocate, Allow, "reserve room in /tmp, bounded by its size"),
    call!(SYS_fchmod, Allow, "permissions in /tmp; read-only mounts refuse elsewhere"),
    call!(SYS_fchmodat, Allow, "the same by path"),
    Call {
        name: "SYS_fchmodat2",
        number: 452, // the same everywhere; not every C library names it yet
        command: Allow,
        executor: None,
        why: "the same with flags",
    },
    call!(SYS_fchown, Allow, "tar and cp ask for it; without capabilities it only fails"),
    call!(SYS_fchownat, Allow, "the same by path"),
    call!(SYS_utimensat, Allow, "times in /tmp; touch, cp and tar"),
    call!(SYS_setxattr, Allow, "attributes in /tmp; read-only mounts refuse elsewhere"),
    call!(SYS_lsetxattr, Allow, "the same for links"),
    call!(SYS_fsetxattr, Allow, "the same by descriptor"),
    call!(SYS_getxattr, Allow, "attributes; ls and cp read them"),
    call!(SYS_lgetxattr, Allow, "the same for links"),
    call!(SYS_fgetxattr, Allow, "the same by descriptor"),
    call!(SYS_listxattr, Allow, "names of attributes"),
    call!(SYS_llistxattr, Allow, "the same for links"),
    call!(SYS_flistxattr, Allow, "the same by descriptor"),
    call!(SYS_removexattr, Allow, "remove attributes in /tmp"),
    call!(SYS_lremovexattr, Allow, "the same for links"),
    call!(SYS_fremovexattr, Allow, "the same by descriptor"),
    call!(SYS_dup, Allow, "a second descriptor; shells live on it"),
    call!(SYS_dup3, Allow, "the same at a number"),
    call!(SYS_fcntl, When(COMMANDS, libc::EINVAL), "flags and locks of descriptors; no leases"),
    call!(SYS_flock, Allow, "locks; git and package tools"),
    call!(SYS_ioctl, When(REQUESTS, libc::ENOTTY), "a short list of questions to descriptors"),
    call!(SYS_pipe2, Allow, "pipes"),
    call!(SYS_splice, Allow, "copy between pipes and files; cat and Go do it"),
    call!(SYS_tee, Allow, "copy between pipes"),
    call!(SYS_vmsplice, Allow, "memory into a pipe"),
    call!(SYS_sendfile, Allow, "copy between descriptors"),
    call!(SYS_copy_file_range, Allow, "copy between files"),
    call!(SYS_fadvise64, Allow, "a hint about reading"),
    call!(SYS_readahead, Allow, "a hint about reading"),
    call!(SYS_fsync, Allow, "wait for the disk"),
    call!(SYS_fdatasync, Allow, "wait for the disk"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_sync_file_range, Allow, "wait for a part of a file"),
    call!(SYS_syncfs, Allow, "wait for one file system"),
    call!(SYS_sync, Refuse, "would stall on every disk of the machine"),
    call!(SYS_umask, Allow, "permissions of new files"),
    call!(SYS_inotify_init1, Allow, "waiting for changes of visible files"),
    call!(
        SYS_inotify_add_watch,
        When(WATCHES, libc::EPERM),
        "changes alone; opening and reading of files would tell what the host starts"
    ),
    call!(SYS_inotify_rm_watch, Allow, "belongs to inotify_init1"),
    call!(SYS_mount, Refuse, executor Allow, "would change the view"),
    call!(SYS_umount2, Refuse, executor Allow, "would uncover what is hidden"),
    call!(SYS_open_tree, Refuse, executor Allow, "would copy a mount without what covers it"),
    call!(SYS_move_mount, Refuse, executor Allow, "would change the view"),
    call!(SYS_mount_setattr, Refuse, executor Allow, "would make mounts writable"),
    call!(SYS_fsopen, Refuse, executor Allow, "would bring new file systems"),
    call!(SYS_fsconfig, Refuse, executor Allow, "would bring new file systems"),
    call!(SYS_fsmount, Refuse, executor Allow, "would bring new file systems"),
    call!(SYS_pivot_root, Refuse, executor Allow, "would change the root"),
    call!(SYS_fspick, Refuse, "would reconfigure file systems"),
    call!(SYS_chroot, Refuse, "would change the root"),
    call!(SYS_name_to_handle_at, Refuse, "handles lead around paths"),
    call!(SYS_open_by_handle_at, Refuse, "handles lead around paths"),
    call!(SYS_fanotify_init, Refuse, "watches and holds up other processes' files"),
    call!(SYS_fanotify_mark, Refuse, "watches and holds up other processes' files"),
    call!(SYS_quotactl, Refuse, "administration of disks"),
    call!(SYS_quotactl_fd, Refuse, "administration of disks"),
    call!(SYS_io_setup, Refuse, "asynchronous input is a large surface that few programs need"),
    call!(SYS_io_destroy, Refuse, "belongs to io_setup"),
    call!(SYS_io_submit, Refuse, "belongs to io_setup"),
    call!(SYS_io_getevents, Refuse, "belongs to io_setup"),
    call!(SYS_io_cancel, Refuse, "belongs to io_setup"),
    call!(SYS_io_uring_setup, Refuse, "does system calls that no filter sees"),
    call!(SYS_io_uring_enter, Refuse, "belongs to io_uring_setup"),
    call!(SYS_io_uring_register, Refuse, "belongs to io_uring_setup"),
];
