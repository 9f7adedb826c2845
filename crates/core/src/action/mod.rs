//! What a call means exactly: typed, plain, and the same for whoever reads it.

mod command;
mod fingerprint;
mod git;
mod path_fact;
mod unconfined;
mod write;

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::capability::{Capabilities, Capability};
use crate::change::Change;
use crate::confinement::{SandboxFailure, SandboxStatus};
use crate::outcome::CodedError;
use crate::undo::NoUndoReason;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_base::root_names::RootNames;
use capsule_base::url::HttpUrl;
use capsule_command::program::ProgramFact;
use capsule_command::specs::{CommandLine, PathOrigin, PathUse};

pub use capsule_command::steps::{
    CommandStep, DEV_NULL, Expansion, FolderChange, PathLocation, PathTarget, StepContext,
    UnsupportedStep, expanded_argv, glob_arguments, is_everything, protect_leading_dash,
    redirect_files, target_from,
};
pub use command::{SubAction, sub_actions};
pub use fingerprint::Fingerprint;
pub use git::RepositoryQuery;
pub use path_fact::{FileKind, PathFact};
pub use write::WriteMode;

/// What a call asks for, understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// Look for files by their metadata, or for lines in them.
    Search {
        /// The folder to look beneath.
        path: PathTarget,
        /// What to look for.
        filter: SearchFilter,
        /// How many results at most, as asked.
        limit: Option<u64>,
    },
    /// List a folder.
    List {
        /// The folder.
        path: PathTarget,
        /// How many levels, as asked.
        depth: Option<u64>,
        /// How many entries at most, as asked.
        limit: Option<u64>,
    },
    /// Read a file.
    Read {
        /// The file.
        path: PathTarget,
        /// The first byte.
        offset: u64,
        /// How many bytes at most, as asked.
        limit: Option<u64>,
    },
    /// Write a file.
    Write {
        /// The file.
        path: PathTarget,
        /// What to do with what is there.
        mode: WriteMode,
        /// The size of the content in bytes.
        bytes: u64,
        /// The digest of the content.
        content: Digest,
    },
    /// Change some places of a file.
    Edit {
        /// The file.
        path: PathTarget,
        /// The digest of what is searched for.
        search: Digest,
        /// The digest of what is to stand there instead.
        replace: Digest,
        /// The size of that in bytes.
        bytes: u64,
        /// How often it is expected, if that was said.
        count: Option<u64>,
    },
    /// Delete a file, a link or a folder.
    Delete {
        /// What is deleted; a link itself, not what it leads to.
        path: PathTarget,
        /// Whether a folder goes with all that is in it.
        recursive: bool,
    },
    /// Fetch a URL.
    Fetch {
        /// Where from.
        url: UrlTarget,
        /// The headers to send, by name.
        headers: Vec<(String, String)>,
    },
    /// Run a program.
    Run {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The folder to run in.
        cwd: PathTarget,
        /// The digest and size of what it is given to read, if anything.
        stdin: Option<(Digest, u64)>,
        /// The time that was asked for, in milliseconds.
        timeout_ms: Option<u64>,
        /// Whether nothing would confine it: the machine was asked, and has no sandbox.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        unconfined: bool,
    },
    /// Run pipelines, one after the other, as a text of the command language says.
    Command {
        /// The pipelines.
        steps: Vec<CommandStep>,
        /// The text.
        text: String,
        /// The folder that it begins in.
        cwd: PathTarget,
        /// The digest and size of what the first program is given to read, if anything.
        stdin: Option<(Digest, u64)>,
        /// The time that was asked for, in milliseconds.
        timeout_ms: Option<u64>,
    },
    /// Look at the repository that the workspace is.
    Git {
        /// What about it.
        #[serde(rename = "ask")]
        query: RepositoryQuery,
    },
    /// Run the project's tests, as the policy says.
    Test {
        /// The word that picks some of them.
        filter: Option<String>,
    },
    /// Ask the user what is meant. The answer is text, and no permission.
    AskUser {
        /// The question.
        question: String,
        /// Likely answers.
        choices: Vec<String>,
    },
    /// Give a model a file that the user chose, from wherever it is.
    Attach {
        /// The file, as an absolute path of the host.
        file: String,
    },
    /// Run a whole agent, which the user started.
    Agent {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// Take what a run changed in its staged workspace over into the workspace itself.
    Apply {
        /// The run's full id.
        run: String,
        /// What it changed, parents before what is in them.
        changes: Vec<Change>,
        /// Whether somebody began to before.
        #[serde(rename = "again")]
        is_retry: bool,
    },
    /// Bring back what stood in the workspace before calls of a run changed it.
    Undo {
        /// The run's full id.
        run: String,
        /// The call; all of them if none is named.
        call: Option<u64>,
        /// What comes of it, parents before what is in them.
        changes: Vec<Change>,
        /// The runs that began to before and were killed, by their full ids.
        #[serde(rename = "again")]
        interrupted_runs: Vec<String>,
        /// Whether what goes is what a run made, which no other run brought back: it need not be kept.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        #[serde(rename = "made")]
        skips_backup: bool,
    },
}

