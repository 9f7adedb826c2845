//! The filter on system calls: an allowlist as data with a reason per row ([`table`]), compiled
//! ([`compile`]) into two filters.
//!
//! The large one is attached to the executor once. It holds the whole allowlist, and lets through
//! what setting up a call takes (mounts, namespaces). The small one is attached in each call, just
//! before the command starts, and takes those away again. A process is bound by both.

mod compile;
#[cfg(test)]
mod interpret;
pub(crate) mod rule;
mod table;

pub(crate) use compile::{Filter, TooLong};
use rule::{Call, Rule};

/// The filter of the executor: what no row names is absent.
///
/// # Errors
/// The table has grown beyond what the kernel takes.
pub(crate) fn executor_filter() -> Result<Filter, TooLong> {
    let rules: Vec<(u32, Rule)> =
        table::rows().map(|call| (call.number, call.executor.unwrap_or(call.command))).collect();
    compile::compile_filter(&rules, Rule::Absent)
}

/// The filter of a whole agent: that of the executor, with the rows of [`table::agent`].
///
/// # Errors
/// The table has grown beyond what the kernel takes.
pub(crate) fn agent_filter() -> Result<Filter, TooLong> {
    let mut rules: Vec<(u32, Rule)> =
        table::rows().map(|call| (call.number, call.executor.unwrap_or(call.command))).collect();
    for (number, rule, _) in table::agent::ROWS {
        let number = u32::try_from(*number).unwrap_or_default();
        rules.retain(|(known, _)| *known != number);
        rules.push((number, *rule));
    }
    compile::compile_filter(&rules, Rule::Absent)
}

/// What else holds, on which some rows depend.
#[derive(Clone, Copy)]
pub(crate) struct FilterOptions {
    /// Landlock judges whom a local socket connects to, so that local sockets may be made.
    pub(crate) controls_local_sockets: bool,
    /// A control group counts all memory. Otherwise memory that no process has mapped would not be
    /// seen, so it cannot be made.
    pub(crate) memory_is_counted: bool,
    /// Namespaces keep the host's sockets, queues and processes apart.
    pub(crate) namespaces: bool,
}

/// The filter of a command, which takes away what only the executor needs.
///
/// # Errors
/// The table has grown beyond what the kernel takes.
pub(crate) fn command_filter(circumstances: FilterOptions) -> Result<Filter, TooLong> {
    let among = |call: &Call, numbers: &[i64]| numbers.contains(&i64::from(call.number));
    let mut rules = Vec::new();
    for call in table::rows() {
        if circumstances.controls_local_sockets && among(call, &table::LOCAL_SOCKETS) {
            continue;
        }
        if !circumstances.memory_is_counted && among(call, &table::UNMAPPED_MEMORY) {
            rules.push((call.number, Rule::Absent));
        } else if call.executor.is_some() {
            rules.push((call.number, call.command));
        }
    }
    if !circumstances.namespaces {
        for (number, rule, _) in table::landlock_only::ROWS {
            let number = u32::try_from(*number).unwrap_or_default();
            rules.retain(|(known, _)| *known != number);
            rules.push((number, *rule));
        }
    }
    compile::compile_filter(&rules, Rule::Allow)
}

/// The filter of a command that changes the workspace itself, beside the one of every command: no
/// file becomes one that is run as its owner, which would last.
///
/// # Errors
/// The table has grown beyond what the kernel takes.
pub(crate) fn direct_write_filter() -> Result<Filter, TooLong> {
    let rules: Vec<(u32, Rule)> = table::SETUID_CALLS
        .iter()
        .copied()
        .flatten()
        .map(|call| (call.number, call.command))
        .collect();
    compile::compile_filter(&rules, Rule::Allow)
}

