//! Watching one command: its end, its time, its memory, and whether anybody still wants it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use capsule_core::confinement::ProcessLimits;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::backoff::time_with_backoff;
use super::cpu_time::CpuUsage;
use super::sample;
use crate::linux::backend::{InitProcess, RunSandbox};
use crate::linux::kernel::LeftoverProcesses;
use crate::linux::poll;
use crate::linux::protocol::{
    AtStep as _, EndReport, ExecutorError, ExecutorReply, ExecutorRequest, SetupError, StartGate,
    Step, socket,
};

/// How often is looked at what no control group and no file system bounds.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// What became of a command.
pub(super) enum CommandEnd {
    /// It is over; this is to be answered.
    Ended(ExecutorReply, PendingCleanup),
    /// The deciding process is gone, and the command with it.
    Abandoned,
}

/// What is still to come of a command that is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingCleanup {
    /// The end of its first process, which the next command need not wait for.
    InitExit,
    /// Something that may be in its way.
    Unknown,
}

/// Waits until every process of the command is gone, but for the last steps of the first one.
pub(super) fn wait_for_end(
    view: &mut RunSandbox,
    socket: &OwnedFd,
    limits: &ProcessLimits,
    (first, begin): (&InitProcess, &StartGate),
) -> CommandEnd {
    let mut seen = match watch_init(view, socket, limits, (first, begin)) {
        Ok(Some(mut seen)) => {
            seen.measure_tmp(view, limits);
            seen
        }
        Ok(None) => return CommandEnd::Abandoned,
        Err(failed) => return refused_end(failed.into()),
    };
    let verdict = first.result();
    let used = match view.cgroups().take_usage() {
        Ok(used) => used,
        Err(errno) => return refused_end(SetupError { step: Step::Cgroup, errno }.into()),
    };
    let end = match verdict {
        Ok(Some(Err(refusal))) | Err(refusal) => return refused_end(refusal),
        Ok(end) => end.and_then(Result::ok),
    };
    let rest = match &end {
        Some(end) if !end.tmp_used => PendingCleanup::InitExit,
        _ => PendingCleanup::Unknown,
    };
    let (memory, tmp_full) = end.as_ref().map_or((0, false), |end| (end.memory, end.tmp_full));
    let largest = memory.max(seen.peak);
    let left = end.as_ref().map(|end| end.leftovers).unwrap_or_default();
    seen.count_leftovers(view, limits, left);
    let ended = ExecutorReply::Ended(EndReport {
        statuses: end.map(|end| end.statuses).unwrap_or_default(),
        out_of_memory: used.ran_out || seen.exceeded,
        out_of_time: seen.timed_out,
        out_of_cpu: seen.cpu_exceeded,
        process_limit_hit: used.process_limit_hit || seen.process_limit_hit,
        at_process_limit: seen.at_process_limit,
        left_running: left.killed,
        tmp_full: seen.tmp_full || tmp_full,
        peak_memory: used.peak.or(Some(largest).filter(|most| *most > 0)),
    });
    CommandEnd::Ended(ended, rest)
}

fn refused_end(refusal: ExecutorError) -> CommandEnd {
    CommandEnd::Ended(ExecutorReply::Refused(refusal), PendingCleanup::Unknown)
}

/// What was seen of a command from outside.
#[derive(Default)]
struct Observation {
    memory: sample::TreeMemory,
    /// The most memory.
    peak: u64,
    exceeded: bool,
    timed_out: bool,
    cpu_exceeded: bool,
    /// There were as many processes as there may be.
    at_process_limit: bool,
    process_limit_hit: bool,
    tmp_full: bool,
}

impl Observation {
    /// Whether it is being ended because of what was seen.
    fn is_over_limit(&self) -> bool {
        self.exceeded || self.cpu_exceeded || self.process_limit_hit || self.tmp_full
    }

    /// Looks at what no control group and no file system bounds.
    fn sample(
        &mut self,
        view: &RunSandbox,
        limits: &ProcessLimits,
        first: &InitProcess,
    ) -> Result<(), SetupError> {
        if view.counts_processes() {
            // The first one is ours.
            let most = limits.processes.saturating_add(1);
            let tasks = sample::count_tree_tasks(first.pid(), most).at(Step::Memory)?;
            self.at_process_limit |= tasks >= most;
            self.process_limit_hit = tasks > most && view.kills_on_process_limit();
            if self.process_limit_hit {
                return Ok(());
            }
        }
        if view.counts_memory() {
            let most = limits.memory_bytes;
            let memory = self.memory.measure(first.pid(), most).at(Step::Memory)?;
            self.peak = self.peak.max(memory);
            self.exceeded = self.peak > most;
        }
        self.measure_tmp(view, limits);
        Ok(())
    }

    /// Counts those that the last program left: they were as many with it, and it had just ended.
    fn count_leftovers(
        &mut self,
        view: &RunSandbox,
        limits: &ProcessLimits,
        left: LeftoverProcesses,
    ) {
        if left.all > 0 && view.counts_processes() {
            let together = left.all.saturating_add(1);
            self.at_process_limit |= together >= limits.processes;
            self.process_limit_hit |= together > limits.processes;
        }
    }

