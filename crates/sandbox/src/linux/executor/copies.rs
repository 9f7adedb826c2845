//! Copies of an executor, each of which serves one command while the executor goes on with others.
//!
//! A copy is in the same namespaces of users, mounts and the network, so its command sees the workspace and the loopback
//! that the others see. Its control groups are its own, and so are the processes, mounts and limits of its command.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, getpid, getppid, waitpid};

use crate::linux::backend::RunSandbox;
use crate::linux::kernel::{self, CloneRequest, ForkResult};
use crate::linux::protocol::{AtStep as _, ExecutorReply, SetupError, Step, socket};

/// The copies that an executor has made, and not yet taken in.
#[derive(Default)]
pub(super) struct Copies(Vec<Pid>);

impl Copies {
    /// Takes in those that have ended.
    pub(super) fn take_in(&mut self) {
        self.0.retain(|copy| matches!(waitpid(Some(*copy), WaitOptions::NOHANG), Ok(None)));
    }

    /// Makes a copy, and passes on the socket over which it is told what to do. In the copy, gives the other end, which it
    /// serves in place of `line`.
    ///
    /// # Errors
    /// The kernel refused, or the view is none of the upper tier.
    pub(super) fn make(
        &mut self,
        view: &mut RunSandbox,
        line: &OwnedFd,
    ) -> Result<Option<OwnedFd>, SetupError> {
        let RunSandbox::Namespaces(view) = view else {
            return Err(SetupError { step: Step::Order, errno: Errno::OPNOTSUPP });
        };
        // A copy would hold the lines to these processes open, and end them when it ends.
        view.drop_processes();
        let sockets =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (here, there) = sockets.at(Step::Lifeline)?;
        let parent = getpid();
        let request = CloneRequest { namespaces: 0, cgroup: None };
        match kernel::clone_process(&request).at(Step::Birth)? {
            ForkResult::Parent(copy, _) => {
                self.0.push(copy);
                let reply = ExecutorReply::Forked.encode();
                socket::send(line.as_fd(), &reply, &[here.as_fd()]).at(Step::Lifeline)?;
                Ok(None)
            }
            ForkResult::Child => {
                self.0.clear();
                let is_bound = kernel::outlive_no_parent(Some(parent)).is_ok()
                    && getppid() == Some(parent)
                    && view.cgroups.separate().is_ok();
                match is_bound {
                    true => Ok(Some(there)),
                    // The other end sees that nothing is there.
                    false => kernel::exit_now(1),
                }
            }
        }
    }
}
