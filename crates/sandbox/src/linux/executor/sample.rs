//! How much memory and processor time a tree of processes has and how many it are, added up from outside
//! where no control group counts it.
//!
//! This is the weaker means: what is taken and given back between two looks is not seen. Nor is
//! memory that no process has mapped, so the calls that make such memory are not there then. Memory
//! that is shared without a file stays taken when a process lets go of its pages, and as long as one of
//! them is mapped, so the most counts that was ever seen mapped of a piece; of one that was cut down between
//! two looks that is too little. What sockets and pipes hold is bounded by the limit of open files alone.
//! Processor time of a process that has ended counts with the parent that took it in; where that ignores the
//! ends of its children (`SIGCHLD`), the kernel forgets it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use capsule_base::process_stat::fields_from_state;

use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, getuid};

/// Whether the system lists the children of a process at all.
pub(crate) fn is_supported() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// What was seen of the memory of a tree of processes.
#[derive(Default)]
pub(super) struct TreeMemory {
    /// The pieces that are shared without a file: by the inode, the most that was mapped of each at once.
    shared_segments: BTreeMap<u64, u64>,
}

impl TreeMemory {
    /// The memory of a process and its descendants, in bytes: roughly if that is below the bound, else
    /// exactly, because looking closely takes long.
    ///
    /// # Errors
    /// The tree cannot be listed although its first process is there.
    pub(super) fn measure(&mut self, first: Pid, bound: u64) -> Result<u64, Errno> {
        let processes = tree(first, usize::MAX)?;
        let (mut most, mut tables) = (0_u64, 0_u64);
        for process in &processes {
            let size = ProcessSize::of_process(*process);
            // What is shared counts for each here, so this is never too little.
            most = most.saturating_add(size.resident);
            tables = tables.saturating_add(size.page_tables);
        }
        // Whether any of it is loaded right now says nothing: a piece is let go of as soon as it is touched.
        let rest = tables.saturating_add(self.shared_bytes(&processes));
        if most.saturating_add(rest) <= bound {
            return Ok(most.saturating_add(tables));
        }
        Ok(processes.iter().map(|process| private_bytes(*process)).fold(rest, u64::saturating_add))
    }

    /// The memory that processes share without a file, each piece once, as far as it was ever mapped. What
    /// none of them has mapped any more is gone.
    fn shared_bytes(&mut self, processes: &[i32]) -> u64 {
        let mut pieces: BTreeMap<u64, u64> = BTreeMap::new();
        for process in processes {
            let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
            let mut item: BTreeMap<u64, u64> = BTreeMap::new();
            for (inode, size) in maps.lines().filter_map(shared_segment) {
                let mapped = item.entry(inode).or_default();
                *mapped = mapped.saturating_add(size);
            }
            for (inode, size) in item {
                let before = self.shared_segments.get(&inode).copied().unwrap_or_default();
                let piece = pieces.entry(inode).or_default();
                *piece = size.max(before).max(*piece);
            }
        }
        self.shared_segments = pieces;
        self.shared_segments.values().copied().fold(0, u64::saturating_add)
    }
}

/// How many processes and threads a process and its descendants are; no more than one beyond `most`
/// are counted.
///
/// # Errors
/// The tree cannot be listed although its first process is there.
pub(super) fn count_tree_tasks(first: Pid, most: u64) -> Result<u64, Errno> {
    let mut tasks = 0_u64;
    for process in tree(first, usize::try_from(most).unwrap_or(usize::MAX))? {
        let threads = fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
        tasks = tasks.saturating_add(u64::try_from(threads).unwrap_or(u64::MAX));
        if tasks > most {
            break;
        }
    }
    Ok(tasks)
}

/// How long a process and its descendants have had a processor.
///
/// # Errors
/// The tree cannot be listed although its first process is there.
pub(super) fn cpu_time_of_tree(first: Pid) -> Result<Duration, Errno> {
    // Each before its children and once: what ends meanwhile is missed until the next look, and never
    // counted both by itself and by its parent.
    let mut seen = BTreeSet::new();
    let processes = tree(first, usize::MAX)?.into_iter().filter(|process| seen.insert(*process));
    let ticks = processes.map(|process| {
        cpu_ticks(&fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default())
            .unwrap_or(0)
    });
    let ticks = ticks.fold(0, u64::saturating_add);
    Ok(Duration::from_millis(ticks.saturating_mul(1_000) / clock_ticks_per_second().max(1)))
}

/// Reads `/proc/PID/stat`: the time of the process itself and of the children that it took in.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let times = fields_from_state(stat)?.skip(11).take(4);
    times.map(|field| field.parse::<u64>().ok()).sum()
}

