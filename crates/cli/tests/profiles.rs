//! What each profile comes to, with the real program, on machines that can hold everything, less, and
//! nothing.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::fmt::Write as _;
use std::fs;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::json;

/// No rule has a word of its own, so that the profile decides.
const POLICY: &str = "version: 1
name: whole
profile: PROFILE
sandbox: { floor: FLOOR, workspace: staged }
tools:
  fs.read: { paths: [\"**\"] }
  fs.write: { paths: [\"**\"] }
  fs.delete: { paths: [\"**\"] }
  http.get: { domains: [example.org] }
  shell.run: { executables: { cat: {}, touch: { writes: [\"**\"] } } }
";

/// A machine, by what its kernel gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// Everything.
    Namespaces,
    /// Landlock and seccomp alone.
    Landlock,
    /// Nothing.
    Nothing,
}

impl World {
    fn run(self, capsule: &Capsule, args: &[&str]) -> CommandOutput {
        match self {
            Self::Namespaces => capsule.run(args),
            Self::Landlock => capsule.run_without_namespaces(args),
            Self::Nothing => capsule.run_without_sandbox(args),
        }
    }
}

const CALLS: [&str; 6] = ["read", "write", "delete", "command", "change", "network"];

fn args(call: &str) -> (&'static str, String) {
    let (tool, args) = match call {
        "read" => ("fs.read", json!({ "path": "a.txt" })),
        "write" => ("fs.write", json!({ "path": "new", "content": "x", "mode": "create" })),
        "delete" => ("fs.delete", json!({ "path": "a.txt" })),
        "command" => ("shell.run", json!({ "argv": ["cat", "a.txt"] })),
        "change" => ("shell.run", json!({ "argv": ["touch", "new"] })),
        _ => ("http.get", json!({ "url": "https://example.org/" })),
    };
    (tool, args.to_string())
}

/// What a call came to, in a word: `ok`, `asked` with nobody there, `denied`, `no walls` for a command that
/// no sandbox can hold as the policy wants, `no run` where nothing began.
fn word(ran: &CommandOutput) -> String {
    let has = |code: &str| ran.stdout.contains(&format!("\"{code}\""));
    let none = ran.stderr.contains("[profile.requires]");
    match ran.status {
        0 => "ok".into(),
        4 if has("approval.needed") => "asked".into(),
        3 if has("profile.denied") => "denied".into(),
        8 if has("sandbox.below-floor") => "no walls".into(),
        8 if none => "no run".into(),
        other => format!("{other}? {} {}", ran.stdout, ran.stderr),
    }
}

/// APR-9, house rule 3: what every profile comes to. One row for a machine, the sandbox that the policy
/// wants, and a profile; one column for each of `CALLS`.
#[test]
fn every_profile_on_every_machine() {
    use World::{Landlock, Namespaces, Nothing};
    const OK: &str = "ok";
    const ASKED: &str = "asked";
    const DENIED: &str = "denied";
    const WALLS: &str = "no walls";
    const NO_RUN: [&str; 6] = ["no run"; 6];
    let supervised = [OK, ASKED, ASKED, ASKED, ASKED, ASKED];
    let autonomous = [OK, OK, ASKED, OK, ASKED, DENIED];
    let readonly = [OK, DENIED, DENIED, DENIED, DENIED, DENIED];
    // Commands are refused before anybody is asked.
    let without = |row: [&'static str; 6]| {
        let [read, write, delete, _, _, network] = row;
        [read, write, delete, WALLS, WALLS, network]
    };
    let rows = [
        (Namespaces, "namespaces", "supervised", supervised),
        (Namespaces, "namespaces", "autonomous", autonomous),
        (Namespaces, "namespaces", "readonly", readonly),
        (Landlock, "namespaces", "supervised", without(supervised)),
        (Landlock, "namespaces", "autonomous", NO_RUN),
        (Landlock, "namespaces", "readonly", without(readonly)),
        (Landlock, "landlock", "supervised", supervised),
        (Landlock, "landlock", "autonomous", autonomous),
        (Landlock, "landlock", "readonly", readonly),
        (Nothing, "landlock", "supervised", without(supervised)),
        (Nothing, "landlock", "autonomous", NO_RUN),
        (Nothing, "landlock", "readonly", without(readonly)),
    ];
    let mut wrong = String::new();
    for (world, floor, profile, expected) in rows {
        for (call, expected) in CALLS.into_iter().zip(expected) {
            let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
            capsule.write_file("a.txt", "content");
            let policy = POLICY.replace("PROFILE", profile).replace("FLOOR", floor);
            let policy = capsule.write_policy(&policy);
            let (tool, args) = args(call);
            let line = ["call", tool, "--args", &args, "--policy", &policy, "--json"];
            let came = word(&world.run(&capsule, &line));
            // What is changed is staged, what is not allowed is not done, and `readonly` changes nothing.
            let ws = capsule.workspace();
            let kept = fs::read(ws.join("a.txt")).is_ok_and(|own| own == b"content");
            let kept = kept && !ws.join("new").exists();
            let runs = capsule.run(&["list-runs", "--json"]).stdout.matches("\"run\"").count();
            let begun = came != "no run";
            if came != expected || !kept || runs != usize::from(begun) {
                let row = format!("{world:?} {floor} {profile} {call}");
                writeln!(wrong, "{row}: {came}, not {expected}; kept {kept}, {runs} runs").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// APR-10: the header says what is really enforced, a refusal to start says what is not, and the
/// doctor says both before.
#[test]
fn what_is_enforced_is_said() {
    use World::{Landlock, Namespaces, Nothing};
    for (world, header, starts, why) in [
        (Namespaces, "✔ held namespaces landlock seccomp", "held", ""),
        (Landlock, "⚠ weaker landlock seccomp · no namespaces", "weaker", "gives `landlock`"),
        (Nothing, "✖ none: commands are refused", "missing", "there is none"),
    ] {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = POLICY.replace("PROFILE", "supervised").replace("FLOOR", "namespaces");
        let policy = capsule.write_policy(&policy);
        let _ = world.run(&capsule, &["exec", "--policy", &policy, "--", "cat", "a.txt"]);
        let report = capsule.run(&["report", "latest"]).exits(0).stdout;
        assert!(report.contains(header), "{world:?}: {report}");
        let line = ["exec", "--profile", "autonomous", "--policy", &policy, "--", "cat", "a.txt"];
        let policy = POLICY.replace("PROFILE", "autonomous").replace("FLOOR", "namespaces");
        let _ = capsule.write_policy(&policy);
        let ran = world.run(&capsule, &line);
        if world != Namespaces {
            let ran = ran.exits(8);
            let wants = "the profile `autonomous` wants an enforced sandbox";
            assert!(ran.stderr.contains(wants) && ran.stderr.contains(why), "{}", ran.stderr);
        }
        let doctor = world.run(&capsule, &["doctor", "--json"]).json();
        let checks = doctor["checks"].as_array().unwrap();
        let of = |name: &str| checks.iter().find(|own| own["name"] == name).unwrap();
        assert_eq!(of("profile: autonomous")["hold"], starts, "{world:?}");
        assert_eq!(of("profile: supervised")["hold"], starts, "{world:?}");
        assert_eq!(of("profile: readonly")["hold"], "held", "{world:?}");
    }
}
