//! What passes through `exec`: input that is asked for, and output that nobody takes for whole if it is not.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::fs::File;
use std::process::Stdio;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

const POLICY: &str = "version: 1
tools:
  shell.run:
    decision: allow
    executables: [cat, perl]
    limits: { timeout: 5s, stdout_max: 1000B, stderr_max: 100B }
";

fn bed() -> (Capsule, String) {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(POLICY);
    (capsule, policy)
}

/// CAP-7, W15: `exec` passes all output on. Of a long one the record keeps the beginning and the end, and how
/// much there was.
#[test]
fn output_passes_whole_and_is_kept_in_part() {
    let (capsule, policy) = bed();
    let exec = |script: &str| -> CommandOutput {
        capsule.run(&["exec", "--policy", &policy, "--", "perl", "-e", script])
    };
    let result = |at: &str| -> Value {
        let shown = capsule.run(&["show-run", &format!("latest:{at}"), "--json"]).exits(0).json();
        shown["result"].clone()
    };
    let ran = exec("print 'x' x 900, 'y' x 3000, 'z' x 100").exits(0);
    let whole = format!("{}{}{}", "x".repeat(900), "y".repeat(3_000), "z".repeat(100));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (whole.as_str(), ""));
    let kept = result("1");
    assert_eq!(kept["stdout"].as_str(), whole.get(..750));
    assert_eq!(kept["stdout_tail"].as_str(), whole.get(whole.len() - 250..));
    assert_eq!((&kept["stdout_bytes_total"], &kept["truncated"]), (&json!(4_000), &json!(true)));
    // What is one byte too long has its end in the tail.
    let ran = exec("print 'x' x 1000, 'z'").exits(0);
    assert_eq!(ran.stdout.len(), 1_001);
    let kept = result("1");
    let lengths = ["stdout", "stdout_tail"].map(|name| kept[name].as_str().unwrap().len());
    assert_eq!(lengths, [750, 250]);
    assert!(kept["stdout_tail"].as_str().unwrap().ends_with("xz"));
    let ran = exec("print STDERR 'y' x 5000; exit 7").exits(7);
    assert!(ran.stderr.starts_with(&"y".repeat(5_000)), "{}", ran.stderr);
    assert_eq!(result("1")["stderr_tail"], "y".repeat(25));
    let ran = exec("print 'x' x 1000").exits(0);
    assert_eq!((ran.stdout.len(), ran.stderr.as_str()), (1000, ""));
    assert_eq!(result("1").get("stdout_tail"), None);
    // Bytes that are no text pass as they are, too.
    let line = ["exec", "--policy", &policy, "--", "perl", "-e", "print pack('C*', 0..255) x 40"];
    let ran = capsule.command(&line).output().unwrap();
    let bytes: Vec<u8> = (0..40).flat_map(|_| 0..=255).collect();
    assert_eq!((ran.status.code(), ran.stdout), (Some(0), bytes));
}

/// G10: a secret is masked in what passes, however much passed before it, and in the end that is kept, also
/// where its beginning is not.
#[test]
fn what_passes_is_masked_to_its_end() {
    let (capsule, policy) = bed();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    for before in [0, 5_000, 100_000] {
        let script = format!("print 'x ' x {before}, '{token}', ' y' x 110");
        let line = ["exec", "--policy", &policy, "--", "perl", "-e", &script];
        let ran = capsule.run(&line).exits(0);
        assert!(!ran.stdout.contains("a1B2") && ran.stdout.contains("\u{ab}"), "{before}");
        let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0);
        let kept = shown.json()["result"].to_string();
        assert!(!kept.contains("a1B2a1B2"), "{before}: {kept}");
    }
}

