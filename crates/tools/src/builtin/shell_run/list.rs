//! A list of pipelines: the call for the whole only tells its parts, and each of those is a call of its
//! own when it is reached.

use capsule_base::root_names::RootNames;
use capsule_core::action::CommandStep;
use capsule_core::lifecycle::{Operation, Permit, Preview};
use capsule_core::outcome::{Outcome, Output};
use serde_json::json;

use crate::command::code_files::CodeFiles;
use crate::list_part::ListPart;

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
        names: &RootNames,
        code_files: CodeFiles,
    ) -> Self {
        Self { parts: ListPart::of(steps), root: names.mount().into(), code_files }
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