/// What `fs.search` looks for. Every part that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchFilter {
    /// A pattern for the name, or for the path if it holds a slash.
    pub name: Option<String>,
    /// The smallest size in bytes.
    pub min_size: Option<u64>,
    /// The largest size in bytes.
    pub max_size: Option<u64>,
    /// Modified at or after this time, in seconds since 1970.
    pub modified_after: Option<i64>,
    /// Modified before this time, in seconds since 1970.
    pub modified_before: Option<i64>,
    /// A regular expression that matches a line of the file; none where only metadata is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// A URL as it was asked and as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlTarget {
    /// The words of whoever asked.
    pub asked: String,
    /// The parsed URL, or the code that says why it is none.
    #[serde(flatten)]
    pub parsed: ParsedUrl,
}

/// A URL, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParsedUrl {
    /// A URL that can be fetched.
    Url(HttpUrl),
    /// None.
    Refused(Code),
}

impl UrlTarget {
    /// Reads a URL as a call names it. This never fails: what is none stays to be judged.
    #[must_use]
    pub fn parse(asked: &str) -> Self {
        let parsed = match HttpUrl::parse(asked) {
            Ok(address) => ParsedUrl::Url(address),
            Err(code) => ParsedUrl::Refused(code),
        };
        Self { asked: asked.to_string(), parsed }
    }
}