/// How many system calls the table judges, for `capsule doctor`.
pub(crate) fn covered_syscalls() -> usize {
    table::rows().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn strictest() -> Filter {
        command_filter(FilterOptions {
            controls_local_sockets: false,
            memory_is_counted: false,
            namespaces: true,
        })
        .unwrap()
    }

    fn alone() -> Filter {
        command_filter(FilterOptions {
            controls_local_sockets: false,
            memory_is_counted: false,
            namespaces: false,
        })
        .unwrap()
    }

    #[test]
    fn without_namespaces_only_more_is_taken_away() {
        let (usual, alone) = (strictest(), alone());
        for number in 0..700_u32 {
            for argument in [0, 1, 5, 0x7fff_fff0] {
                let asked = interpret::SyscallData {
                    number,
                    architecture: if cfg!(target_arch = "x86_64") {
                        0xC000_003E
                    } else {
                        0xC000_00B7
                    },
                    arguments: [argument; 6],
                };
                let (now, then) =
                    (interpret::run_filter(&alone, &asked), interpret::run_filter(&usual, &asked));
                assert!(
                    then == libc::SECCOMP_RET_ALLOW || now != libc::SECCOMP_RET_ALLOW,
                    "{number}({argument}) is allowed only without namespaces"
                );
                let row = table::landlock_only::ROWS.iter().find(|row| row.0 == i64::from(number));
                if row.is_some_and(|row| row.1 == Rule::Refuse) {
                    assert_eq!(now, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, "{number}");
                }
            }
        }
        for (number, _, why) in table::landlock_only::ROWS {
            assert!(!why.is_empty(), "{number} has no reason");
        }
    }

    #[test]
    fn every_call_has_one_row_and_a_reason() {
        let mut numbers = BTreeSet::new();
        for call in table::rows() {
            assert!(numbers.insert(call.number), "{} stands twice", call.name);
            assert!(!call.why.is_empty(), "{} has no reason", call.name);
        }
        assert!(numbers.len() > 300, "the table has {} rows", numbers.len());
    }

    #[test]
    fn the_filters_are_short_enough() {
        assert!(agent_filter().unwrap().len() < 1_000, "{}", agent_filter().unwrap().len());
        assert!(executor_filter().unwrap().len() < 1_000, "{}", executor_filter().unwrap().len());
        assert!(strictest().len() < 250, "{}", strictest().len());
    }

    #[test]
    fn no_command_may_do_what_breaks_the_walls() {
        let forbidden = [
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "io_uring_setup",
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "kexec_load",
            "init_module",
            "finit_module",
            "open_by_handle_at",
            "name_to_handle_at",
            "fanotify_init",
            "keyctl",
            "add_key",
            "request_key",
            "pidfd_getfd",
            "move_pages",
            "mount",
            "umount2",
            "move_mount",
            "open_tree",
            "fsopen",
            "fsmount",
            "mount_setattr",
            "setns",
            "unshare",
            "chroot",
            "pivot_root",
            "quotactl",
            "swapon",
            "reboot",
            "acct",
            "lookup_dcookie",
            "nfsservctl",
            "vhangup",
            "syslog",
        ];
        let rule = |name: &str| {
            let row = table::rows().find(|call| call.name.strip_prefix("SYS_") == Some(name));
            row.unwrap_or_else(|| panic!("{name} stands in no row")).command
        };
        for name in forbidden {
            assert!(matches!(rule(name), Rule::Refuse | Rule::Kill), "{name}");
        }
        for name in ["socket", "socketpair", "ioctl", "clone", "prctl", "personality", "mknodat"] {
            assert!(matches!(rule(name), Rule::When(..)), "{name}");
        }
    }

    #[test]
    fn no_file_that_lasts_becomes_its_owners() {
        let filter = direct_write_filter().unwrap();
        let ask = |number: i64, arguments: [u64; 6]| {
            let architecture = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };
            let number = u32::try_from(number).unwrap();
            interpret::run_filter(
                &filter,
                &interpret::SyscallData { number, architecture, arguments },
            )
        };
        let open = |flags: i32, mode: u64| {
            ask(libc::SYS_openat, [0, 0, u64::from(flags.cast_unsigned()), mode, 0, 0])
        };
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        for flags in [libc::O_CREAT, libc::O_CREAT | libc::O_EXCL, libc::O_TMPFILE] {
            assert_eq!(open(flags, 0o4755), refused, "{flags:o}");
            assert_eq!(open(flags, 0o2755), refused, "{flags:o}");
            assert_eq!(open(flags, 0o1777), libc::SECCOMP_RET_ALLOW, "{flags:o}");
        }
        // Where no file is made, the argument means nothing.
        for flags in [libc::O_RDWR, libc::O_DIRECTORY, libc::O_PATH] {
            assert_eq!(open(flags, 0o7777), libc::SECCOMP_RET_ALLOW, "{flags:o}");
        }
        for (mode, expected) in [(0o755, libc::SECCOMP_RET_ALLOW), (0o6755, refused)] {
            assert_eq!(ask(libc::SYS_fchmod, [3, mode, 0, 0, 0, 0]), expected);
            assert_eq!(ask(libc::SYS_fchmodat, [0, 0, mode, 0, 0, 0]), expected);
        }
        for call in table::SETUID_CALLS.iter().copied().flatten() {
            let known = table::rows().any(|row| row.number == call.number);
            assert!(known && !call.why.is_empty(), "{}", call.name);
        }
        assert_eq!(ask(libc::SYS_read, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }

    /// Each row, through the interpreter: both filters together answer as the table says.
    #[test]
    fn both_filters_together_decide_like_the_table() {
        let (large, small) = (executor_filter().unwrap(), strictest());
        for number in 0..700_u32 {
            let asked = interpret::SyscallData {
                number,
                architecture: if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 },
                arguments: [0x7fff_fff4; 6],
            };
            // The strictest answer of all filters counts; for errors and leave that is the lowest.
            let got =
                interpret::run_filter(&large, &asked).min(interpret::run_filter(&small, &asked));
            let mut rule =
                table::rows().find(|call| call.number == number).map(|call| call.command);
            if table::UNMAPPED_MEMORY.contains(&i64::from(number)) {
                rule = Some(Rule::Absent);
            }
            let expected = rule.unwrap_or(Rule::Absent).answer(asked.arguments);
            assert_eq!(got, expected, "number {number}");
        }
    }
}
