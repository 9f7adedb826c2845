//! The preflight of a command of the language: what its parts would find.

use std::ffi::OsString;

use capsule_core::action::{Action, Facts, FileKind, NOWHERE, PathTarget, Place, Step, parts};
use capsule_core::code::Code;
use capsule_core::language::{Redirect, Stage, Stream};
use capsule_core::outcome::Problem;
use capsule_core::path::WorkspacePath;
use capsule_sandbox as sandbox;
use sandbox::{Descriptor, Target};

use super::expand::expand;
use super::program::{Program, find, missing};
use super::run::Ready;
use crate::tool::{Context, Host, command_facts};

/// What was found for the programs of a command, by the names that it has for them.
pub(super) type Programs = Vec<(String, Option<Program>)>;

/// What is found about a command.
///
/// # Errors
/// One of its patterns stands for too much.
pub(super) fn look(
    action: &Action,
    steps: &[Step],
    context: &Context<'_>,
) -> Result<(Facts, Programs), Problem> {
    let mut programs: Programs = Vec::new();
    let names = steps.iter().flat_map(|step| &step.stages).filter_map(|stage| stage.words.first());
    for name in names.filter_map(|word| word.plain()) {
        if !programs.iter().any(|(own, _)| own == name) {
            programs.push((name.to_owned(), find(name, context.host.as_ref())));
        }
    }
    let found = |(name, program): &(String, Option<Program>)| {
        Some((name.clone(), program.as_ref()?.fact.clone()))
    };
    let mut facts = Facts {
        walls: context.commands.walls(),
        programs: programs.iter().filter_map(found).collect(),
        expansions: expand(steps, context.workspace)?,
        ..command_facts(action, None, context)
    };
    for step in steps {
        let folder = Action::List { path: step.cwd.clone(), depth: None, limit: None };
        add(&mut facts, &folder, context);
        let actions = parts(step, None, &facts).into_iter().map(|part| part.action);
        for action in actions.collect::<Vec<_>>() {
            add(&mut facts, &action, context);
        }
    }
    Ok((facts, programs))
}

/// Adds what is found for one part.
fn add(facts: &mut Facts, action: &Action, context: &Context<'_>) {
    let program = match action {
        Action::Run { argv, .. } => argv.first().and_then(|name| facts.of_program(name)).cloned(),
        _ => None,
    };
    for fact in command_facts(action, program, context).paths {
        if facts.at(&fact.path).is_none() {
            facts.paths.push(fact);
        }
    }
}

/// What a step needs to run, in the order of its stages, and what its first program reads.
///
/// # Errors
/// A program or the folder is not there, or a stream cannot be led where it shall.
pub(super) fn ready(
    step: &Step,
    facts: &Facts,
    (programs, host): (&Programs, &dyn Host),
) -> Result<(Vec<Ready>, Option<String>), Problem> {
    let mut stages = Vec::new();
    let mut input = None;
    let folder = step.folder(facts);
    for (index, stage) in step.stages.iter().enumerate() {
        let argv = capsule_core::action::words(stage, &step.cwd, &facts.expansions);
        let name = argv.first().cloned().unwrap_or_default();
        let program =
            programs.iter().find(|(own, _)| *own == name).and_then(|(_, own)| own.clone());
        let Some(program) = program else {
            return Err(missing(&name, host));
        };
        let variables = stage.variables.iter();
        stages.push(Ready {
            program,
            argv: argv.iter().map(OsString::from).collect(),
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            redirects: redirects(stage, (index, &folder), &mut input)?,
        });
    }
    Ok((stages, input))
}

/// Where the streams of a stage lead. The text of a here-document becomes the command's input.
fn redirects(
    stage: &Stage,
    (index, cwd): (usize, &PathTarget),
    input: &mut Option<String>,
) -> Result<Vec<sandbox::Redirect>, Problem> {
    let descriptor = |stream: &Stream| match stream {
        Stream::Out => Descriptor::Output,
        Stream::Err => Descriptor::Errors,
    };
    let mut found = Vec::new();
    for redirect in &stage.redirects {
        let (descriptor, to) = match redirect {
            Redirect::File { stream, path, .. } if path == NOWHERE => {
                (descriptor(stream), Target::Null)
            }
            Redirect::File { stream, path, append: true } => {
                (descriptor(stream), Target::Append(from(cwd, path)))
            }
            Redirect::File { stream, path, append: false } => {
                (descriptor(stream), Target::Create(from(cwd, path)))
            }
            Redirect::Same { stream, target } => {
                (descriptor(stream), Target::Same(descriptor(target)))
            }
            Redirect::Input { path } if path == NOWHERE => (Descriptor::Input, Target::Null),
            Redirect::Input { path } => (Descriptor::Input, Target::Read(from(cwd, path))),
            Redirect::Here { text } if index == 0 => {
                *input = Some(text.clone());
                found.retain(|own: &sandbox::Redirect| own.descriptor != Descriptor::Input);
                continue;
            }
            Redirect::Here { .. } => {
                let message = "a here-document belongs to the first program of a pipeline here";
                let problem = Problem::new(Code::ExecNotInLanguage, message);
                return Err(problem.suggest("write the text to a file and read it with `<`"));
            }
        };
        found.push(sandbox::Redirect { descriptor, to });
    }
    Ok(found)
}

/// A path of a stream, seen from the real folder that the command starts in: the executor opens no other.
fn from(cwd: &PathTarget, path: &str) -> OsString {
    let (Some(folder), true) = (cwd.inside(), path.starts_with('/')) else { return path.into() };
    match folder.follow(path) {
        Ok(path) => format!("{}{path}", "../".repeat(folder.components().count())).into(),
        Err(_) => path.into(),
    }
}

/// Whether the folder of a step is not there.
pub(super) fn nowhere<'s>(step: &'s Step, facts: &Facts) -> Option<&'s WorkspacePath> {
    let path = step.cwd.inside()?;
    facts.at(path).filter(|fact| fact.kind == FileKind::Missing).map(|_| path)
}

/// The real place of a folder that a step runs in.
pub(super) fn real(cwd: &PathTarget, facts: &Facts) -> OsString {
    let Some(path) = cwd.inside() else { return OsString::new() };
    match facts.at(path).map(|fact| &fact.real) {
        Some(Place::Inside(real)) => real.as_str().into(),
        _ => path.as_str().into(),
    }
}
