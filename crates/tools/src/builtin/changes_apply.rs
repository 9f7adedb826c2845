//! `changes.apply`: makes what a run changed in its staged workspace in the workspace itself. It is
//! behind a person's own command and in no catalogue: no plan, no policy and no model can name it.

use std::rc::Rc;

use capsule_base::code::Code;
use capsule_core::action::{Action, Facts};
use capsule_core::capability::Capability;
use capsule_core::lifecycle::{Operation, Permit, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::policy::APPLY_TOOL;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::{AppliedChanges, StagedApply};
use serde_json::{Map, Value};

use crate::builtin::change_args;
use crate::fault::wrong_action_problem;
use crate::tool::args::text_arg;
use crate::tool::prepare::FailedOperation;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `changes.apply` is called, takes and gives. Not one of the tools that the reference lists.
static USER_ONLY_SIGNATURE: ToolSignature = ToolSignature {
    id: APPLY_TOOL,
    model_name: "changes_apply",
    aliases: &[],
    about: "Makes what a run changed in its staged workspace in the workspace itself.",
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
            name: "changes",
            kind: ArgumentKind::Text,
            required: true,
            about: "what it changed, as JSON",
        },
        ToolArgument {
            name: "again",
            kind: ArgumentKind::OneOf(&[RETRY_MARK]),
            required: false,
            about: "that somebody began to before",
        },
    ],
    results: &[
        ResultField { name: "run", about: "the run" },
        ResultField { name: "applied", about: "how many changes were made" },
        ResultField { name: "applied_before", about: "how many were there already" },
    ],
};

/// What says that somebody began to before.
const RETRY_MARK: &str = "yes";

/// Applies changes.
#[derive(Clone, Copy, Debug)]
pub struct ChangesApply;

impl Tool for ChangesApply {
    fn signature(&self) -> &'static ToolSignature {
        &USER_ONLY_SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let changes = change_args::parse_changes(args)?;
        let again = text_arg(args, "again") == Some(RETRY_MARK);
        Ok(Action::Apply {
            run: text_arg(args, "run").unwrap_or_default().to_owned(),
            changes,
            is_retry: again,
        })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let mut facts = Facts::default();
        let operation = match (action, context.staging) {
            (Action::Apply { run, changes, is_retry: again }, Ok(Some(staging))) => {
                facts.no_undo = change_args::backup_refusal(changes);
                let what = (run.clone(), changes.clone());
                let with = (Rc::clone(staging), Rc::clone(context.backups));
                StagedApply::new(with, what, *again, (context.cancel.clone(), context.hidden_paths))
                    .map(|applying| Box::new(Applier(applying)) as Box<dyn Operation>)
            }
            // Where they are gone, they may all be in the workspace already.
            (Action::Apply { run, changes, is_retry: true }, Ok(None)) => {
                AppliedChanges::new(context.workspace, run.clone(), changes.clone())
                    .map(|found| Box::new(AppliedCheck(found)) as Box<dyn Operation>)
            }
            (Action::Apply { .. }, _) => {
                Err(CodedError::new(Code::ChangeNone, "the staged changes are not there"))
            }
            _ => Err(wrong_action_problem()),
        };
        let operation = operation.unwrap_or_else(|problem| Box::new(FailedOperation(problem)));
        PreparedCall { facts, operation }
    }
}

struct Applier(StagedApply);

impl Operation for Applier {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.0.back_up().map(Some)
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        change_args::write_by_permit(&permit, |deadline| self.0.apply(deadline))
    }
}

struct AppliedCheck(AppliedChanges);

impl Operation for AppliedCheck {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.0.require_applied().map(|()| None)
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        change_args::write_by_permit(&permit, |_| self.0.finish())
    }
}
