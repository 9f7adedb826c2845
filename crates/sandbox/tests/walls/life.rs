//! Who dies with whom, and what is left behind: nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use capsule_base::root_names::RootNames;
use capsule_sandbox::{
    CommandWatcher, EXECUTOR_ARGUMENT, Executor, OutputKind, SandboxBackend as _, SandboxError,
    SandboxView, Termination,
};

use crate::Test;
use crate::bed::{Bed, Nobody, PROBE, launch, mask, own, text};
use crate::probe;

pub(crate) const TESTS: &[Test] = &[
    ("a_thousand_calls_leave_nothing", a_thousand_calls_leave_nothing),
    ("failed_calls_leave_nothing", failed_calls_leave_nothing),
    ("four_executors_at_once", four_executors_at_once),
    ("executor_outlives_the_thread_that_started_it", executor_outlives_the_thread_that_started_it),
    ("a_torn_call_ends_the_executor", a_torn_call_ends_the_executor),
    ("killing_the_executor_ends_the_call", killing_the_executor_ends_the_call),
    ("killing_the_deciding_process_leaves_nothing", killing_the_deciding_process_leaves_nothing),
    ("parting_leaves_nothing", parting_leaves_nothing),
    ("nobody_stands_by_behind_the_last_command", nobody_stands_by_behind_the_last_command),
    ("a_view_can_be_built_ahead", a_view_can_be_built_ahead),
];

/// The argument that makes the test binary a deciding process of its own.
pub(crate) const DECIDER: &str = "__decider";

/// How many processes have a text in their command line.
pub(crate) fn processes_with(text: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let own = entry.file_name().to_str() == Some(&std::process::id().to_string());
            !own && words.windows(text.len()).any(|window| window == text.as_bytes())
        })
        .count()
}

pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        // What lives on does so for much longer; a machine may stand still for a while.
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Everything that could be left behind.
#[derive(Debug, PartialEq)]
struct Belongings {
    descriptors: usize,
    executor_descriptors: usize,
    mounts: usize,
    cgroups: usize,
    temporary: usize,
}

fn belongings(executor: Option<u32>) -> Belongings {
    let count = |path: &str| fs::read_dir(path).map_or(0, Iterator::count);
    // By the number of whoever made it: others may be at work on this machine.
    let makers = [Some(std::process::id()), executor].map(|id| format!("-{}-", id.unwrap_or(0)));
    let temporary = |name: &str| {
        name.starts_with("capsule-") && makers.iter().any(|maker| name.contains(maker))
    };
    let temporaries = |path: &Path| {
        fs::read_dir(path).map_or(0, |entries| {
            entries
                .flatten()
                .filter(|entry| temporary(&entry.file_name().to_string_lossy()))
                .count()
        })
    };
    Belongings {
        descriptors: count("/proc/self/fd"),
        // Only root may look into the executor.
        executor_descriptors: executor.map_or(0, |id| count(&format!("/proc/{id}/fd"))),
        mounts: fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count(),
        cgroups: executor.map_or(0, |id| count_cgroups(&format!("capsule-*-{id}"))),
        temporary: temporaries(&std::env::temp_dir()),
    }
}

/// The control groups of a name.
fn cgroups(name: &str) -> Vec<String> {
    let found = Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name", name])
        .stderr(Stdio::null())
        .output()
        .unwrap();
    text(&found.stdout).lines().map(str::to_owned).collect()
}

fn count_cgroups(name: &str) -> usize {
    cgroups(name).len()
}

/// The control groups of executors that are gone: others are at work beside this world.
fn abandoned_cgroups() -> BTreeSet<String> {
    let groups = cgroups("capsule-*").into_iter();
    let is_abandoned = |group: &String| {
        let id = group.rsplit_once('-').map_or("", |(_, id)| id);
        !Path::new("/proc").join(id).exists()
    };
    groups.filter(is_abandoned).collect()
}

