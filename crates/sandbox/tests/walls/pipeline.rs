//! Several programs in one call: what flows between them, how each ends, and that nothing of them
//! stays.

use std::time::{Duration, Instant};

use capsule_base::limits;
use capsule_core::confinement::ResourceLimit;
use capsule_sandbox::{
    CommandWatcher, Launch, LaunchStage, RedirectTarget, SandboxBackend as _, SandboxError,
    StandardDevice, StandardStream, StreamRedirect, Termination,
};

use crate::Test;
use crate::bed::{Bed, Rows, launch, pipeline, probe_place, stage, text};
use crate::life::{processes_with, wait_until};
use crate::probe;

pub(crate) const TESTS: &[Test] = &[
    ("pipelines_of_every_length_flow", pipelines_of_every_length_flow),
    ("pipelines_without_sense_are_refused", pipelines_without_sense_are_refused),
    ("every_status_is_told", every_status_is_told),
    ("a_reader_that_has_enough_ends_its_writer", a_reader_that_has_enough_ends_its_writer),
    ("a_call_ends_when_all_programs_have", a_call_ends_when_all_programs_have),
    ("a_program_that_cannot_run_stops_all", a_program_that_cannot_run_stops_all),
    ("each_program_has_its_own_environment", each_program_has_its_own_environment),
    ("stages_have_three_descriptors", stages_have_three_descriptors),
    ("bounds_hold_for_each_and_for_all", bounds_hold_for_each_and_for_all),
    ("a_bomb_in_the_middle_is_bounded", a_bomb_in_the_middle_is_bounded),
    ("ending_a_call_ends_all_programs", ending_a_call_ends_all_programs),
    ("a_long_stream_is_not_held_in_memory", a_long_stream_is_not_held_in_memory),
];

fn shell(line: &str) -> LaunchStage {
    stage("/bin/sh", &["sh", "-c", line])
}

fn cat() -> LaunchStage {
    stage("/bin/cat", &["cat"])
}

/// The probe, doing one thing.
fn probing(words: &[&str]) -> LaunchStage {
    let mut own = stage("/proc/self/exe", &[&["probe", probe::ARGUMENT], words].concat());
    own.program.path = probe_place();
    own
}

fn pipelines_of_every_length_flow() {
    let mut bed = Bed::plain();
    for length in [1, 2, 3, 4, limits::PIPELINE_STAGES] {
        let mut stages = vec![shell("read n; echo $n")];
        stages.extend((1..length).map(|_| shell("read n; echo $((n + 1)); echo $n >&2")));
        let mut launch = pipeline(stages);
        launch.stdin = b"1\n".to_vec();
        let exit = bed.try_run(launch).unwrap();
        assert_eq!(text(&exit.stdout.bytes), format!("{length}\n"), "{length} programs");
        assert_eq!(
            (exit.termination, exit.stages),
            (Termination::Exited(0), vec![Termination::Exited(0); length])
        );
        let mut told: Vec<usize> =
            text(&exit.stderr.bytes).lines().map(|line| line.parse().unwrap()).collect();
        told.sort_unstable();
        assert_eq!(told, (1..length).collect::<Vec<_>>(), "what all of them say arrives");
    }
}

fn pipelines_without_sense_are_refused() {
    let mut bed = Bed::plain();
    let null = || StreamRedirect {
        descriptor: StandardStream::Output,
        target: RedirectTarget::Device(StandardDevice::Null),
    };
    let mut bad = vec![
        pipeline(Vec::new()),
        pipeline((0..=limits::PIPELINE_STAGES).map(|_| cat()).collect()),
    ];
    for change in [
        |stage: &mut LaunchStage| stage.argv.clear(),
        |stage: &mut LaunchStage| stage.argv = vec!["x".into(); limits::ARGV_WORDS],
        |stage: &mut LaunchStage| stage.argv = vec!["x".repeat(limits::ARGV_BYTES).into()],
        |stage: &mut LaunchStage| stage.program.path = "cat".into(),
        |stage: &mut LaunchStage| stage.environment.push(("A\0".into(), "".into())),
    ] {
        let mut wrong = pipeline(vec![cat(), cat()]);
        change(&mut wrong.stages[1]);
        bad.push(wrong);
    }
    let redirected = |to: Vec<StreamRedirect>| {
        let mut launch = pipeline(vec![cat(), cat()]);
        launch.stages[1].redirects = to;
        launch
    };
    bad.push(redirected((0..=limits::STAGE_REDIRECTS).map(|_| null()).collect()));
    let target = RedirectTarget::Create("a\0b".into());
    bad.push(redirected(vec![StreamRedirect { descriptor: StandardStream::Output, target }]));
    for (number, launch) in bad.into_iter().enumerate() {
        let got = bed.try_run(launch);
        assert!(matches!(got, Err(SandboxError::Launch { .. })), "{number}: {got:?}");
    }
    let most = redirected((0..limits::STAGE_REDIRECTS).map(|_| null()).collect());
    assert_eq!(bed.try_run(most).unwrap().termination, Termination::Exited(0));
}

