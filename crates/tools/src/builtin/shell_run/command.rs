//! The preflight of a command of the language: what its parts would find.

use std::ffi::OsString;

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_command::shell_syntax::{PipelineStage, Redirection, StdStream};
use capsule_core::action::{
    Action, CommandStep, DEV_NULL, Facts, FileKind, PathTarget, sub_actions,
};
use capsule_core::outcome::CodedError;
use capsule_sandbox as sandbox;
use sandbox::{RedirectTarget, StandardDevice, StandardStream};

use crate::command::expand::expand;
use crate::command::operation::ReadyStage;
use crate::command::program::{ResolvedProgram, find_command, missing};
use crate::host::ToolHost;
use crate::tool::ToolContext;
use crate::tool::prepare::command_facts;

/// What was found for the programs of a command, by the names that it has for them.
pub(super) type FoundPrograms = Vec<(String, Option<ResolvedProgram>)>;

/// What is found about a command.
///
/// # Errors
/// One of its patterns stands for too much.
pub(super) fn gather_facts(
    action: &Action,
    steps: &[CommandStep],
    context: &ToolContext<'_>,
) -> Result<(Facts, FoundPrograms), CodedError> {
    let mut programs: FoundPrograms = Vec::new();
    for step in steps {
        let words = step.stages.iter().filter_map(|stage| stage.words.first());
        for name in words.filter_map(|word| word.literal()) {
            if !programs.iter().any(|(text, _)| text == name) {
                programs.push((name.to_owned(), find_command(name, &step.cwd, context)));
            }
        }
    }
    let found = |(name, program): &(String, Option<ResolvedProgram>)| {
        Some((name.clone(), program.as_ref()?.fact.clone()))
    };
    let mut facts = Facts {
        sandbox: context.commands.sandbox_status(),
        programs: programs.iter().filter_map(found).collect(),
        expansions: expand(steps, context.workspace)?,
        ..command_facts(action, None, context)
    };
    for step in steps {
        let folder = Action::List { path: step.cwd.clone(), depth: None, limit: None };
        add_facts(&mut facts, &folder, context);
        let actions = sub_actions(step, None, &facts).into_iter().map(|part| part.action);
        for action in actions.collect::<Vec<_>>() {
            add_facts(&mut facts, &action, context);
        }
    }
    Ok((facts, programs))
}

/// Adds what is found for one part.
fn add_facts(facts: &mut Facts, action: &Action, context: &ToolContext<'_>) {
    let program = match action {
        Action::Run { argv, .. } => {
            argv.first().and_then(|name| facts.program_named(name)).cloned()
        }
        _ => None,
    };
    for fact in command_facts(action, program, context).paths {
        if facts.path_fact(&fact.path).is_none() {
            facts.paths.push(fact);
        }
    }
}

/// What a step needs to run, in the order of its stages, and what its first program reads.
///
/// # Errors
/// A program or the folder is not there, or a stream cannot be led where it shall.
pub(super) fn ready_stages(
    step: &CommandStep,
    facts: &Facts,
    (programs, host): (&FoundPrograms, &dyn ToolHost),
) -> Result<(Vec<ReadyStage>, Option<String>), CodedError> {
    let mut stages = Vec::new();
    let mut input = None;
    let folder = facts.real_directory(step);
    for (index, stage) in step.stages.iter().enumerate() {
        let argv = capsule_core::action::expanded_argv(stage, &step.cwd, &facts.expansions);
        let name = argv.first().cloned().unwrap_or_default();
        let program = programs
            .iter()
            .find(|(text, _)| *text == name)
            .and_then(|(_, program)| program.clone());
        let Some(program) = program else {
            return Err(missing(&name, host));
        };
        let variables = stage.variables.iter();
        stages.push(ReadyStage {
            program,
            argv: argv.iter().map(OsString::from).collect(),
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            redirects: resolve_redirects(stage, (index, &folder, &facts.root_names), &mut input)?,
        });
    }
    Ok((stages, input))
}

/// Where the streams of a stage lead. The text of a here-document becomes the command's input.
fn resolve_redirects(
    stage: &PipelineStage,
    (index, cwd, names): (usize, &PathTarget, &RootNames),
    input: &mut Option<String>,
) -> Result<Vec<sandbox::StreamRedirect>, CodedError> {
    let descriptor = |stream: &StdStream| match stream {
        StdStream::Out => StandardStream::Output,
        StdStream::Err => StandardStream::Error,
    };
    let mut found = Vec::new();
    for redirect in &stage.redirects {
        let (descriptor, to) = match redirect {
            Redirection::File { stream, path, .. } if path == DEV_NULL => {
                (descriptor(stream), RedirectTarget::Device(StandardDevice::Null))
            }
            Redirection::File { stream, path, append: true } => {
                (descriptor(stream), RedirectTarget::Append(path_from_cwd((cwd, names), path)))
            }
            Redirection::File { stream, path, append: false } => {
                (descriptor(stream), RedirectTarget::Create(path_from_cwd((cwd, names), path)))
            }
            Redirection::Duplicate { stream, target } => {
                (descriptor(stream), RedirectTarget::Same(descriptor(target)))
            }
            Redirection::Input { path } => {
                let file = || RedirectTarget::Read(path_from_cwd((cwd, names), path));
                let device = StandardDevice::at(path).map(RedirectTarget::Device);
                (StandardStream::Input, device.unwrap_or_else(file))
            }
            Redirection::Here { text } if index == 0 => {
                *input = Some(text.clone());
                found.retain(|item: &sandbox::StreamRedirect| {
                    item.descriptor != StandardStream::Input
                });
                continue;
            }
            Redirection::Here { .. } => {
                let message = "a here-document belongs to the first program of a pipeline here";
                let problem = CodedError::new(Code::ExecNotInLanguage, message);
                return Err(
                    problem.with_suggestion("write the text to a file and read it with `<`")
                );
            }
        };
        found.push(sandbox::StreamRedirect { descriptor, target: to });
    }
    Ok(found)
}

/// A path of a stream, seen from the real folder that the command starts in: the executor opens no other.
fn path_from_cwd((cwd, names): (&PathTarget, &RootNames), path: &str) -> OsString {
    let (Some(folder), true) = (cwd.inside(), path.starts_with('/')) else { return path.into() };
    match folder.resolve_named(path, names) {
        Ok(path) => {
            let climbed = || format!("{}{path}", "../".repeat(folder.components().count()));
            path.as_temporary().unwrap_or_else(climbed).into()
        }
        Err(_) => path.into(),
    }
}

/// Whether the folder of a step is not there.
pub(super) fn missing_cwd<'s>(step: &'s CommandStep, facts: &Facts) -> Option<&'s WorkspacePath> {
    let path = step.cwd.inside()?;
    facts.path_fact(path).filter(|fact| fact.kind == FileKind::Missing).map(|_| path)
}
