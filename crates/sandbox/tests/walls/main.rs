//! The walls, tried on the real kernel.
//!
//! The test binary is three programs in one: the tests, the executor (which it starts as itself),
//! and a probe that it shows to the sandbox and that does there what a hostile program would do.
//! Run as root, everything is tried as root and as an ordinary user, and as both where no namespaces
//! can be had; some of it as root without control groups; and as much as possible on another sandbox
//! ([`bubblewrap`]). Some of these worlds are tried beside each other ([`world`]). Each must fail what
//! it does not claim to hold ([`gaps`]). A test that cannot be run has failed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::exit,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    unsafe_code,
    reason = "tests fail by panicking, and the probe does what no program should"
)]

mod bed;
mod bubblewrap;
mod change;
mod direct;
mod gaps;
mod held;
mod life;
mod limits;
mod lower;
mod mount;
mod network;
mod pipeline;
mod probe;
mod process;
mod programs;
mod redirect;
mod refusal;
mod sight;
mod staged;
mod surroundings;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use capsule_sandbox::{EXECUTOR_ARGUMENT, Executor, SandboxBackend as _};

use crate::world::Entered;

/// A test: its name and what it does.
type Test = (&'static str, fn());

/// Longer than any test takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match words.first().map(String::as_str) {
        Some(EXECUTOR_ARGUMENT) => return Executor::executor_main(),
        Some(probe::ARGUMENT) => return probe::main(&words[1..]),
        Some(life::DECIDER) => return life::decide(&words[1..]),
        _ => {}
    }
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let world = world::current();
    if world == world::World::LandlockUser {
        world::be_contained();
    }
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        eprint!("{world}: ");
        loud(panic);
    }));
    let beside: Vec<Entered> =
        world::beside(world).iter().map(|other| world::enter(*other, &words)).collect();
    let mut failed = Vec::new();
    let mut count = 0;
    for (name, test) in tests(world) {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        count += 1;
        let start = Instant::now();
        let is_gap = gaps::of(world).iter().any(|(own, _)| *own == name);
        let loud = is_gap.then(std::panic::take_hook);
        if is_gap {
            std::panic::set_hook(Box::new(|_| {}));
        }
        let guard = end_when_late(name);
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        drop(guard);
        if let Some(loud) = loud {
            std::panic::set_hook(loud);
        }
        let word = match (passed, is_gap) {
            (true, false) => "ok",
            (false, true) => "not held, as it should be",
            (true, true) => "held, which is not on the list",
            (false, false) => "FAILED",
        };
        println!("test {world}::{name} ... {word} ({} ms)", start.elapsed().as_millis());
        if !passed {
            failed.push(name);
        }
    }
    println!("\n{world}: {count} tests");
    let mut success = gaps::are_all(world, &failed, filters.is_empty());
    for other in world::behind(world) {
        success &= world::enter(*other, &words).succeeds();
    }
    for other in beside {
        success &= other.succeeds();
    }
    if success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A test that hangs has failed, and says which one it is. Holds until what it returns is dropped.
fn end_when_late(name: &'static str) -> Sender<()> {
    let (guard, ended) = channel();
    std::thread::spawn(move || {
        if ended.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
            println!("test {}::{name} ... FAILED: not over after {DEADLINE:?}", world::current());
            std::process::exit(1);
        }
    });
    guard
}

fn tests(world: world::World) -> Vec<Test> {
    if world == world::World::NoCgroups {
        return limits::TESTS.to_vec();
    }
    if world == world::World::Bubblewrap {
        let all = [sight::TESTS, change::TESTS, network::TESTS, process::TESTS].concat();
        return all.into_iter().filter(|(name, _)| bubblewrap::can_try(name)).collect();
    }
    let all = [
        sight::TESTS,
        mount::TESTS,
        change::TESTS,
        staged::TESTS,
        direct::TESTS,
        network::TESTS,
        surroundings::TESTS,
        process::TESTS,
        pipeline::TESTS,
        redirect::TESTS,
        limits::TESTS,
        refusal::TESTS,
        programs::TESTS,
        life::TESTS,
        held::TESTS,
        lower::TESTS,
    ]
    .concat();
    let of_root: &[Test] =
        if rustix::process::geteuid().is_root() { sight::TESTS_OF_ROOT } else { &[] };
    let all = all.into_iter().chain(of_root.iter().copied());
    all.filter(|(name, _)| lower::can_try(name, world)).collect()
}
