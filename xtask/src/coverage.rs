//! How many lines of policy and of replay the tests run (CAP-15).
//!
//! The lines of tests themselves are left out: they would only flatter the number. The tests of the
//! whole workspace are run, so a line that only an end-to-end test reaches counts as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository::Repository;
use crate::{TaskResult, cargo};

/// What must be reached in every group.
const MIN_PERCENT: u64 = 90;

/// The groups, each with the beginnings of its paths.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "policy",
        &[
            "crates/core/src/policy/",
            "crates/policy/src/",
            "crates/command/src/specs/",
            "crates/base/src/glob.rs",
            "crates/base/src/url.rs",
            "crates/base/src/net.rs",
            "crates/base/src/path.rs",
            "crates/core/src/decision.rs",
            "crates/core/src/lifecycle/",
        ],
    ),
    ("replay", &["crates/runtime/src/replay/", "crates/runtime/src/backend/replayed.rs"]),
];

const INSTALL_HINT: &str = "install `cargo-llvm-cov` with `cargo install cargo-llvm-cov --locked`, and \
the tools of LLVM with the Debian package";

/// Measures; says whether every group reaches what is wanted.
///
/// # Errors
/// When a tool is missing or the tests fail.
pub(crate) fn run(root: &Path) -> TaskResult<bool> {
    let tools = find_tools(root)?;
    let report = cargo::target_directory(root)?.join("coverage.lcov");
    let mut command = cargo::command(root);
    command.arg("llvm-cov").arg("--workspace");
    // The walls' own tests look at every byte that a command writes. Measured programs that cannot
    // write their profile behind the walls complain about it.
    command.args(["--exclude", "xtask", "--exclude", "capsule-sandbox"]);
    command.arg("--lcov").arg("--output-path").arg(&report);
    command.env("LLVM_COV", &tools.cov).env("LLVM_PROFDATA", &tools.profdata);
    cargo::run(&mut command)?;
    let text =
        std::fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let house = Repository::read(root)?;
    let lines = parse_lcov(&text, root);
    let mut enough = true;
    for (name, beginnings) in GROUPS {
        let group = measure_group(&house, &lines, beginnings);
        enough &= group.show(name);
    }
    Ok(enough)
}

/// The tools of LLVM that fit the compiler.
struct LlvmTools {
    cov: PathBuf,
    profdata: PathBuf,
}

/// Takes the tools from the environment, from the toolchain, or from Debian's packages.
fn find_tools(root: &Path) -> TaskResult<LlvmTools> {
    let listed = cargo::command(root).args(["llvm-cov", "--version"]).output();
    let version = llvm_version()?;
    let install = format!("{INSTALL_HINT} `llvm-{version}`");
    if !listed.is_ok_and(|output| output.status.success()) {
        return Err(format!("cargo-llvm-cov is missing: {install}"));
    }
    let find = |variable: &str, name: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        named.or_else(|| in_toolchain(name)).or_else(|| in_debian(name, &version))
    };
    let (cov, profdata) = (find("LLVM_COV", "llvm-cov"), find("LLVM_PROFDATA", "llvm-profdata"));
    match (cov, profdata) {
        (Some(cov), Some(profdata)) => Ok(LlvmTools { cov, profdata }),
        _ => Err(format!("llvm-cov and llvm-profdata of version {version} are missing: {install}")),
    }
}

fn command_output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// The version of LLVM that the compiler was built with: profiles are read by the same or a later.
fn llvm_version() -> TaskResult<String> {
    let told =
        command_output(Command::new("rustc").arg("-vV")).ok_or("rustc does not say its version")?;
    let line = told.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let major = line.and_then(|version| version.split('.').next());
    major.map(str::to_owned).ok_or_else(|| "rustc does not say its version of LLVM".to_owned())
}

fn in_toolchain(name: &str) -> Option<PathBuf> {
    let sysroot = command_output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let hosts = std::fs::read_dir(Path::new(sysroot.trim()).join("lib").join("rustlib")).ok()?;
    let places = hosts.flatten().map(|host| host.path().join("bin").join(name));
    places.into_iter().find(|place| place.is_file())
}

