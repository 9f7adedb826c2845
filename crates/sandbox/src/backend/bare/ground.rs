//! What can be kept of a command where nothing holds it.

use std::os::fd::OwnedFd;

use capsule_core::confinement::{Bound, Hold, Layer, LayerHeld, Tier, Walls};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{geteuid, getpid, set_child_subreaper};
use rustix::thread::{set_no_new_privs, set_thread_groups};

use super::first;
use crate::backend::first::{Built, Ending, First, Paths, Streams, line};
use crate::backend::landlock::Tmp;
use crate::backend::landlock::processes;
use crate::backend::place::open_again;
use crate::backend::{Probe, bounds, capabilities, mountinfo, rlimits};
use crate::executor::cgroup::Cgroups;
use crate::executor::sample;
use crate::kernel::{self, Birth};
use crate::protocol::{At as _, Enter, Failed, Refusal, Run, Step};

/// The first process of a call counts, too.
const OWN_PROCESSES: u64 = 1;

/// What belongs to the run of one program, before the workspace is known.
pub(crate) struct Ground {
    cgroups: Cgroups,
}

/// What the program is given.
pub(crate) struct View {
    pub(crate) cgroups: Cgroups,
    pub(super) workspace: OwnedFd,
    tmp: Tmp,
    /// The standard input of a program that is given none.
    pub(super) nothing: OwnedFd,
}

/// Prepares what can be kept, and says by what means. No layer is held.
pub(crate) fn prepare() -> Probe {
    let cgroups = Cgroups::create(&mountinfo::own());
    let prepared = shed();
    let detail = match &prepared {
        Ok(()) => String::new(),
        Err(errno) => std::io::Error::from(*errno).to_string(),
    };
    let layer =
        |layer: &Layer| LayerHeld { layer: *layer, hold: Hold::Missing, detail: detail.clone() };
    let mut bounds = bounds::all(&cgroups, processes(), (Hold::Weaker, "added up every 50 ms"));
    for own in &mut bounds {
        // It may end whoever watches it, and leave a group that it was put into.
        let watched = [Bound::Time, Bound::Memory, Bound::Processes].contains(&own.bound);
        if watched && own.hold == Hold::Held {
            own.hold = Hold::Weaker;
        }
    }
    let layers = Layer::ALL.iter().map(layer).collect();
    let ground = prepared.ok().map(|()| super::super::Ground::Bare(Ground { cgroups }));
    Probe { walls: Walls { tier: Tier::Landlock, layers, bounds }, ground }
}

/// Gives up what this process has and no command needs.
fn shed() -> Result<(), Errno> {
    if !sample::can() {
        // Nor could what is left of a call be found and ended.
        return Err(Errno::OPNOTSUPP);
    }
    set_no_new_privs(true)?;
    // Whoever of a call is left without a parent comes to this process.
    set_child_subreaper(Some(getpid()))?;
    rlimits::set_fixed()?;
    match set_thread_groups(&[]) {
        // An ordinary user keeps its groups.
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    match capabilities::drop_all_but(&[]) {
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Ground {
    /// Remembers the workspace. Nothing in it can be hidden, and nothing laid over it.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn enter(self, enter: &Enter) -> Result<View, Refusal> {
        if enter.staging.is_some() || !enter.masks.is_empty() {
            return Err(Failed { step: Step::Staging, errno: Errno::OPNOTSUPP }.into());
        }
        let workspace = open_again(&enter.workspace, Step::WorkspaceMoved)?;
        let tmp = Tmp::make().at(Step::Tmp)?;
        let nothing =
            open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).at(Step::Device)?;
        Ok(View { cgroups: self.cgroups, workspace, tmp, nothing })
    }
}

impl View {
    /// The folder that `TMPDIR` and `HOME` name.
    pub(crate) fn tmp(&self) -> &Tmp {
        &self.tmp
    }

    /// Starts a program.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        Paths { masks, direct }: Paths<'_>,
        run: &Run,
        built: Built,
        streams: &Streams,
    ) -> Result<First, Refusal> {
        if direct.is_some() || built.writes || !masks.is_empty() {
            // What is asked for could not be held.
            return Err(Failed { step: Step::Direct, errno: Errno::OPNOTSUPP }.into());
        }
        self.clear()?;
        self.cgroups.bound(&run.limits, OWN_PROCESSES).at(Step::Cgroup)?;
        let (line, other_end) = line()?;
        // The kernel counts all processes of a user together, and none of root's.
        let counted = !geteuid().is_root() && !self.cgroups.bounds_processes();
        let others = counted.then(sample::tasks_of_user);
        let born = kernel::give_plain_birth(self.cgroups.born_into());
        let first = match born.at(Step::Birth)? {
            Birth::Child => first::live(self, (&line, &other_end), others),
            Birth::Parent(pid, handle) => First::new(pid, handle, line, Ending::HungUp),
        };
        drop(other_end);
        first.order(run, streams, &self.nothing)?;
        Ok(first)
    }

    /// Ends what a call may have left behind, and empties its folder.
    ///
    /// # Errors
    /// The folder cannot be emptied.
    pub(crate) fn clear(&mut self) -> Result<(), Failed> {
        kernel::end_children();
        self.tmp.empty().at(Step::Tmp)
    }
}
