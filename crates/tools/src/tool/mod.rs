//! The form of a tool, and what it is given.

pub(crate) mod args;
pub(crate) mod prepare;

use std::cell::RefCell;
use std::rc::Rc;

use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_core::action::{Action, Facts, PathTarget};
use capsule_core::lifecycle::Operation;
use capsule_core::outcome::CodedError;
use capsule_core::tool::ToolSignature;
use capsule_redact::Redactor;
use capsule_workspace::{BackupStore, Cancel, GitAliases, HiddenPaths, Staging, Workspace};
use serde_json::{Map, Value};

use crate::command::runner::CommandRunner;
use crate::host::{QuestionPrompt, Sink, ToolHost};
use crate::network::AgentHost;

/// A tool.
pub trait Tool: Sync {
    /// What it is called, takes and gives.
    fn signature(&self) -> &'static ToolSignature;

    /// What a call with these arguments means. The arguments fit the signature.
    ///
    /// # Errors
    /// [`capsule_base::code::Code::ArgsInvalid`] where the arguments make no sense together.
    fn describe(
        &self,
        args: &Map<String, Value>,
        context: &DescribeContext<'_>,
    ) -> Result<Action, CodedError>;

    /// What is found about an action, and the operation that could do it.
    fn prepare(&self, action: &Action, args: &Value, context: &ToolContext<'_>) -> PreparedCall;
}

/// With what the arguments of a call are read.
#[derive(Clone, Copy)]
pub struct DescribeContext<'c> {
    /// The time that relative times count from, in microseconds since 1970.
    pub now: u64,
    /// The names of the workspace's root.
    pub root_names: &'c RootNames,
    /// The names that the user gave to subcommands of git.
    pub git_aliases: &'c dyn Fn() -> GitAliases,
    /// Whether a program of the workspace is there.
    pub is_program: &'c dyn Fn(&WorkspacePath) -> bool,
}

impl DescribeContext<'_> {
    /// Reads a path as a call names it.
    pub(crate) fn path(&self, asked: &str) -> PathTarget {
        PathTarget::parse_named(asked, self.root_names)
    }
}

/// What a tool's preflight comes to.
pub struct PreparedCall {
    /// What was found.
    pub facts: Facts,
    /// The operation that could do it.
    pub operation: Box<dyn Operation>,
}

/// What tools are given to work with.
pub struct ToolContext<'c> {
    /// The folder that everything happens in.
    pub workspace: &'c Rc<Workspace>,
    /// What must not be seen in it.
    pub hidden_paths: &'c Rc<RefCell<HiddenPaths>>,
    /// The run's executor, started when the first command needs it.
    pub commands: &'c CommandRunner,
    /// Where changes are collected, if the workspace is staged; why they cannot be, where it should.
    pub staging: Result<Option<&'c Rc<Staging>>, &'c CodedError>,
    /// What masks.
    pub redactor: &'c Redactor,
    /// Where what calls replace and delete is kept.
    pub backups: &'c Rc<BackupStore>,
    /// What the machine around the workspace tells.
    pub host: &'c Rc<dyn ToolHost>,
    /// Whether to stop.
    pub cancel: &'c Cancel,
    /// Where output goes while it is made.
    pub sink: &'c Rc<dyn Sink>,
    /// What shows a model's questions to a person; none where no person can answer.
    pub questions: Option<&'c Rc<dyn QuestionPrompt>>,
    /// What runs the agent that the user started; none where there is none.
    pub agent: Option<&'c Rc<dyn AgentHost>>,
    /// The time that relative times count from, in microseconds since 1970.
    pub now: u64,
    /// Whether the program that hosts a model carries out the calls.
    pub is_gate: bool,
}
