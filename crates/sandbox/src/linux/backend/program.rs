//! From an order to a running program: what is the same behind all walls, for each program of a
//! command.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat2, statat};
use rustix::io::Errno;
use rustix::process::{Pid, Resource};

use super::{host_path, rlimits};
use crate::FileIdentity;
use crate::linux::kernel;
use crate::linux::poll;
use crate::linux::protocol::{
    AtStep as _, CommandMessage, ExecutorError, ListIndex, SetupError, StageMessage, StartGate,
    Step, socket,
};

/// The order of a call.
pub(super) struct CallRequest {
    pub(super) run: CommandMessage,
    start_gate: StartGate,
    /// The streams of the command.
    pub(super) streams: [OwnedFd; 3],
}

/// Waits for the order of a call, which comes with the program's streams.
///
/// # Errors
/// None comes, or none that can be read.
pub(super) fn receive_request(own_end: &OwnedFd) -> Result<CallRequest, ExecutorError> {
    let refused = |errno| SetupError { step: Step::Order, errno };
    let message = socket::receive(own_end.as_fd()).at(Step::Order)?;
    let message = message.ok_or_else(|| refused(Errno::CANCELED))?;
    let run = CommandMessage::decode(&message.bytes).map_err(|_| refused(Errno::BADMSG))?;
    let [begin, input, output, errors] = <[OwnedFd; 4]>::try_from(message.descriptors)
        .map_err(|_| SetupError { step: Step::Streams, errno: Errno::BADF })?;
    Ok(CallRequest { run, start_gate: begin.into(), streams: [input, output, errors] })
}

impl CallRequest {
    /// Waits until it may be carried out; false if it never may, because the executor hangs up or is gone.
    /// Whoever gave the order writes down meanwhile that it is carried out.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(super) fn wait_for_start(&self, own_end: &OwnedFd) -> Result<bool, Errno> {
        let mut files =
            [PollFd::new(&self.start_gate, PollFlags::IN), PollFd::new(own_end, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll::wait(&mut files, None))?;
        // One order is all that ever comes.
        Ok(files[1].revents().is_empty())
    }
}

/// Finds the working folder from the workspace, where this process stands; none if it stays there.
///
/// # Errors
/// It is not there, or not in the workspace.
pub(super) fn open_cwd(run: &CommandMessage) -> Result<Option<OwnedFd>, Errno> {
    if run.cwd.is_empty() {
        return Ok(None);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, host_path::bytes_to_path(&run.cwd), flags, Mode::empty(), beneath).map(Some)
}

/// The items of a list with their numbers, as they are told to whoever has the same list.
pub(super) fn enumerate_indices<T>(items: &[T]) -> impl Iterator<Item = (ListIndex, &T)> {
    (0..=ListIndex::MAX).zip(items)
}

/// Each program must be the very file that was decided on, with the content that was decided on.
///
/// # Errors
/// One is another, or is not there.
pub(super) fn check_programs(
    run: &CommandMessage,
    cwd: Option<&OwnedFd>,
    host_device: &dyn Fn(u64) -> u64,
) -> Result<(), ExecutorError> {
    let cwd = cwd.map_or(CWD, |cwd| cwd.as_fd());
    enumerate_indices(&run.stages)
        .try_for_each(|(number, stage)| check_program(number, stage, cwd, host_device))
}

/// The same for one of them.
///
/// # Errors
/// It is another one, or is not there.
pub(super) fn check_program(
    number: ListIndex,
    stage: &StageMessage,
    cwd: BorrowedFd<'_>,
    host_device: &dyn Fn(u64) -> u64,
) -> Result<(), ExecutorError> {
    let (path, identity) = &stage.program;
    match statat(cwd, host_path::bytes_to_path(path), AtFlags::empty()) {
        Ok(found) if is_same(&found, identity, host_device) => Ok(()),
        Ok(_) => Err(ExecutorError::ProgramChanged(number)),
        Err(_) => Err(ExecutorError::ProgramMissing(number)),
    }
}

/// Whether a file is the one that was decided on. One that is seen through a layer has another device than on the host.
fn is_same(found: &Stat, decided: &FileIdentity, host_device: &dyn Fn(u64) -> u64) -> bool {
    let here = identity_of(found);
    here == *decided || FileIdentity { device: host_device(here.device), ..here } == *decided
}

fn identity_of(found: &Stat) -> FileIdentity {
    let nanos = |nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
    FileIdentity {
        device: found.st_dev,
        inode: found.st_ino,
        size: found.st_size.unsigned_abs(),
        modified: (found.st_mtime, nanos(found.st_mtime_nsec)),
        changed: (found.st_ctime, nanos(found.st_ctime_nsec)),
    }
}

/// Sets the limits that the kernel keeps for each process, but for processor time, which is set for
/// the program alone. `own` is how many processes count besides
/// the command's, where the kernel counts those of this run alone.
///
/// # Errors
/// The kernel refused.
pub(super) fn set_limits(limits: &ProcessLimits, number: Option<u64>) -> Result<(), Errno> {
    rlimits::lower_limits(&[
        (Resource::Nofile, limits.open_files, limits.open_files),
        (Resource::Fsize, limits.file_bytes, limits.file_bytes),
    ])?;
    let Some(number) = number else { return Ok(()) };
    let processes = limits.processes.saturating_add(number);
    rlimits::lower_limits(&[(Resource::Nproc, processes, processes)])
}

/// Starts a program on the streams that this process has. With `rules` it binds itself to them first.
///
/// # Errors
/// It could not be started.
pub(super) fn start_stage(
    number: ListIndex,
    stage: &StageMessage,
    limits: &ProcessLimits,
    rules: Option<BorrowedFd<'_>>,
) -> Result<Pid, ExecutorError> {
    let program = c_string(&stage.program.0)?;
    let arguments: Vec<CString> = stage.arguments.iter().map(c_string).collect::<Result<_, _>>()?;
    let environment: Vec<CString> =
        stage.environment.iter().map(c_string).collect::<Result<_, _>>()?;
    // The kernel counts in seconds and signals at the first number; at the second it kills.
    let cpu = limits.cpu_ms.div_ceil(1_000);
    let most = rlimits::hard_limit(Resource::Cpu);
    let program = kernel::ExecRequest {
        path: &program,
        arguments: &arguments,
        environment: &environment,
        cpu: (cpu.min(most), cpu.saturating_add(2).min(most)),
        rules,
        terminal: None,
    };
    kernel::start_program(&program).map_err(|errno| ExecutorError::NotExecutable(number, errno))
}

fn c_string(bytes: &Vec<u8>) -> Result<CString, SetupError> {
    CString::new(bytes.as_slice())
        .map_err(|_| SetupError { step: Step::Order, errno: Errno::INVAL })
}

pub(super) fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    kernel::close_range(first..=last)
}

/// Closes all but the streams and one more, which closes itself when a program takes over.
pub(super) fn close_all_but(kept: &OwnedFd) -> Result<(), Errno> {
    let kept = kept.as_raw_fd().unsigned_abs();
    close_range(3, kept.saturating_sub(1))?;
    close_range(kept.saturating_add(1), u32::MAX)
}
