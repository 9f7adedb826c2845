//! What a command is confined to, and what was really held.
//!
//! `Confinement` is what is asked for; it has no value that means "nothing". `Enforcement` is what
//! came of it, as a value that is recorded and compared with the policy's floor, so that a missing
//! layer is never silent (house rule 9).

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use capsule_base::limits;
use capsule_base::units::millis;

/// How strong a sandbox is, weakest first; the default is the strongest, so that a floor that was
/// left out demands everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxTier {
    /// Access rules and a filter on system calls alone: the host is in sight.
    #[serde(rename = "landlock")]
    Basic,
    /// Those, and a view of files, processes and networks that is the command's alone.
    #[default]
    #[serde(rename = "namespaces")]
    Full,
}

capsule_base::words! {
    SandboxTier::name:
    Full = "namespaces", Basic = "landlock",
}

impl SandboxTier {
    /// The layers that it is made of.
    #[must_use]
    pub const fn layers(self) -> &'static [SandboxLayer] {
        match self {
            Self::Basic => &[
                SandboxLayer::AccessRules,
                SandboxLayer::CallFilter,
                SandboxLayer::NoNewPrivileges,
                SandboxLayer::NoCapabilities,
            ],
            Self::Full => &SandboxLayer::ALL,
        }
    }
}

/// What a command may reach over a network, strictest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Nothing: it has a network of its own, with nobody else in it.
    #[default]
    None,
    /// The hosts that the policy names, through a proxy that is all that its own network leads to.
    Proxy,
}

capsule_base::words! {
    NetworkAccess::keyword:
    None = "none", Proxy = "proxy",
}

impl NetworkAccess {
    /// Whether nothing is reached.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// What a command may do to the workspace, strictest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceAccess {
    /// Read what the policy lets it see, and change nothing.
    #[default]
    ReadOnly,
    /// Change what it sees; the changes are collected beside the workspace, and judged path by path
    /// when it ends.
    Staged,
    /// Change the workspace itself, in the places that its rule names; nothing is collected.
    Direct,
}

/// How much a run may change in its staged workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeLimits {
    /// The number of changed paths.
    pub paths: u64,
    /// The bytes of all changed files.
    pub bytes: u64,
}

impl Default for ChangeLimits {
    fn default() -> Self {
        Self { paths: limits::STAGED_PATHS, bytes: limits::STAGED_BYTES }
    }
}

impl ChangeLimits {
    /// The smaller of each limit.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self { paths: self.paths.min(other.paths), bytes: self.bytes.min(other.bytes) }
    }

    /// Whether no path more may be changed.
    #[must_use]
    pub fn is_full(self, paths: usize) -> bool {
        u64::try_from(paths).unwrap_or(u64::MAX) >= self.paths
    }

    /// The most space that may go where changes are staged while a command runs, whichever process takes
    /// it: what has no name any more, or is in a folder that the command closed, is bounded by nothing else.
    #[must_use]
    pub const fn disk_bytes(self) -> u64 {
        self.bytes.saturating_mul(2)
    }
}

/// Where commands see the workspace, most open first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountPoint {
    /// At its own path on the host, so that paths which build tools write are true on both sides.
    #[default]
    Same,
    /// At `/workspace`.
    Workspace,
}

capsule_base::words! {
    MountPoint::keyword:
    Same = "same", Workspace = "workspace",
}

