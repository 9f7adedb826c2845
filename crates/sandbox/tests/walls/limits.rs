//! Bounds.

use std::cell::Cell;
use std::time::{Duration, Instant};

use capsule_core::confinement::{EnforcementLevel, ProcessLimits, ResourceLimit};
use capsule_sandbox::{
    CapturedOutput, CommandResult, CommandWatcher, DirectWrites, Launch, OutputKind,
    SandboxBackend as _, Termination,
};

use crate::Test;
use crate::bed::{Bed, Nobody, Rows, launch, text};
use crate::probe;
use crate::world::{self, World};

pub(crate) const TESTS: &[Test] = &[
    ("time_is_bounded", time_is_bounded),
    ("processor_time_is_bounded", processor_time_is_bounded),
    ("processor_time_of_all_is_bounded", processor_time_of_all_is_bounded),
    ("memory_is_bounded", memory_is_bounded),
    ("memory_of_a_whole_tree_is_bounded", memory_of_a_whole_tree_is_bounded),
    ("shared_memory_is_bounded", shared_memory_is_bounded),
    ("what_the_kernel_needs_for_it_counts", what_the_kernel_needs_for_it_counts),
    (
        "what_is_left_does_not_count_for_the_next_command",
        what_is_left_does_not_count_for_the_next_command,
    ),
    ("processes_are_bounded", processes_are_bounded),
    ("the_command_before_takes_no_room", the_command_before_takes_no_room),
    ("threads_are_bounded", threads_are_bounded),
    ("tmp_is_bounded", tmp_is_bounded),
    ("files_are_bounded", files_are_bounded),
    ("output_is_kept_up_to_a_bound", output_is_kept_up_to_a_bound),
    ("a_flood_is_ended", a_flood_is_ended),
    ("daemons_die_with_the_command", daemons_die_with_the_command),
    ("what_is_left_running_is_told", what_is_left_running_is_told),
    ("what_was_reached_is_told", what_was_reached_is_told),
    ("a_storm_of_processes_ends_with_the_command", a_storm_of_processes_ends_with_the_command),
    ("a_bomb_that_ends_is_ended", a_bomb_that_ends_is_ended),
    ("a_background_child_does_not_hold_the_call", a_background_child_does_not_hold_the_call),
    ("a_cancelled_command_is_ended", a_cancelled_command_is_ended),
    ("bounds_say_how_they_hold", bounds_say_how_they_hold),
    ("peaks_are_told", peaks_are_told),
];

fn probe(bed: &mut Bed, words: &[&str], change: impl FnOnce(&mut ProcessLimits)) -> CommandResult {
    bed.probe_with("", |launch| {
        launch.stages[0].argv =
            ["probe", probe::ARGUMENT].iter().chain(words).map(Into::into).collect();
        change(&mut launch.limits);
    })
}

fn took(exit: &CommandResult) -> Duration {
    Duration::from_micros(exit.micros)
}

fn time_is_bounded() {
    let mut bed = Bed::plain();
    for words in [&["sleep", "60000"][..], &["spin"], &["tree", "3"]] {
        let exit = probe(&mut bed, words, |limits| limits.timeout_ms = 300);
        assert_eq!(exit.termination, Termination::TimedOut, "{words:?}");
        assert!(took(&exit) >= Duration::from_millis(300), "{words:?}: {:?}", took(&exit));
        assert!(took(&exit) < Duration::from_secs(3), "{words:?}: {:?}", took(&exit));
    }
    // What was written until then is kept.
    let mut slow = launch("/bin/sh", &["sh", "-c", "echo early; sleep 60"]);
    slow.limits.timeout_ms = 300;
    let exit = bed.try_run(slow).unwrap();
    assert_eq!(
        (exit.termination, text(&exit.stdout.bytes).as_str()),
        (Termination::TimedOut, "early\n")
    );
    // None at all ends at once.
    let exit = probe(&mut bed, &["sleep", "60000"], |limits| limits.timeout_ms = 0);
    assert_eq!(exit.termination, Termination::TimedOut);
}

fn processor_time_is_bounded() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["spin"], |limits| {
        limits.cpu_ms = 1_000;
        limits.timeout_ms = 20_000;
    });
    assert_eq!(exit.termination, Termination::Signalled(libc::SIGXCPU));
}

