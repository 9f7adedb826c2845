//! A list of pipelines: the call for the whole only tells its parts, and each of those is a call of its
//! own when it is reached.

use capsule_core::action::{Action, CommandStep, Facts, ListPart, sub_actions};
use capsule_core::lifecycle::{Operation, Permit, Preview};
use capsule_core::outcome::{Outcome, Output};
use serde_json::json;

use crate::command::code_files::CodeFiles;
use crate::tool::ToolContext;

/// The parts of a list.
pub(super) struct ListParts {
    parts: Vec<ListPart>,
    /// The workspace, as the parts see it.
    root: String,
    code_files: CodeFiles,
}

impl ListParts {
    pub(super) fn from_steps(
        steps: &[CommandStep],
        facts: &Facts,
        context: &ToolContext<'_>,
    ) -> Self {
        let (mut programs, mut written) = (Vec::new(), Vec::new());
        for part in steps.iter().flat_map(|step| sub_actions(step, None, facts)) {
            match part.action {
                Action::Run { argv, .. } => programs.push(argv),
                Action::Write { path, .. } => written.extend(path.inside().cloned()),
                _ => {}
            }
        }
        Self {
            code_files: CodeFiles::of(programs.into_iter(), &written, facts, context),
            parts: ListPart::of(steps),
            root: context.workspace.root_names().mount().into(),
        }
    }
}

impl Operation for ListParts {
    fn preview(&mut self) -> Preview {
        self.code_files.preview()
    }

    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::done(Output::default().with("parts", json!(self.parts)).with("root", self.root))
    }
}
