//! One command, from the order to the last byte of its output.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use capsule_base::limits;
use capsule_core::confinement::ResourceLimit;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::Signal;

use super::Executor;
use super::capture::{self, Capture};
use super::refusal::{error_text, refusal_error};
use super::request::build_request;
use crate::linux::poll;
use crate::linux::protocol::{EndReport, ExecutorReply, ExecutorRequest, StageMessage, StartGate};
use crate::{
    CommandResult, CommandWatcher, Launch, OutputKind, SandboxBackend as _, SandboxError,
    Termination,
};

/// How often it is asked whether the command is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a killed command may take to be gone before the executor itself is ended. The executor may be
/// adding up the memory of many processes when it is told.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A command that an executor has made ready, and that has not begun.
#[derive(Debug)]
pub struct PreparedCommand {
    out: Capture,
    err: Capture,
    start_gate: StartGate,
    timeout: Duration,
    request: ExecutorRequest,
}

/// A command that has begun.
#[derive(Debug)]
pub struct RunningCommand {
    command: PreparedCommand,
    start: Instant,
}

impl Executor {
    /// Gives the order for a command.
    pub(super) fn prepare_call(&mut self, launch: Launch) -> Result<PreparedCommand, SandboxError> {
        let limits = launch.limits;
        let unable = |errno| SandboxError::Setup { step: "make pipes", reason: error_text(errno) };
        let input = sealed_input(&launch.stdin)?;
        let (out, out_end) =
            Capture::new(OutputKind::Stdout, limits.stdout_bytes).map_err(unable)?;
        let (err, err_end) =
            Capture::new(OutputKind::Stderr, limits.stderr_bytes).map_err(unable)?;
        let begin = StartGate::new().map_err(unable)?;
        let order = build_request(launch, &self.private_directories)?;
        let mut given = vec![begin.as_fd(), out_end.as_fd(), err_end.as_fd()];
        given.extend(input.as_ref().map(AsFd::as_fd));
        self.send(&order, &given)?;
        Ok(PreparedCommand {
            out,
            err,
            start_gate: begin,
            timeout: Duration::from_millis(limits.timeout_ms),
            request: order,
        })
    }

    /// Has it begin.
    pub(super) fn start_prepared(
        &mut self,
        held: PreparedCommand,
    ) -> Result<RunningCommand, SandboxError> {
        let start = Instant::now();
        if held.start_gate.open().is_err() {
            return Err(self.kill("it cannot be told to begin"));
        }
        Ok(RunningCommand { command: held, start })
    }

    /// Waits for its end.
    pub(super) fn wait_for_call(
        &mut self,
        RunningCommand { command: held, start }: RunningCommand,
        watch: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError> {
        let PreparedCommand { out, err, start_gate: _, timeout, request: order } = held;
        let stages = match &order {
            ExecutorRequest::Run { run, .. } => run.stages.as_slice(),
            _ => &[],
        };
        let mut call = CommandSupervision {
            out,
            err,
            ending: None,
            deadline: start.checked_add(timeout),
            buffer: self.buffer.take().unwrap_or_else(capture::buffer),
        };
        let ended = call.run_to_end(self, stages, watch)?;
        let each: Vec<Termination> = ended.statuses.iter().copied().map(exit_termination).collect();
        if !each.is_empty() && each.len() != stages.len() {
            return Err(self.kill("it told of other programs than it was given"));
        }
        let how = termination(&ended, each.last().copied(), call.ending.map(|(how, _)| how));
        let CommandSupervision { out, err, mut buffer, .. } = call;
        let (stdout, stderr) = (out.drain(&mut buffer, watch), err.drain(&mut buffer, watch));
        self.buffer = Some(buffer);
        Ok(CommandResult {
            termination: how,
            reached_limits: reached_limits(
                how,
                &each,
                &ended,
                stdout.truncated || stderr.truncated,
            ),
            stages: each,
            stdout,
            stderr,
            sandbox_status: self.sandbox_status()?.clone(),
            micros: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            peak_memory: ended.peak_memory,
            left_running: ended.left_running,
        })
    }
}

/// A command that runs.
struct CommandSupervision {
    out: Capture,
    err: Capture,
    /// Why it is being ended, and since when.
    ending: Option<(Termination, Instant)>,
    /// When its time is over.
    deadline: Option<Instant>,
    buffer: Vec<u8>,
}

/// Which of them have something to say.
struct Ready {
    socket: bool,
    out: bool,
    err: bool,
    watch: bool,
}

impl CommandSupervision {
    fn run_to_end(
        &mut self,
        executor: &mut Executor,
        stages: &[StageMessage],
        watch: &mut dyn CommandWatcher,
    ) -> Result<EndReport, SandboxError> {
        loop {
            let ready = self.poll(executor, watch)?;
            if ready.out {
                self.out.read(&mut self.buffer, watch);
            }
            if ready.err {
                self.err.read(&mut self.buffer, watch);
            }
            if ready.watch {
                self.attend(executor, watch)?;
            }
            if ready.socket {
                match executor.receive()? {
                    (ExecutorReply::Ended(ended), _) => return Ok(ended),
                    (ExecutorReply::Refused(refusal), _) => {
                        return Err(refusal_error(refusal, stages));
                    }
                    _ => return Err(executor.kill("it spoke out of turn")),
                }
            }
            self.enforce(executor, watch)?;
            if self.ending.is_some_and(|(_, since)| since.elapsed() > KILL_TIMEOUT) {
                return Err(executor.kill("it did not end a command"));
            }
        }
    }