    /// Looks at what was written.
    fn measure_tmp(&mut self, view: &RunSandbox, limits: &ProcessLimits) {
        if let Some(tmp) = view.unbounded_tmp() {
            self.tmp_full |= tmp.bytes() >= limits.tmp_bytes.max(1);
        }
    }
}

/// Waits until the first process has said how it went, or has ended; none if the deciding process is gone.
/// The command's time begins when it may begin: no message is needed then, it is asked when it could be over.
fn watch_init(
    view: &RunSandbox,
    socket: &OwnedFd,
    limits: &ProcessLimits,
    (first, begin): (&InitProcess, &StartGate),
) -> Result<Option<Observation>, SetupError> {
    // Kept here and not only by the deciding process, which may be stopped, or held up by whoever
    // reads its output.
    let most = Duration::from_millis(limits.timeout_ms);
    let mut end = Instant::now().checked_add(most);
    let mut pauses = Pauses::default();
    let mut seen = Observation::default();
    let mut looks = SampleSchedule::start(view, limits);
    loop {
        let mut files = [
            PollFd::new(first.control_socket(), PollFlags::IN),
            PollFd::new(first.handle(), PollFlags::IN),
            PollFd::new(socket, PollFlags::IN),
        ];
        let left = end
            .filter(|_| !seen.timed_out && pauses.since.is_none())
            .map(|end| end.duration_since(Instant::now()));
        let pause = left.into_iter().chain(looks.time_to_next_sample(&seen)).min();
        match poll::wait(&mut files, pause) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(SetupError { step: Step::Silence, errno }),
        }
        let [told, ended, other] = files.map(|file| !file.revents().is_empty());
        if told || ended {
            return Ok(Some(seen));
        }
        if other {
            match read_request(socket) {
                Some(ExecutorRequest::End) => first.end(),
                Some(ExecutorRequest::Pause) => pauses.begin(),
                // Asked at once whether the time is over.
                Some(ExecutorRequest::Resume) => end = pauses.finish(),
                // The deciding process is gone, or says something that must not be.
                _ => return Ok(None),
            }
        }
        let is_paused = seen.timed_out || pauses.since.is_some();
        if !is_paused && end.is_some_and(|end| Instant::now() >= end) {
            // One that may not begin yet has all of its time before it.
            let used = begin.time_since_open().unwrap_or_default().saturating_sub(pauses.total);
            let left = most.saturating_sub(used);
            end = Instant::now().checked_add(left);
            seen.timed_out = left.is_zero();
            if seen.timed_out {
                first.end();
            }
        }
        if !seen.is_over_limit() {
            looks.sample_due(&mut seen, view, limits, first)?;
            if seen.is_over_limit() {
                first.end();
            }
        }
    }
}

/// The times in which a command waited for a person, which are none of its own.
#[derive(Default)]
struct Pauses {
    total: Duration,
    since: Option<Instant>,
}

impl Pauses {
    fn begin(&mut self) {
        self.since = self.since.or_else(|| Some(Instant::now()));
    }

    /// Gives the time at which the pause ended.
    fn finish(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let pause = self.since.take().map_or(Duration::ZERO, |since| now.duration_since(since));
        self.total = self.total.saturating_add(pause);
        Some(now)
    }
}

/// When to look at a command from outside.
struct SampleSchedule {
    /// Something is bounded by looking alone.
    sampling: bool,
    last: Instant,
    /// How long to leave it at least.
    min_pause: Duration,
    cpu: CpuUsage,
}

impl SampleSchedule {
    fn start(view: &RunSandbox, limits: &ProcessLimits) -> Self {
        let sampling =
            view.counts_memory() || view.counts_processes() || view.unbounded_tmp().is_some();
        let spending = CpuUsage::start(limits);
        Self { sampling, last: Instant::now(), min_pause: Duration::ZERO, cpu: spending }
    }

    /// How long there is nothing to look at.
    fn time_to_next_sample(&self, seen: &Observation) -> Option<Duration> {
        let spending = self.cpu.time_to_next_check().filter(|_| !seen.is_over_limit());
        self.sampling.then_some(SAMPLE_INTERVAL).into_iter().chain(spending).min()
    }

    /// Looks at what it is time for.
    fn sample_due(
        &mut self,
        seen: &mut Observation,
        view: &RunSandbox,
        limits: &ProcessLimits,
        first: &InitProcess,
    ) -> Result<(), SetupError> {
        if self.sampling && self.last.elapsed() >= SAMPLE_INTERVAL.max(self.min_pause) {
            self.last = Instant::now();
            let (looked, rest) = time_with_backoff(|| seen.sample(view, limits, first));
            looked?;
            self.min_pause = rest;
        }
        seen.cpu_exceeded = self.cpu.check(view, first)?;
        Ok(())
    }
}

/// What the deciding process asks during a call, if it can be understood.
fn read_request(socket: &OwnedFd) -> Option<ExecutorRequest> {
    let message = socket::receive(socket.as_fd()).ok()??;
    ExecutorRequest::decode(&message.bytes).ok()
}