impl Action {
    /// The capabilities that the action needs by its nature. A command may need more: those come
    /// from the policy's knowledge of its program.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        use Capability::{DataUser, FsDelete, FsMeta, FsRead, FsWrite, NetEgress, ProcExec};
        let needed: &[Capability] = match self {
            Self::AskUser { .. } => &[],
            Self::Attach { .. } => &[DataUser],
            Self::Search { filter: SearchFilter { content: Some(_), .. }, .. }
            | Self::Read { .. } => &[FsRead],
            Self::Search { .. } | Self::List { .. } => &[FsMeta],
            Self::Write { .. } => &[FsWrite],
            // Its errors tell what the file holds.
            Self::Edit { .. } => &[FsRead, FsWrite],
            Self::Delete { .. } => &[FsDelete],
            Self::Fetch { .. } => &[NetEgress],
            Self::Run { unconfined: true, .. } => &[ProcExec, Capability::ProcUnconfined],
            Self::Run { .. } | Self::Command { .. } | Self::Test { .. } => &[ProcExec],
            Self::Git { .. } => &[FsRead, ProcExec],
            Self::Agent { .. } => &[FsWrite, FsDelete, ProcExec, NetEgress],
            Self::Apply { .. } | Self::Undo { .. } => &[FsWrite, FsDelete],
        };
        needed.iter().copied().collect()
    }

    /// The path that the action is about, if it is about one.
    #[must_use]
    pub const fn path(&self) -> Option<&PathTarget> {
        match self {
            Self::Search { path, .. }
            | Self::List { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Edit { path, .. }
            | Self::Delete { path, .. } => Some(path),
            Self::Run { cwd, .. } | Self::Command { cwd, .. } => Some(cwd),
            Self::Fetch { .. }
            | Self::Git { .. }
            | Self::Test { .. }
            | Self::AskUser { .. }
            | Self::Attach { .. }
            | Self::Agent { .. }
            | Self::Apply { .. }
            | Self::Undo { .. } => None,
        }
    }

    /// Whether it would change something outside of the workspace.
    #[must_use]
    pub const fn changes_outside(&self) -> bool {
        match self {
            Self::Write { path, .. } | Self::Edit { path, .. } | Self::Delete { path, .. } => {
                path.inside().is_none()
            }
            _ => false,
        }
    }

    /// Every path that the action names by itself, without those among a command's arguments.
    #[must_use]
    pub fn named_paths(&self) -> Vec<&PathTarget> {
        match self {
            Self::Git { query: ask } => ask.paths().iter().collect(),
            _ => self.path().into_iter().collect(),
        }
    }

    /// The places in the workspace that a path among a command's arguments may mean, as the program
    /// will follow it: from the real place of the command's folder, not from a link to it.
    ///
    /// # Errors
    /// Says why it is not a path inside the workspace.
    pub fn resolve_path_argument(
        &self,
        used: &PathUse,
        facts: &Facts,
    ) -> Result<Vec<WorkspacePath>, PathProblem> {
        let places = self.path_argument_places(used, facts)?.into_iter();
        let resolve = |(path, left): (WorkspacePath, Vec<WorkspacePath>)| {
            let is_certain = left.iter().all(|folder| facts.is_real_folder(folder));
            is_certain.then_some(path).ok_or(PathProblem::UncertainParent)
        };
        places.map(resolve).collect()
    }

    /// The places that a path among a command's arguments may mean, each with the folders that the path climbs out
    /// of by `..`: it leads there only if none of them is a link.
    fn path_argument_places(
        &self,
        used: &PathUse,
        facts: &Facts,
    ) -> Result<Vec<(WorkspacePath, Vec<WorkspacePath>)>, PathProblem> {
        let cwd = match self {
            Self::Run { cwd, .. } => cwd.inside().cloned().unwrap_or_default(),
            _ => WorkspacePath::root(),
        };
        let folder = match facts.path_fact(&cwd).map(|fact| &fact.real) {
            Some(PathLocation::Inside(real)) => real.clone(),
            _ => cwd,
        };
        let resolve = |from: &WorkspacePath| from.resolve_climbing(&used.path, &facts.root_names);
        match used.origin {
            PathOrigin::WorkDirectory => Ok(alloc::vec![resolve(&folder)?]),
            PathOrigin::AnyAncestor => folder.ancestors().map(|above| resolve(&above)).collect(),
        }
    }

    /// The paths inside the workspace that a command's arguments name: what preflight looks up once
    /// the command's folder and its program were found. One more than are looked up at most tells
    /// that there were too many.
    #[must_use]
    pub fn argument_paths(&self, facts: &Facts) -> Vec<WorkspacePath> {
        let Self::Run { argv, .. } = self else { return Vec::new() };
        let line = CommandLine::parse(argv, facts.program.as_ref(), false);
        let mut paths = BTreeSet::new();
        let lines = line.with_nested();
        let readings = lines.iter().flat_map(|line| line.parsed_argvs());
        for used in readings.flat_map(|reading| &reading.paths) {
            for (path, left) in self.path_argument_places(used, facts).unwrap_or_default() {
                paths.extend(left);
                paths.insert(path);
            }
            if paths.len() > limits::COMMAND_PATHS {
                break;
            }
        }
        let is_known = |path: &WorkspacePath| facts.path_fact(path).is_some();
        paths.into_iter().filter(|path| path.as_temporary().is_none() && !is_known(path)).collect()
    }
}

