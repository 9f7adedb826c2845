//! What refusals add up to, and what people say of decisions.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use capsule_testkit::Capsule;
use serde_json::{Value, json};

const POLICY: &str = r#"version: 1
name: p
tools:
  fs.read: { decision: allow, paths: { allow: ["**"], deny: ["hiddenplace/**"] } }
  shell.run:
    form: command
    executables: { git: { subcommands: { log: allow, "*": deny } } }
"#;

const PLAN: &str = r#"version: 1
name: many
defaults: { on_error: continue }
steps:
  - { id: a, tool: fs.read, args: { path: hiddenplace/x } }
  - { id: b, tool: fs.read, args: { path: hiddenplace/x } }
  - { id: c, tool: shell.run, args: { argv: [git, push, hiddenword] } }
  - { id: d, tool: shell.run, args: { argv: [git, hiddensub, hiddenword] } }
  - { id: e, tool: fs.read, args: { path: a.md } }
  - { id: f, tool: fs.read, args: { path: .env }, expect: { denied: no-credentials } }
  - { id: g, tool: shell.run, args: { argv: ["./hidden place/prog", x] } }
  - { id: h, tool: shell.run, args: { command: "git log hiddenword | hiddengit hiddenword" } }
"#;

fn counted() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.md", "text");
    let (policy, plan) = (capsule.write_policy(POLICY), capsule.write_plan(PLAN));
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--json"]);
    assert_eq!(ran.status, 3, "{}\n{}", ran.stdout, ran.stderr);
    capsule
}

fn stats(capsule: &Capsule, of: &str, more: &[&str]) -> Value {
    let line: Vec<&str> = ["stats", of, "--json"].iter().chain(more).copied().collect();
    capsule.run(&line).exits(0).json()
}

/// SAF-8: refusals are counted by pattern, and nothing that a call was about is in what is shown.
#[test]
fn refusals_are_counted_by_pattern() {
    let capsule = counted();
    let told = stats(&capsule, "denials", &[]);
    assert_eq!(
        (&told["runs"], &told["calls"], &told["expected"]),
        (&json!(1), &json!(8), &json!(1))
    );
    let rows: Vec<(u64, &str, &str, &Value, &Value)> = told["denials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap();
            (
                row["count"].as_u64().unwrap(),
                text("tool"),
                text("code"),
                &row["rule"],
                &row["program"],
            )
        })
        .collect();
    let null = Value::Null;
    let (read, never, sub, shell) =
        (json!("fs.read"), json!("no-publishing"), json!("shell.run/git.*"), json!("shell.run"));
    let (push, git, both) = (json!("git push"), json!("git"), json!("git log | hiddengit"));
    for row in [
        (2, "fs.read", "path.not-allowed", &read, &null),
        (1, "shell.run", "policy.never", &never, &push),
        (1, "shell.run", "exec.subcommand-denied", &sub, &git),
    ] {
        assert!(rows.contains(&row), "{row:?} in {rows:#?}");
    }
    // A program's name is a pattern; its place is none.
    for program in [&both, &json!("prog")] {
        assert!(rows.iter().any(|row| row.4 == program && row.3 == &shell), "{program}: {rows:#?}");
    }
    assert_eq!(rows[0].0, 2, "the most frequent comes first: {rows:#?}");
    for of in ["denials", "safety", "friction"] {
        for ran in [capsule.run(&["stats", of]), capsule.run(&["stats", of, "--json"])] {
            let said = format!("{}{}", ran.stdout, ran.stderr);
            for secret in ["hiddenplace", "hiddenword", "hiddensub", "hidden place", "a.md"] {
                assert!(!said.contains(secret), "{secret}: {said}");
            }
        }
    }
    let text = capsule.run(&["stats", "denials"]).exits(0).stdout;
    assert!(text.contains("no-publishing · shell.run · git push · 1 run"), "{text}");
}

/// SAF-9: what was prevented, how often that was wrong, and what refusals cost.
#[test]
fn safety_and_friction_are_measured() {
    let capsule = counted();
    let safety = stats(&capsule, "safety", &[])["safety"].clone();
    assert_eq!(safety["prevented"], json!({ "no-publishing": 1 }));
    assert_eq!(safety["effects"]["publishes"], 1);
    assert_eq!((&safety["false_alarms"], &safety["missed"]), (&json!(0), &json!(0)));
    assert_eq!(safety["prevented_per_mille"], 1_000);
    let friction = stats(&capsule, "friction", &[])["friction"].clone();
    assert_eq!(friction["refusals"], 6);
    assert_eq!((&friction["rows"], &friction["overcome"]), (&json!(2), &json!(1)));
    assert_eq!(friction["ended_the_run"], 1);
    assert_eq!(friction["refusals_until_accepted"], json!({ "median": 4, "most": 4 }));
    assert_eq!(friction["repeated"], 1);
    let adapted =
        json!({ "rows": 1, "overcome": 1, "proposals_until_accepted": { "median": 4, "most": 4 } });
    assert_eq!(friction["by_code"]["path.not-allowed"], adapted, "{friction:#}");
    let text = capsule.run(&["stats", "friction"]).exits(0).stdout;
    assert!(text.contains("· 1 of 1 · median 4 · at most 4"), "{text}");
    assert!(friction["millis_until_accepted"]["median"].is_u64(), "{friction}");
    // Nothing is younger than the run that was just made, and nothing is as young as this.
    assert_eq!(stats(&capsule, "denials", &["--since", "1d"])["runs"], 1);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(stats(&capsule, "denials", &["--since", "1ms"])["runs"], 0);
    let wrong = capsule.run(&["stats", "denials", "--since", "soon"]).exits(2).stderr;
    assert!(wrong.contains("not a duration"), "{wrong}");
}

