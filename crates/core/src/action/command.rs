//! A command of the language, as a call means it: pipelines one after the other, each in its folder.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::action::{Action, Facts, PathLocation, PathTarget, WriteMode};
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_command::shell_syntax::{ListOperator, PipelineStage, Redirection, WordPiece};

/// One pipeline of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStep {
    /// Its place in the list that it stands in, from 1.
    pub number: usize,
    /// When it runs.
    pub join: ListOperator,
    /// The folder that it runs in.
    pub cwd: PathTarget,
    /// What runs; none for one that only goes to another folder.
    pub stages: Vec<PipelineStage>,
    /// The folders to which a `cd` before it must have failed for it to run in this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<WorkspacePath>,
}

/// What a pattern among the words of a command stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    /// The folder that it is seen from.
    pub cwd: String,
    /// The pattern as it is typed.
    pub pattern: String,
    /// The names that match, in the order of their bytes.
    pub names: Vec<String>,
}

/// A script that is not a command here, though it is one of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedStep {
    /// `cd` with something else than one plain folder, in a pipeline, or with its streams in files.
    UnsupportedCd,
    /// The list may run in more folders than are looked at.
    TooManyFolders,
}

impl CommandStep {
    /// Whether it only goes to another folder.
    #[must_use]
    pub const fn is_cd(&self) -> bool {
        self.stages.is_empty()
    }

    /// The folder that it runs in, as its programs see it: where the links on the way lead.
    #[must_use]
    pub fn cd_target(&self, facts: &Facts) -> PathTarget {
        let real = self.cwd.inside().and_then(|path| facts.path_fact(path)).map(|fact| &fact.real);
        match real {
            Some(place) => PathTarget { asked: self.cwd.asked.clone(), location: place.clone() },
            None => self.cwd.clone(),
        }
    }
}

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
    let folder = step.cd_target(facts);
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

/// A path that a word of a command names, seen from its folder, where the root has these names.
#[must_use]
pub fn target_from(cwd: &PathTarget, word: &str, names: &RootNames) -> PathTarget {
    let place = match &cwd.location {
        PathLocation::Inside(folder) => match folder.resolve_named(word, names) {
            Ok(path) => PathLocation::Inside(path),
            Err(problem) => PathLocation::Outside(problem),
        },
        outside => outside.clone(),
    };
    PathTarget { asked: word.to_string(), location: place }
}

/// What `/dev/null` is called where a stream leads there.
pub const DEV_NULL: &str = "/dev/null";

/// The words of a stage with its patterns expanded. A pattern that nothing matches stands for
/// itself, as in a shell; a name that begins with a dash gets `./` before it, so that it is none of
/// an option.
#[must_use]
pub fn expanded_argv(
    stage: &PipelineStage,
    cwd: &PathTarget,
    expansions: &[Expansion],
) -> Vec<String> {
    let folder = cwd.inside().map_or("", WorkspacePath::as_str);
    let mut words = Vec::new();
    for word in &stage.words {
        let Some(text) = word.literal() else {
            let pattern = word.unexpanded();
            let found = expansions
                .iter()
                .find(|expansion| expansion.pattern == pattern && expansion.cwd == folder);
            match found.filter(|expansion| !expansion.names.is_empty()) {
                Some(found) => {
                    words.extend(found.names.iter().map(|name| protect_leading_dash(name)))
                }
                None => words.push(pattern),
            }
            continue;
        };
        words.push(text.to_string());
    }
    words
}

fn protect_leading_dash(name: &str) -> String {
    if name.starts_with('-') { alloc::format!("./{name}") } else { name.to_string() }
}

/// The patterns of a stage, each as its pieces and as it is typed.
pub fn glob_arguments(stage: &PipelineStage) -> impl Iterator<Item = (&[WordPiece], String)> {
    stage.words.iter().filter_map(|word| Some((word.as_glob()?, word.unexpanded())))
}

/// The files that the streams of a stage lead to or come from, each with whether it is written.
pub fn redirect_files(stage: &PipelineStage) -> impl Iterator<Item = (&str, Option<bool>)> {
    stage.redirects.iter().filter_map(|redirect| match redirect {
        Redirection::File { path, append, .. } if path != DEV_NULL => {
            Some((path.as_str(), Some(*append)))
        }
        Redirection::Input { path } if path != DEV_NULL => Some((path.as_str(), None)),
        _ => None,
    })
}
