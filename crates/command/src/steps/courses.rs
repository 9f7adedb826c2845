//! The ways in which a list may run.
//!
//! A `cd` counts only where it is reached and where it succeeds: both depend on the disk and on how the
//! programs before it end. So do the values of variables. Before a list runs, each of its pipelines is judged in every
//! directory that it may run in, and with all values that it may have. When it is reached, the runtime says which ones
//! these are.

use alloc::string::String;
use alloc::vec::Vec;

use super::{
    CommandStep, FolderChange, ListState, NextStep, PathLocation, PathTarget, ReachedState,
    UnsupportedStep, target_from,
};
use crate::shell_syntax::{
    ListOperator, ListOption, Pipeline, PipelineStage, Redirection, Script, ScriptElement,
    ShellWord, is_about_jobs,
};
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;

/// What the meaning of words depends on besides the words.
pub struct StepContext<'c> {
    /// The names of the workspace's root.
    pub names: &'c RootNames,
    /// Whether a file of the workspace is there.
    pub is_file: &'c dyn Fn(&WorkspacePath) -> bool,
}

/// The directory that a list is in, and the one before, which `cd -` leads back to.
type Directories = (PathTarget, Option<PathTarget>);

/// One way in which the list so far may have gone.
#[derive(Clone, PartialEq)]
struct Course {
    state: ListState<Directories>,
    /// The directories to which a `cd` must have failed for it to go this way.
    unless: Vec<WorkspacePath>,
}

impl CommandStep {
    /// The steps of a script that begins in a directory: each pipeline once for every directory that it may
    /// run in, and with all values that its words may have.
    ///
    /// # Errors
    /// Says what of it cannot be done without a shell.
    pub fn of(
        script: &Script,
        cwd: &PathTarget,
        context: &StepContext<'_>,
    ) -> Result<Vec<Self>, UnsupportedStep> {
        let state = ListState::new((cwd.clone(), None));
        let mut survey =
            Survey { script, context, seen: Vec::new(), open: Vec::new(), bytes: 0, values: 0 };
        survey.follow(Course { state, unless: Vec::new() })?;
        let (mut at, mut steps) = (0, Vec::new());
        while let Some(course) = survey.open.get(at).cloned() {
            at += 1;
            survey.run(course, &mut steps)?;
        }
        steps.sort_by_key(|step| step.number);
        Ok(steps)
    }

    /// The pipeline with this index, in the directory and with the values that it is reached with.
    ///
    /// # Errors
    /// Says what of it cannot be done without a shell.
    pub fn reached(
        element: &ScriptElement,
        index: usize,
        (cwd, reached): (&PathTarget, &ReachedState),
        context: &StepContext<'_>,
    ) -> Result<(Self, Script), UnsupportedStep> {
        let mut state = ListState::new((cwd.clone(), None));
        state.values = reached.values.clone();
        state.programs = reached.programs.clone();
        state.status = Some(reached.status);
        let stages = stages(element, &state, context)?;
        let pipeline = Pipeline { stages: stages.clone() };
        let (join, otherwise) = (ListOperator::First, 1);
        let only = ScriptElement { join, otherwise, pipeline, ..element.clone() };
        let change = change(&stages)?;
        let starts_none = change.is_some() || stages.iter().any(is_about_jobs);
        // From where `cd -` leads to, the directory that is given is the one before.
        let cwd = change.and_then(|change| led(&state.directory, change, context.names));
        let cwd = cwd.unwrap_or_else(|| state.directory.0.clone());
        let stages = if starts_none { Vec::new() } else { stages };
        let (number, unless) = (index + 1, Vec::new());
        let (is_captured, is_background) = (element.is_captured, element.is_background);
        let step = Self { number, join, cwd, stages, unless, is_captured, is_background };
        Ok((step, Script { elements: [only].into() }))
    }
}

/// The stages of a pipeline with their values.
fn stages(
    element: &ScriptElement,
    state: &ListState<Directories>,
    context: &StepContext<'_>,
) -> Result<Vec<PipelineStage>, UnsupportedStep> {
    let values = state.values_here(working_directory(&state.directory, context.names));
    let mut stages = Vec::new();
    for stage in &element.pipeline.stages {
        let mut stage = stage.with_values(&values).map_err(UnsupportedStep::Value)?;
        if let Some(programs) = &state.programs {
            prefer_program(&mut stage, &state.directory.0, programs, context);
        }
        stages.push(stage);
    }
    Ok(stages)
}