fn a_thousand_calls_leave_nothing() {
    let mut bed = Bed::plain();
    let id = bed.executor.id();
    bed.run("/bin/true", &["true"]);
    let children = |id: u32| {
        fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap().split(' ').count()
    };
    // The one that stands by, where one does; and an empty word at the end.
    let idle = if crate::world::current().is_lower() { 1 } else { 2 };
    wait_until("the first call is over", || children(id) == idle);
    // What the executor held of it is closed right after.
    std::thread::sleep(Duration::from_millis(50));
    let before = belongings(Some(id));
    for round in 0..1_000 {
        match round % 4 {
            0 => drop(bed.run("/bin/true", &["true"])),
            1 => drop(bed.probe("write /tmp/x\nwrite /dev/shm/y")),
            2 => drop(bed.run("/bin/sh", &["sh", "-c", "sleep 60 & sleep 60 & exit 3"])),
            _ => {
                let mut slow = launch("/bin/sleep", &["sleep", "60"]);
                slow.limits.timeout_ms = 5;
                drop(bed.try_run(slow).unwrap());
            }
        }
    }
    wait_until("only the one that stands by is left", || children(id) == idle);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(belongings(Some(id)), before);
    drop(bed);
    let mut after = belongings(Some(id));
    (after.executor_descriptors, after.descriptors) =
        (before.executor_descriptors, before.descriptors);
    assert_eq!(after.cgroups, 0, "the groups go with the executor");
    wait_until("the executor is gone", || !Path::new(&format!("/proc/{id}")).exists());
}

