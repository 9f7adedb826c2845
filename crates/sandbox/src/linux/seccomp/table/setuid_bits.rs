//! What a command must not do to files that stay when it is over: set the bits by which a program
//! runs as its owner or group. Elsewhere nothing lasts, or is judged first.

use crate::linux::seccomp::rule::{
    Call, Check, Clause,
    Rule::{Absent, When},
    call, masked,
};

/// The bits.
const SETUID_BITS: u32 = libc::S_ISUID | libc::S_ISGID;
/// A file may be made: `O_CREAT`, and the bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const CREATE_FLAGS: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

const fn without_setuid_bits(argument: u32) -> Check {
    masked(argument, SETUID_BITS, &[0])
}

const fn without_create(argument: u32) -> Check {
    masked(argument, CREATE_FLAGS, &[0])
}

const MODE_2: &[Clause] = &[&[without_setuid_bits(1)]];
const MODE_3: &[Clause] = &[&[without_setuid_bits(2)]];
const OPEN_AT: &[Clause] = &[&[without_create(2)], &[without_setuid_bits(3)]];

/// The calls that can set them.
pub(crate) const SETUID_CALLS: &[&[Call]] = &[
    &[
        call!(SYS_openat, When(OPEN_AT, libc::EPERM), "makes a file with its permissions"),
        call!(SYS_openat2, Absent, "its permissions cannot be looked at; programs fall back"),
        call!(SYS_mknodat, When(MODE_3, libc::EPERM), "makes a file with its permissions"),
        call!(SYS_fchmod, When(MODE_2, libc::EPERM), "sets permissions"),
        call!(SYS_fchmodat, When(MODE_3, libc::EPERM), "the same by path"),
        Call {
            name: "SYS_fchmodat2",
            number: 452, // the same everywhere; not every C library names it yet
            command: When(MODE_3, libc::EPERM),
            executor: None,
            why: "the same with flags",
        },
    ],
    LEGACY_CALLS,
];

#[cfg(not(target_arch = "x86_64"))]
const LEGACY_CALLS: &[Call] = &[];

#[cfg(target_arch = "x86_64")]
const OPEN: &[Clause] = &[&[without_create(1)], &[without_setuid_bits(2)]];

#[cfg(target_arch = "x86_64")]
const LEGACY_CALLS: &[Call] = &[
    call!(SYS_open, When(OPEN, libc::EPERM), "openat"),
    call!(SYS_creat, When(MODE_2, libc::EPERM), "openat"),
    call!(SYS_mknod, When(MODE_2, libc::EPERM), "mknodat"),
    call!(SYS_chmod, When(MODE_2, libc::EPERM), "fchmodat"),
];
