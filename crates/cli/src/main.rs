//! The binary `capsule`: it reads arguments, shows what happens and ends with an exit code. What it
//! does is done elsewhere.

mod args;
mod card;
mod chat;
mod command;
mod context;
mod diagnostic;
mod failure;
mod failure_report;
mod hook;
mod isolation;
mod mcp;
mod new_file;
mod output_relay;
mod repository;
mod sandbox;
mod screen;
mod signal;
mod timeline;

use std::process::ExitCode;

use capsule_runtime::CommandRunner;
use capsule_sandbox::{Executor, SandboxBackend as _};
use clap::error::ErrorKind;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::screen::Screen;

fn main() -> ExitCode {
    // The executor is this same program, started again by the sandbox with a hidden argument.
    let first = std::env::args_os().nth(1);
    if first.as_ref().is_some_and(|name| name == capsule_sandbox::EXECUTOR_ARGUMENT) {
        return Executor::executor_main();
    }
    if first.as_ref().is_some_and(|name| name == sandbox::lease::ARGUMENT) {
        return sandbox::lease::main();
    }
    let asks_model = first.as_ref().is_some_and(|name| name == "chat");
    // A command is run by a copy of this process. It is made before anything else is read, so that it
    // holds nothing of that.
    let commands =
        first.filter(|name| name == "exec").map(|_| CommandRunner::for_one_command_forked());
    if asks_model || std::env::var_os("HOME").is_none_or(|home| home.is_empty()) {
        // The home directory of the user, or the host of the model, is looked up then.
        Executor::use_builtin_name_lookup();
    }
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to standard output and is no error; clap knows which is which.
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let printed = failure_report::show_argument_error(&error);
            // Nobody needs to wait for an executor that nobody needs.
            commands.inspect(CommandRunner::detach);
            return ExitCode::from(if asked && printed { 0 } else { 2 });
        }
    };
    let screen = Screen::new(&arguments.globals);
    match command::dispatch(&arguments, &screen, commands) {
        Ok(exit) => ExitCode::from(exit),
        Err(Failure::Quiet(exit)) => ExitCode::from(exit),
        Err(failure) => {
            failure.show(&screen);
            ExitCode::from(failure.exit())
        }
    }
}
