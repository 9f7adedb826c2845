//! What came of a command, as everyone sees it.

use capsule_base::code::Code;
use capsule_base::units;
use capsule_core::confinement::{
    Confinement, Enforcement, ProcessLimits, ResourceLimit, WorkspaceAccess,
};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_redact::TextPiece;
use capsule_sandbox::{CapturedOutput, CommandResult, Termination};

/// The limits that a command ran into, behind how it ended, but for the one that says so already.
fn limits_text(reached: &[ResourceLimit], said: Option<ResourceLimit>) -> String {
    let told = |limit: &&ResourceLimit| **limit != ResourceLimit::Output && Some(**limit) != said;
    let (memory, others): (Vec<&ResourceLimit>, Vec<&ResourceLimit>) =
        reached.iter().filter(told).partition(|limit| **limit == ResourceLimit::Memory);
    let (crowd, others): (Vec<&ResourceLimit>, Vec<&ResourceLimit>) =
        others.into_iter().partition(|other| **other == ResourceLimit::Processes);
    let names: Vec<&str> = others.into_iter().map(|other| other.name()).collect();
    let mut words = match names.as_slice() {
        [] => String::new(),
        names => format!("; it ran into its limit of {}", names.join(" and ")),
    };
    // Whether it wanted more is not always known.
    if !crowd.is_empty() {
        words.push_str("; it had as many processes as it may");
    }
    // The program itself was not: it has an end of its own.
    if !memory.is_empty() {
        words.push_str("; a process of it was ended because memory ran out");
    }
    words
}

/// What came of a command behind its walls, as everyone sees it.
pub(crate) fn confined_outcome(exit: CommandResult, by: &Confinement, clamped: bool) -> Outcome {
    let enforcement = Enforcement::Sandboxed(exit.sandbox_status.clone());
    let ended = exit_outcome(exit, &by.limits, clamped);
    let output = match by.workspace {
        WorkspaceAccess::Direct => ended.output.with("direct", true),
        WorkspaceAccess::ReadOnly | WorkspaceAccess::Staged => ended.output,
    };
    Outcome { output, enforcement, ..ended }
}

/// The same, which failed with the last of its programs that did, where it fails with any of them.
pub(crate) fn with_pipe_fail(exit: CommandResult, pipe_fail: bool) -> CommandResult {
    let failed = exit.stages.iter().rev().find(|end| **end != Termination::Exited(0));
    let termination = match (pipe_fail, exit.termination) {
        (true, Termination::Exited(0)) => failed.copied().unwrap_or(exit.termination),
        (_, termination) => termination,
    };
    CommandResult { termination, ..exit }
}

/// What is wrong with how it ended, if anything, its status, and the signal that ended it.
pub(crate) fn end_problem(
    exit: &CommandResult,
    limits: &ProcessLimits,
) -> (Option<CodedError>, Option<i32>, Option<i32>) {
    match exit.termination {
        Termination::Exited(0) => (None, Some(0), None),
        Termination::Exited(code) => {
            let message = format!(
                "the program ended with status {code}{}",
                limits_text(&exit.reached_limits, None)
            );
            (Some(CodedError::new(Code::ExecFailed, message)), Some(code), None)
        }
        Termination::Signalled(signal) => {
            let message = format!(
                "the program was ended by signal {signal}{}",
                limits_text(&exit.reached_limits, None)
            );
            (Some(CodedError::new(Code::ExecSignal, message)), None, Some(signal))
        }
        Termination::TimedOut => {
            let after = units::show_duration(limits.timeout_ms.saturating_mul(1_000));
            let others = limits_text(&exit.reached_limits, Some(ResourceLimit::Time));
            let message = format!("the program was ended after {after}{others}");
            (Some(CodedError::new(Code::ExecTimeout, message)), None, None)
        }
        Termination::Cancelled => {
            (Some(CodedError::new(Code::ExecCancelled, "the program was cancelled")), None, None)
        }
        Termination::MemoryExceeded => {
            let most = units::show_size(limits.memory_bytes);
            let others = limits_text(&exit.reached_limits, Some(ResourceLimit::Memory));
            let message =
                format!("the program used more than {most} of memory and was ended{others}");
            (Some(CodedError::new(Code::ExecMemory, message)), None, None)
        }
        Termination::OutputFlood => {
            let others = limits_text(&exit.reached_limits, None);
            let message = format!("the program wrote without end and was ended{others}");
            (Some(CodedError::new(Code::ExecSignal, message)), None, None)
        }
    }
}

/// The result's fields for a stream: its text, or base64 where it is none, and the same for the last part of
/// one that was cut.
type StreamFields = [(&'static str, &'static str); 2];

const STDOUT_FIELDS: StreamFields =
    [("stdout", "stdout_base64"), ("stdout_tail", "stdout_tail_base64")];
const STDERR_FIELDS: StreamFields =
    [("stderr", "stderr_base64"), ("stderr_tail", "stderr_tail_base64")];

fn with_stream(output: Output, captured: CapturedOutput, fields: &StreamFields) -> Output {
    let [(text, base64), (tail_text, tail_base64)] = *fields;
    let CapturedOutput { bytes, tail, tail_start, truncated, .. } = captured;
    // Text that is cut stays text: no character is cut in two.
    let end = match std::str::from_utf8(&bytes) {
        Err(error) if truncated && error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let piece = TextPiece { bytes, window: 0..end, cut_before: false, cut_after: truncated };
    let output = output.with_bytes(text, base64, piece);
    if tail_start >= tail.len() {
        return output;
    }
    let goes_on = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let rest = tail.get(tail_start..).unwrap_or_default();
    let start = tail_start + rest.iter().take(3).take_while(goes_on).count();
    let window = start..tail.len();
    let piece = TextPiece { bytes: tail, window, cut_before: true, cut_after: false };
    output.with_bytes(tail_text, tail_base64, piece)
}

/// The result with what was printed.
pub(crate) fn with_outputs(
    output: Output,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
) -> Output {
    let cut = stdout.truncated || stderr.truncated;
    let (stdout_total, stderr_total) = (stdout.total, stderr.total);
    let output = with_stream(output, stdout, &STDOUT_FIELDS);
    with_stream(output, stderr, &STDERR_FIELDS)
        .with("stdout_bytes_total", stdout_total)
        .with("stderr_bytes_total", stderr_total)
        .with("truncated", cut)
}

/// What came of a command, whatever held it.
pub(super) fn exit_outcome(exit: CommandResult, limits: &ProcessLimits, clamped: bool) -> Outcome {
    let (problem, code, signal) = end_problem(&exit, limits);
    let output = Output::default().with("exit_code", code).with("signal", signal);
    let output = with_outputs(output, exit.stdout, exit.stderr)
        .with("limits_reached", serde_json::to_value(&exit.reached_limits).unwrap_or_default())
        .with("clamped", clamped);
    let output = match exit.left_running {
        0 => output,
        some => output.with("left_running", some),
    };
    match problem {
        None => Outcome::done(output),
        Some(problem) => Outcome { output, ..Outcome::failed(problem) },
    }
}
