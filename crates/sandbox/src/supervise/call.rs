//! One command, from the order to the last byte of its output.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use capsule_core::confinement::ResourceLimit;
use capsule_core::limits;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::Signal;

use super::capture::{self, Capture};
use super::order::order;
use super::{Executor, refused, text};
use crate::protocol::{Begin, Ended, Reply, Request, Stage};
use crate::waiting;
use crate::{Exit, How, Launch, SandboxError, Stream, Watch};

/// How often it is asked whether the command is still wanted.
const ASKING: Duration = Duration::from_millis(100);
/// How long a killed command may take to be gone before the executor itself is ended. The executor may be
/// adding up the memory of many processes when it is told.
const DYING: Duration = Duration::from_secs(5);

/// A command that an executor has made ready, and that has not begun.
#[derive(Debug)]
pub struct Held {
    out: Capture,
    err: Capture,
    begin: Begin,
    timeout: Duration,
    order: Request,
}

/// A command that has begun.
#[derive(Debug)]
pub struct Running {
    held: Held,
    start: Instant,
}

/// Gives the order for a command.
pub(super) fn hold(executor: &mut Executor, launch: Launch) -> Result<Held, SandboxError> {
    let limits = launch.limits;
    let unable = |errno| SandboxError::Setup { step: "make pipes", reason: text(errno) };
    let input = input(&launch.stdin)?;
    let (out, out_end) = Capture::new(Stream::Stdout, limits.stdout_bytes).map_err(unable)?;
    let (err, err_end) = Capture::new(Stream::Stderr, limits.stderr_bytes).map_err(unable)?;
    let begin = Begin::new().map_err(unable)?;
    let order = order(launch, &executor.tmp)?;
    let mut given = vec![begin.as_fd(), out_end.as_fd(), err_end.as_fd()];
    given.extend(input.as_ref().map(AsFd::as_fd));
    executor.ask(&order, &given)?;
    Ok(Held { out, err, begin, timeout: Duration::from_millis(limits.timeout_ms), order })
}

/// Has it begin.
pub(super) fn begin(executor: &mut Executor, held: Held) -> Result<Running, SandboxError> {
    let start = Instant::now();
    if held.begin.say().is_err() {
        return Err(executor.give_up("it cannot be told to begin"));
    }
    Ok(Running { held, start })
}

/// Waits for its end.
pub(super) fn wait(
    executor: &mut Executor,
    Running { held, start }: Running,
    watch: &mut dyn Watch,
) -> Result<Exit, SandboxError> {
    let Held { out, err, begin: _, timeout, order } = held;
    let stages = match &order {
        Request::Run { run, .. } => run.stages.as_slice(),
        _ => &[],
    };
    let mut call = Call {
        out,
        err,
        ending: None,
        end: start.checked_add(timeout),
        buffer: executor.buffer.take().unwrap_or_else(capture::buffer),
    };
    let ended = call.until_the_end(executor, stages, watch)?;
    let each: Vec<How> = ended.statuses.iter().copied().map(exited).collect();
    if !each.is_empty() && each.len() != stages.len() {
        return Err(executor.give_up("it told of other programs than it was given"));
    }
    let how = how(&ended, each.last().copied(), call.ending.map(|(how, _)| how));
    let Call { out, err, mut buffer, .. } = call;
    let (stdout, stderr) = (out.drain(&mut buffer, watch), err.drain(&mut buffer, watch));
    executor.buffer = Some(buffer);
    Ok(Exit {
        how,
        reached: reached(how, &each, &ended, stdout.truncated || stderr.truncated),
        stages: each,
        stdout,
        stderr,
        walls: executor.walls()?.clone(),
        micros: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
        peak_memory: ended.peak_memory,
        left_running: ended.left_running,
    })
}

/// A command that runs.
struct Call {
    out: Capture,
    err: Capture,
    /// Why it is being ended, and since when.
    ending: Option<(How, Instant)>,
    /// When its time is over.
    end: Option<Instant>,
    buffer: Vec<u8>,
}

/// Which of the three have something to say.
struct Ready {
    socket: bool,
    out: bool,
    err: bool,
}

impl Call {
    fn until_the_end(
        &mut self,
        executor: &mut Executor,
        stages: &[Stage],
        watch: &mut dyn Watch,
    ) -> Result<Ended, SandboxError> {
        loop {
            let ready = self.wait(executor)?;
            if ready.out {
                self.out.read(&mut self.buffer, watch);
            }
            if ready.err {
                self.err.read(&mut self.buffer, watch);
            }
            if ready.socket {
                match executor.receive()? {
                    (Reply::Ended(ended), _) => return Ok(ended),
                    (Reply::Refused(refusal), _) => return Err(refused(refusal, stages)),
                    _ => return Err(executor.give_up("it spoke out of turn")),
                }
            }
            self.judge(executor, watch)?;
            if self.ending.is_some_and(|(_, since)| since.elapsed() > DYING) {
                return Err(executor.give_up("it did not end a command"));
            }
        }
    }