/// The bounds of one command. All of them always hold; there is no way to leave one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Wall-clock time, in milliseconds.
    pub timeout_ms: u64,
    /// Processor time of the whole tree, in milliseconds; of each process alone in whole seconds, too.
    pub cpu_ms: u64,
    /// Memory of the whole tree, in bytes.
    pub memory_bytes: u64,
    /// Processes and threads of the whole tree.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// The largest file that a process may write, in bytes.
    pub file_bytes: u64,
    /// The size of the `/tmp` of a run and of the home directory of a call, each, in bytes.
    pub tmp_bytes: u64,
    /// How much standard output is kept, in bytes.
    pub stdout_bytes: u64,
    /// How much standard error is kept, in bytes.
    pub stderr_bytes: u64,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            timeout_ms: millis(limits::TIMEOUT),
            cpu_ms: millis(limits::CPU_TIME),
            memory_bytes: limits::MEMORY_BYTES,
            processes: limits::PROCESSES,
            open_files: limits::OPEN_FILES,
            file_bytes: limits::FILE_BYTES,
            tmp_bytes: limits::TMP_BYTES,
            stdout_bytes: limits::STDOUT_BYTES,
            stderr_bytes: limits::STDERR_BYTES,
        }
    }
}

impl ProcessLimits {
    /// Each limit made of the two that there are, in the order of the fields. Whatever is done with every limit
    /// is done by this, so that a new one cannot be forgotten.
    #[must_use]
    pub fn combine(self, other: Self, mut with: impl FnMut(u64, u64) -> u64) -> Self {
        Self {
            timeout_ms: with(self.timeout_ms, other.timeout_ms),
            cpu_ms: with(self.cpu_ms, other.cpu_ms),
            memory_bytes: with(self.memory_bytes, other.memory_bytes),
            processes: with(self.processes, other.processes),
            open_files: with(self.open_files, other.open_files),
            file_bytes: with(self.file_bytes, other.file_bytes),
            tmp_bytes: with(self.tmp_bytes, other.tmp_bytes),
            stdout_bytes: with(self.stdout_bytes, other.stdout_bytes),
            stderr_bytes: with(self.stderr_bytes, other.stderr_bytes),
        }
    }
}

/// What a command is confined to. The default is the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The weakest sandbox that will do.
    pub floor: SandboxTier,
    /// What it may reach.
    pub network: NetworkAccess,
    /// What it may do to the workspace.
    pub workspace: WorkspaceAccess,
    /// Its bounds.
    pub limits: ProcessLimits,
}

impl Confinement {
    /// The stricter of each.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self {
            floor: self.floor.max(other.floor),
            network: self.network.min(other.network),
            workspace: self.workspace.min(other.workspace),
            limits: self.limits.combine(other.limits, u64::min),
        }
    }
}

/// Why there is no sandbox, with the reason. The record has the reason alone, or an object for a system without
/// a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SandboxFailure {
    /// This program has no backend for the system.
    Unsupported {
        /// The reason.
        unsupported: String,
    },
    /// The backend could not be started, or did not answer.
    Failed(String),
}

impl SandboxFailure {
    /// The reason alone.
    #[must_use]
    pub const fn reason(&self) -> &String {
        let (Self::Unsupported { unsupported: reason } | Self::Failed(reason)) = self;
        reason
    }
}

/// One wall of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLayer {
    /// Users and capabilities of its own.
    #[serde(rename = "user-namespace")]
    SeparateUsers,
    /// A view of the file system of its own.
    #[serde(rename = "mount-namespace")]
    SeparateFiles,
    /// Processes of its own.
    #[serde(rename = "pid-namespace")]
    SeparateProcesses,
    /// Queues and shared memory of its own.
    #[serde(rename = "ipc-namespace")]
    SeparateIpc,
    /// A host name of its own.
    #[serde(rename = "uts-namespace")]
    SeparateHostName,
    /// A network of its own.
    #[serde(rename = "network-namespace")]
    SeparateNetwork,
    /// The kernel's access rules for unprivileged programs.
    #[serde(rename = "landlock")]
    AccessRules,
    /// The filter on system calls.
    #[serde(rename = "seccomp")]
    CallFilter,
    /// No program can gain privileges.
    NoNewPrivileges,
    /// No capability of root is left.
    NoCapabilities,
}

