//! Memory. How much there is of it is bounded elsewhere.

use crate::linux::seccomp::rule::Rule::{Allow, Refuse};
use crate::linux::seccomp::rule::{Call, call};

pub(super) const CALLS: &[Call] = &[
    call!(SYS_brk, Allow, "the heap"),
    call!(SYS_mmap, Allow, "memory and libraries"),
    call!(SYS_munmap, Allow, "give memory back"),
    call!(SYS_mremap, Allow, "move memory"),
    call!(SYS_mprotect, Allow, "loaders and compilers at run time need it"),
    call!(SYS_pkey_mprotect, Allow, "the same with keys"),
    call!(SYS_pkey_alloc, Allow, "keys for one's own memory"),
    call!(SYS_pkey_free, Allow, "keys for one's own memory"),
    call!(SYS_madvise, Allow, "hints of allocators"),
    call!(SYS_msync, Allow, "write mapped files back"),
    call!(SYS_mincore, Allow, "which pages are loaded; databases ask"),
    call!(SYS_mlock, Allow, "bounded to 64 KiB"),
    call!(SYS_mlock2, Allow, "the same with flags"),
    call!(SYS_munlock, Allow, "undo of mlock"),
    call!(SYS_mlockall, Allow, "bounded like mlock"),
    call!(SYS_munlockall, Allow, "undo of mlockall"),
    Call {
        name: "SYS_mseal",
        number: 462, // the same everywhere; not every C library names it yet
        command: Allow,
        executor: None,
        why: "one's own memory can only become stricter by it",
    },
    call!(SYS_membarrier, Allow, "ordering between threads"),
    call!(SYS_memfd_create, Allow, "files in memory; compilers at run time need them"),
    call!(SYS_memfd_secret, Refuse, "memory that nobody else can account for"),
    call!(SYS_userfaultfd, Refuse, "stops the kernel at will; a tool of exploits"),
    call!(SYS_process_madvise, Refuse, "acts on other processes' memory"),
    call!(SYS_process_mrelease, Refuse, "acts on other processes' memory"),
    call!(SYS_process_vm_readv, Refuse, "reads other processes' memory"),
    call!(SYS_process_vm_writev, Refuse, "writes other processes' memory"),
    call!(SYS_move_pages, Refuse, "tells where memory lies"),
    call!(SYS_migrate_pages, Refuse, "moves other processes' memory"),
    call!(SYS_mbind, Refuse, "placement of memory; a large surface that few programs need"),
    call!(SYS_set_mempolicy, Refuse, "placement of memory"),
    call!(SYS_get_mempolicy, Refuse, "placement of memory"),
    call!(SYS_set_mempolicy_home_node, Refuse, "placement of memory"),
    call!(SYS_remap_file_pages, Refuse, "long replaced by mmap"),
];

/// The calls by which memory is made that no process need have mapped: files in memory, shared
/// memory, and the arrays and queues that the kernel holds.
pub(crate) const UNMAPPED_MEMORY: [i64; 5] = [
    libc::SYS_memfd_create,
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
];
