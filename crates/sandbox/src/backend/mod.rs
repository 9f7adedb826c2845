//! The ways to confine a command.
//!
//! A backend prepares what can be prepared before anything is known and says what it can hold
//! ([`probe()`]), is then shown the workspace ([`Ground::enter`]), and starts commands behind its walls
//! ([`View::spawn`]). There are two, the stronger one first: [`namespaces`], and [`landlock`] where
//! the machine allows no namespaces. Beside them stands [`bare`], which holds nothing and is reached by
//! neither. The last two share [`plain`]. What all share lies beside them: [`first`], the process that
//! stands at the head of each call; [`program`], from an order to a running program, [`pipeline`], from
//! one program to several, and [`redirect`], where their streams lead instead; and what every command
//! finds of the host ([`system`]).

pub(crate) mod bare;
mod bounds;
mod capabilities;
mod first;
pub(crate) mod landlock;
pub(crate) mod mountinfo;
pub(crate) mod namespaces;
mod pipeline;
mod place;
mod plain;
mod program;
mod redirect;
mod rlimits;
pub(crate) mod system;

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use capsule_core::confinement::{EnforcementLevel, SandboxStatus};
use rustix::io::Errno;

use crate::executor::cgroup::Cgroups;
use crate::protocol::{Enter, Failed, Refusal, Run};
pub(crate) use first::{Built, First, Paths, Streams};
pub(crate) use plain::Tmp;

/// What was found.
pub(crate) struct Probe {
    /// What can be held.
    pub(crate) walls: SandboxStatus,
    /// What was prepared; none if a wall is missing, and then nothing can be run.
    pub(crate) ground: Option<Ground>,
}

/// Prepares the strongest walls that this machine can hold.
pub(crate) fn probe() -> Probe {
    let (walls, ground) = match namespaces::prepare() {
        Ok((walls, ground)) => (walls, Some(Ground::Namespaces(ground))),
        Err(unable) => {
            let (walls, ground) = landlock::prepare(unable);
            (walls, ground.map(Ground::Landlock))
        }
    };
    let bounded = walls.limits.iter().all(|bound| bound.level != EnforcementLevel::Missing);
    Probe { ground: ground.filter(|_| bounded && walls.missing_layer(walls.tier).is_none()), walls }
}

/// What belongs to a run and not to a call, before the workspace is known.
pub(crate) enum Ground {
    /// For the upper tier.
    Namespaces(namespaces::Ground),
    /// For the lower tier.
    Landlock(landlock::Ground),
    /// For a program that nothing holds; no probe gives it.
    Bare(bare::Ground),
}

/// What a run sees, and what each call of it needs.
pub(crate) enum View {
    /// In the upper tier.
    Namespaces(namespaces::View),
    /// In the lower tier.
    Landlock(landlock::View),
    /// Nowhere.
    Bare(bare::View),
}

/// A view that was built.
pub(crate) struct Entered {
    pub(crate) view: View,
    /// The staged workspace, for the deciding process, if there is one.
    pub(crate) shared: Option<OwnedFd>,
    /// Where commands see the folder in which they may write.
    pub(crate) tmp: Vec<u8>,
}

impl Ground {
    /// Shows the workspace.
    ///
    /// # Errors
    /// The step that failed. The ground is lost with it, so that no half-built view is ever used.
    pub(crate) fn enter(self, enter: &Enter) -> Result<Entered, Refusal> {
        match self {
            Self::Namespaces(ground) => {
                let (view, shared) = ground.enter(enter)?;
                Ok(Entered { view: View::Namespaces(view), shared, tmp: b"/tmp".to_vec() })
            }
            Self::Landlock(ground) => {
                let view = ground.enter(enter)?;
                let tmp = view.seat.tmp.path().as_os_str().as_bytes().to_vec();
                Ok(Entered { view: View::Landlock(view), shared: None, tmp })
            }
            Self::Bare(ground) => {
                let view = ground.enter(enter)?;
                let tmp = view.seat.tmp.path().as_os_str().as_bytes().to_vec();
                Ok(Entered { view: View::Bare(view), shared: None, tmp })
            }
        }
    }
}

