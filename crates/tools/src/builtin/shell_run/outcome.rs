//! What came of a command, as everyone sees it.

use capsule_core::code::Code;
use capsule_core::confinement::{Bound, Confinement, Enforcement, ProcessLimits, WorkspaceAccess};
use capsule_core::outcome::{Outcome, Output, Problem};
use capsule_core::units;
use capsule_redact::Piece;
use capsule_sandbox::{Exit, How};

/// The limits that a command ran into, behind how it ended, but for the one that says so already.
fn beyond(reached: &[Bound], said: Option<Bound>) -> String {
    let told = |own: &&Bound| **own != Bound::Output && Some(**own) != said;
    let (memory, others): (Vec<&Bound>, Vec<&Bound>) =
        reached.iter().filter(told).partition(|own| **own == Bound::Memory);
    let (crowd, others): (Vec<&Bound>, Vec<&Bound>) =
        others.into_iter().partition(|own| **own == Bound::Processes);
    let names: Vec<&str> = others.into_iter().map(|own| own.name()).collect();
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
pub(in crate::builtin) fn confined(exit: Exit, by: &Confinement, clamped: bool) -> Outcome {
    let enforcement = Enforcement::Walls(exit.walls.clone());
    let ended = outcome(exit, &by.limits, clamped);
    let output = match by.workspace {
        WorkspaceAccess::Direct => ended.output.with("direct", true),
        WorkspaceAccess::ReadOnly | WorkspaceAccess::Staged => ended.output,
    };
    Outcome { output, enforcement, ..ended }
}

/// What is wrong with how it ended, if anything, its status, and the signal that ended it.
fn end(exit: &Exit, limits: &ProcessLimits) -> (Option<Problem>, Option<i32>, Option<i32>) {
    match exit.how {
        How::Exited(0) => (None, Some(0), None),
        How::Exited(code) => {
            let message =
                format!("the program ended with status {code}{}", beyond(&exit.reached, None));
            (Some(Problem::new(Code::ExecFailed, message)), Some(code), None)
        }
        How::Signalled(signal) => {
            let message =
                format!("the program was ended by signal {signal}{}", beyond(&exit.reached, None));
            (Some(Problem::new(Code::ExecSignal, message)), None, Some(signal))
        }
        How::TimedOut => {
            let after = units::show_duration(limits.timeout_ms.saturating_mul(1_000));
            let others = beyond(&exit.reached, Some(Bound::Time));
            let message = format!("the program was ended after {after}{others}");
            (Some(Problem::new(Code::ExecTimeout, message)), None, None)
        }
        How::Cancelled => {
            (Some(Problem::new(Code::ExecCancelled, "the program was cancelled")), None, None)
        }
        How::MemoryExceeded => {
            let most = units::show_size(limits.memory_bytes);
            let others = beyond(&exit.reached, Some(Bound::Memory));
            let message =
                format!("the program used more than {most} of memory and was ended{others}");
            (Some(Problem::new(Code::ExecMemory, message)), None, None)
        }
        How::OutputFlood => {
            let others = beyond(&exit.reached, None);
            let message = format!("the program wrote without end and was ended{others}");
            (Some(Problem::new(Code::ExecSignal, message)), None, None)
        }
    }
}

/// What came of a command, whatever held it.
pub(super) fn outcome(exit: Exit, limits: &ProcessLimits, clamped: bool) -> Outcome {
    let (problem, code, signal) = end(&exit, limits);
    let output = Output::default()
        .with("exit_code", code)
        .with("signal", signal)
        .with_bytes(
            "stdout",
            "stdout_base64",
            Piece::beginning(exit.stdout.bytes, exit.stdout.truncated),
        )
        .with_bytes(
            "stderr",
            "stderr_base64",
            Piece::beginning(exit.stderr.bytes, exit.stderr.truncated),
        )
        .with("stdout_bytes_total", exit.stdout.total)
        .with("stderr_bytes_total", exit.stderr.total)
        .with("truncated", exit.stdout.truncated || exit.stderr.truncated)
        .with("limits_reached", serde_json::to_value(&exit.reached).unwrap_or_default())
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
