//! What people type in five kinds of projects, fifty lines each: what `builtin:developer` decides about them and,
//! where their programs are on every machine that tests, what comes of them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::fs;
use std::path::Path;

use capsule_testkit::{Capsule, run_in_parallel};
use serde_json::{Value, json};

const KINDS: [&str; 5] = ["python", "node", "rust", "go", "java"];

/// A line that somebody types.
struct Line {
    verdict: String,
    /// The status that it ends with and a part of what it prints, where it is run.
    result: Option<(i64, String)>,
    command: String,
}

/// A kind of project: its files, and the lines.
struct Project {
    files: Vec<(String, String)>,
    lines: Vec<Line>,
}

impl Project {
    fn of(kind: &str) -> Self {
        let root = std::env::var_os("CAPSULE_TEST_ROOT")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), Into::into);
        let file = root.join("crates/cli/tests/ordinary").join(format!("{kind}.txt"));
        let (mut files, mut lines) = (Vec::new(), Vec::new());
        for row in fs::read_to_string(file).unwrap().lines() {
            if row.is_empty() || row.starts_with('#') {
                continue;
            }
            let [verdict, result, text] =
                row.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
            // A text of several lines is written as JSON.
            let text = match text.starts_with('"') {
                true => serde_json::from_str(text).unwrap(),
                false => text.to_owned(),
            };
            if verdict == "file" {
                files.push((result.to_owned(), text));
                continue;
            }
            let (status, part) = result.split_once(' ').unwrap_or((result, ""));
            let result = (result != "-").then(|| (status.parse().unwrap(), part.to_owned()));
            lines.push(Line { verdict: verdict.into(), result, command: text });
        }
        Self { files, lines }
    }

    fn workspace(&self) -> Capsule {
        let mut capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        for name in ["CARGO_HOME", "RUSTUP_HOME"] {
            if let Ok(value) = std::env::var(name) {
                capsule.set(name, &value);
            }
        }
        for (path, content) in &self.files {
            let _ = capsule.write_file(path, content);
        }
        capsule
    }

    /// What is decided about each line.
    fn decisions(&self) -> Vec<Value> {
        let capsule = self.workspace();
        let call = |line: &Line| {
            json!({ "id": 0, "tool": "shell.run", "args": { "command": line.command } }).to_string()
        };
        let batch: Vec<String> = self.lines.iter().map(call).collect();
        let batch = capsule.write_file("../batch.jsonl", batch.join("\n"));
        let words = ["policy", "explain", "--policy", "builtin:developer", "--json", "--batch"];
        let words: Vec<&str> = words.into_iter().chain(batch.to_str()).collect();
        let output = capsule.run(&words).exits(0).stdout;
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn lines_are_decided_as_people_expect() {
    let wrong = run_in_parallel(KINDS, |kind| {
        let project = Project::of(kind);
        assert!(project.lines.len() >= 50, "{kind}");
        let decisions = project.decisions();
        assert!(decisions.len() >= 50, "{kind}");
        let rows = project.lines.iter().zip(decisions);
        let other = rows.filter(|(line, decision)| decision["decision"] != line.verdict.as_str());
        let say = |(line, decision): (&Line, Value)| {
            format!(
                "{kind}: {:?} is {}: {}",
                line.command, decision["decision"], decision["reason"]
            )
        };
        other.map(say).collect::<Vec<_>>()
    });
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_do_what_people_expect() {
    let projects = KINDS.map(|kind| (kind, Project::of(kind)));
    let rows = projects.iter().flat_map(|(kind, project)| {
        project
            .lines
            .iter()
            .filter_map(move |line| Some((*kind, project, line, line.result.as_ref()?)))
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() >= 100, "{}", rows.len());
    let wrong = run_in_parallel(rows, |(kind, project, line, (status, part))| {
        let args = json!({ "command": line.command }).to_string();
        let words =
            ["call", "shell.run", "--policy", "builtin:developer", "--unattended", "--args"];
        let words: Vec<&str> = words.into_iter().chain([args.as_str()]).collect();
        let output = project.workspace().run(&words).json();
        let result = &output["result"];
        let text = |name| result[name].as_str().unwrap_or_default().to_owned();
        let printed = text("stdout") + &text("stderr");
        let is_right = result["exit_code"] == *status && printed.contains(part.as_str());
        (!is_right).then(|| format!("{kind}: {:?}: {output}", line.command))
    });
    let wrong: Vec<_> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
