//! What users read is true: the commands of the README run, the examples do what they say, and the
//! help and the report look as they were reviewed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_testkit::{Capsule, CommandOutput, HttpServer};
use serde_json::Value;

/// The repository.
fn root() -> PathBuf {
    std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

/// What the documents take for given: this repository as a workspace, with a history.
fn repository() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for file in ["README.md", "crates/core/src/lib.rs"] {
        capsule.write_file(file, fs::read(root().join(file)).unwrap());
    }
    for example in ["first-run", "fetch"] {
        for entry in fs::read_dir(root().join("examples").join(example)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                let name = entry.file_name().into_string().unwrap();
                let content = fs::read(entry.path()).unwrap();
                capsule.write_file(&format!("examples/{example}/{name}"), content);
            }
        }
    }
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(args);
        command.current_dir(capsule.workspace()).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
    };
    git(&["init", "-q", "-b", "main"]);
    for number in 1..=3 {
        git(&["commit", "-q", "--allow-empty", "-m", &format!("Commit {number}")]);
    }
    capsule
}

const FIRST_RUN: [&str; 4] =
    ["run", "examples/first-run/plan.yaml", "--policy", "examples/first-run/policy.yaml"];

/// What differs from run to run, made the same.
fn steady(text: &str, capsule: &Capsule) -> String {
    let workspace = capsule.workspace().canonicalize().unwrap();
    let text = text.replace(&*workspace.to_string_lossy(), "/home/ada/project");
    let mut steady = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end();
        let is_label = bare.starts_with("r-") && bare.len() >= 6;
        let is_digest = bare.contains('…') && bare.len() == "1360de…e8".len();
        steady += if is_label {
            "r-AAAA"
        } else if is_digest {
            "abcdef…01"
        } else {
            bare
        };
        steady.extend(word.chars().skip(bare.chars().count()));
    }
    let mut lines: Vec<String> = Vec::new();
    for line in steady.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let times = words.windows(2).filter(|pair| pair[1] == "ms" || pair[1] == "s");
        let line = times.fold(line.to_owned(), |line, pair| {
            line.replace(&format!(" {} {}", pair[0], pair[1]), " 1 ms")
        });
        // The README grows.
        let sizes = words.windows(2).filter(|pair| pair[1] == "KB");
        let line =
            sizes.fold(line, |line, pair| line.replace(&format!(" {} KB", pair[0]), " 4 KB"));
        // How long a time is written decides about gaps, and about where a line is broken.
        let words: Vec<&str> = line.split_whitespace().collect();
        match lines.last_mut().filter(|_| line.starts_with("             ")) {
            Some(last) => *last = format!("{last} {}", words.join(" ")),
            None => lines.push(words.join(" ")),
        }
    }
    lines.join("\n")
}

/// CAP-1: every command of the README's five minutes, with the status that it names.
#[test]
fn the_commands_of_the_readme_run() {
    let capsule = repository();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, demo) = readme.split_once("```sh\n").unwrap();
    let (demo, _) = demo.split_once("```").unwrap();
    let mut count = 0;
    for line in demo.lines().filter(|line| line.starts_with("capsule ")) {
        let (line, status) = match line.rsplit_once("# exit ") {
            Some((line, status)) => (line, status.trim().parse().unwrap()),
            None => (line, 0),
        };
        let mut command = capsule.command(&[]);
        let binary = command.get_program().to_owned();
        let script = line.replacen("capsule", "\"$0\"", 1);
        command = {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(binary).current_dir(capsule.workspace());
            shell.env("HOME", capsule.home()).env_remove("CAPSULE_STORE");
            shell
        };
        let ran: CommandOutput = command.stdin(Stdio::null()).output().unwrap().into();
        assert_eq!(ran.status, status, "{line}\n{}\n{}", ran.stdout, ran.stderr);
        count += 1;
    }
    assert!(count >= 9, "{count}");
}

/// CAP-11: the first run's report at 80 columns, and the same run as JSON.
#[test]
fn the_first_run_reads_well() {
    let capsule = repository();
    let run = capsule.run(&FIRST_RUN).exits(0);
    let report = capsule.run(&["report", "latest"]).exits(0);
    assert_eq!(run.stdout, report.stdout, "what was shown live is what is shown later");
    for line in report.stdout.lines() {
        assert!(capsule_report::width(line) <= 80, "{line}");
    }
    insta::assert_snapshot!("first_run", steady(&report.stdout, &capsule));

    let json: Value = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let calls = json["calls"].as_array().unwrap();
    let told: Vec<String> = calls
        .iter()
        .map(|call| {
            let word = |name: &str| call["decision"][name].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", call["step"].as_str().unwrap(), word("decision"), word("rule"))
        })
        .collect();
    insta::assert_snapshot!("first_run_json", told.join("\n"));
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!("report_keys", keys.join("\n"));
}

/// CAP-6: the second example fetches from a server on loopback that the policy names.
#[test]
fn the_fetch_example_fetches() {
    let capsule = repository();
    let issues = fs::read_to_string(root().join("examples/fetch/issues.json")).unwrap();
    let server = HttpServer::fixed("200 OK", "Content-Type: application/json\r\n", &issues);
    let port = format!("port={}", server.port());
    let policy = "examples/fetch/policy.yaml";
    let line = ["run", "examples/fetch/plan.yaml", "--policy", policy, "--input", &port];
    let _ = capsule.run(&line).exits(0);
}

/// The help of every command, as it was reviewed.
#[test]
fn help_is_as_reviewed() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let mut all = String::new();
    let mut waiting = vec![Vec::<String>::new()];
    while let Some(command) = waiting.pop() {
        let mut line: Vec<&str> = command.iter().map(String::as_str).collect();
        line.push("--help");
        let help = capsule.run(&line).exits(0).stdout;
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
        let names = listed.lines().take_while(|line| !line.is_empty());
        let names = names.filter_map(|line| line.split_whitespace().next());
        for name in names.filter(|name| *name != "help").collect::<Vec<_>>().into_iter().rev() {
            waiting.push(command.iter().cloned().chain([name.to_owned()]).collect());
        }
        all += &format!("$ capsule {}\n{help}\n", line.join(" "));
    }
    insta::assert_snapshot!("help", all);
}
