//! `capsule hook`: a host asks before it makes a call of a model; the call is judged by the policy of the user and
//! recorded, and the answer is in the form of the host.
//!
//! A command is rewritten into one that runs confined, and is recorded when it runs. What the host's own tools do to
//! files is judged, recorded and backed up here, and done by the host. Whatever goes wrong is a denial.

mod agent_settings;
mod answer;
mod calls;
mod dialect;
mod find_pattern;
mod host_tool;
mod input;
mod json_edit;
mod patch;
mod replaced_tools;
mod rewrite;
mod session;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::Cancel;
use rustix::fs::{FileType, fstat, stat};

pub(crate) use agent_settings::AgentSettings;
pub(crate) use dialect::DialectName;
pub(crate) use replaced_tools::{ServerSettings, open_tools};

use crate::args::{Globals, HookArgs};
use crate::failure::Failure;
use crate::hook::answer::HookAnswer;
use crate::hook::input::HookInput;

/// Answers a host.
///
/// # Errors
/// When not even a denial can be printed: the exit status then denies, where the host knows one that does.
pub(crate) fn run(args: &HookArgs, globals: &Globals) -> Result<u8, Failure> {
    let dialect = args.dialect.dialect();
    let answer = answer_in_time(args, globals);
    let text = answer.render(dialect);
    match text.is_some_and(|text| print(&text)) {
        true => Ok(0),
        // With this status the hosts that know one that denies show standard error to the model.
        false => {
            let _ =
                writeln!(io::stderr(), "Capsule denies this call: its answer cannot be written.");
            Ok(DENYING_STATUS)
        }
    }
}

/// Prints an answer; false where no host can have got it. A standard output that was closed is `/dev/null` by now, and
/// what the standard library writes to one that cannot be written to counts as written.
fn print(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let out = io::stdout();
    let (Ok(found), Ok(null)) = (fstat(&out), stat("/dev/null")) else { return false };
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    if is_device && found.st_rdev == null.st_rdev {
        return false;
    }
    let file = out.as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|mut file| file.write_all(text.as_bytes())).is_ok()
}

/// The exit status with which a hook denies without an answer.
const DENYING_STATUS: u8 = 2;

/// The answer, or a denial once it takes too long.
fn answer_in_time(args: &HookArgs, globals: &Globals) -> HookAnswer {
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let cancel = Cancel::new(Arc::clone(&stop));
    let (args, globals) = (args.clone(), globals.clone());
    let started = thread::Builder::new().spawn(move || {
        let dialect = args.dialect.dialect();
        let answer = HookInput::read(io::stdin().lock(), dialect)
            .and_then(|input| session::answer(&input, (&args, &globals), &cancel));
        // The other side waits no longer if it is gone.
        let _ = sender.send(answer.unwrap_or_else(|problem| HookAnswer::denial(&problem)));
    });
    if let Err(error) = started {
        let message = format!("no thread can be started: {error}");
        return HookAnswer::denial(&CodedError::new(Code::EngineFault, message));
    }
    let answer = match receiver.recv_timeout(limits::HOOK_TIME) {
        Err(RecvTimeoutError::Timeout) => {
            // What waits for a lock says whose it is.
            stop.store(true, Ordering::Relaxed);
            receiver.recv_timeout(limits::HOOK_LAST_WORDS)
        }
        answer => answer,
    };
    answer.unwrap_or_else(|error| {
        HookAnswer::denial(&match error {
            RecvTimeoutError::Timeout => {
                CodedError::new(Code::HookDeadline, "the hook did not come to an answer in time")
            }
            RecvTimeoutError::Disconnected => {
                CodedError::new(Code::EnginePanicked, "the hook panicked")
            }
        })
    })
}
