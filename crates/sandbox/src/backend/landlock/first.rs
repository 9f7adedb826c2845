//! The first process of a call in the lower tier.
//!
//! It opens what the command may open, raises Landlock and the filter around itself, and starts the
//! programs, each of which binds itself once more: so no signal of the command reaches this process,
//! while its own signals reach every process of the call and nobody else. When all programs have ended,
//! or the executor hangs up or is gone, one signal ends all of them; none can be made meanwhile.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Duration;

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, WaitOptions, fchdir, getpid, pidfd_open, set_child_subreaper, umask, wait,
};
use rustix::stdio::dup2_stdin;

use super::View;
use super::reach::{self, Hidden};
use crate::backend::pipeline::{self, Started};
use crate::backend::{capabilities, mountinfo, place, program};
use crate::kernel::{self, Alone};
use crate::landlock::{self, Reach, Rules};
use crate::protocol::{At as _, End, Failed, Refusal, Step, encode_verdict, socket};
use crate::waiting;

/// How long orphans may stand in the table of processes before they are taken in.
const TAKING_IN: Duration = Duration::from_millis(100);

/// Lives the whole life of the first process. `others` is how many processes the user has besides,
/// where they count.
pub(super) fn live(
    view: &View,
    reach: (&[Vec<u8>], bool),
    (line, own_end): (&OwnedFd, &OwnedFd),
    others: Option<u64>,
) -> ! {
    let _never_back = kernel::LeaveOnDrop;
    let verdict = match set_up(view, reach, line, own_end) {
        Ok(alone) => {
            let verdict = obey(own_end, others, Bound::Anew);
            end_all_others(&alone);
            verdict
        }
        Err(refusal) => Err(refusal),
    };
    // One that was ended has nothing to say. If nobody listens any more, nobody needs to know.
    if let Some(verdict) = verdict.transpose() {
        let _ = socket::send(own_end.as_fd(), &encode_verdict(verdict), &[]);
    }
    kernel::leave(0)
}

/// Raises everything that does not depend on the order.
fn set_up(
    view: &View,
    reach: (&[Vec<u8>], bool),
    line: &OwnedFd,
    own_end: &OwnedFd,
) -> Result<Alone, Refusal> {
    let executors = line.as_raw_fd().unsigned_abs();
    program::close_range(executors, executors).at(Step::Lifeline)?;
    set_child_subreaper(Some(getpid())).at(Step::Lifeline)?;
    kernel::default_signals().at(Step::Signals)?;
    view.cgroups.join().at(Step::Cgroup)?;
    capabilities::drop_all().at(Step::Capabilities)?;
    umask(Mode::from_raw_mode(0o022));
    raise_landlock(view, reach)?;
    // Only from here on does a signal to everybody reach this call alone.
    let alone = Alone::prove().at(Step::Landlock)?;
    kernel::attach_filter(&view.filter).at(Step::Filter)?;
    // In the place of the executor's own socket, which it stands on.
    dup2_stdin(&view.nothing).at(Step::Streams)?;
    fchdir(&view.workspace.0).at(Step::Workspace)?;
    program::close_all_but(own_end).at(Step::Descriptors)?;
    Ok(alone)
}

/// Lets the command open what it may, and nothing else; whether it may change the workspace, which is
/// a copy then.
fn raise_landlock(view: &View, (masks, writes): (&[Vec<u8>], bool)) -> Result<(), Refusal> {
    let mut rules = Rules::begin(view.abi).at(Step::Landlock)?;
    let mut allow = |file: &OwnedFd, reach: Reach| rules.allow(file, reach);
    reach::system(&mut allow, &view.judged).at(Step::SystemFolder)?;
    let mut hidden = Hidden::default();
    for path in masks {
        hidden.add(place::path(path));
    }
    // The policy judged the workspace, not other disks that stand in it.
    for within in mountinfo::within(&view.workspace.1).at(Step::Mask)? {
        hidden.add(&within);
    }
    if writes {
        // A rule for the whole copy lets everything in it be read. What is hidden was not copied.
        masks.iter().try_for_each(|path| is_shut(&view.workspace.0, path)).at(Step::Mask)?;
        allow(&view.workspace.0, Reach::Change).at(Step::Workspace)?;
    } else {
        let workspace = rustix::io::dup(&view.workspace.0).at(Step::Workspace)?;
        reach::grant_open(&mut allow, workspace, &hidden).at(Step::Workspace)?;
    }
    for own in &view.programs {
        let own = rustix::io::dup(own).at(Step::Program)?;
        reach::grant_open(&mut allow, own, &Hidden::default()).at(Step::Program)?;
    }
    reach::change(&mut allow, view.tmp().path()).at(Step::Tmp)?;
    rules.enforce().at(Step::Landlock)?;
    Ok(())
}

