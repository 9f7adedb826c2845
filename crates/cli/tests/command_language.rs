//! Commands as texts, through the real binary: pipelines, lists, streams, patterns, and what becomes of
//! them in the staged workspace and in the record.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;

use capsule_testkit::Capsule;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.file("src/a.txt", "b\na\n");
    capsule.file("src/b.txt", "c\n");
    capsule.file("src/-rf", "minus\n");
    capsule
}

fn call(capsule: &Capsule, policy: &str, command: &str) -> Value {
    let args = json!({ "command": command }).to_string();
    capsule.run(&["call", "shell.run", "--policy", policy, "--args", &args]).json()
}

/// FR-16: what a text says is done as a shell would do it, and no shell is started.
#[test]
fn commands_do_what_they_say() {
    let capsule = capsule();
    for (command, stdout, status) in [
        ("cat src/a.txt | sort", "a\nb\n", 0),
        ("cat src/*.txt | sort -r | head -1", "c\n", 0),
        ("cd src && cat a.txt && cd .. && wc -l < src/b.txt", "b\na\n1\n", 0),
        ("false || echo other; echo then", "other\nthen\n", 0),
        ("false && echo never", "", 1),
        ("true || echo never", "", 0),
        ("echo a > new; cat new; echo b >> new; cat new", "a\na\nb\n", 0),
        ("ls nope 2>/dev/null || echo missing", "missing\n", 0),
        ("ls nope 2>&1 | grep -c nope", "1\n", 0),
        ("cat <<'EOF' | sort\nz\n$x\nEOF", "$x\nz\n", 0),
        ("sort <<< 'one line'", "one line\n", 0),
        ("echo {a,b}{1..2} 'a  b' \\*", "a1 a2 b1 b2 a  b *\n", 0),
        // A name that looks like an option is none, and a pattern without a match stands for itself.
        ("cd src && cat *f", "minus\n", 0),
        ("echo *.none", "*.none\n", 0),
        ("CI=7 env | grep ^CI=", "CI=7\n", 0),
        ("yes | head -2", "y\ny\n", 0),
        ("command -v cat", "/usr/bin/cat\n", 0),
        ("type cat", "/usr/bin/cat\n", 0),
        ("command -v cat tail", "/usr/bin/cat\n/usr/bin/tail\n", 0),
        ("cat **/a.txt", "b\na\n", 0),
        ("echo **/*.txt", "src/a.txt src/b.txt\n", 0),
        ("cd src && echo **/*.txt", "a.txt b.txt\n", 0),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["result"]["stdout"], stdout, "{command}: {answer}");
        assert_eq!(answer["result"]["exit_code"], status, "{command}: {answer}");
    }
    assert!(!capsule.workspace().join("new").exists());
}

/// A1, A2, A8, FR-19: where one part may not run, none does.
#[test]
fn a_list_runs_as_a_whole_or_not_at_all() {
    let capsule = capsule();
    for (command, code) in [
        ("touch made && git push", "policy.never"),
        ("touch made; cat /etc/passwd", "path.outside-workspace"),
        ("touch made | tee ../out", "path.outside-workspace"),
        ("touch made > .git/hooks/pre-commit", "policy.never"),
        ("touch made && rm -rf *", "path.whole-workspace"),
        ("touch made && sh -c id", "policy.never"),
        ("touch made && echo $HOME", "exec.not-in-language"),
        ("touch made && rm src/a.txt", "approval.needed"),
        ("cd nowhere/.. && touch made", "path.invalid"),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["code"], code, "{command}: {answer}");
        assert_eq!(answer["status"], "denied", "{command}: {answer}");
        let changes = capsule.run(&["changes", "latest"]);
        assert!(!changes.stdout.contains("made"), "{command}: {}", changes.stdout);
    }
}

/// What programs write that no rule names is staged where the policy's level lets them write; what
/// several parts of a list changed is told together.
#[test]
fn programs_without_a_rule_write_where_the_level_lets_them() {
    let capsule = capsule();
    let command =
        "mkdir -p out && cp src/a.txt out/ && timeout 9 sed -i s/a/z/ src/a.txt; cat src/a.txt";
    let answer = call(&capsule, "builtin:developer", command);
    assert_eq!(answer["result"]["stdout"], "b\nz\n", "{answer}");
    assert_eq!(answer["result"]["changes_total"], 3, "{answer}");
    assert_eq!(answer["result"]["changes"].as_array().unwrap().len(), 3, "{answer}");
    assert_eq!(fs::read_to_string(capsule.workspace().join("src/a.txt")).unwrap(), "b\na\n");
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(capsule.workspace().join("src/a.txt")).unwrap(), "b\nz\n");
    assert!(capsule.workspace().join("out/a.txt").exists());
    // Without the level, programs that no rule names write nothing; nor do they under a policy that
    // only looks.
    let strict = capsule.policy(
        "version: 1\ntools: { shell.run: { form: command, effects: { reads: allow, writes: allow } } }\n",
    );
    let answer = call(&capsule, &strict, "touch new");
    assert!(answer["result"]["stderr"].as_str().unwrap().contains("Read-only"), "{answer}");
    assert_eq!(call(&capsule, "builtin:readonly", "touch new")["code"], "policy.denied");
}

/// A program that another one starts is bound by its own rule as well.
#[test]
fn a_wrapped_program_is_bound_by_its_rule() {
    let capsule = capsule();
    let policy = capsule.policy(
        "version: 1\nsandbox: { level: workspace-write }\ntools:\n  shell.run:\n    form: command\n    \
         executables:\n      timeout: allow\n      touch: { decision: allow, writes: [\"out/**\"] }\n",
    );
    fs::create_dir(capsule.workspace().join("out")).unwrap();
    let answer = call(&capsule, &policy, "timeout 9 touch out/new");
    assert_eq!(answer["status"], "ok", "{answer}");
    let answer = call(&capsule, &policy, "timeout 9 touch src/new");
    assert_ne!(answer["status"], "ok", "{answer}");
}

/// CAP-10: a list replays as the calls that it was.
#[test]
fn lists_replay() {
    let capsule = capsule();
    let answer =
        call(&capsule, "builtin:developer", "cat src/a.txt | sort > sorted; cat sorted || echo no");
    assert_eq!(answer["result"]["stdout"], "a\nb\n", "{answer}");
    let shown = capsule.run(&["show-run", "latest"]).exits(0).stdout;
    assert!(shown.contains("sort > sorted") && shown.contains("2 ok"), "{shown}");
    let _ = fs::remove_dir_all(capsule.workspace().join("src"));
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let _ = capsule.run(&["verify"]).exits(0);
}
