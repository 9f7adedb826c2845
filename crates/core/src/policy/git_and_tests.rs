//! What a policy says about the narrow tools: looking at a repository, and running the tests.

use alloc::string::String;
use alloc::vec::Vec;

use crate::confinement::ProcessLimits;
use crate::policy::commands::EnvironmentRule;

/// Constraints on looking at a repository. Which paths may be shown stands with `fs.read`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitRule {
    /// The most bytes of text.
    pub bytes: u64,
    /// The most results of a call without a limit.
    pub results: u64,
    /// The most results of any call.
    pub results_max: u64,
}

/// The project's own test command.
#[derive(Clone, Debug)]
pub struct TestRule {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder to run in.
    pub cwd: String,
    /// The words that stand before the one that picks tests; none if no call may pick any.
    pub filter: Option<Vec<String>>,
    /// What it finds in its environment.
    pub env: EnvironmentRule,
    /// Its bounds.
    pub limits: ProcessLimits,
}

impl TestRule {
    /// The command line with the word that picks tests. Whether it may pick any is judged elsewhere.
    #[must_use]
    pub fn argv(&self, filter: Option<&str>) -> Vec<String> {
        let mut argv = self.command.clone();
        if let Some(word) = filter {
            argv.extend(self.filter.iter().flatten().cloned());
            argv.push(word.into());
        }
        argv
    }
}