fn failed_calls_leave_nothing() {
    let mut bed = Bed::plain();
    let id = bed.executor.id();
    bed.run("/bin/true", &["true"]);
    std::thread::sleep(Duration::from_millis(50));
    let before = belongings(Some(id));
    for round in 0..60 {
        let mut wrong = launch("/bin/true", &["true"]);
        match round % 4 {
            0 => wrong.stages[0].program.identity.inode += 1,
            1 => wrong.stages[0].program.path = "/missing".into(),
            2 => wrong.cwd = "missing".into(),
            _ => wrong.stages[0].argv.push("a\0".into()),
        }
        assert!(bed.try_run(wrong).is_err());
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(belongings(Some(id)), before);
    assert_eq!(bed.ask("read /workspace/file"), "content");
}

fn four_executors_at_once() {
    let workers: Vec<_> = (0..4)
        .map(|number| {
            std::thread::spawn(move || {
                let content = format!("content {number}");
                let mut bed =
                    Bed::new(|workspace| fs::write(workspace.join("file"), &content).unwrap(), &[]);
                for _ in 0..50 {
                    assert_eq!(bed.ask("read /workspace/file"), content);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}

fn executor_outlives_the_thread_that_started_it() {
    let mut bed = std::thread::spawn(Bed::plain).join().unwrap();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(bed.ask("read /workspace/file"), "content");
    }
}

/// Panics when something is written.
struct Panicking;

impl CommandWatcher for Panicking {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {
        panic!("as planned");
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Whoever is torn away from a call must not take its end for that of the next one.
fn a_torn_call_ends_the_executor() {
    let mut bed = Bed::plain();
    let marker = format!("5{}55", std::process::id());
    let script = format!("echo out; sleep {marker}");
    let noisy = launch("/bin/sh", &["sh", "-c", &script]);
    let torn = std::panic::AssertUnwindSafe(|| bed.executor.run(noisy, &mut Panicking));
    assert!(std::panic::catch_unwind(torn).is_err());
    let next = bed.try_run(launch("/bin/true", &["true"]));
    assert!(matches!(next, Err(SandboxError::ExecutorDied { .. })), "{next:?}");
    wait_until("the command is gone", || processes_with(&marker) == 0);
}

fn killing_the_executor_ends_the_call() {
    for delay in [0, 1, 2, 5, 10, 20, 50] {
        let mut bed = Bed::plain();
        let id = bed.executor.id();
        let marker = format!("6{}{delay:03}", std::process::id());
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(delay));
            unsafe { libc::kill(i32::try_from(id).unwrap(), libc::SIGKILL) };
        });
        let start = Instant::now();
        let mut long = launch("/bin/sleep", &["sleep", &marker]);
        long.limits.timeout_ms = 20_000;
        let got = bed.try_run(long);
        assert!(matches!(got, Err(SandboxError::ExecutorDied { .. })), "{delay} ms: {got:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        killer.join().unwrap();
        wait_until("the command dies, too", || processes_with(&marker) == 0);
        wait_until("its groups go", || count_cgroups(&format!("capsule-*-{id}")) == 0);
        let again = bed.try_run(launch("/bin/true", &["true"]));
        assert!(matches!(again, Err(SandboxError::ExecutorDied { .. })), "{again:?}");
    }
}

/// A deciding process: starts an executor that carries a mark, and runs a tree of processes that
/// carries it too, over and over.
pub(crate) fn decide(words: &[String]) -> ExitCode {
    let marker = &words[0];
    let folder = &words[1];
    let arguments = [EXECUTOR_ARGUMENT.as_ref(), marker.as_ref()];
    let mut executor = Executor::start_with("/proc/self/exe".as_ref(), &arguments).unwrap();
    let workspace = fs::File::open(folder).unwrap().into();
    executor
        .enter(SandboxView {
            floor: crate::world::current().floor(),
            workspace,
            root_names: RootNames::default(),
            staging: None,
            hidden: Vec::new(),
            programs: own(),
            toolchains: Vec::new(),
            repository: None,
            git: capsule_sandbox::GitFiles::default(),
        })
        .unwrap();
    if words.get(2).is_some() {
        executor.run(launch("/bin/true", &["true"]), &mut Nobody).unwrap();
        executor.detach();
        return ExitCode::SUCCESS;
    }
    loop {
        let mut tree = launch("/proc/self/exe", &["probe", probe::ARGUMENT, "tree", "2", marker]);
        tree.stages[0].program.path = PROBE.into();
        tree.limits.timeout_ms = 6;
        executor.run(tree, &mut Nobody).unwrap();
    }
}

fn killing_the_deciding_process_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("mark-{}-kill", std::process::id());
    let abandoned = abandoned_cgroups();
    let rounds = 300;
    for round in 0..rounds {
        let mut decider = Command::new("/proc/self/exe")
            .args([DECIDER, &marker, folder.path().to_str().unwrap()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before it has started an executor to the middle of a call; spread evenly, with
        // fractions of a millisecond.
        let delay = Duration::from_micros(u64::from(round * 7_919_u32 % 25_000));
        std::thread::sleep(delay);
        decider.kill().unwrap();
        decider.wait().unwrap();
        wait_until(&format!("round {round}, after {delay:?}"), || processes_with(&marker) == 0);
    }
    wait_until("the groups go, too", || abandoned_cgroups().is_subset(&abandoned));
}

fn parting_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("mark-{}-part", std::process::id());
    for _ in 0..20 {
        let status = Command::new("/proc/self/exe")
            .args([DECIDER, &marker, folder.path().to_str().unwrap(), "part"])
            .status()
            .unwrap();
        assert!(status.success());
        wait_until("the executor goes by itself", || processes_with(&marker) == 0);
    }
}

fn nobody_stands_by_behind_the_last_command() {
    let mut bed = Bed::plain();
    let id = bed.executor.id();
    let children = || fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let mut last = launch("/bin/true", &["true"]);
    last.is_last = true;
    assert_eq!(bed.try_run(last.clone()).unwrap().termination, Termination::Exited(0));
    wait_until("nobody stands by", || children().is_empty());
    // Should another one come, it finds the same walls.
    assert_eq!(bed.ask("read file"), "content");
    assert_eq!(bed.try_run(last).unwrap().termination, Termination::Exited(0));
    wait_until("nobody stands by again", || children().is_empty());
}

fn a_view_can_be_built_ahead() {
    let view = |folder: &Path| SandboxView {
        floor: crate::world::current().floor(),
        workspace: fs::File::open(folder).unwrap().into(),
        root_names: RootNames::default(),
        staging: None,
        hidden: vec![mask(b"hidden")],
        programs: own(),
        toolchains: Vec::new(),
        repository: None,
        git: capsule_sandbox::GitFiles::default(),
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "content").unwrap();
    fs::write(folder.path().join("hidden"), "secret").unwrap();
    let mut executor = Executor::start().unwrap();
    executor.begin_enter(view(folder.path())).unwrap();
    for _ in 0..2 {
        let mut reader = launch("/bin/sh", &["sh", "-c", "cat file hidden"]);
        reader.hidden = vec![mask(b"hidden")];
        let exit = executor.run(reader, &mut Nobody).unwrap();
        assert_eq!(
            (text(&exit.stdout.bytes).as_str(), exit.termination),
            ("content", Termination::Exited(1))
        );
    }
    // What could not be shown is told to whoever wants to run something.
    let gone = tempfile::tempdir().unwrap();
    let view = view(gone.path());
    drop(gone);
    let mut executor = Executor::start().unwrap();
    executor.begin_enter(view).unwrap();
    assert!(executor.wait_for_view().is_err());
    let ran = executor.run(launch("/bin/true", &["true"]), &mut Nobody);
    assert!(ran.is_err(), "{ran:?}");
}
