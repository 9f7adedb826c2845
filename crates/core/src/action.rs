//! What a call means exactly: typed, plain, and the same for whoever reads it.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::capability::{Capabilities, Capability};
use crate::change::Change;
use crate::code::Code;
use crate::confinement::Walls;
use crate::digest::Digest;
use crate::json;
use crate::limits;
use crate::path::{PathProblem, WorkspacePath};
use crate::programs::{CommandLine, PathUse, Start};
use crate::tool::ToolName;
use crate::url::Address;

/// What a call asks for, understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// Look for files by their metadata.
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
    },
    /// Take what a run changed in its staged workspace over into the workspace itself.
    Apply {
        /// The run's full id.
        run: String,
        /// What it changed, parents before what is in them.
        changes: Vec<Change>,
        /// Whether somebody began to before.
        again: bool,
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
}

/// What a write does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// Make a file that is not there.
    Create,
    /// Replace the file, or make it.
    Overwrite,
    /// Add to the file, or make it.
    Append,
}

/// A path as it was asked and as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTarget {
    /// The words of whoever asked.
    pub asked: String,
    /// The path inside the workspace, or why it is none.
    #[serde(flatten)]
    pub place: Place,
}

/// Inside the workspace, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Inside.
    Inside(WorkspacePath),
    /// Not inside.
    Outside(PathProblem),
}

impl PathTarget {
    /// Reads a path as a call names it. This never fails: what is not inside stays to be judged.
    #[must_use]
    pub fn parse(asked: &str) -> Self {
        let place = match WorkspacePath::parse(asked) {
            Ok(path) => Place::Inside(path),
            Err(problem) => Place::Outside(problem),
        };
        Self { asked: asked.to_string(), place }
    }

    /// The path inside the workspace, if it is one.
    #[must_use]
    pub const fn inside(&self) -> Option<&WorkspacePath> {
        match &self.place {
            Place::Inside(path) => Some(path),
            Place::Outside(_) => None,
        }
    }
}

/// A URL as it was asked and as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlTarget {
    /// The words of whoever asked.
    pub asked: String,
    /// The parsed URL, or the code that says why it is none.
    #[serde(flatten)]
    pub parsed: Parsed,
}

/// A URL, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parsed {
    /// A URL that can be fetched.
    Url(Address),
    /// None.
    Refused(Code),
}

impl UrlTarget {
    /// Reads a URL as a call names it. This never fails: what is none stays to be judged.
    #[must_use]
    pub fn parse(asked: &str) -> Self {
        let parsed = match Address::parse(asked) {
            Ok(address) => Parsed::Url(address),
            Err(code) => Parsed::Refused(code),
        };
        Self { asked: asked.to_string(), parsed }
    }
}

