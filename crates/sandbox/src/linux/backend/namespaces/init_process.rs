//! The first process of a call.
//!
//! It finishes the view (its own `/proc` and home directory), raises the last walls around itself, waits for
//! its order, starts the programs, and then only waits: it takes in the orphans, and when all programs
//! have ended it kills whatever is left, says how it went, and ends. Should it be killed itself, the kernel
//! kills all the others. There always is such a process, because a program that were the first
//! itself would ignore signals that it does not handle.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatFs, chmod, open, stat, statat, statfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::{WaitOptions, fchdir, setsid, umask, wait};
use rustix::stdio::dup2_stdin;
use rustix::thread::{UnshareFlags, remove_capability_from_bounding_set};

use super::NamespaceSandbox;
use super::direct_writes;
use super::machine_files;
use super::memory_file_system::MOST_FILES;
use super::probe::{CommandFilters, MIN_PID_MAX, SETUP_CAPABILITIES};
use crate::linux::backend::capabilities;
use crate::linux::backend::init_process::InitOptions;
use crate::linux::backend::pipeline::{self, StartedPrograms};
use crate::linux::backend::program::{self, CallRequest};
use crate::linux::backend::system::{HOME, TMP};
use crate::linux::kernel::{self, LeftoverProcesses};
use crate::linux::landlock::{self, LandlockAccess};
use crate::linux::poll;
use crate::linux::protocol::{
    AtStep as _, DirectPaths, ExecutorError, InitReport, SetupError, Step, encode_init_result,
    socket,
};
use crate::linux::seccomp;

/// The size of the files that tell of the machine, with a page for each.
const MACHINE_BYTES: u64 = 1 << 20;
/// How many terminals a call may have open.
const TERMINALS: u32 = 64;
/// The memory that a file in memory takes besides its content: its inode and its name, in bytes.
const NAME_BYTES: u64 = 1_024;
/// Processes that count for an ordinary user besides the command's: the executor, this one, and the
/// one that stands by for the next call.
const OWN_PROCESSES: u64 = 3;

/// Lives the whole life of the first process. `line` is the executor's end of its line to this
/// process, `own_end` the other.
pub(super) fn run_init(
    view: &NamespaceSandbox,
    line: &OwnedFd,
    own_end: &OwnedFd,
    built: (InitOptions, Option<&DirectPaths>),
) -> ! {
    let _never_back = kernel::ExitOnDrop;
    let verdict = raise_sandbox(view, line, own_end, built)
        .and_then(|()| execute_request(view, own_end, built.1.is_some()));
    // So that nothing of the command runs any more when its end is told. The kernel would do the same when
    // this process ends, but only after taking down the mounts, which nobody needs to wait for.
    let left = kernel::kill_and_reap_all(kernel::kill_namespace);
    kernel::remove_all_items();
    let verdict = verdict.map(|end| InitReport { leftovers: left, ..end });
    // If nobody listens any more, nobody needs to know.
    let _ = socket::send(own_end.as_fd(), &encode_init_result(verdict), &[]);
    kernel::exit_now(0)
}

/// Builds and raises everything that does not depend on the order, outermost wall first.
fn raise_sandbox(
    view: &NamespaceSandbox,
    line: &OwnedFd,
    own_end: &OwnedFd,
    (built, direct): (InitOptions, Option<&DirectPaths>),
) -> Result<(), ExecutorError> {
    die_with_executor(line, own_end).at(Step::Lifeline)?;
    // Its programs are no group of the executor's. Made here and not for each of them, since the kernel
    // has more to do for a session than for a group.
    setsid().at(Step::Lifeline)?;
    open_tmp().at(Step::Tmp)?;
    view.cgroups.join().at(Step::Cgroup)?;
    hide_cgroup_path().at(Step::Cgroup)?;
    if view.pid_max {
        // This still is the host's `/proc`, but the number is the one of our own namespace.
        write_to("/proc/sys/kernel/pid_max", &MIN_PID_MAX.to_string()).at(Step::Limits)?;
    }
    mount_proc().at(Step::Proc)?;
    let layers = view.toolchains.open_for_call(built.tmp_bytes).at(Step::Toolchain)?;
    let has_sockets = view.root.directories.bound.is_none() && !layers.is_bound;
    let mut open = layers.opened;
    mount_terminals().at(Step::Terminals)?;
    // Held by the places over which they are mounted, and by nothing else.
    mount_memory(TMP, MACHINE_BYTES).at(Step::Machine)?;
    open.extend(machine_files::mount_machine_files(built.memory_bytes).at(Step::Machine)?);
    unmount(TMP, UnmountFlags::DETACH).at(Step::Machine)?;
    show_processes_alone().at(Step::Proc)?;
    mount_memory(HOME, built.tmp_bytes).at(Step::Tmp)?;
    bound_tmp(built.tmp_bytes).at(Step::Tmp)?;
    if built.ignores_tmp_links {
        ignore_tmp_links().at(Step::Tmp)?;
    }
    let written = if built.writes { Some(view.mount.open().at(Step::Staging)?) } else { None };
    if let Some(workspace) = &written {
        // In this call's own mounts: no other call's workspace becomes writable by it.
        kernel::make_writable(workspace.as_fd()).at(Step::Staging)?;
    }
    let staged = match has_sockets {
        true => LandlockAccess::Change,
        false => LandlockAccess::ChangeStaged,
    };
    open.extend(written.map(|fd| (fd, staged)));
    if let Some(direct) = direct {
        open.extend(direct_writes::open_writable(&view.mount, direct)?);
    }
    raise_landlock(view, &open).at(Step::Landlock)?;
    // Before everything that is open is closed.
    drop(open);
    umask(Mode::from_raw_mode(0o022));
    drop_capabilities().at(Step::Capabilities)?;
    let CommandFilters { with_sockets, without_sockets } = &view.filters;
    kernel::attach_filter(if has_sockets { with_sockets } else { without_sockets })
        .at(Step::Filter)?;
    // In the place of the executor's own socket, which it stands on.
    dup2_stdin(&view.empty_stdin).at(Step::Streams)?;
    program::close_all_but(own_end).at(Step::Descriptors)?;
    Ok(())
}