capsule_base::words! {
    SandboxLayer::name:
    SeparateUsers = "user namespace", SeparateFiles = "mount namespace",
    SeparateProcesses = "pid namespace", SeparateIpc = "ipc namespace",
    SeparateHostName = "uts namespace", SeparateNetwork = "network namespace",
    AccessRules = "landlock", CallFilter = "seccomp",
    NoNewPrivileges = "no new privileges", NoCapabilities = "no capabilities",
}

/// How far a layer or limit holds; the default is not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnforcementLevel {
    /// Not there.
    #[default]
    Missing,
    /// There, but by a weaker means than the best one known.
    Weaker,
    /// There.
    Held,
}

/// A bound that the sandbox keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceLimit {
    /// Wall-clock time.
    Time,
    /// Processor time.
    Cpu,
    /// Memory.
    Memory,
    /// Processes.
    Processes,
    /// The size of a file.
    FileSize,
    /// Open files.
    OpenFiles,
    /// Output that is kept.
    Output,
    /// The `/tmp` of the run, or the home directory of the call.
    Tmp,
}

capsule_base::words! {
    ResourceLimit::name:
    Time = "time", Cpu = "processor time", Memory = "memory", Processes = "processes",
    FileSize = "file size", OpenFiles = "open files", Output = "output", Tmp = "/tmp",
}

/// A layer, how far it holds, and by what means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerStatus {
    /// Which layer.
    pub layer: SandboxLayer,
    /// How far it holds.
    #[serde(rename = "hold")]
    pub level: EnforcementLevel,
    /// By what means or why not: `abi 7`, `EPERM`.
    pub detail: String,
}

/// How the detail of a layer begins that was never tried, since one that it needs is missing.
pub const NOT_TRIED: &str = "not tried";

impl LayerStatus {
    /// Whether it was tried at all. One that was not may well be there.
    #[must_use]
    pub fn was_tried(&self) -> bool {
        self.level != EnforcementLevel::Missing || !self.detail.starts_with(NOT_TRIED)
    }
}

/// A bound, how far it holds, and by what means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Which bound.
    #[serde(rename = "bound")]
    pub limit: ResourceLimit,
    /// How far it holds.
    #[serde(rename = "hold")]
    pub level: EnforcementLevel,
    /// By what means: `cgroup v1`, `rlimit`, `sampled`, `pid_max 301`.
    pub detail: String,
}

/// What was really held while something ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Enforcement {
    /// It ran in this process, held by the descriptors that it was given and nothing else.
    InProcess,
    /// It ran behind walls.
    #[serde(rename = "walls")]
    Sandboxed(SandboxStatus),
    /// It ran with nothing around it: it could do whatever the user can do.
    #[serde(rename = "nothing")]
    Unconfined {
        /// The limits that were kept nevertheless, each as far as it could be.
        #[serde(rename = "bounds")]
        limits: Vec<LimitStatus>,
    },
}

/// The walls of a sandbox, as found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStatus {
    /// The tier that they add up to.
    pub tier: SandboxTier,
    /// Each layer.
    pub layers: Vec<LayerStatus>,
    /// Each bound.
    #[serde(rename = "bounds")]
    pub limits: Vec<LimitStatus>,
}

impl SandboxStatus {
    /// Whether they add up to at least this tier, with no layer of theirs missing.
    #[must_use]
    pub fn meets(&self, floor: SandboxTier) -> bool {
        self.tier >= floor && self.missing_layer(self.tier).is_none()
    }

    /// The first layer of a tier that is missing.
    #[must_use]
    pub fn missing_layer(&self, tier: SandboxTier) -> Option<&LayerStatus> {
        let mut gaps = self.layers.iter().filter(|layer| layer.level == EnforcementLevel::Missing);
        gaps.find(|gap| tier.layers().contains(&gap.layer))
    }

    /// The layers that are not fully held.
    pub fn gaps(&self) -> impl Iterator<Item = &LayerStatus> {
        self.layers.iter().filter(|layer| layer.level != EnforcementLevel::Held)
    }
}
