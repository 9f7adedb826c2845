//! `changes.undo`: brings back what stood in the workspace before calls of a run changed it. It is behind a
//! person's own command and in no catalogue: no plan, no policy and no model can name it.

use std::rc::Rc;

use capsule_core::action::{Action, Facts};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::policy::UNDO_TOOL;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::{BackupReader, Restoration, UndoPlan};
use serde_json::{Map, Value};

use crate::builtin::change_args;
use crate::fault::wrong_action_problem;
use crate::tool::args::{number_arg, text_arg};
use crate::tool::prepare::FailedOperation;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `changes.undo` is called, takes and gives. Not one of the tools that the reference lists.
static USER_ONLY_SIGNATURE: ToolSignature = ToolSignature {
    id: UNDO_TOOL,
    model_name: "changes_undo",
    aliases: &[],
    about: "Brings back what stood in the workspace before calls of a run changed it.",
    shape: ToolShape::Files,
    capabilities: &[Capability::FsWrite, Capability::FsDelete],
    arguments: &[
        ToolArgument {
            name: "run",
            kind: ArgumentKind::Text,
            required: true,
            about: "the run's full id",
        },
        ToolArgument {
            name: "call",
            kind: ArgumentKind::Number,
            required: false,
            about: "the call; all of them if left out",
        },
        ToolArgument {
            name: "changes",
            kind: ArgumentKind::Text,
            required: true,
            about: "what comes of it, as JSON",
        },
        ToolArgument {
            name: "again",
            kind: ArgumentKind::Text,
            required: false,
            about: "the runs that began to before and were killed, by their full ids",
        },
        ToolArgument {
            name: "made",
            kind: ArgumentKind::OneOf(&[MADE_BY_RUN]),
            required: false,
            about: "that what goes is what the run made, and need not be kept",
        },
    ],
    results: &[
        ResultField { name: "run", about: "the run" },
        ResultField { name: "undone", about: "how many paths were brought back" },
        ResultField { name: "as_before", about: "how many were what they were before already" },
        ResultField {
            name: "left",
            about: "how many folders stay, since something else is in them",
        },
        ResultField {
            name: "unkept",
            about: "how many went of which nothing is kept, so that they do not come back",
        },
    ],
};

/// What says that a run made what goes.
const MADE_BY_RUN: &str = "yes";

/// Undoes calls.
#[derive(Clone, Copy, Debug)]
pub struct ChangesUndo;

impl Tool for ChangesUndo {
    fn signature(&self) -> &'static ToolSignature {
        &USER_ONLY_SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let changes = change_args::parse_changes(args)?;
        Ok(Action::Undo {
            run: text_arg(args, "run").unwrap_or_default().to_owned(),
            call: number_arg(args, "call"),
            changes,
            interrupted_runs: text_arg(args, "again")
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            skips_backup: text_arg(args, "made") == Some(MADE_BY_RUN),
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let mut facts = Facts::default();
        let operation = match action {
            Action::Undo { run, changes, interrupted_runs: again, skips_backup: made, .. } => {
                facts.no_undo = change_args::backup_refusal(changes).filter(|_| !made);
                let kept = BackupReader::new(context.backups.root().clone());
                let what = (run.clone(), changes.clone());
                let undo = UndoPlan::new(context.workspace, kept, what, (again, *made));
                let with = (context.cancel.clone(), context.hidden_paths);
                Restoration::new(undo, Rc::clone(context.backups), with)
                    .map(|restoring| Box::new(UndoOperation(restoring)) as Box<dyn Operation>)
            }
            _ => Err(wrong_action_problem()),
        };
        let operation = operation.unwrap_or_else(|problem| Box::new(FailedOperation(problem)));
        PreparedCall { facts, operation }
    }
}

struct UndoOperation(Restoration);

impl Operation for UndoOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.0.back_up()
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        change_args::write_by_permit(&permit, |deadline| self.0.restore(deadline))
    }
}
