//! `policy learn`: what recorded runs were refused, as a patch of the policy.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use capsule_testkit::{Capsule, run_in_parallel};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

const POLICY: &str = r#"# My policy.
version: 1
name: mine            # the name
never:
  - { id: no-drafts, capabilities: [fs.read], paths: ["drafts/**"], because: Not ready. }
tools:
  fs.read:            # only sources so far
    decision: allow
    paths: { allow: ["src/**"], deny: ["src/gen/**"] }
  fs.write:
    paths: { allow: ["src/**"], hidden: deny }  # sources
  http.get:
    urls:
      allow:
        - "https://docs.example.org/**"
        - { id: shop, url: "https://shop.example.org/**", decision: ask }
      deny: ["https://docs.example.org/secret/**"]
  shell.run:
    form: command
    executables:
      git:
        subcommands:
          status: allow   # looks
          commit: ask
          clean: { decision: deny, because: Never here. }
          "*": { decision: deny, because: Only looking. }
      cat: allow

# what it decides
tests:
  - name: sources are read
    call: { tool: fs.read, args: { path: src/a } }
    expect: { decision: allow }
"#;

/// Runs a call for each of these under a policy; gives what became of it by its number.
fn run(capsule: &Capsule, policy: &str, calls: &[(&str, Value)]) -> Value {
    let steps: Vec<Value> =
        calls.iter().map(|(tool, args)| json!({ "tool": tool, "args": args })).collect();
    let plan = json!({ "version": 1, "name": "try", "defaults": { "on_error": "continue" }, "steps": steps });
    let plan = capsule.write_plan(&plan.to_string());
    let _ = capsule.run(&["run", &plan, "--policy", policy]);
    capsule.run(&["policy", "learn", "latest", "--json"]).exits(0).json()
}

fn command(text: &str) -> (&'static str, Value) {
    ("shell.run", json!({ "command": text }))
}

/// The number of a call behind the run's label.
fn number(label: &Value) -> u64 {
    label.as_str().unwrap().split_once(':').unwrap().1.parse().unwrap()
}

fn words(of: &Value, name: &str) -> BTreeMap<u64, String> {
    let all = of[name].as_array().unwrap().iter();
    all.map(|own| (number(&own["call"]), own["why"].as_str().unwrap_or("").to_owned())).collect()
}

/// The policy with the patch, as a person applies it.
fn patched(capsule: &Capsule, policy: &str, patch: &str) -> String {
    let folder = capsule.directory().join("patched");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let name = Path::new(policy).file_name().unwrap();
    fs::copy(policy, folder.join(name)).unwrap();
    fs::write(folder.join("x.patch"), patch).unwrap();
    let mut git = Command::new("git");
    git.args(["apply", "-p1", "x.patch"]).current_dir(&folder);
    let applied = git.env("GIT_CEILING_DIRECTORIES", capsule.directory()).output().unwrap();
    assert!(applied.status.success(), "{}\n{patch}", String::from_utf8_lossy(&applied.stderr));
    folder.join(name).to_str().unwrap().to_owned()
}

