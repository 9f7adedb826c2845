//! A whole agent: a program that a person started, confined for as long as it runs.
//!
//! A command of a run is judged, captured and bounded; an agent is talked to. So what goes in is the same kind of
//! plain value, and what comes back is a terminal and its end.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The path at which an agent sees its workspace.
pub use capsule_base::root_names::WORKSPACE_MOUNT;

/// An agent, and what it sees besides the programs and libraries of the system.
#[derive(Debug)]
pub struct AgentLaunch {
    /// The directory that it works in, opened (`O_PATH` will do). It appears at [`WORKSPACE_MOUNT`], can be written
    /// to, and is where the agent starts.
    pub workspace: OwnedFd,
    /// Paths in it, relative to it, that are read-only. Links on the way are not followed; what is not there is left out.
    pub read_only: Vec<OsString>,
    /// Directories and files of the host that it sees, unchanged by what it does.
    pub mounts: Vec<AgentMount>,
    /// Links that it finds, outside of its workspace: the path, and its target.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Files with a content that is made for it, read-only.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Its home directory, which is in memory and vanishes with it.
    pub home: PathBuf,
    /// Whether it has a `/tmp`, which is in memory and vanishes with it.
    pub has_tmp: bool,
    /// What it reaches.
    pub network: AgentNetwork,
    /// The program as seen inside: an absolute path.
    pub program: PathBuf,
    /// Its arguments; the first one is its name.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its standard input, output and error; none where that is the terminal. With any of these it gets a terminal
    /// of its own.
    pub streams: [Option<OwnedFd>; 3],
}

/// What an agent reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentNetwork {
    /// All that the host reaches, its own loopback included.
    Host,
    /// A loopback of its own, on which these ports are served from outside, the proxy's first; nothing where there
    /// are none.
    Private(Vec<u16>),
}

impl AgentNetwork {
    /// The ports of its own loopback that are served from outside, the proxy's first.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        match self {
            Self::Host => &[],
            Self::Private(ports) => ports,
        }
    }
}

/// A directory or file of the host that an agent sees.
#[derive(Debug)]
pub struct AgentMount {
    /// The absolute path at which it appears.
    pub path: PathBuf,
    /// The directory or file, opened (`O_PATH` will do).
    pub source: OwnedFd,
    /// Paths in it, relative to it, that are hidden.
    pub hidden: Vec<PathBuf>,
    /// Whether it may write there all the same, which vanishes with it; else, and where the kernel cannot do that,
    /// the directory is read-only.
    pub discards_writes: bool,
}

/// Something that happened to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// It was stopped, by this signal, as by Ctrl+Z. Its terminal is for its starter until it goes on.
    Stopped(i32),
    /// It ended with this status, and every process that it started with it.
    Exited(i32),
    /// It was ended by this signal, and every process that it started with it.
    Killed(i32),
}
