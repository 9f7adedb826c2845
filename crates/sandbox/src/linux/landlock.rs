//! Landlock: the kernel's own access rules, as a second wall behind the view.
//!
//! The rules are opened inside, after everything is mounted, because they are bound to files and
//! not to names. What no rule names cannot be read, written, made or executed; where the network is
//! the host's, no TCP port can be used; and no signal or abstract socket reaches a process outside the
//! call.

use std::error::Error;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::io::Errno;

/// From here on local sockets are judged by the path that they connect to.
const SOCKET_ABI: i32 = 9;
/// From here on signals and abstract sockets are kept inside.
pub(crate) const SCOPE_ABI: i32 = 6;

/// What may be done beneath a folder, or with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LandlockAccess {
    /// List folders.
    List,
    /// Read and execute.
    Read,
    /// Read and execute a single file.
    ReadFile,
    /// Use devices.
    Devices,
    /// Use a single device.
    Device,
    /// Everything but making devices.
    Change,
    /// The same without making sockets: what is made here is looked at when the call is over.
    ChangeStaged,
    /// The same without making pipes either: what is made here stays when the call is over.
    ChangeLasting,
    /// Read, write and execute a single file.
    ChangeFile,
}

impl LandlockAccess {
    fn access_flags(self, abi: ABI) -> BitFlags<AccessFs> {
        let devices = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile;
        let device = AccessFs::ReadFile | AccessFs::WriteFile;
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => AccessFs::from_read(abi),
            Self::ReadFile => AccessFs::ReadFile | AccessFs::Execute,
            Self::Devices if abi >= ABI::V5 => devices | AccessFs::IoctlDev,
            Self::Devices => devices,
            Self::Device if abi >= ABI::V5 => device | AccessFs::IoctlDev,
            Self::Device => device,
            Self::Change => AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
            Self::ChangeStaged => Self::Change.access_flags(abi) & !AccessFs::MakeSock,
            Self::ChangeLasting => Self::ChangeStaged.access_flags(abi) & !AccessFs::MakeFifo,
            Self::ChangeFile => AccessFs::from_file(abi),
        }
    }
}

/// Whether the kernel judges whom a local socket connects to, so that they may be made at all.
pub(crate) const fn controls_local_sockets(abi: i32) -> bool {
    abi >= SOCKET_ABI
}

/// Binds this process, and all that it starts, to the rules.
///
/// # Errors
/// A rule could not be made or the rules not be put in force.
pub(crate) fn restrict(
    abi: i32,
    allowed: &[(BorrowedFd<'_>, LandlockAccess)],
) -> Result<(), Errno> {
    // The call has a network namespace.
    let mut rules = RulesetBuilder::new(abi, NetworkRules::None)?;
    allowed.iter().try_for_each(|(file, reach)| rules.allow(*file, *reach))?;
    rules.enforce()
}

/// What the rules say of TCP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkRules {
    /// No port can be used.
    Closed,
    /// Nothing: a network namespace keeps every other process away.
    None,
}

/// Rules while they are collected. All that this kernel's interface can hold is demanded; what
/// cannot be had is an error, never less.
pub(crate) struct RulesetBuilder {
    abi: ABI,
    created: RulesetCreated,
}

impl RulesetBuilder {
    /// Nothing is allowed so far.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn new(abi: i32, network: NetworkRules) -> Result<Self, Errno> {
        let abi = ABI::from(abi);
        let created = handle_everything(abi, network).map_err(|error| root_errno(&error))?;
        Ok(Self { abi, created })
    }

    /// Allows something beneath a folder, or with a file.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn allow(&mut self, file: impl AsFd, reach: LandlockAccess) -> Result<(), Errno> {
        let rule = PathBeneath::new(file, reach.access_flags(self.abi));
        (&mut self.created).add_rule(rule).map(|_| ()).map_err(|error| root_errno(&error))
    }

    /// Binds this process, and all that it starts.
    ///
    /// # Errors
    /// The kernel refused, or holds less than what was asked for.
    pub(crate) fn enforce(self) -> Result<(), Errno> {
        match self.created.restrict_self() {
            Ok(status) if status.ruleset == RulesetStatus::FullyEnforced => Ok(()),
            Ok(_) => Err(Errno::NOTSUP),
            Err(error) => Err(root_errno(&error)),
        }
    }
}

/// A set of rules that only keeps signals and abstract sockets inside, for a process to bind itself
/// to. Whoever is bound to it cannot reach the process that made it.
///
/// Moving files between folders is the one thing that every set of rules refuses unless it allows it, so this
/// one does, everywhere: where it may be done, other rules say. `root` is the root.
///
/// # Errors
/// The kernel refused; it knows this since interface 6.
pub(crate) fn scope_ruleset(root: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(ABI::V6))
        .and_then(|rules| rules.handle_access(AccessFs::Refer))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rule(PathBeneath::new(root, AccessFs::Refer)));
    let made = made.map_err(|error| root_errno(&error))?;
    Option::<OwnedFd>::from(made).ok_or(Errno::NOTSUP)
}

/// Binds this process, and all that it starts, to rules that keep signals and abstract sockets inside and say
/// nothing of files: mounts can be made in namespaces of its own.
///
/// # Errors
/// The kernel refused; it knows this since interface 6.
pub(crate) fn restrict_scope() -> Result<(), Errno> {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(ABI::V6))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    made.map(drop).map_err(|error| root_errno(&error))
}

fn handle_everything(abi: ABI, network: NetworkRules) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 && network == NetworkRules::Closed {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()
}

/// The kernel's error at the root of one of the library's, which is all that crosses to the parent.
fn root_errno(error: &RulesetError) -> Errno {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(errno) = error.downcast_ref().and_then(Errno::from_io_error) {
            return errno;
        }
        next = error.source();
    }
    Errno::NOTSUP
}