/// SAF-7: what was denied for want of a rule is proposed, the narrowest first; what only looks becomes
/// allowed, the rest a question; the patch is a policy that passes its tests, and everything that stood
/// in the text stands there still.
#[test]
fn refusals_become_narrow_rules() {
    let capsule = capsule();
    for file in ["docs/a.md", "docs/b.md", "README.md"] {
        capsule.write_file(file, "text");
    }
    let policy = capsule.write_policy(POLICY);
    let write = |path: &str| ("fs.write", json!({ "path": path, "content": "x" }));
    let get = |url: &str| ("http.get", json!({ "url": url }));
    let learned = run(
        &capsule,
        &policy,
        &[
            ("fs.read", json!({ "path": "docs/a.md" })),
            ("fs.read", json!({ "path": "docs/b.md" })),
            ("fs.list", json!({ "path": "docs" })),
            write("docs/c.md"),
            write("src/n.rs"),
            ("git.log", json!({})),
            get("https://api.example.org/v1/issues?state=open"),
            get("https://docs.example.org/a"),
            command("git log --oneline"),
            command("git stash list | cat"),
            command("cargo test"),
            command("cat docs/a.md"),
        ],
    );
    let rules: BTreeMap<&str, (&str, Vec<&str>)> = learned["proposals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| {
            let opens = own["steps"][0]["opens"].as_array().unwrap();
            let opens = opens.iter().map(|own| own.as_str().unwrap()).collect();
            (own["rule"].as_str().unwrap(), (own["decision"].as_str().unwrap(), opens))
        })
        .collect();
    let expected = BTreeMap::from([
        ("fs.read", ("allow", vec!["docs/a.md", "docs/b.md"])),
        ("fs.list", ("allow", vec!["docs/**"])),
        ("fs.write/learned-docs", ("ask", vec!["docs/c.md"])),
        ("fs.write/learned-src", ("allow", vec!["src/n.rs"])),
        ("git.log", ("allow", vec!["git.log"])),
        ("http.get/learned-api.example.org", ("ask", vec!["https://api.example.org/v1/issues"])),
        ("http.get/learned-docs.example.org", ("allow", vec!["https://docs.example.org/a"])),
        ("shell.run/git.log", ("allow", vec!["git log"])),
        ("shell.run/git.stash list", ("allow", vec!["git stash list"])),
        ("shell.run/cargo.test", ("ask", vec!["cargo test"])),
    ]);
    assert_eq!(rules, expected, "{learned:#}");
    assert_eq!(words(&learned, "kept"), BTreeMap::new(), "{learned:#}");
    assert_eq!(learned["changed"].as_array().unwrap().len(), 12);

    // The policy is as it was, and what the patch makes of it is one that holds what it says.
    assert_eq!(fs::read_to_string(&policy).unwrap(), POLICY);
    let after = patched(&capsule, &policy, learned["patch"].as_str().unwrap());
    let patch = learned["patch"].as_str().unwrap().lines().skip(2);
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for line in patch {
        gone.extend(line.strip_prefix('-'));
        new.extend(line.strip_prefix('+'));
    }
    for line in gone {
        let grew = |longer: &&str| {
            let mut rest = longer.chars();
            line.chars().all(|c| rest.any(|own| own == c))
        };
        assert!(new.iter().any(grew), "{line}: {new:#?}");
    }
    let _ = capsule.run(&["policy", "check", "--policy", &after]).exits(0);
    let tested = capsule.run(&["policy", "test", "--json", "--policy", &after]).exits(0).json();
    assert!(tested["passed"].as_u64().unwrap() > expected.len() as u64, "{tested}");
    let _ = capsule.run(&["policy", "fmt", "--check", &after]).exits(0);
    // A slip in a rule that was learned is noticed.
    let mutated = capsule.run(&["policy", "test", "--mutate", "--json", "--policy", &after]).json();
    for row in mutated["mutation"]["rows"].as_array().unwrap() {
        let is_learned = row["rule"].as_str().unwrap().contains("learned");
        assert!(!is_learned || row["fate"] == "noticed", "{row}");
    }
    // What it says of the recorded calls is what the enforcement says.
    let again = capsule.run(&["policy", "diff", &policy, &after, "--json", "--runs", "latest"]);
    let again = again.exits(0).json();
    let told = |rows: &Value, name: &str| {
        let rows = rows[name].as_array().unwrap().iter();
        rows.map(|own| (own["before"].clone(), own["after"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(told(&again, "differences"), told(&learned, "changed"));
    // Another time there is nothing more to learn from it.
    let line = ["policy", "learn", "latest", "--json", "--policy", &after];
    let again = capsule.run(&line).exits(0).json();
    assert_eq!((&again["patch"], &again["proposals"]), (&Value::Null, &json!([])), "{again:#}");
    assert!(again["allowed"].as_array().unwrap().len() >= 8, "{again:#}");
}

/// What is wider comes behind, each step with the calls that it would change.
#[test]
fn wider_rules_are_told_and_not_proposed() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let learned = run(
        &capsule,
        &policy,
        &[
            ("fs.read", json!({ "path": "docs/a.md" })),
            ("fs.read", json!({ "path": "docs/b.md" })),
            ("fs.read", json!({ "path": "docs/deep/c.md" })),
            ("http.get", json!({ "url": "https://api.example.org/v1/a" })),
            ("http.get", json!({ "url": "https://api.example.org/v2/b" })),
        ],
    );
    let steps = |opens: &str| {
        let all = learned["proposals"].as_array().unwrap();
        let own =
            all.iter().find(|own| own["steps"][0]["opens"].to_string().contains(opens)).unwrap();
        let told = |step: &Value| {
            let opens = step["opens"].as_array().unwrap().iter().map(|own| own.as_str().unwrap());
            let calls = step["calls"].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
            (opens.collect::<Vec<_>>().join(" "), calls, step["proposed"] == true)
        };
        own["steps"].as_array().unwrap().iter().map(told).collect::<Vec<_>>()
    };
    let step = |opens: &str, calls: &[u64], proposed| (opens.to_owned(), calls.to_vec(), proposed);
    assert_eq!(
        steps("docs/a.md"),
        [
            step("docs/a.md docs/b.md", &[1, 2], true),
            step("docs/*.md", &[1, 2], false),
            // What another proposal changes as well is not counted twice.
            step("docs/**", &[1, 2], false),
        ]
    );
    let api = "https://api.example.org";
    assert_eq!(
        steps("api.example.org"),
        [
            step(&format!("{api}/v1/a {api}/v2/b"), &[4, 5], true),
            step(&format!("{api}/v1/** {api}/v2/**"), &[4, 5], false),
            step(&format!("{api}/**"), &[4, 5], false),
        ]
    );
    let text = capsule.run(&["policy", "learn", "latest"]).exits(0);
    assert!(text.stdout.starts_with("--- a/policy.yaml\n+++ b/policy.yaml\n@@"), "{}", text.stdout);
    assert!(text.stderr.contains("    wider    docs/*.md  changes r-"), "{}", text.stderr);
}

/// Never proposed: what an invariant or the base policy says, dropped or not; what runs whatever it is
/// given; what its author said by name. Each is told in words.
#[test]
fn what_stays_refused_is_told() {
    let capsule = capsule();
    let policy = capsule.write_policy(&POLICY.replace(
        "tools:\n",
        "lift:\n  - { id: no-network-programs, because: Asked here. }\n  - { id: no-credentials, because: None here. }\ntools:\n",
    ));
    let rows: Vec<((&str, Value), &str)> = vec![
        (("fs.read", json!({ "path": "drafts/a" })), "`no-drafts` forbids it"),
        (("fs.read", json!({ "path": ".env" })), "`no-credentials` forbids it"),
        (
            ("fs.write", json!({ "path": ".git/hooks/x", "content": "" })),
            "`no-git-control` forbids",
        ),
        (command("git push"), "`no-publishing` forbids it"),
        (command("git status && git push"), "`no-publishing` forbids it"),
        (command("curl https://example.org"), "`no-network-programs` forbids it"),
        (command("cat < .env"), "`no-credentials` forbids it"),
        (command("sudo ls"), "`no-privilege-escalation` forbids it"),
        (command("python3 x.py"), "runs any program text"),
        (command("sed -n 1p a"), "runs any program text"),
        (command("./tool"), "can be any program"),
        (command("mytool"), "is not known"),
        (command("git frobnicate"), "is not known"),
        (command("git"), "many programs in one"),
        (command("env A=1 ls"), "starts other programs"),
        (command("xargs ls"), "starts other programs"),
        (command("npm install"), "contacts another computer"),
        (command("vim a"), "wants a person at a terminal"),
        (command("git clean -n"), "denies it by name"),
        (command("git commit -m x"), "stays a question"),
        (command("cat ../x"), "climbs above the workspace"),
        (command("CI=1 cat a"), "no rule of a tool"),
        (("fs.read", json!({ "path": "src/gen/a" })), "`paths.deny: src/gen/**` closes it"),
        (("fs.read", json!({ "path": "src/.a" })), "is hidden"),
        (("fs.read", json!({ "path": "/etc/passwd" })), "outside of the workspace"),
        (("fs.list", json!({ "path": "." })), "the whole workspace"),
        (("fs.delete", json!({ "path": "docs", "recursive": true })), "a whole folder"),
        (("http.get", json!({ "url": "https://docs.example.org/secret/a" })), "denies it by name"),
        (
            ("http.get", json!({ "url": "https://shop.example.org/a" })),
            "the rule `http.get/shop` asks",
        ),
        (("http.get", json!({ "url": "https://127.0.0.1/" })), "127.0.0.1"),
        (("test.run", json!({})), "only its author can name the command"),
    ];
    let calls: Vec<_> = rows.iter().map(|(call, _)| call.clone()).collect();
    let learned = run(&capsule, &policy, &calls);
    assert_eq!(
        (&learned["patch"], &learned["proposals"]),
        (&Value::Null, &json!([])),
        "{learned:#}"
    );
    let kept = words(&learned, "kept");
    for (index, ((_, args), why)) in rows.iter().enumerate() {
        let told = kept.get(&(index as u64 + 1)).cloned().unwrap_or_default();
        assert!(told.contains(why), "{args}: {why}: {told}");
    }
    let text = capsule.run(&["policy", "learn", "latest"]).exits(0);
    assert_eq!(text.stdout, "");
    assert!(text.stderr.ends_with("nothing is proposed\n"), "{}", text.stderr);
}

/// A rule for one thing changes nothing else, whatever decides about the rest: no line of the corpora is
/// decided more strictly, none that must be blocked is allowed, and only the learned programs differ.
#[test]
fn nothing_else_changes() {
    let root = std::env::var_os("CAPSULE_TEST_ROOT").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        std::path::PathBuf::from,
    );
    let mut lines = String::new();
    for kind in ["ordinary", "dangerous"] {
        for file in fs::read_dir(root.join("crates/core/tests/decisions").join(kind)).unwrap() {
            // Every third line of them is enough to tell.
            for line in fs::read_to_string(file.unwrap().path()).unwrap().lines().step_by(3) {
                let Some((label, text)) = line.split_once('\t') else { continue };
                if line.starts_with('#') || label.ends_with('*') {
                    continue;
                }
                let call = json!({ "id": [label, text], "tool": "shell.run", "args": { "command": text } });
                lines.push_str(&format!("{call}\n"));
            }
        }
    }
    let policies = [
        (
            "version: 1\nname: p\nextends: builtin:assistant\n",
            &["git add a", "git stash", "touch a"][..],
        ),
        (
            "version: 1\nname: p\ntools:\n  shell.run: { form: command, executables: [ls, git, npm, cat, cp] }\n  fs.read: allow\n",
            &["git log", "git add a", "touch a", "rm a", "sort a"][..],
        ),
        (
            "version: 1\nname: p\ntools: { shell.run: { form: command, executables: { git: ask, cp: allow } } }\n",
            &["git log", "git add a", "mkdir a"][..],
        ),
    ];
    let _ = run_in_parallel(policies, |(text, learns)| {
        let capsule = capsule();
        let policy = capsule.write_policy(text);
        let mut calls: Vec<_> = learns.iter().map(|line| command(line)).collect();
        // The paths of a file tool bind commands as well.
        calls.push(("fs.write", json!({ "path": "notes.md", "content": "x" })));
        let learned = run(&capsule, &policy, &calls);
        let proposed = learned["proposals"].as_array().unwrap();
        assert_eq!(proposed.len(), calls.len(), "{learned:#}");
        let after = patched(&capsule, &policy, learned["patch"].as_str().unwrap());
        capsule.write_file("calls.jsonl", &lines);
        let line = ["policy", "diff", &policy, &after, "--json", "--batch", "calls.jsonl"];
        let differences = capsule.run(&line).exits(0).json()["differences"].clone();
        let order = ["allow", "ask", "ask-each", "deny"];
        let at = |word: &Value| order.iter().position(|own| word == own).unwrap();
        let mut strange = Vec::new();
        for own in differences.as_array().unwrap() {
            let (before, after) = (at(&own["before"]["decision"]), at(&own["after"]["decision"]));
            let (label, line) = (&own["id"][0], own["id"][1].as_str().unwrap());
            let is_ours = learns.iter().any(|name| line.contains(name.split(' ').next().unwrap()))
                || line.contains("notes.md");
            // A rule for subcommands says nothing about a program without one.
            if own["after"]["code"] == "exec.subcommand-denied" && names_none(line) {
                continue;
            }
            if after > before || after == 0 && label == "deny" || after < before && !is_ours {
                strange.push(format!("{own}"));
            }
        }
        assert!(strange.is_empty(), "{text}: {}", strange.join("\n"));
    });
}

/// Whether a line has git without a subcommand: `git --version`.
fn names_none(line: &str) -> bool {
    let mut words = line.split(' ').skip_while(|word| *word != "git").skip(1);
    words.all(|word| word.starts_with('-'))
}

/// The patch goes into a file that is not there yet, and never over anything, least of all the policy.
#[test]
fn the_patch_replaces_nothing() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let _ = run(&capsule, &policy, &[("fs.read", json!({ "path": "docs/a.md" }))]);
    let to = |file: &str| capsule.run(&["policy", "learn", "latest", "-o", file]);
    let ran = to("x.patch").exits(0);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("wrote"), "{}", ran.stderr);
    let written = fs::read_to_string(capsule.workspace().join("x.patch")).unwrap();
    assert_eq!(written, capsule.run(&["policy", "learn", "latest"]).exits(0).stdout);
    for file in ["x.patch", policy.as_str()] {
        let ran = to(file).exits(2);
        assert!(ran.stderr.contains("cannot be written"), "{}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(&policy).unwrap(), POLICY);
}

/// Which policy: the one that judged, if there is one and it is a file of the user's own; and only one
/// that is what it says of itself.
#[test]
fn the_policy_must_be_ones_own_and_sound() {
    let capsule = capsule();
    let read = |policy: &str| capsule.run(&["call", "fs.read", "--policy", policy, "--", "path=a"]);
    let _ = read("builtin:base").exits(3);
    let ran = capsule.run(&["policy", "learn", "latest"]).exits(2);
    assert!(ran.stderr.contains("`extends: builtin:base`"), "{}", ran.stderr);
    let policy = capsule.write_policy("version: 1\nname: p\ntools: { fs.list: allow }\n");
    let _ = read(&policy).exits(3);
    let runs = capsule.run(&["list-runs", "--json"]).exits(0).json();
    let labels: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    let both = ["policy", "learn", labels[0], labels[1]];
    let ran = capsule.run(&both).exits(2);
    assert!(ran.stderr.contains("judged by several policies"), "{}", ran.stderr);
    let named = [&both[..], &["--json", "--policy", &policy]].concat();
    let learned = capsule.run(&named).exits(0).json();
    assert_eq!(learned["proposals"][0]["calls"].as_array().unwrap().len(), 2, "{learned:#}");
    let _ = capsule.run(&["policy", "learn"]).exits(2);
    let _ = capsule.run(&["policy", "learn", "r-none"]).exits(2);
    let wrong = capsule.write_policy(
        "version: 1\nname: p\ntools: { fs.list: allow }\ntests: [{ name: t, call: { tool: fs.list, args: { path: a } }, expect: { decision: deny } }]\n",
    );
    let ran = capsule.run(&["policy", "learn", "latest", "--policy", &wrong]).exits(2);
    assert!(ran.stderr.contains("policy.test-failed") && ran.stdout.is_empty(), "{}", ran.stderr);
}

/// What the policy's own tests demand is not learned away.
#[test]
fn the_policys_own_words_come_first() {
    let capsule = capsule();
    let policy = capsule.write_policy(&POLICY.replace(
        "tests:\n",
        "tests:\n  - name: documents are not ours\n    call: { tool: fs.read, args: { path: docs/a.md } }\n    expect: { decision: deny }\n",
    ));
    let learned = run(&capsule, &policy, &[("fs.read", json!({ "path": "docs/a.md" }))]);
    assert_eq!(learned["patch"], Value::Null, "{learned:#}");
    let why = words(&learned, "kept");
    assert!(why[&1].contains("own words say otherwise: documents are not ours"), "{why:?}");
}

/// Steps that a plan expects to be denied are tests of a policy, and no wishes; what holds masks is not
/// what was decided on.
#[test]
fn expected_denials_and_masks_teach_nothing() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\nname: p\ntools: { fs.list: allow, shell.run: { executables: [ls] } }\n",
    );
    let secret =
        format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2).chars().take(36).collect::<String>());
    let plan = json!({ "version": 1, "name": "try", "defaults": { "on_error": "continue" }, "steps": [
        { "id": "probe", "tool": "fs.read", "args": { "path": "a" }, "expect": { "denied": "policy.no-rule" } },
        { "tool": "shell.run", "args": { "argv": ["cat", secret] } },
    ] });
    let plan = capsule.write_plan(&plan.to_string());
    let _ = capsule.run(&["run", &plan, "--policy", &policy]);
    let learned = capsule.run(&["policy", "learn", "latest", "--json"]).exits(0).json();
    assert_eq!((&learned["proposals"], &learned["kept"]), (&json!([]), &json!([])), "{learned:#}");
    assert_eq!((&learned["calls"], &learned["left_out"]), (&json!(1), &json!(1)), "{learned:#}");
}