#[test]
fn no_store_has_no_refusals() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    assert_eq!(stats(&capsule, "denials", &[])["runs"], 0);
    assert!(!capsule.store().exists());
}

/// SAF-9: what people say is written down, verified, replayed, counted once, and changes nothing.
#[test]
fn feedback_is_a_run_about_a_run() {
    let capsule = counted();
    let say = |call: &str, fault: &str, more: &[&str]| {
        let line: Vec<&str> = ["feedback", call, fault].iter().chain(more).copied().collect();
        capsule.run(&line)
    };
    let label = capsule.run(&["list-runs", "--json"]).exits(0).json();
    let run = label[0]["run"].as_str().or(label["runs"][0]["run"].as_str()).unwrap().to_owned();
    let call = |step: &str| format!("{run}:{step}");
    let key = ["AKIA", "Q3EGRIB7WX5ZT2LM"].concat();
    let why = format!("it is mine {key}");
    let why = why.as_str();
    let said = say(&call("a"), "--wrong-denial", &["-m", why, "--json"]).exits(0).json();
    assert_eq!((&said["call"], &said["fault"]), (&json!(1), &json!("wrong-denial")));
    let shown = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(shown.contains("should have been allowed") && shown.contains("it is mine"), "{shown}");
    assert!(!shown.contains(&key), "{shown}");
    let json = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!(json["feedback"]["fault"], "wrong-denial");
    assert_eq!(json["opened"]["entry"]["subject"], json!(run));
    let replayed = capsule.run(&["replay", "latest"]).exits(0).stdout;
    assert!(replayed.contains("should have been allowed"), "{replayed}");
    let _ = capsule.run(&["verify"]).exits(0);
    // Twice the same is one false alarm.
    let _ = say(&call("1"), "--wrong-denial", &[]).exits(0);
    let _ = say(&call("e"), "--wrong-allow", &[]).exits(0);
    let safety = stats(&capsule, "safety", &[]);
    assert_eq!((&safety["runs"], &safety["calls"]), (&json!(1), &json!(8)));
    let safety = &safety["safety"];
    assert_eq!((&safety["false_alarms"], &safety["missed"]), (&json!(1), &json!(1)));
    assert_eq!(safety["false_alarms_per_mille"], 166);
    for (call, fault) in [(call("e"), "--wrong-denial"), (call("a"), "--wrong-allow")] {
        let wrong = say(&call, fault, &[]).exits(2).stderr;
        assert!(wrong.contains("was not"), "{wrong}");
    }
    let _ = say(&call("a"), "--wrong-allow", &["--wrong-denial"]).exits(2);
    let _ = capsule.run(&["feedback", &call("a")]).exits(2);
    let _ = say(&run, "--wrong-denial", &[]).exits(2);
    let missing = say(&call("nothing"), "--wrong-denial", &[]).exits(2).stderr;
    assert!(missing.contains("has no call"), "{missing}");
    // It is not the policy's newest run: that one still says since when the policy is the same.
    let policy = capsule.write_policy(&POLICY.replace("name: p", "name: p\ndescription: other"));
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a.md"]).exits(0);
    let _ = say(&call("a"), "--wrong-denial", &[]).exits(0);
    let again = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a.md"]).exits(0);
    assert_eq!(again.status, 0);
    let report = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("unchanged since"), "{report}");
}

/// What the policy extends is part of what it says.
#[test]
fn feedback_on_a_policy_that_extends_another_is_replayed() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.md", "text");
    let policy = capsule.write_policy("version: 1\nname: e\nextends: builtin:readonly\n");
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a.md"]).exits(0);
    let _ = capsule.run(&["feedback", "latest:1", "--wrong-allow", "-m", "why"]).exits(0);
    let _ = capsule.run(&["verify"]).exits(0);
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}

/// Feedback on a run with staged changes leaves them as they wait.
#[test]
fn feedback_leaves_staged_changes_alone() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(
        "version: 1\nname: s\ntools:\n  fs.write: { decision: allow, paths: [\"**\"] }\n\
         sandbox: { level: workspace-write }\n",
    );
    let args = r#"{"path":"new.txt","content":"x"}"#;
    let _ = capsule.run(&["call", "fs.write", "--policy", &policy, "--args", args]).exits(0);
    let before = capsule.run(&["changes", "latest", "--json"]).exits(0).json();
    let _ = capsule.run(&["feedback", "latest:1", "--wrong-allow"]).exits(0);
    // `latest` is what was said now; whoever names it means the run that it is about.
    let after = capsule.run(&["changes", "latest", "--json"]).exits(0).json();
    assert_eq!(before, after);
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert!(capsule.workspace().join("new.txt").exists());
    let _ = capsule.run(&["verify"]).exits(0);
}