/// However many share it, at once or one after the other.
fn processor_time_of_all_is_bounded() {
    const ALL: Termination = Termination::Signalled(libc::SIGXCPU);
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for (script, how, reached) in [
        // Each alone would have as much as all may have.
        ("for i in 1 2 3 4 5 6; do perl -e '1 while 1' & done; wait", ALL, true),
        // And none of these ever has it.
        ("while :; do perl -e '1 for 1..2_000_000'; done", ALL, true),
        // One that takes all by itself is ended by the kernel alone, and who waits for it goes on.
        ("perl -e '1 while 1'; exit 3", Termination::Exited(3), false),
        // What others took before is not counted.
        (BELOW, Termination::Exited(0), false),
        ("true", Termination::Exited(0), false),
    ] {
        let mut all = launch("/bin/sh", &["sh", "-c", script]);
        (all.limits.cpu_ms, all.limits.timeout_ms) = (1_000, 60_000);
        let exit = bed.try_run(all).unwrap();
        let told: &[ResourceLimit] = if reached { &[ResourceLimit::Cpu] } else { &[] };
        let held = exit.termination == how && exit.reached_limits == told;
        rows.check(held, || format!("{script}: {:?} {:?}", exit.termination, exit.reached_limits));
    }
    rows.end();
}

/// Takes more than half a second.
const BELOW: &str = "perl -e '1 while (times)[0] + (times)[1] < 0.6'";

fn memory_is_bounded() {
    let mut bed = Bed::plain();
    let hog = |bed: &mut Bed, mebibytes: &str| {
        probe(bed, &["hog", mebibytes, "1000"], |limits| {
            limits.memory_bytes = 100 << 20;
            limits.timeout_ms = 20_000;
        })
    };
    let exit = hog(&mut bed, "40");
    assert_eq!(
        exit.termination,
        Termination::Exited(0),
        "below the bound: {}",
        text(&exit.stderr.bytes)
    );
    let exit = hog(&mut bed, "400");
    assert_eq!(exit.termination, Termination::MemoryExceeded);
    assert!(exit.peak_memory.unwrap() > 50 << 20, "{:?}", exit.peak_memory);
    let exit = hog(&mut bed, "40");
    assert_eq!(exit.termination, Termination::Exited(0), "the next call has its own");
}

fn memory_of_a_whole_tree_is_bounded() {
    let mut bed = Bed::plain();
    let mut many = launch(
        "/bin/sh",
        &["sh", "-c", "for i in 1 2 3 4; do /probe __probe hog 60 15000 & done; wait"],
    );
    many.limits.memory_bytes = 100 << 20;
    let exit = bed.try_run(many).unwrap();
    // Where the kernel ends one process of several, the shell that waits for it goes on.
    assert!(
        matches!(exit.termination, Termination::MemoryExceeded | Termination::Exited(_)),
        "{:?}",
        exit.termination
    );
    assert_eq!(exit.reached_limits, [ResourceLimit::Memory]);
}

/// Memory that belongs to no process, or to several.
fn shared_memory_is_bounded() {
    let mut bed = Bed::plain();
    let mut hog = |words: &[&str]| {
        probe(&mut bed, words, |limits| {
            limits.memory_bytes = 100 << 20;
            limits.timeout_ms = 20_000;
        })
    };
    assert_eq!(
        hog(&["hog-shared", "60", "1000"]).termination,
        Termination::Exited(0),
        "counted once, not twice"
    );
    // Where the kernel ends the child that touched it, its parent goes on.
    assert_eq!(hog(&["hog-shared", "300", "1000"]).reached_limits, [ResourceLimit::Memory]);
    assert_eq!(
        hog(&["hog-released", "400"]).termination,
        Termination::MemoryExceeded,
        "it stays taken"
    );
    assert_eq!(
        hog(&["hog-cut", "12", "50"]).termination,
        Termination::MemoryExceeded,
        "one page is as good as all"
    );
    let unmapped = hog(&["hog-unmapped", "300"]);
    if matches!(world::current(), World::Root | World::Landlock) {
        assert_eq!(unmapped.termination, Termination::MemoryExceeded);
    } else {
        // Where nobody would see it, it cannot be made.
        assert_eq!(text(&unmapped.stdout.bytes), "ENOSYS\n");
    }
}