/// A command that lacks two rules gets both, and a tool that only looks becomes allowed whole.
#[test]
fn a_command_may_lack_several_rules() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let learned = run(&capsule, &policy, &[command("git log | sort | uniq -c")]);
    let rules: Vec<&str> = learned["proposals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["shell.run/git.log", "shell.run/sort", "shell.run/uniq"], "{learned:#}");
    assert_eq!(learned["changed"][0]["after"]["decision"], "allow");
}

/// Rules that would be called the same are not.
#[test]
fn rules_have_names_of_their_own() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1
name: p
tools:
  fs.write:
    paths: [\"docs/a*\"]
    rules: [{ id: learned-docs, paths: [\"docs/ax\"], decision: allow }]
  http.get: { domains: [docs.example.org] }
",
    );
    let write = |path: &str| ("fs.write", json!({ "path": path, "content": "x" }));
    let get = |url: &str| ("http.get", json!({ "url": url }));
    let calls = [
        write("docs/ab"),
        write("docs/b"),
        write("a/b/x"),
        write("a-b/x"),
        get("https://docs.example.org/a"),
        get("https://docs.example.org/b"),
        get("http://docs.example.org/c"),
    ];
    let learned = run(&capsule, &policy, &calls);
    assert_eq!(learned["changed"].as_array().unwrap().len(), calls.len(), "{learned:#}");
    let after = patched(&capsule, &policy, learned["patch"].as_str().unwrap());
    let _ = capsule.run(&["policy", "test", "--policy", &after]).exits(0);
}

/// Whoever asked chose the names; those who read the patch see every character of them.
#[test]
fn names_show_themselves() {
    let capsule = capsule();
    let policy =
        capsule.write_policy("version: 1\nname: p\ntools: { fs.read: { paths: [src] } }\n");
    let path = "docs/\u{202e}gpj.exe #x: [*]\u{e0041}";
    let learned = run(&capsule, &policy, &[("fs.read", json!({ "path": path }))]);
    assert_eq!(learned["kept"], json!([]), "{learned:#}");
    let text = capsule.run(&["policy", "learn", "latest"]).exits(0);
    for printed in [text.stdout, text.stderr] {
        assert!(!printed.contains(['\u{202e}', '\u{e0041}']), "{printed:?}");
    }
    let after = patched(&capsule, &policy, learned["patch"].as_str().unwrap());
    let args = json!({ "path": path }).to_string();
    let line = ["policy", "explain", "--json", "--policy", &after, "--tool", "fs.read", "--args"];
    let decision = capsule.run(&[&line[..], &[&args]].concat()).exits(0).json();
    assert_eq!(decision["decision"], "allow", "{decision} {learned:#}");
}

/// A layer tightens a policy and is not its author's: what it says stays, and the rules of the policy
/// are tried without it.
#[test]
fn a_layer_is_not_learned_away() {
    let capsule = capsule();
    for file in ["docs/a.md", "src/a", "src/b", "private/x"] {
        capsule.write_file(file, "text");
    }
    let policy = capsule.write_policy(POLICY);
    capsule.write_file(
        ".capsule/policy.yaml",
        "version: 1\nlayer: workspace\ntools: { fs.read: { paths: { deny: [private/**] }, rules: [{ id: slow, paths: [src/b], decision: ask }] } }\n",
    );
    let learned = run(
        &capsule,
        &policy,
        &[
            ("fs.read", json!({ "path": "docs/a.md" })),
            ("fs.read", json!({ "path": "src/b" })),
            ("fs.read", json!({ "path": "private/x" })),
        ],
    );
    assert_eq!(learned["proposals"].as_array().unwrap().len(), 1, "{learned:#}");
    assert_eq!(learned["proposals"][0]["steps"][0]["opens"], json!(["docs/a.md"]), "{learned:#}");
    let kept = words(&learned, "kept");
    assert!(kept[&2].starts_with("a layer over the policy says so"), "{kept:?}");
    assert!(kept[&3].contains("a stricter one speaks as well"), "{kept:?}");
    let tested = ["policy", "test", "--coverage", "--mutate", "--json", "--policy", &policy];
    let with = capsule.run(&tested).json();
    fs::remove_file(capsule.workspace().join(".capsule/policy.yaml")).unwrap();
    let without = capsule.run(&tested).json();
    assert_eq!(
        (&with["coverage"], &with["mutation"]),
        (&without["coverage"], &without["mutation"])
    );
}

const ONE: &str = "# Mine.
version: 1
name: mine
tools:
  fs.write: { decision: ask } # looked at
  shell.run: { executables: { sleep: allow } }
";

/// What lies around a policy, and what it holds.
fn beside(policy: &str) -> BTreeMap<String, String> {
    let folder = Path::new(policy).parent().unwrap();
    let files = fs::read_dir(folder).unwrap().map(|own| own.unwrap().path());
    let files = files.filter(|own| own.extension().is_some_and(|own| own != "db"));
    let named = |own: &Path| own.file_name().unwrap().to_string_lossy().into_owned();
    let read = |own: &Path| fs::read_to_string(own).unwrap_or_default();
    files.filter(|own| own.is_file()).map(|own| (named(&own), read(&own))).collect()
}

/// A workspace in which three writes were asked about.
fn asked() -> (Capsule, String) {
    let capsule = capsule();
    let policy = capsule.write_policy(ONE);
    let steps: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|name| json!({ "id": name, "tool": "fs.write", "args": { "path": format!("docs/{name}.md"), "content": "x" } }))
        .collect();
    let plan = json!({ "version": 1, "name": "try", "defaults": { "on_error": "continue" }, "steps": steps });
    let plan = capsule.write_plan(&plan.to_string());
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(4);
    (capsule, policy)
}

/// One call is asked for: the rule is about that one, with it as its example; the others stay what they
/// were. Nothing is written unless it is said so, and then as the patch said, with the file's own rights.
#[test]
fn one_call_becomes_a_rule() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let (capsule, policy) = asked();
    let learned = capsule.run(&["policy", "learn", "latest:2", "--json"]).exits(0).json();
    let proposals = learned["proposals"].as_array().unwrap();
    assert_eq!(proposals.len(), 1, "{learned:#}");
    assert_eq!(proposals[0]["decision"], "allow");
    assert_eq!(proposals[0]["steps"][0]["opens"], json!(["docs/b.md"]));
    assert_eq!(learned["changed"].as_array().unwrap().len(), 1, "{learned:#}");
    assert_eq!((&learned["written"], &learned["kept"]), (&json!(false), &json!([])));
    assert!(
        learned["patch"].as_str().unwrap().contains("+    call: { tool: fs.write"),
        "{learned:#}"
    );
    let by_step = capsule.run(&["policy", "learn", "latest:b", "--json"]).exits(0).json();
    assert_eq!(by_step["patch"], learned["patch"]);
    let both = capsule.run(&["policy", "learn", "latest:1", "latest:c", "--json"]).exits(0).json();
    assert_eq!(both["proposals"][0]["steps"][0]["opens"], json!(["docs/a.md", "docs/c.md"]));
    assert_eq!(fs::read_to_string(&policy).unwrap(), ONE);

    fs::set_permissions(&policy, fs::Permissions::from_mode(0o640)).unwrap();
    let (link, before) = (capsule.directory().join("link.yaml"), beside(&policy));
    symlink(&policy, &link).unwrap();
    let wanted = patched(&capsule, &policy, learned["patch"].as_str().unwrap());
    let line = ["policy", "learn", "latest:2", "--write", "--policy", link.to_str().unwrap()];
    let ran = capsule.run(&line).exits(0);
    assert!(ran.stdout.contains("+++ ") && ran.stderr.contains("wrote"), "{ran:?}");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&policy).unwrap(), fs::read_to_string(&wanted).unwrap());
    assert_eq!(fs::metadata(&policy).unwrap().mode() & 0o777, 0o640);
    let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<Vec<_>>();
    let after = beside(&policy);
    let more: Vec<String> =
        names(&after).into_iter().filter(|own| !before.contains_key(own)).collect();
    assert_eq!(more, ["link.yaml"], "no leftovers");
    let _ = capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
    let _ = capsule.run(&["policy", "test", "--policy", &policy]).exits(0);
    let call = |path: &str| {
        let args = json!({ "path": path, "content": "x" }).to_string();
        capsule.run(&["call", "fs.write", "--policy", &policy, "--args", &args])
    };
    fs::create_dir_all(capsule.workspace().join("docs")).unwrap();
    let _ = call("docs/b.md").exits(0);
    let _ = call("docs/a.md").exits(4);
    // Another time there is nothing to write.
    let line = ["policy", "learn", "latest:1", "--write", "--json"];
    let _ = call("docs/b.md").exits(0);
    let again = capsule.run(&line).exits(0).json();
    assert_eq!((&again["written"], &again["patch"]), (&json!(false), &Value::Null), "{again:#}");
}