    /// Has what waits besides attended to. The time that a person takes for it is none of the command's.
    fn attend(
        &mut self,
        executor: &mut Executor,
        watch: &mut dyn CommandWatcher,
    ) -> Result<(), SandboxError> {
        let (mut since, mut sent) = (None, Ok(()));
        watch.attend(&mut || {
            sent = executor.send_request(&ExecutorRequest::Pause);
            since = Some(Instant::now());
        });
        sent?;
        let Some(since) = since else { return Ok(()) };
        self.deadline = self.deadline.and_then(|end| end.checked_add(since.elapsed()));
        executor.send_request(&ExecutorRequest::Resume)
    }

    /// Waits for a word of the executor, for output, or until it is time to ask again.
    fn poll(
        &self,
        executor: &mut Executor,
        watch: &dyn CommandWatcher,
    ) -> Result<Ready, SandboxError> {
        let left = self
            .deadline
            .map_or(POLL_INTERVAL, |end| end.saturating_duration_since(Instant::now()));
        let pause = if self.ending.is_some() { POLL_INTERVAL } else { left.min(POLL_INTERVAL) };
        let socket = executor.socket()?;
        let mut files = vec![PollFd::new(socket, PollFlags::IN)];
        let (out, err) = (self.out.open_end(), self.err.open_end());
        files.extend(out.into_iter().chain(err).map(|end| PollFd::new(end, PollFlags::IN)));
        let attention = watch.attention();
        files.extend(attention.iter().map(|end| PollFd::new(end, PollFlags::IN)));
        match poll::wait(&mut files, Some(pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => {
                drop(files);
                return Err(executor.kill("it cannot be waited for"));
            }
        }
        let mut ready = files.iter().map(|file| !file.revents().is_empty());
        Ok(Ready {
            socket: ready.next().unwrap_or(false),
            out: out.is_some() && ready.next().unwrap_or(false),
            err: err.is_some() && ready.next().unwrap_or(false),
            watch: attention.is_some() && ready.next().unwrap_or(false),
        })
    }

    /// Ends the command if it must not go on.
    fn enforce(
        &mut self,
        executor: &mut Executor,
        watch: &dyn CommandWatcher,
    ) -> Result<(), SandboxError> {
        if self.ending.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        let written = self.out.total().saturating_add(self.err.total());
        let how = if watch.is_cancelled() {
            Termination::Cancelled
        } else if self.deadline.is_some_and(|end| now >= end) {
            Termination::TimedOut
        } else if written > limits::OUTPUT_DISCARD_BYTES {
            Termination::OutputFlood
        } else {
            return Ok(());
        };
        self.ending = Some((how, now));
        executor.send_request(&ExecutorRequest::End)
    }
}

/// How it ended. What its last program said itself counts first: it may have ended just as it was
/// about to be killed, or have gone on when another process was ended because memory ran out.
fn termination(
    ended: &EndReport,
    last: Option<Termination>,
    killed: Option<Termination>,
) -> Termination {
    match (ended.out_of_memory, last, killed) {
        (false, None, None) if ended.out_of_time => Termination::TimedOut,
        (true, None, None) => Termination::MemoryExceeded,
        // As one of its programs that took all by itself.
        (false, None, None) if ended.out_of_cpu => Termination::Signalled(Signal::XCPU.as_raw()),
        (true, Some(how), _) if how == Termination::Signalled(Signal::KILL.as_raw()) => {
            Termination::MemoryExceeded
        }
        (_, None, Some(how)) => how,
        (_, Some(how), _) => how,
        // Somebody outside killed the first process.
        (false, None, None) => Termination::Signalled(Signal::KILL.as_raw()),
    }
}

/// The bounds that it ran into.
fn reached_limits(
    how: Termination,
    each: &[Termination],
    ended: &EndReport,
    cut: bool,
) -> Vec<ResourceLimit> {
    let signalled = |signal: Signal| each.contains(&Termination::Signalled(signal.as_raw()));
    let each = [
        (ResourceLimit::Time, how == Termination::TimedOut),
        (ResourceLimit::Cpu, signalled(Signal::XCPU) || ended.out_of_cpu),
        (ResourceLimit::Memory, ended.out_of_memory),
        // Where the kernel refuses processes and counts none, all that is known is that there were as many
        // as may be. Whoever ended well had enough.
        (
            ResourceLimit::Processes,
            ended.process_limit_hit || ended.at_process_limit && how != Termination::Exited(0),
        ),
        (ResourceLimit::FileSize, signalled(Signal::XFSZ)),
        (ResourceLimit::Output, cut),
        (ResourceLimit::Tmp, ended.tmp_full),
    ];
    each.into_iter().filter_map(|(bound, reached)| reached.then_some(bound)).collect()
}

fn exit_termination(status: i32) -> Termination {
    let status = ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => Termination::Exited(code),
        (None, Some(signal)) => Termination::Signalled(signal),
        (None, None) => Termination::Signalled(Signal::KILL.as_raw()),
    }
}

/// What the command will read: a file in memory that nobody can change any more.
fn sealed_input(bytes: &[u8]) -> Result<Option<OwnedFd>, SandboxError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > limits::STDIN_BYTES {
        return Err(SandboxError::Launch { problem: "the standard input is too long" });
    }
    let make = || {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Newer kernels are told that it will never be executed; older ones do not know the flag.
        let file = match memfd_create("stdin", flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create("stdin", flags)?,
            made => made?,
        };
        let mut file = File::from(file);
        file.write_all(bytes)?;
        file.rewind()?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok(file.into())
    };
    make().map(Some).map_err(|error: io::Error| SandboxError::Setup {
        step: "pass the standard input",
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(out_of_memory: bool) -> EndReport {
        EndReport { out_of_memory, ..EndReport::default() }
    }

    /// What a program said itself stays, whatever happened to processes that it started.
    #[test]
    fn who_lived_on_when_memory_ran_out_was_not_ended() {
        let killed = Termination::Signalled(Signal::KILL.as_raw());
        for (out_of_memory, last, by_us, expected) in [
            (true, Some(Termination::Exited(0)), None, Termination::Exited(0)),
            (true, Some(Termination::Exited(137)), None, Termination::Exited(137)),
            (true, Some(killed), None, Termination::MemoryExceeded),
            (true, None, None, Termination::MemoryExceeded),
            (
                true,
                Some(Termination::Exited(3)),
                Some(Termination::TimedOut),
                Termination::Exited(3),
            ),
            (true, Some(killed), Some(Termination::TimedOut), Termination::MemoryExceeded),
            (true, None, Some(Termination::TimedOut), Termination::TimedOut),
            (false, Some(killed), None, killed),
            (false, None, Some(Termination::Cancelled), Termination::Cancelled),
        ] {
            let report = ended(out_of_memory);
            assert_eq!(
                termination(&report, last, by_us),
                expected,
                "{out_of_memory} {last:?} {by_us:?}"
            );
            let told =
                reached_limits(expected, &[], &report, false).contains(&ResourceLimit::Memory);
            assert_eq!(told, out_of_memory, "{last:?}");
        }
    }

    /// Whoever ended it, the kernel or the executor: that all time was used up reads the same.
    #[test]
    fn processor_time_that_is_used_up_has_one_name() {
        let signalled = Termination::Signalled(Signal::XCPU.as_raw());
        let all = EndReport { out_of_cpu: true, ..EndReport::default() };
        assert_eq!(termination(&all, None, None), signalled);
        assert_eq!(reached_limits(signalled, &[], &all, false), [ResourceLimit::Cpu]);
        assert_eq!(
            reached_limits(signalled, &[signalled], &ended(false), false),
            [ResourceLimit::Cpu]
        );
    }
}
