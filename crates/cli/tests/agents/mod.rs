//! What is looked for behind an agent.

pub(crate) mod scenarios;

use std::fs;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The command lines of processes that hold a text, once they had time to end.
pub(crate) fn leftover_processes(mark: &str) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let found = processes(mark);
        if found.is_empty() || Instant::now() >= end {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn processes(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_child(child), signal);
}