/// Where memory is counts, too: a page of the kernel's for every two megabytes that are only looked at.
fn what_the_kernel_needs_for_it_counts() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["hog-tables", "100000"], |limits| {
        limits.memory_bytes = 100 << 20;
        limits.timeout_ms = 20_000;
    });
    assert_eq!(exit.termination, Termination::MemoryExceeded, "{}", text(&exit.stdout.bytes));
}

/// Files in `/tmp` and shared memory take memory until the call's namespaces are gone, and they may go
/// after its processes.
fn what_is_left_does_not_count_for_the_next_command() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    for round in 0..12 {
        let left: &[&str] =
            if round % 2 == 0 { &["leave-shared", "80"] } else { &["leave-file", "80"] };
        for words in [left, &["hog", "60", "0"]] {
            let exit = probe(&mut bed, words, |limits| {
                limits.memory_bytes = 100 << 20;
                limits.timeout_ms = 20_000;
            });
            rows.check(exit.termination == Termination::Exited(0), || {
                format!("{round} {words:?}: {:?}", exit.termination)
            });
        }
    }
    rows.end();
}

fn processes_are_bounded() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["bomb", "2000"], |limits| limits.processes = 20);
    if is_counted(&mut bed) {
        assert_eq!(
            (exit.termination, exit.reached_limits),
            (Termination::Signalled(9), vec![ResourceLimit::Processes])
        );
        return;
    }
    assert_eq!(exit.termination, Termination::Exited(0));
    let children: u64 = text(&exit.stdout.bytes).trim().parse().unwrap();
    // Without a control group root is bounded by the highest number of a process only.
    let most = most_processes();
    assert!(children <= most && children >= 10, "{children} children");
    if world::current().is_lower() {
        return;
    }
    assert_eq!(bed.ask("list /proc").split(' ').filter(|n| n.parse::<u32>().is_ok()).count(), 2);
}

/// The first process of a call may still be on its way out when the next one comes.
fn the_command_before_takes_no_room() {
    let mut bed = Bed::plain();
    for round in 0..100 {
        let mut one = launch("/bin/true", &["true"]);
        one.limits.processes = 1;
        if round % 4 == 3 && !world::current().is_lower() {
            // For this one a first process is made while another one stands by.
            one.direct = Some(DirectWrites {
                writable: vec!["".into()],
                read_only: Vec::new(),
                pinned: Vec::new(),
            });
        }
        let exit = bed.try_run(one).unwrap();
        assert_eq!(
            (exit.termination, exit.reached_limits),
            (Termination::Exited(0), Vec::new()),
            "round {round}"
        );
    }
}

/// How many a program may have at most that is allowed 20 in all.
fn most_processes() -> u64 {
    match world::current() {
        World::NoCgroups => 301,
        // Others of the same user, who end meanwhile, leave room.
        World::LandlockUser => 500,
        // Besides itself 19, and one in the place of the process that stands by for the next call, as
        // long as that has not come.
        _ => 20,
    }
}

/// Whether processes are only counted, and those that are too many ended with all others.
fn is_counted(bed: &mut Bed) -> bool {
    let walls = bed.executor.sandbox_status().unwrap();
    let processes = walls.limits.iter().find(|own| own.limit == ResourceLimit::Processes).unwrap();
    processes.detail.starts_with("counted")
}

fn threads_are_bounded() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["threads", "2000"], |limits| limits.processes = 20);
    if is_counted(&mut bed) {
        assert_eq!(
            (exit.termination, exit.reached_limits),
            (Termination::Signalled(9), vec![ResourceLimit::Processes])
        );
        return;
    }
    let threads: u64 = text(&exit.stdout.bytes).trim().parse().unwrap();
    let most = most_processes();
    assert!(threads <= most && threads >= 10, "{threads} threads");
}

