//! The first process of a call in the lower tier.
//!
//! It opens what the command may open, raises Landlock and the filter around itself, and starts the
//! programs, each of which binds itself once more: so no signal of the command reaches this process,
//! while its own signals reach every process of the call and nobody else. When all programs have ended,
//! or the executor hangs up or is gone, one signal ends all of them; none can be made meanwhile.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::{fs, io};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::access_rules::{self, HiddenTree};
use super::call_confinement::CallConfinement;
use crate::linux::backend::no_namespaces::{
    CallResources, InitSockets, ProgramConfinement, run_init as live_plainly,
};
use crate::linux::backend::{host_path, mountinfo};
use crate::linux::kernel::{self, SignalIsolation};
use crate::linux::landlock::{LandlockAccess, NetworkRules, RulesetBuilder};
use crate::linux::protocol::{AtStep as _, ExecutorError, Step};

/// Lives the whole life of the first process.
pub(super) fn run_init(
    resources: &CallResources,
    confinement: &CallConfinement,
    reach: (&[Vec<u8>], bool),
    ends: &InitSockets<'_>,
) {
    let raise = || {
        write_git_files(resources.tmp.path(), &confinement.git_files).at(Step::Tmp)?;
        raise_landlock(resources, confinement, reach)?;
        // Only from here on does a signal to everybody reach this call alone.
        let alone = SignalIsolation::prove().at(Step::Landlock)?;
        kernel::attach_filter(&confinement.filter).at(Step::Filter)?;
        Ok(alone)
    };
    let end = |alone: SignalIsolation| kernel::kill_and_reap_all(|| alone.kill_descendants());
    live_plainly(resources, ends, ProgramConfinement::Again, raise, end);
}

/// Lets the command open what it may, and nothing else; whether it may change the workspace, which is
/// a copy then.
fn raise_landlock(
    resources: &CallResources,
    walls: &CallConfinement,
    (masks, writes): (&[Vec<u8>], bool),
) -> Result<(), ExecutorError> {
    let mut rules = RulesetBuilder::new(walls.abi, NetworkRules::Closed).at(Step::Landlock)?;
    let mut allow = |file: &OwnedFd, reach: LandlockAccess| rules.allow(file, reach);
    access_rules::allow_system(&mut allow, &walls.workspace_paths).at(Step::SystemFolder)?;
    let mut hidden = HiddenTree::default();
    for path in masks {
        hidden.add(host_path::bytes_to_path(path));
    }
    // The policy judged the workspace, not other disks that stand in it.
    for within in mountinfo::mounts_within(&walls.workspace_path).at(Step::Mask)? {
        hidden.add(&within);
    }
    if writes {
        // A rule for the whole copy lets everything in it be read. What is hidden was not copied.
        masks
            .iter()
            .try_for_each(|path| require_hidden(&resources.workspace, path))
            .at(Step::Shut)?;
        allow(&resources.workspace, LandlockAccess::ChangeStaged).at(Step::Workspace)?;
    } else {
        let workspace = rustix::io::dup(&resources.workspace).at(Step::Workspace)?;
        access_rules::allow_read_open(&mut allow, workspace, &hidden).at(Step::Workspace)?;
    }
    for (program, hidden) in &walls.programs {
        let fd = rustix::io::dup(program).at(Step::Program)?;
        access_rules::allow_read_open(&mut allow, fd, hidden).at(Step::Program)?;
    }
    access_rules::allow_change(&mut allow, resources.tmp.path()).at(Step::Tmp)?;
    rules.enforce().at(Step::Landlock)?;
    Ok(())
}

/// Makes sure that there is nothing to be read at a path, by any program: a file without permissions, or
/// a folder in which no name can be looked up.
fn require_hidden(workspace: &OwnedFd, path: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(workspace, host_path::bytes_to_path(path), flags, Mode::empty(), resolve) {
        // What a link leads to is hidden by its own path, if it is to be.
        Ok(found) => {
            let mode = fstat(&found)?.st_mode;
            let open = match FileType::from_raw_mode(mode) {
                FileType::Symlink => 0,
                FileType::Directory => mode & 0o333,
                _ => mode & 0o777,
            };
            if open == 0 { Ok(()) } else { Err(Errno::OPNOTSUPP) }
        }
        // Nothing is there, or something above it is closed to everybody.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Puts git's files where it looks for them in a home directory; one that is empty is not needed.
fn write_git_files(home: &Path, [config, ignored]: &[Vec<u8>; 2]) -> io::Result<()> {
    if !config.is_empty() {
        fs::write(home.join(".gitconfig"), config)?;
    }
    if ignored.is_empty() {
        return Ok(());
    }
    let directory = home.join(".config/git");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("ignore"), ignored)
}