/// A process and its descendants; when they are more than `most`, not all of them.
fn tree(first: Pid, most: usize) -> Result<Vec<i32>, Errno> {
    let first = first.as_raw_nonzero().get();
    let mut all = Vec::new();
    let mut waiting = vec![first];
    while let Some(process) = waiting.pop() {
        match children(process) {
            Some(mut children) => waiting.append(&mut children),
            // Others may end at any time; the first one only when the call is over, which the
            // caller notices next.
            None if process == first && fs::exists(format!("/proc/{process}")).unwrap_or(true) => {
                return Err(Errno::ACCESS);
            }
            None => {}
        }
        all.push(process);
        if all.len() > most {
            break;
        }
    }
    Ok(all)
}

/// How many processes and threads this user has on the whole machine.
pub(crate) fn count_user_tasks() -> u64 {
    let text = getuid().as_raw().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let tasks = entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
        let is_own = field("Uid:")?.split_whitespace().next() == Some(text.as_str());
        field("Threads:")?.trim().parse::<u64>().ok().filter(|_| is_own)
    });
    tasks.sum()
}

fn children(process: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        all.extend(list.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    Some(all)
}

/// The size of a process, in bytes; nothing of one that is gone.
#[derive(Default, Debug, PartialEq, Eq)]
struct ProcessSize {
    /// All that it has loaded.
    resident: u64,
    /// What the kernel needs to know where all that is.
    page_tables: u64,
}

impl ProcessSize {
    fn of_process(process: i32) -> Self {
        Self::read(&fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default())
    }

    /// Reads `/proc/PID/status`.
    fn read(status: &str) -> Self {
        let mut size = Self::default();
        for line in status.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let field = match name {
                "VmRSS" => &mut size.resident,
                "VmPTE" => &mut size.page_tables,
                _ => continue,
            };
            *field = kilobytes(value).unwrap_or(0);
        }
        size
    }
}

/// A number of kilobytes as the kernel writes them, in bytes.
fn kilobytes(text: &str) -> Option<u64> {
    let number: u64 = text.trim().strip_suffix(" kB")?.trim_end().parse().ok()?;
    Some(number.saturating_mul(1024))
}

/// A process's own memory, and its part of what it shares with others since a fork. Files that are
/// mapped are left out: the kernel drops them when it needs room. If this cannot be had, everything
/// counts.
fn private_bytes(process: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
    line.and_then(kilobytes).unwrap_or_else(|| ProcessSize::of_process(process).resident)
}

/// Reads a line of `/proc/PID/maps`: the inode and the size of a piece of memory that is shared
/// without a file, which the kernel shows as a deleted `/dev/zero`.
fn shared_segment(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let is_shared = words.next()?.ends_with('s');
    let (inode, path) = (words.nth(2)?.parse().ok()?, words.next()?);
    let address = |text| u64::from_str_radix(text, 16).ok();
    let size = address(to)?.checked_sub(address(from)?)?;
    (is_shared && path == "/dev/zero").then_some((inode, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let status = "Name:\tx: 7 kB\nVmPeak:\t   99999 kB\nVmRSS:\t    1708 kB\nRssShmem:\t       4 kB\n\
            VmPTE:\t      48 kB\nThreads:\t1\n";
        let size = ProcessSize { resident: 1708 << 10, page_tables: 48 << 10 };
        assert_eq!(ProcessSize::read(status), size);
        assert_eq!(ProcessSize::read("Name:\tzombie\nVmRSS:\tmuch\n"), ProcessSize::default());
        assert!(ProcessSize::of_process(std::process::id().cast_signed()).resident > 0);
    }

    #[test]
    fn processor_times_are_read() {
        let stat = "7 (a) R 1 b) S 1 7 7 0 -1 4194560 98 1043 0 2 10 20 300 4000 20 0 1 0 55 1 2 3";
        assert_eq!(cpu_ticks(stat), Some(4_330));
        for other in ["", "7 (x) S 1 7", "7 (x) S 1 7 7 0 -1 4194560 98 1043 0 2 10 20 300 x 20 0"]
        {
            assert_eq!(cpu_ticks(other).unwrap_or(0), 0, "{other}");
        }
    }

    #[test]
    fn shared_memory_is_found_among_maps() {
        let shared = "7f00-9f00 rw-s 00000000 00:01 2051                       /dev/zero (deleted)";
        assert_eq!(shared_segment(shared), Some((2051, 0x2000)));
        for other in [
            "7f00-9f00 rw-p 00000000 00:01 2051                       /dev/zero (deleted)",
            "7f00-9f00 r-xp 00000000 fe:00 77                         /usr/bin/cat",
            "7f00-9f00 rw-p 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(shared_segment(other), None, "{other}");
        }
    }
}