/// Waits for the order and carries it out, behind walls that already stand.
fn execute_request(
    view: &NamespaceSandbox,
    own_end: &OwnedFd,
    direct: bool,
) -> Result<InitReport, ExecutorError> {
    let order = program::receive_request(own_end)?;
    // A call before it may have closed it since.
    open_tmp().at(Step::Tmp)?;
    // Opened here and not by the executor: a descriptor of the executor's belongs to its mounts, and
    // going up from there would lead past those of this call.
    view.mount.open().and_then(fchdir).at(Step::Folder)?;
    if !order.wait_for_start(own_end).at(Step::Order)? {
        return Err(SetupError { step: Step::Order, errno: Errno::CANCELED }.into());
    }
    let CallRequest { run, streams, .. } = order;
    let folder = program::open_cwd(&run).at(Step::Folder)?;
    let host_device = |seen| view.root.directories.host_device(seen);
    program::check_programs(&run, folder.as_ref(), &host_device)?;
    let ends = pipeline::connect(&run, streams)?;
    folder.map_or(Ok(()), fchdir).at(Step::Folder)?;
    if direct {
        // Not before: it takes away the call that opens beneath a folder, because its permissions
        // cannot be looked at. Those above are plain.
        let filter = seccomp::direct_write_filter().map_err(|seccomp::TooLong| Errno::TOOBIG);
        filter.and_then(|filter| kernel::attach_filter(&filter)).at(Step::Filter)?;
    }
    program::set_limits(&run.limits, Some(OWN_PROCESSES)).at(Step::Limits)?;
    let tmp = statfs(TMP).at(Step::Tmp)?;
    wait_for_programs(pipeline::start_programs(&run, ends, None, &host_device)?, &tmp)
}

/// Makes sure that this process ends with the executor, also if that ended just now.
fn die_with_executor(line: &OwnedFd, own_end: &OwnedFd) -> Result<(), Errno> {
    program::close_range(line.as_raw_fd().unsigned_abs(), line.as_raw_fd().unsigned_abs())?;
    kernel::die_with_parent()?;
    // Whoever ends closes its descriptors first and then signals its children. So either the line
    // is still open, and the signal is yet to come, or it is closed.
    let mut end = [PollFd::new(own_end, PollFlags::empty())];
    if poll::wait(&mut end, Some(Duration::ZERO))? > 0 { Err(Errno::CANCELED) } else { Ok(()) }
}

/// Hides the path of the control group, which would name the user's session. Within the sandbox of an agent
/// none can be made: that sandbox has one, in which the path shows nothing of the user's.
fn hide_cgroup_path() -> Result<(), Errno> {
    match kernel::unshare(UnshareFlags::NEWCGROUP) {
        Err(Errno::NOSPC) => Ok(()),
        made => made,
    }
}

/// What a `/proc` never has: writing, privileges of files, devices, programs.
const PROC_FLAGS: MountFlags =
    MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC).union(MountFlags::RDONLY);

/// The `/proc` of this call's processes, as a whole for the moment.
fn mount_proc() -> Result<(), Errno> {
    mount(c"proc", c"/proc", c"proc", PROC_FLAGS, c"")
}

/// Leaves to `/proc` this call's processes and what was mounted in it, and nothing else: no settings
/// of the kernel, no command line of the machine, no keys, no memory.
fn show_processes_alone() -> Result<(), Errno> {
    mount_remount(c"/proc", PROC_FLAGS, c"subset=pid")?;
    match statat(CWD, "/proc/sys", AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        _ => Err(Errno::NOTSUP),
    }
}

/// Terminals that are private to this call. Their owner is the user who opens them.
fn mount_terminals() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let settings = CString::new(format!("ptmxmode=0666,mode=0600,max={TERMINALS}"));
    let settings = settings.map_err(|_| Errno::INVAL)?;
    mount(c"devpts", c"/dev/pts", c"devpts", flags, settings.as_c_str())
}