/// Puts the path of a program in the place of its name, where a virtual environment has it.
fn prefer_program(
    stage: &mut PipelineStage,
    cwd: &PathTarget,
    programs: &str,
    context: &StepContext<'_>,
) {
    let Some(first) = stage.words.first_mut() else { return };
    let Some(name) = first.literal().filter(|name| !name.contains('/')) else { return };
    let Ok(directory) = WorkspacePath::parse_named(programs, context.names) else { return };
    let Ok(path) = directory.resolve_named(name, context.names) else { return };
    if name != "cd" && (context.is_file)(&path) {
        let typed = match cwd.inside().is_some_and(WorkspacePath::is_root) {
            true => path.as_str().into(),
            false => context.names.absolute(path.components()),
        };
        first.pieces = ShellWord::text(&typed).pieces;
    }
}

/// The path of a directory, as a program in it sees it.
fn working_directory(directories: &Directories, names: &RootNames) -> Option<String> {
    directories.0.inside().map(|path| names.absolute(path.components()))
}

/// What is seen of all ways.
struct Survey<'s> {
    script: &'s Script,
    context: &'s StepContext<'s>,
    /// The ways that led to each element, by its index.
    seen: Vec<(usize, Vec<Course>)>,
    /// Those that are to be followed, the first first.
    open: Vec<Course>,
    /// How long the texts of all steps are.
    bytes: usize,
    /// How long the values of all ways are.
    values: usize,
}

/// The most bytes of values on all ways that are kept to know how a list may run.
const VALUE_BYTES: usize = 32 * limits::COMMAND_BYTES;

impl Survey<'_> {
    /// Follows a way up to the next program.
    fn follow(&mut self, mut course: Course) -> Result<(), UnsupportedStep> {
        let names = self.context.names;
        let directory_of = |directories: &Directories| working_directory(directories, names);
        let activate = |directories: &Directories, path: &str| {
            target_from(&directories.0, path, names).inside().map(|path| path.as_str().into())
        };
        match course.state.advance(self.script, &directory_of, &activate)? {
            NextStep::End => Ok(()),
            NextStep::Run(index) => self.add(index, course),
            NextStep::Unknown => {
                let mut other = course.clone();
                other.state.status = Some(1);
                course.state.status = Some(0);
                self.follow(other)?;
                self.follow(course)
            }
        }
    }

    /// Adds a way, unless another one leads to the same state and needs less.
    fn add(&mut self, index: usize, course: Course) -> Result<(), UnsupportedStep> {
        let position = self.seen.iter().position(|(at, _)| *at == index);
        let position = position.unwrap_or_else(|| {
            self.seen.push((index, Vec::new()));
            self.seen.len() - 1
        });
        let Some((_, seen)) = self.seen.get_mut(position) else { return Ok(()) };
        let covers =
            |item: &Course| item.state == course.state && needs_less(&item.unless, &course.unless);
        if seen.iter().any(covers) {
            return Ok(());
        }
        seen.push(course.clone());
        let mut directories: Vec<&PathLocation> = Vec::new();
        for item in seen.iter() {
            let location = &item.state.directory.0.location;
            if !directories.contains(&location) {
                directories.push(location);
            }
        }
        if directories.len() > limits::COMMAND_FOLDERS || self.bytes > 2 * limits::COMMAND_BYTES {
            return Err(UnsupportedStep::TooManyFolders);
        }
        self.values = self.values.saturating_add(course.state.size());
        if self.open.len() >= limits::COMMAND_STATES || self.values > VALUE_BYTES {
            return Err(UnsupportedStep::TooManyWays);
        }
        self.open.push(course);
        Ok(())
    }

    /// Notes the step that comes next on a way, and the ways that lead on from it.
    fn run(&mut self, course: Course, steps: &mut Vec<CommandStep>) -> Result<(), UnsupportedStep> {
        let index = course.state.at;
        let Some(element) = self.script.elements.get(index) else { return Ok(()) };
        self.bytes = self.bytes.saturating_add(element.span.len());
        let stages = stages(element, &course.state, self.context)?;
        self.bytes = self.bytes.saturating_add(stages.iter().map(stage_bytes).sum());
        if self.bytes > 4 * limits::COMMAND_BYTES {
            return Err(UnsupportedStep::TooManyWays);
        }
        let change = change(&stages)?;
        let to = change.map(|change| led(&course.state.directory, change, self.context.names));
        let cwd = to.as_ref().and_then(Option::as_ref).unwrap_or(&course.state.directory.0).clone();
        let known = if element.is_background { Some(true) } else { known_end(&stages) };
        let starts_none = change.is_some() || stages.iter().any(is_about_jobs);
        let (number, join, unless) = (index + 1, element.join, course.unless.clone());
        let stages = if starts_none { Vec::new() } else { stages };
        let (is_captured, is_background) = (element.is_captured, element.is_background);
        put(steps, CommandStep { number, join, cwd, stages, unless, is_captured, is_background });
        match to {
            None => self.end(course, known),
            Some(to) => {
                for (course, is_good) in changed(course, to) {
                    self.end(course, Some(is_good))?;
                }
                Ok(())
            }
        }
    }

    /// Goes on behind a pipeline that ended so; none if that is not known.
    fn end(&mut self, course: Course, is_good: Option<bool>) -> Result<(), UnsupportedStep> {
        let is_checked =
            self.script.elements.get(course.state.at).is_some_and(|element| element.is_checked);
        let statuses: &[Option<u8>] = match is_good {
            None if is_checked && course.state.has_option(ListOption::ErrorExit) => {
                &[Some(0), Some(1)]
            }
            None => &[None],
            Some(true) => &[Some(0)],
            Some(false) => &[Some(1)],
        };
        for status in statuses {
            let mut course = course.clone();
            course.state.ended(self.script, *status, None)?;
            self.follow(course)?;
        }
        Ok(())
    }
}

