//! What goes in and what comes out: plain values and descriptors, no decisions.

use std::ffi::OsString;
use std::fmt;
use std::fs::Metadata;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use capsule_base::root_names::RootNames;
use capsule_core::confinement::{ProcessLimits, ResourceLimit, SandboxStatus, SandboxTier};

/// What the commands of a run see besides the system.
#[derive(Debug)]
pub struct SandboxView {
    /// The weakest walls that will do.
    pub floor: SandboxTier,
    /// The root of the workspace, opened (`O_PATH` will do). It appears at the first of its names,
    /// read-only; without namespaces, where it is. Other mounts in it are hidden.
    pub workspace: OwnedFd,
    /// The absolute names of the root: its mount, which [`mount_conflict`](crate::SandboxBackend::mount_conflict) must
    /// not refuse, and names that become links to it.
    pub root_names: RootNames,
    /// Where its changes are collected, if commands may make any.
    pub staging: Option<StagingMount>,
    /// Paths in the workspace that are hidden.
    pub hidden: Vec<HiddenPath>,
    /// Programs, or whole folders of them, that lie outside the system folders: the absolute path
    /// at which each appears, and the file or folder, opened. They cannot appear in `/proc`, `/tmp`,
    /// `/dev` or the workspace; without namespaces, only where they are.
    pub programs: Vec<(PathBuf, OwnedFd)>,
    /// The files that git finds in place of the configuration of the machine and of the user.
    pub git: GitFiles,
    /// Directories and files of toolchains and package caches. They may lie in `/tmp`; without
    /// namespaces they are shown only where they are.
    pub toolchains: Vec<ToolchainMount>,
    /// The repository of the workspace, where that lies elsewhere. Without namespaces it is not shown.
    pub repository: Option<RepositoryMount>,
}

/// The directory of a repository outside of the workspace, which commands see read-only.
#[derive(Debug)]
pub struct RepositoryMount {
    /// The absolute path at which it appears.
    pub path: PathBuf,
    /// The directory, opened (`O_PATH` will do).
    pub source: OwnedFd,
    /// Paths in it, relative to it, that are hidden.
    pub hidden: Vec<PathBuf>,
    /// A file in it, and what commands read there.
    pub config: (PathBuf, Vec<u8>),
}

/// A directory or file of a toolchain, which commands see read-only and may execute.
#[derive(Debug)]
pub struct ToolchainMount {
    /// The absolute path at which it appears; not in the workspace, and not above it.
    pub path: PathBuf,
    /// The directory or file, opened (`O_PATH` will do). Without one it is an empty directory: the home
    /// directory of a toolchain of which only parts are shown.
    pub source: Option<OwnedFd>,
    /// Whether a command may write there all the same. What it writes vanishes with the call; where the
    /// kernel cannot do that, the directory stays read-only.
    pub discards_writes: bool,
    /// Paths in it, relative to it, that are hidden. With any, nothing is written there.
    pub hidden: Vec<PathBuf>,
}

/// The files that git finds in place of the configuration of the machine and of the user: with namespaces in `/etc`, without
/// them in the home directory of each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitFiles {
    /// A configuration.
    pub config: Vec<u8>,
    /// Patterns of files that are not added to a repository.
    pub ignored: Vec<u8>,
}

/// Where commands find git's configuration, with namespaces.
pub const GIT_CONFIG_PATH: &str = "/etc/gitconfig";

/// Where changes of the workspace are collected: in folders that nobody else uses, opened (`O_PATH`
/// will do).
#[derive(Debug)]
pub enum StagingMount {
    /// In a folder that is laid over the workspace. What commands change lies there as the kernel's
    /// overlay describes it.
    Overlay {
        /// The changes. May hold some already.
        changes: OwnedFd,
        /// The kernel's own, on the same file system.
        work: OwnedFd,
    },
    /// In a copy of the workspace, which is shown in its place.
    Copied(OwnedFd),
}

