//! The files of a control group that tell a call of its limits.
//!
//! Runtimes such as the JVM believe these files only where `/proc/self/mountinfo` and the kind of the file system
//! say that they are those of a control group. So the kernel's own file systems are mounted, and files
//! made for the call are mounted over their names or over the whole of them. Landlock opens those alone.
//! Where the kernel mounts neither hierarchy, such a runtime sees the memory of the machine.

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdir, open, stat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::generated_files::{mount_over, write_file};
use crate::linux::kernel::errno;
use crate::linux::landlock::LandlockAccess;

/// The place of the files.
pub(super) const PLACE: &str = "/sys/fs/cgroup";
/// The directory with the files of the call until it is mounted.
const DRAFT: &str = "/tmp/cgroup";
/// The controllers whose limits a call sees.
const CONTROLLERS: [&str; 4] = ["cpuset", "cpu", "cpuacct", "memory"];
/// What the older hierarchy of control groups writes for a limit that is none.
const UNLIMITED: u64 = i64::MAX as u64 & !0xfff;

/// The hierarchies of control groups that this process is in.
pub(super) struct Hierarchies {
    /// Those of the older version that hold one of the controllers: the number, and the controllers as one text.
    older: Vec<(String, String)>,
}

impl Hierarchies {
    /// Reads them.
    ///
    /// # Errors
    /// `/proc/self/cgroup` cannot be read.
    pub(super) fn read() -> Result<Self, Errno> {
        let text = fs::read_to_string("/proc/self/cgroup").map_err(|error| errno(&error))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let of_line = |line: &str| {
            let mut parts = line.split(':');
            let (number, controllers) = (parts.next()?, parts.next()?);
            let is_limited = controllers.split(',').any(|name| CONTROLLERS.contains(&name));
            is_limited.then(|| (number.to_owned(), controllers.to_owned()))
        };
        Self { older: text.lines().filter_map(of_line).collect() }
    }

    /// `/proc/cgroups`, with the controllers whose limits a call sees.
    pub(super) fn controllers_text(&self) -> String {
        let mut text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n".to_owned();
        for name in CONTROLLERS {
            let holds = |(_, all): &&(String, String)| all.split(',').any(|other| other == name);
            let number = self.older.iter().find(holds).map_or("0", |(number, _)| number);
            text.push_str(&format!("{name}\t{number}\t1\t1\n"));
        }
        text
    }

    /// Mounts the files of a call that may have this much memory and these processors. Gives what Landlock
    /// has to allow.
    ///
    /// # Errors
    /// A file cannot be made or mounted.
    pub(super) fn mount_files(
        &self,
        memory: u64,
        processors: &str,
    ) -> Result<Vec<(OwnedFd, LandlockAccess)>, Errno> {
        mkdir(DRAFT, Mode::from_raw_mode(0o755))?;
        let files = newer_files(memory, processors);
        for (name, text) in &files {
            write_file(&format!("{DRAFT}/{name}"), &format!("{text}\n"))?;
        }
        if self.older.is_empty() && mount_newer_hierarchy() {
            let names = files.iter().map(|(name, _)| *name);
            let there = names.filter(|name| Path::new(PLACE).join(name).exists());
            return there
                .map(|name| {
                    let place = format!("{PLACE}/{name}");
                    mount_over(&format!("{DRAFT}/{name}"), &place)?;
                    Ok((open_path(&place)?, LandlockAccess::ReadFile))
                })
                .collect();
        }
        for (_, controllers) in &self.older {
            let directory = format!("{DRAFT}/{controllers}");
            mkdir(&directory, Mode::from_raw_mode(0o755))?;
            for (name, text) in older_files(controllers, memory, processors) {
                write_file(&format!("{directory}/{name}"), &format!("{text}\n"))?;
            }
        }
        mount_over(DRAFT, PLACE)?;
        for (_, controllers) in &self.older {
            let place = format!("{PLACE}/{controllers}");
            let options = CString::new(controllers.as_str()).map_err(|_| Errno::INVAL)?;
            if mount(c"cgroup", &place, c"cgroup", FLAGS, options.as_c_str()).is_ok() {
                mount_over(&format!("{DRAFT}/{controllers}"), &place)?;
            }
        }
        Ok(vec![(open_path(PLACE)?, LandlockAccess::Read)])
    }
}