fn tmp_is_bounded() {
    let mut bed = Bed::plain();
    for (bytes, path) in
        [(10_000_000, "/tmp/x"), (10_000_000, "/dev/shm/x"), (1_000_000, "/var/tmp/x")]
    {
        let exit = probe(&mut bed, &["fill", path], |limits| limits.tmp_bytes = bytes);
        let out = text(&exit.stdout.bytes);
        let (written, error) = out.trim().split_once(' ').unwrap();
        assert_eq!(error, "ENOSPC");
        let written: u64 = written.parse().unwrap();
        assert!(written <= bytes + 65_536 && written >= bytes / 2, "{path}: {written}");
        // What lies there takes room from the next call.
        let next = probe(&mut bed, &["fill", "/tmp/next"], |limits| limits.tmp_bytes = bytes / 2);
        assert_eq!(text(&next.stdout.bytes), "0 ENOSPC\n");
        bed.run("/bin/sh", &["sh", "-c", "rm /tmp/x /tmp/next"]);
    }
    let exit = probe(&mut bed, &["fill", "/tmp/x"], |limits| limits.tmp_bytes = 0);
    assert!(text(&exit.stdout.bytes).ends_with("ENOSPC\n"), "none at all is not unbounded");
    // Names take room, too.
    let script = "i=0; while true >/tmp/$i; do i=$((i+1)); done 2>/dev/null; echo $i";
    let mut names = launch("/bin/sh", &["sh", "-c", script]);
    names.limits.timeout_ms = 60_000;
    let exit = bed.try_run(names).unwrap();
    let made: u64 = text(&exit.stdout.bytes).trim().parse().unwrap_or(u64::MAX);
    assert!(made <= 200_000, "{made} files, {:?}", exit.termination);
}

fn files_are_bounded() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["open-many"], |limits| limits.open_files = 64);
    assert_eq!(text(&exit.stdout.bytes).trim(), "61");
    let exit = probe(&mut bed, &["big-file"], |limits| limits.file_bytes = 1_000_000);
    assert_eq!(exit.termination, Termination::Signalled(libc::SIGXFSZ));
}

fn output_is_kept_up_to_a_bound() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["print", "300000", "100000"], |_| {});
    assert_eq!(exit.termination, Termination::Exited(0));
    let kept = |own: &CapturedOutput| (own.bytes.len(), own.tail.len() - own.tail_start, own.total);
    assert_eq!(kept(&exit.stdout), (192_000, 64_000, 300_000));
    assert_eq!(kept(&exit.stderr), (48_000, 16_000, 100_000));
    assert!(exit.stdout.truncated && exit.stderr.truncated);
    let exit = probe(&mut bed, &["print", "10", "0"], |limits| limits.stdout_bytes = 10);
    assert!(!exit.stdout.truncated && exit.stdout.bytes == b"yyyyyyyyyy");
    let exit = probe(&mut bed, &["print", "10", "5"], |limits| {
        limits.stdout_bytes = 0;
        limits.stderr_bytes = 3;
    });
    assert!(exit.stdout.truncated && exit.stdout.bytes.is_empty() && exit.stdout.total == 10);
    assert!(exit.stderr.truncated && exit.stderr.bytes == b"yyy");
}

fn a_flood_is_ended() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["write-for-ever"], |limits| limits.timeout_ms = 30_000);
    assert_eq!(exit.termination, Termination::OutputFlood);
    assert_eq!(exit.stdout.bytes.len(), 192_000);
    assert!(exit.stdout.total >= capsule_base::limits::OUTPUT_DISCARD_BYTES);
}

fn daemons_die_with_the_command() {
    let mut bed = Bed::plain();
    let marker = format!("77007700{}", std::process::id());
    for words in [&["daemon", marker.as_str()][..], &["background", marker.as_str()]] {
        let start = Instant::now();
        let exit = probe(&mut bed, words, |_| {});
        assert_eq!(exit.termination, Termination::Exited(0), "{words:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{words:?} took {:?}", start.elapsed());
        assert_eq!(crate::life::processes_with(&marker), 0, "{words:?}");
    }
    let script = format!("setsid nohup sleep 1{marker} >/dev/null 2>&1 & echo away");
    let exit = bed.run("/bin/sh", &["sh", "-c", &script]);
    assert_eq!(text(&exit.stdout.bytes), "away\n");
    assert_eq!(crate::life::processes_with(&format!("1{marker}")), 0);
}

