//! How much a command may write: in the workspace, in `/tmp`, in one file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;

use capsule_testkit::{Capsule, CommandOutput};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

fn policy(limits: &str, sandbox: &str) -> String {
    format!(
        "version: 1\ntools:\n  shell.run:\n    effects: {{ deletes: allow, writes: allow, unknown: allow }}\n    limits: \
         {{ timeout: 25s, {limits} }}\n    executables:\n      rm: {{ decision: allow, writes: [\"**\"] }}\n      \
         cp: {{ decision: allow, writes: [\"**\"] }}\n      perl: {{ decision: allow, writes: [\"**\"] }}\n{sandbox}"
    )
}

fn exec(capsule: &Capsule, policy: &str, argv: &[&str]) -> CommandOutput {
    let line = ["exec", "--policy", policy, "--json", "--"];
    capsule.run(&[&line, argv].concat())
}

/// W14: the dependencies of an ordinary project are removed and copied under the limits that hold without a word.
#[test]
fn large_directories_are_removed_and_copied() {
    let capsule = capsule();
    for number in 0..11_085 {
        let folder = capsule.workspace().join(format!("node_modules/p{}", number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(format!("f{number}.js")), "x").unwrap();
    }
    let policy = capsule.write_policy(&policy("memory: 1GiB", ""));
    let copied = exec(&capsule, &policy, &["cp", "-r", "node_modules", "copy"]).exits(0).json();
    assert_eq!(copied["result"]["changes_total"], 11_085 + 111 + 1, "{}", copied["status"]);
    let removed = exec(&capsule, &policy, &["rm", "-rf", "node_modules"]).exits(0).json();
    assert_eq!(removed["status"], "ok");
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert!(!capsule.workspace().join("node_modules").exists());
}

/// Each limit has a key, and a command that meets it is told so.
#[test]
fn limits_of_writing_have_keys() {
    let capsule = capsule();
    let many = "for (1..50) { open my $f, '>', \"n$_\" }";
    let large = "open my $f, '>', 'large'; print $f 'x' x 100_000";
    let tmp = "open my $f, '>', '/tmp/x'; print $f 'x' x 3_000_000; close $f or die";
    for (limits, sandbox, script, expected) in [
        ("", "sandbox: { changes: { paths: 20 } }\n", many, "change.too-many"),
        ("", "sandbox: { changes: { paths: 60 } }\n", many, ""),
        ("", "sandbox: { changes: { bytes: 50KB } }\n", large, "change.too-many"),
        ("", "sandbox: { changes: { bytes: 1MB } }\n", large, ""),
        ("file: 50KB", "", large, "file-size"),
        ("file: 1MB", "", large, ""),
        ("tmp: 1MB", "", tmp, "tmp"),
        ("tmp: 4MB", "", tmp, ""),
    ] {
        let policy = capsule.write_policy(&policy(limits, sandbox));
        let answer = exec(&capsule, &policy, &["perl", "-e", script]).json();
        let text = answer.to_string();
        match expected {
            "" => assert_eq!(answer["status"], "ok", "{limits}{sandbox}: {text}"),
            _ => assert!(text.contains(expected), "{limits}{sandbox}: {text}"),
        }
        let _ = capsule.run(&["discard", "latest"]);
    }
}

/// A limit that no machine keeps, or that nothing fits into, is refused with its place.
#[test]
fn limits_out_of_range_are_refused() {
    let capsule = capsule();
    for (limits, sandbox) in [
        ("", "sandbox: { changes: { paths: 0 } }\n"),
        ("", "sandbox: { changes: { paths: 2000000 } }\n"),
        ("", "sandbox: { changes: { bytes: 100GiB } }\n"),
        ("", "sandbox: { changes: { files: 3 } }\n"),
        ("", "sandbox: { mount: elsewhere }\n"),
        ("tmp: 0KB", ""),
        ("file: 100GiB", ""),
        ("tmp: many", ""),
    ] {
        let policy = capsule.write_policy(&policy(limits, sandbox));
        let told = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
        let text = format!("{}{}", told.stdout, told.stderr);
        assert!(text.contains("policy.") && text.contains("-->"), "{limits}{sandbox}: {text}");
    }
}