/// How long the words of a stage are, its variables, and the texts that it reads.
fn stage_bytes(stage: &PipelineStage) -> usize {
    let length = |redirect: &Redirection| match redirect {
        Redirection::Here { text } => text.len(),
        _ => 0,
    };
    let here = stage.redirects.iter().map(length).sum::<usize>();
    let set = stage.variables.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    here + set + stage.words.iter().map(|word| word.unexpanded().len()).sum::<usize>()
}

/// The `cd` that a pipeline is, if it is one. What is about background parts is a pipeline by itself, too.
fn change(stages: &[PipelineStage]) -> Result<Option<FolderChange<'_>>, UnsupportedStep> {
    match (stages.iter().find_map(FolderChange::of), stages) {
        (None, [_, _, ..]) if stages.iter().any(is_about_jobs) => {
            Err(UnsupportedStep::UnsupportedCd)
        }
        (None, _) => Ok(None),
        (Some(change), [_]) => change.map(Some),
        _ => Err(UnsupportedStep::UnsupportedCd),
    }
}

/// How a pipeline ends of which that is known: `true` and `false` alone.
fn known_end(stages: &[PipelineStage]) -> Option<bool> {
    let [stage] = stages else { return None };
    let plain = stage.redirects.is_empty() && stage.variables.is_empty();
    match stage.words.as_slice() {
        [only] if plain => match only.literal()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Where a `cd` leads; nowhere, if it goes back and there is no directory before.
fn led(
    (cwd, before): &Directories,
    change: FolderChange<'_>,
    names: &RootNames,
) -> Option<PathTarget> {
    match change.to {
        "-" => before.clone(),
        to => Some(target_from(cwd, to, names)),
    }
}

/// How a way may go on behind a `cd`, and whether that succeeded. What follows outside of the workspace needs no look
/// of its own: going there is denied.
fn changed(course: Course, to: Option<PathTarget>) -> Vec<(Course, bool)> {
    let Some(to) = to else { return alloc::vec![(course, false)] };
    let PathLocation::Inside(path) = &to.location else { return Vec::new() };
    let mut courses = Vec::new();
    // The directory itself and those above it are there.
    let above = |item: &WorkspacePath| item.ancestors().any(|above| above == *path);
    if !course.state.directory.0.inside().is_some_and(above) {
        let mut unless = course.unless.clone();
        unless.push(path.clone());
        unless.sort();
        unless.dedup();
        courses.push((Course { unless, ..course.clone() }, false));
    }
    let mut there = course;
    there.state.directory = (to, Some(there.state.directory.0));
    courses.push((there, true));
    courses
}

/// Whether a way needs no more than another to be gone.
fn needs_less(one: &[WorkspacePath], other: &[WorkspacePath]) -> bool {
    one.iter().all(|path| other.contains(path))
}

/// Adds a step, unless another is the same and needs less.
fn put(steps: &mut Vec<CommandStep>, step: CommandStep) {
    let same = |item: &CommandStep| {
        item.number == step.number
            && item.cwd.location == step.cwd.location
            && item.stages == step.stages
    };
    if !steps.iter().any(|item| same(item) && needs_less(&item.unless, &step.unless)) {
        steps.retain(|item| !same(item) || !needs_less(&step.unless, &item.unless));
        steps.push(step);
    }
}
