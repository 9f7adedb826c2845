//! The first process of a call: it raises the walls of its backend, if there are any, and carries out
//! the order. When all programs have ended, or the executor hangs up or is gone, the call is over.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Duration;

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, WaitOptions, fchdir, getpid, pidfd_open, set_child_subreaper, setsid, umask,
    wait,
};
use rustix::stdio::dup2_stdin;

use super::CallResources;
use crate::linux::backend::capabilities;
use crate::linux::backend::pipeline::{self, StartedPrograms};
use crate::linux::backend::program::{self, CallRequest};
use crate::linux::kernel::{self, LeftoverProcesses};
use crate::linux::landlock;
use crate::linux::poll;
use crate::linux::protocol::{
    AtStep as _, ExecutorError, InitReport, SetupError, Step, encode_init_result, socket,
};

/// How long orphans may stand in the table of processes before they are taken in.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// What the first process holds of the executor.
pub(in crate::linux::backend) struct InitSockets<'e> {
    /// The executor's end of the line, which it gives up.
    pub(super) executor_end: &'e OwnedFd,
    /// Its own end.
    pub(super) own_end: &'e OwnedFd,
    /// How many processes the user has besides, where they count.
    pub(super) other_processes: Option<u64>,
}

/// Lives the whole life of the first process: `raise` puts up the walls, `end` ends everything behind
/// them, so that nothing of the command runs any more when its end is told.
pub(in crate::linux::backend) fn run_init<W>(
    resources: &CallResources,
    ends: &InitSockets<'_>,
    bound: ProgramConfinement,
    raise: impl FnOnce() -> Result<W, ExecutorError>,
    end: impl FnOnce(W) -> LeftoverProcesses,
) {
    let verdict = match raise_sandbox(resources, ends, raise) {
        Ok(walls) => {
            let verdict = execute_request(ends.own_end, ends.other_processes, bound);
            let left = end(walls);
            verdict.map(|end| end.map(|end| InitReport { leftovers: left, ..end }))
        }
        Err(refusal) => Err(refusal),
    };
    // One that was ended has nothing to say. If nobody listens any more, nobody needs to know.
    if let Some(verdict) = verdict.transpose() {
        let _ = socket::send(ends.own_end.as_fd(), &encode_init_result(verdict), &[]);
    }
}

/// Raises everything that does not depend on the order.
fn raise_sandbox<W>(
    resources: &CallResources,
    ends: &InitSockets<'_>,
    raise: impl FnOnce() -> Result<W, ExecutorError>,
) -> Result<W, ExecutorError> {
    let executors = ends.executor_end.as_raw_fd().unsigned_abs();
    program::close_range(executors, executors).at(Step::Lifeline)?;
    set_child_subreaper(Some(getpid())).at(Step::Lifeline)?;
    // Its programs are no group of the executor's.
    setsid().at(Step::Lifeline)?;
    kernel::reset_signals().at(Step::Signals)?;
    resources.cgroups.join().at(Step::Cgroup)?;
    capabilities::drop_all().at(Step::Capabilities)?;
    umask(Mode::from_raw_mode(0o022));
    let walls = raise()?;
    // In the place of the executor's own socket, which it stands on.
    dup2_stdin(&resources.empty_stdin).at(Step::Streams)?;
    fchdir(&resources.workspace).at(Step::Workspace)?;
    program::close_all_but(ends.own_end).at(Step::Descriptors)?;
    Ok(walls)
}

/// How a program is bound before it starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::linux::backend) enum ProgramConfinement {
    /// Once more, so that it reaches no process above it.
    Again,
    /// Not at all, on a machine that can bind nothing.
    Unconfined,
}

/// Waits for the order and carries it out, behind walls that already stand, if any do; none if it is
/// ended.
fn execute_request(
    own_end: &OwnedFd,
    others: Option<u64>,
    bound: ProgramConfinement,
) -> Result<Option<InitReport>, ExecutorError> {
    let order = program::receive_request(own_end)?;
    if !order.wait_for_start(own_end).at(Step::Order)? {
        return Ok(None); // it is over before it began
    }
    let CallRequest { run, streams, .. } = order;
    let folder = program::open_cwd(&run).at(Step::Folder)?;
    program::check_programs(&run, folder.as_ref(), &|seen| seen)?;
    let ends = pipeline::connect(&run, streams)?;
    folder.map_or(Ok(()), fchdir).at(Step::Folder)?;
    let (rules, limits) = match bound {
        ProgramConfinement::Again => {
            // The private folder is all that can be written to.
            let file_bytes = run.limits.file_bytes.min(run.limits.tmp_bytes);
            // While there is no limit of open files yet.
            let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            let rules =
                root.and_then(|root| landlock::scope_ruleset(root.as_fd())).at(Step::Landlock)?;
            (Some(rules), ProcessLimits { file_bytes, ..run.limits })
        }
        ProgramConfinement::Unconfined => (None, run.limits),
    };
    program::set_limits(&limits, others.map(|others| others.saturating_add(1))).at(Step::Limits)?;
    let started =
        pipeline::start_programs(&run, ends, rules.as_ref().map(AsFd::as_fd), &|seen| seen)?;
    drop(rules);
    wait_for_programs(started, own_end)
}

/// Takes in every orphan until all programs have ended; none if the executor hangs up.
fn wait_for_programs(
    mut started: StartedPrograms,
    own_end: &OwnedFd,
) -> Result<Option<InitReport>, ExecutorError> {
    let silence = |errno| SetupError { step: Step::Silence, errno };
    // One at a time: however many they are, the limit of open files holds for this process too.
    let mut handle: Option<(Pid, OwnedFd)> = None;
    loop {
        // So many at once and no more: whoever makes orphans without end must not keep the executor from
        // being heard.
        let mut left_over = true;
        for _ in 0..kernel::REAPED_PER_KILL {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((ended, status))) => {
                    if let Some(statuses) = started.record_exit(ended, status.as_raw()) {
                        let memory = kernel::children_peak_memory();
                        let (tmp_full, tmp_used, left) =
                            (false, false, LeftoverProcesses::default());
                        return Ok(Some(InitReport {
                            statuses,
                            memory,
                            tmp_full,
                            tmp_used,
                            leftovers: left,
                        }));
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) => {
                    left_over = false;
                    break;
                }
                Err(errno) => return Err(silence(errno).into()),
            }
        }
        let pause = if left_over { Duration::ZERO } else { REAP_INTERVAL };
        let running = started.any_running().ok_or_else(|| silence(Errno::CHILD))?;
        let held = match handle.take().filter(|(pid, _)| *pid == running) {
            Some(held) => held,
            None => (running, pidfd_open(running, PidfdFlags::empty()).map_err(silence)?),
        };
        let (_, ending) = handle.insert(held);
        let mut files = [PollFd::new(own_end, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
        match poll::wait(&mut files, Some(pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(silence(errno).into()),
        }
        // One order is all that ever comes.
        if !files[0].revents().is_empty() {
            return Ok(None);
        }
    }
}
