//! What is said of programs, against the programs of this machine: a table of options that is wrong
//! about which of them take a value reads a command line otherwise than the program does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use capsule_command::specs::{ArgKind, CommandSpec, Effect, Effects, find_spec};
use capsule_testkit::Capsule;

fn run(folder: &Path, program: &str, words: &[&str]) -> String {
    let output = Process::new(program)
        .args(words)
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent"), ("LC_ALL", "C")])
        .envs([("GIT_PAGER", "cat"), ("PAGER", "cat"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn repository() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let folder = capsule.workspace();
    fs::write(folder.join("a"), "a\n").unwrap();
    run(&folder, "git", &["init", "-q"]);
    run(&folder, "git", &["add", "a"]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"];
    run(&folder, "git", &who);
    capsule
}

const UNKNOWN: &[&str] = &["unknown option", "unrecognized", "unknown switch", "invalid option"];
const WANTS: &[&str] = &["requires a value", "requires an argument", "expects a numerical value"];

fn says(text: &str, any: &[&str]) -> bool {
    any.iter().any(|part| text.contains(part))
}

/// What is wrong about one name of an option, if anything. One that this machine's program does not
/// have is refused by the program.
fn wrong(folder: &Path, program: &[&str], command: &CommandSpec, name: &str) -> Option<String> {
    let option = command.option(name)?;
    let spelled = name.replace("-NUM", "-3");
    let mut alone = program.to_vec();
    alone.push(&spelled);
    let answer = run(folder, alone[0], &alone[1..]);
    if says(&answer, UNKNOWN) {
        return None;
    }
    let wants = says(&answer, WANTS);
    if wants && option.value.is_none() {
        return Some(format!("{alone:?} wants a value: {answer}"));
    }
    // An option that is said to take the next word, and does not, would hide it from judgement.
    let takes = option.value.is_some() && !option.attached;
    let hides = takes && command.operands.iter().any(|word| *word != ArgKind::Text);
    let lacks = wants || answer.contains("without") || answer.contains("usage");
    (hides && !lacks).then(|| format!("{alone:?} does not want a value: {answer:?}"))
}

/// B4, B5: where the table says that a word is an option's value, the program says so as well;
/// otherwise a path could pass for one.
#[test]
fn options_are_as_the_programs_have_them() {
    let capsule = repository();
    let folder = capsule.workspace();
    let mut problems = Vec::new();
    for program in ["cat", "head", "ls"] {
        check(&folder, &[program], find_spec(program).unwrap(), &mut problems);
    }
    let git = find_spec("git").unwrap();
    for (name, command) in &git.subcommands {
        if command.base_effect.effects == Effects::of(Effect::Reads)
            || matches!(name.as_str(), "branch" | "tag")
        {
            check(&folder, &["git", name], command, &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn check(folder: &Path, program: &[&str], command: &CommandSpec, problems: &mut Vec<String>) {
    let names = command.options.iter().flat_map(|option| &option.names);
    problems.extend(names.filter_map(|name| wrong(folder, program, command, name)));
}