/// However it tried to get away, and whatever its own end.
fn what_is_left_running_is_told() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let daemon = "exec perl -e 'use POSIX; fork and exit; setsid; fork and exit; sleep 60'";
    for (script, how, left) in [
        ("true", 0, 0),
        ("sleep 0.01 & wait; exit 3", 3, 0),
        ("sleep 60 & sleep 60 & exit 3", 3, 2),
        ("trap '' HUP TERM; (sleep 60; :) & exit 0", 0, 2),
        (&format!("({daemon}); sleep 0.3"), 0, 1),
        ("true", 0, 0),
    ] {
        let exit = bed.run("/bin/sh", &["sh", "-c", script]);
        // The shell between may not have started its own yet.
        let told = exit.left_running == left || exit.left_running == 1 && script.contains("(sleep");
        rows.check(exit.termination == Termination::Exited(how) && told, || {
            format!("{script}: {exit:?}")
        });
    }
    rows.end();
}

fn a_storm_of_processes_ends_with_the_command() {
    let mut bed = Bed::plain();
    for round in 0..10 {
        let marker = format!("66006600{}{round}", std::process::id());
        let exit = probe(&mut bed, &["storm", &marker], |_| {});
        assert_eq!(exit.termination, Termination::Exited(0));
        // A machine that is busy takes its time to end them all; without an end it would take for ever.
        assert!(took(&exit) < Duration::from_secs(20), "{:?}", took(&exit));
        assert_eq!(crate::life::processes_with(&marker), 0);
    }
}

/// Its processes end all the time, and each that is taken in makes room for another one.
fn a_bomb_that_ends_is_ended() {
    let mut bed = Bed::plain();
    for round in 0..5 {
        let marker = format!("55005500{}{round}", std::process::id());
        let script = format!("$0 = '{marker}'; 1 while defined fork; exit 1");
        let mut bomb = launch("/usr/bin/perl", &["perl", "-e", &script]);
        (bomb.limits.processes, bomb.limits.timeout_ms) = (16, 5_000);
        let exit = bed.try_run(bomb).unwrap();
        assert!(took(&exit) < Duration::from_secs(20), "{:?}", took(&exit));
        assert!(exit.termination != Termination::Exited(0), "{:?}", exit.termination);
        assert_eq!(crate::life::processes_with(&marker), 0);
    }
}

/// What a command ran into is told, and forgotten before the next one.
fn what_was_reached_is_told() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let crowd = "i=0; while [ $i -lt 40 ]; do sleep 3 & i=$((i+1)); done; exit 1";
    // Where nobody refused it any, it ends well, and before anybody looks.
    let quick = "for (1..40) { $pid = fork; exit 1 if !defined $pid; $pid or sleep 3, exit }";
    let quick = format!("exec perl -e '{quick}'");
    for (script, expected) in [
        ("true", None),
        ("cat /dev/zero > /tmp/x", Some(ResourceLimit::Tmp)),
        ("true", None),
        ("rm /tmp/x", None),
        (FAR, Some(ResourceLimit::FileSize)),
        ("while :; do :; done", Some(ResourceLimit::Cpu)),
        (crowd, Some(ResourceLimit::Processes)),
        (&quick, Some(ResourceLimit::Processes)),
        ("true", None),
    ] {
        let mut launch = launch("/bin/sh", &["sh", "-c", &format!("exec 2>/dev/null; {script}")]);
        if expected == Some(ResourceLimit::FileSize) {
            launch = self::launch("/usr/bin/perl", &["perl", "-e", FAR]);
        }
        launch.limits.tmp_bytes = 1_000_000;
        launch.limits.file_bytes = 10_000_000;
        launch.limits.cpu_ms = 1_000;
        launch.limits.processes = 16;
        let exit = bed.try_run(launch).unwrap();
        let told = exit.reached_limits == expected.into_iter().collect::<Vec<_>>();
        rows.check(told, || format!("{script}: {:?} {:?}", exit.reached_limits, exit.termination));
    }
    rows.end();
}

/// Writes beyond the end of what a file may have.
const FAR: &str = "open F, q(>/tmp/y); seek F, 2_000_000_000, 0; print F 1; close F";

fn a_background_child_does_not_hold_the_call() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["background"], |_| {});
    assert_eq!(
        (exit.termination, text(&exit.stdout.bytes).as_str()),
        (Termination::Exited(0), "started\n")
    );
    assert!(took(&exit) < Duration::from_secs(5), "{:?}", took(&exit));
}

/// Cancels after a while, or as soon as something was written.
struct Impatient {
    since: Instant,
    patience: Duration,
    seen: Cell<bool>,
}

