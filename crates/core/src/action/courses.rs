//! The folders in which the pipelines of a list may run.
//!
//! A `cd` counts only where it is reached and where it succeeds: both depend on the disk and on how the
//! programs before it end. So before a list runs, each of its pipelines is judged in every folder that it
//! may run in. When it is reached, the runtime says which one that is.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::command::{CommandStep, UnsupportedStep, target_from};
use super::{PathLocation, PathTarget};
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_command::shell_syntax::{
    ListOperator, PipelineStage, Redirection, Script, ScriptElement, ShellWord, StdStream,
};

/// A `cd`, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderChange<'s> {
    /// Where it leads; `-` is the folder before.
    pub to: &'s str,
    /// What becomes of what it prints: the stream that it goes to, none if it is thrown away.
    pub out: Option<StdStream>,
    /// What becomes of what it complains about.
    pub err: Option<StdStream>,
}

impl<'s> FolderChange<'s> {
    /// Reads a stage; none if it is no `cd` at all.
    ///
    /// # Errors
    /// It is one with something else than one plain folder, or whose streams lead to files.
    pub fn of(stage: &'s PipelineStage) -> Option<Result<Self, UnsupportedStep>> {
        let is_change = stage.words.first().and_then(ShellWord::literal) == Some("cd");
        is_change.then(|| Self::read(stage).ok_or(UnsupportedStep::UnsupportedCd))
    }

    fn read(stage: &'s PipelineStage) -> Option<Self> {
        let words: Vec<&str> = stage.words.iter().map(ShellWord::literal).collect::<Option<_>>()?;
        let to = match *words.as_slice() {
            ["cd", "--", to] | ["cd", to @ "-"] => to,
            ["cd", to] if !to.starts_with('-') => to,
            _ => return None,
        };
        let (mut out, mut err) = (Some(StdStream::Out), Some(StdStream::Err));
        for redirect in &stage.redirects {
            let goes = match redirect {
                Redirection::File { path, .. } if path == super::DEV_NULL => None,
                Redirection::Duplicate { target: StdStream::Out, .. } => out,
                Redirection::Duplicate { target: StdStream::Err, .. } => err,
                _ => return None,
            };
            if let Redirection::File { stream, .. } | Redirection::Duplicate { stream, .. } =
                redirect
            {
                *(if *stream == StdStream::Out { &mut out } else { &mut err }) = goes;
            }
        }
        (stage.variables.is_empty() && !to.is_empty()).then_some(Self { to, out, err })
    }
}

/// A pipeline of a list, as the call for the whole list tells of it. Each is a call of its own when it is
/// reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPart {
    /// Its place in the list, from 1.
    pub number: usize,
    /// When it runs.
    pub join: ListOperator,
    /// Whether a program runs.
    pub runs: bool,
    /// Whether it is a `cd`, which says for the parts behind it where they run. In old records they say so
    /// themselves, and a `cd` is no call.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changes_folder: bool,
}

impl ListPart {
    /// The parts of a list, each once in however many folders it may run.
    #[must_use]
    pub fn of(steps: &[CommandStep]) -> Vec<Self> {
        let part = |step: &CommandStep| Self {
            number: step.number,
            join: step.join,
            runs: !step.is_cd(),
            changes_folder: step.is_cd(),
        };
        let once = steps.chunk_by(|one, other| one.number == other.number);
        once.filter_map(<[CommandStep]>::first).map(part).collect()
    }
}

/// One way in which the list so far may have gone.
#[derive(Clone, PartialEq)]
struct Course {
    cwd: PathTarget,
    /// The folder before, which `cd -` leads back to.
    before: Option<PathTarget>,
    /// Whether what ran last ended with 0, where that is known.
    good: Option<bool>,
    /// The folders to which a `cd` must have failed for it to go this way.
    unless: Vec<WorkspacePath>,
}

