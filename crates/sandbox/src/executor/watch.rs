//! Watching one command: its end, its time, its memory, and whether anybody still wants it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::processor::Spending;
use super::sample;
use crate::backend::{First, View};
use crate::kernel::Left;
use crate::protocol::{At as _, Begin, Ended, Failed, Refusal, Reply, Request, Step, socket};
use crate::waiting;

/// How often is looked at what no control group and no file system bounds.
const SAMPLING: Duration = Duration::from_millis(50);

/// What became of a command.
pub(super) enum Ending {
    /// It is over; this is to be answered.
    Ended(Reply, Rest),
    /// The deciding process is gone, and the command with it.
    Abandoned,
}

/// What is still to come of a command that is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The end of its first process, which the next command need not wait for.
    OwnEnd,
    /// Something that may be in its way.
    Unknown,
}

/// Waits until every process of the command is gone, but for the last steps of the first one.
pub(super) fn until_the_end(
    view: &mut View,
    socket: &OwnedFd,
    limits: &ProcessLimits,
    (first, begin): (&First, &Begin),
) -> Ending {
    let mut seen = match watch(view, socket, limits, (first, begin)) {
        Ok(Some(mut seen)) => {
            seen.weigh(view, limits);
            seen
        }
        Ok(None) => return Ending::Abandoned,
        Err(failed) => return refused(failed.into()),
    };
    let verdict = first.verdict();
    let used = match view.cgroups().used() {
        Ok(used) => used,
        Err(errno) => return refused(Failed { step: Step::Cgroup, errno }.into()),
    };
    let end = match verdict {
        Ok(Some(Err(refusal))) | Err(refusal) => return refused(refusal),
        Ok(end) => end.and_then(Result::ok),
    };
    let rest = match &end {
        Some(end) if !end.tmp_used => Rest::OwnEnd,
        _ => Rest::Unknown,
    };
    let (memory, tmp_full) = end.as_ref().map_or((0, false), |end| (end.memory, end.tmp_full));
    let largest = memory.max(seen.peak);
    let left = end.as_ref().map(|end| end.left).unwrap_or_default();
    seen.count_left(view, limits, left);
    let ended = Reply::Ended(Ended {
        statuses: end.map(|end| end.statuses).unwrap_or_default(),
        out_of_memory: used.ran_out || seen.exceeded,
        out_of_time: seen.late,
        out_of_processor: seen.spent,
        crowded: used.crowded || seen.crowded,
        full: seen.full,
        left_running: left.running,
        tmp_full: seen.tmp_full || tmp_full,
        peak_memory: used.peak.or(Some(largest).filter(|most| *most > 0)),
    });
    Ending::Ended(ended, rest)
}

fn refused(refusal: Refusal) -> Ending {
    Ending::Ended(Reply::Refused(refusal), Rest::Unknown)
}

/// What was seen of a command from outside.
#[derive(Default)]
struct Seen {
    memory: sample::Memory,
    /// The most memory.
    peak: u64,
    exceeded: bool,
    late: bool,
    spent: bool,
    /// There were as many processes as there may be.
    full: bool,
    crowded: bool,
    tmp_full: bool,
}

impl Seen {
    /// Whether it is being ended because of what was seen.
    fn enough(&self) -> bool {
        self.exceeded || self.spent || self.crowded || self.tmp_full
    }

    /// Looks at what no control group and no file system bounds.
    fn look(&mut self, view: &View, limits: &ProcessLimits, first: &First) -> Result<(), Failed> {
        if view.counts_processes() {
            // The first one is ours.
            let most = limits.processes.saturating_add(1);
            let tasks = sample::tree_tasks(first.pid(), most).at(Step::Memory)?;
            self.full |= tasks >= most;
            self.crowded = tasks > most && view.ends_crowds();
            if self.crowded {
                return Ok(());
            }
        }
        if view.counts_memory() {
            let most = limits.memory_bytes;
            let memory = self.memory.of_tree(first.pid(), most).at(Step::Memory)?;
            self.peak = self.peak.max(memory);
            self.exceeded = self.peak > most;
        }
        self.weigh(view, limits);
        Ok(())
    }

    /// Counts those that the last program left: they were as many with it, and it had just ended.
    fn count_left(&mut self, view: &View, limits: &ProcessLimits, left: Left) {
        if left.all > 0 && view.counts_processes() {
            let together = left.all.saturating_add(1);
            self.full |= together >= limits.processes;
            self.crowded |= together > limits.processes;
        }
    }

