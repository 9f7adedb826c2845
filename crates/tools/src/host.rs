//! What tools are told by the machine around the workspace, and where output goes.

use std::path::Path;
use std::rc::Rc;

use capsule_base::digest::Digest;
use capsule_redact::{Redactor, Secret};
pub use capsule_sandbox::OutputKind;
use capsule_sandbox::{Executor, FileIdentity, SandboxBackend as _};
use capsule_workspace::{BackupLog, UserVariables};

use crate::toolchain::Toolchains;

/// What the machine around the workspace tells.
pub trait ToolHost: BackupLog + UserVariables {
    /// Where the policy says that a program is.
    fn program_path(&self, name: &str) -> Option<String>;
    /// Every place that the policy names for a program.
    fn program_paths(&self) -> Vec<String>;
    /// The toolchains that commands see.
    fn toolchains(&self) -> &Toolchains;
    /// A digest that was computed before, for a program with this identity.
    fn known_digest(&self, path: &Path, identity: &FileIdentity) -> Option<Digest>;
    /// Remembers a digest.
    fn remember_digest(&self, path: &Path, identity: &FileIdentity, digest: Digest);
    /// The command line that the policy names for the project's tests, with the word that picks some
    /// of them, and the folder that it runs in.
    fn test_command(&self, filter: Option<&str>) -> Option<(Vec<String>, String)>;
    /// Where the record of this run is kept.
    fn store_path(&self) -> &Path;
    /// The value of a secret of the policy, as it was when the run began.
    fn secret(&self, name: &str) -> Option<Secret>;
}

/// Shows a model's questions to a person.
pub trait QuestionPrompt {
    /// The person's answer to a question with likely answers; none where there is none. Both are masked, and may hold any
    /// characters.
    fn ask(&self, question: &str, choices: &[String]) -> Option<String>;
}

/// Where the output of a command goes while it is made, before anything is masked: whoever shows it
/// masks it first.
pub trait Sink {
    /// What masks in the run whose output comes.
    fn use_redactor(&self, redactor: &Redactor);
    /// More output.
    fn output(&self, stream: OutputKind, bytes: &[u8]);
}

/// A sink that drops everything.
#[derive(Clone, Copy, Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn use_redactor(&self, _: &Redactor) {}
    fn output(&self, _: OutputKind, _: &[u8]) {}
}

/// A sink that shows errors alone, where what is printed is kept for a variable.
pub struct ErrorSink(pub Rc<dyn Sink>);

impl Sink for ErrorSink {
    fn use_redactor(&self, redactor: &Redactor) {
        self.0.use_redactor(redactor);
    }

    fn output(&self, stream: OutputKind, bytes: &[u8]) {
        if stream == OutputKind::Stderr {
            self.0.output(stream, bytes);
        }
    }
}

/// As [`SandboxBackend::use_builtin_name_lookup`](capsule_sandbox::SandboxBackend::use_builtin_name_lookup).
pub(crate) fn use_builtin_name_lookup() {
    Executor::use_builtin_name_lookup();
}
