//! Processes, threads, identities and signals. A command sees no process but its own.

use crate::linux::seccomp::rule::Rule::{Absent, Allow, Refuse, When};
use crate::linux::seccomp::rule::{Call, Clause, call, high_is_zero, masked, none_of, one_of};

const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u32;

/// Processes and threads without new namespaces.
const CHILDREN: &[Clause] = &[&[masked(0, NAMESPACES, &[0])]];

/// The usual personality, and the question which one it is.
const PERSONALITIES: &[Clause] = &[&[one_of(0, &[0, u32::MAX])]];

/// What a process may set or ask about itself.
const OPTIONS: &[Clause] = &[&[one_of(
    0,
    &[
        libc::PR_SET_NAME as u32,
        libc::PR_GET_NAME as u32,
        libc::PR_SET_PDEATHSIG as u32,
        libc::PR_GET_PDEATHSIG as u32,
        libc::PR_SET_DUMPABLE as u32,
        libc::PR_GET_DUMPABLE as u32,
        libc::PR_SET_NO_NEW_PRIVS as u32,
        libc::PR_GET_NO_NEW_PRIVS as u32,
        libc::PR_SET_SECCOMP as u32, // can only add filters
        libc::PR_GET_SECCOMP as u32,
        libc::PR_SET_CHILD_SUBREAPER as u32,
        libc::PR_GET_CHILD_SUBREAPER as u32,
        libc::PR_SET_KEEPCAPS as u32,
        libc::PR_GET_KEEPCAPS as u32,
        libc::PR_GET_SECUREBITS as u32,
        libc::PR_CAPBSET_READ as u32,
        libc::PR_CAPBSET_DROP as u32, // can only lose capabilities
        libc::PR_CAP_AMBIENT as u32,  // has nothing to raise
        libc::PR_SET_TIMERSLACK as u32,
        libc::PR_GET_TIMERSLACK as u32,
        libc::PR_SET_THP_DISABLE as u32,
        libc::PR_GET_THP_DISABLE as u32,
        libc::PR_GET_TID_ADDRESS as u32,
        52, // PR_GET_SPECULATION_CTRL
        libc::PR_SET_VMA as u32,
        libc::PR_MCE_KILL_GET as u32,
        51, // PR_SVE_GET_VL: Arm vector length
        55, // PR_SET_TAGGED_ADDR_CTRL: Arm memory tags, asked for by allocators
        56, // PR_GET_TAGGED_ADDR_CTRL
    ],
)]];

