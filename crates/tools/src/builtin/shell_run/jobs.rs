//! `wait`, `kill` and `jobs` as parts of a list, and its end: what came of the parts that run in the background.

use std::rc::Rc;
use std::thread;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_command::shell_syntax::{
    PipelineStage, Script, ShellWord, StdStream, is_about_jobs, parse,
};
use capsule_command::steps::redirect_streams;
use capsule_core::confinement::Enforcement;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_sandbox::{CapturedOutput, CommandResult, OutputKind, Termination};
use capsule_workspace::{Cancel, Staging};
use serde_json::{Value, json};

use crate::command::background::{BackgroundJob, BackgroundJobs};
use crate::command::outcome::{with_outputs, with_pipe_fail};
use crate::host::Sink;
use crate::tool::ToolContext;

/// How often is looked whether a job has ended.
const LOOK: Duration = Duration::from_millis(10);

/// What a part does with jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JobCommand {
    /// Waits for the ends of these, or of all.
    Wait(Option<Vec<u64>>),
    /// Lists those that were not collected.
    List,
    /// Ends these as by this signal; 0 only asks whether they run.
    Kill(i32, Vec<u64>),
    /// Ends all that run, since the list ends.
    EndAll,
}

/// The signals that `kill` knows, which all end a job at once.
const SIGNALS: [(&str, i32); 5] = [("TERM", 15), ("KILL", 9), ("INT", 2), ("HUP", 1), ("QUIT", 3)];

/// The signal that ends what still runs when the list ends.
const KILLED: i32 = 9;

/// A form of `wait`, `kill` or `jobs` that is not known.
pub(super) fn unknown_form() -> CodedError {
    CodedError::new(
        Code::ExecNotInLanguage,
        "this form of `wait`, `kill` or `jobs` is not known here",
    )
    .with_suggestion("write `wait`, `wait %1`, `kill %1`, `kill -9 $!` or `jobs`")
}

/// What a job is named.
fn job_number(word: &str) -> Option<u64> {
    word.strip_prefix('%')?.parse().ok().filter(|number| *number > 0)
}

/// The number of a signal, as `-9`, `-TERM` or `-SIGTERM` name it behind the dash.
fn signal_number(name: &str) -> Option<i32> {
    let plain = name.strip_prefix("SIG").unwrap_or(name);
    let known = SIGNALS.iter().find(|(text, number)| *text == plain || number.to_string() == name);
    known.map(|(_, number)| *number).or_else(|| (name == "0").then_some(0))
}

impl JobCommand {
    fn parse(stage: &PipelineStage) -> Option<Self> {
        let mut words = stage.words.iter().map(ShellWord::literal).collect::<Option<Vec<_>>>()?;
        if let Some(end) = words.iter().position(|word| *word == "--") {
            words.remove(end);
        }
        let numbers = |words: &[&str]| -> Option<Vec<u64>> {
            words.iter().map(|word| job_number(word)).collect()
        };
        match words.as_slice() {
            ["jobs"] => Some(Self::List),
            ["wait"] => Some(Self::Wait(None)),
            ["wait", rest @ ..] => numbers(rest).map(|jobs| Self::Wait(Some(jobs))),
            ["kill", "-s" | "-n", name, rest @ ..] => {
                Some(Self::Kill(signal_number(name)?, numbers(rest)?))
            }
            ["kill", option, rest @ ..] if option.starts_with('-') => {
                Some(Self::Kill(signal_number(option.get(1..)?)?, numbers(rest)?))
            }
            ["kill", rest @ ..] => Some(Self::Kill(15, numbers(rest)?)),
            _ => None,
        }
    }
}

/// Whether all of `wait`, `kill` and `jobs` in a list has a form that is known.
pub(super) fn has_known_jobs(script: &Script) -> bool {
    script.stages().all(|stage| {
        // A value may be the name of a job, as `$!` is.
        let word = |word: &ShellWord| match word.literal() {
            Some(_) => word.clone(),
            None => ShellWord::text("%1"),
        };
        let words = stage.words.iter().map(word).collect();
        let stage = PipelineStage { words, ..stage.clone() };
        let is_plain = stage.variables.is_empty() && redirect_streams(&stage).is_some();
        !is_about_jobs(&stage) || is_plain && JobCommand::parse(&stage).is_some()
    })
}

/// What a part of a list does with its jobs.
pub(super) struct JobOperation {
    command: JobCommand,
    /// Where what it lists goes, and its messages.
    streams: [Option<StdStream>; 2],
    jobs: BackgroundJobs,
    sink: Rc<dyn Sink>,
    cancel: Cancel,
    staging: Option<Rc<Staging>>,
}

/// What came of the jobs that an operation collected.
#[derive(Default)]
struct Collected {
    status: u8,
    listed: String,
    messages: String,
    stdout: Vec<CapturedOutput>,
    stderr: Vec<CapturedOutput>,
    ends: Vec<Value>,
    enforcement: Option<Enforcement>,
}

