//! Parts of a list that run in the background, beside the parts behind them.
//!
//! Each has a copy of the executor and a thread that keeps its bounds. Its call ends when it has begun; what comes of it is
//! the result of the call that ends it, or waits for it, at the latest when the list ends.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_command::argv::show_argv;
use capsule_core::confinement::Confinement;
use capsule_core::outcome::CodedError;
use capsule_core::policy::PathScope;
use capsule_sandbox::{
    CommandResult, CommandWatcher, Executor, Launch, LaunchStage, OutputKind, SandboxBackend as _,
    SandboxError,
};
use capsule_workspace::Cancel;

/// Says what an error of the sandbox is, with the names of the programs.
pub(crate) type DescribeError = Box<dyn Fn(&SandboxError) -> CodedError>;

/// A part of a list that runs, or has ended and was not collected.
pub(crate) struct BackgroundJob {
    /// Its number among the background parts of the list, from 1.
    pub(crate) number: u64,
    /// Its words.
    text: String,
    /// What an error of the sandbox is to a caller.
    describe: DescribeError,
    /// What bounds it.
    pub(crate) confinement: Confinement,
    /// Whether it fails with any of its programs.
    pub(crate) pipe_fail: bool,
    process: JobThread,
}

/// The thread that waits for the end of a job. Dropping it ends the job, and waits for that.
struct JobThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<CommandResult, SandboxError>>>,
}

/// The jobs of a run.
#[derive(Clone, Default)]
pub(crate) struct BackgroundJobs(Rc<RefCell<JobTable>>);

#[derive(Default)]
struct JobTable {
    jobs: Vec<BackgroundJob>,
    /// The statuses of those that `kill` ended, for a `wait` behind it.
    killed: Vec<(u64, u8)>,
    /// What all that changed something since the first of them began may change, while its changes are not collected.
    writes: Option<PathScope>,
}

/// What bounds a job besides the limits that the executor keeps.
struct JobWatcher {
    stop: Arc<AtomicBool>,
    cancel: Cancel,
}

impl CommandWatcher for JobWatcher {
    fn output(&mut self, _: OutputKind, _: &[u8]) {}

    fn is_cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancel.is_set()
    }
}

impl JobThread {
    /// Has a command begin in an executor of its own.
    ///
    /// # Errors
    /// It cannot be told, or there is no thread to wait for it.
    fn start(mut executor: Executor, launch: Launch, cancel: Cancel) -> Result<Self, SandboxError> {
        let prepared = executor.prepare(launch)?;
        let running = executor.start_command(prepared)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut watcher = JobWatcher { stop: Arc::clone(&stop), cancel };
        let wait = move || {
            let ended = executor.wait(running, &mut watcher);
            drop(executor);
            ended
        };
        let thread = thread::Builder::new().name("capsule-job".into()).spawn(wait);
        let thread = thread.map_err(|error| SandboxError::Start { reason: error.to_string() })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    fn join(&mut self) -> Result<CommandResult, SandboxError> {
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or(Err(SandboxError::ExecutorDied { reason: "nothing waited for its end" }))
    }
}

impl Drop for JobThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.join();
    }
}

