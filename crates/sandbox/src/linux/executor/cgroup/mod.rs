//! Control groups: the kernel's own bounds on the memory and the number of processes of a tree.
//!
//! One group (two in the older version, which has a tree per resource) is made per run, beneath our
//! own or beside it, and its calls run in it one after the other. Where none can be made, weaker
//! means serve, and the walls say so.

mod find;

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use capsule_core::confinement::ProcessLimits;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, mkdirat, openat, unlinkat};
use rustix::io::{Errno, pread, pwrite};
use rustix::process::{Pid, getpid};

use crate::linux::backend::mountinfo::{self, Mount};
use find::{CgroupParent, Version};

/// The beginning of the names of our groups; the namespace of processes and the executor follow.
const NAME_PREFIX: &str = "capsule-";
/// How long the kernel may take to see that the last process of a group is gone.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(2);
/// The groups of a run; none where none can be made.
#[derive(Default)]
pub(crate) struct Cgroups {
    groups: Vec<Cgroup>,
    current_limits: Option<(u64, u64)>,
    /// What the kernel had counted when the last call ended; it never counts anew by itself.
    last_counts: CgroupCounts,
    /// How often a process was refused before.
    refused_before: u64,
    /// Whether another call was bounded by them before this one.
    served: bool,
}

/// What the kernel counts over the whole life of a group.
#[derive(Default, Clone, Copy)]
struct CgroupCounts {
    kills: u64,
    peak: u64,
}

/// One group.
struct Cgroup {
    location: CgroupParent,
    parent: OwnedFd,
    name: String,
    directory: OwnedFd,
    /// Where a process of the older version joins.
    tasks: Option<OwnedFd>,
    /// What the kernel counts; kept open, because opening takes longer than reading.
    counters: Option<CounterFiles>,
    /// Where it counts the processes that it refused; not in every kernel.
    fork_failures: Option<OwnedFd>,
}

/// The files in which the kernel counts the memory of a group.
struct CounterFiles {
    events: OwnedFd,
    /// Not in every kernel.
    peak: Option<OwnedFd>,
}

/// What was used of the memory and of the processes.
#[derive(Default, Clone, Copy)]
pub(crate) struct CgroupUsage {
    /// The most at once, if the kernel counts it.
    pub(crate) peak: Option<u64>,
    /// The kernel ended a process because there was no more.
    pub(crate) ran_out: bool,
    /// The kernel refused to make a process because there were too many.
    pub(crate) process_limit_hit: bool,
}

impl Cgroups {
    /// Makes the groups of a run, as far as they can be made, and removes what runs that were
    /// killed have left behind.
    pub(crate) fn create(mounts: &[Mount]) -> Self {
        let name = group_name(getpid());
        let mut groups: Vec<Cgroup> = Vec::new();
        for place in find::candidate_parents(mounts) {
            let new = !groups.iter().any(|group| {
                place.memory && group.location.memory || place.processes && group.location.processes
            });
            if new {
                remove_leftovers(&place.directory);
                groups.extend(Cgroup::create(place, &name).ok());
            }
        }
        Self { groups, ..Self::default() }
    }

    /// Makes groups of its own for a copy of the executor, beside those that it has a copy of. Those it lets be.
    ///
    /// # Errors
    /// One of them cannot be made.
    pub(crate) fn separate(&mut self) -> Result<(), Errno> {
        let mut groups = Vec::new();
        for Cgroup { location, parent, name, .. } in std::mem::take(&mut self.groups) {
            // The number behind the last dash is that of the executor.
            let (prefix, _) = name.rsplit_once('-').ok_or(Errno::INVAL)?;
            let name = format!("{prefix}-{}", getpid().as_raw_nonzero());
            groups.push(Cgroup::create_in(location, parent, &name)?);
        }
        *self = Self { groups, ..Self::default() };
        Ok(())
    }