impl View {
    /// Starts a command.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        paths: Paths<'_>,
        run: &Run,
        built: Built,
        streams: &Streams,
    ) -> Result<First, Refusal> {
        match self {
            Self::Namespaces(view) => view.spawn(paths, run, built, streams),
            Self::Landlock(view) => view.spawn(paths, run, built, streams),
            Self::Bare(view) => view.spawn(paths, run, built, streams),
        }
    }

    /// Uses the time until the next call, if anything can be made ready for it.
    pub(crate) fn stand_by(&mut self, built: Built) {
        match self {
            Self::Namespaces(view) => view.stand_by(built),
            Self::Landlock(_) | Self::Bare(_) => {}
        }
    }

    /// Lets the first process of a call that is over end by itself; the next command does not wait for
    /// it to be gone.
    pub(crate) fn let_end(&mut self, first: First) {
        match self {
            Self::Namespaces(view) => view.ending = Some(first),
            Self::Landlock(_) | Self::Bare(_) => drop(first),
        }
    }

    /// Takes that process in when it is gone, unless something comes over the socket before.
    pub(crate) fn take_in(&mut self, socket: &OwnedFd) {
        if let Self::Namespaces(view) = self {
            view.ending = view.ending.take().filter(|first| !first.ends_before(socket));
        }
    }

    /// Whether a call may leave something behind when its first process has ended.
    pub(crate) fn leaves_traces(&self) -> bool {
        !matches!(self, Self::Namespaces(_))
    }

    /// Tidies up behind a call.
    ///
    /// # Errors
    /// Something of it is left.
    pub(crate) fn clear(&mut self) -> Result<(), Failed> {
        match self {
            Self::Namespaces(_) => Ok(()),
            Self::Landlock(view) => view.seat.clear(),
            Self::Bare(view) => view.seat.clear(),
        }
    }

    /// The control groups of the run, to be read.
    fn groups(&self) -> &Cgroups {
        match self {
            Self::Namespaces(view) => &view.cgroups,
            Self::Landlock(view) => &view.seat.cgroups,
            Self::Bare(view) => &view.seat.cgroups,
        }
    }

    /// The control groups of the run.
    pub(crate) fn cgroups(&mut self) -> &mut Cgroups {
        match self {
            Self::Namespaces(view) => &mut view.cgroups,
            Self::Landlock(view) => &mut view.seat.cgroups,
            Self::Bare(view) => &mut view.seat.cgroups,
        }
    }

    /// The folder in which commands may write, where nothing but looking bounds its size.
    pub(crate) fn unbounded_tmp(&self) -> Option<&Tmp> {
        match self {
            Self::Namespaces(_) => None,
            Self::Landlock(view) => Some(&view.seat.tmp),
            Self::Bare(view) => Some(&view.seat.tmp),
        }
    }

    /// How long the processes of the run have had a processor, where a control group counts it.
    pub(crate) fn counted_processor_time(&self) -> Option<Result<Duration, Errno>> {
        self.groups().processor_time()
    }

    /// Whether that group has counted for another call before.
    pub(crate) fn has_counted(&self) -> bool {
        self.groups().processor_means().is_some() && self.groups().have_served()
    }

    /// Whether memory is only kept by adding it up.
    pub(crate) fn counts_memory(&self) -> bool {
        self.groups().memory_means().is_none()
    }

    /// Whether nobody but ourselves counts the processes.
    pub(crate) fn counts_processes(&self) -> bool {
        !self.groups().bounds_processes()
    }

    /// Whether their number is then only kept by ending them all when they are too many.
    pub(crate) fn ends_crowds(&self) -> bool {
        !matches!(self, Self::Namespaces(_))
    }
}