impl BackgroundJob {
    /// Whether it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        self.process.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Has it end, if it has not.
    pub(crate) fn end(&self) {
        self.process.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The sandbox did not run it.
    pub(crate) fn collect(mut self) -> Result<CommandResult, CodedError> {
        self.process.join().map_err(|error| (self.describe)(&error))
    }
}

impl BackgroundJobs {
    /// Has a command begin in a copy of the executor.
    ///
    /// # Errors
    /// The sandbox does not run it, or as many run as may.
    pub(crate) fn start(
        &self,
        copy: Executor,
        (launch, cancel): (Launch, Cancel),
        job: (u64, DescribeError, Confinement, bool),
    ) -> Result<(), CodedError> {
        let (number, describe, confinement, pipe_fail) = job;
        if self.0.borrow().jobs.len() >= limits::BACKGROUND_JOBS {
            let most = limits::BACKGROUND_JOBS;
            let message = format!("at most {most} parts of a list run in the background");
            return Err(CodedError::new(Code::ExecNotInLanguage, message)
                .with_suggestion("write `wait` before the next one"));
        }
        let words = |stage: &LaunchStage| {
            let words: Vec<_> =
                stage.argv.iter().map(|word| word.to_string_lossy().into()).collect();
            show_argv(&words)
        };
        let text = launch.stages.iter().map(words).collect::<Vec<_>>().join(" | ");
        let process = JobThread::start(copy, launch, cancel);
        let process = process.map_err(|error| describe(&error))?;
        let job = BackgroundJob { number, text, describe, confinement, pipe_fail, process };
        self.0.borrow_mut().jobs.push(job);
        Ok(())
    }

    /// Whether there are any that were not collected.
    pub(crate) fn exist(&self) -> bool {
        !self.0.borrow().jobs.is_empty()
    }

    /// The numbers of those that were not collected.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.0.borrow().jobs.iter().map(|job| job.number).collect()
    }

    /// Those that were not collected, a line for each as `jobs` of a shell has it.
    pub(crate) fn list(&self) -> String {
        let table = self.0.borrow();
        let last = table.jobs.len().saturating_sub(1);
        let line = |(at, job): (usize, &BackgroundJob)| {
            let mark = if at == last {
                '+'
            } else if at + 1 == last {
                '-'
            } else {
                ' '
            };
            let (state, sign) = if job.is_running() { ("Running", " &") } else { ("Done", "") };
            format!("[{}]{mark}  {state:<24}{}{sign}\n", job.number, job.text)
        };
        table.jobs.iter().enumerate().map(line).collect()
    }

    /// Whether one has not ended; none if there is no such.
    pub(crate) fn is_running(&self, number: u64) -> Option<bool> {
        let table = self.0.borrow();
        table.jobs.iter().find(|job| job.number == number).map(BackgroundJob::is_running)
    }

    /// Has all of them end.
    pub(crate) fn end_all(&self) {
        self.0.borrow().jobs.iter().for_each(BackgroundJob::end);
    }

    /// Notes how one ended that `kill` ended.
    pub(crate) fn note_killed(&self, number: u64, status: u8) {
        self.0.borrow_mut().killed.push((number, status));
    }

    /// How one ended that `kill` ended, once.
    pub(crate) fn killed_status(&self, number: u64) -> Option<u8> {
        let mut table = self.0.borrow_mut();
        let at = table.killed.iter().position(|(killed, _)| *killed == number)?;
        Some(table.killed.remove(at).1)
    }

    /// Takes one out.
    pub(crate) fn take(&self, number: u64) -> Option<BackgroundJob> {
        let mut table = self.0.borrow_mut();
        let at = table.jobs.iter().position(|job| job.number == number)?;
        Some(table.jobs.remove(at))
    }

    /// Ends those that were not collected; whether there were any, or changes of some.
    pub(crate) fn drop_all(&self) -> bool {
        let JobTable { jobs, writes, .. } = std::mem::take(&mut *self.0.borrow_mut());
        !jobs.is_empty() || writes.is_some()
    }

    /// What the call that now ends, and all before it whose changes were not collected, may change together. None where
    /// some still run, so that the changes are left to a later call.
    pub(crate) fn writes_until_now(&self, writes: Option<PathScope>) -> Option<PathScope> {
        let mut table = self.0.borrow_mut();
        let all = match (table.writes.take(), writes) {
            (Some(before), Some(writes)) => Some(before.join_parallel(writes)),
            (before, writes) => before.or(writes),
        };
        if table.jobs.is_empty() {
            return all;
        }
        table.writes = all;
        None
    }

    /// Whether changes are left to the call that now begins.
    pub(crate) fn left_changes(&self) -> bool {
        self.0.borrow().writes.is_some()
    }
}
