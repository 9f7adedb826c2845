//! Landlock: the kernel's own access rules, as a second wall behind the view.
//!
//! The rules are opened inside, after everything is mounted, because they are bound to files and
//! not to names. What no rule names cannot be read, written, made or executed; no TCP port can be
//! used, and no signal or abstract socket reaches a process outside the call.

use std::error::Error;
use std::os::fd::BorrowedFd;

use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::io::Errno;

/// From here on local sockets are judged by the path that they connect to.
const JUDGES_SOCKETS: i32 = 9;
/// From here on signals and abstract sockets are kept inside.
pub(crate) const SCOPES: i32 = 6;

/// What may be done beneath a folder, or with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// List folders.
    List,
    /// Read and execute.
    Read,
    /// Read and execute a single file.
    ReadFile,
    /// Use devices.
    Devices,
    /// Everything but making devices.
    Change,
}

impl Reach {
    fn access(self, abi: ABI) -> BitFlags<AccessFs> {
        let devices = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile;
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => AccessFs::from_read(abi),
            Self::ReadFile => AccessFs::ReadFile | AccessFs::Execute,
            Self::Devices if abi >= ABI::V5 => devices | AccessFs::IoctlDev,
            Self::Devices => devices,
            Self::Change => AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        }
    }
}

/// Whether the kernel judges whom a local socket connects to, so that they may be made at all.
pub(crate) const fn judges_sockets(abi: i32) -> bool {
    abi >= JUDGES_SOCKETS
}

/// Binds this process, and all that it starts, to the rules. All that this kernel's interface can
/// hold is demanded; what cannot be had is an error, never less.
///
/// # Errors
/// A rule could not be made or the rules not be put in force.
pub(crate) fn restrict(abi: i32, rules: &[(BorrowedFd<'_>, Reach)]) -> Result<(), Errno> {
    match enforce(ABI::from(abi), rules) {
        Ok(RulesetStatus::FullyEnforced) => Ok(()),
        Ok(_) => Err(Errno::NOTSUP),
        Err(error) => Err(cause(&error)),
    }
}

fn enforce(abi: ABI, rules: &[(BorrowedFd<'_>, Reach)]) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut created = ruleset.create()?;
    for (file, reach) in rules {
        created = created.add_rule(PathBeneath::new(file, reach.access(abi)))?;
    }
    Ok(created.restrict_self()?.ruleset)
}

/// The kernel's error at the root of one of the library's, which is all that crosses to the parent.
fn cause(error: &RulesetError) -> Errno {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(errno) = error.downcast_ref().and_then(Errno::from_io_error) {
            return errno;
        }
        next = error.source();
    }
    Errno::NOTSUP
}
