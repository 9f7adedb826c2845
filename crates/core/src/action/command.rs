//! What a command of the language does, part by part.

use alloc::vec::Vec;

use crate::action::{
    Action, CommandStep, Facts, WriteMode, expanded_argv, redirect_files, target_from,
};
use capsule_base::digest::Digest;
use capsule_command::shell_syntax::PipelineStage;

/// What a command does with a program or a file, as the action that it would be by itself.
#[derive(Clone, Debug)]
pub struct SubAction<'s> {
    /// The stage that it belongs to.
    pub stage: &'s PipelineStage,
    /// The action.
    pub action: Action,
}

/// The parts of a step, its patterns expanded: for each stage the program, then the files that its
/// streams lead to.
#[must_use]
pub fn sub_actions<'s>(
    step: &'s CommandStep,
    timeout_ms: Option<u64>,
    facts: &Facts,
) -> Vec<SubAction<'s>> {
    let mut parts = Vec::new();
    let folder = facts.real_directory(step);
    for stage in &step.stages {
        let argv = expanded_argv(stage, &step.cwd, &facts.expansions);
        // A pipeline is never unconfined.
        let (cwd, unconfined) = (step.cwd.clone(), false);
        let run = Action::Run { argv, cwd, stdin: None, timeout_ms, unconfined };
        parts.push(SubAction { stage, action: run });
        for (path, written) in redirect_files(stage) {
            let path = target_from(&folder, path, &facts.root_names);
            let action = match written {
                Some(append) => {
                    let mode = if append { WriteMode::Append } else { WriteMode::Overwrite };
                    Action::Write { path, mode, bytes: 0, content: Digest::of(b"") }
                }
                None => Action::Read { path, offset: 0, limit: None },
            };
            parts.push(SubAction { stage, action });
        }
    }
    parts
}
