//! Starting the binary, with files that belong to one measure.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_sandbox::{EXECUTOR_ARGUMENT, Executor, SandboxError};
use serde_json::Value;

use crate::Answer;
use crate::options::Options;

/// The binary with a policy, a workspace and a store.
#[derive(Debug)]
pub(crate) struct Binary {
    program: PathBuf,
    policy: PathBuf,
    workspace: PathBuf,
    store: PathBuf,
}

impl Binary {
    /// Puts down the policy. `files` holds it and the store; the workspace is apart, since tools
    /// must not reach them.
    pub(crate) fn new(
        options: &Options,
        files: &Path,
        workspace: &Path,
        policy: &str,
    ) -> Answer<Self> {
        let program = options.folder.join("dist").join("capsule");
        let program =
            program.canonicalize().map_err(|_| format!("{} is not built", program.display()))?;
        let place = files.join("policy.yaml");
        std::fs::write(&place, policy).map_err(|e| format!("{}: {e}", place.display()))?;
        let store = files.join("store.db");
        Ok(Self { program, policy: place, workspace: workspace.to_owned(), store })
    }

    /// The same with its store elsewhere.
    pub(crate) fn storing(self, store: PathBuf) -> Self {
        Self { store, ..self }
    }

    /// A command line of the binary: the words before the policy, and those behind it.
    pub(crate) fn command(&self, before: &[&str], behind: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(before).arg("--policy").arg(&self.policy);
        command.arg("--workspace").arg(&self.workspace).arg("--store").arg(&self.store);
        command.args(behind).stdin(Stdio::null());
        command
    }

    /// The binary started as an executor.
    pub(crate) fn executor(&self) -> Result<Executor, SandboxError> {
        Executor::start_with(&self.program, &[OsStr::new(EXECUTOR_ARGUMENT)])
    }

    /// A command line of the binary that needs no policy.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // `latest` is what worked in this workspace.
        command.args(words).arg("--workspace").arg(&self.workspace).arg("--store").arg(&self.store);
        command
    }
}

/// Runs a command whose words nobody reads.
pub(crate) fn quiet(command: &mut Command) -> Answer<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(why(command)) }
}

/// Runs a command and gives what it printed.
pub(crate) fn printed(command: &mut Command) -> Answer<String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {}", output.status, words.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{command:?} printed no text"))
}

/// Gives a command an input and looks for a text in what it prints.
pub(crate) fn answered(command: &mut Command, input: &Value, mark: &str) -> Answer<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| format!("a hook: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input.to_string().as_bytes()));
    written.transpose().map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains(mark) { Ok(()) } else { Err(format!("{command:?} answered {output:?}")) }
}

/// Why a command failed, in its own words: it is run once more to hear them.
fn why(command: &mut Command) -> String {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    printed(command).err().unwrap_or_else(|| format!("{command:?} failed once and then not again"))
}