    /// Looks at what was written.
    fn weigh(&mut self, view: &View, limits: &ProcessLimits) {
        if let Some(tmp) = view.unbounded_tmp() {
            self.tmp_full |= tmp.bytes() >= limits.tmp_bytes.max(1);
        }
    }
}

/// Waits until the first process has said how it went, or has ended; none if the deciding process is gone.
/// The command's time begins when it may begin: nobody needs to be told then, it is asked when it could be over.
fn watch(
    view: &View,
    socket: &OwnedFd,
    limits: &ProcessLimits,
    (first, begin): (&First, &Begin),
) -> Result<Option<Seen>, Failed> {
    // Kept here and not only by the deciding process, which may be stopped, or held up by whoever
    // reads its output.
    let most = Duration::from_millis(limits.timeout_ms);
    let mut end = Instant::now().checked_add(most);
    let mut seen = Seen::default();
    let mut looks = Looks::begin(view, limits);
    loop {
        let mut files = [
            PollFd::new(first.line(), PollFlags::IN),
            PollFd::new(first.handle(), PollFlags::IN),
            PollFd::new(socket, PollFlags::IN),
        ];
        let left = end.filter(|_| !seen.late).map(|end| end.duration_since(Instant::now()));
        let pause = left.into_iter().chain(looks.pause(&seen)).min();
        match waiting::wait(&mut files, pause) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Failed { step: Step::Silence, errno }),
        }
        let [told, ended, other] = files.map(|file| !file.revents().is_empty());
        if told || ended {
            return Ok(Some(seen));
        }
        if other {
            match asked(socket) {
                Some(Request::End) => first.end(),
                // The deciding process is gone, or says something that must not be.
                _ => return Ok(None),
            }
        }
        if !seen.late && end.is_some_and(|end| Instant::now() >= end) {
            // One that may not begin yet has all of its time before it.
            let left = most.saturating_sub(begin.since().unwrap_or_default());
            end = Instant::now().checked_add(left);
            seen.late = left.is_zero();
            if seen.late {
                first.end();
            }
        }
        if !seen.enough() {
            looks.look(&mut seen, view, limits, first)?;
            if seen.enough() {
                first.end();
            }
        }
    }
}

/// When to look at a command from outside.
struct Looks {
    /// Something is bounded by looking alone.
    sampling: bool,
    last: Instant,
    /// How long to leave it at least.
    rest: Duration,
    spending: Spending,
}

impl Looks {
    fn begin(view: &View, limits: &ProcessLimits) -> Self {
        let sampling =
            view.counts_memory() || view.counts_processes() || view.unbounded_tmp().is_some();
        let spending = Spending::begin(limits);
        Self { sampling, last: Instant::now(), rest: Duration::ZERO, spending }
    }

    /// How long there is nothing to look at.
    fn pause(&self, seen: &Seen) -> Option<Duration> {
        let spending = self.spending.pause().filter(|_| !seen.enough());
        self.sampling.then_some(SAMPLING).into_iter().chain(spending).min()
    }

    /// Looks at what it is time for.
    fn look(
        &mut self,
        seen: &mut Seen,
        view: &View,
        limits: &ProcessLimits,
        first: &First,
    ) -> Result<(), Failed> {
        if self.sampling && self.last.elapsed() >= SAMPLING.max(self.rest) {
            self.last = Instant::now();
            let (looked, rest) = sparingly(|| seen.look(view, limits, first));
            looked?;
            self.rest = rest;
        }
        seen.spent = self.spending.look(view, first)?;
        Ok(())
    }
}

/// Looks, and tells how long to leave it then: what takes long to look at is looked at less often, so that
/// looking does not itself become what takes the time. On a busy machine only what it takes of a processor is
/// counted: who keeps others waiting must not be looked at less for it.
pub(super) fn sparingly<T>(look: impl FnOnce() -> T) -> (T, Duration) {
    let before = processor_time();
    let looked = look();
    (looked, processor_time().saturating_sub(before) * 4)
}

/// How long this thread has had a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// What the deciding process asks during a call, if it can be understood.
fn asked(socket: &OwnedFd) -> Option<Request> {
    let message = socket::receive(socket.as_fd()).ok()??;
    Request::decode(&message.bytes).ok()
}
