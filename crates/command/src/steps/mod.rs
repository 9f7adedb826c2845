//! A command of the language, as a call means it: pipelines one after the other, each in its directory.

mod courses;
mod folder_change;
mod list_state;
mod path_target;
mod read_lines;

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::shell_syntax::{
    ListOperator, PipelineStage, Redirection, ShellWord, ValueProblem, WordPiece,
};
use crate::specs::is_endless_device;
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;

pub use courses::StepContext;
pub use folder_change::{FolderChange, redirect_streams};
pub use list_state::{GroupState, ListState, NextStep, ReachedState};
pub use path_target::{PathLocation, PathTarget};

/// One pipeline of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStep {
    /// Its place in the list that it is in, from 1.
    pub number: usize,
    /// When it runs.
    pub join: ListOperator,
    /// The directory that it runs in.
    pub cwd: PathTarget,
    /// What runs; none for one that only goes to another directory, or is about background parts.
    pub stages: Vec<PipelineStage>,
    /// The directories to which a `cd` before it must have failed for it to run in this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<WorkspacePath>,
    /// Whether what it prints becomes words of another command, so that it may only read.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_captured: bool,
    /// Whether the list goes on while it runs.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_background: bool,
}

/// What a pattern among the words of a command stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    /// The directory that it is seen from.
    pub cwd: String,
    /// The pattern as it is typed.
    pub pattern: String,
    /// The names that match, in the order of their bytes.
    pub names: Vec<String>,
}

/// A script that is not a command here, though it is one of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsupportedStep {
    /// `cd` with something else than one plain directory, in a pipeline, or with its streams in files; `wait` or `kill` of
    /// background parts in a pipeline.
    UnsupportedCd,
    /// The list may run in more directories than are looked at.
    TooManyFolders,
    /// It may go more ways than are looked at, or goes round without running anything.
    TooManyWays,
    /// The value of a variable cannot be put in.
    Value(ValueProblem),
}

impl CommandStep {
    /// Whether it starts no program: it goes to another directory, or is about background parts, which needs no more.
    #[must_use]
    pub const fn is_cd(&self) -> bool {
        self.stages.is_empty()
    }
}

/// A path that a word of a command names, seen from its directory, where the root has these names.
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
        let pattern = word.unexpanded();
        let matches = |found: &&Expansion| found.pattern == pattern && found.cwd == folder;
        match expansions.iter().find(matches).filter(|_| word.literal().is_none()) {
            Some(found) if !found.names.is_empty() => {
                words.extend(found.names.iter().map(|name| protect_leading_dash(name)))
            }
            _ => words.push(pattern),
        }
    }
    words
}

/// The name of a file, so that no program takes it for an option.
#[must_use]
pub fn protect_leading_dash(name: &str) -> String {
    if name.starts_with('-') { alloc::format!("./{name}") } else { name.to_string() }
}

/// Whether a pattern matches all that lies at the root, all directories of it, or all of it that is hidden: a name of
/// nothing but wildcards, which may begin with a dot and end with a slash.
#[must_use]
pub fn is_everything(word: &ShellWord, cwd: &PathTarget, names: &RootNames) -> bool {
    let Some(pieces) = word.as_glob() else { return false };
    let mut name = Vec::new();
    let is_slash = |piece: &&WordPiece| matches!(piece, WordPiece::Text(text) if text.bytes().all(|c| c == b'/'));
    for piece in pieces.iter().rev().skip_while(is_slash) {
        match piece {
            WordPiece::Directories => break,
            WordPiece::Text(text) => {
                name.push(piece);
                if text.contains('/') {
                    break;
                }
            }
            _ => name.push(piece),
        }
    }
    let is_wide = |(after, piece): (usize, &&WordPiece)| match piece {
        WordPiece::Text(text) => match text.rsplit('/').next() {
            Some(".") => after + 1 == name.len(),
            rest => rest == Some(""),
        },
        WordPiece::Class { negated, .. } => *negated,
        _ => true,
    };
    let typed = word.unexpanded();
    let (directory, _) = typed.trim_end_matches('/').rsplit_once('/').unwrap_or((".", ""));
    // `**/` begins in the directory before it.
    let directory = directory.strip_suffix("**").unwrap_or(directory);
    let directory = if directory.is_empty() && !typed.starts_with('/') { "." } else { directory };
    let at = target_from(cwd, directory.trim_end_matches('/'), names);
    name.contains(&&WordPiece::Any)
        && name.iter().enumerate().all(is_wide)
        && at.inside().is_some_and(WorkspacePath::is_root)
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
        Redirection::Input { path } if path != DEV_NULL && !is_endless_device(path) => {
            Some((path.as_str(), None))
        }
        _ => None,
    })
}
