//! What nobody inside may ask, and that belongs to no other file: the machine itself.

use crate::linux::seccomp::rule::Rule::Refuse;
use crate::linux::seccomp::rule::{Call, call};

pub(super) const CALLS: &[Call] = &[
    call!(SYS_bpf, Refuse, "programs in the kernel"),
    call!(SYS_perf_event_open, Refuse, "watches the kernel and other processes"),
    call!(SYS_lookup_dcookie, Refuse, "belongs to profilers"),
    call!(SYS_kexec_load, Refuse, "another kernel"),
    Call {
        name: "SYS_kexec_file_load",
        number: if cfg!(target_arch = "x86_64") { 320 } else { 294 }, // not every C library names it
        command: Refuse,
        executor: None,
        why: "another kernel",
    },
    call!(SYS_init_module, Refuse, "code in the kernel"),
    call!(SYS_finit_module, Refuse, "code in the kernel"),
    call!(SYS_delete_module, Refuse, "code in the kernel"),
    call!(SYS_reboot, Refuse, "the machine"),
    call!(SYS_swapon, Refuse, "the machine's memory"),
    call!(SYS_swapoff, Refuse, "the machine's memory"),
    call!(SYS_acct, Refuse, "the machine's accounting"),
    call!(SYS_vhangup, Refuse, "the machine's terminals"),
    call!(SYS_syslog, Refuse, "the kernel's messages"),
    call!(SYS_sethostname, Refuse, "the host name is ours"),
    call!(SYS_setdomainname, Refuse, "the host name is ours"),
    call!(SYS_nfsservctl, Refuse, "long gone"),
];
