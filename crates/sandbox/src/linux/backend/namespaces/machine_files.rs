//! The files of `/proc` and `/sys` that tell of the machine, as a call sees them: its processors and
//! its limits, and nothing of what else the machine does.
//!
//! A `/proc` that shows processes alone (`subset=pid`) has no place for such files. So it is mounted
//! as a whole, the files are mounted over their names, and then all other names are taken from it:
//! what the kernel looks up from then on is processes. No program runs before that.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::system::sysinfo;
use rustix::thread::sched_getaffinity;
use rustix::time::{ClockId, clock_gettime};

use super::cgroup_files::{self, Hierarchies};
use super::generated_files::{mount_over, write_file};
use super::root::Root;
use crate::linux::kernel::errno;
use crate::linux::landlock::LandlockAccess;

/// Files of the machine that a call sees with a content made for it, in `/proc`.
const PROC_FILES: [&str; 5] = ["cpuinfo", "loadavg", "meminfo", "stat", "uptime"];

/// Makes the parts of `/sys` that say the same to every call of a run, and a place for the others.
///
/// # Errors
/// One cannot be made.
pub(super) fn write_system_files(root: &mut Root) -> Result<(), Errno> {
    let all = format!("{}\n", processor_range(processors()));
    for name in ["online", "possible", "present"] {
        let path = format!("sys/devices/system/cpu/{name}");
        let mut file = File::from(root.make_file(path.as_ref(), Mode::from_raw_mode(0o444))?);
        file.write_all(all.as_bytes()).map_err(|error| errno(&error))?;
    }
    root.make_directory(cgroup_files::PLACE.trim_start_matches('/').as_ref())?;
    root.allow("sys/devices", LandlockAccess::Read)
}

/// Puts the files of a call over their names, in a `/proc` that shows everything and in `/sys`, and gives what
/// Landlock has to allow of those in `/sys`. `memory` is what the call may have. `/tmp` is private to the call
/// by now, and still empty.
///
/// # Errors
/// A file cannot be made or mounted.
pub(super) fn mount_machine_files(memory: u64) -> Result<Vec<(OwnedFd, LandlockAccess)>, Errno> {
    let machine = sysinfo();
    let total = machine.totalram.saturating_mul(machine.mem_unit.into());
    let memory = memory.min(total);
    let hierarchies = Hierarchies::read()?;
    let mut texts = vec![("cgroups", hierarchies.controllers_text())];
    for name in PROC_FILES {
        texts.push((name, proc_text(name, memory)?));
    }
    for (name, text) in texts {
        let draft = format!("/tmp/{name}");
        write_file(&draft, &text)?;
        mount_over(&draft, &format!("/proc/{name}"))?;
    }
    hierarchies.mount_files(memory, &processor_range(processors()))
}

fn proc_text(name: &str, memory: u64) -> Result<String, Errno> {
    let up = clock_gettime(ClockId::Boottime).tv_sec;
    let count = processors();
    Ok(match name {
        "cpuinfo" => processor_text(count),
        "loadavg" => "0.00 0.00 0.00 1/1 1\n".to_owned(),
        "meminfo" => memory_text(memory / 1_024),
        "uptime" => format!("{up}.00 0.00\n"),
        _ => {
            let started = clock_gettime(ClockId::Realtime).tv_sec.saturating_sub(up);
            let idle = "0 0 0 0 0 0 0 0 0 0";
            let mut text = format!("cpu  {idle}\n");
            for number in 0..count {
                writeln!(text, "cpu{number} {idle}").map_err(|_| Errno::NOMEM)?;
            }
            text + &format!(
                "intr 0\nctxt 0\nbtime {started}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
            )
        }
    })
}

/// What `/proc/meminfo` says where all of it is free. Sizes are in units of 1,024 bytes.
fn memory_text(kilobytes: u64) -> String {
    let mut text = String::new();
    for (name, size) in [
        ("MemTotal", kilobytes),
        ("MemFree", kilobytes),
        ("MemAvailable", kilobytes),
        ("Buffers", 0),
        ("Cached", 0),
        ("SwapCached", 0),
        ("Active", 0),
        ("Inactive", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Shmem", 0),
        ("Slab", 0),
        ("SReclaimable", 0),
        ("SUnreclaim", 0),
    ] {
        let name = format!("{name}:");
        text.push_str(&format!("{name:<16}{size:>8} kB\n"));
    }
    text
}

/// What `/proc/cpuinfo` says of processors of which nothing but their number is known.
fn processor_text(count: usize) -> String {
    let one = |number| {
        format!(
            "processor\t: {number}\nvendor_id\t: unknown\nmodel name\t: unknown\ncpu MHz\t\t: 0.000\n\
             physical id\t: 0\nsiblings\t: {count}\ncore id\t\t: {number}\ncpu cores\t: {count}\n\n"
        )
    };
    (0..count).map(one).collect()
}

/// The processors that this process may use.
fn processors() -> usize {
    let usable = sched_getaffinity(None).map_or(1, |set| set.count());
    usize::try_from(usable).unwrap_or(1).max(1)
}

/// All of them, as `/sys` writes it.
fn processor_range(count: usize) -> String {
    match count.saturating_sub(1) {
        0 => "0".to_owned(),
        last => format!("0-{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_form_of_the_kernels() {
        assert!(memory_text(1_048_576).starts_with("MemTotal:        1048576 kB\nMemFree:"));
        assert_eq!(processor_text(3).matches("processor\t: ").count(), 3);
        assert_eq!([1, 2, 64].map(processor_range), ["0", "0-1", "0-63"]);
        let text = proc_text("stat", 0).unwrap();
        assert!(text.starts_with("cpu  0 0") && text.contains("\ncpu0 0"), "{text}");
    }
}