impl CommandWatcher for Impatient {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {
        self.seen.set(true);
    }

    fn is_cancelled(&self) -> bool {
        self.seen.get() || self.since.elapsed() > self.patience
    }
}

fn a_cancelled_command_is_ended() {
    let mut bed = Bed::plain();
    let cancel = |bed: &mut Bed, launch: Launch, patience| {
        let since = Instant::now();
        let mut watch = Impatient { since, patience, seen: Cell::new(false) };
        let exit = bed.executor.run(launch, &mut watch).unwrap();
        (exit.termination, since.elapsed())
    };
    let sleep = launch("/bin/sleep", &["sleep", "60"]);
    let (how, after) = cancel(&mut bed, sleep.clone(), Duration::from_millis(200));
    assert_eq!(how, Termination::Cancelled);
    assert!(after < Duration::from_secs(2), "{after:?}");
    let (how, after) = cancel(&mut bed, sleep, Duration::ZERO);
    assert_eq!(how, Termination::Cancelled, "cancelled from the start");
    assert!(after < Duration::from_secs(2), "{after:?}");
    let noisy = launch("/bin/sh", &["sh", "-c", "echo x; sleep 60"]);
    let (how, after) = cancel(&mut bed, noisy, Duration::from_secs(60));
    assert_eq!(how, Termination::Cancelled);
    assert!(after < Duration::from_secs(2), "{after:?}");
    assert_eq!(bed.ask("read /workspace/file"), "content", "the next command runs");
}

fn bounds_say_how_they_hold() {
    let mut bed = Bed::plain();
    let walls = bed.executor.sandbox_status().unwrap().clone();
    let own = world::current().floor().layers();
    for layer in &walls.layers {
        let expected = if own.contains(&layer.layer) {
            EnforcementLevel::Held
        } else {
            EnforcementLevel::Missing
        };
        assert_eq!(layer.level, expected, "{layer:?}");
        assert!(layer.level == EnforcementLevel::Held || !layer.detail.is_empty(), "{layer:?}");
    }
    let of = |bound| walls.limits.iter().find(|held| held.limit == bound).unwrap();
    let (memory, processes) = (of(ResourceLimit::Memory), of(ResourceLimit::Processes));
    // Only the newer control groups count processor time without being asked to.
    let is_counted = memory.detail == "cgroup v2";
    assert_eq!(
        of(ResourceLimit::Cpu).level,
        if is_counted { EnforcementLevel::Held } else { EnforcementLevel::Weaker }
    );
    match world::current() {
        World::Root | World::Bubblewrap => {
            assert_eq!(
                (memory.level, processes.level),
                (EnforcementLevel::Held, EnforcementLevel::Held),
                "{walls:?}"
            );
        }
        World::User => assert_eq!(
            (memory.level, processes.level),
            (EnforcementLevel::Weaker, EnforcementLevel::Weaker)
        ),
        World::Landlock => {
            assert_eq!(
                (memory.level, processes.level),
                (EnforcementLevel::Held, EnforcementLevel::Held),
                "{walls:?}"
            );
            assert_eq!(of(ResourceLimit::Tmp).level, EnforcementLevel::Weaker);
        }
        World::LandlockUser => {
            assert_eq!(
                (memory.level, processes.level),
                (EnforcementLevel::Weaker, EnforcementLevel::Weaker)
            );
            assert_eq!(of(ResourceLimit::Tmp).level, EnforcementLevel::Weaker);
        }
        World::NoCgroups => {
            assert_eq!(
                (memory.level, processes.level),
                (EnforcementLevel::Weaker, EnforcementLevel::Weaker)
            );
            assert_eq!(processes.detail, "pid_max 301");
        }
    }
    assert_eq!(bed.run("/bin/true", &["true"]).sandbox_status, walls);
}

fn peaks_are_told() {
    let mut bed = Bed::plain();
    let exit = probe(&mut bed, &["hog", "50", "2000"], |_| {});
    let peak = exit.peak_memory.unwrap();
    assert!(peak > 45 << 20 && peak < 120 << 20, "{peak}");
    let small = bed.executor.run(launch("/bin/true", &["true"]), &mut Nobody).unwrap();
    assert!(small.peak_memory.unwrap() < 30 << 20, "{:?}", small.peak_memory);
}