    /// By what means memory is bounded, if by a group.
    pub(crate) fn memory_mechanism(&self) -> Option<&'static str> {
        self.groups.iter().find(|group| group.location.memory).map(Cgroup::mechanism)
    }

    /// By what means processes are bounded, if by a group.
    pub(crate) fn process_mechanism(&self) -> Option<&'static str> {
        self.groups.iter().find(|group| group.location.processes).map(Cgroup::mechanism)
    }

    /// Whether a group bounds the number of processes.
    pub(crate) fn limits_processes(&self) -> bool {
        self.process_mechanism().is_some()
    }

    /// By what means processor time is counted, if by a group. The older version has a tree of its own for
    /// that, and none of our groups there.
    pub(crate) fn cpu_mechanism(&self) -> Option<&'static str> {
        self.v2().map(Cgroup::mechanism)
    }

    /// How long the processes of all calls so far have had a processor; none where no group counts it.
    pub(crate) fn cpu_time(&self) -> Option<Result<Duration, Errno>> {
        self.v2().map(Cgroup::cpu_time)
    }

    /// Whether they have counted for a call before.
    pub(crate) fn have_served(&self) -> bool {
        self.served
    }

    fn v2(&self) -> Option<&Cgroup> {
        self.groups.iter().find(|group| group.location.version == Version::V2)
    }

    /// Sets the bounds of the next call, and forgets what the last one used. `own` is how many
    /// processes of ours count, too.
    ///
    /// # Errors
    /// A bound was refused.
    pub(crate) fn set_limits(&mut self, limits: &ProcessLimits, number: u64) -> Result<(), Errno> {
        let bounds = (limits.memory_bytes, limits.processes.saturating_add(number));
        for group in &self.groups {
            if self.current_limits != Some(bounds) {
                group.set_limits(bounds.0, bounds.1)?;
            }
            group.reset_counters();
        }
        // Whatever came of the one before.
        self.served |= self.current_limits.is_some();
        self.current_limits = Some(bounds);
        Ok(())
    }

    /// The group that a process is to be born into (version 2).
    pub(crate) fn clone_target(&self) -> Option<BorrowedFd<'_>> {
        self.v2().map(|group| group.directory.as_fd())
    }

    /// Puts this process into the groups that it was not born into.
    ///
    /// # Errors
    /// A group did not take it.
    pub(crate) fn join(&self) -> Result<(), Errno> {
        for tasks in self.groups.iter().filter_map(|group| group.tasks.as_ref()) {
            // 0 is the writer itself. To move another process, or one with several threads, the
            // kernel would wait until all processors have been idle once.
            rustix::io::write(tasks, b"0")?;
        }
        Ok(())
    }

    /// What was used since the bounds were set.
    ///
    /// # Errors
    /// The group cannot be read.
    pub(crate) fn take_usage(&mut self) -> Result<CgroupUsage, Errno> {
        let mut used = CgroupUsage::default();
        if let Some(group) = self.groups.iter().find(|group| group.location.processes) {
            let refused = group.fork_failure_count();
            used.process_limit_hit = refused > std::mem::replace(&mut self.refused_before, refused);
        }
        if let Some(group) = self.groups.iter().find(|group| group.location.memory) {
            let counted = group.read_counts()?;
            let before = std::mem::replace(&mut self.last_counts, counted);
            // A peak that did not rise may be that of an earlier call.
            let fresh = group.location.version == Version::V1 || counted.peak > before.peak;
            used.peak = fresh.then_some(counted.peak);
            used.ran_out = counted.kills > before.kills;
        }
        Ok(used)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for group in &self.groups {
            remove_when_empty(group.parent.as_fd(), &group.name);
        }
    }
}

/// Removes the groups of an executor that was killed, from outside.
pub(crate) fn remove_leftover(executor: Pid) {
    let name = group_name(executor);
    for place in find::candidate_parents(&mountinfo::process_mounts()) {
        if let Ok(parent) = open_directory(CWD, &place.directory) {
            remove_when_empty(parent.as_fd(), &name);
        }
    }
}

