//! Every test of the workspace, two or more test programs at a time.
//!
//! `cargo test` starts one test program after the other. Many of them wait: for processes, locks, time limits. So as many
//! run beside each other as there are processors, those that take longest first.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{TaskResult, cargo};

/// The test programs that take longest, which are started first: one that is started last is waited for alone.
const LONGEST: &[&str] =
    &["walls", "staged", "hooks", "registries", "git_work", "requirements", "growth"];

/// How many tests of a program run at once, where the environment does not say.
const THREADS: &str = "4";

/// A test program as cargo built it.
struct TestProgram {
    name: String,
    /// The directory of its package, in which it runs.
    package: PathBuf,
    executable: PathBuf,
}

/// What came of one.
struct TestResult {
    name: String,
    passed: bool,
    took: Duration,
}

/// Builds and runs them all; says whether all passed.
///
/// # Errors
/// When something cannot be built or started.
pub(crate) fn run(root: &Path) -> TaskResult<bool> {
    let mut programs = build(root)?;
    let rank = |name: &str| LONGEST.iter().position(|long| *long == name).unwrap_or(LONGEST.len());
    programs.sort_by_key(|program| rank(&program.name));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> TaskResult<()> {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = program.run()?;
            results.lock().map_err(|_| "a worker panicked")?.push(result);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    let results = results.into_inner().map_err(|_| "a worker panicked")?;
    report(&results)
}

/// Builds the test programs of the workspace.
fn build(root: &Path) -> TaskResult<Vec<TestProgram>> {
    let mut building = cargo::command(root);
    building.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let mut child = building
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    let stdout = child.stdout.take().ok_or("cargo has no output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|error| format!("what cargo says cannot be read: {error}"))?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        programs.extend(TestProgram::of(&message));
    }
    let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(programs) } else { Err("the tests cannot be built".to_owned()) }
}

impl TestProgram {
    /// The test program that a message of cargo is about, if it is about one.
    fn of(message: &Value) -> Option<Self> {
        let is_test = message.pointer("/profile/test")?.as_bool()?;
        let text = |pointer: &str| message.pointer(pointer)?.as_str();
        Some(Self {
            name: text("/target/name").filter(|_| is_test)?.to_owned(),
            package: Path::new(text("/manifest_path")?).parent()?.to_owned(),
            executable: text("/executable")?.into(),
        })
    }

    /// Runs it to its end, and shows what it says as one piece.
    fn run(&self) -> TaskResult<TestResult> {
        let began = Instant::now();
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            command.env("RUST_TEST_THREADS", THREADS);
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", self.executable.display()))?;
        let took = began.elapsed();
        let mut screen = std::io::stdout().lock();
        let head = format!("--- {} ({:.1} s)\n", self.name, took.as_secs_f64());
        for part in [head.as_bytes(), &output.stdout, &output.stderr] {
            screen.write_all(part).map_err(|error| format!("standard output: {error}"))?;
        }
        Ok(TestResult { name: self.name.clone(), passed: output.status.success(), took })
    }
}

/// Says what came of all, the slowest and those that failed by name; says whether all passed.
fn report(results: &[TestResult]) -> TaskResult<bool> {
    let mut slowest: Vec<&TestResult> = results.iter().collect();
    slowest.sort_by_key(|result| std::cmp::Reverse(result.took));
    let shown =
        |result: &&TestResult| format!("{} {:.0} s", result.name, result.took.as_secs_f64());
    let slowest: Vec<String> = slowest.iter().take(8).map(shown).collect();
    println!("\nthe slowest programs: {}", slowest.join(", "));
    let failed: Vec<&str> =
        results.iter().filter(|result| !result.passed).map(|result| result.name.as_str()).collect();
    println!("programs: {} passed, {} failed", results.len() - failed.len(), failed.len());
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}