/// Every limit but 4, that on core files. It is 1, which alone makes the kernel call no program of the
/// host with a crashed process; at 0 it still would.
pub(super) const LIMITS: &[u32] = &[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Setting those of any process but the first one, or asking for any.
const SET_OR_ASK: &[Clause] =
    &[&[one_of(1, LIMITS), none_of(0, FIRST)], &[one_of(2, &[0]), high_is_zero(2)]];

/// The first process of the call, which is Capsule's own: it has to outlast all others.
const FIRST: &[u32] = &[1];

/// Of any process or thread but that one.
const NOT_THE_FIRST: &[Clause] = &[&[none_of(0, FIRST)]];

/// The same, and not of a group or of all processes of a user, among which it would be.
const PRIORITIES: &[Clause] = &[&[one_of(0, &[libc::PRIO_PROCESS]), none_of(1, FIRST)]];

/// The same for disks, where processes are 1.
const DISK_PRIORITIES: &[Clause] = &[&[one_of(0, &[1]), none_of(1, FIRST)]];

/// Setting those.
const SET: &[Clause] = &[&[one_of(0, LIMITS)]];

pub(super) const CALLS: &[Call] = &[
    call!(
        SYS_clone,
        When(CHILDREN, libc::EPERM),
        executor Allow,
        "processes and threads, but no namespaces"
    ),
    call!(
        SYS_clone3,
        Absent,
        executor Allow,
        "its flags lie behind a pointer; libraries then take clone"
    ),
    call!(SYS_execve, Allow, "run a program of the view"),
    call!(SYS_execveat, Allow, "run an opened program"),
    call!(SYS_exit, Allow, "end a thread"),
    call!(SYS_exit_group, Allow, "end"),
    call!(SYS_wait4, Allow, "wait for children"),
    call!(SYS_waitid, Allow, "wait for children"),
    call!(SYS_getpid, Allow, "who one is"),
    call!(SYS_getppid, Allow, "who one is"),
    call!(SYS_gettid, Allow, "who one is"),
    call!(SYS_getpgid, Allow, "who one is"),
    call!(SYS_setpgid, Allow, "groups of jobs in shells"),
    call!(SYS_getsid, Allow, "who one is"),
    call!(SYS_setsid, Allow, "a session of one's own; it still ends with its namespace"),
    call!(SYS_getuid, Allow, "who one is"),
    call!(SYS_geteuid, Allow, "who one is"),
    call!(SYS_getgid, Allow, "who one is"),
    call!(SYS_getegid, Allow, "who one is"),
    call!(SYS_getgroups, Allow, "who one is"),
    call!(SYS_getresuid, Allow, "who one is"),
    call!(SYS_getresgid, Allow, "who one is"),
    call!(SYS_setuid, Allow, "without capabilities only to oneself; tools drop privileges so"),
    call!(SYS_setgid, Allow, "the same"),
    call!(SYS_setreuid, Allow, "the same"),
    call!(SYS_setregid, Allow, "the same"),
    call!(SYS_setresuid, Allow, "the same"),
    call!(SYS_setresgid, Allow, "the same"),
    call!(SYS_setgroups, Allow, "without capabilities it only fails"),
    call!(SYS_setfsuid, Allow, "the same"),
    call!(SYS_setfsgid, Allow, "the same"),
    call!(SYS_capget, Allow, "which capabilities: none"),
    call!(SYS_capset, Allow, "can only lose capabilities"),
    call!(SYS_prctl, When(OPTIONS, libc::EPERM), "a short list of settings of oneself"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_arch_prctl, Allow, "thread-local storage"),
    call!(
        SYS_personality,
        When(PERSONALITIES, libc::EPERM),
        "asking only; others weaken the layout"
    ),
    call!(SYS_set_tid_address, Allow, "threads"),
    call!(SYS_set_robust_list, Allow, "locks of threads that die"),
    call!(SYS_get_robust_list, Allow, "locks of threads that die"),
    call!(SYS_rseq, Allow, "per-processor sections of libraries"),
    call!(SYS_futex, Allow, "locks"),
    call!(SYS_futex_waitv, Allow, "several locks"),
    call!(SYS_sched_yield, Allow, "let others run"),
    call!(SYS_sched_getaffinity, Allow, "how many processors there are"),
    call!(SYS_sched_setaffinity, When(NOT_THE_FIRST, libc::EPERM), "which of them to use"),
    call!(SYS_sched_getparam, Allow, "scheduling of one's own processes"),
    call!(
        SYS_sched_setparam,
        When(NOT_THE_FIRST, libc::EPERM),
        "without capabilities only downwards"
    ),
    call!(SYS_sched_getscheduler, Allow, "scheduling of one's own processes"),
    call!(
        SYS_sched_setscheduler,
        When(NOT_THE_FIRST, libc::EPERM),
        "without capabilities only downwards"
    ),
    call!(SYS_sched_getattr, Allow, "scheduling of one's own processes"),
    call!(
        SYS_sched_setattr,
        When(NOT_THE_FIRST, libc::EPERM),
        "without capabilities only downwards"
    ),
    call!(SYS_sched_get_priority_max, Allow, "bounds of scheduling"),
    call!(SYS_sched_get_priority_min, Allow, "bounds of scheduling"),
    call!(SYS_sched_rr_get_interval, Allow, "bounds of scheduling"),
    call!(SYS_getpriority, Allow, "nice"),
    call!(
        SYS_setpriority,
        When(PRIORITIES, libc::EPERM),
        "nice; without capabilities only downwards"
    ),
    call!(SYS_ioprio_get, Allow, "ionice"),
    call!(
        SYS_ioprio_set,
        When(DISK_PRIORITIES, libc::EPERM),
        "ionice; without capabilities only downwards"
    ),
    call!(SYS_getcpu, Allow, "which processor this is"),
    call!(SYS_getrusage, Allow, "what was used"),
    call!(
        SYS_prlimit64,
        When(SET_OR_ASK, libc::EINVAL),
        executor Allow,
        "limits; they can only be lowered"
    ),
    call!(SYS_getrlimit, Allow, "limits"),
    call!(SYS_setrlimit, When(SET, libc::EINVAL), "limits; they can only be lowered"),
    call!(SYS_uname, Allow, "name of the system; the host name is ours"),
    call!(SYS_sysinfo, Allow, "how much memory there is"),
    call!(SYS_kill, Allow, "signals; only one's own processes can be named"),
    call!(SYS_tkill, Allow, "signals to threads"),
    call!(SYS_tgkill, Allow, "signals to threads"),
    call!(SYS_pidfd_open, Allow, "a handle on one's own processes"),
    call!(SYS_pidfd_send_signal, Allow, "signals by handle"),
    call!(SYS_rt_sigaction, Allow, "what signals do"),
    call!(SYS_rt_sigprocmask, Allow, "which signals wait"),
    call!(SYS_rt_sigreturn, Allow, "the end of every handler"),
    call!(SYS_rt_sigpending, Allow, "which signals wait"),
    call!(SYS_rt_sigtimedwait, Allow, "wait for signals"),
    call!(SYS_rt_sigsuspend, Allow, "wait for signals"),
    call!(SYS_rt_sigqueueinfo, Allow, "signals with a value"),
    call!(SYS_rt_tgsigqueueinfo, Allow, "signals with a value"),
    call!(SYS_sigaltstack, Allow, "a stack for handlers"),
    call!(SYS_signalfd4, Allow, "signals as a descriptor"),
    call!(SYS_restart_syscall, Allow, "the kernel's own way back after a stop"),
    call!(SYS_getrandom, Allow, "random numbers"),
    call!(SYS_seccomp, Allow, "can only add filters"),
    call!(SYS_landlock_create_ruleset, Allow, "can only add walls"),
    call!(SYS_landlock_add_rule, Allow, "can only add walls"),
    call!(SYS_landlock_restrict_self, Allow, "can only add walls"),
    call!(SYS_unshare, Refuse, executor Allow, "new namespaces bring capabilities back"),
    call!(SYS_setns, Refuse, "other namespaces"),
    call!(SYS_ptrace, Refuse, "control of other processes, and a way around old filters"),
    call!(SYS_kcmp, Refuse, "compares other processes' insides"),
    call!(SYS_pidfd_getfd, Refuse, "takes descriptors of other processes"),
];