impl JobOperation {
    /// The operation of a part that is about jobs, or of the end of a list; none of any other part.
    ///
    /// # Errors
    /// The form that its values make of it is not known.
    pub(super) fn of(
        text: &str,
        is_end: bool,
        context: &ToolContext<'_>,
    ) -> Option<Result<Self, CodedError>> {
        // Such a part is only of the language behind one that runs in the background.
        let script = parse(&format!("true & {text}")).ok();
        let stage = script.as_ref().and_then(|script| script.stages().nth(1));
        let (command, streams) = match stage.filter(|stage| is_about_jobs(stage)) {
            _ if is_end => (JobCommand::EndAll, [None; 2]),
            Some(stage) => match JobCommand::parse(stage).zip(redirect_streams(stage)) {
                Some((command, (output, errors))) => (command, [output, errors]),
                None => return Some(Err(unknown_form())),
            },
            None => return None,
        };
        Some(Ok(Self {
            command,
            streams,
            jobs: context.commands.jobs().clone(),
            sink: Rc::clone(context.sink),
            cancel: context.cancel.clone(),
            staging: context.staging.ok().flatten().cloned(),
        }))
    }

    /// Waits for the ends of jobs, unless nobody wants that any more, or they change too much.
    ///
    /// # Errors
    /// Why they were ended.
    fn wait_for(&self, numbers: &[u64]) -> Result<(), CodedError> {
        let runs = |number: &u64| self.jobs.is_running(*number) == Some(true);
        while numbers.iter().any(runs) {
            let full = self.staging.as_ref().and_then(|staging| staging.space_problem());
            if let Some(problem) = full {
                self.jobs.end_all();
                return Err(problem);
            }
            thread::sleep(LOOK);
        }
        match self.cancel.is_set() {
            true => Err(CodedError::new(Code::ExecCancelled, "the program was cancelled")),
            false => Ok(()),
        }
    }

    fn collect_all(&self) -> (Collected, Result<(), CodedError>) {
        let mut found = Collected::default();
        let ended = match &self.command {
            JobCommand::EndAll => {
                self.jobs.end_all();
                let ended = self.wait_for(&self.jobs.numbers());
                self.jobs
                    .numbers()
                    .into_iter()
                    .for_each(|job| found.add(job, &self.jobs, Some(KILLED)));
                found.status = 0;
                ended
            }
            JobCommand::Wait(None) => {
                let ended = self.wait_for(&self.jobs.numbers());
                self.jobs.numbers().into_iter().for_each(|job| found.add(job, &self.jobs, None));
                found.status = 0;
                ended
            }
            JobCommand::Wait(Some(numbers)) => {
                let ended = self.wait_for(numbers);
                for number in numbers {
                    match self.jobs.is_running(*number) {
                        None => match self.jobs.killed_status(*number) {
                            Some(status) => found.status = status,
                            None => found.miss("wait", *number, 127),
                        },
                        Some(_) => found.add(*number, &self.jobs, None),
                    }
                }
                ended
            }
            JobCommand::List => {
                found.listed = self.jobs.list();
                Ok(())
            }
            JobCommand::Kill(signal, numbers) => {
                for number in numbers {
                    self.kill(*number, *signal, &mut found);
                }
                Ok(())
            }
        };
        (found, ended)
    }

    fn kill(&self, number: u64, signal: i32, found: &mut Collected) {
        match self.jobs.is_running(number) {
            Some(true) if signal == 0 => {}
            Some(true) => {
                let before = found.status;
                if let Some(job) = self.jobs.take(number) {
                    job.end();
                    found.take(job, Some(signal));
                    self.jobs.note_killed(number, found.status);
                }
                found.status = before;
            }
            Some(false) if signal != 0 => {
                found.add(number, &self.jobs, None);
                found.miss("kill", number, 1);
            }
            _ => found.miss("kill", number, 1),
        }
    }
}

impl Collected {
    /// Says that there is no such job.
    fn miss(&mut self, name: &str, number: u64, status: u8) {
        self.status = status;
        self.messages.push_str(&format!("{name}: %{number}: no such job\n"));
    }

    fn add(&mut self, number: u64, jobs: &BackgroundJobs, killed_by: Option<i32>) {
        if let Some(job) = jobs.take(number) {
            self.take(job, killed_by);
        }
    }

    /// Adds what came of a job. One that was ended by `kill` counts as ended by that signal.
    fn take(&mut self, job: BackgroundJob, killed_by: Option<i32>) {
        let (number, pipe_fail) = (job.number, job.pipe_fail);
        let limits = job.confinement.limits;
        match job.collect() {
            Ok(exit) => {
                let mut exit = with_pipe_fail(exit, pipe_fail);
                if let (Some(signal), Termination::Cancelled) = (killed_by, exit.termination) {
                    exit.termination = Termination::Signalled(signal);
                }
                self.end(number, &exit, &limits);
                self.enforcement = Some(Enforcement::Sandboxed(exit.sandbox_status));
                self.stdout.push(exit.stdout);
                self.stderr.push(exit.stderr);
            }
            Err(problem) => {
                self.status = if problem.code == Code::FileSystem { 1 } else { 127 };
                self.messages.push_str(&format!("{}\n", problem.message));
                self.ends.push(json!({ "job": number, "problem": problem }));
            }
        }
    }