impl Action {
    /// The capabilities that the action needs by its nature. A command may need more: those come
    /// from the policy's knowledge of its program.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        Capabilities::of(match self {
            Self::Search { .. } | Self::List { .. } => Capability::FsMeta,
            Self::Read { .. } => Capability::FsRead,
            Self::Write { .. } => Capability::FsWrite,
            Self::Fetch { .. } => Capability::NetEgress,
            Self::Run { .. } => Capability::ProcExec,
            Self::Apply { .. } => {
                return Capabilities::of(Capability::FsWrite).with(Capability::FsDelete);
            }
        })
    }

    /// The path that the action is about, if it is about one.
    #[must_use]
    pub const fn path(&self) -> Option<&PathTarget> {
        match self {
            Self::Search { path, .. }
            | Self::List { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. } => Some(path),
            Self::Run { cwd, .. } => Some(cwd),
            Self::Fetch { .. } | Self::Apply { .. } => None,
        }
    }

    /// The places in the workspace that a path among a command's arguments may mean, as the program
    /// will follow it: from the real place of the command's folder, not from a link to it.
    ///
    /// # Errors
    /// Says why it is not a path inside the workspace.
    pub fn argument(
        &self,
        used: &PathUse,
        facts: &Facts,
    ) -> Result<Vec<WorkspacePath>, PathProblem> {
        let cwd = match self {
            Self::Run { cwd, .. } => cwd.inside().cloned().unwrap_or_default(),
            _ => WorkspacePath::root(),
        };
        let folder = match facts.at(&cwd).map(|fact| &fact.real) {
            Some(Place::Inside(real)) => real.clone(),
            _ => cwd,
        };
        match used.start {
            Start::Folder => Ok(alloc::vec![folder.follow(&used.path)?]),
            Start::Above => folder.upwards().map(|above| above.follow(&used.path)).collect(),
        }
    }

    /// The paths inside the workspace that a command's arguments name: what preflight looks up once
    /// the command's folder and its program were found. One more than are looked up at most tells
    /// that there were too many.
    #[must_use]
    pub fn argument_paths(&self, facts: &Facts) -> Vec<WorkspacePath> {
        let Self::Run { argv, .. } = self else { return Vec::new() };
        let line = CommandLine::of(argv, facts.program.as_ref(), false);
        let mut paths = BTreeSet::new();
        for used in line.readings().flat_map(|reading| &reading.paths) {
            paths.extend(self.argument(used, facts).unwrap_or_default());
            if paths.len() > limits::COMMAND_PATHS {
                break;
            }
        }
        paths.into_iter().filter(|path| facts.at(path).is_none()).collect()
    }

    /// The action in one line, for a screen or a log; not escaped.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Search { path, filter, .. } => match &filter.name {
                Some(name) => alloc::format!("{name} in {}", path.asked),
                None => path.asked.clone(),
            },
            Self::List { path, .. } | Self::Read { path, .. } | Self::Write { path, .. } => {
                path.asked.clone()
            }
            Self::Fetch { url, .. } => match &url.parsed {
                Parsed::Url(address) => address.shown(),
                Parsed::Refused(_) => url.asked.clone(),
            },
            Self::Run { argv, .. } => show_argv(argv),
            Self::Apply { changes, .. } => match changes.as_slice() {
                [one] => one.path.clone(),
                many => alloc::format!("{} changes", many.len()),
            },
        }
    }
}

/// A command line for reading: words with blanks or quotes stand in quotes.
#[must_use]
pub fn show_argv(argv: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_alphanumeric() || "-_=./:,+@%^~[]{}".contains(c))
    };
    let mut line = String::new();
    for (index, word) in argv.iter().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        if plain(word) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', "'\\''"));
            line.push('\'');
        }
    }
    line
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
    /// The addresses that a host resolved to, where they are known already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolves: Vec<IpAddr>,
    /// The walls that a command would stand behind, or why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walls: Option<Result<Walls, String>>,
}

impl Facts {
    /// What was found at a path.
    #[must_use]
    pub fn at(&self, path: &WorkspacePath) -> Option<&PathFact> {
        self.paths.iter().find(|fact| fact.path == *path)
    }
}

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFact {
    /// The path by its text.
    pub path: WorkspacePath,
    /// Where it leads once every link is followed, or why that is not inside. For a file that is
    /// not there yet: where it would be.
    pub real: Place,
    /// What is there.
    pub kind: FileKind,
    /// A protected path that is another name of the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<WorkspacePath>,
    /// Whether it is a store of ours by what it holds, or lies beside one by its name.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub ours: bool,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, socket or device.
    Special,
}

/// A program on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFact {
    /// Where it was found.
    pub path: String,
    /// Where that leads once every link is followed.
    pub real: String,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// What an approval is bound to: the tool, what would happen, what was found, and the policy that
/// judged it. Equal fingerprints mean the same thing would happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The fingerprint of an action with its facts, under a policy.
    #[must_use]
    pub fn of(tool: &ToolName, action: &Action, facts: &Facts, policy: Digest) -> Self {
        Self(Digest::of(&json::canonical(&(tool, action, facts, policy))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_read_back() {
        let actions = [
            Action::Read { path: PathTarget::parse("../x"), offset: 0, limit: None },
            Action::Run {
                argv: ["git", "log"].map(String::from).to_vec(),
                cwd: PathTarget::parse("."),
                stdin: Some((Digest::of(b"x"), 1)),
                timeout_ms: None,
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
        }
    }

    #[test]
    fn a_command_line_can_be_read() {
        let argv = ["git", "commit", "-m", "it's done", ""].map(String::from);
        assert_eq!(show_argv(&argv), r"git commit -m 'it'\''s done' ''");
    }
}
