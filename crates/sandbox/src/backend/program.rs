//! From an order to a running program: what is the same behind all walls, for each program of a
//! command.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat2, statat};
use rustix::io::Errno;
use rustix::process::{Pid, Resource};

use super::pipeline::numbered;
use super::{place, rlimits};
use crate::FileIdentity;
use crate::kernel;
use crate::protocol::{At as _, Begin, Failed, Number, Refusal, Run, Stage, Step, socket};
use crate::waiting;

/// The order of a call.
pub(super) struct Order {
    pub(super) run: Run,
    begin: Begin,
    /// The streams of the command.
    pub(super) streams: [OwnedFd; 3],
}

/// Waits for the order of a call, which comes with the program's streams.
///
/// # Errors
/// None comes, or none that can be read.
pub(super) fn order(own_end: &OwnedFd) -> Result<Order, Refusal> {
    let refused = |errno| Failed { step: Step::Order, errno };
    let message = socket::receive(own_end.as_fd()).at(Step::Order)?;
    let message = message.ok_or_else(|| refused(Errno::CANCELED))?;
    let run = Run::decode(&message.bytes).map_err(|_| refused(Errno::BADMSG))?;
    let [begin, input, output, errors] = <[OwnedFd; 4]>::try_from(message.descriptors)
        .map_err(|_| Failed { step: Step::Streams, errno: Errno::BADF })?;
    Ok(Order { run, begin: begin.into(), streams: [input, output, errors] })
}

impl Order {
    /// Waits until it may be carried out; false if it never may, because the executor hangs up or is gone.
    /// Whoever gave the order writes down meanwhile that it is carried out.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(super) fn may_begin(&self, own_end: &OwnedFd) -> Result<bool, Errno> {
        let mut files =
            [PollFd::new(&self.begin, PollFlags::IN), PollFd::new(own_end, PollFlags::IN)];
        rustix::io::retry_on_intr(|| waiting::wait(&mut files, None))?;
        // One order is all that ever comes.
        Ok(files[1].revents().is_empty())
    }
}

/// Finds the working folder from the workspace, where this process stands; none if it stays there.
///
/// # Errors
/// It is not there, or not in the workspace.
pub(super) fn folder(run: &Run) -> Result<Option<OwnedFd>, Errno> {
    if run.folder.is_empty() {
        return Ok(None);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, place::path(&run.folder), flags, Mode::empty(), beneath).map(Some)
}

/// Each program must be the very file that was decided on, with the content that was decided on.
///
/// # Errors
/// One is another, or is not there.
pub(super) fn check_all(run: &Run) -> Result<(), Refusal> {
    numbered(&run.stages).try_for_each(|(number, stage)| check(number, stage))
}

/// The same for one of them.
///
/// # Errors
/// It is another one, or is not there.
pub(super) fn check(number: Number, stage: &Stage) -> Result<(), Refusal> {
    let (path, identity) = &stage.program;
    match statat(CWD, place::path(path), AtFlags::empty()) {
        Ok(found) if now(&found) == *identity => Ok(()),
        Ok(_) => Err(Refusal::ProgramChanged(number)),
        Err(_) => Err(Refusal::ProgramMissing(number)),
    }
}

fn now(found: &Stat) -> FileIdentity {
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
pub(super) fn set_limits(limits: &ProcessLimits, own: Option<u64>) -> Result<(), Errno> {
    rlimits::lower(&[
        (Resource::Nofile, limits.open_files, limits.open_files),
        (Resource::Fsize, limits.file_bytes, limits.file_bytes),
    ])?;
    let Some(own) = own else { return Ok(()) };
    let processes = limits.processes.saturating_add(own);
    rlimits::lower(&[(Resource::Nproc, processes, processes)])
}

/// Starts a program on the streams that this process has. With `rules` it binds itself to them first.
///
/// # Errors
/// It could not be started.
pub(super) fn start(
    number: Number,
    stage: &Stage,
    limits: &ProcessLimits,
    rules: Option<BorrowedFd<'_>>,
) -> Result<Pid, Refusal> {
    let program = text(&stage.program.0)?;
    let arguments: Vec<CString> = stage.arguments.iter().map(text).collect::<Result<_, _>>()?;
    let environment: Vec<CString> = stage.environment.iter().map(text).collect::<Result<_, _>>()?;
    // The kernel counts in seconds and signals at the first number; at the second it kills.
    let cpu = limits.cpu_ms.div_ceil(1_000);
    let most = rlimits::most(Resource::Cpu);
    let program = kernel::Program {
        path: &program,
        arguments: &arguments,
        environment: &environment,
        cpu: (cpu.min(most), cpu.saturating_add(2).min(most)),
        rules,
    };
    kernel::start_program(&program).map_err(|errno| Refusal::NotExecutable(number, errno))
}

fn text(bytes: &Vec<u8>) -> Result<CString, Failed> {
    CString::new(bytes.as_slice()).map_err(|_| Failed { step: Step::Order, errno: Errno::INVAL })
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
