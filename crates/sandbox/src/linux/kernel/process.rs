//! Processes: the executor's descriptors, its children, and the program that a child becomes.

use std::ffi::{CStr, CString};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, getppid, kill_process,
    pidfd_open, test_kill_process, wait, waitid, waitpid,
};

use super::{checked, last_error};

/// Room for the few functions that run before a program takes over; two pages would do.
const STACK_WORDS: usize = 2_048;

/// Closes a range of descriptors, whatever they are; an empty range is fine.
///
/// # Errors
/// The kernel has no `close_range` (before 5.9).
pub(crate) fn close_range(numbers: RangeInclusive<u32>) -> Result<(), Errno> {
    if numbers.is_empty() {
        return Ok(());
    }
    // SAFETY: closes descriptors that nobody owns: it is called by the executor before it opens
    // anything, and by the first process of a call, which only ends by `leave` afterwards and so
    // never drops an owner. `a_command_has_three_descriptors` would break.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, *numbers.start(), *numbers.end(), 0_u32) };
    checked(result).map(|_| ())
}

/// The socket that the executor has in place of a standard input.
pub(crate) fn inherited_socket() -> OwnedFd {
    // SAFETY: needs that nobody else closes descriptor 0. It is called once, first thing in the
    // executor, which never reads its standard input otherwise.
    unsafe { OwnedFd::from_raw_fd(0) }
}

/// Ends this process at once, without running anything of the parent's that was copied with it.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(status) }
}

/// Ends a copy of the executor that would otherwise, by some fault, go on as if it were the
/// executor.
pub(crate) struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        exit_now(101)
    }
}

