//! The programs of one command: the pipes between them, their start, and how each of them ended.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::program::{self, enumerate_indices};
use super::redirect::{ProgramStreams, RedirectError};
use crate::linux::protocol::{AtStep as _, CommandMessage, ExecutorError, SetupError, Step};

/// Connects the streams of all programs, and opens what they lead to instead, before the first one
/// is started: none runs in vain, and none can get in the way of another one's files. This process
/// stands in the workspace.
///
/// # Errors
/// The pipes cannot be made, or a redirection cannot be opened.
pub(super) fn connect(
    run: &CommandMessage,
    streams: [OwnedFd; 3],
) -> Result<Vec<ProgramStreams>, ExecutorError> {
    let [input, output, errors] = streams.map(Rc::new);
    let mut input = Some(input);
    let mut all = Vec::with_capacity(run.stages.len());
    for (number, stage) in enumerate_indices(&run.stages) {
        let last = all.len() + 1 == run.stages.len();
        let (next, fd) = if last {
            (None, Rc::clone(&output))
        } else {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).at(Step::Pipe)?;
            (Some(Rc::new(reader)), Rc::new(writer))
        };
        let input = std::mem::replace(&mut input, next);
        let input = input.ok_or(SetupError { step: Step::Streams, errno: Errno::BADF })?;
        let mut ends = ProgramStreams { input, output: fd, error: Rc::clone(&errors) };
        for (own_number, redirect) in enumerate_indices(&stage.redirects) {
            ends.redirect(redirect, &run.cwd).map_err(|why| match why {
                RedirectError::Refused(errno) => {
                    ExecutorError::Redirect(number, own_number, Some(errno))
                }
                RedirectError::NotRegular => ExecutorError::Redirect(number, own_number, None),
            })?;
        }
        all.push(ends);
    }
    Ok(all)
}

/// Starts all programs on their streams, which stay their own: this process gives its copies away,
/// lest a pipe look open that nobody writes to. With `rules` each program binds itself to them first.
///
/// # Errors
/// One could not be started. Those before it run; whoever hears of it must end them.
pub(super) fn start_programs(
    run: &CommandMessage,
    all: Vec<ProgramStreams>,
    rules: Option<BorrowedFd<'_>>,
    host_device: &dyn Fn(u64) -> u64,
) -> Result<StartedPrograms, ExecutorError> {
    let mut started = Vec::with_capacity(run.stages.len());
    for ((number, stage), ends) in enumerate_indices(&run.stages).zip(all) {
        if number > 0 {
            // Those that run may have changed it.
            program::check_program(number, stage, CWD, host_device)?;
        }
        let connected = dup2_stdin(&ends.input)
            .and_then(|()| dup2_stdout(&ends.output))
            .and_then(|()| dup2_stderr(&ends.error));
        connected.at(Step::Streams)?;
        drop(ends);
        started.push((program::start_stage(number, stage, &run.limits, rules)?, None));
    }
    program::close_range(0, 2).at(Step::Streams)?;
    Ok(StartedPrograms(started))
}

/// Programs that were started, and the status of each that has ended.
pub(super) struct StartedPrograms(Vec<(Pid, Option<i32>)>);

impl StartedPrograms {
    /// Notes that a process has ended; every status, if it was the last of the programs.
    pub(super) fn record_exit(&mut self, ended: Pid, status: i32) -> Option<Vec<i32>> {
        // A program that was noted before has given its number away.
        let item = self.0.iter_mut().find(|(pid, known)| *pid == ended && known.is_none());
        item?.1 = Some(status);
        self.0.iter().map(|(_, status)| *status).collect()
    }

    /// One that has not ended as far as was noted.
    pub(super) fn any_running(&self) -> Option<Pid> {
        self.0.iter().find(|(_, status)| status.is_none()).map(|(pid, _)| *pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_somebody_elses() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let mut started = StartedPrograms(vec![(pid(2), None), (pid(3), None), (pid(4), None)]);
        assert_eq!(started.any_running(), Some(pid(2)));
        assert_eq!(started.record_exit(pid(9), 1), None);
        assert_eq!(started.record_exit(pid(2), 256), None);
        assert_eq!(started.any_running(), Some(pid(3)));
        assert_eq!(started.record_exit(pid(2), 9), None, "an orphan that came later");
        assert_eq!(started.record_exit(pid(4), 0), None);
        assert_eq!(started.record_exit(pid(3), 13), Some(vec![256, 13, 0]));
        assert_eq!(started.any_running(), None);
    }
}
