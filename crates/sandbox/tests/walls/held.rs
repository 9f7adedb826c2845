//! Commands that are made ready and begin later, and commands that are ended just as they end.

use std::time::{Duration, Instant};

use capsule_sandbox::{CommandWatcher, Launch, OutputKind, SandboxBackend as _, Termination};

use crate::Test;
use crate::bed::{Bed, Nobody, launch, pipeline, text};
use crate::life::{processes_with, wait_until};

pub(crate) const TESTS: &[Test] = &[
    ("a_held_command_has_not_begun", a_held_command_has_not_begun),
    ("what_never_begins_is_never_run", what_never_begins_is_never_run),
    ("time_counts_from_the_beginning", time_counts_from_the_beginning),
    ("the_executor_keeps_the_time_by_itself", the_executor_keeps_the_time_by_itself),
    (
        "an_end_that_is_asked_for_too_late_ends_nothing",
        an_end_that_is_asked_for_too_late_ends_nothing,
    ),
];

/// As long as a command would have taken to begin, many times over.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

fn marker(number: u32) -> String {
    format!("4{number}{}", std::process::id())
}

fn a_held_command_has_not_begun() {
    let mut bed = Bed::plain();
    for round in 0..3 {
        let marker = marker(round);
        let script = format!("echo $$; exec sleep {marker}");
        let mut long = launch("/bin/sh", &["sh", "-c", &script]);
        long.limits.timeout_ms = 1_000;
        let held = bed.executor.prepare(long).unwrap();
        std::thread::sleep(LONG_ENOUGH);
        assert_eq!(processes_with(&marker), 0, "round {round}");
        let exit = bed.begin(held, &mut Nobody);
        assert_eq!(exit.termination, Termination::TimedOut, "round {round}");
        assert!(!exit.stdout.bytes.is_empty(), "round {round}: it began");
        assert_eq!(processes_with(&marker), 0, "round {round}");
    }
}

/// Without the word nothing begins, whatever becomes of whoever should have said it.
fn what_never_begins_is_never_run() {
    let mut bed = Bed::plain();
    let (marker, id) = (marker(8), bed.executor.id());
    let long = launch("/bin/sleep", &["sleep", &marker]);
    drop(bed.executor.prepare(long).unwrap());
    std::thread::sleep(LONG_ENOUGH);
    assert_eq!(processes_with(&marker), 0);
    // The next one takes its place, and so does one behind a command that could not have begun.
    let wrong = launch("/bin/sh", &["sh", "-c", "exit 4"]);
    drop(bed.executor.prepare(pipeline(vec![wrong.stages[0].clone(); 2])).unwrap());
    drop(bed.executor.prepare(Launch { cwd: "missing".into(), ..wrong.clone() }).unwrap());
    for _ in 0..3 {
        let next = bed.executor.run(wrong.clone(), &mut Nobody).unwrap();
        assert_eq!(next.termination, Termination::Exited(4));
    }
    assert_eq!((bed.executor.id(), processes_with(&marker)), (id, 0));

    let mut bed = Bed::plain();
    let held = bed.executor.prepare(launch("/bin/sleep", &["sleep", &marker])).unwrap();
    let id = bed.executor.id();
    drop(bed);
    wait_until("the executor is gone", || !std::fs::exists(format!("/proc/{id}")).unwrap());
    drop(held);
    assert_eq!(processes_with(&marker), 0);
}

fn time_counts_from_the_beginning() {
    let mut bed = Bed::plain();
    let mut short = launch("/bin/true", &["true"]);
    short.limits.timeout_ms = 600;
    let held = bed.executor.prepare(short).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let exit = bed.begin(held, &mut Nobody);
    assert_eq!((exit.termination, exit.reached_limits), (Termination::Exited(0), Vec::new()));
    let mut long = launch("/bin/sleep", &["sleep", "60"]);
    long.limits.timeout_ms = 300;
    let held = bed.executor.prepare(long).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let since = Instant::now();
    let exit = bed.begin(held, &mut Nobody);
    assert_eq!(exit.termination, Termination::TimedOut);
    let took = since.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(3), "{took:?}");
}

/// Does not come back from what it is told until no such process is left.
struct Stuck {
    marker: String,
    since: Instant,
    freed: Option<Duration>,
}

impl CommandWatcher for Stuck {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {
        wait_until("somebody else ends it", || processes_with(&self.marker) == 0);
        self.freed = Some(self.since.elapsed());
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Whoever reads the output may be held up; the time is kept all the same, from the beginning on.
fn the_executor_keeps_the_time_by_itself() {
    let mut bed = Bed::plain();
    let marker = marker(9);
    let script = format!("sleep {marker} & echo out; wait");
    let mut noisy = launch("/bin/sh", &["sh", "-c", &script]);
    noisy.limits.timeout_ms = 1_200;
    let held = bed.executor.prepare(noisy).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    let mut stuck = Stuck { marker, since: Instant::now(), freed: None };
    let exit = bed.begin(held, &mut stuck);
    assert_eq!(
        (exit.termination, text(&exit.stdout.bytes).as_str()),
        (Termination::TimedOut, "out\n")
    );
    let freed = stuck.freed.unwrap();
    assert!(freed >= Duration::from_millis(1_200) && freed < Duration::from_secs(3), "{freed:?}");
}

/// A command that ends by itself while its end is asked for is over, and the next one is not ended in its
/// place.
fn an_end_that_is_asked_for_too_late_ends_nothing() {
    let mut bed = Bed::plain();
    let mut ends = [0_usize; 2];
    for round in 0..200_u64 {
        let mut short = launch("/bin/sleep", &["sleep", "0.004"]);
        short.limits.timeout_ms = 3 + round % 8;
        match bed.try_run(short).unwrap().termination {
            Termination::Exited(0) => ends[0] += 1,
            Termination::TimedOut => ends[1] += 1,
            other => panic!("round {round}: {other:?}"),
        }
        let exit = bed.try_run(launch("/bin/true", &["true"])).unwrap();
        assert_eq!(exit.termination, Termination::Exited(0), "round {round}");
    }
    assert!(ends[1] > 0, "none was ended: {ends:?}");
}
