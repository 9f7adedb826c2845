//! `cd` as a part of a list: whether the folder is there, and with it how the list goes on. It changes
//! nothing but the folder of the parts behind it.

use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_command::shell_syntax::{StdStream, parse};
use capsule_core::action::{Facts, FileKind, FolderChange, PathTarget};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_sandbox::OutputKind;

use crate::host::Sink;
use crate::tool::ToolContext;

/// What a `cd` comes to.
pub(super) struct Change {
    /// Where it leads, if it can.
    to: Result<WorkspacePath, String>,
    out: String,
    err: String,
    sink: Rc<dyn Sink>,
}

impl Change {
    /// What the text of a part comes to that goes to a folder, by what was found there.
    pub(super) fn of(
        text: &str,
        to: &PathTarget,
        facts: &Facts,
        context: &ToolContext<'_>,
    ) -> Self {
        let script = parse(text).unwrap_or_default();
        let change = script.stages().next().and_then(FolderChange::of).and_then(Result::ok);
        let (named, out, err) = match &change {
            Some(change) => (change.to, change.out, change.err),
            None => (to.asked.as_str(), Some(StdStream::Out), Some(StdStream::Err)),
        };
        let went = arrive(named, to, facts);
        let (sink, names) = (Rc::clone(context.sink), context.workspace.root_names());
        let mut change = Self { to: went, out: String::new(), err: String::new(), sink };
        let (text, stream) = match &change.to {
            // The folder before is told, as it is not written.
            Ok(path) if named == "-" => (names.absolute(path.components()) + "\n", out),
            Ok(_) => return change,
            Err(why) => (format!("{why}\n"), err),
        };
        match stream {
            Some(StdStream::Out) => change.out = text,
            Some(StdStream::Err) => change.err = text,
            None => {}
        }
        change
    }
}

/// The folder that a `cd` leads to, or what a shell says why it does not.
fn arrive(named: &str, to: &PathTarget, facts: &Facts) -> Result<WorkspacePath, String> {
    let Some(path) = to.inside() else { return Err(format!("cd: {named}: Permission denied")) };
    match facts.path_fact(path).map(|fact| fact.kind) {
        Some(FileKind::Directory) => Ok(path.clone()),
        Some(FileKind::File | FileKind::Special) => Err(format!("cd: {named}: Not a directory")),
        _ => Err(format!("cd: {named}: No such file or directory")),
    }
}

impl Operation for Change {
    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        let code = i32::from(self.to.is_err());
        self.sink.output(OutputKind::Stdout, self.out.as_bytes());
        self.sink.output(OutputKind::Stderr, self.err.as_bytes());
        let [out, err] = [&self.out, &self.err].map(String::len);
        let output = Output::default()
            .with("exit_code", code)
            .with("stdout", self.out)
            .with("stderr", self.err)
            .with("stdout_bytes_total", out)
            .with("stderr_bytes_total", err);
        match self.to {
            Ok(path) => Outcome::done(output.with("folder", path.to_string())),
            Err(why) => {
                let problem = CodedError::new(Code::ExecFailed, why);
                Outcome { output, ..Outcome::failed(problem) }
            }
        }
    }
}
