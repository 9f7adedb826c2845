//! The namespaces of a run: users, mounts, host name and network.
//!
//! A holder is born into new namespaces of users and of the network, and the executor enters them. It being
//! another process, the executor can write the map of users from outside, which is the only way to map
//! more than oneself. It is born into them and makes nothing itself, so nobody waits for it to be given a
//! processor (ADR 29).
//!
//! An ordinary user is mapped to itself and nobody else exists. Root gets the map of the namespace
//! that it comes from, so that files of other owners keep their owners.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getegid, geteuid};
use rustix::thread::{
    CapabilitySet, ThreadNameSpaceType, UnshareFlags, capabilities, move_into_thread_name_spaces,
    set_thread_groups,
};

use crate::linux::kernel::{self, CloneRequest, ForkResult};
use crate::linux::protocol::{AtStep as _, SetupError, Step};

/// The network that a run gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunNetwork {
    /// One with nothing but a loopback.
    Private,
    /// The host's.
    Host,
}

/// The process that holds new namespaces until the executor has entered them.
pub(super) struct NamespaceHolder {
    process: Pid,
    handle: OwnedFd,
    network: RunNetwork,
    /// Open as long as it is needed.
    keep_alive: Option<OwnedFd>,
}

impl NamespaceHolder {
    /// Has it born into its namespaces.
    ///
    /// # Errors
    /// A namespace cannot be had, which the step names.
    pub(super) fn start(network: RunNetwork) -> Result<Self, SetupError> {
        let why = match Self::fork_into(network) {
            Err(failed) if failed.errno != Errno::NOSYS && network == RunNetwork::Private => failed,
            made => return made,
        };
        // Which of them it is, the kernel does not say.
        let _users_alone = Self::fork_into(RunNetwork::Host)?;
        Err(SetupError { step: Step::NetworkNamespace, ..why })
    }

    fn fork_into(network: RunNetwork) -> Result<Self, SetupError> {
        let (end, needed) = pipe_with(PipeFlags::CLOEXEC).at(Step::UserNamespace)?;
        let namespaces = match network {
            RunNetwork::Private => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
            RunNetwork::Host => libc::CLONE_NEWUSER,
        };
        let namespaces = u64::from(namespaces.unsigned_abs());
        match kernel::clone_process(&CloneRequest { namespaces, cgroup: None })
            .at(Step::UserNamespace)?
        {
            ForkResult::Parent(process, handle) => {
                Ok(Self { process, handle, network, keep_alive: Some(needed) })
            }
            ForkResult::Child => {
                let _never_back = kernel::ExitOnDrop;
                drop(needed);
                if kernel::die_with_parent().is_ok() {
                    let _ = rustix::io::read(&end, &mut [0_u8; 1]);
                }
                kernel::exit_now(0)
            }
        }
    }

    /// Enters the namespaces of users, with its maps, and of the network where it has one, and new ones of mounts and host
    /// name. The holder then ends; it is waited for when it is dropped, which may be later.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn enter(&mut self) -> Result<(), SetupError> {
        self.write_maps().at(Step::IdMap)?;
        let enter = |kind| move_into_thread_name_spaces(self.handle.as_fd(), kind);
        enter(ThreadNameSpaceType::USER).at(Step::UserNamespace)?;
        if self.network == RunNetwork::Private {
            enter(ThreadNameSpaceType::NETWORK).at(Step::NetworkNamespace)?;
            // Only the calls of this run can reach it.
            kernel::raise_loopback().at(Step::Loopback)?;
        }
        self.keep_alive = None;
        kernel::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUTS).at(Step::MountNamespace)
    }

    fn write_maps(&self) -> Result<(), Errno> {
        let folder = format!("{}/{}", writable_processes(), self.process.as_raw_nonzero());
        if can_map_everyone() {
            // Root's groups would still open files of theirs. Root of a namespace whose maker gave up
            // the right to drop groups has to keep them, like any user.
            match set_thread_groups(&[]) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            for kind in ["uid_map", "gid_map"] {
                let text = fs::read_to_string(format!("/proc/self/{kind}"))
                    .map_err(|error| kernel::errno(&error))?;
                write_setting(&format!("{folder}/{kind}"), &same_for_everyone(&text))?;
            }
            return Ok(());
        }
        // Others may map themselves, once the right to drop groups is given up.
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        write_setting(&format!("{folder}/setgroups"), "deny")?;
        write_setting(&format!("{folder}/uid_map"), &format!("{user} {user} 1\n"))?;
        write_setting(&format!("{folder}/gid_map"), &format!("{group} {group} 1\n"))
    }
}

impl Drop for NamespaceHolder {
    fn drop(&mut self) {
        self.keep_alive = None;
        let _ = kernel::wait_for(self.process);
    }
}

/// Where files of processes can be written to: inside of the sandbox of an agent of root, `/proc` is read-only.
fn writable_processes() -> &'static str {
    if is_read_only("/proc") { PROCESSES } else { "/proc" }
}

/// Where an agent finds its processes, and nothing else of a `/proc`, if that is read-only.
pub(super) const PROCESSES: &str = "/run/capsule/processes";

/// Whether nothing can be written to a mount; an error while looking counts as no.
pub(super) fn is_read_only(path: &str) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn can_map_everyone() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::SETFCAP;
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// Maps everyone that exists here to the same number.
fn same_for_everyone(text: &str) -> String {
    let mut map = String::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(first), Some(count)) = (words.next(), words.nth(1)) {
            map.push_str(&format!("{first} {first} {count}\n"));
        }
    }
    map
}

/// Writes a setting of the kernel.
pub(super) fn write_setting(path: &str, text: &str) -> Result<(), Errno> {
    fs::write(path, text).map_err(|error| kernel::errno(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_keeps_their_number() {
        assert_eq!(same_for_everyone("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(
            same_for_everyone(
                "         0       1000          1\n         1     100000      65536\n"
            ),
            "0 0 1\n1 1 65536\n"
        );
        assert_eq!(same_for_everyone(""), "");
    }
}