/// What is no call of the run, or cannot be decided again, is no lesson.
#[test]
fn only_a_call_of_the_run_is_learned_from() {
    let (capsule, _) = asked();
    let ran = capsule.run(&["policy", "learn", "latest:9"]).exits(2);
    assert!(ran.stderr.contains("has no call `9`"), "{}", ran.stderr);
    let policy = capsule.write_policy(ONE);
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2).get(..36).unwrap());
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "cat", &secret]).exits(3);
    let ran = capsule.run(&["policy", "learn", "latest:1"]);
    assert!(ran.status != 0 && ran.stderr.contains("no rule can be learned"), "{}", ran.stderr);
}

/// F22: nothing is written while a run goes on under the policy, nor by a confined process.
#[test]
fn a_policy_in_use_is_not_written() {
    let (capsule, policy) = asked();
    let learn = ["policy", "learn", "latest:1", "--write", "--policy", &policy];
    let inner = capsule.command(&learn);
    let mut confined = Command::new("setpriv");
    confined.arg("--no-new-privs").arg(inner.get_program()).args(inner.get_args());
    confined.current_dir(inner.get_current_dir().unwrap()).env_clear();
    confined.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let refused = confined.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("policy.in-use"), "{said}");
    assert_eq!(fs::read_to_string(&policy).unwrap(), ONE);

    let learn = {
        let list = capsule.run(&["list-runs", "--json"]).exits(0).json();
        format!("{}:1", list[0]["run"].as_str().unwrap())
    };
    let line = ["policy", "learn", &learn, "--write", "--policy", &policy];
    let mut going = capsule.command(&["exec", "--policy", &policy, "--", "sleep", "20"]);
    let mut going = going.stdin(std::process::Stdio::null()).spawn().unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(15);
    loop {
        let list = capsule.run(&["list-runs", "--json"]).exits(0).json();
        match list.as_array().unwrap().iter().any(|own| own["state"] == "running") {
            true => break,
            false => assert!(std::time::Instant::now() < end, "{list:#}"),
        }
    }
    let ran = capsule.run(&line).exits(2);
    assert!(ran.stderr.contains("policy.in-use") && ran.stderr.contains("goes on"), "{ran:?}");
    assert_eq!(fs::read_to_string(&policy).unwrap(), ONE);
    going.kill().unwrap();
    going.wait().unwrap();
    let _ = capsule.run(&line).exits(0);
    assert_ne!(fs::read_to_string(&policy).unwrap(), ONE);
}
