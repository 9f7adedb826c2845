//! How much memory a tree of processes has, added up from outside where no control group counts it.
//!
//! This is the weaker means: what is taken and given back between two looks is not seen. Nor is
//! memory that no process has mapped, so the calls that make such memory are not there then.

use std::fs;

use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::Pid;

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
    let processes = tree(first)?;
    // What is shared counts for each here, so this is never too little.
    let most: u64 = processes.iter().map(|process| loaded(*process)).fold(0, u64::saturating_add);
    if most <= bound {
        return Ok(most);
    }
    Ok(processes.iter().map(|process| share(*process)).fold(0, u64::saturating_add))
}

fn tree(first: Pid) -> Result<Vec<i32>, Errno> {
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
    }
    Ok(all)
}

fn children(process: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        all.extend(list.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    Some(all)
}

/// All that a process has loaded.
fn loaded(process: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages.saturating_mul(page_size() as u64)
}

/// A process's share: what is its own, and its part of what it shares with others. Files that are
/// mapped are left out: the kernel drops them when it needs room. If the share cannot be had,
/// everything counts.
fn share(process: i32) -> u64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{process}/smaps_rollup")) else {
        return loaded(process);
    };
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok())
    };
    match (kilobytes("Pss_Anon:"), kilobytes("Pss_Shmem:")) {
        (Some(anonymous), Some(shared)) => anonymous.saturating_add(shared).saturating_mul(1024),
        _ => loaded(process),
    }
}