fn in_debian(name: &str, version: &str) -> Option<PathBuf> {
    let places =
        [format!("/usr/bin/{name}-{version}"), format!("/usr/lib/llvm-{version}/bin/{name}")];
    places.into_iter().map(PathBuf::from).find(|place| place.is_file())
}

/// For every file, how often each line ran.
type Lines = BTreeMap<String, BTreeMap<usize, u64>>;

/// Reads a report in the form of lcov: `SF:` names a file, `DA:` a line and how often it ran.
fn parse_lcov(report: &str, root: &Path) -> Lines {
    let mut lines = Lines::new();
    let mut file = String::new();
    for line in report.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            let item = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
            file = item.to_string_lossy().into_owned();
        } else if let Some((number, count)) = line.strip_prefix("DA:").and_then(parse_count) {
            let ran = lines.entry(file.clone()).or_default().entry(number).or_default();
            *ran = count.max(*ran);
        }
    }
    lines
}

fn parse_count(text: &str) -> Option<(usize, u64)> {
    let mut parts = text.split(',');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// What was reached of a group.
#[derive(Debug, Default, PartialEq, Eq)]
struct GroupCoverage {
    covered: u64,
    all: u64,
    /// Lines that did not run, by file.
    missed: BTreeMap<String, Vec<usize>>,
}

fn measure_group(house: &Repository, lines: &Lines, beginnings: &[&str]) -> GroupCoverage {
    let mut group = GroupCoverage::default();
    let item = house
        .sources
        .iter()
        .filter(|source| beginnings.iter().any(|beginning| source.path.starts_with(beginning)));
    for source in item {
        let Some(counts) = lines.get(&source.path) else { continue };
        for (line, count) in counts.iter().filter(|(line, _)| !source.is_test(**line)) {
            group.all += 1;
            group.covered += u64::from(*count > 0);
            if *count == 0 {
                group.missed.entry(source.path.clone()).or_default().push(*line);
            }
        }
    }
    group
}

impl GroupCoverage {
    /// Prints what was reached, and what was not; says whether it is enough.
    fn show(&self, name: &str) -> bool {
        let tenths = (self.covered * 1_000).checked_div(self.all).unwrap_or(0);
        println!(
            "{name}: {}.{} % ({} of {} lines)",
            tenths / 10,
            tenths % 10,
            self.covered,
            self.all
        );
        for (path, lines) in &self.missed {
            println!("  not run: {path} {}", line_ranges(lines));
        }
        let enough = tenths >= MIN_PERCENT * 10;
        if !enough {
            println!("  {MIN_PERCENT} % are wanted");
        }
        enough
    }
}

/// Line numbers, neighbours joined: `3-5, 9`.
fn line_ranges(lines: &[usize]) -> String {
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match joined.last_mut().filter(|(_, last)| last + 1 == *line) {
            Some((_, last)) => *last = *line,
            None => joined.push((*line, *line)),
        }
    }
    let shown = joined.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_do_not_count() {
        let text = "//! D.\nfn a() {\n    b();\n}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        let house = Repository::from_files(&[("crates/base/src/glob.rs", text)]);
        let report = "SF:/r/crates/base/src/glob.rs\nDA:2,4\nDA:3,0\nDA:7,9\nend_of_record\n";
        let lines = parse_lcov(report, Path::new("/r"));
        let group = measure_group(&house, &lines, &["crates/base/src/glob.rs"]);
        assert_eq!((group.covered, group.all), (1, 2));
        assert_eq!(group.missed["crates/base/src/glob.rs"], [3]);
        assert!(!group.show("policy"));
    }

    #[test]
    fn a_group_that_was_not_measured_is_not_enough() {
        assert!(!GroupCoverage::default().show("replay"));
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(line_ranges(&[3, 4, 5, 9, 11, 12]), "3-5, 9, 11-12");
    }
}