    fn end(
        &mut self,
        number: u64,
        exit: &CommandResult,
        limits: &capsule_core::confinement::ProcessLimits,
    ) {
        let (problem, code, signal) = crate::command::outcome::end_problem(exit, limits);
        let ended = code.or(signal.map(|signal| signal + 128));
        self.status = ended.and_then(|status| u8::try_from(status).ok()).unwrap_or(137);
        let mut end = json!({ "job": number, "exit_code": code, "signal": signal });
        if let (Some(problem), None, None, Value::Object(end)) = (problem, code, signal, &mut end) {
            self.messages.push_str(&format!("%{number}: {}\n", problem.message));
            end.insert("problem".into(), json!(problem));
        }
        self.ends.push(end);
    }
}

/// Outputs one behind the other, up to the most that a command may give.
fn joined(outputs: Vec<CapturedOutput>) -> CapturedOutput {
    let most = usize::try_from(limits::OUTPUT_BYTES_MAX).unwrap_or(usize::MAX);
    let mut sum = CapturedOutput::default();
    for output in outputs {
        sum.total = sum.total.saturating_add(output.total);
        sum.truncated |= output.truncated || sum.bytes.len() + output.bytes.len() > most;
        let room = most.saturating_sub(sum.bytes.len()).min(output.bytes.len());
        sum.bytes.extend(output.bytes.get(..room).unwrap_or_default());
        (sum.tail, sum.tail_start) = (output.tail, output.tail_start);
    }
    sum
}

impl Operation for JobOperation {
    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        let (found, ended) = self.collect_all();
        let Collected { status, listed, messages, stdout, stderr, ends, enforcement } = found;
        let (mut stdout, mut stderr) = (joined(stdout), joined(stderr));
        for (stream, text) in self.streams.into_iter().zip([listed, messages]) {
            let stream = match stream {
                Some(StdStream::Out) => &mut stdout,
                Some(StdStream::Err) => &mut stderr,
                None => continue,
            };
            stream.bytes.extend(text.as_bytes());
            stream.total = stream.total.saturating_add(u64::try_from(text.len()).unwrap_or(0));
        }
        self.sink.output(OutputKind::Stdout, &stdout.bytes);
        self.sink.output(OutputKind::Stderr, &stderr.bytes);
        let output = Output::default();
        let output = if ended.is_ok() { output.with("exit_code", status) } else { output };
        let output = with_outputs(output, stdout, stderr).with("jobs", ends);
        let outcome = Outcome::done(output);
        let outcome = match enforcement {
            Some(enforcement) => Outcome { enforcement, ..outcome },
            None => outcome,
        };
        match (ended, status) {
            (Err(problem), _) => outcome.with_end(problem),
            (Ok(()), 0) => outcome,
            (Ok(()), status) => {
                let message = format!("the command ended with status {status}");
                outcome.with_end(CodedError::new(Code::ExecFailed, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_wait_and_kill() {
        for (text, expected) in [
            ("wait", Some(JobCommand::Wait(None))),
            ("wait %1 %2", Some(JobCommand::Wait(Some(vec![1, 2])))),
            ("wait 77", None),
            ("wait -n", None),
            ("kill %1", Some(JobCommand::Kill(15, vec![1]))),
            ("kill -9 %2", Some(JobCommand::Kill(9, vec![2]))),
            ("kill -SIGINT %1", Some(JobCommand::Kill(2, vec![1]))),
            ("kill -s HUP %1", Some(JobCommand::Kill(1, vec![1]))),
            ("kill -0 %1", Some(JobCommand::Kill(0, vec![1]))),
            ("kill -USR1 %1", None),
            ("kill %1 77", None),
            ("kill %%", None),
            ("kill -- %1", Some(JobCommand::Kill(15, vec![1]))),
            ("kill -n 9 -- %1", Some(JobCommand::Kill(9, vec![1]))),
            ("wait -- %1", Some(JobCommand::Wait(Some(vec![1])))),
            ("kill -STOP %1", None),
            ("kill -term %1", None),
            ("kill %0", None),
            ("jobs", Some(JobCommand::List)),
            ("jobs -p", None),
        ] {
            let script = parse(&format!("sleep 1 & {text}")).unwrap();
            let stage = script.stages().nth(1).unwrap();
            assert_eq!(JobCommand::parse(stage), expected, "{text}");
            assert_eq!(has_known_jobs(&script), expected.is_some(), "{text}");
        }
        for text in [
            "sleep 1 & kill %1 > f",
            "sleep 1 & A=1 wait",
            "sleep 1 & wait < f",
            "sleep 1 & kill -USR1 $!",
            "sleep 1 & kill $! 77",
            "sleep 1 & wait -n $!",
        ] {
            assert!(!has_known_jobs(&parse(text).unwrap()), "{text}");
        }
        for text in ["sleep 1 & kill $!", "sleep 1 & P=$!; kill -9 $P", "sleep 1 & wait -- $!"] {
            assert!(has_known_jobs(&parse(text).unwrap()), "{text}");
        }
    }
}