/// A path in the workspace whose content, size, dates and entries are hidden. Its name and whether
/// it is a folder can still be seen. Links on the way are not followed. One that is itself a link is
/// left alone: what it leads to is hidden by its own path, if it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenPath {
    /// Relative to the workspace; any bytes that a file name can have.
    pub path: OsString,
}

/// A program, and the file that it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Its absolute path as seen inside; a relative one is below the directory that the command starts in.
    pub path: PathBuf,
    /// What the file was when it was decided on.
    pub identity: FileIdentity,
}

/// By what a file is known to be the same, with the same content: any write changes one of these.
/// Between the comparison and the kernel's reading of the program lie a few microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its device.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content last changed, in seconds since 1970 and nanoseconds.
    pub modified: (i64, i64),
    /// When anything about it last changed, in seconds since 1970 and nanoseconds.
    pub changed: (i64, i64),
}

impl FileIdentity {
    /// That of a file with this metadata.
    #[must_use]
    pub fn from_metadata(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, inode, size, modified, changed } = self;
        write!(
            f,
            "{device}:{inode}:{size}:{}.{}:{}.{}",
            modified.0, modified.1, changed.0, changed.1
        )
    }
}

/// What a command may change in the workspace itself, as mounts can bound it. Paths are relative to
/// the workspace; links on the way are not followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectWrites {
    /// The files and folders that it may change, with all that is in them; empty for the workspace
    /// itself. Each must be there, and none lie within another.
    pub writable: Vec<OsString>,
    /// What is read-only nevertheless, with all that is in it. Neither it nor a folder above it can
    /// be renamed or removed.
    pub read_only: Vec<OsString>,
    /// Folders that can be written to, and neither be renamed nor removed.
    pub pinned: Vec<OsString>,
}

/// One program of a command.
#[derive(Clone, Debug)]
pub struct LaunchStage {
    /// What is executed.
    pub program: Executable,
    /// Its words; the first one is its name.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where its streams lead instead, one after the other, as in a shell.
    pub redirects: Vec<StreamRedirect>,
}

/// A stream of a program that leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRedirect {
    /// Which stream.
    pub descriptor: StandardStream,
    /// Where it leads.
    pub target: RedirectTarget,
}

/// One of the three streams of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardStream {
    /// Standard input, 0.
    Input,
    /// Standard output, 1.
    Output,
    /// Standard error, 2.
    Error,
}

impl StandardStream {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Input => 0,
            Self::Output => 1,
            Self::Error => 2,
        }
    }
}

/// A device that holds nothing of anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardDevice {
    /// Takes everything and gives nothing.
    Null,
    /// Gives zeros without end.
    Zero,
    /// Gives random bytes without end.
    Random,
}

impl StandardDevice {
    /// The device of this path.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/dev/null" => Self::Null,
            "/dev/zero" => Self::Zero,
            "/dev/urandom" | "/dev/random" => Self::Random,
            _ => return None,
        })
    }

    /// Where it is.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Null => "/dev/null",
            Self::Zero => "/dev/zero",
            Self::Random => "/dev/urandom",
        }
    }
}

/// Where a stream leads. Paths are relative to the folder in which the command starts and must not
/// lead out of the workspace, not through links either. Only plain files are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectTarget {
    /// It is read from a file.
    Read(OsString),
    /// It goes to a file, which is made or emptied first.
    Create(OsString),
    /// It goes to the end of a file, which is made if there is none.
    Append(OsString),
    /// It goes to a device, or comes from one.
    Device(StandardDevice),
    /// Where another stream leads by then.
    Same(StandardStream),
}

