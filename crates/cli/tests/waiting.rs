//! Questions that nobody is there for: they wait in the store, are answered from another terminal,
//! and their runs go on.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::Value;

const POLICY: &str = "version: 1
name: waits
profile: later
sandbox: { workspace: staged }
profiles:
  later:
    decide: { fs.meta: allow, fs.read: allow, fs.write: allow, proc.exec: allow, \"*\": deny }
    unattended: wait
tools:
  fs.read: allow
  fs.write:
    decision: allow
    rules:
      - { id: asked, paths: [\"asked/**\"], decision: ask, because: Look at it first. }
      - { id: each, paths: [\"each/**\"], decision: ask-each }
  shell.run: { executables: { sleep: allow } }
";

const PLAN: &str = "version: 1
name: steps
steps:
  - { id: first, tool: fs.write, args: { path: a.txt, content: \"one\\n\", mode: create } }
  - { id: look, tool: fs.read, args: { path: a.txt } }
  - id: asked
    tool: fs.write
    args: { path: asked/b.txt, content: { $ref: steps.look.text }, mode: create }
  - { id: last, tool: fs.read, args: { path: asked/b.txt } }
outputs: { got: { $ref: steps.last.text } }
";

/// A workspace with a policy, in which a plan was run.
struct Place {
    capsule: Capsule,
    policy: String,
    plan: String,
}

impl Place {
    fn new(policy: &str, plan: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        for folder in ["asked", "each"] {
            fs::create_dir(capsule.workspace().join(folder)).unwrap();
        }
        let (policy, plan) = (capsule.write_policy(policy), capsule.write_plan(plan));
        Self { capsule, policy, plan }
    }

    /// A run that waits; gives the name of its question.
    #[track_caller]
    fn suspended(policy: &str, plan: &str) -> (Self, String) {
        let place = Self::new(policy, plan);
        let ran = place.run(&["run", &place.plan, "--policy", &place.policy]).exits(4);
        assert!(ran.stdout.contains("suspended · exit 4"), "{}", ran.stdout);
        let id = place.questions()[0]["id"].as_str().unwrap().to_owned();
        (place, id)
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.capsule.run(args)
    }

    #[track_caller]
    fn questions(&self) -> Vec<Value> {
        let list = self.run(&["approvals", "list", "--json"]).exits(0).json();
        list["approvals"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn allow(&self, id: &str) {
        let _ = self.run(&["approvals", "answer", id, "--allow", "once"]).exits(0);
    }

    #[track_caller]
    fn resume(&self, id: &str) -> CommandOutput {
        self.run(&["resume", id.split(':').next().unwrap()])
    }

    #[track_caller]
    fn report(&self, run: &str) -> Value {
        self.run(&["report", run, "--format", "json"]).exits(0).json()
    }

    /// Every run replays to the status that it had, and the store is what was written.
    #[track_caller]
    fn holds(&self) {
        for run in self.run(&["list-runs", "--json"]).exits(0).json().as_array().unwrap() {
            let status = run["exit"].as_i64().unwrap();
            let _ = self.run(&["replay", run["run"].as_str().unwrap()]).exits(status as i32);
        }
        let _ = self.run(&["verify"]).exits(0);
    }
}

#[track_caller]
fn fails(ran: CommandOutput, status: i32, code: &str) {
    let ran = ran.exits(status);
    assert!(ran.stderr.contains(&format!("[{code}]")), "{}", ran.stderr);
}

/// The question waits with its card; once it is answered, the run goes on from there with the results
/// and the staged changes that it had, and both runs replay.
#[test]
fn a_question_waits_and_its_run_goes_on() {
    let (place, id) = Place::suspended(POLICY, PLAN);
    assert!(!place.capsule.workspace().join("a.txt").exists(), "it is staged");
    let question = &place.questions()[0];
    assert_eq!(question["standing"], "waiting");
    assert_eq!(question["step"], "asked");
    let list = place.run(&["approvals", "list"]).exits(0).stdout;
    assert!(
        list.contains(&id) && list.contains("medium") && list.contains("asked/b.txt"),
        "{list}"
    );
    let shown = place.run(&["approvals", "show", &id]).exits(0).stdout;
    assert!(shown.contains("Look at it first") && shown.contains("content    one"), "{shown}");
    let card = place.run(&["approvals", "show", &id, "--json"]).exits(0).json();
    let exact = card["card"]["exact"].as_array().unwrap();
    assert!(exact.iter().any(|own| own["name"] == "content" && own["text"] == "one\n"), "{card}");
    let runs = place.run(&["list-runs"]).exits(0).stdout;
    assert!(runs.contains("suspended"), "{runs}");
    fails(place.resume(&id), 4, "approval.waiting");
    place.allow(&id);
    assert_eq!(place.questions()[0]["standing"], "answered");
    let ran = place.run(&["resume", "latest"]).exits(0);
    assert!(ran.stdout.contains(" 4 ✔ ok       last"), "{}", ran.stdout);
    assert_eq!(place.questions(), Vec::<Value>::new());
    let report = place.report("latest");
    assert_eq!(report["outputs"]["got"], "one\n");
    assert_eq!(report["resumed"]["steps"], 2);
    assert_eq!(report["calls"].as_array().unwrap().len(), 2, "nothing is done twice");
    // The run that waited names the one that went on with it.
    let waited = id.split(':').next().unwrap();
    let next = report["run"].as_str().unwrap();
    assert_eq!(place.report(waited)["resumed_by"], *next);
    let shown = place.run(&["show-run", waited]).exits(0).stdout;
    let named = shown.split("resumed as ").nth(1).and_then(|own| own.split(' ').next());
    assert!(named.is_some_and(|label| next.starts_with(label)), "{shown}");
    let changes = place.run(&["changes", "latest"]).exits(0).stdout;
    assert!(changes.contains("A a.txt") && changes.contains("A asked/b.txt"), "{changes}");
    let _ = place.run(&["apply", "latest"]).exits(0);
    let applied = fs::read_to_string(place.capsule.workspace().join("asked/b.txt")).unwrap();
    assert_eq!(applied, "one\n");
    place.holds();
}

/// A run that went on is one file that replays elsewhere: it holds the results that it began with.
#[test]
fn a_run_that_went_on_stands_alone() {
    let (place, id) = Place::suspended(POLICY, PLAN);
    place.allow(&id);
    let out = place.capsule.directory().join("out.db");
    let out = out.to_str().unwrap();
    let run = id.split(':').next().unwrap();
    let _ = place.run(&["resume", run, "--out", out]).exits(0);
    fs::remove_file(place.capsule.store()).unwrap();
    let ran = place.run(&["replay", "latest", "--store", out]).exits(0);
    assert!(ran.stdout.contains("output got: one"), "{}", ran.stdout);
}

/// A no is carried out with its reason, as if the person had sat there.
#[test]
fn a_denial_is_carried_out() {
    for (how, code, last) in
        [("--deny", "approval.denied", true), ("--stop", "approval.stopped", false)]
    {
        let plan = PLAN
            .replace("    args: { path: asked", "    on_error: continue\n    args: { path: asked");
        let plan = plan.replace(
            "path: asked/b.txt } }\noutputs: { got: { $ref: steps.last.text } }",
            "path: a.txt } }",
        );
        let (place, id) = Place::suspended(POLICY, &plan);
        let _ = place.run(&["approvals", "answer", &id, how, "-m", "Not in that folder."]).exits(0);
        let ran = place.resume(&id).exits(3);
        assert!(ran.stdout.contains("Not in that folder."), "{}", ran.stdout);
        let report = place.report("latest");
        assert_eq!(report["calls"][0]["problem"]["code"], code);
        assert_eq!(report["calls"].as_array().unwrap().len() == 2, last, "{how}");
        place.holds();
    }
}

/// F5: an answer is given once, used once, and only where a question waits for it.
#[test]
fn answers_are_given_and_used_once() {
    let offers = format!("{POLICY}grants: {{ offer: [once] }}\n");
    let (place, id) = Place::suspended(&offers, PLAN);
    let answer = |how: &[&str]| {
        let line: Vec<&str> = [&["approvals", "answer", &id], how].concat();
        place.run(&line)
    };
    fails(answer(&["--allow", "task"]), 2, "approval.not-offered");
    fails(
        place.run(&["approvals", "answer", &format!("{id}1"), "--deny"]),
        2,
        "approval.not-waiting",
    );
    let _ = answer(&[]).exits(2);
    let _ = answer(&["--allow", "once", "--stop"]).exits(2);
    let _ = answer(&["--allow", "once"]).exits(0);
    fails(answer(&["--deny"]), 2, "approval.answered");
    // F26: whoever comes second finds nothing to go on with.
    let run = id.split(':').next().unwrap();
    let spawn = || {
        let mut command = place.capsule.command(&["resume", run]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let racers: Vec<_> = (0..4).map(|_| spawn()).collect();
    let ended: Vec<CommandOutput> =
        racers.into_iter().map(|own| own.wait_with_output().unwrap().into()).collect();
    let won = ended.iter().filter(|own| own.status == 0).count();
    assert_eq!(won, 1, "{ended:?}");
    fails(place.resume(&id), 2, "resume.again");
    fails(answer(&["--deny"]), 2, "resume.again");
    fails(place.resume("latest"), 2, "approval.not-waiting");
    place.holds();
}

/// F8: an answer holds for the plan, the policy and the workspace that the question was asked in.
#[test]
fn an_answer_does_not_outlive_what_it_was_about() {
    let (place, id) = Place::suspended(POLICY, PLAN);
    place.allow(&id);
    let changed = |path: &str, text: &str| {
        let before = fs::read(path).unwrap();
        fs::write(path, text).unwrap();
        fails(place.resume(&id), 2, "resume.changed");
        fs::write(path, before).unwrap();
    };
    changed(&place.policy, &format!("{POLICY}# another\n"));
    changed(&place.plan, &PLAN.replace("asked/b.txt", "asked/c.txt"));
    let (ws, away) = (place.capsule.workspace(), place.capsule.directory().join("away"));
    fs::rename(&ws, &away).unwrap();
    fs::create_dir(&ws).unwrap();
    fails(place.resume(&id), 2, "resume.changed");
    fs::remove_dir(&ws).unwrap();
    fs::rename(&away, &ws).unwrap();
    // None of that used it up.
    let _ = place.resume(&id).exits(0);
    place.holds();
}

/// Staged changes that somebody applied or dropped are not there to go on from.
#[test]
fn staged_changes_belong_to_the_run() {
    let (place, id) = Place::suspended(POLICY, PLAN);
    place.allow(&id);
    let _ = place.run(&["discard", id.split(':').next().unwrap()]).exits(0);
    fails(place.resume(&id), 2, "resume.changed");
}

/// F1, F2: what is there when the run goes on must be what was there when it was asked.
#[test]
fn what_was_answered_must_still_be_there() {
    let plan = "version: 1
steps:
  - { id: asked, tool: fs.write, args: { path: asked/b.txt, content: x, mode: overwrite } }
";
    for how in [&["--allow", "once"][..], &["--deny"]] {
        let (place, id) = Place::suspended(POLICY, plan);
        let _ = place.run(&[&["approvals", "answer", &id], how].concat()).exits(0);
        place.capsule.write_file("asked/b.txt", "somebody's\n");
        let ran = place.resume(&id).exits(3);
        assert!(ran.stdout.contains("answered before it changed"), "{}", ran.stdout);
        let code = &place.report("latest")["calls"][0]["problem"]["code"];
        assert_eq!(code, "approval.changed-after");
        let kept = fs::read_to_string(place.capsule.workspace().join("asked/b.txt")).unwrap();
        assert_eq!(kept, "somebody's\n");
        place.holds();
    }
}

/// What stands in the file that is overwritten is on the card, so it must stand there still.
#[test]
fn the_lines_that_were_seen_are_those_that_differ() {
    let plan = "version: 1
steps:
  - { id: asked, tool: fs.write, args: { path: asked/b.txt, content: \"new\\n\", mode: overwrite } }
";
    for (now, status) in [("old\n", 0), ("another\n", 3)] {
        let place = Place::new(POLICY, plan);
        place.capsule.write_file("asked/b.txt", "old\n");
        let _ = place.run(&["run", &place.plan, "--policy", &place.policy]).exits(4);
        let id = place.questions()[0]["id"].as_str().unwrap().to_owned();
        let shown = place.run(&["approvals", "show", &id]).exits(0).stdout;
        assert!(shown.contains("-old") && shown.contains("+new"), "{shown}");
        place.allow(&id);
        place.capsule.write_file("asked/b.txt", now);
        let _ = place.resume(&id).exits(status);
        place.holds();
    }
}

/// What is asked each time waits too, and no budget begins anew with the answer.
#[test]
fn what_was_used_before_counts_after() {
    let plan = "version: 1
steps:
  - { id: one, tool: fs.read, args: { path: a } }
  - { id: two, tool: fs.write, args: { path: each/b, content: x, mode: create } }
  - { id: three, tool: fs.read, args: { path: a } }
  - { id: four, tool: fs.read, args: { path: each/b } }
";
    let policy = format!("{POLICY}budgets: {{ run: {{ calls: 3 }} }}\n");
    let place = Place::new(&policy, plan);
    place.capsule.write_file("a", "hello\n");
    let _ = place.run(&["run", &place.plan, "--policy", &place.policy]).exits(4);
    let id = place.questions()[0]["id"].as_str().unwrap().to_owned();
    place.allow(&id);
    let _ = place.resume(&id).exits(7);
    let report = place.report("latest");
    let codes: Vec<&Value> =
        report["calls"].as_array().unwrap().iter().map(|call| &call["decision"]["code"]).collect();
    assert_eq!(codes, ["policy.asked", "policy.allowed", "budget.calls"]);
    place.holds();
}

/// A second question suspends the run that went on, and that is gone on with in the same way.
#[test]
fn a_run_can_wait_more_than_once() {
    let plan = format!(
        "{}  - {{ id: more, tool: fs.write, args: {{ path: each/c.txt, content: {{ $ref: steps.look.text }}, mode: create }} }}\n",
        PLAN.split("outputs").next().unwrap()
    );
    let (place, id) = Place::suspended(POLICY, &plan);
    place.allow(&id);
    let _ = place.resume(&id).exits(4);
    let second = place.questions()[0]["id"].as_str().unwrap().to_owned();
    assert_ne!(id, second);
    place.allow(&second);
    let ran = place.resume(&second).exits(0);
    assert!(ran.stdout.contains(" 5 ✔ ok       more"), "{}", ran.stdout);
    let changes = place.run(&["changes", "latest"]).exits(0).stdout;
    assert_eq!(changes.lines().count(), 3, "{changes}");
    let _ = place.run(&["apply", "latest"]).exits(0);
    let made = fs::read_to_string(place.capsule.workspace().join("each/c.txt")).unwrap();
    assert_eq!(made, "one\n");
    place.holds();
}

/// Whenever the process is killed: either the question waits with a run that is at its end, or there
/// is none.
#[test]
fn a_kill_leaves_no_half_of_a_question() {
    let place = Place::new(POLICY, PLAN);
    let mut suspended = 0;
    for round in 0..24 {
        let mut command = place.capsule.command(&["run", &place.plan, "--policy", &place.policy]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 10));
        let _ = child.kill();
        child.wait().unwrap();
    }
    let _ = place.run(&["run", &place.plan, "--policy", &place.policy]).exits(4);
    for run in place.run(&["list-runs", "--json"]).exits(0).json().as_array().unwrap() {
        let records = place.report(run["run"].as_str().unwrap())["records"].clone();
        let kinds: Vec<&str> = records
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|own| own["entry"]["kind"].as_str())
            .collect();
        let waits = kinds.contains(&"approval.waiting");
        assert_eq!(waits, run["suspended"] == true, "{run} {kinds:?}");
        suspended += usize::from(waits);
    }
    let questions = place.questions();
    assert_eq!(questions.len(), suspended);
    let id = questions[0]["id"].as_str().unwrap();
    place.allow(id);
    let _ = place.resume(id).exits(0);
    let _ = place.run(&["verify"]).exits(0);
}

/// Grants are listed as long as they are alive; one that is taken back stops the next call (F7).
#[test]
fn grants_are_shown_and_taken_back() {
    let plan = "version: 1
steps:
  - { id: one, tool: fs.write, args: { path: asked/1, content: x, mode: create } }
  - { id: two, tool: fs.write, args: { path: asked/2, content: x, mode: create } }
  - { id: wait, tool: shell.run, args: { argv: [sleep, \"6\"] } }
  - { id: three, tool: fs.write, args: { path: asked/3, content: x, mode: create } }
";
    let (place, id) = Place::suspended(POLICY, plan);
    let grants = || {
        let list = place.run(&["grants", "list", "--json"]).exits(0).json();
        list["grants"].as_array().unwrap().clone()
    };
    assert_eq!(grants(), Vec::<Value>::new());
    fails(place.run(&["grants", "revoke", &id]), 2, "grant.unknown");
    let task = ["approvals", "answer", &id, "--allow", "task"];
    // An answer that waits can be taken back, and the question waits again.
    for taken in [&["grants", "revoke", &id][..], &["grants", "clear"]] {
        let _ = place.run(&task).exits(0);
        assert_eq!(grants()[0]["id"], id.as_str());
        assert_eq!(grants()[0]["stored"], true);
        let _ = place.run(taken).exits(0);
        assert_eq!(grants(), Vec::<Value>::new());
        fails(place.resume(&id), 4, "approval.waiting");
    }
    let _ = place.run(&task).exits(0);
    let run = id.split(':').next().unwrap();
    let mut command = place.capsule.command(&["resume", run]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let live = loop {
        let all = grants();
        let live = all.iter().find(|own| own["stored"] == false && own["left"] == 18).cloned();
        match live {
            Some(live) => break live,
            None => assert!(Instant::now() < end, "{all:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(live["covers"], "`fs.write` beneath asked/");
    let shown = place.run(&["grants", "list"]).exits(0).stdout;
    assert!(shown.contains("18 uses · ends in 4 h"), "{shown}");
    let _ = place.run(&["grants", "revoke", live["id"].as_str().unwrap()]).exits(0);
    assert_eq!(grants(), Vec::<Value>::new());
    let ran = CommandOutput::from(child.wait_with_output().unwrap()).exits(4);
    assert!(ran.stdout.contains("suspended"), "{}", ran.stdout);
    assert_eq!(place.questions()[0]["step"], "three");
    place.holds();
}

/// What people were asked is counted by rule, and names nothing else.
#[test]
fn prompts_are_counted() {
    let (place, id) = Place::suspended(POLICY, PLAN);
    place.allow(&id);
    let _ = place.resume(&id).exits(0);
    let stats = place.run(&["stats", "approvals", "--json"]).exits(0).json();
    let own = &stats["approvals"];
    assert_eq!((&own["prompts"], &own["unattended"]), (&1.into(), &1.into()), "{stats}");
    assert_eq!(own["rules"]["fs.write/asked"]["allowed"], 1, "{stats}");
    assert_eq!(stats["prompts_per_hour"], "1.0");
    let told = place.run(&["stats", "approvals"]).exits(0).stdout;
    assert!(told.contains("fs.write/asked · 1 allowed · 0 denied"), "{told}");
    assert!(!told.contains("b.txt"), "{told}");
}

/// Where the record would not hold what is needed to go on, a question with nobody there is a denial.
#[test]
fn what_could_not_go_on_does_not_wait() {
    let place = Place::new(POLICY, PLAN);
    let unstaged = POLICY.replace("sandbox: { workspace: staged }\n", "");
    let policy = place.capsule.write_policy(&format!("{unstaged}audit: {{ payloads: digest }}\n"));
    let _ = place.run(&["run", &place.plan, "--policy", &policy]).exits(4);
    assert_eq!(place.questions(), Vec::<Value>::new());
}

/// A single call is a run with one call: it waits like any other, and is made again when it is answered.
#[test]
fn a_single_call_waits() {
    let place = Place::new(POLICY, PLAN);
    let args = r#"{"path": "asked/x", "content": "one\n", "mode": "create"}"#;
    let call = ["call", "fs.write", "--policy", &place.policy, "--args", args];
    let ran = place.run(&call).exits(4);
    assert!(ran.stdout.contains("approval.waiting"), "{}", ran.stdout);
    assert!(ran.stderr.contains("capsule resume r-"), "{}", ran.stderr);
    let id = place.questions()[0]["id"].as_str().unwrap().to_owned();
    fails(place.resume(&id), 4, "approval.waiting");
    place.allow(&id);
    let ran = place.resume(&id).exits(0);
    assert!(ran.stdout.contains("\"status\""), "{}", ran.stdout);
    fails(place.resume(&id), 2, "resume.again");
    let _ = place.run(&["apply", "latest"]).exits(0);
    let made = fs::read_to_string(place.capsule.workspace().join("asked/x")).unwrap();
    assert_eq!(made, "one\n");
    // A no is carried out, and what changed meanwhile is not run.
    let args = r#"{"path": "asked/y", "content": "one\n", "mode": "overwrite"}"#;
    let call = ["call", "fs.write", "--policy", &place.policy, "--args", args];
    for (how, changes, code) in [
        (&["--deny", "-m", "Not there."][..], false, "approval.denied"),
        (&["--allow", "once"], true, "approval.changed-after"),
    ] {
        let _ = place.run(&call).exits(4);
        let id = place.questions()[0]["id"].as_str().unwrap().to_owned();
        let _ = place.run(&[&["approvals", "answer", &id], how].concat()).exits(0);
        if changes {
            place.capsule.write_file("asked/y", "somebody's\n");
        }
        let ran = place.resume(&id).exits(3);
        assert!(ran.stdout.contains(code), "{}", ran.stdout);
    }
    place.holds();
}

/// So does a command, of which the output passes through once it runs.
#[test]
fn a_single_command_waits() {
    let policy = POLICY.replace("sleep: allow", "printf: ask, \"false\": ask");
    let place = Place::new(&policy, PLAN);
    for (words, status) in [(&["printf", "hello"][..], 0), (&["false"], 1)] {
        let line = [&["exec", "--policy", &place.policy, "--"], words].concat();
        let ran = place.run(&line).exits(4);
        assert!(ran.stderr.contains("waits") && ran.stdout.is_empty(), "{ran:?}");
        let id = place.questions()[0]["id"].as_str().unwrap().to_owned();
        place.allow(&id);
        let ran = place.resume(&id).exits(status);
        assert_eq!(ran.stdout, if status == 0 { "hello" } else { "" }, "{ran:?}");
    }
    place.holds();
}

/// Of a credential the record holds a mask, and a mask cannot be gone on with.
#[test]
fn what_is_masked_does_not_wait() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2).get(..36).unwrap());
    let place = Place::new(POLICY, PLAN);
    let args = serde_json::json!({ "path": "asked/x", "content": secret }).to_string();
    let call = ["call", "fs.write", "--policy", &place.policy, "--args", &args];
    let ran = place.run(&call).exits(4);
    assert!(ran.stdout.contains("approval.needed"), "{}", ran.stdout);
    assert_eq!(place.questions(), Vec::<Value>::new());
    place.holds();
}
