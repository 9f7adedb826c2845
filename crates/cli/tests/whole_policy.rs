//! Policies that extend others, choose profiles, bound a run, and say what they decide.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

#[track_caller]
fn explain(capsule: &Capsule, policy: &str, more: &[&str], tool: &str, args: &Value) -> Value {
    let args = args.to_string();
    let mut line = vec!["policy", "explain", "--policy", policy, "--json", "--tool", tool];
    line.extend(["--args", &args]);
    line.extend(more);
    capsule.run(&line).exits(0).json()
}

fn argv(line: &str) -> Value {
    json!({ "argv": line.split(' ').collect::<Vec<_>>() })
}

#[track_caller]
fn refused(capsule: &Capsule, text: &str) -> CommandOutput {
    let policy = capsule.write_policy(text);
    capsule.run(&["policy", "check", "--policy", &policy]).exits(2)
}

/// CAP-3: what is not written is inherited, what is written takes its place key by key, and every
/// decision names the text that its rule stands in.
#[test]
fn a_policy_is_laid_over_the_one_that_it_extends() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1
name: mine
extends: builtin:developer@1
never: [{ id: no-vendor, paths: [\"vendor/**\"], because: Copied from elsewhere. }]
tools:
  fs.write: { paths: { deny: [\"gen/**\"] } }
  fs.search: deny
  shell.run:
    effects: { deletes: deny }
    executables: [mytool]
    limits: { timeout: 5s }
",
    );
    let ask = |tool: &str, args: Value| explain(&capsule, &policy, &[], tool, &args);
    let write = |path: &str| ask("fs.write", json!({ "path": path, "content": "x" }));
    // `decision` and `paths.allow` come from below, `paths.deny` from above.
    let inherited = write("src/a.rs");
    assert_eq!(inherited["decision"], "allow", "{inherited}");
    let denied = write("gen/a.rs");
    assert_eq!(denied["code"], "path.not-allowed", "{denied}");
    assert!(denied["at"].as_str().unwrap().starts_with("policy.yaml:"), "{denied}");
    assert_eq!(write("vendor/x")["rule"], "no-vendor");
    assert_eq!(write(".env")["rule"], "no-credentials");
    // A word in place of a map is its `decision`.
    assert_eq!(ask("fs.search", json!({ "name": "*.rs" }))["code"], "policy.denied");
    let deletes = ask("shell.run", argv("rm src/a.rs"));
    assert_eq!(deletes["decision"], "deny", "{deletes}");
    assert!(deletes["at"].as_str().unwrap().starts_with("policy.yaml:9:"), "{deletes}");
    let writes = ask("shell.run", argv("touch a.txt"));
    assert_eq!(writes["decision"], "allow", "{writes}");
    assert!(writes["at"].as_str().unwrap().starts_with("builtin:developer:"), "{writes}");
    // What is lifted below is lifted, since this policy is the user's own.
    assert_eq!(ask("shell.run", argv("git fetch origin"))["decision"], "ask");
    let checked = capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
    assert!(!checked.stderr.contains("builtin:"), "{}", checked.stderr);
}

/// What a policy of ours lifts is lifted wherever the policy that extends it lies; a file that came with the workspace
/// lifts nothing itself, also not what is lifted below.
#[test]
fn what_is_lifted_below_is_lifted_in_the_workspace() {
    let capsule = capsule();
    let text = "version: 1\nname: here\nextends: builtin:developer\n";
    capsule.write_file("team.yaml", text);
    let here = capsule.workspace().join("team.yaml");
    let here = here.to_str().unwrap();
    let own = capsule.write_policy(text);
    let fetch = argv("git fetch origin");
    let by = |policy: &str| explain(&capsule, policy, &[], "shell.run", &fetch);
    assert_eq!(by(&own)["decision"], "ask");
    assert_eq!(by(here)["decision"], "ask");
    assert_eq!(by(here)["rule"], by("builtin:developer")["rule"]);
    // Nothing else is: not what another policy of ours leaves standing, and not what this text names.
    for (name, extends, lifts) in [
        ("a", "readonly", ""),
        ("b", "developer", "no-shells"),
        ("c", "developer", "no-network-programs"),
    ] {
        let lift = match lifts {
            "" => String::new(),
            id => format!("lift: [{{ id: {id}, because: I want it. }}]\n"),
        };
        let text = format!("version: 1\nname: {name}\nextends: builtin:{extends}\n{lift}");
        capsule.write_file(&format!("{name}.yaml"), &text);
        let path = capsule.workspace().join(format!("{name}.yaml"));
        let path = path.to_str().unwrap();
        if lifts.is_empty() {
            assert_eq!(by(path)["rule"], "no-network-programs");
        } else {
            let checked = capsule.run(&["policy", "check", "--policy", path]).exits(2);
            assert!(checked.stderr.contains("policy.lift-not-yours"), "{}", checked.stderr);
        }
    }
}

/// CAP-10: the record holds the text that was extended, and a replay decides by it.
#[test]
fn what_was_extended_is_recorded() {
    let capsule = capsule();
    capsule.write_file("a.txt", "hello\n");
    let policy = capsule.write_policy("version: 1\nname: over\nextends: builtin:readonly\n");
    let ran = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a.txt"]).exits(0);
    assert!(ran.stdout.contains("hello"));
    let show = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).stdout;
    assert!(show.contains("builtin:readonly:"), "{show}");
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let again = capsule.run(&["policy", "explain", "latest:1", "--json"]).exits(0);
    assert_eq!(again.json()["decision"], "allow");
    let _ = capsule.run(&["verify"]).exits(0);
}

/// What `extends` names is one of ours, and what it hands on is shown where it is asked for.
#[test]
fn what_cannot_be_extended_is_said() {
    let capsule = capsule();
    for (text, says) in [
        ("version: 1\nextends: builtin:develper\n", "did you mean `builtin:developer`?"),
        ("version: 1\nextends: ../other.yaml\n", "policy.unknown-value"),
        ("version: 1\nextends: builtin:developer@2\n", "policy.unknown-value"),
        (
            "version: 1\nextends: builtin:developer\nsandbox: { workspace: read-only }\n",
            "which a read-only workspace denies",
        ),
    ] {
        let ran = refused(&capsule, text);
        assert!(ran.stderr.contains(says), "{text}: {}", ran.stderr);
    }
}

const PROFILES: &str = "version: 1
name: profiled
profile: careful
profiles:
  careful:
    decide: { fs.meta: allow, fs.read: ask-each, \"*\": deny }
    unattended: fail
  open:
    decide: { fs.read: allow, fs.write: allow, \"*\": ask }
tools:
  fs.read: {}
  fs.list: allow
  fs.write: allow
  shell.run: { executables: [cat] }
sandbox: { workspace: staged }
";

/// APR-3, APR-9: the profile decides where rules do not, and what it denies no rule allows.
#[test]
fn profiles_decide_and_are_a_ceiling() {
    let capsule = capsule();
    let read = ("fs.read", json!({ "path": "a" }));
    let list = ("fs.list", json!({ "path": "." }));
    let write = ("fs.write", json!({ "path": "a", "content": "x" }));
    let cat = ("shell.run", argv("cat a"));
    for (profile, (tool, args), decision, code, rule) in [
        ("", &read, "ask-each", "policy.asked", "profile/careful"),
        ("", &list, "allow", "policy.allowed", "fs.list"),
        // The rule says `allow`, the profile says `deny`.
        ("", &write, "deny", "profile.denied", "profile/careful"),
        ("", &cat, "deny", "profile.denied", "profile/careful"),
        ("open", &read, "allow", "policy.allowed", "profile/open"),
        ("open", &write, "allow", "policy.allowed", "fs.write"),
        ("open", &cat, "ask", "policy.asked", "profile/open"),
        ("supervised", &read, "allow", "policy.allowed", "profile/supervised"),
        ("autonomous", &cat, "allow", "policy.allowed", "profile/autonomous"),
        ("readonly", &read, "allow", "policy.allowed", "profile/readonly"),
        ("readonly", &write, "deny", "profile.denied", "profile/readonly"),
        ("readonly", &cat, "deny", "profile.denied", "profile/readonly"),
    ] {
        // Over a stricter one, a milder profile holds only where the policy says so.
        let is_builtin = !["", "open"].contains(&profile);
        let policy = match is_builtin {
            true => capsule.write_policy(&PROFILES.replacen("careful", profile, 1)),
            false => capsule.write_policy(PROFILES),
        };
        let chosen = if profile == "open" { &["--profile", "open"][..] } else { &[] };
        let decided = explain(&capsule, &policy, chosen, tool, args);
        let got = (&decided["decision"], &decided["code"], &decided["rule"]);
        let want = (&json!(decision), &json!(code), &json!(rule));
        assert_eq!(got, want, "{profile} {tool}: {decided}");
    }
    let policy = capsule.write_policy(PROFILES);
    let line = ["call", "fs.read", "--policy", &policy, "--profile", "opne", "--", "path=a"];
    let ran = capsule.run(&line).exits(2);
    assert!(ran.stderr.contains("policy.unknown-profile"), "{}", ran.stderr);
    for (text, says) in [
        ("version: 1\nprofile: sovereign\n", "there are `supervised`"),
        ("version: 1\nprofiles: { a: { decide: { fs.raed: ask } } }\n", "did you mean `fs.read`?"),
        ("version: 1\nprofiles: { a: {} }\n", "needs `decide`"),
        ("version: 1\nprofiles: { a: { decide: {}, unattended: later } }\n", "is not one of"),
        ("version: 1\nprofiles: { a: { decide: {}, requires: { sandbox: no } } }\n", "`enforced`"),
    ] {
        let ran = refused(&capsule, text);
        assert!(ran.stderr.contains(says), "{text}: {}", ran.stderr);
    }
}

/// APR-3: the command line chooses what the policy offers, or what is stricter than the policy's own.
#[test]
fn the_command_line_only_tightens_a_profile() {
    let capsule = capsule();
    capsule.write_file("a", "hello\n");
    let offering = "profiles: { autonomous: { decide: { \"*\": allow } } }\n";
    let rows = [
        // The policy's own profile is `supervised`: nothing is written.
        ("", "readonly", Ok("profile.denied")),
        ("", "supervised", Ok("policy.asked")),
        (
            "",
            "autonomous",
            Err("for `fs.write`, `autonomous` is milder than the policy's `supervised`"),
        ),
        ("profile: readonly\n", "supervised", Err("is milder than the policy's `readonly`")),
        ("profile: autonomous\n", "supervised", Err("for `net.egress`, `supervised` is milder")),
        ("profile: autonomous\n", "readonly", Ok("profile.denied")),
        (offering, "autonomous", Ok("policy.allowed")),
    ];
    for (more, profile, expected) in rows {
        let policy =
            capsule.write_policy(&format!("version: 1\n{more}tools: {{ fs.write: {{}} }}\n"));
        let args = json!({ "path": "b", "content": "x" }).to_string();
        let line = ["policy", "explain", "--policy", &policy, "--profile", profile, "--json"];
        let line: Vec<&str> =
            line.into_iter().chain(["--tool", "fs.write", "--args", &args]).collect();
        let ran = capsule.run(&line);
        match expected {
            Ok(code) => assert_eq!(ran.exits(0).json()["code"], code, "{more} {profile}"),
            Err(says) => {
                let ran = ran.exits(2);
                assert!(ran.stderr.contains("policy.milder-profile"), "{}", ran.stderr);
                assert!(ran.stderr.contains(says), "{more} {profile}: {}", ran.stderr);
            }
        }
    }
    // What the policy's own profile wants besides stays: a question ends the plan.
    let policy = capsule.write_policy(
        "version: 1
name: p
profile: own
profiles: { own: { decide: { fs.meta: allow, fs.read: allow, fs.write: ask }, unattended: fail } }
tools: { fs.read: ask }
",
    );
    let plan = capsule.write_plan(
        "version: 1
steps:
  - { id: one, tool: fs.read, args: { path: a }, on_error: continue }
  - { id: two, tool: fs.read, args: { path: b }, on_error: continue }
",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--profile", "readonly"]).exits(4);
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!(report["calls"].as_array().unwrap().len(), 1);
}

/// APR-3: the run says by which profile it was decided, and is decided by it again.
#[test]
fn the_chosen_profile_is_recorded() {
    let capsule = capsule();
    capsule.write_file("a", "hello\n");
    let policy = capsule.write_policy(PROFILES);
    let line = ["call", "fs.read", "--policy", &policy, "--profile", "open", "--", "path=a"];
    let _ = capsule.run(&line).exits(0);
    let report = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("profile open"), "{report}");
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let again = capsule.run(&["policy", "explain", "latest:1", "--json"]).exits(0).json();
    assert_eq!(again["rule"], "profile/open");
}

/// APR-9: autonomous runs begin only where what they do can be thrown away.
#[test]
fn autonomous_wants_a_staged_workspace() {
    let capsule = capsule();
    capsule.write_file("a", "hello\n");
    let direct = PROFILES.replace("staged", "read-only").replacen("careful", "autonomous", 1);
    let policy = capsule.write_policy(&direct);
    let line = ["call", "fs.read", "--policy", &policy, "--", "path=a"];
    let ran = capsule.run(&line).exits(8);
    assert!(ran.stderr.contains("profile.requires"), "{}", ran.stderr);
    assert!(ran.stderr.contains("stages nothing"), "{}", ran.stderr);
    // Nothing began, so nothing is recorded.
    let runs = capsule.run(&["list-runs", "--json"]);
    assert!(!runs.stdout.contains("fs.read"), "{}", runs.stdout);
}

/// A question that nobody can answer ends the run where the profile says so, whatever the plan says.
#[test]
fn unattended_decides_whether_the_run_goes_on() {
    let capsule = capsule();
    capsule.write_file("a", "hello\n");
    let plan = capsule.write_file(
        "plan.yaml",
        "version: 1\nsteps:
  - { id: one, tool: fs.read, args: { path: a }, on_error: continue }
  - { id: two, tool: fs.list, args: { path: . } }\n",
    );
    let plan = plan.to_str().unwrap();
    for (word, listed) in [("fail", false), ("deny", true)] {
        let policy = capsule
            .write_policy(&PROFILES.replace("unattended: fail", &format!("unattended: {word}")));
        let _ = capsule.run(&["run", plan, "--policy", &policy]).exits(4);
        let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
        let calls = report["calls"].as_array().unwrap().len();
        assert_eq!(calls == 2, listed, "{word}: {report}");
        let _ = capsule.run(&["replay", "latest"]).exits(4);
    }
}

/// FR-20, FR-22: what a capability carries at least, what raises the risk, and where it is refused.
#[test]
fn risk_is_as_the_policy_says() {
    let capsule = capsule();
    let policy = |risk: &str| {
        capsule.write_policy(&format!(
            "version: 1\nname: risky\nlift: [{{ id: no-irreversible-loss, because: A test. }}]\n{risk}
tools: {{ fs.read: allow, fs.write: allow, shell.run: {{ executables: {{ shred: allow, ls: allow }} }} }}\n"
        ))
    };
    let shred = ("shell.run", argv("shred a"));
    let ls = ("shell.run", argv("ls"));
    let write = ("fs.write", json!({ "path": "a", "content": "x" }));
    let read = ("fs.read", json!({ "path": "a" }));
    let rows = [
        ("", &shred, "deny", "risk.blocked", "high"),
        ("", &ls, "allow", "policy.allowed", "low"),
        ("", &write, "allow", "policy.allowed", "medium"),
        ("risk: { block_at: none }", &shred, "ask-each", "policy.asked", "high"),
        ("risk: { escalate: [] }", &shred, "allow", "policy.allowed", "medium"),
        ("risk: { block_at: medium }", &write, "deny", "risk.blocked", "medium"),
        ("risk: { block_at: medium }", &read, "allow", "policy.allowed", "low"),
        ("capabilities: { fs.read: { risk: medium } }", &read, "allow", "policy.allowed", "medium"),
        ("capabilities: { proc.exec: { risk: high } }", &ls, "deny", "risk.blocked", "high"),
        // A floor is no ceiling.
        ("capabilities: { fs.write: { risk: low } }", &write, "allow", "policy.allowed", "medium"),
    ];
    for (risk, (tool, args), decision, code, level) in rows {
        let decided = explain(&capsule, &policy(risk), &[], tool, args);
        let got = (&decided["decision"], &decided["code"], &decided["risk"]);
        assert_eq!(got, (&json!(decision), &json!(code), &json!(level)), "{risk} {tool} {decided}");
    }
    for (text, says) in [
        ("risk: { block_at: low }", "policy.unknown-value"),
        ("risk: { unknown: allow }", "policy.unknown-value"),
        ("risk: { escalate: [{ when: irreversible }] }", "needs `to`"),
        (
            "risk: { escalate: [{ when: irreversible, to: low }, { when: irreversible, to: high }] }",
            "stands twice",
        ),
        ("capabilities: { fs.raed: {} }", "did you mean `fs.read`?"),
    ] {
        let ran = refused(&capsule, &format!("version: 1\n{text}\n"));
        assert!(ran.stderr.contains(says), "{text}: {}", ran.stderr);
    }
}

/// A program that is not the pinned one is not run.
#[test]
fn a_changed_program_is_refused() {
    let capsule = capsule();
    let other = "0".repeat(64);
    let policy = |pin: &str, more: &str| {
        capsule.write_policy(&format!(
            "version: 1\nname: pins\n{more}\ntools: {{ shell.run: {{ executables: {{ cat: {{ decision: allow, sha256: {pin} }} }} }} }}\n"
        ))
    };
    let decided = explain(&capsule, &policy(&other, ""), &[], "shell.run", &argv("cat a"));
    assert_eq!((&decided["code"], &decided["risk"]), (&json!("risk.blocked"), &json!("high")));
    assert!(decided["reason"].as_str().unwrap().contains("pins"), "{decided}");
    let real = ["/usr/bin/cat", "/bin/cat"].into_iter().find(|path| fs::metadata(path).is_ok());
    let bytes = fs::read(real.unwrap()).unwrap();
    let own = capsule_base::digest::Digest::of(&bytes).to_string();
    let decided = explain(&capsule, &policy(&own, ""), &[], "shell.run", &argv("cat a"));
    assert_eq!(decided["decision"], "allow", "{decided}");
    for (pin, more, says) in [
        ("abc", "", "64 hexadecimal digits"),
        (other.as_str(), "risk: { escalate: [] }", "a changed program raises no risk"),
    ] {
        let ran = capsule.run(&["policy", "check", "--policy", &policy(pin, more)]).exits(2);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}

/// Exit 7: what one run may do in all, and a run that goes round in circles.
#[test]
fn budgets_end_a_run() {
    let capsule = capsule();
    capsule.write_file("a", "hello\n");
    let steps = |count: usize, step: &str| {
        let steps: String = (0..count)
            .map(|index| format!("  - {{ id: s{index}, on_error: continue, {step} }}\n"))
            .collect();
        format!("version: 1\nsteps:\n{steps}")
    };
    let read = "tool: fs.read, args: { path: a }";
    let write = "tool: fs.write, args: { path: out, content: hello, mode: overwrite }";
    let denied = "tool: fs.read, args: { path: .env }";
    for (budgets, step, code, made, exit) in [
        ("run: { calls: 2 }", read, "budget.calls", 3, 7),
        ("run: { wall: 0ms }", read, "budget.wall", 1, 7),
        ("run: { written: 12B }", write, "budget.written", 3, 7),
        ("loops: { same_call: 2 }", read, "budget.same-call", 3, 7),
        ("loops: { denied_in_a_row: 2, then: stop }", denied, "budget.denied-in-a-row", 3, 3),
        ("loops: { denied_total: 1 }", denied, "budget.denied-total", 2, 3),
        // Nobody is there to say that it goes on.
        ("loops: { same_call: 2, then: pause }", read, "policy.asked", 5, 4),
    ] {
        let policy = capsule.write_policy(&format!(
            "version: 1\nname: bounded\nbudgets: {{ {budgets} }}\ntools: {{ fs.read: allow, fs.write: allow }}\n"
        ));
        let plan = capsule.write_file("plan.yaml", steps(5, step));
        let _ = capsule.run(&["run", plan.to_str().unwrap(), "--policy", &policy]).exits(exit);
        let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
        let calls = report["calls"].as_array().unwrap();
        assert_eq!(calls.len(), made, "{budgets}: {report}");
        let last = format!("latest:{made}");
        let last = capsule.run(&["policy", "explain", &last, "--json"]).exits(0).json();
        assert_eq!((&last["code"], &last["rule"]), (&json!(code), &json!("budgets")), "{budgets}");
        let _ = capsule.run(&["replay", "latest"]).exits(exit);
    }
    for (text, says) in [
        ("budgets: { attention: {} }", "policy.missing-key"),
        ("budgets: { attention: { prompts: 5, per: 1h, then: deny } }", "not-yet-supported"),
        ("grants: { default: session }", "policy.not-yet-supported"),
        ("grants: { offer: [for-ever] }", "policy.unknown-value"),
        ("grants: { expire: { uses: 0 } }", "policy.unknown-value"),
        ("grants: { expire: { after: 48h } }", "policy.unknown-value"),
        ("grants: { always: store }", "policy.unknown-value"),
        ("composites: { overflow: deny }", "policy.not-yet-supported"),
        ("budgets: { run: { llm_cost_usd: -1 } }", "a sum in US dollars"),
        ("budgets: { loops: { then: wait } }", "policy.unknown-value"),
        ("budgets: { loops: { same_call: 0 } }", "no call could be made"),
        ("budgets: { run: { wall: 30 } }", "policy.unit"),
    ] {
        let ran = refused(&capsule, &format!("version: 1\n{text}\n"));
        assert!(ran.stderr.contains(says), "{text}: {}", ran.stderr);
    }
}

const TESTED: &str = r#"version: 1
name: tested
tools:
  fs.read: { decision: allow, examples: { allow: [{ path: a }] } }
  http.get: { decision: allow, urls: { allow: ["https://docs.rs/**"] } }
tests:
  - name: a dotenv is refused under every profile
    profiles: [supervised, autonomous, readonly]
    call: { tool: fs.read, args: { path: .env } }
    expect: { decision: deny, rule: no-credentials, code: policy.never }
  - name: the metadata service is private, whatever its name
    call: { tool: http.get, args: { url: "https://docs.rs/x" }, resolves: ["169.254.169.254"] }
    expect: { decision: deny, code: net.private-address, risk: medium, capabilities: [net.egress] }
"#;

/// CAP-3: a policy carries its own tests, and each of them can fail.
#[test]
fn a_policy_is_tested() {
    let capsule = capsule();
    let test = |text: &str, exit: i32| {
        let policy = capsule.write_policy(text);
        capsule.run(&["policy", "test", "--policy", &policy, "--json"]).exits(exit).json()
    };
    let good = test(TESTED, 0);
    assert_eq!((&good["passed"], &good["failed"]), (&json!(5), &json!(0)), "{good}");
    for (from, to, says) in [
        ("decision: deny, rule", "decision: ask, rule", "the test says `ask`, and it is `deny`"),
        ("rule: no-credentials", "rule: mine", "the test says rule `mine`"),
        ("code: net.private-address", "code: net.url-invalid", "the test says code"),
        ("risk: medium", "risk: low", "the test says risk `low`, and it is `medium`"),
        ("capabilities: [net.egress]", "capabilities: [fs.read]", "the test says capabilities"),
        ("allow: [{ path: a }]", "deny: [{ path: a }]", "the example says `deny`"),
    ] {
        let text = TESTED.replace(from, to);
        assert_ne!(text, TESTED);
        let bad = test(&text, 2);
        assert!(bad.to_string().contains(says), "{says}: {bad}");
        let checked = refused(&capsule, &text);
        assert!(checked.stderr.contains(says), "{}", checked.stderr);
    }
    for (from, to, says) in [
        ("[supervised, autonomous", "[suprvised, autonomous", "there is no profile"),
        ("code: policy.never", "code: policy.nevr", "did you mean `policy.never`?"),
        ("tool: fs.read,", "tool: fs.raed,", "there is no tool"),
        ("{ path: .env }", "{ pth: .env }", "policy.test-failed"),
        ("169.254.169.254", "nowhere", "an address such as"),
        (
            "the metadata service is private, whatever its name",
            "a dotenv is refused under every profile",
            "another test is called",
        ),
    ] {
        let ran = refused(&capsule, &TESTED.replace(from, to));
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
}

/// SAF-2, SAF-3: the policies that come with the program say what they decide, and decide so.
#[test]
fn shipped_policies_pass_their_tests() {
    let capsule = capsule();
    for name in ["developer", "readonly", "assistant"] {
        let policy = format!("builtin:{name}");
        let ran = capsule.run(&["policy", "test", "--policy", &policy, "--json"]);
        let told = ran.json();
        let failed: Vec<&Value> =
            told["tests"].as_array().unwrap().iter().filter(|own| own["ok"] == false).collect();
        assert!(failed.is_empty(), "{name}: {failed:#?}");
        assert!(told["passed"].as_u64().unwrap() >= 30, "{name}: {}", told["passed"]);
        let _ = ran.exits(0);
    }
}

/// Decision 26: what a key says must be what this build does; any other value is refused.
#[test]
fn a_key_is_taken_where_it_says_what_is_done() {
    let capsule = capsule();
    for (tools, code) in [
        ("http.get: { decision: allow, output: untrusted }", None),
        (
            "http.get: { urls: { allow: [{ url: \"https://a.example\", output: untrusted }] } }",
            None,
        ),
        ("http.get: { output: trusted }", Some("policy.unknown-value")),
        ("fs.read: { output: untrusted }", None),
        ("fs.read: { output: trusted }", Some("policy.unknown-value")),
        ("shell.run: { cwd: [\".\"] }", None),
        ("shell.run: { rules: [] }", Some("policy.not-yet-supported")),
    ] {
        let policy = capsule.write_policy(&format!("version: 1\ntools: {{ {tools} }}\n"));
        let ran = capsule.run(&["policy", "check", "--policy", &policy]);
        match code {
            None => drop(ran.exits(0)),
            Some(code) => assert!(ran.exits(2).stderr.contains(code), "{tools}"),
        }
    }
}

/// What a rule says that a command needs counts as what it needs, and gives it nothing.
#[test]
fn commands_need_what_their_rules_say() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = |decide: &str| {
        capsule.write_policy(&format!(
            "version: 1
name: needs
profile: own
profiles: {{ own: {{ decide: {{ proc.exec: allow, {decide} }} }} }}
tools:
  shell.run:
    executables:
      ls: {{ capabilities: [data.user] }}
      git:
        subcommands:
          status: {{ decision: allow }}
          commit: {{ decision: ask, capabilities: [proc.exec, fs.write] }}
tests:
  - name: one commit asks, and says why
    call: {{ tool: shell.run, args: {{ argv: [git, commit, -m, wip] }} }}
    expect: {{ decision: ask, risk: medium, capabilities: [proc.exec, fs.write] }}
  - name: looking needs nothing more
    call: {{ tool: shell.run, args: {{ argv: [git, status] }} }}
    expect: {{ decision: allow, capabilities: [proc.exec] }}
"
        ))
    };
    let open = policy("fs.write: allow, data.user: ask");
    let tested = capsule.run(&["policy", "test", "--policy", &open]).exits(0);
    assert!(tested.stdout.contains("2 passed"), "{}", tested.stdout);
    let told = capsule.run(&["policy", "check", "--policy", &open]).exits(0);
    let said = format!("{}{}", told.stdout, told.stderr);
    assert!(said.contains("no `writes` of its rule names a path"), "{said}");
    let explain = |policy: &str, argv: &[&str]| {
        let line = ["policy", "explain", "--policy", policy, "--json", "--tool", "shell.run", "--"];
        let line: Vec<&str> = line.into_iter().chain(argv.iter().copied()).collect();
        let told = capsule.run(&line).exits(0).json();
        (told["decision"].clone(), told["capabilities"].clone())
    };
    assert_eq!(explain(&open, &["ls"]), (json!("ask"), json!(["proc.exec", "data.user"])));
    let closed = policy("fs.write: deny, data.user: deny");
    assert_eq!(explain(&closed, &["ls"]).0, "deny");
    assert_eq!(explain(&closed, &["git", "commit", "-m", "x"]).0, "deny");
    assert_eq!(explain(&closed, &["git", "status"]).0, "allow");
    // What a layer says that a command needs, it needs as well.
    capsule.write_file(
        ".capsule/policy.yaml",
        "version: 1
layer: workspace
tools: { shell.run: { executables: { git: { capabilities: [data.user] } } } }
",
    );
    assert_eq!(explain(&closed, &["git", "status"]).1, json!(["proc.exec", "data.user"]));
}

/// A word for each way of writing stands where no rule has one for the path.
#[test]
fn ways_of_writing_have_words() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("docs/gen/old.md", "x");
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.write:
    paths: [\"docs/**\"]
    modes: { create: allow, append: ask }
    rules: [{ id: gen, paths: [\"docs/gen/**\"], decision: ask-each }]
",
    );
    for (path, mode, decision, rule) in [
        ("docs/a.md", "create", "allow", "fs.write/modes.create"),
        ("docs/a.md", "append", "ask", "fs.write/modes.append"),
        ("docs/a.md", "overwrite", "ask", "profile/supervised"),
        ("docs/gen/a.md", "create", "ask-each", "fs.write/gen"),
    ] {
        let args = json!({ "path": path, "content": "x", "mode": mode }).to_string();
        let line =
            ["policy", "explain", "--policy", &policy, "--json", "--tool", "fs.write", "--args"];
        let line: Vec<&str> = line.into_iter().chain([args.as_str()]).collect();
        let told = capsule.run(&line).exits(0).json();
        assert_eq!((&told["decision"], &told["rule"]), (&json!(decision), &json!(rule)), "{mode}");
    }
    for tool in ["fs.read", "fs.edit", "fs.delete"] {
        let ran =
            refused(&capsule, &format!("version: 1\ntools: {{ {tool}: {{ modes: {{}} }} }}\n"));
        assert!(ran.stderr.contains("policy.unknown-key"), "{}", ran.stderr);
    }
}

/// C15: where commands may run is a list of folders, by where they really are.
#[test]
fn commands_run_in_named_folders() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("src/lib/a.rs", "x");
    capsule.write_file("docs/a.md", "x");
    std::os::unix::fs::symlink("../docs", capsule.workspace().join("src/link")).unwrap();
    let explain = |policy: &str, cwd: Option<&str>| {
        let mut args = json!({ "argv": ["ls"] });
        if let Some(cwd) = cwd {
            args["cwd"] = json!(cwd);
        }
        let args = args.to_string();
        let line =
            ["policy", "explain", "--policy", policy, "--json", "--tool", "shell.run", "--args"];
        let line: Vec<&str> = line.into_iter().chain([args.as_str()]).collect();
        capsule.run(&line).exits(0).json()["code"].as_str().unwrap().to_owned()
    };
    let text = |cwd: &str| {
        format!(
            "version: 1\ntools: {{ shell.run: {{ form: command, cwd: [{cwd}], executables: {{ ls: allow }} }} }}\n"
        )
    };
    let policy = capsule.write_policy(&text("\".\", \"src/**\""));
    for (cwd, code) in [
        (None, "policy.allowed"),
        (Some("src/lib"), "policy.allowed"),
        (Some("docs"), "path.not-allowed"),
        // Where it leads counts.
        (Some("src/link"), "path.not-allowed"),
    ] {
        assert_eq!(explain(&policy, cwd), code, "{cwd:?}");
    }
    let into = json!({ "command": "cd docs && ls" }).to_string();
    let line = [
        "policy",
        "explain",
        "--policy",
        &policy,
        "--json",
        "--tool",
        "shell.run",
        "--args",
        &into,
    ];
    assert_eq!(capsule.run(&line).exits(0).json()["code"], "path.not-allowed");
    // So does where an option leads.
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.read: allow
  shell.run:
    cwd: [\".\", \"src/**\"]
    executables: { git: allow, env: allow, ls: allow }
",
    );
    for (line, code) in [
        ("git -C src/lib status", "policy.allowed"),
        ("git -C src -C lib status", "policy.allowed"),
        ("git -C docs status", "path.not-allowed"),
        ("git -C src/link status", "path.not-allowed"),
        ("git -C docs -C guide status", "path.not-allowed"),
        ("env -C docs ls", "path.not-allowed"),
        ("ls docs", "policy.allowed"),
    ] {
        let args = json!({ "argv": line.split(' ').collect::<Vec<_>>() }).to_string();
        let line =
            ["policy", "explain", "--policy", &policy, "--json", "--tool", "shell.run", "--args"];
        let words: Vec<&str> = line.into_iter().chain([args.as_str()]).collect();
        assert_eq!(capsule.run(&words).exits(0).json()["code"], code, "{args}");
    }
    let policy = capsule.write_policy(&text("src"));
    assert_eq!(explain(&policy, None), "path.not-allowed");
    assert_eq!(explain(&policy, Some("src")), "policy.allowed");
}

/// What nobody knows is no milder than the policy says for that.
#[test]
fn what_nobody_knows_has_a_word() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let explain = |risk: &str, argv: &[&str]| {
        let policy = capsule.write_policy(&format!(
            "version: 1\n{risk}\ntools: {{ shell.run: {{ executables: {{ ls: allow, nobody-knows: allow }} }} }}\n"
        ));
        let line =
            ["policy", "explain", "--policy", &policy, "--json", "--tool", "shell.run", "--"];
        let line: Vec<&str> = line.into_iter().chain(argv.iter().copied()).collect();
        capsule.run(&line).exits(0).json()
    };
    for (risk, word) in [
        ("", "allow"),
        ("risk: { unknown: ask }", "ask"),
        ("risk: { unknown: ask-each }", "ask-each"),
        ("risk: { unknown: deny }", "deny"),
    ] {
        let told = explain(risk, &["nobody-knows", "x"]);
        assert_eq!(told["decision"], word, "{risk}: {told}");
        assert_eq!(explain(risk, &["ls", "-l"])["decision"], "allow", "{risk}");
    }
}
