//! The namespaces of a run: users, mounts, host name and network.
//!
//! The network takes the kernel longer than everything else here together. So a maker process makes
//! the namespaces of users and of the network, and the executor builds its root meanwhile and then
//! enters what the maker has made. The maker being another process, the executor can also write
//! the map of users from outside, which is the only way to map more than oneself.
//!
//! An ordinary user is mapped to itself and nobody else exists. Root gets the map of the namespace
//! that it comes from, so that files of other owners keep their owners.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getegid, geteuid};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space,
    sched_getaffinity, sched_getcpu, sched_setaffinity, set_thread_groups,
};

use crate::kernel;
use crate::protocol::{At as _, Failed, Step};

/// The maker, at work.
pub(super) struct Maker {
    process: Pid,
    /// On which it reports each namespace.
    reports: OwnedFd,
    /// Open as long as it is needed.
    needed: Option<OwnedFd>,
}

impl Maker {
    /// Sets it to work.
    ///
    /// # Errors
    /// It could not be made.
    pub(super) fn begin() -> Result<Self, Failed> {
        let (reports, reporting) = pipe_with(PipeFlags::CLOEXEC).at(Step::UserNamespace)?;
        let (end, needed) = pipe_with(PipeFlags::CLOEXEC).at(Step::UserNamespace)?;
        match kernel::fork().at(Step::UserNamespace)? {
            Some(process) => {
                send_away(process);
                Ok(Self { process, reports, needed: Some(needed) })
            }
            None => {
                let _never_back = kernel::LeaveOnDrop;
                drop((reports, needed));
                help(&reporting, &end);
                kernel::leave(0)
            }
        }
    }

    /// Enters the user namespace, with its maps, and new namespaces of mounts and host name.
    ///
    /// # Errors
    /// The kernel refused the maker or this process.
    pub(super) fn enter(&self) -> Result<(), Failed> {
        self.report().at(Step::UserNamespace)?;
        self.write_maps().at(Step::IdMap)?;
        self.join("user", LinkNameSpaceType::User).at(Step::UserNamespace)?;
        kernel::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUTS).at(Step::MountNamespace)
    }

    /// Enters the network namespace, once it is there. The maker then ends; it is waited for when
    /// it is dropped, which may be later.
    ///
    /// # Errors
    /// The kernel refused the maker or this process.
    pub(super) fn enter_network(&mut self) -> Result<(), Failed> {
        self.report().at(Step::NetworkNamespace)?;
        self.join("net", LinkNameSpaceType::Network).at(Step::NetworkNamespace)?;
        self.needed = None;
        Ok(())
    }

    /// Waits for the maker's next report.
    fn report(&self) -> Result<(), Errno> {
        let mut number = [0_u8; 4];
        let got = rustix::io::retry_on_intr(|| rustix::io::read(&self.reports, &mut number))?;
        match (got, i32::from_le_bytes(number)) {
            (4, 0) => Ok(()),
            (4, errno) => Err(Errno::from_raw_os_error(errno)),
            _ => Err(Errno::CHILD),
        }
    }

    fn join(&self, kind: &str, namespace: LinkNameSpaceType) -> Result<(), Errno> {
        let path = format!("/proc/{}/ns/{kind}", self.process.as_raw_nonzero());
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        move_into_link_name_space(file.as_fd(), Some(namespace))
    }

    fn write_maps(&self) -> Result<(), Errno> {
        let folder = format!("/proc/{}", self.process.as_raw_nonzero());
        if can_map_everyone() {
            // Root's groups would still open files of theirs. Root of a namespace whose maker gave up
            // the right to drop groups has to keep them, like any user.
            match set_thread_groups(&[]) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            for kind in ["uid_map", "gid_map"] {
                let own = fs::read_to_string(format!("/proc/self/{kind}"))
                    .map_err(|error| kernel::errno(&error))?;
                write(&format!("{folder}/{kind}"), &same_for_everyone(&own))?;
            }
            return Ok(());
        }
        // Others may map themselves, once the right to drop groups is given up.
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        write(&format!("{folder}/setgroups"), "deny")?;
        write(&format!("{folder}/uid_map"), &format!("{user} {user} 1\n"))?;
        write(&format!("{folder}/gid_map"), &format!("{group} {group} 1\n"))
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.needed = None;
        let _ = kernel::wait_for(self.process);
    }
}

/// The maker's whole life.
fn help(reporting: &OwnedFd, end: &OwnedFd) {
    if kernel::die_with_parent().is_err() {
        return;
    }
    for namespace in [UnshareFlags::NEWUSER, UnshareFlags::NEWNET] {
        let made = kernel::unshare(namespace);
        let number = made.map_or_else(|errno| errno.raw_os_error(), |()| 0);
        if rustix::io::write(reporting, &number.to_le_bytes()).is_err() || made.is_err() {
            return;
        }
    }
    // The namespaces live on in the executor; until it has entered them, they need this process.
    let _ = rustix::io::read(end, &mut [0_u8; 1]);
}

/// Sends the maker to another processor than this one, if there is one. The kernel lets a new
/// process wait where its parent runs, and then nothing would be gained.
fn send_away(maker: Pid) {
    if let Ok(mut allowed) = sched_getaffinity(None) {
        allowed.unset(sched_getcpu());
        let _ = sched_setaffinity(Some(maker), &allowed);
    }
}

fn can_map_everyone() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::SETFCAP;
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// Maps everyone that exists here to the same number.
fn same_for_everyone(own: &str) -> String {
    let mut map = String::new();
    for line in own.lines() {
        let mut words = line.split_whitespace();
        if let (Some(first), Some(count)) = (words.next(), words.nth(1)) {
            map.push_str(&format!("{first} {first} {count}\n"));
        }
    }
    map
}

/// Writes a setting of the kernel.
pub(super) fn write(path: &str, text: &str) -> Result<(), Errno> {
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
