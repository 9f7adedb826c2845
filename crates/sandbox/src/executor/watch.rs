//! Watching one command: its end, its memory, and whether anybody still wants it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::sample;
use crate::backend::namespaces::{First, View};
use crate::protocol::{At as _, Ended, Failed, Refusal, Reply, Step};
use crate::waiting;

/// How often the memory of the tree is added up where no control group bounds it.
const SAMPLING: Duration = Duration::from_millis(50);

/// What became of a command.
pub(super) enum Ending {
    /// It is over; this is to be answered.
    Ended(Reply),
    /// The deciding process is gone, and the command with it.
    Abandoned,
}

/// Waits until every process of the command is gone, but for the last steps of the first one.
pub(super) fn until_the_end(
    view: &mut View,
    socket: &OwnedFd,
    limits: &ProcessLimits,
    first: &First,
) -> Ending {
    let seen = match watch(view, socket, limits, first) {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ending::Abandoned,
        Err(failed) => return refused(failed.into()),
    };
    let verdict = first.verdict();
    let used = match view.cgroups.used() {
        Ok(used) => used,
        Err(errno) => return refused(Failed { step: Step::Cgroup, errno }.into()),
    };
    let end = match verdict {
        Ok(Some(Err(refusal))) | Err(refusal) => return refused(refusal),
        Ok(end) => end.and_then(Result::ok),
    };
    let largest = end.map_or(0, |end| end.memory).max(seen.peak);
    Ending::Ended(Reply::Ended(Ended {
        status: end.map(|end| end.status),
        out_of_memory: used.ran_out || seen.exceeded,
        out_of_time: seen.late,
        crowded: used.crowded,
        tmp_full: end.is_some_and(|end| end.tmp_full),
        peak_memory: used.peak.or(Some(largest).filter(|most| *most > 0)),
    }))
}

fn refused(refusal: Refusal) -> Ending {
    Ending::Ended(Reply::Refused(refusal))
}

/// What was seen of the memory.
#[derive(Default)]
struct Seen {
    peak: u64,
    exceeded: bool,
    late: bool,
}

/// Waits until the first process has said how it went, or has ended; none if the deciding process is gone.
fn watch(
    view: &View,
    socket: &OwnedFd,
    limits: &ProcessLimits,
    first: &First,
) -> Result<Option<Seen>, Failed> {
    let sampling = view.cgroups.memory_means().is_none();
    // Kept here and not only by the deciding process, which may be stopped, or held up by whoever
    // reads its output.
    let end = Instant::now().checked_add(Duration::from_millis(limits.timeout_ms));
    let mut seen = Seen::default();
    loop {
        let mut files = [
            PollFd::new(first.line(), PollFlags::IN),
            PollFd::new(first.handle(), PollFlags::IN),
            PollFd::new(socket, PollFlags::IN),
        ];
        let left = end.filter(|_| !seen.late).map(|end| end.duration_since(Instant::now()));
        let pause = match (left, sampling) {
            (Some(left), true) => Some(left.min(SAMPLING)),
            (None, true) => Some(SAMPLING),
            (left, false) => left,
        };
        match waiting::wait(&mut files, pause) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Failed { step: Step::Silence, errno }),
        }
        let [told, ended, other] = files.map(|file| !file.revents().is_empty());
        if told || ended {
            return Ok(Some(seen));
        }
        if other {
            // Nothing is asked during a call, so it is the end, or something that must not be.
            return Ok(None);
        }
        if !seen.late && end.is_some_and(|end| Instant::now() >= end) {
            seen.late = true;
            first.kill();
        }
        if sampling && !seen.exceeded {
            seen.peak = seen
                .peak
                .max(sample::tree_memory(first.pid(), limits.memory_bytes).at(Step::Memory)?);
            if seen.peak > limits.memory_bytes {
                seen.exceeded = true;
                first.kill();
            }
        }
    }
}
