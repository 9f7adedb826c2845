//! `test.run`: the project's own test command, as the policy names it.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::action::{Action, Facts, FileKind, PathTarget};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::look_up;
use serde_json::{Map, Value};

use crate::command::operation::{CommandOperation, ReadyStage};
use crate::command::program::{find_command, missing};
use crate::tool::args::{invalid_args, text_arg};
use crate::tool::prepare::{FailedOperation, command_operation};
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `test.run` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: "test.run",
    model_name: "test_run",
    aliases: &["run_tests"],
    about: "Runs the project's tests, by the command that the policy names for them.",
    shape: ToolShape::Test,
    capabilities: &[Capability::ProcExec],
    arguments: &[ToolArgument {
        name: "filter",
        kind: ArgumentKind::Text,
        required: false,
        about: "one word that picks tests, where the policy lets it; all tests if left out",
    }],
    results: &[
        ResultField { name: "command", about: "the command line that ran" },
        ResultField { name: "exit_code", about: "the program's status; none if a signal ended it" },
        ResultField { name: "signal", about: "the signal that ended it" },
        ResultField { name: "stdout", about: "its standard output" },
        ResultField { name: "stdout_base64", about: "its standard output, where it is not text" },
        ResultField { name: "stderr", about: "its standard error" },
        ResultField { name: "stderr_base64", about: "its standard error, where it is not text" },
        ResultField { name: "stdout_tail", about: "the end of a standard output that was cut" },
        ResultField { name: "stdout_tail_base64", about: "the same, where it is not text" },
        ResultField { name: "stderr_tail", about: "the end of a standard error that was cut" },
        ResultField { name: "stderr_tail_base64", about: "the same, where it is not text" },
        ResultField {
            name: "stdout_bytes_total",
            about: "how much it wrote to its standard output",
        },
        ResultField {
            name: "stderr_bytes_total",
            about: "how much it wrote to its standard error",
        },
        ResultField {
            name: "truncated",
            about: "whether bytes between beginning and end of either were left out",
        },
        ResultField { name: "limits_reached", about: "the limits that it ran into" },
        ResultField { name: "left_running", about: "how many processes it left, which were ended" },
        ResultField { name: "changes", about: "what it changed, where the workspace is staged" },
        ResultField { name: "changes_total", about: "how many paths it changed there" },
        ResultField { name: "direct", about: "whether it could change the workspace itself" },
        ResultField { name: "clamped", about: "whether more time was asked for than it may have" },
    ],
};

/// Runs the tests.
#[derive(Clone, Copy, Debug)]
pub struct TestRun;

impl Tool for TestRun {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let filter = text_arg(args, "filter").map(filter_argument).transpose()?;
        Ok(Action::Test { filter })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let unable =
            |facts, problem| PreparedCall { facts, operation: Box::new(FailedOperation(problem)) };
        let filter = match action {
            Action::Test { filter } => filter.as_deref(),
            _ => None,
        };
        let Some((argv, cwd)) = context.host.test_command(filter) else {
            let problem =
                CodedError::new(Code::NoRule, "the policy names no command for the tests");
            return unable(Facts::default(), problem);
        };
        let cwd = PathTarget::parse(&cwd);
        let folder = cwd
            .inside()
            .map(|path| look_up(context.workspace, path, &context.hidden_paths.borrow()).0);
        let program = argv.first().and_then(|name| find_command(name, &cwd, context));
        let facts = Facts {
            program: program.as_ref().map(|program| program.fact.clone()),
            sandbox: context.commands.sandbox_status(),
            paths: folder.into_iter().collect(),
            ..Facts::default()
        };
        let Some(program) = program else {
            let name = argv.first().map_or("", String::as_str);
            return unable(facts, missing(name, context.host.as_ref()));
        };
        if facts.paths.iter().any(|fact| fact.kind == FileKind::Missing) {
            let message = format!("there is no folder `{}` to run in", cwd.asked);
            return unable(facts, CodedError::new(Code::FileNotFound, message));
        }
        let (variables, redirects) = (Vec::new(), Vec::new());
        let words = argv.iter().map(Into::into).collect();
        let stages = vec![ReadyStage { program, argv: words, variables, redirects }];
        let runner = command_operation(stages, &cwd, "", &facts, context);
        PreparedCall { facts, operation: Box::new(TestOperation { command: runner, argv }) }
    }
}

/// A word that picks tests. It is never an option, and nothing in it is read by anybody but the test
/// program.
fn filter_argument(filter: &str) -> Result<String, CodedError> {
    let why = if filter.is_empty() {
        "is empty".to_owned()
    } else if filter.starts_with('-') {
        "begins with `-`, as an option does".to_owned()
    } else if filter.chars().any(char::is_control) {
        "holds control characters".to_owned()
    } else if filter.len() > limits::TEST_FILTER_BYTES {
        format!("has more than {} bytes", limits::TEST_FILTER_BYTES)
    } else {
        return Ok(filter.to_owned());
    };
    let problem = invalid_args(format!("`filter` {why}"));
    Err(problem.with_suggestion("name a test, or a part of its name"))
}

struct TestOperation {
    command: CommandOperation,
    argv: Vec<String>,
}

impl Operation for TestOperation {
    fn prepare(&mut self, bounds: &Restrictions) {
        self.command.prepare(bounds);
    }

    fn start(&mut self, permit: &Permit<'_>) {
        self.command.start(permit);
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Self { command: runner, argv } = *self;
        let outcome = Box::new(runner).run(permit);
        Outcome { output: outcome.output.with("command", argv), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_plain_word() {
        for good in ["name", "a::b", "TestA/sub case", "ümlaut", "a-b"] {
            assert_eq!(filter_argument(good).as_deref(), Ok(good));
        }
        for bad in ["", "-k", "--config=x", "a\nb", "a\0b", "\u{1b}[0m", &"x".repeat(513)] {
            assert_eq!(
                filter_argument(bad).map_err(|problem| problem.code),
                Err(Code::ArgsInvalid),
                "{bad}"
            );
        }
    }
}
