//! From an order to a running program: what is the same behind all walls.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use capsule_core::confinement::ProcessLimits;
use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;
use rustix::process::{Pid, Resource};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::rlimits;
use crate::FileIdentity;
use crate::kernel;
use crate::protocol::{At as _, Failed, Refusal, Run, Step};

/// The program must be the very file that was decided on, with the content that was decided on.
///
/// # Errors
/// It is another one, or is not there.
pub(super) fn check(run: &Run) -> Result<(), Refusal> {
    let (path, identity) = &run.program;
    match statat(CWD, self::path(path), AtFlags::empty()) {
        Ok(found) if now(&found) == *identity => Ok(()),
        Ok(_) => Err(Refusal::ProgramChanged),
        Err(_) => Err(Refusal::ProgramMissing),
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

/// Starts the program on the streams it was given. They stay its own: this process gives its copies
/// away, lest a pipe look open that nobody writes to. With `rules` the program binds itself to them
/// first.
///
/// # Errors
/// It could not be started.
pub(super) fn start(
    run: &Run,
    streams: Vec<OwnedFd>,
    rules: Option<BorrowedFd<'_>>,
) -> Result<Pid, Refusal> {
    let [input, output, errors] = <[OwnedFd; 3]>::try_from(streams)
        .map_err(|_| Failed { step: Step::Streams, errno: Errno::BADF })?;
    let connected =
        dup2_stdin(&input).and_then(|()| dup2_stdout(&output)).and_then(|()| dup2_stderr(&errors));
    connected.at(Step::Streams)?;
    drop((input, output, errors));
    let program = text(&run.program.0)?;
    let arguments: Vec<CString> = run.arguments.iter().map(text).collect::<Result<_, _>>()?;
    let environment: Vec<CString> = run.environment.iter().map(text).collect::<Result<_, _>>()?;
    // The kernel counts in seconds and signals at the first number; at the second it kills.
    let cpu = run.limits.cpu_ms.div_ceil(1_000);
    let most = rlimits::most(Resource::Cpu);
    let program = kernel::Program {
        path: &program,
        arguments: &arguments,
        environment: &environment,
        cpu: (cpu.min(most), cpu.saturating_add(2).min(most)),
        rules,
    };
    let started = kernel::start_program(&program).map_err(Refusal::NotExecutable)?;
    close_range(0, 2).at(Step::Streams)?;
    Ok(started)
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

/// A path as the bytes that came over the socket.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
