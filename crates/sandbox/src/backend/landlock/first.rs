//! The first process of a call in the lower tier.
//!
//! It opens what the command may open, raises Landlock and the filter around itself, and starts the
//! programs, each of which binds itself once more: so no signal of the command reaches this process,
//! while its own signals reach every process of the call and nobody else. When all programs have ended,
//! or the executor hangs up or is gone, one signal ends all of them; none can be made meanwhile.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::Walls;
use super::reach::{self, Hidden};
use crate::backend::plain::{Bound, Ends, Seat, live as live_plainly};
use crate::backend::{mountinfo, place};
use crate::kernel::{self, Alone};
use crate::landlock::{Reach, Rules};
use crate::protocol::{At as _, Refusal, Step};

/// Lives the whole life of the first process.
pub(super) fn live(seat: &Seat, walls: &Walls, reach: (&[Vec<u8>], bool), ends: &Ends<'_>) {
    let raise = || {
        raise_landlock(seat, walls, reach)?;
        // Only from here on does a signal to everybody reach this call alone.
        let alone = Alone::prove().at(Step::Landlock)?;
        kernel::attach_filter(&walls.filter).at(Step::Filter)?;
        Ok(alone)
    };
    let end = |alone: Alone| kernel::end_all(|| alone.kill_everyone_else());
    live_plainly(seat, ends, Bound::Anew, raise, end);
}

/// Lets the command open what it may, and nothing else; whether it may change the workspace, which is
/// a copy then.
fn raise_landlock(
    seat: &Seat,
    walls: &Walls,
    (masks, writes): (&[Vec<u8>], bool),
) -> Result<(), Refusal> {
    let mut rules = Rules::begin(walls.abi).at(Step::Landlock)?;
    let mut allow = |file: &OwnedFd, reach: Reach| rules.allow(file, reach);
    reach::system(&mut allow, &walls.judged).at(Step::SystemFolder)?;
    let mut hidden = Hidden::default();
    for path in masks {
        hidden.add(place::path(path));
    }
    // The policy judged the workspace, not other disks that stand in it.
    for within in mountinfo::within(&walls.place).at(Step::Mask)? {
        hidden.add(&within);
    }
    if writes {
        // A rule for the whole copy lets everything in it be read. What is hidden was not copied.
        masks.iter().try_for_each(|path| is_shut(&seat.workspace, path)).at(Step::Shut)?;
        allow(&seat.workspace, Reach::ChangeStaged).at(Step::Workspace)?;
    } else {
        let workspace = rustix::io::dup(&seat.workspace).at(Step::Workspace)?;
        reach::grant_open(&mut allow, workspace, &hidden).at(Step::Workspace)?;
    }
    for own in &walls.programs {
        let own = rustix::io::dup(own).at(Step::Program)?;
        reach::grant_open(&mut allow, own, &Hidden::default()).at(Step::Program)?;
    }
    reach::change(&mut allow, seat.tmp.path()).at(Step::Tmp)?;
    rules.enforce().at(Step::Landlock)?;
    Ok(())
}

/// Makes sure that there is nothing to be read at a path, by any program: a file without permissions, or
/// a folder in which no name can be looked up.
fn is_shut(workspace: &OwnedFd, path: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(workspace, place::path(path), flags, Mode::empty(), resolve) {
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
