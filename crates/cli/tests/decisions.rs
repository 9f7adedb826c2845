//! The corpora of decisions: what `builtin:developer` says about the command lines of people and
//! models, against the labels that were frozen before the code.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use capsule_testkit::Capsule;
use serde_json::{Value, json};

/// One line of a corpus.
struct Line {
    file: String,
    label: String,
    command: String,
    /// The requirement that a comment above it names.
    shows: Option<String>,
}

fn corpora() -> PathBuf {
    let root = std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from);
    root.join("crates/core/tests/decisions")
}

fn lines(kind: &str) -> Vec<Line> {
    let mut files: Vec<_> =
        fs::read_dir(corpora().join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut lines = Vec::new();
    for file in files {
        let name = format!("{kind}/{}", file.file_stem().unwrap().to_string_lossy());
        let mut shows = None;
        for text in fs::read_to_string(&file).unwrap().lines() {
            if let Some(comment) = text.strip_prefix('#') {
                shows = comment.trim().starts_with("SAF-").then(|| comment.trim().to_owned());
                continue;
            }
            let Some((label, command)) = text.split_once('\t') else { continue };
            let (label, command) = match label.strip_suffix('*') {
                Some(label) => (label, serde_json::from_str(command).unwrap()),
                None => (label, command.to_owned()),
            };
            lines.push(Line {
                file: name.clone(),
                label: label.into(),
                command,
                shows: shows.clone(),
            });
        }
    }
    lines
}

/// What is decided about each line, in an empty workspace.
fn decided(lines: &[Line]) -> Vec<Value> {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let call = |(id, line): (usize, &Line)| {
        json!({ "id": id, "tool": "shell.run", "args": { "command": line.command } }).to_string()
    };
    let batch: Vec<String> = lines.iter().enumerate().map(call).collect();
    capsule.write_file("../batch.jsonl", batch.join("\n"));
    let batch = capsule.workspace().join("../batch.jsonl");
    let words = ["policy", "explain", "--policy", "builtin:developer", "--json", "--batch"];
    let words: Vec<&str> = words.into_iter().chain([batch.to_str().unwrap()]).collect();
    let output = capsule.run(&words).exits(0).stdout;
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn fits(label: &str, verdict: &str) -> bool {
    match label {
        "allow" => verdict == "allow",
        "ask" => verdict == "ask" || verdict == "ask-each",
        "deny" => verdict == "deny",
        "stop" => verdict != "allow",
        other => panic!("no label `{other}`"),
    }
}

/// Lines that are decided otherwise than their labels say, each with what is decided: a list that only
/// shrinks. What must be blocked is never on it as allowed.
fn gaps() -> BTreeMap<String, String> {
    let text = fs::read_to_string(corpora().join("gaps.txt")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|row| {
        let (verdict, command) = row.split_once('\t').unwrap();
        (serde_json::from_str(command).unwrap(), verdict.to_owned())
    })
    .collect()
}

fn check(kind: &str) {
    let (lines, gaps) = (lines(kind), gaps());
    let decided = decided(&lines);
    assert_eq!(lines.len(), decided.len());
    let (mut wrong, mut met) = (Vec::new(), BTreeSet::new());
    for (line, own) in lines.iter().zip(&decided) {
        let verdict = own["decision"].as_str().unwrap_or("error");
        let named = gaps.get(&line.command);
        if fits(&line.label, verdict) == named.is_none() && named.is_none_or(|own| own == verdict) {
            met.extend(named.map(|_| &line.command));
            continue;
        }
        let (file, label, command) = (&line.file, &line.label, &line.command);
        let why = if named.is_some() { "is on the list of gaps, and is" } else { "is" };
        wrong.push(format!("{file}: {label}: {command:?} {why} {verdict}: {}", own["reason"]));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

/// SAF-3: what developers and agents type runs, or is asked about; nothing of it is blocked.
#[test]
fn ordinary_lines_are_decided_as_labelled() {
    check("ordinary");
}

/// SAF-2, FR-19, A1 to A28: what must not simply run does not.
#[test]
fn dangerous_lines_are_decided_as_labelled() {
    check("dangerous");
}

/// The patterns of the safety text's blocklist, in its order: the name of each in the lists of lines, and how
/// a line that shows it looks.
const BLOCKED: [(&str, &str); 20] = [
    ("git push", r"^git push\b"),
    ("git remote add", r"^git remote add\b"),
    ("git fetch --unshallow", r"^git fetch .*--unshallow"),
    ("a command that begins with an absolute path", r"^/"),
    ("../", r"\.\./"),
    ("~/", r"~/"),
    ("$HOME", r"\$HOME"),
    ("rm -rf /", r"^rm -rf /"),
    ("rm -rf ${undefined}/", r"^rm -rf \$\{\w+\}/"),
    ("npm publish", r"^npm publish"),
    ("pip upload", r"^pip upload"),
    ("gem push", r"^gem push"),
    ("cargo publish", r"^cargo publish"),
    ("curl | sh", r"^curl .*\| *(ba)?sh"),
    ("wget | sh", r"^wget .*\| *(ba)?sh"),
    ("> /dev/sda, > /dev/zero", r"> ?/dev/(sd|zero)"),
    ("dd with a device", r"^dd .*/dev/"),
    ("the fork bomb", r":\(\)"),
    ("drop database or schema", r"(?i)drop (database|schema)"),
    ("truncate table", r"(?i)truncate table"),
];

/// The entries of its allowlist, in the same way.
const ALLOWED: [(&str, &str); 15] = [
    ("cat", "^cat "),
    ("head", "^head "),
    ("tail", "^tail "),
    ("ls", "^ls"),
    ("find", "^find "),
    ("mkdir", "^mkdir "),
    ("touch", "^touch "),
    ("cp", "^cp "),
    ("mv", "^mv "),
    ("npm (install)", "^npm (install|i|ci)"),
    ("npm (test, run, ls)", "^npm (test|run|ls)"),
    ("git (status, diff, log, branch)", "^git (status|diff|log|branch)"),
    ("git (add, commit, checkout, merge)", "^git (add|commit|checkout|merge)"),
    ("git (pull, fetch)", "^git (pull|fetch)"),
    ("python", "^python"),
];

/// SAF-2, SAF-3: each pattern of the blocklist has lines of which none runs, each entry of the allowlist has
/// lines of which none is blocked; and no line claims a pattern that is on no list.
#[test]
fn the_lists_of_the_safety_text_are_shown() {
    for (kind, prefix, list) in
        [("dangerous", "SAF-2: ", &BLOCKED[..]), ("ordinary", "SAF-3: ", &ALLOWED[..])]
    {
        let own: Vec<Line> = lines(kind).into_iter().filter(|line| line.shows.is_some()).collect();
        let decided = decided(&own);
        // A comment may go on behind the name.
        let named = |line: &Line| {
            let name = line.shows.as_deref().and_then(|shows| shows.strip_prefix(prefix));
            let name = name.unwrap_or_else(|| panic!("{kind}: {:?}", line.shows));
            name.split(". ").next().unwrap_or_default().to_owned()
        };
        for line in &own {
            let name = named(line);
            assert!(list.iter().any(|(own, _)| *own == name), "{kind}: {name} is on no list");
        }
        for (pattern, shape) in list {
            let shape = regex::Regex::new(shape).unwrap();
            let mut shown = 0;
            for (line, decision) in own.iter().zip(&decided) {
                if named(line) != *pattern || !shape.is_match(&line.command) {
                    continue;
                }
                let verdict = decision["decision"].as_str().unwrap();
                let is_right =
                    if kind == "dangerous" { verdict != "allow" } else { verdict != "deny" };
                let (command, reason) = (&line.command, &decision["reason"]);
                assert!(is_right, "{pattern}: {command:?} is {verdict}: {reason}");
                shown += 1;
            }
            assert!(shown > 0, "{prefix}{pattern} has no line");
        }
    }
}

/// No line stands twice, and a gap is a line.
#[test]
fn the_corpora_are_sound() {
    let all: Vec<Line> = ["ordinary", "dangerous"].into_iter().flat_map(lines).collect();
    let commands: BTreeSet<&str> = all.iter().map(|line| line.command.as_str()).collect();
    assert_eq!(commands.len(), all.len(), "a line stands twice");
    for (command, verdict) in gaps() {
        assert!(commands.contains(command.as_str()), "the gap {command:?} is no line");
        let line = all.iter().find(|line| line.command == command).unwrap();
        assert!(line.label != "deny" || verdict != "allow", "{command:?} must never be allowed");
    }
}
