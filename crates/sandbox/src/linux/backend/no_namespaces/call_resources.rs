//! What a call needs, whatever walls are around it.

use std::os::fd::OwnedFd;

use capsule_core::confinement::{EnforcementLevel, LimitStatus, ResourceLimit};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{geteuid, getpid, set_child_subreaper};
use rustix::thread::set_thread_groups;

use super::init_process::InitSockets;
use super::private_tmp::PrivateTmp;
use crate::linux::backend::capabilities;
use crate::linux::backend::init_process::{EndMethod, InitProcess, Streams, control_sockets};
use crate::linux::executor::cgroup::Cgroups;
use crate::linux::executor::sample;
use crate::linux::kernel::{self, ForkResult};
use crate::linux::protocol::{AtStep as _, CommandMessage, ExecutorError, SetupError, Step};

/// The first process of a call counts, too.
const OWN_PROCESSES: u64 = 1;

/// What a call needs.
pub(in crate::linux::backend) struct CallResources {
    pub(in crate::linux::backend) cgroups: Cgroups,
    /// The workspace or its copy.
    pub(in crate::linux::backend) workspace: OwnedFd,
    /// The folder in which commands may write.
    pub(in crate::linux::backend) tmp: PrivateTmp,
    /// The standard input of commands that are given none.
    pub(super) empty_stdin: OwnedFd,
}

impl CallResources {
    /// Makes a folder for it.
    ///
    /// # Errors
    /// The step that failed.
    pub(in crate::linux::backend) fn create(
        cgroups: Cgroups,
        workspace: OwnedFd,
    ) -> Result<Self, ExecutorError> {
        let tmp = PrivateTmp::create().at(Step::Tmp)?;
        let nothing =
            open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).at(Step::Device)?;
        Ok(Self { cgroups, workspace, tmp, empty_stdin: nothing })
    }

    /// Starts the first process of a call, which lives as is said here, and gives it the order.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(in crate::linux::backend) fn spawn(
        &mut self,
        run: &CommandMessage,
        streams: &Streams,
        live: impl FnOnce(&Self, InitSockets<'_>),
    ) -> Result<InitProcess, ExecutorError> {
        self.clean_up()?;
        self.cgroups.set_limits(&run.limits, OWN_PROCESSES).at(Step::Cgroup)?;
        let (line, other_end) = control_sockets()?;
        // The kernel counts all processes of a user together, and none of root's.
        let counted = !is_exempt_from_process_limit() && !self.cgroups.limits_processes();
        let others = counted.then(sample::count_user_tasks);
        let born = kernel::fork_into_cgroup(self.cgroups.clone_target());
        let first = match born.at(Step::Birth)? {
            ForkResult::Child => {
                let _never_back = kernel::ExitOnDrop;
                live(
                    self,
                    InitSockets {
                        executor_end: &line,
                        own_end: &other_end,
                        other_processes: others,
                    },
                );
                kernel::exit_now(0)
            }
            ForkResult::Parent(pid, handle) => {
                InitProcess::new(pid, handle, line, EndMethod::Disconnected)
            }
        };
        drop(other_end);
        first.send_request(run, streams, &self.empty_stdin)?;
        Ok(first)
    }

    /// Ends what a call may have left behind, and empties its folder. Only where its first process
    /// was killed from outside is anything left to end.
    ///
    /// # Errors
    /// The folder cannot be emptied.
    pub(in crate::linux::backend) fn clean_up(&mut self) -> Result<(), SetupError> {
        let _ = kernel::kill_and_reap_all(kernel::kill_children);
        self.tmp.empty().at(Step::Tmp)
    }
}

/// Whether the kernel bounds the number of this user's processes by nothing: it is root, and of the whole
/// machine. Whoever is root in a user namespace alone is somebody else outside.
fn is_exempt_from_process_limit() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    geteuid().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Gives up what this process has and no command needs.
pub(in crate::linux::backend) fn drop_privileges() -> Result<(), Errno> {
    // Whoever of a call is left without a parent comes to this process.
    set_child_subreaper(Some(getpid()))?;
    match set_thread_groups(&[]) {
        // An ordinary user keeps its groups.
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    match capabilities::drop_all_but(&[]) {
        // An ordinary user has none to take away, and may not lock the rules by which root gets
        // them; nothing that it starts can become root. What this process has itself it keeps, to
        // remove control groups; the first process of each call gives it up.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error),
    }
}

/// By what means processes are bounded where no control group does it. The kernel's own limit
/// counts every process of the user, and none of root's.
pub(in crate::linux::backend) fn process_limit_status() -> LimitStatus {
    let (hold, detail) = match (sample::is_supported(), is_exempt_from_process_limit()) {
        (true, true) => (EnforcementLevel::Weaker, "counted every 50 ms"),
        (true, false) => {
            (EnforcementLevel::Weaker, "rlimit beyond what the user has, counted every 50 ms")
        }
        (false, _) => {
            (EnforcementLevel::Missing, "no control group, and processes cannot be listed")
        }
    };
    LimitStatus { limit: ResourceLimit::Processes, level: hold, detail: detail.to_owned() }
}