impl Cgroup {
    fn create(place: CgroupParent, name: &str) -> Result<Self, Errno> {
        let parent = open_directory(CWD, &place.directory)?;
        if place.version == Version::V2 {
            // A process may only be born into a group if it could be moved there.
            accessat(&parent, "cgroup.procs", Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        Self::create_in(place, parent, name)
    }

    fn create_in(place: CgroupParent, parent: OwnedFd, name: &str) -> Result<Self, Errno> {
        mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
        let made = Self::open(place, parent, name);
        made.map_err(|(parent, error)| {
            remove_when_empty(parent.as_fd(), name);
            error
        })
    }

    /// Opens a group that was just made. One that does not count is none.
    fn open(place: CgroupParent, parent: OwnedFd, name: &str) -> Result<Self, (OwnedFd, Errno)> {
        let opened = || {
            let folder = open_directory(&parent, Path::new(name))?;
            let tasks = match place.version {
                Version::V1 => Some(open_file(&folder, "tasks", OFlags::WRONLY)?),
                Version::V2 => None,
            };
            let counts =
                if place.memory { Some(CounterFiles::open(&folder, place.version)?) } else { None };
            let refusals = if place.processes {
                open_file(&folder, "pids.events", OFlags::RDONLY).ok()
            } else {
                None
            };
            Ok((folder, tasks, counts, refusals))
        };
        let (folder, tasks, counts, refusals) = match opened() {
            Ok(opened) => opened,
            Err(error) => return Err((parent, error)),
        };
        let group = Self {
            location: place,
            parent,
            name: name.to_owned(),
            directory: folder,
            tasks,
            counters: counts,
            fork_failures: refusals,
        };
        match group.read_counts() {
            Ok(_) => Ok(group),
            Err(error) => Err((group.parent, error)),
        }
    }

    fn mechanism(&self) -> &'static str {
        match self.location.version {
            Version::V1 => "cgroup v1",
            Version::V2 => "cgroup v2",
        }
    }

    fn set_limits(&self, memory: u64, processes: u64) -> Result<(), Errno> {
        let memory = memory.to_string();
        if self.location.processes {
            self.write("pids.max", &processes.to_string())?;
        }
        match (self.location.memory, self.location.version) {
            (false, _) => Ok(()),
            (true, Version::V2) => {
                self.write("memory.max", &memory)?;
                // One that runs out ends as a whole: half a tree is of no use.
                self.write_if_there("memory.oom.group", "1")?;
                self.write_if_there("memory.swap.max", "0")
            }
            (true, Version::V1) => {
                // Memory and swap together may never be less than memory alone, so whichever way
                // the bound moves, one of the two orders works.
                if self.write("memory.limit_in_bytes", &memory).is_err() {
                    self.write_if_there("memory.memsw.limit_in_bytes", &memory)?;
                    self.write("memory.limit_in_bytes", &memory)?;
                }
                self.write_if_there("memory.memsw.limit_in_bytes", &memory)
            }
        }
    }

    /// Starts counting anew, where the kernel lets one.
    fn reset_counters(&self) {
        let peak = self.counters.as_ref().and_then(|counts| counts.peak.as_ref());
        if let Some(peak) = peak.filter(|_| self.location.version == Version::V1) {
            let _ = pwrite(peak, b"0", 0);
        }
    }

    fn read_counts(&self) -> Result<CgroupCounts, Errno> {
        let Some(counts) = &self.counters else { return Ok(CgroupCounts::default()) };
        let events = reread(&counts.events)?;
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        let kills = kills.and_then(|kills| kills.trim().parse().ok()).ok_or(Errno::NOTSUP)?;
        let peak = counts.peak.as_ref().and_then(|peak| reread(peak).ok());
        Ok(CgroupCounts {
            kills,
            peak: peak.and_then(|peak| peak.trim().parse().ok()).unwrap_or(0),
        })
    }

    /// How often the kernel refused to make a process, as far as it counts that.
    fn fork_failure_count(&self) -> u64 {
        let events =
            self.fork_failures.as_ref().and_then(|file| reread(file).ok()).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix("max "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// The kernel counts this also where nobody handed processors on to this group. Opened anew: it is
    /// asked for when a command has taken long, and that is seldom.
    fn cpu_time(&self) -> Result<Duration, Errno> {
        let counted = reread(&open_file(&self.directory, "cpu.stat", OFlags::RDONLY)?)?;
        let time = counted.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let time = time.and_then(|time| time.trim().parse().ok());
        time.map(Duration::from_micros).ok_or(Errno::NOTSUP)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Errno> {
        rustix::io::write(open_file(&self.directory, file, OFlags::WRONLY)?, text.as_bytes())
            .map(|_| ())
    }

    /// Kernels without swap, and older ones, lack some files.
    fn write_if_there(&self, file: &str, text: &str) -> Result<(), Errno> {
        match self.write(file, text) {
            Err(Errno::NOENT) => Ok(()),
            written => written,
        }
    }
}

impl CounterFiles {
    fn open(folder: &OwnedFd, version: Version) -> Result<Self, Errno> {
        Ok(match version {
            Version::V1 => Self {
                events: open_file(folder, "memory.oom_control", OFlags::RDONLY)?,
                peak: open_file(folder, "memory.max_usage_in_bytes", OFlags::RDWR).ok(),
            },
            Version::V2 => Self {
                events: open_file(folder, "memory.events", OFlags::RDONLY)?,
                peak: open_file(folder, "memory.peak", OFlags::RDONLY).ok(),
            },
        })
    }
}

/// Reads a file of the kernel's anew, from its beginning.
fn reread(file: &OwnedFd) -> Result<String, Errno> {
    let mut buffer = [0_u8; 512];
    let got = pread(file, &mut buffer, 0)?;
    Ok(String::from_utf8_lossy(buffer.get(..got).unwrap_or_default()).into_owned())
}

fn open_file(folder: &OwnedFd, name: &str, access: OFlags) -> Result<OwnedFd, Errno> {
    openat(folder, name, access | OFlags::CLOEXEC, Mode::empty())
}

/// The name of the groups of all executors of this namespace of processes, up to the number of one. Containers
/// may share the groups of a machine; the same number is another process in each.
fn namespace_prefix() -> String {
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino());
    format!("{NAME_PREFIX}{namespace}-")
}

/// The name of the groups of an executor.
fn group_name(executor: Pid) -> String {
    format!("{}{}", namespace_prefix(), executor.as_raw_nonzero())
}

/// Removes the groups of executors that are no more. They hold no process, only a little memory.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let prefix = namespace_prefix();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !fs::exists(format!("/proc/{owner}")).unwrap_or(true)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn remove_when_empty(parent: BorrowedFd<'_>, name: &str) {
    let start = Instant::now();
    while let Err(Errno::BUSY) = unlinkat(parent, name, AtFlags::REMOVEDIR) {
        if start.elapsed() > EMPTY_TIMEOUT {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn open_directory(base: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    openat(base, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups of another container are not ours, whatever runs there under their number.
    #[test]
    fn only_groups_of_the_same_namespace_are_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join(format!("{NAME_PREFIX}1-999999999"));
        let own = folder.path().join(format!("{}999999999", namespace_prefix()));
        let [_, _] = [&other, &own].map(|group| fs::create_dir(group).unwrap());
        remove_leftovers(folder.path());
        assert!(other.exists() && !own.exists());
    }

    /// The newer version counts processor time in every group; the older one does not in ours.
    #[test]
    fn processor_time_is_read_where_it_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cpu.stat"), "usage_usec 1500250\nuser_usec 1\n").unwrap();
        let groups = |version| {
            let open = || open_directory(CWD, folder.path()).unwrap();
            let location = CgroupParent {
                version,
                directory: folder.path().into(),
                memory: false,
                processes: false,
            };
            let (name, tasks, counters, fork_failures) = (String::from("none"), None, None, None);
            let (parent, directory) = (open(), open());
            Cgroups {
                groups: vec![Cgroup {
                    location,
                    parent,
                    name,
                    directory,
                    tasks,
                    counters,
                    fork_failures,
                }],
                ..Cgroups::default()
            }
        };
        let newer = groups(Version::V2);
        assert_eq!(newer.cpu_time(), Some(Ok(Duration::from_micros(1_500_250))));
        assert_eq!(newer.cpu_mechanism(), Some("cgroup v2"));
        let older = groups(Version::V1);
        assert_eq!((older.cpu_time(), older.cpu_mechanism()), (None, None));
        fs::write(folder.path().join("cpu.stat"), "user_usec 1\n").unwrap();
        assert_eq!(newer.cpu_time(), Some(Err(Errno::NOTSUP)));
    }
}