/// A command: a pipeline of one or more programs. What one of them writes to its standard output is
/// the standard input of the next; all of them share one view and one set of walls.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The programs, from the first to the last; at most
    /// [`PIPELINE_STAGES`](capsule_base::limits::PIPELINE_STAGES).
    pub stages: Vec<LaunchStage>,
    /// Variables that are added to each environment, and name the folder in which it may write and
    /// that is emptied when it ends.
    pub private_directory_variables: Vec<OsString>,
    /// Where it starts, relative to the workspace; empty for the workspace itself.
    pub cwd: OsString,
    /// What the first program reads from its standard input.
    pub stdin: Vec<u8>,
    /// Its bounds. They are those of all programs together, but for what the kernel keeps for each
    /// process: open files and the size of a file.
    pub limits: ProcessLimits,
    /// Whether it may change the staged workspace. Without a staged one, nothing may.
    pub writes: bool,
    /// Whether links in `/tmp` lead it nowhere: for what does no more than its words say, which were judged by the names in
    /// them. Only in the upper tier, where the calls of a run share that directory.
    pub ignores_tmp_links: bool,
    /// What it may change in a workspace that is not staged.
    pub direct: Option<DirectWrites>,
    /// Every path that is to be hidden now. What was hidden stays hidden, unless another file was
    /// put in its place: so those of the view are listed again.
    pub hidden: Vec<HiddenPath>,
    /// Whether no other command is expected after it, so that nothing is made ready for one. Should
    /// one come after all, it takes a little longer.
    pub is_last: bool,
}

/// Sockets that listen in the network that the commands of a run have to themselves.
#[derive(Debug)]
pub struct CommandListeners {
    /// The proxy's.
    pub proxy: TcpListener,
    /// Its port on the loopback of the commands.
    pub proxy_port: u16,
    /// The ports that lead to the same ports of the host's loopback.
    pub loopback: Vec<(u16, TcpListener)>,
}

impl CommandListeners {
    /// Every socket, the proxy's first. None of them waits where no connection is there.
    pub fn all(&self) -> impl Iterator<Item = &TcpListener> {
        core::iter::once(&self.proxy).chain(self.loopback.iter().map(|(_, listener)| listener))
    }
}

/// One of the two streams that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Somebody who watches a command.
pub trait CommandWatcher {
    /// Bytes came that are kept; what comes beyond a stream's limit is only counted.
    fn output(&mut self, stream: OutputKind, bytes: &[u8]);

    /// Something to wait for besides: [`CommandWatcher::attend`] is called when it can be read.
    fn attention(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The descriptor of [`CommandWatcher::attention`] can be read. Where a person is asked, `pause` is called
    /// before: the time of the command stops until this returns.
    fn attend(&mut self, _pause: &mut dyn FnMut()) {}

    /// Whether the command is no longer wanted. Asked at least every 100 ms, and at once when a
    /// signal interrupts the waiting. Once it was true, the command is ended.
    fn is_cancelled(&self) -> bool;
}

/// How a command ended, or one of its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// The program ended with this status.
    Exited(i32),
    /// The program was ended by this signal.
    Signalled(i32),
    /// It took too long and was ended.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It took more memory than it may, with all that it started, and was ended.
    MemoryExceeded,
    /// It wrote more than anybody will read and was ended.
    OutputFlood,
}

/// What was kept of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// All bytes, or the first ones of a stream that is longer than the limit.
    pub bytes: Vec<u8>,
    /// The last bytes of such a stream, behind some that only help to recognise what is masked.
    pub tail: Vec<u8>,
    /// Where the last bytes begin in `tail`.
    pub tail_start: usize,
    /// How many bytes came in all.
    pub total: u64,
    /// Whether some were left out.
    pub truncated: bool,
}

/// What came of a command.
#[derive(Clone, Debug)]
pub struct CommandResult {
    /// How it ended: as its last program did, unless it was ended as a whole.
    pub termination: Termination,
    /// How each of its programs ended; empty where it was ended as a whole before they had.
    pub stages: Vec<Termination>,
    /// Its standard output.
    pub stdout: CapturedOutput,
    /// Its standard error.
    pub stderr: CapturedOutput,
    /// The walls that it ran behind.
    pub sandbox_status: SandboxStatus,
    /// How long it took, in microseconds, set-up included.
    pub micros: u64,
    /// The bounds that it ran into, as far as the kernel tells.
    pub reached_limits: Vec<ResourceLimit>,
    /// The most memory that was seen in use at once, in bytes.
    pub peak_memory: Option<u64>,
    /// How many of its processes ran on when its last program had ended, and were ended.
    pub left_running: u64,
}