/// Sets the size of the `/tmp` that the calls of a run share. Where more lies in it than that, no more fits into it.
fn bound_tmp(bytes: u64) -> Result<(), Errno> {
    let found = statfs(TMP)?;
    let page = found.f_bsize.unsigned_abs();
    // A size of 0 would mean no bound at all.
    let pages = bytes.div_ceil(page).max(used_blocks(&found)).max(1);
    if found.f_blocks == pages {
        return Ok(());
    }
    let settings = CString::new(format!("size={}", pages.saturating_mul(page)));
    let settings = settings.map_err(|_| Errno::INVAL)?;
    match mount_remount(TMP, MountFlags::NOSUID | MountFlags::NODEV, settings.as_c_str()) {
        // A part that runs beside it writes there meanwhile.
        Err(Errno::INVAL) => Ok(()),
        bounded => bounded,
    }
}

/// Gives the shared `/tmp` back its permissions, which any call may take from it: its processes own it.
fn open_tmp() -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o1777);
    match Mode::from_raw_mode(stat(TMP)?.st_mode) == mode {
        true => Ok(()),
        false => chmod(TMP, mode),
    }
}

/// Has links in the shared `/tmp` lead nowhere, in the mounts of this call.
fn ignore_tmp_links() -> Result<(), Errno> {
    // The kernel takes it since Linux 5.10 (mount(2)).
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOSYMFOLLOW;
    mount_remount(TMP, MountFlags::BIND | flags, c"")
}

/// How much memory is used by what calls before left in `/tmp`, in bytes: its content and its names.
///
/// # Errors
/// It cannot be looked at.
pub(super) fn tmp_memory() -> Result<u64, Errno> {
    let found = statfs(TMP)?;
    let content = used_blocks(&found).saturating_mul(found.f_bsize.unsigned_abs());
    Ok(content.saturating_add(used_names(&found).saturating_mul(NAME_BYTES)))
}

fn used_blocks(found: &StatFs) -> u64 {
    found.f_blocks.saturating_sub(found.f_bfree)
}

pub(super) fn mount_memory(place: &str, bytes: u64) -> Result<(), Errno> {
    // A size of 0 would mean no bound at all.
    let size = bytes.max(1);
    let settings = format!("mode=1777,size={size},nr_inodes={MOST_FILES}");
    let settings = CString::new(settings).map_err(|_| Errno::INVAL)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(c"tmp", place, c"tmpfs", flags, settings.as_c_str())
}

/// `open` is what a call may change of the workspace.
fn raise_landlock(
    view: &NamespaceSandbox,
    open: &[(OwnedFd, LandlockAccess)],
) -> Result<(), Errno> {
    let find = |path: &str| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let (proc, tmp, home) = (find("/proc")?, find(TMP)?, find(HOME)?);
    let mut rules: Vec<(BorrowedFd<'_>, LandlockAccess)> =
        view.root.access.iter().map(|(file, reach)| (file.as_fd(), *reach)).collect();
    rules.push((proc.as_fd(), LandlockAccess::Read));
    rules.push((tmp.as_fd(), LandlockAccess::Change));
    rules.push((home.as_fd(), LandlockAccess::Change));
    rules.extend(open.iter().map(|(file, reach)| (file.as_fd(), *reach)));
    landlock::restrict(view.abi, &rules)
}

fn drop_capabilities() -> Result<(), Errno> {
    for capability in SETUP_CAPABILITIES {
        remove_capability_from_bounding_set(capability)?;
    }
    capabilities::drop_all()
}

/// Takes in every orphan until all programs have ended.
fn wait_for_programs(
    mut started: StartedPrograms,
    tmp: &StatFs,
) -> Result<InitReport, ExecutorError> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) => {
                if let Some(statuses) = started.record_exit(ended, status.as_raw()) {
                    let memory = kernel::children_peak_memory();
                    let (tmp_full, tmp_used) = tmp_usage(tmp);
                    return Ok(InitReport {
                        statuses,
                        memory,
                        tmp_full,
                        tmp_used,
                        leftovers: LeftoverProcesses::default(),
                    });
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(SetupError { step: Step::Silence, errno }.into()),
        }
    }
}

/// Whether no more fits into `/tmp` or the home directory (bytes or names are used up), which was not so before, and
/// whether more lies in them than before.
fn tmp_usage(before: &StatFs) -> (bool, bool) {
    let (Ok(tmp), Ok(home)) = (statfs(TMP), statfs(HOME)) else {
        // Nobody knows.
        return (false, true);
    };
    let is_full = |found: &StatFs| found.f_bfree == 0 || found.f_ffree == 0;
    let has_more = used_names(&tmp) > used_names(before) || tmp.f_bfree < before.f_bfree;
    // The directory itself is a name.
    (is_full(&home) || is_full(&tmp) && has_more, has_more || used_names(&home) > 1)
}

/// How many names a file system holds.
fn used_names(found: &StatFs) -> u64 {
    found.f_files.saturating_sub(found.f_ffree)
}

fn write_to(path: &str, text: &str) -> Result<(), Errno> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text.as_bytes()).map(|_| ())
}
