//! How much memory a tree of processes has and how many it are, added up from outside where no control
//! group counts it.
//!
//! This is the weaker means: what is taken and given back between two looks is not seen. Nor is
//! memory that no process has mapped, so the calls that make such memory are not there then. Memory
//! that is shared without a file stays taken when a process lets go of its pages, so all of what is
//! mapped of it counts. What sockets and pipes hold is bounded by the limit of open files alone.

use std::collections::BTreeMap;
use std::fs;

use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::{Pid, getuid};

/// Whether the system lists the children of a process at all.
pub(crate) fn can() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// The memory of a process and its descendants, in bytes: roughly if that is below the bound, else
/// exactly, because looking closely takes long.
///
/// # Errors
/// The tree cannot be listed although its first process is there.
pub(super) fn tree_memory(first: Pid, bound: u64) -> Result<u64, Errno> {
    let processes = tree(first, usize::MAX)?;
    let (mut mapped, mut most) = (0_u64, 0_u64);
    for process in &processes {
        let size = size(*process);
        // What is shared counts for each here, so this is never too little.
        most = most.saturating_add(size.loaded);
        mapped = mapped.saturating_add(size.mapped);
    }
    if most <= bound && mapped <= bound {
        return Ok(most);
    }
    let shared = shared(&processes);
    if most.saturating_add(shared) <= bound {
        return Ok(most);
    }
    Ok(processes.iter().map(|process| own(*process)).fold(shared, u64::saturating_add))
}

/// How many processes and threads a process and its descendants are; no more than one beyond `most`
/// are counted.
///
/// # Errors
/// The tree cannot be listed although its first process is there.
pub(super) fn tree_tasks(first: Pid, most: u64) -> Result<u64, Errno> {
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
pub(crate) fn tasks_of_user() -> u64 {
    let own = getuid().as_raw().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let tasks = entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
        let is_own = field("Uid:")?.split_whitespace().next() == Some(own.as_str());
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

/// The size of a process, in bytes.
struct Size {
    /// All that it has mapped, loaded or not.
    mapped: u64,
    /// All that it has loaded.
    loaded: u64,
}

/// The size of a process by its first two numbers of pages; none of one that is gone.
fn size(process: i32) -> Size {
    let text = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let mut pages = text.split(' ').map(|pages| pages.parse::<u64>().unwrap_or(0));
    let mut next = || pages.next().unwrap_or(0).saturating_mul(page_size() as u64);
    Size { mapped: next(), loaded: next() }
}

/// A process's own memory, and its part of what it shares with others since a fork. Files that are
/// mapped are left out: the kernel drops them when it needs room. If this cannot be had, everything
/// counts.
fn own(process: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or_else(|| size(process).loaded, |kilobytes| kilobytes.saturating_mul(1024))
}

/// The memory that processes share without a file, each piece once, as far as it is mapped.
fn shared(processes: &[i32]) -> u64 {
    let mut pieces: BTreeMap<u64, u64> = BTreeMap::new();
    for process in processes {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for (inode, size) in maps.lines().filter_map(shared_piece) {
            let piece = pieces.entry(inode).or_default();
            *piece = size.max(*piece);
        }
    }
    pieces.values().copied().fold(0, u64::saturating_add)
}

/// Reads a line of `/proc/PID/maps`: the inode and the size of a piece of memory that is shared
/// without a file, which the kernel shows as a deleted `/dev/zero`.
fn shared_piece(line: &str) -> Option<(u64, u64)> {
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
    fn shared_memory_is_found_among_maps() {
        let shared = "7f00-9f00 rw-s 00000000 00:01 2051                       /dev/zero (deleted)";
        assert_eq!(shared_piece(shared), Some((2051, 0x2000)));
        for other in [
            "7f00-9f00 rw-p 00000000 00:01 2051                       /dev/zero (deleted)",
            "7f00-9f00 r-xp 00000000 fe:00 77                         /usr/bin/cat",
            "7f00-9f00 rw-p 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(shared_piece(other), None, "{other}");
        }
    }
}