    /// Waits for a word of the executor, for output, or until it is time to ask again.
    fn wait(&self, executor: &mut Executor) -> Result<Ready, SandboxError> {
        let left = self.end.map_or(ASKING, |end| end.saturating_duration_since(Instant::now()));
        let pause = if self.ending.is_some() { ASKING } else { left.min(ASKING) };
        let socket = executor.socket()?;
        let mut files = vec![PollFd::new(socket, PollFlags::IN)];
        let (out, err) = (self.out.waiting(), self.err.waiting());
        files.extend(out.into_iter().chain(err).map(|end| PollFd::new(end, PollFlags::IN)));
        match waiting::wait(&mut files, Some(pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => {
                drop(files);
                return Err(executor.give_up("it cannot be waited for"));
            }
        }
        let mut ready = files.iter().map(|file| !file.revents().is_empty());
        Ok(Ready {
            socket: ready.next().unwrap_or(false),
            out: out.is_some() && ready.next().unwrap_or(false),
            err: err.is_some() && ready.next().unwrap_or(false),
        })
    }

    /// Ends the command if it must not go on.
    fn judge(&mut self, executor: &mut Executor, watch: &dyn Watch) -> Result<(), SandboxError> {
        if self.ending.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        let written = self.out.total().saturating_add(self.err.total());
        let how = if watch.cancelled() {
            How::Cancelled
        } else if self.end.is_some_and(|end| now >= end) {
            How::TimedOut
        } else if written > limits::OUTPUT_DISCARD_BYTES {
            How::OutputFlood
        } else {
            return Ok(());
        };
        self.ending = Some((how, now));
        executor.ask_to_end()
    }
}

/// How it ended. What its last program said itself counts first: it may have ended just as it was
/// about to be killed, or have gone on when another process was ended because memory ran out.
fn how(ended: &Ended, last: Option<How>, killed: Option<How>) -> How {
    match (ended.out_of_memory, last, killed) {
        (false, None, None) if ended.out_of_time => How::TimedOut,
        (true, None, None) => How::MemoryExceeded,
        // As one of its programs that took all by itself.
        (false, None, None) if ended.out_of_processor => How::Signalled(Signal::XCPU.as_raw()),
        (true, Some(how), _) if how == How::Signalled(Signal::KILL.as_raw()) => How::MemoryExceeded,
        (_, None, Some(how)) => how,
        (_, Some(how), _) => how,
        // Somebody outside killed the first process.
        (false, None, None) => How::Signalled(Signal::KILL.as_raw()),
    }
}

/// The bounds that it ran into.
fn reached(how: How, each: &[How], ended: &Ended, cut: bool) -> Vec<ResourceLimit> {
    let signalled = |signal: Signal| each.contains(&How::Signalled(signal.as_raw()));
    let each = [
        (ResourceLimit::Time, how == How::TimedOut),
        (ResourceLimit::Cpu, signalled(Signal::XCPU) || ended.out_of_processor),
        (ResourceLimit::Memory, ended.out_of_memory),
        // Where the kernel refuses processes and counts none, all that is known is that there were as many
        // as may be. Whoever ended well had enough.
        (ResourceLimit::Processes, ended.crowded || ended.full && how != How::Exited(0)),
        (ResourceLimit::FileSize, signalled(Signal::XFSZ)),
        (ResourceLimit::Output, cut),
        (ResourceLimit::Tmp, ended.tmp_full),
    ];
    each.into_iter().filter_map(|(bound, reached)| reached.then_some(bound)).collect()
}

fn exited(status: i32) -> How {
    let status = ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited(code),
        (None, Some(signal)) => How::Signalled(signal),
        (None, None) => How::Signalled(Signal::KILL.as_raw()),
    }
}

/// What the command will read: a file in memory that nobody can change any more.
fn input(bytes: &[u8]) -> Result<Option<OwnedFd>, SandboxError> {
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

    fn ended(out_of_memory: bool) -> Ended {
        Ended { out_of_memory, ..Ended::default() }
    }

    /// What a program said itself stays, whatever happened to processes that it started.
    #[test]
    fn who_lived_on_when_memory_ran_out_was_not_ended() {
        let killed = How::Signalled(Signal::KILL.as_raw());
        for (out_of_memory, last, by_us, expected) in [
            (true, Some(How::Exited(0)), None, How::Exited(0)),
            (true, Some(How::Exited(137)), None, How::Exited(137)),
            (true, Some(killed), None, How::MemoryExceeded),
            (true, None, None, How::MemoryExceeded),
            (true, Some(How::Exited(3)), Some(How::TimedOut), How::Exited(3)),
            (true, Some(killed), Some(How::TimedOut), How::MemoryExceeded),
            (true, None, Some(How::TimedOut), How::TimedOut),
            (false, Some(killed), None, killed),
            (false, None, Some(How::Cancelled), How::Cancelled),
        ] {
            let own = ended(out_of_memory);
            assert_eq!(how(&own, last, by_us), expected, "{out_of_memory} {last:?} {by_us:?}");
            let told = reached(expected, &[], &own, false).contains(&ResourceLimit::Memory);
            assert_eq!(told, out_of_memory, "{last:?}");
        }
    }

    /// Whoever ended it, the kernel or the executor: that all time was used up reads the same.
    #[test]
    fn processor_time_that_is_used_up_has_one_name() {
        let signalled = How::Signalled(Signal::XCPU.as_raw());
        let all = Ended { out_of_processor: true, ..Ended::default() };
        assert_eq!(how(&all, None, None), signalled);
        assert_eq!(reached(signalled, &[], &all, false), [ResourceLimit::Cpu]);
        assert_eq!(reached(signalled, &[signalled], &ended(false), false), [ResourceLimit::Cpu]);
    }
}