/// W15: an archive is whole on the other side of a pipe, and in a file that the command language names.
#[test]
fn large_archives_are_whole() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let seed: Vec<u8> =
        (0..400_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let _ = capsule.write_file("data.bin", &seed);
    let git = |line: &str| {
        let mut git = std::process::Command::new("git");
        git.args(line.split(' ')).current_dir(capsule.workspace());
        git.env("HOME", capsule.home());
        let ran = git.output().unwrap();
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
        ran.stdout
    };
    for line in ["init -q .", "add .", "-c user.name=a -c user.email=a@example.org commit -qm a"] {
        let _ = git(line);
    }
    let expected = git("archive HEAD");
    let exec = ["exec", "--unattended", "--policy", "builtin:developer", "--"];
    let ran = capsule.command(&[&exec[..], &["git", "archive", "HEAD"]].concat()).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{told}");
    assert_eq!((ran.stdout.len(), ran.stdout == expected), (expected.len(), true));
    let args = r#"{"command": "git archive HEAD > out.tar; cat out.tar | wc -c"}"#;
    let call = ["call", "shell.run", "--policy", "builtin:developer", "--args", args];
    let ran = capsule.run(&call).exits(0).json();
    assert_eq!(ran["result"]["stdout"].as_str().map(str::trim), Some(&*expected.len().to_string()));
    // Where it is a model that reads it, what it gets is marked.
    let args = r#"{"argv": ["git", "archive", "HEAD"]}"#;
    let call = ["call", "shell.run", "--policy", "builtin:developer", "--args", args];
    let ran = capsule.run(&call).exits(0).json();
    assert_eq!(ran["result"]["truncated"], true);
    assert_eq!(ran["result"]["stdout_bytes_total"], expected.len());
    assert!(ran["result"]["stdout_tail_base64"].is_string());
}

/// Text that is cut stays text, wherever the cut is.
#[test]
fn no_character_is_cut_in_two() {
    let (capsule, policy) = bed();
    for before in 0..4 {
        let script = format!("print 'x' x {before}, qq(\\xe2\\x82\\xac) x 1000");
        let line = ["exec", "--policy", &policy, "--", "perl", "-e", &script];
        let _ = capsule.run(&line).exits(0);
        let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
        let kept = ["stdout", "stdout_tail"]
            .map(|name| shown["result"][name].as_str().unwrap().to_owned());
        assert!(
            kept[0].ends_with('\u{20ac}') && kept[1].starts_with('\u{20ac}'),
            "{before}: {kept:?}"
        );
    }
}

/// Output that cannot be written is no success; a reader that has had enough is none of our
/// business.
#[test]
fn output_that_is_lost_is_no_success() {
    let (capsule, policy) = bed();
    let full = |script: &str| {
        let line = ["exec", "--policy", &policy, "--", "perl", "-e", script];
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = capsule.command(&line).stdout(full).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    let (status, told) = full("print 'x'");
    assert_eq!(status, Some(10), "{told}");
    assert_eq!(
        told,
        "note: standard output could not be written: No space left on device (os error 28)\n"
    );
    let (status, _) = full("print 'x'; exit 3");
    assert_eq!(status, Some(3), "its own status says more");
    assert_eq!(full("exit 0"), (Some(0), String::new()), "nothing is lost");
    let line = ["exec", "--policy", &policy, "--", "perl", "-e", "print 'x' x 900"];
    let mut child =
        capsule.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!((ran.status.code(), ran.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Standard input is passed on where that is asked for, and is a part of the call.
#[test]
fn standard_input_is_passed_on_when_asked_for() {
    let (capsule, policy) = bed();
    let line = ["exec", "--policy", &policy, "--stdin", "--", "cat"];
    let ran = capsule.run_with(&line, "hello\nyou").exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hello\nyou", ""));
    let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0);
    assert!(shown.stdout.contains(r"hello\nyou"), "{}", shown.stdout);
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let without = ["exec", "--policy", &policy, "--", "cat"];
    assert_eq!(capsule.run_with(&without, "hello").exits(0).stdout, "");
    let ran = capsule.run_with(&line, &"x".repeat(1_000_001)).exits(2);
    assert!(ran.stderr.contains("has more than 1000000 bytes"), "{}", ran.stderr);
}
