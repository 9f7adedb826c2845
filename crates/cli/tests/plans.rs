//! The plan language, end to end.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, HttpServer};
use rusqlite::{Connection, OpenFlags};

const POLICY: &str = "version: 1
tools:
  fs.read: allow
  fs.list: allow
  fs.write: { decision: allow, paths: [\"out/**\"] }
";

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// CAP-2: a list of steps with a tool and arguments is a plan.
#[test]
fn the_simplest_plan_is_a_list() {
    let capsule = capsule();
    capsule.write_file("a.txt", "hello");
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "- tool: fs.read\n  args: { path: a.txt }\n- tool: file_read\n  args: { path: a.txt }\n",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    assert!(ran.stdout.contains("2 ok · 0 failed"), "{}", ran.stdout);
}

/// CAP-2: references, functions, expectations, inputs and outputs.
#[test]
fn the_whole_language_works() {
    let server = HttpServer::fixed(
        "200 OK",
        "Content-Type: application/json\r\n",
        r#"[{"title":"one"},{"title":"two"}]"#,
    );
    let capsule = capsule();
    capsule.write_file("template.md", "since {{ since }}\n{{ lines }}\n{{issues}}\n");
    capsule.write_file("log.txt", "first\n\nsecond\n");
    let policy = capsule.write_policy(&format!(
        "{POLICY}  http.get:
    decision: allow
    urls: [\"http://127.0.0.1:{}/**\"]
    private_ips: {{ allow: [127.0.0.1] }}
",
        server.port()
    ));
    let plan = capsule.write_plan(&format!(
        r#"
version: 1
name: notes
inputs:
  since: {{ type: string, default: v1.0.0, pattern: "v[0-9.]+" }}
  port: {{ type: integer, default: {port} }}
  deep: {{ type: boolean, default: false }}
defaults: {{ on_error: stop, timeout: 5s }}
steps:
  - id: template
    name: The template
    tool: fs.read
    args: {{ path: template.md }}
    expect: {{ text: {{ contains: since, max: 1KB, not_empty: true }}, binary: false }}
  - id: log
    tool: fs.read
    args: {{ path: {{ $concat: [log, .txt] }} }}
  - id: issues
    tool: http.get
    args:
      url:
        $url:
          base: {{ $concat: ["http://127.0.0.1:", {{ $ref: inputs.port }}, "/issues"] }}
          query: {{ state: "closed & open", since: {{ $ref: inputs.since }} }}
    expect: {{ status: 200, json: {{ type: array, min: 2 }} }}
  - id: probe
    tool: fs.read
    args: {{ path: .env }}
    expect: {{ denied: no-credentials }}
  - id: missing
    tool: fs.read
    args: {{ path: nothing.txt }}
    expect: {{ failed: fs.not-found }}
  - id: skipped
    tool: fs.read
    args: {{ path: log.txt }}
    when: {{ $ref: inputs.deep }}
  - id: flaky
    tool: fs.read
    args: {{ path: nothing.txt }}
    on_error: continue
  - id: notes
    needs: [template, log]
    when: {{ $not_empty: {{ $ref: steps.log.text }} }}
    tool: fs.write
    args:
      path: out/notes.md
      content:
        $template:
          text: {{ $ref: steps.template.text }}
          vars:
            since: {{ $ref: inputs.since }}
            lines: {{ $lines: {{ $ref: steps.log.text }} }}
            issues: {{ $default: [{{ $ref: steps.flaky.text }}, {{ $ref: steps.issues.json.1.title }}] }}
    expect: {{ changed: true, capabilities: [fs.write], added: 4 }}
outputs:
  path: {{ $ref: steps.notes.path }}
  none: {{ $ref: steps.skipped.text }}
"#,
        port = server.port()
    ));
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--input", "since=v2.1"]).exits(0);
    let made = fs::read_to_string(capsule.workspace().join("out/notes.md")).unwrap();
    assert_eq!(made, "since v2.1\nfirst\nsecond\ntwo\n");
    assert_eq!(server.requests()[0].target, "/issues?state=closed+%26+open&since=v2.1");
    for part in
        ["5 ok", "1 failed", "1 denied as expected", "1 skipped", "output path: out/notes.md"]
    {
        assert!(ran.stdout.contains(part), "{part}:\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("⚠ untrusted"), "{}", ran.stdout);
    // Taint travels: the written content derives from what the server said.
    let shown = capsule.run(&["show-run", "latest:notes", "--json"]).exits(0).json();
    assert_eq!(shown["tainted"], serde_json::json!(["content"]));
}

/// CAP-12: an unexpected end stops the run, with the exit code of what happened first in order.
#[test]
fn what_is_not_expected_ends_the_run() {
    let capsule = capsule();
    capsule.write_file("a.txt", "hello");
    let policy = capsule.write_policy(POLICY);
    let good = "- tool: fs.read\n  args: { path: a.txt }\n";
    for (step, exit, says) in [
        ("tool: fs.read\n  args: { path: nothing }", 1, "fs.not-found"),
        ("tool: fs.read\n  args: { path: /etc/passwd }", 3, "path.outside-workspace"),
        ("tool: fs.write\n  args: { path: x, content: y }", 3, "open are `out/**`"),
        ("tool: http.get\n  args: { url: https://example.org/ }", 3, "policy.no-rule"),
        (
            "tool: fs.read\n  args: { path: a.txt }\n  expect: { text: other }",
            1,
            "plan.expectation",
        ),
        ("tool: fs.read\n  args: { path: a.txt }\n  expect: { denied: true }", 1, "was allowed"),
        (
            "tool: fs.read\n  args: { path: .env }\n  expect: { denied: other-rule }",
            3,
            "Denied by no-credentials with `policy.never`, and `other-rule` was expected \
             (plan.expectation)",
        ),
        (
            "tool: fs.read\n  args: { path: .env }\n  expect: { capabilities: [fs.write] }",
            3,
            "1 denied",
        ),
        (
            "tool: fs.read\n  args: { path: nothing }\n  expect: { failed: fs.exists }",
            1,
            "fs.not-found",
        ),
        (
            "tool: fs.read\n  args: { path: a.txt }\n  expect: { capabilities: [fs.write] }",
            1,
            "fs.read",
        ),
    ] {
        let plan = capsule.write_plan(&format!("{good}- {step}\n{good}"));
        let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(exit);
        let flat = ran.stdout.replace("\n   │ ", " ");
        assert!(flat.contains(says), "{step}:\n{}", ran.stdout);
        assert!(ran.stdout.contains("1 not reached"), "{}", ran.stdout);
    }
}

/// Arguments that a command or a server gets to count are pointed at.
#[test]
fn spread_output_is_pointed_at() {
    let capsule = capsule();
    let plan = capsule.write_plan(
        "version: 1
inputs: { names: { default: a } }
steps:
  - { id: list, tool: shell.run, args: { argv: [ls] } }
  - { id: bad, tool: shell.run, args: { argv: [cat, { $spread: { $lines: { $ref: steps.list.stdout } } }] } }
  - { id: good, tool: shell.run, args: { argv: [cat, { $spread: { $lines: { $ref: inputs.names } } }] } }
",
    );
    let checked = capsule.run(&["plan", "check", &plan]).exits(0);
    assert_eq!(checked.stderr.matches("spreads what `list` gave").count(), 1, "{}", checked.stderr);
    let json = capsule.run(&["plan", "check", &plan, "--json"]).exits(0).json();
    assert_eq!(json["problems"][0]["line"], 5);
    assert_eq!(json["problems"].as_array().unwrap().len(), 1);
}

/// CAP-12, G25: what needs an approval is counted as that, and not as denied.
#[test]
fn asked_is_not_denied() {
    let capsule = capsule();
    let policy = capsule.write_policy("version: 1\ntools: { fs.read: ask }\n");
    let plan = capsule.write_plan("- tool: fs.read\n  args: { path: a.txt }\n");
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(4);
    assert!(ran.stdout.contains("0 denied · 1 without approval"), "{}", ran.stdout);
    let list = capsule.run(&["list-runs", "--json"]).exits(0).json();
    assert_eq!((&list[0]["denied"], &list[0]["approval_needed"]), (&0.into(), &1.into()));
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!((&report["summary"]["denied"], &report["summary"]["asked"]), (&0.into(), &1.into()));
    let sql = Connection::open(capsule.store()).unwrap();
    let status: String =
        sql.query_row("SELECT status FROM tool_results", [], |row| row.get(0)).unwrap();
    assert_eq!(status, "approval_needed");
    assert_eq!(report["calls"][0]["status"], "approval_needed");
}

/// What the policy or a layer calls untrusted taints what is made of it, and what is made of that;
/// what neither does, taints nothing.
#[test]
fn what_nobody_vouches_for_taints_what_is_made_of_it() {
    let rules = |read: &str| {
        format!(
            "version: 1\ntools: {{ fs.read: {read}, fs.write: {{ decision: allow, paths: [\"**\"] }} }}\n"
        )
    };
    let layer = "version: 1\nlayer: workspace\ntools: { fs.read: { output: untrusted } }\n";
    for (read, layer, tainted) in [
        ("allow", None, false),
        ("{ decision: allow, output: untrusted }", None, true),
        ("allow", Some(layer), true),
    ] {
        let capsule = capsule();
        let policy = capsule.write_policy(&rules(read));
        fs::write(capsule.workspace().join("a.txt"), "found\n").unwrap();
        if let Some(text) = layer {
            fs::create_dir(capsule.workspace().join(".capsule")).unwrap();
            fs::write(capsule.workspace().join(".capsule/policy.yaml"), text).unwrap();
        }
        let plan = capsule.write_plan(
            "- { id: one, tool: fs.read, args: { path: a.txt } }\n\
             - { id: two, tool: fs.write, args: { path: b.txt, content: { $ref: steps.one.text } } }\n\
             - { id: three, tool: fs.write, args: { path: { $ref: steps.two.path }, content: x } }\n",
        );
        let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
        for (step, name) in [("two", "content"), ("three", "path")] {
            let shown = capsule.run(&["show-run", &format!("latest:{step}"), "--json"]);
            let expected = if tainted { serde_json::json!([name]) } else { serde_json::json!([]) };
            assert_eq!(shown.exits(0).json()["tainted"], expected, "{read} {layer:?} {step}");
        }
    }
}

/// CAP-2: a step is tried again as often as it says, and a denial is not.
#[test]
fn retries_are_counted() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for (path, calls) in [("nothing", 3), (".env", 1)] {
        let plan = capsule.write_plan(&format!(
            "- {{ tool: fs.read, args: {{ path: {path} }}, on_error: {{ retry: 2, backoff: 10ms }} }}\n"
        ));
        let ran = capsule.run(&["run", &plan, "--policy", &policy, "--json"]);
        let report = ran.json();
        assert_eq!(report["calls"].as_array().unwrap().len(), calls, "{path}");
    }
}

/// How a call ended is written before anybody waits for the next try, though it need not be written at
/// once.
#[test]
fn what_happened_is_written_before_a_pause() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\ntools: { shell.run: { decision: allow, executables: { cat: allow } } }\n",
    );
    let plan = capsule.write_plan(
        "- { tool: shell.run, args: { argv: [cat, nothing] }, on_error: { retry: 1, backoff: 60s } }\n",
    );
    let mut command = capsule.command(&["run", &plan, "--policy", &policy]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let kinds = loop {
        let kinds = kinds(&capsule.store()).unwrap_or_default();
        if kinds.last().is_some_and(|kind| kind == "call.finished") {
            break kinds;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{kinds:?}");
        thread::sleep(Duration::from_millis(10));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let expected = ["run.opened", "call.proposed", "call.decided", "call.started", "call.finished"];
    assert_eq!(kinds, expected);
    let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(shown["status"], "tool_error", "{shown:#}");
}

/// The kinds of the events that are in a store, in their order.
fn kinds(store: &Path) -> rusqlite::Result<Vec<String>> {
    let sql = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut query = sql.prepare("SELECT kind FROM events ORDER BY leaf")?;
    query.query_map([], |row| row.get(0))?.collect()
}

/// CAP-12: a reference to what was cut fails, instead of passing on half of it.
#[test]
fn cut_results_are_not_passed_on() {
    let capsule = capsule();
    capsule.write_file("big.txt", "x".repeat(60_000));
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "- { id: big, tool: fs.read, args: { path: big.txt } }
- { tool: fs.write, args: { path: out/copy, content: { $ref: steps.big.text } } }\n",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(1);
    assert!(ran.stdout.contains("plan.ref-truncated"), "{}", ran.stdout);
    assert!(!capsule.workspace().join("out").exists());
}

/// CAP-2: every problem of a plan at once, each with its place and a way forward.
#[test]
fn wrong_plans_are_explained() {
    let capsule = capsule();
    let plan = capsule.write_plan(
        r#"version: 1
nmae: x
inputs: { a: { type: text } }
steps:
  - { id: one, tool: fs.raed, args: { path: x } }
  - { id: two, tool: fs.read, args: { pth: x } }
  - { id: two, tool: fs.read, args: { path: { $ref: steps.later.text } } }
  - { id: four, tool: fs.read, args: { path: { $template: { text: x } } } }
  - { id: five, tool: fs.read, args: { path: { $reff: inputs.a } } }
  - { id: six, tool: fs.read, args: { path: { $ref: steps.two.stdout } }, expect: { txt: x } }
  - { id: later, tool: fs.write, args: { path: x, content: y, mode: replace }, needs: [seven] }
  - { tool: shell.run, args: { argv: [a, { $spread: [b] }, 5] }, timeout: 10 }
  - { tool: fs.list, args: { path: . }, expect: { status: denied } }
"#,
    );
    let ran = capsule.run(&["plan", "check", &plan]).exits(2);
    assert!(!ran.stderr.contains("did you mean `status`"), "{}", ran.stderr);
    for says in [
        "a plan has no key `nmae`",
        "did you mean `name`?",
        "`text` is not one of `string`",
        "there is no tool `fs.raed`",
        "did you mean `fs.read`?",
        "`fs.read` has no argument `pth`",
        "did you mean `path`?",
        "`fs.read` needs `path`",
        "another step has the id `two`",
        "no step before has the id `later`",
        "`$template` makes text; a path is needed here",
        "there is no function `$reff`",
        "the result of `fs.read` has no `stdout`",
        "the result of `fs.read` has no `txt`",
        "`denied: true` expects a denial",
        "`mode` of `fs.write` takes one of `create`, `overwrite`, `append`",
        "no step before has the id `seven`",
        "a duration with its unit is needed",
        "plan.yaml:2:1",
    ] {
        assert!(ran.stderr.contains(says), "{says}:\n{}", ran.stderr);
    }
    let json = capsule.run(&["plan", "check", &plan, "--json"]).exits(2).json();
    assert_eq!(json["problems"][0]["code"], "plan.unknown-key");
    assert_eq!(
        (json["problems"][0]["line"].as_u64(), json["problems"][0]["column"].as_u64()),
        (Some(2), Some(1))
    );
}

/// CAP-2: YAML that has two readings has none.
#[test]
fn plans_are_plain_yaml() {
    let capsule = capsule();
    for (text, code) in [
        ("- &a { tool: fs.read }\n- *a\n", "plan.yaml-feature"),
        ("- !!map { tool: fs.read }\n", "plan.yaml-feature"),
        ("- { tool: fs.read, tool: fs.write }\n", "plan.duplicate-key"),
        ("- tool: fs.read\n\targs: {}\n", "plan.syntax"),
        ("- { tool: fs.read\n", "plan.syntax"),
        ("---\n- { tool: fs.list, args: { path: . } }\n---\n- {}\n", "plan.yaml-feature"),
        ("version: 2\nsteps: []\n", "plan.unknown-version"),
        ("", "plan.wrong-type"),
        ("just text", "plan.wrong-type"),
        (&"[".repeat(40), "plan.yaml-feature"),
        (&"[".repeat(50_000), "plan.syntax"),
    ] {
        let plan = capsule.write_plan(text);
        let ran = capsule.run(&["plan", "check", &plan]).exits(2);
        assert!(ran.stderr.contains(code), "{text:.40}: {}", ran.stderr);
    }
}

/// CAP-2: inputs are checked before anything runs.
#[test]
fn inputs_are_checked() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "inputs: { n: { type: integer }, s: { type: string, default: a, pattern: \"[a-c]\" } }
steps: [{ tool: fs.list, args: { path: ., limit: { $ref: inputs.n } } }]\n",
    );
    for (inputs, says) in [
        (&[][..], "the input `n` is needed"),
        (&["n=x"], "`n` is a whole number"),
        (&["n=1", "n=2"], "given twice"),
        (&["n=1", "m=2"], "the plan has no input `m`"),
        (&["n=1", "s=d"], "`s` does not match `[a-c]`, which must match all of it"),
        (&["n"], "not `name=value`"),
    ] {
        let mut line = vec!["run", &plan, "--policy", &policy];
        for input in inputs {
            line.extend(["--input", input]);
        }
        let ran = capsule.run(&line).exits(2);
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--input", "n=5"]).exits(0);
}

/// CAP-1: a dry run decides and does nothing.
#[test]
fn a_dry_run_changes_nothing() {
    let capsule = capsule();
    capsule.write_file("a.txt", "x");
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "- { id: a, tool: fs.read, args: { path: a.txt } }
- { tool: fs.write, args: { path: out/x, content: y } }
- { tool: fs.write, args: { path: { $ref: steps.a.text }, content: y } }
- { tool: fs.read, args: { path: /etc/passwd } }\n",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--dry-run"]).exits(3);
    for says in ["allow", "later", "deny"] {
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
    }
    assert!(!capsule.workspace().join("out").exists());
    assert!(!capsule.store().exists() || capsule.run(&["list-runs"]).stdout.contains("no runs"));
}

/// CAP-1: a dry run ends as the run would end, whatever the plan expects of its decisions.
#[test]
fn a_dry_run_foresees_what_is_not_expected() {
    let capsule = capsule();
    capsule.write_file("a.txt", "x");
    let policy = capsule.write_policy(&format!(
        "{POLICY}  http.get: {{ decision: ask, urls: [\"https://example.org/**\"] }}\n"
    ));
    let read = "tool: fs.read, args: { path: a.txt }";
    let outside = "tool: fs.read, args: { path: /etc/passwd }";
    let fetch = "tool: http.get, args: { url: 'https://example.org/' }";
    for (step, exit, says) in [
        (format!("{read}, expect: {{ denied: true }}"), 1, "a denial was expected"),
        (format!("{read}, expect: {{ denied: fs.read }}"), 1, "a denial was expected"),
        (format!("{read}, expect: {{ denied: true }}, on_error: continue"), 0, "a denial was"),
        (format!("{read}, expect: {{ capabilities: [fs.write] }}"), 1, "was expected"),
        (format!("{read}, expect: {{ capabilities: [fs.read] }}"), 0, "allow"),
        (format!("{outside}, expect: {{ denied: true }}"), 0, "(as expected)"),
        (format!("{outside}, expect: {{ denied: other }}"), 3, "deny"),
        (format!("{outside}, on_error: continue"), 3, "deny"),
        (fetch.to_owned(), 4, "ask"),
        (format!("{fetch}, expect: {{ denied: true }}"), 0, "(as expected)"),
        (format!("{fetch}, expect: {{ denied: approval.needed }}"), 0, "(as expected)"),
        (format!("{fetch}, expect: {{ denied: policy.asked }}"), 4, "ask"),
    ] {
        let plan = capsule.write_plan(&format!("- {{ id: a, {step} }}\n"));
        let dry = capsule.run(&["run", &plan, "--policy", &policy, "--dry-run"]).exits(exit);
        assert!(dry.stdout.contains(says), "{step}: {}", dry.stdout);
        assert_eq!(dry.stdout.contains("(as expected)"), says == "(as expected)", "{}", dry.stdout);
        let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(exit);
    }
}

/// CAP-2: the schema and the parser are made of the same tables, and agree on real plans.
#[test]
fn the_schema_knows_every_key() {
    let schema = capsule().run(&["plan", "schema"]).exits(0).json();
    let step = &schema["$defs"]["step"]["properties"];
    for key in ["id", "name", "tool", "args", "expect", "on_error", "needs", "when", "timeout"] {
        assert!(step.get(key).is_some(), "{key}");
    }
    assert_eq!(schema["$defs"]["step"]["additionalProperties"], false);
}

/// A28: an expression binds the whole text, and a number is recorded as it was judged.
#[test]
fn expressions_and_numbers_have_one_reading() {
    let capsule = capsule();
    for text in [
        "inputs: { a: { type: string, pattern: 'a)|(?:b' } }\nsteps: [{ tool: fs.read, args: { path: a } }]\n",
        "- { tool: fs.read, args: { path: a, offset: 9007199254740993 } }\n",
    ] {
        let plan = capsule.write_plan(text);
        let ran = capsule.run(&["plan", "check", &plan]).exits(2);
        assert!(ran.stderr.contains("[plan."), "{text}{}", ran.stderr);
    }
}

/// APR-6: what a plan needs is told before it runs, and nothing of it runs for that.
#[test]
fn a_preflight_tells_what_a_plan_needs() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.read: allow
  fs.write: ask
  http.get: { decision: ask, urls: { allow: [\"https://api.example.org/**\"] } }
  shell.run: { decision: allow, executables: { cat: allow, wc: ask } }
",
    );
    let plan = capsule.write_plan(
        "version: 1
inputs: { name: { default: x } }
steps:
  - { id: read, tool: fs.read, args: { path: a.txt } }
  - { id: write, tool: fs.write, args: { path: { $concat: [out/, { $ref: inputs.name }] }, content: abc } }
  - { id: get, tool: http.get, args: { url: \"https://api.example.org/x\" } }
  - { id: cat, tool: shell.run, args: { argv: [cat, a.txt] }, on_error: { retry: 2, backoff: 1ms } }
  - { id: count, tool: shell.run, args: { argv: [wc, -c, a.txt] } }
  - { id: no, tool: fs.delete, args: { path: a.txt } }
  - { id: late, tool: fs.write, args: { path: b.txt, content: { $ref: steps.read.text } } }
",
    );
    let line = ["plan", "preflight", &plan, "--policy", &policy, "--input", "name=y", "--json"];
    let told = capsule.run(&line).exits(3).json();
    let union = &told["union"];
    assert_eq!(told["asks_once"], false);
    assert_eq!(union["reads"], serde_json::json!(["a.txt"]));
    assert_eq!(union["writes"], serde_json::json!(["out/y"]));
    assert_eq!(union["deletes"], serde_json::json!([]));
    assert_eq!(union["hosts"], serde_json::json!(["https://api.example.org:443"]));
    let programs = union["programs"].as_array().unwrap();
    let ends = |own: &serde_json::Value, name: &str| own.as_str().unwrap().ends_with(name);
    assert!(programs.iter().any(|own| ends(own, "cat")), "{programs:?}");
    assert_eq!(programs.len(), 2);
    assert_eq!((&union["calls"], &union["written_bytes"]), (&7.into(), &3.into()));
    assert_eq!(
        (&union["asks"], &union["denied"], &union["open"]),
        (&3.into(), &1.into(), &1.into())
    );
    let powers = ["fs.read", "fs.write", "net.egress", "proc.exec"];
    assert_eq!(union["capabilities"], serde_json::json!(powers));
    assert_eq!(told["steps"][6]["decision"], serde_json::Value::Null);
    assert!(!capsule.workspace().join("out").exists() && !capsule.store().exists());
    let text = capsule.run(&line[..7]).exits(3).stdout;
    assert!(text.contains("not yet known 1") && text.contains("writes        out/y"), "{text}");
}

/// A program that asked for JSON gets it for a line that cannot be read, too; a word of the command's own is none.
#[test]
fn a_line_that_cannot_be_read_is_told_as_json() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for (line, says) in [
        (&["frobnicate", "--json"][..], "unrecognized subcommand 'frobnicate'"),
        (&["--json", "run"], "the following required arguments were not provided: <PLAN>"),
        (&["apply", "latest", "--json", "--al"], "unexpected argument '--al' found"),
    ] {
        let ran = capsule.run(line).exits(2);
        let told = ran.json();
        assert!(ran.stderr.contains("Usage: capsule"), "{}", ran.stderr);
        assert_eq!(
            (told["code"].as_str(), told["exit"].as_u64()),
            (Some("usage"), Some(2)),
            "{told}"
        );
        assert!(told["message"].as_str().unwrap().starts_with(says), "{told}");
    }
    let ran = capsule.run(&["exec", "--frob", "--", "ls", "--json"]).exits(2);
    assert_eq!(ran.stdout, "", "{}", ran.stderr);
    assert!(capsule.run(&["run", "--help", "--json"]).exits(0).stdout.starts_with("Run a plan"));
}