/// Kills every process of this namespace but the caller, which must be its first one. Anywhere else
/// it does nothing: there the same call would mean every process of the user.
pub(crate) fn kill_namespace() {
    if getpid() != Pid::INIT {
        return;
    }
    // SAFETY: takes two numbers. That the caller is the first process of a namespace was just
    // checked; the executor itself never is, because it is always somebody's child.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Proof that signals of this process reach nobody but what it starts itself.
pub(crate) struct SignalIsolation(());

impl SignalIsolation {
    /// Tries to reach its parent, which is of the same user, and must fail.
    ///
    /// # Errors
    /// A signal would leave.
    pub(crate) fn prove() -> Result<Self, Errno> {
        let parent = getppid().ok_or(Errno::SRCH)?;
        match test_kill_process(parent) {
            Err(Errno::PERM) => Ok(Self(())),
            Ok(()) => Err(Errno::NOTSUP),
            Err(error) => Err(error),
        }
    }

    /// Kills everything that this process has started, and what that has started, all at once: the
    /// kernel makes no process of theirs meanwhile.
    pub(crate) fn kill_descendants(&self) {
        // SAFETY: takes two numbers. That nobody else of the user is reached is what the proof says,
        // and Landlock keeps it so for the life of this process.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Processes that were there when the last program of a command had ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftoverProcesses {
    /// Those that ran on, and were ended.
    pub(crate) killed: u64,
    /// These, and those that nobody had taken in yet: all that still counted for the kernel.
    pub(crate) all: u64,
}

/// How many are taken in before all are killed again.
pub(crate) const REAPED_PER_KILL: u32 = 64;

/// Ends every child of this process, and those that come to it when these end, by `kill`, and takes all of
/// them in. They are killed first: each that is taken in makes room for another one, and whoever makes
/// processes faster than they are taken in would never be ended.
pub(crate) fn kill_and_reap_all(kill: impl Fn()) -> LeftoverProcesses {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let mut left = LeftoverProcesses::default();
    // Nothing is there to be killed behind most commands.
    while !matches!(waitid(WaitId::All, ended | WaitIdOptions::NOHANG), Err(Errno::CHILD)) {
        kill();
        // One is left where it is when it has ended.
        let _ = waitid(WaitId::All, ended);
        for _ in 0..REAPED_PER_KILL {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((_, status))) => {
                    let killed = status.terminating_signal() == Some(Signal::KILL.as_raw());
                    left.killed = left.killed.saturating_add(killed.into());
                    left.all = left.all.saturating_add(1);
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
    left
}

/// Kills the children of this process.
pub(crate) fn kill_children() {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    for child in text.split_whitespace().filter_map(|child| child.parse().ok()) {
        // Nobody else takes in a child of ours, so its number means no other process.
        if let Some(child) = Pid::from_raw(child) {
            let _ = kill_process(child, Signal::KILL);
        }
    }
}

/// Which of two processes goes on after a birth.
pub(crate) enum ForkResult {
    /// The parent, with the child's number and a descriptor of it.
    Parent(Pid, OwnedFd),
    /// The child.
    Child,
}

/// What a child is born into.
pub(crate) struct CloneRequest<'fd> {
    /// New namespaces, as `CLONE_NEW*`.
    pub(crate) namespaces: u64,
    /// A control group of version 2.
    pub(crate) cgroup: Option<BorrowedFd<'fd>>,
}

/// The kernel's `struct clone_args`, in its third version.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const PIDFD: u64 = 0x1000; // CLONE_PIDFD
const DEFAULT_HANDLERS: u64 = 0x1_0000_0000; // CLONE_CLEAR_SIGHAND
const INTO_CGROUP: u64 = 0x2_0000_0000; // CLONE_INTO_CGROUP

/// Makes a child that is a copy of this process, in new namespaces and without its handlers.
///
/// # Errors
/// The kernel refused.
pub(crate) fn clone_process(request: &CloneRequest<'_>) -> Result<ForkResult, Errno> {
    let mut pidfd: RawFd = -1;
    let mut arguments = CloneArguments {
        flags: PIDFD | DEFAULT_HANDLERS | request.namespaces,
        pidfd: (&raw mut pidfd).expose_provenance() as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArguments::default()
    };
    if let Some(cgroup) = request.cgroup {
        arguments.flags |= INTO_CGROUP;
        arguments.cgroup = u64::try_from(cgroup.as_raw_fd()).map_err(|_| Errno::BADF)?;
    }
    // SAFETY: needs a pointer to as many readable bytes as the second argument says, and in it a
    // writable place for the descriptor: both are locals of this frame, whose address was exposed
    // by the cast. Without a new stack and without shared memory this is a fork; the child may go
    // on with everything because the process has one thread, so no lock can be held by another
    // (`executor_has_one_thread` would break).
    let pid =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<CloneArguments>()) };
    if checked(pid)? == 0 {
        return Ok(ForkResult::Child);
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::CHILD)?;
    // SAFETY: the kernel has just put a new descriptor there, which nobody else knows.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(ForkResult::Parent(pid, pidfd))
}

/// The same in no new namespaces, where the system may not let a process use the newer call:
/// containers rule it out, because what it asks for cannot be filtered.
///
/// # Errors
/// The kernel refused.
pub(crate) fn fork_into_cgroup(cgroup: Option<BorrowedFd<'_>>) -> Result<ForkResult, Errno> {
    let request = CloneRequest { namespaces: 0, cgroup };
    match clone_process(&request) {
        // A group that children are born into cannot be had otherwise.
        Err(Errno::NOSYS | Errno::PERM) if cgroup.is_none() => match fork()? {
            None => Ok(ForkResult::Child),
            Some(child) => Ok(ForkResult::Parent(child, pidfd_open(child, PidfdFlags::empty())?)),
        },
        born => born,
    }
}

/// Makes a plain copy of a process that has one thread; none in the copy.
///
/// # Errors
/// The kernel refused, or this process has more than one thread (`BUSY`).
pub(crate) fn fork_copy() -> Result<Option<Pid>, Errno> {
    // A folder has an entry in each of its folders, in itself and in the one above it. Who is alone
    // stays so: nobody else can start a thread.
    if stat("/proc/self/task")?.st_nlink == 3 { fork() } else { Err(Errno::BUSY) }
}

/// Makes a plain copy of this process, which has one thread; none in the copy.
///
/// # Errors
/// The kernel refused.
fn fork() -> Result<Option<Pid>, Errno> {
    // SAFETY: the child may go on with everything because the process has one thread.
    let pid = unsafe { libc::fork() };
    checked(pid.into())?;
    Ok(Pid::from_raw(pid))
}

/// Waits until one child has ended: how, as the kernel encodes it.
///
/// # Errors
/// It is not our child.
pub(crate) fn wait_for(child: Pid) -> Result<i32, Errno> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(status.as_raw()),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The most memory that any child that was waited for had loaded at once, in bytes.
pub(crate) fn children_peak_memory() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer leads to a place of this frame that is large enough.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid `rusage`, whether or not the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024)
}

/// A program, its words and its environment.
pub(crate) struct ExecRequest<'a> {
    pub(crate) path: &'a CStr,
    pub(crate) arguments: &'a [CString],
    pub(crate) environment: &'a [CString],
    /// Its processor time in seconds: when it is warned, and when it is killed.
    pub(crate) cpu: (u64, u64),
    /// Landlock rules that it binds itself to before it starts. It then ends with its parent, which
    /// no namespace ties it to.
    pub(crate) rules: Option<BorrowedFd<'a>>,
    /// The terminal whose foreground it becomes, as its session's leader has it.
    pub(crate) terminal: Option<BorrowedFd<'a>>,
}