impl CommandStep {
    /// The steps of a script that begins in a folder: each pipeline once for every folder that it may
    /// run in. `names` are those of the workspace's root.
    ///
    /// # Errors
    /// Says what of it cannot be done without a shell.
    pub fn of(
        script: &Script,
        cwd: &PathTarget,
        names: &RootNames,
    ) -> Result<Vec<Self>, UnsupportedStep> {
        let first = Course { cwd: cwd.clone(), before: None, good: Some(true), unless: Vec::new() };
        let mut courses = alloc::vec![first];
        let mut steps = Vec::new();
        let mut bytes = 0_usize;
        for (index, element) in script.elements.iter().enumerate() {
            let change = change(element)?;
            let mut next: Vec<Course> = Vec::new();
            for course in courses {
                let good = skipped_after(element.join);
                if good.is_some() && course.good.is_none_or(|item| Some(item) == good) {
                    add(&mut next, Course { good, ..course.clone() });
                }
                if good.is_some() && course.good == good {
                    continue;
                }
                let to = change.map(|change| course.led(change, names));
                let folder = to.as_ref().and_then(Option::as_ref).unwrap_or(&course.cwd).clone();
                let stages = match change {
                    Some(_) => Vec::new(),
                    None => element.pipeline.stages.clone(),
                };
                let (number, join, unless) = (index + 1, element.join, course.unless.clone());
                put(&mut steps, Self { number, join, cwd: folder, stages, unless });
                bytes = bytes.saturating_add(element.span.len());
                match to {
                    None => add(&mut next, Course { good: known_end(element), ..course }),
                    Some(to) => {
                        course.changed(to).into_iter().for_each(|course| add(&mut next, course))
                    }
                }
            }
            if next.len() > limits::COMMAND_FOLDERS || bytes > 2 * limits::COMMAND_BYTES {
                return Err(UnsupportedStep::TooManyFolders);
            }
            courses = next;
        }
        Ok(steps)
    }
}

/// The `cd` that a pipeline is, if it is one.
fn change(element: &ScriptElement) -> Result<Option<FolderChange<'_>>, UnsupportedStep> {
    let stages = element.pipeline.stages.as_slice();
    match (stages.iter().find_map(FolderChange::of), stages) {
        (None, _) => Ok(None),
        (Some(change), [_]) => change.map(Some),
        _ => Err(UnsupportedStep::UnsupportedCd),
    }
}

/// How a pipeline ends of which that is known: `true` and `false` alone.
fn known_end(element: &ScriptElement) -> Option<bool> {
    let [stage] = element.pipeline.stages.as_slice() else { return None };
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

/// How what ran last has ended where a pipeline that is joined so is left out; none if it always runs.
const fn skipped_after(join: ListOperator) -> Option<bool> {
    match join {
        ListOperator::First | ListOperator::Then => None,
        ListOperator::And => Some(false),
        ListOperator::Or => Some(true),
    }
}

impl Course {
    /// Where a `cd` leads; nowhere, if it goes back and there is no folder before.
    fn led(&self, change: FolderChange<'_>, names: &RootNames) -> Option<PathTarget> {
        match change.to {
            "-" => self.before.clone(),
            to => Some(target_from(&self.cwd, to, names)),
        }
    }

    /// How it may go on behind a `cd`. What follows outside of the workspace needs no look of its own:
    /// going there is denied.
    fn changed(self, to: Option<PathTarget>) -> Vec<Self> {
        let Some(to) = to else { return alloc::vec![Self { good: Some(false), ..self }] };
        let PathLocation::Inside(path) = &to.location else { return Vec::new() };
        let mut courses = Vec::new();
        // The folder itself and those above it are there.
        let above = |item: &WorkspacePath| item.ancestors().any(|above| above == *path);
        if !self.cwd.inside().is_some_and(above) {
            let mut unless = self.unless.clone();
            unless.push(path.clone());
            unless.sort();
            unless.dedup();
            courses.push(Self { good: Some(false), unless, ..self.clone() });
        }
        courses.push(Self { before: Some(self.cwd), cwd: to, good: Some(true), ..self });
        courses
    }
}

/// Whether a way needs no more than another to be gone.
fn needs_less(one: &[WorkspacePath], other: &[WorkspacePath]) -> bool {
    one.iter().all(|path| other.contains(path))
}

/// Adds a way, unless another one leads to the same state and needs less.
fn add(courses: &mut Vec<Course>, course: Course) {
    let state = |item: &Course| {
        (
            item.cwd.location.clone(),
            item.before.as_ref().map(|target| target.location.clone()),
            item.good,
        )
    };
    let same = state(&course);
    if !courses.iter().any(|item| state(item) == same && needs_less(&item.unless, &course.unless)) {
        courses.retain(|item| state(item) != same || !needs_less(&course.unless, &item.unless));
        courses.push(course);
    }
}

/// The same for the steps of a pipeline.
fn put(steps: &mut Vec<CommandStep>, step: CommandStep) {
    let same =
        |item: &CommandStep| item.number == step.number && item.cwd.location == step.cwd.location;
    if !steps.iter().any(|item| same(item) && needs_less(&item.unless, &step.unless)) {
        steps.retain(|item| !same(item) || !needs_less(&step.unless, &item.unless));
        steps.push(step);
    }
}
