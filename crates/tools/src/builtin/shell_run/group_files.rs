//! The files that groups lead their streams to: `{ LIST; } > FILE`.
//!
//! In a shell a group has its file open all the time, and goes on behind what it wrote itself. Here each of its parts
//! opens the file and goes on at its end. Both are the same where nothing else writes to the file or removes it.

use capsule_base::code::Code;
use capsule_base::root_names::RootNames;
use capsule_command::shell_syntax::{PipelineStage, Redirection, ScriptElement, TextPlace};
use capsule_core::action::{CommandStep, DEV_NULL, Facts, FileKind, PathTarget, target_from};
use capsule_core::outcome::CodedError;

/// The name of the value that is the path of this redirection, if a group leads there.
fn group_value(typed: &PipelineStage, redirect: usize) -> Option<&str> {
    let place = TextPlace::Redirect(redirect);
    let (_, word) = typed.templates.iter().find(|(item, _)| *item == place)?;
    word.variables().next().filter(|name| name.starts_with('|'))
}

/// Every file that streams of a step are written to, with the name of the value where it is that of a group.
fn written_files<'s>(
    element: &'s ScriptElement,
    step: &'s CommandStep,
    (folder, names): (&PathTarget, &RootNames),
) -> Vec<(Option<&'s str>, PathTarget)> {
    let mut files = Vec::new();
    for (typed, stage) in element.pipeline.stages.iter().zip(&step.stages) {
        for (index, redirect) in stage.redirects.iter().enumerate() {
            match redirect {
                Redirection::File { path, .. } if path != DEV_NULL => {
                    files.push((group_value(typed, index), target_from(folder, path, names)));
                }
                _ => {}
            }
        }
    }
    files
}

/// Says which file a part of a group writes to that the group itself writes to: in a shell, they would write over one
/// another.
///
/// # Errors
/// There is such a file.
pub(super) fn check_group_files(
    element: Option<&ScriptElement>,
    step: &CommandStep,
    names: &RootNames,
) -> Result<(), CodedError> {
    let Some(element) = element else { return Ok(()) };
    let files = written_files(element, step, (&step.cwd, names));
    let is_shared = |(value, file): &&(Option<&str>, PathTarget)| {
        value.is_some()
            && files.iter().any(|(other, at)| other != value && at.location == file.location)
    };
    let Some((_, file)) = files.iter().find(is_shared) else { return Ok(()) };
    let message = format!("a part of a group writes to `{}`, as the group itself does", file.asked);
    Err(CodedError::new(Code::ExecNotInLanguage, message).with_suggestion(
        "have them write to two files, or lead each command of the group there by `>> FILE`",
    ))
}

/// Says which file of a group is not there any more: a shell would go on to write to it, and nothing would show that.
pub(super) fn removed_group_file(
    element: Option<&ScriptElement>,
    step: &CommandStep,
    facts: &Facts,
) -> Option<CodedError> {
    let at = (&facts.real_directory(step), &facts.root_names);
    let is_missing = |target: &PathTarget| {
        let fact = target.inside().and_then(|path| facts.path_fact(path));
        fact.is_some_and(|fact| fact.kind == FileKind::Missing)
    };
    let files = written_files(element?, step, at).into_iter();
    let (_, file) =
        files.filter(|(value, _)| value.is_some()).find(|(_, file)| is_missing(file))?;
    let message = format!("the group writes to `{}`, which is not there any more", file.asked);
    let problem = CodedError::new(Code::ExecNotInLanguage, message);
    Some(problem.with_suggestion("leave the file there until the group has ended"))
}