/// What the parent and its half-born child share.
struct ExecShared {
    path: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    cpu: libc::rlimit,
    /// -1 if there are none.
    rules: RawFd,
    /// -1 if there is none.
    terminal: RawFd,
    failure: libc::c_int,
}

/// Starts a program in a child, in a group of its own. The child shares our memory until the
/// program takes over, and we stand still for so long: copying the memory would cost more than all
/// the rest.
///
/// # Errors
/// The child could not be made, or the program not be executed.
pub(crate) fn start_program(program: &ExecRequest<'_>) -> Result<Pid, Errno> {
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(program.arguments), pointers(program.environment));
    let mut shared = ExecShared {
        path: program.path.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        cpu: libc::rlimit { rlim_cur: program.cpu.0, rlim_max: program.cpu.1 },
        rules: program.rules.map_or(-1, |rules| rules.as_raw_fd()),
        terminal: program.terminal.map_or(-1, |terminal| terminal.as_raw_fd()),
        failure: 0,
    };
    let mut stack = Vec::<u128>::with_capacity(STACK_WORDS);
    // SAFETY: one past the end of the allocation, which has room for that many words.
    let top = unsafe { stack.as_mut_ptr().add(STACK_WORDS) };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: needs a stack for the child that grows down from `top`, is aligned and outlives the
    // child's use of it, and an argument that does so too. Both live in this frame, which stands
    // still until the child has left the memory (CLONE_VFORK). The child's function takes no lock
    // and allocates nothing. `exit_codes_and_signals_are_exact` would break.
    let pid = unsafe {
        libc::clone(become_program, top.cast(), flags, (&raw mut shared).cast::<libc::c_void>())
    };
    checked(pid.into())?;
    let pid = Pid::from_raw(pid).ok_or(Errno::CHILD)?;
    // SAFETY: reads a place of this frame that the child, now gone from our memory, may have
    // written; the compiler must not assume that it did not.
    let failure = unsafe { (&raw const shared.failure).read_volatile() };
    if failure == 0 {
        return Ok(pid);
    }
    let _ = wait_for(pid);
    Err(Errno::from_raw_os_error(failure))
}

/// Makes the group of this process, which has just begun, the one that the keys of a terminal are for. Signals
/// that its parent kept waiting come through again.
fn take_foreground(terminal: RawFd) {
    let all = [u64::MAX];
    let none = [0_u64];
    let set = |mask: &[u64; 1]| {
        // SAFETY: needs a pointer to a kernel's set of signals, of eight bytes; nothing is written to the third
        // argument, which is null. `the_program_is_in_the_foreground` would break.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                mask.as_ptr(),
                std::ptr::null_mut::<libc::c_void>(),
                size_of::<u64>(),
            )
        }
    };
    // A group in the background that does this would be stopped.
    let _ = set(&all);
    // SAFETY: takes nothing, and gives the number of this process's own group.
    let group = unsafe { libc::getpgrp() };
    // SAFETY: the request reads a number from a place that lives until the call returns.
    unsafe { libc::ioctl(terminal, libc::TIOCSPGRP, &raw const group) };
    let _ = set(&none);
}

/// The child's function: becomes the program, or leaves the reason why not.
extern "C" fn become_program(shared: *mut libc::c_void) -> libc::c_int {
    let shared = shared.cast::<ExecShared>();
    // SAFETY: `start_program` passes a place that lives on, and nobody else touches it meanwhile.
    let shared = unsafe { &mut *shared };
    // SAFETY: takes two numbers, and moves this process to a group of its own.
    unsafe { libc::setpgid(0, 0) };
    if shared.terminal >= 0 {
        take_foreground(shared.terminal);
    }
    // SAFETY: reads a value that lives on. Here and not in the parent, whose own work for the program
    // would count.
    let mut bound = unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const shared.cpu) };
    if bound == 0 && shared.rules >= 0 {
        // SAFETY: takes numbers alone.
        bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        // SAFETY: takes two numbers, and binds this thread alone.
        let number =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, shared.rules, 0_u32) };
        if number == -1 {
            bound = -1;
        }
    }
    if bound == -1 {
        shared.failure = last_error().raw_os_error();
        return 127;
    }
    // SAFETY: a path that ends in NUL and two lists of such that end in a null pointer, all alive.
    unsafe { libc::execve(shared.path, shared.arguments, shared.environment) };
    shared.failure = last_error().raw_os_error();
    127
}