/// What was found out about an action before it is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Every path of the action that lies inside by its text, as found on disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathFact>,
    /// The program that would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFact>,
    /// The programs that a command of the language would run, by the names that it has for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<(String, ProgramFact)>,
    /// What the patterns among its words stand for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expansions: Vec<Expansion>,
    /// The addresses that a host resolved to, where they are known already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolves: Vec<IpAddr>,
    /// The walls that a command would stand behind, or why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "walls")]
    pub sandbox: Option<Result<SandboxStatus, SandboxFailure>>,
    /// How many masks stand in what it would write.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub masks: u64,
    /// Why what it changes could not be brought back, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unkept")]
    pub no_undo: Option<NoUndoReason>,
    /// Why the call could not succeed if it were allowed, where that is known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<CodedError>,
    /// Whether it changes the workspace itself though the policy stages: the program that hosts a model does.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_host: bool,
    /// The names of the workspace's root, where the action mentions another than the usual one.
    #[serde(default, skip_serializing_if = "RootNames::is_default")]
    #[serde(rename = "root")]
    pub root_names: RootNames,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Facts {
    /// What was found at a path.
    #[must_use]
    pub fn path_fact(&self, path: &WorkspacePath) -> Option<&PathFact> {
        self.paths.iter().find(|fact| fact.path == *path)
    }

    /// The directory that a pipeline runs in, as its programs see it: where the links on the way lead.
    #[must_use]
    pub fn real_directory(&self, step: &CommandStep) -> PathTarget {
        let real = step.cwd.inside().and_then(|path| self.path_fact(path)).map(|fact| &fact.real);
        match real {
            Some(place) => PathTarget { asked: step.cwd.asked.clone(), location: place.clone() },
            None => step.cwd.clone(),
        }
    }

    /// Whether a path is that of a folder, and no link is on the way.
    fn is_real_folder(&self, path: &WorkspacePath) -> bool {
        self.path_fact(path).is_some_and(|fact| {
            fact.kind == FileKind::Directory && fact.real == PathLocation::Inside(path.clone())
        })
    }

    /// What was found for one program of a command.
    #[must_use]
    pub fn program_named(&self, name: &str) -> Option<&ProgramFact> {
        self.programs.iter().find(|(text, _)| text == name).map(|(_, fact)| fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolName;
    use capsule_base::json;

    #[test]
    fn actions_read_back() {
        let actions = [
            Action::Read { path: PathTarget::parse("../x"), offset: 0, limit: None },
            Action::Edit {
                path: PathTarget::parse("a"),
                search: Digest::of(b"x"),
                replace: Digest::of(b"y"),
                bytes: 1,
                count: Some(2),
            },
            Action::Delete { path: PathTarget::parse("a"), recursive: true },
            Action::Run {
                argv: ["git", "log"].map(String::from).to_vec(),
                cwd: PathTarget::parse("."),
                stdin: Some((Digest::of(b"x"), 1)),
                timeout_ms: None,
                unconfined: true,
            },
            Action::Fetch {
                url: UrlTarget::parse("https://x.org/a?b"),
                headers: alloc::vec![("Accept".into(), "text/html".into())],
            },
            Action::Fetch { url: UrlTarget::parse("file:///x"), headers: Vec::new() },
        ];
        for action in actions {
            let bytes = json::canonical(&action);
            let read: Action = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(read, action);
            let (tool, facts, policy) =
                (ToolName::unchecked("shell.run"), Facts::default(), Digest::of(b"policy"));
            let values = [serde_json::json!(action), serde_json::json!(facts)];
            assert_eq!(
                Fingerprint::of_values(&tool, &values[0], &values[1], policy),
                Fingerprint::of(&tool, &action, &facts, policy)
            );
        }
    }
}