/// Makes sure that there is nothing to be read at a path, by anybody.
fn is_shut(workspace: &OwnedFd, path: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(workspace, place::path(path), flags, Mode::empty(), resolve) {
        Ok(found) if fstat(&found)?.st_mode & 0o777 == 0 => Ok(()),
        Ok(_) => Err(Errno::OPNOTSUPP),
        // Nothing is there, or something above it is closed to everybody.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// How a program is bound before it starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Once more, so that it reaches no process above it.
    Anew,
    /// Not at all, on a machine that can bind nothing.
    Nowhere,
}

/// Waits for the order and carries it out, behind walls that already stand, if any do; none if it is
/// ended.
pub(crate) fn obey(
    own_end: &OwnedFd,
    others: Option<u64>,
    bound: Bound,
) -> Result<Option<End>, Refusal> {
    let (run, streams) = program::order(own_end)?;
    if has_hung_up(own_end).at(Step::Order)? {
        return Ok(None); // it is over before it began
    }
    program::check_all(&run)?;
    let folder = program::folder(&run).at(Step::Folder)?;
    let ends = pipeline::connect(&run, streams)?;
    folder.map_or(Ok(()), fchdir).at(Step::Folder)?;
    let (rules, limits) = match bound {
        Bound::Anew => {
            // The private folder is all that can be written to.
            let file_bytes = run.limits.file_bytes.min(run.limits.tmp_bytes);
            // While there is no limit of open files yet.
            let rules = landlock::scope().at(Step::Landlock)?;
            (Some(rules), ProcessLimits { file_bytes, ..run.limits })
        }
        Bound::Nowhere => (None, run.limits),
    };
    program::set_limits(&limits, others.map(|others| others.saturating_add(1))).at(Step::Limits)?;
    let started = pipeline::start(&run, ends, rules.as_ref().map(AsFd::as_fd))?;
    drop(rules);
    wait_for_programs(started, own_end)
}

/// Whether the executor wants the call to end. One order is all that ever comes.
fn has_hung_up(own_end: &OwnedFd) -> Result<bool, Errno> {
    let mut files = [PollFd::new(own_end, PollFlags::IN)];
    Ok(waiting::wait(&mut files, Some(Duration::ZERO))? > 0)
}

/// Takes in every orphan until all programs have ended; none if the executor hangs up.
fn wait_for_programs(mut started: Started, own_end: &OwnedFd) -> Result<Option<End>, Refusal> {
    let silence = |errno| Failed { step: Step::Silence, errno };
    // One at a time: however many they are, the limit of open files holds for this process too.
    let mut handle: Option<(Pid, OwnedFd)> = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((ended, status))) => {
                if let Some(statuses) = started.note(ended, status.as_raw()) {
                    let memory = kernel::memory_of_children();
                    return Ok(Some(End { statuses, memory, tmp_full: false }));
                }
                continue;
            }
            Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(errno) => return Err(silence(errno).into()),
        }
        let running = started.running().ok_or_else(|| silence(Errno::CHILD))?;
        let held = match handle.take().filter(|(pid, _)| *pid == running) {
            Some(held) => held,
            None => (running, pidfd_open(running, PidfdFlags::empty()).map_err(silence)?),
        };
        let (_, ending) = handle.insert(held);
        let mut files = [PollFd::new(own_end, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
        match waiting::wait(&mut files, Some(TAKING_IN)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(silence(errno).into()),
        }
        // One order is all that ever comes.
        if !files[0].revents().is_empty() {
            return Ok(None);
        }
    }
}

/// Ends every other process of the call and takes all of them in, so that nothing of the command
/// runs any more when its end is told.
fn end_all_others(alone: &Alone) {
    alone.kill_everyone_else();
    while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
}
