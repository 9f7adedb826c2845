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

use super::Seat;
use crate::backend::capabilities;
use crate::backend::pipeline::{self, Started};
use crate::backend::program::{self, Order};
use crate::kernel::{self, Left};
use crate::landlock;
use crate::protocol::{At as _, End, Failed, Refusal, Step, encode_verdict, socket};
use crate::waiting;

/// How long orphans may stand in the table of processes before they are taken in.
const TAKING_IN: Duration = Duration::from_millis(100);

/// What the first process holds of the executor.
pub(in crate::backend) struct Ends<'e> {
    /// The executor's end of the line, which it gives up.
    pub(super) line: &'e OwnedFd,
    /// Its own end.
    pub(super) own: &'e OwnedFd,
    /// How many processes the user has besides, where they count.
    pub(super) others: Option<u64>,
}

/// Lives the whole life of the first process: `raise` puts up the walls, `end` ends everything behind
/// them, so that nothing of the command runs any more when its end is told.
pub(in crate::backend) fn live<W>(
    seat: &Seat,
    ends: &Ends<'_>,
    bound: Bound,
    raise: impl FnOnce() -> Result<W, Refusal>,
    end: impl FnOnce(W) -> Left,
) {
    let verdict = match set_up(seat, ends, raise) {
        Ok(walls) => {
            let verdict = obey(ends.own, ends.others, bound);
            let left = end(walls);
            verdict.map(|end| end.map(|end| End { left, ..end }))
        }
        Err(refusal) => Err(refusal),
    };
    // One that was ended has nothing to say. If nobody listens any more, nobody needs to know.
    if let Some(verdict) = verdict.transpose() {
        let _ = socket::send(ends.own.as_fd(), &encode_verdict(verdict), &[]);
    }
}

/// Raises everything that does not depend on the order.
fn set_up<W>(
    seat: &Seat,
    ends: &Ends<'_>,
    raise: impl FnOnce() -> Result<W, Refusal>,
) -> Result<W, Refusal> {
    let executors = ends.line.as_raw_fd().unsigned_abs();
    program::close_range(executors, executors).at(Step::Lifeline)?;
    set_child_subreaper(Some(getpid())).at(Step::Lifeline)?;
    // Its programs are no group of the executor's.
    setsid().at(Step::Lifeline)?;
    kernel::default_signals().at(Step::Signals)?;
    seat.cgroups.join().at(Step::Cgroup)?;
    capabilities::drop_all().at(Step::Capabilities)?;
    umask(Mode::from_raw_mode(0o022));
    let walls = raise()?;
    // In the place of the executor's own socket, which it stands on.
    dup2_stdin(&seat.nothing).at(Step::Streams)?;
    fchdir(&seat.workspace).at(Step::Workspace)?;
    program::close_all_but(ends.own).at(Step::Descriptors)?;
    Ok(walls)
}

/// How a program is bound before it starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::backend) enum Bound {
    /// Once more, so that it reaches no process above it.
    Anew,
    /// Not at all, on a machine that can bind nothing.
    Nowhere,
}

/// Waits for the order and carries it out, behind walls that already stand, if any do; none if it is
/// ended.
fn obey(own_end: &OwnedFd, others: Option<u64>, bound: Bound) -> Result<Option<End>, Refusal> {
    let order = program::order(own_end)?;
    if !order.may_begin(own_end).at(Step::Order)? {
        return Ok(None); // it is over before it began
    }
    let Order { run, streams, .. } = order;
    program::check_all(&run)?;
    let folder = program::folder(&run).at(Step::Folder)?;
    let ends = pipeline::connect(&run, streams)?;
    folder.map_or(Ok(()), fchdir).at(Step::Folder)?;
    let (rules, limits) = match bound {
        Bound::Anew => {
            // The private folder is all that can be written to.
            let file_bytes = run.limits.file_bytes.min(run.limits.tmp_bytes);
            // While there is no limit of open files yet.
            let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            let rules = root.and_then(|root| landlock::scope(root.as_fd())).at(Step::Landlock)?;
            (Some(rules), ProcessLimits { file_bytes, ..run.limits })
        }
        Bound::Nowhere => (None, run.limits),
    };
    program::set_limits(&limits, others.map(|others| others.saturating_add(1))).at(Step::Limits)?;
    let started = pipeline::start(&run, ends, rules.as_ref().map(AsFd::as_fd))?;
    drop(rules);
    wait_for_programs(started, own_end)
}

/// Takes in every orphan until all programs have ended; none if the executor hangs up.
fn wait_for_programs(mut started: Started, own_end: &OwnedFd) -> Result<Option<End>, Refusal> {
    let silence = |errno| Failed { step: Step::Silence, errno };
    // One at a time: however many they are, the limit of open files holds for this process too.
    let mut handle: Option<(Pid, OwnedFd)> = None;
    loop {
        // So many at once and no more: whoever makes orphans without end must not keep the executor from
        // being heard.
        let mut left_over = true;
        for _ in 0..kernel::TAKEN_IN {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((ended, status))) => {
                    if let Some(statuses) = started.note(ended, status.as_raw()) {
                        let memory = kernel::memory_of_children();
                        let (tmp_full, tmp_used, left) = (false, false, Left::default());
                        return Ok(Some(End { statuses, memory, tmp_full, tmp_used, left }));
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
        let pause = if left_over { Duration::ZERO } else { TAKING_IN };
        let running = started.running().ok_or_else(|| silence(Errno::CHILD))?;
        let held = match handle.take().filter(|(pid, _)| *pid == running) {
            Some(held) => held,
            None => (running, pidfd_open(running, PidfdFlags::empty()).map_err(silence)?),
        };
        let (_, ending) = handle.insert(held);
        let mut files = [PollFd::new(own_end, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
        match waiting::wait(&mut files, Some(pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(silence(errno).into()),
        }
        // One order is all that ever comes.
        if !files[0].revents().is_empty() {
            return Ok(None);
        }
    }
}