const FLAGS: MountFlags =
    MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC).union(MountFlags::RDONLY);

/// Mounts the newer hierarchy. Its top is the group of this process, so other groups are not in it, unless the group
/// of this process has groups of its own; and a group without a limit of memory has no place for the files.
fn mount_newer_hierarchy() -> bool {
    if mount(c"cgroup2", PLACE, c"cgroup2", FLAGS, c"").is_err() {
        return false;
    }
    let is_alone = stat(PLACE).is_ok_and(|found| found.st_nlink == 2);
    let is_usable = is_alone && Path::new(PLACE).join("memory.max").exists();
    // Where the mount cannot be taken away, the files of the call cover it.
    let _ = is_usable || unmount(PLACE, UnmountFlags::DETACH).is_ok();
    is_usable
}

/// The files of the newer hierarchy.
fn newer_files(memory: u64, processors: &str) -> [(&'static str, String); 9] {
    let range = processors.to_owned();
    [
        ("cgroup.controllers", "cpuset cpu memory".to_owned()),
        ("cpu.max", "max 100000".to_owned()),
        ("cpuset.cpus", range.clone()),
        ("cpuset.cpus.effective", range),
        ("memory.current", "0".to_owned()),
        ("memory.high", "max".to_owned()),
        ("memory.max", memory.to_string()),
        ("memory.swap.current", "0".to_owned()),
        ("memory.swap.max", "0".to_owned()),
    ]
}

/// The files of controllers of the older hierarchy.
fn older_files(controllers: &str, memory: u64, processors: &str) -> Vec<(&'static str, String)> {
    let mut files = Vec::new();
    for name in controllers.split(',') {
        match name {
            "cpuset" => files.extend([
                ("cpuset.cpus", processors.to_owned()),
                ("cpuset.effective_cpus", processors.to_owned()),
            ]),
            "cpu" => files.extend([
                ("cpu.cfs_quota_us", "-1".to_owned()),
                ("cpu.cfs_period_us", "100000".to_owned()),
                ("cpu.shares", "1024".to_owned()),
            ]),
            "memory" => files.extend([
                ("memory.limit_in_bytes", memory.to_string()),
                ("memory.memsw.limit_in_bytes", memory.to_string()),
                ("memory.soft_limit_in_bytes", UNLIMITED.to_string()),
                ("memory.usage_in_bytes", "0".to_owned()),
                ("memory.use_hierarchy", "1".to_owned()),
            ]),
            _ => {}
        }
    }
    files
}

fn open_path(path: &str) -> Result<OwnedFd, Errno> {
    open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_those_of_the_process() {
        let older = "5:cpu,cpuacct:/\n4:memory:/\n3:cpuset:/\n2:pids:/\n1:name=systemd:/\n0::/\n";
        for (text, lines, count) in [
            (older, "cpuset\t3\t1\t1\ncpu\t5\t1\t1\ncpuacct\t5\t1\t1\nmemory\t4\t1\t1\n", 3),
            ("0::/\n", "cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\nmemory\t0\t1\t1\n", 0),
        ] {
            let found = Hierarchies::parse(text);
            assert!(found.controllers_text().ends_with(&format!("enabled\n{lines}")), "{text}");
            assert_eq!(found.older.len(), count, "{text}");
        }
        let both = older_files("cpu,cpuacct", 1, "0-1");
        assert!(both.iter().all(|(name, _)| name.starts_with("cpu.")), "{both:?}");
    }
}
