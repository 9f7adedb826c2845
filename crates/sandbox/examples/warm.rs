//! How much the walls cost: warm calls of `/bin/true` beside a bare spawn of it, in turns in one run
//! so that a noisy machine disturbs both alike. Prints medians and their ratio.
//!
//! Run with `cargo run --release -p capsule-sandbox --example warm`.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench")]

use std::fs::File;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use capsule_base::root_names::RootNames;
use capsule_core::confinement::{ProcessLimits, SandboxTier};
use capsule_sandbox::{
    CommandWatcher, EXECUTOR_ARGUMENT, Executable, Executor, FileIdentity, Launch, LaunchStage,
    OutputKind, SandboxBackend as _, SandboxView,
};

const ROUNDS: usize = 1_000;
const COLD_ROUNDS: usize = 50;

struct Nobody;

impl CommandWatcher for Nobody {
    fn output(&mut self, _stream: OutputKind, _bytes: &[u8]) {}
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// `/bin/true`.
fn launch() -> Launch {
    let program = std::fs::canonicalize("/bin/true").unwrap();
    let identity = FileIdentity::from_metadata(&std::fs::metadata(&program).unwrap());
    Launch {
        stages: vec![LaunchStage {
            program: Executable { path: program, identity },
            argv: vec!["true".into()],
            environment: vec![("PATH".into(), "/usr/bin".into())],
            redirects: Vec::new(),
        }],
        private_directory_variables: Vec::new(),
        cwd: "".into(),
        stdin: Vec::new(),
        limits: ProcessLimits::default(),
        writes: false,
        direct: None,
        hidden: Vec::new(),
        is_last: false,
        ignores_tmp_links: false,
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(EXECUTOR_ARGUMENT) {
        return Executor::executor_main();
    }
    let folder = std::env::temp_dir().join(format!("capsule-warm-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let launch = launch();
    let program = launch.stages[0].program.path.clone();
    let enter = |executor: &mut Executor| {
        let workspace = File::open(&folder).unwrap().into();
        executor
            .enter(SandboxView {
                floor: SandboxTier::default(),
                workspace,
                root_names: RootNames::default(),
                staging: None,
                hidden: Vec::new(),
                programs: Vec::new(),
                toolchains: Vec::new(),
                repository: None,
                git: capsule_sandbox::GitFiles::default(),
            })
            .unwrap();
    };

    let mut executor = Executor::start().unwrap();
    enter(&mut executor);
    let (mut bare, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(time(|| spawn(&program)));
        warm.push(time(|| drop(executor.run(launch.clone(), &mut Nobody).unwrap())));
    }
    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        alone.push(time(|| drop(executor.run(launch.clone(), &mut Nobody).unwrap())));
    }
    drop(executor);
    let cold = cold(&launch, enter);
    std::fs::remove_dir(&folder).unwrap();
    let bare = median(bare);
    let row = |name: &str, time: Duration| {
        println!("{name:<32} {time:>9.1?}   {:.2} x", ratio(time, bare));
    };
    row("bare spawn", bare);
    row("warm call, in turns with it", median(warm));
    row("warm call, one after another", median(alone));
    for (name, times) in
        ["cold: start", "cold: until its word", "cold: enter", "cold: first call", "end"]
            .iter()
            .zip(cold)
    {
        row(name, median(times));
    }
    ExitCode::SUCCESS
}

/// The parts of a run of one call.
fn cold(launch: &Launch, enter: impl Fn(&mut Executor)) -> [Vec<Duration>; 5] {
    let mut cold: [Vec<Duration>; 5] = Default::default();
    for _ in 0..COLD_ROUNDS {
        let mut started = None;
        cold[0].push(time(|| started = Some(Executor::start().unwrap())));
        let mut executor = started.unwrap();
        cold[1].push(time(|| drop(executor.sandbox_status().unwrap().clone())));
        cold[2].push(time(|| enter(&mut executor)));
        cold[3].push(time(|| drop(executor.run(launch.clone(), &mut Nobody).unwrap())));
        cold[4].push(time(|| drop(executor)));
    }
    cold
}

fn spawn(program: &std::path::Path) {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