fn every_status_is_told() {
    let mut bed = Bed::plain();
    let mut rows = Rows::default();
    let (done, failed) = (Termination::Exited(0), Termination::Exited(7));
    let killed = Termination::Signalled(libc::SIGKILL);
    for (lines, expected) in [
        (&["exit 7"][..], &[failed][..]),
        (&["exit 7", "cat"], &[failed, done]),
        (&["true", "exit 7"], &[done, failed]),
        (&["exit 2", "kill -9 $$", "cat; exit 7"], &[Termination::Exited(2), killed, failed]),
        (&["exit 7", "exit 7", "kill -9 $$"], &[failed, failed, killed]),
    ] {
        let stages = lines.iter().map(|line| shell(line)).collect();
        let exit = bed.try_run(pipeline(stages)).unwrap();
        let last = *expected.last().unwrap();
        let told = (exit.termination, exit.stages.as_slice());
        rows.check(told == (last, expected), || format!("{lines:?}: {told:?}"));
    }
    rows.end();
}

fn a_reader_that_has_enough_ends_its_writer() {
    let mut bed = Bed::plain();
    let yes = || stage("/usr/bin/yes", &["yes"]);
    let head = || stage("/usr/bin/head", &["head", "-n", "1"]);
    let (done, piped) = (Termination::Exited(0), Termination::Signalled(libc::SIGPIPE));
    for (stages, said, expected) in [
        (vec![yes(), head()], "y\n", vec![piped, done]),
        (vec![yes(), head(), cat()], "y\n", vec![piped, done, done]),
        (vec![yes(), cat(), head()], "y\n", vec![piped, piped, done]),
        (vec![yes(), shell("exit 0")], "", vec![piped, done]),
    ] {
        let start = Instant::now();
        let exit = bed.try_run(pipeline(stages)).unwrap();
        assert_eq!(text(&exit.stdout.bytes), said);
        assert_eq!((exit.termination, exit.stages), (done, expected));
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
}

fn a_call_ends_when_all_programs_have() {
    let mut bed = Bed::plain();
    let exit = bed.try_run(pipeline(vec![shell("sleep 0.4; echo late >&2"), shell("exit 3")]));
    let exit = exit.unwrap();
    assert_eq!(text(&exit.stderr.bytes), "late\n");
    assert_eq!(
        (exit.termination, exit.stages),
        (Termination::Exited(3), vec![Termination::Exited(0), Termination::Exited(3)])
    );
    assert!(exit.micros >= 400_000, "{}", exit.micros);
    // What they leave running is not waited for.
    let start = Instant::now();
    let exit = bed.try_run(pipeline(vec![shell("sleep 60 > /dev/null & echo x"), cat()]));
    assert_eq!(text(&exit.unwrap().stdout.bytes), "x\n");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

fn a_program_that_cannot_run_stops_all() {
    let mut bed = Bed::plain();
    let marker = format!("61{}", std::process::id());
    let data = bed.workspace().join("data");
    std::fs::write(&data, "no program").unwrap();
    let mut data = stage(data.to_str().unwrap(), &["data"]);
    data.program.path = "/workspace/data".into();
    let (mut missing, mut changed) = (cat(), cat());
    missing.program.path = "/nowhere/tool".into();
    changed.program.identity.size += 1;
    for (number, middle) in [missing, changed, data].into_iter().enumerate() {
        let sleep = || stage("/bin/sleep", &["sleep", &marker]);
        let start = Instant::now();
        let got = bed.try_run(pipeline(vec![sleep(), middle, sleep()]));
        let told = match (number, &got) {
            (0, Err(SandboxError::ProgramMissing { stage }))
            | (1, Err(SandboxError::ProgramChanged { stage }))
            | (2, Err(SandboxError::NotExecutable { stage, .. })) => *stage == 1,
            _ => false,
        };
        assert!(told, "{number}: {got:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        wait_until("nothing of it runs", || processes_with(&marker) == 0);
    }
    assert!(bed.try_run(launch("/bin/true", &["true"])).is_ok(), "the executor goes on");
}

fn each_program_has_its_own_environment() {
    let mut bed = Bed::plain();
    let line = "cat; echo $A:$B:${HOME:+home}:${TMPDIR:+tmp}";
    let mut launch = pipeline(vec![shell(line), shell(line), shell(line)]);
    launch.stages[0].environment.push(("A".into(), "1".into()));
    launch.stages[1].environment.push(("A".into(), "2".into()));
    launch.stages[1].environment.push(("B".into(), "b".into()));
    let exit = bed.try_run(launch).unwrap();
    assert_eq!(text(&exit.stdout.bytes), "1::home:tmp\n2:b:home:tmp\n::home:tmp\n");
    // They share one folder for what is only theirs.
    let write = shell("echo kept > $TMPDIR/own; echo done");
    let read = shell("read line; cat $TMPDIR/own");
    let exit = bed.try_run(pipeline(vec![write, read])).unwrap();
    assert_eq!(text(&exit.stdout.bytes), "kept\n");
}

fn stages_have_three_descriptors() {
    let mut bed = Bed::plain();
    let redirect = |descriptor, to| StreamRedirect { descriptor, target: to };
    let mut stages: Vec<LaunchStage> =
        (0..limits::PIPELINE_STAGES).map(|_| probing(&["descriptors"])).collect();
    let own = &mut stages[3].redirects;
    own.push(redirect(StandardStream::Input, RedirectTarget::Read("file".into())));
    own.push(redirect(StandardStream::Output, RedirectTarget::Device(StandardDevice::Null)));
    own.push(redirect(StandardStream::Output, RedirectTarget::Same(StandardStream::Error)));
    stages[5]
        .redirects
        .push(redirect(StandardStream::Input, RedirectTarget::Device(StandardDevice::Null)));
    let exit = bed.try_run(pipeline(stages)).unwrap();
    let said = text(&exit.stderr.bytes);
    assert_eq!(said, "0 1 2\n".repeat(limits::PIPELINE_STAGES));
    assert_eq!(exit.stages, vec![Termination::Exited(0); limits::PIPELINE_STAGES]);
}

fn bounds_hold_for_each_and_for_all() {
    let mut bed = Bed::plain();
    // One that takes all processor time by itself is ended alone.
    let mut spin = pipeline(vec![probing(&["spin"]), stage("/bin/true", &["true"])]);
    (spin.limits.cpu_ms, spin.limits.timeout_ms) = (1_000, 20_000);
    let exit = bed.try_run(spin).unwrap();
    assert_eq!(exit.stages, [Termination::Signalled(libc::SIGXCPU), Termination::Exited(0)]);
    assert_eq!(
        (exit.termination, exit.reached_limits),
        (Termination::Exited(0), vec![ResourceLimit::Cpu])
    );
    // So are open files, and the pipes of the others do not count.
    let mut many = pipeline((0..limits::PIPELINE_STAGES).map(|_| cat()).collect());
    (many.limits.open_files, many.stdin) = (8, b"through".to_vec());
    let exit = bed.try_run(many).unwrap();
    assert_eq!(text(&exit.stdout.bytes), "through", "{}", text(&exit.stderr.bytes));
    // Memory is that of all together.
    let hog = || probing(&["hog", "60", "15000"]);
    let mut hogs = pipeline(vec![hog(), hog(), hog()]);
    (hogs.limits.memory_bytes, hogs.limits.timeout_ms) = (100 << 20, 20_000);
    assert_eq!(bed.try_run(hogs).unwrap().reached_limits, [ResourceLimit::Memory]);
    // And so is time.
    let mut slow = pipeline(vec![shell("sleep 60"), cat(), shell("sleep 60")]);
    slow.limits.timeout_ms = 300;
    let exit = bed.try_run(slow).unwrap();
    assert_eq!(
        (exit.termination, exit.stages, exit.reached_limits),
        (Termination::TimedOut, vec![], vec![ResourceLimit::Time])
    );
    assert!(exit.micros < 3_000_000, "{}", exit.micros);
}

fn a_bomb_in_the_middle_is_bounded() {
    let mut bed = Bed::plain();
    let marker = format!("mark-{}-bomb", std::process::id());
    for what in ["bomb", "storm"] {
        let mut bomb = pipeline(vec![cat(), probing(&[what, "2000", &marker]), cat()]);
        (bomb.limits.processes, bomb.limits.timeout_ms) = (20, 2_000);
        let start = Instant::now();
        match bed.try_run(bomb) {
            // Its children hold the pipe open, unless they were too many and all are ended.
            Ok(exit) => assert!(
                exit.termination == Termination::TimedOut
                    || exit.reached_limits.contains(&ResourceLimit::Processes),
                "{what}: {exit:?}"
            ),
            // It was faster than the start of the last one, for which no process was left.
            Err(error) => {
                let told = matches!(error, SandboxError::NotExecutable { stage: 2, .. });
                assert!(told, "{what}: {error:?}");
            }
        }
        assert!(start.elapsed() < Duration::from_secs(8), "{what}: {:?}", start.elapsed());
        wait_until("nothing of it runs", || processes_with(&marker) == 0);
        assert_eq!(bed.ask("read /workspace/file"), "content", "{what}");
    }
}

/// Has had enough as soon as something is written.
struct Impatient(bool);

impl CommandWatcher for Impatient {
    fn output(&mut self, _stream: capsule_sandbox::OutputKind, _bytes: &[u8]) {
        self.0 = true;
    }

    fn is_cancelled(&self) -> bool {
        self.0
    }
}

fn ending_a_call_ends_all_programs() {
    let mut bed = Bed::plain();
    let marker = format!("62{}", std::process::id());
    let sleep = || stage("/bin/sleep", &["sleep", &marker]);
    let all = || -> Launch {
        let mut launch = pipeline(vec![sleep(), sleep(), shell("echo go; cat"), sleep()]);
        // The sign that they run does not go through the last one.
        let to = RedirectTarget::Same(StandardStream::Error);
        launch.stages[2]
            .redirects
            .push(StreamRedirect { descriptor: StandardStream::Output, target: to });
        launch
    };
    let exit = bed.executor.run(all(), &mut Impatient(false)).unwrap();
    assert_eq!((exit.termination, exit.stages), (Termination::Cancelled, vec![]));
    wait_until("they are gone when it is cancelled", || processes_with(&marker) == 0);
    let id = i32::try_from(bed.executor.id()).unwrap();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        unsafe { libc::kill(id, libc::SIGKILL) };
    });
    let got = bed.try_run(all());
    assert!(matches!(got, Err(SandboxError::ExecutorDied { .. })), "{got:?}");
    killer.join().unwrap();
    wait_until("they are gone with the executor", || processes_with(&marker) == 0);
}

fn a_long_stream_is_not_held_in_memory() {
    let mut bed = Bed::plain();
    let head = stage("/usr/bin/head", &["head", "-c", "100000000"]);
    let count = stage("/usr/bin/wc", &["wc", "-c"]);
    let mut long = pipeline(vec![stage("/usr/bin/yes", &["yes"]), head, cat(), count]);
    (long.limits.memory_bytes, long.limits.timeout_ms) = (48 << 20, 60_000);
    let exit = bed.try_run(long).unwrap();
    assert_eq!(text(&exit.stdout.bytes), "100000000\n", "{}", text(&exit.stderr.bytes));
    assert_eq!((exit.termination, exit.stdout.total), (Termination::Exited(0), 10));
    assert_eq!(exit.stages[0], Termination::Signalled(libc::SIGPIPE));
    assert!(exit.peak_memory.is_none_or(|peak| peak < 48 << 20), "{:?}", exit.peak_memory);
}
