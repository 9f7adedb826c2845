//! The first process of a program that nothing holds: it takes in every process that the program leaves
//! behind, so that what is left can be found and ended.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::fs::Mode;
use rustix::process::{fchdir, getpid, set_child_subreaper, umask};
use rustix::stdio::dup2_stdin;

use super::View;
use crate::backend::landlock::{Bound, obey};
use crate::backend::{capabilities, program};
use crate::kernel;
use crate::protocol::{At as _, Refusal, Step, encode_verdict, socket};

/// Lives the whole life of the first process. `others` is how many processes the user has besides,
/// where they count.
pub(super) fn live(view: &View, (line, own_end): (&OwnedFd, &OwnedFd), others: Option<u64>) -> ! {
    let _never_back = kernel::LeaveOnDrop;
    let verdict = match set_up(view, line, own_end) {
        Ok(()) => {
            let verdict = obey(own_end, others, Bound::Nowhere);
            // Those that are left without a parent come to this process, until there are none.
            kernel::end_children();
            verdict
        }
        Err(refusal) => Err(refusal),
    };
    // One that was ended has nothing to say. If nobody listens any more, nobody needs to know.
    if let Some(verdict) = verdict.transpose() {
        let _ = socket::send(own_end.as_fd(), &encode_verdict(verdict), &[]);
    }
    kernel::leave(0)
}

fn set_up(view: &View, line: &OwnedFd, own_end: &OwnedFd) -> Result<(), Refusal> {
    let executors = line.as_raw_fd().unsigned_abs();
    program::close_range(executors, executors).at(Step::Lifeline)?;
    set_child_subreaper(Some(getpid())).at(Step::Lifeline)?;
    kernel::default_signals().at(Step::Signals)?;
    view.cgroups.join().at(Step::Cgroup)?;
    capabilities::drop_all().at(Step::Capabilities)?;
    umask(Mode::from_raw_mode(0o022));
    // In the place of the executor's own socket, which it stands on.
    dup2_stdin(&view.nothing).at(Step::Streams)?;
    fchdir(&view.workspace).at(Step::Workspace)?;
    program::close_all_but(own_end).at(Step::Descriptors)?;
    Ok(())
}
