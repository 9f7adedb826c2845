//! What passes through `exec`: input that is asked for, and output that nobody takes for whole if it is not.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::fs::File;
use std::process::Stdio;

use capsule_testkit::{Capsule, Ran};

const POLICY: &str = "version: 1
tools:
  shell.run:
    decision: allow
    executables: [cat, perl]
    limits: { timeout: 5s, stdout_max: 1000B, stderr_max: 100B }
";

fn bed() -> (Capsule, String) {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.policy(POLICY);
    (capsule, policy)
}

/// CAP-7: what is cut is named, with how much there was, and only then.
#[test]
fn output_that_is_cut_says_so() {
    let (capsule, policy) = bed();
    let exec = |script: &str| -> Ran {
        capsule.run(&["exec", "--policy", &policy, "--", "perl", "-e", script])
    };
    let ran = exec("print 'x' x 1001").exits(0);
    assert_eq!(ran.stdout.len(), 1000);
    let told =
        "note: standard output was cut at 1000 of 1001 bytes, as `limits` of the policy says\n";
    assert_eq!(ran.stderr, told);
    let ran = exec("print STDERR 'y' x 5000; exit 7").exits(7);
    assert!(ran.stderr.starts_with(&"y".repeat(100)), "{}", ran.stderr);
    assert!(ran.stderr.contains("standard error was cut at 100 of 5000 bytes"), "{}", ran.stderr);
    let ran = exec("print 'x' x 1000").exits(0);
    assert_eq!((ran.stdout.len(), ran.stderr.as_str()), (1000, ""));
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
