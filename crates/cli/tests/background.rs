//! Parts of a list that run in the background, through the real binary: what they reach, how they end, what is recorded
//! of them, and that nothing of them outlives the list.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use capsule_testkit::Capsule;
use serde_json::{Value, json};

const OPEN: &str = "version: 1
sandbox: { level: workspace-write }
tools:
  shell.run:
    form: command
    effects: { reads: allow, opens: allow, writes: allow, deletes: allow, runs: allow, code: allow, unknown: allow }
";

/// Answers each connection on the loopback with a line, and says so.
const SERVER: &str = "use IO::Socket::INET; $| = 1;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 8123, Listen => 5) or die;
print \"ready\\n\";
while (my $c = $s->accept) { print \"served\\n\"; print $c \"hello\\n\"; close $c }
";

/// Asks it, as soon as it is there.
const CLIENT: &str = "use IO::Socket::INET;
for (1 .. 200) {
  my $s = IO::Socket::INET->new('127.0.0.1:8123');
  if ($s) { print <$s>; exit 0 }
  select undef, undef, undef, 0.05;
}
exit 1;
";

/// Changes files, links and directories as fast as it can.
const HOSTILE: &str = "for ($n = 0; ; $n++) {
  open F, '>', 'x'; print F $n x 4000; close F;
  unlink 'y'; symlink($n % 2 ? '/etc/passwd' : '../..', 'y');
  rename 'x', 'z' if $n % 3 == 0;
  mkdir 'd'; rmdir 'd';
}
";

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for (path, text) in [("f", "root\n"), ("server.pl", SERVER), ("client.pl", CLIENT)] {
        capsule.write_file(path, text);
    }
    capsule
}

fn call(capsule: &Capsule, policy: &str, command: &str) -> Value {
    let args = json!({ "command": command }).to_string();
    capsule.run(&["call", "shell.run", "--policy", policy, "--args", &args]).json()
}

/// The last run replays from its record alone, to the same bytes.
fn replays(capsule: &Capsule) {
    let replayed = capsule.run(&["replay", "latest"]);
    assert!(replayed.stderr.contains("nothing was executed"), "{replayed:?}");
}

/// A group whose one program is behind a `cd` is one job: it runs there, each of its parts is judged, and the list goes on
/// where it was.
#[test]
fn a_group_is_one_job() {
    let capsule = capsule();
    capsule.write_file("web/f", "web\n");
    let policy = capsule.write_policy(OPEN);
    for (command, stdout, status) in [
        ("(cd web && cat f) & wait $!; cat f", "web\nroot\n", 0),
        ("cd web && cat f & wait; cat f", "web\nroot\n", 0),
        ("(cd web && cat f && cat missing) 2>/dev/null & wait", "", 3),
        (
            "(cd web && sleep 9) & jobs; kill %1; wait %1 || echo $?",
            "[1]+  Running                 sleep 9 &\n143\n",
            0,
        ),
        ("(cd web && cat f missing) > log 2>&1 & wait $! || wc -l < log", "2\n", 0),
        ("{ cd web; N=f; cat $N; } > log & wait; cat log", "web\n", 0),
        ("bash -c 'cd web && cat f' & wait; cat f", "web\nroot\n", 0),
        ("set -e; (cd missing; cat f) & echo $?; wait; echo end", "0\nend\n", 0),
        ("(cd missing && cat f) & kill %1 || echo none", "none\n", 0),
        ("(cd web && perl ../server.pl) & perl client.pl; kill $!", "hello\nready\nserved\n", 0),
    ] {
        let told = call(&capsule, &policy, command);
        if status == 3 {
            assert_eq!(told["code"], "exec.not-in-language", "{command}: {told}");
            continue;
        }
        assert_eq!(told["result"]["stdout"], stdout, "{command}: {told}");
        assert_eq!(told["result"]["exit_code"], status, "{command}: {told}");
        replays(&capsule);
    }
    // A denied program is denied wherever it would run.
    let careful = capsule.write_policy(&OPEN.replace("deletes: allow", "deletes: deny"));
    for command in
        ["(cd web && rm f) & cat f", "cd .. && cat f & cat f", "(cd web && cat f) > ../o & cat f"]
    {
        let told = call(&capsule, &careful, command);
        assert_eq!(told["status"], "denied", "{command}: {told}");
        assert_eq!(told["result"]["stdout"], Value::Null, "{command}: {told}");
    }
    assert!(capsule.workspace().join("web/f").exists());
}

/// As `jobs` of a shell tells them.
#[test]
fn jobs_are_listed() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    let told =
        call(&capsule, &policy, "sleep 9 & true & wait %2; sleep 8 | cat & jobs; kill %1 %3");
    let running =
        "[1]-  Running                 sleep 9 &\n[3]+  Running                 sleep 8 | cat &\n";
    assert_eq!(told["result"]["stdout"], running, "{told}");
    let told = call(&capsule, &policy, "sleep 9 & jobs > /dev/null && kill %1");
    assert_eq!(told["status"], "ok", "{told}");
    replays(&capsule);
}

/// A server is started, asked and ended, and its log is among the changes.
#[test]
fn a_server_is_tried_in_one_list() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    for (command, stdout) in [
        ("perl server.pl > log 2>&1 & perl client.pl; kill %1; cat log", "hello\nready\nserved\n"),
        (
            "perl server.pl & PID=$!; perl client.pl; kill $PID; echo $?",
            "hello\nready\nserved\n0\n",
        ),
        ("perl server.pl > /dev/null & perl client.pl", "hello\n"),
    ] {
        let answer = call(&capsule, &policy, command);
        assert_eq!(answer["result"]["stdout"], stdout, "{command}: {answer}");
        assert_eq!(
            (&answer["status"], &answer["result"]["exit_code"]),
            (&json!("ok"), &json!(0)),
            "{answer}"
        );
        assert_eq!(answer["result"]["jobs"][0]["job"], 1, "{answer}");
        let _ = capsule.run(&["replay", "latest"]).exits(0);
        let _ = capsule.run(&["verify"]).exits(0);
    }
    let answer = call(&capsule, &policy, "perl server.pl > log 2>&1 & perl client.pl > got");
    let changed: Vec<&str> = answer["result"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| change["path"].as_str())
        .collect();
    assert_eq!(changed, ["got", "log"], "{answer}");
    let _ = fs::remove_file(capsule.workspace().join("server.pl"));
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(capsule.workspace().join("got")).unwrap(), "hello\n");
}

/// What parts beside each other write: the files of their streams, and what programs make of which nothing is known.
#[test]
fn ordinary_parts_write_beside_each_other() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    for (command, expected) in [
        ("sleep 60 > log & echo hi > out; kill %1", &["log", "out"][..]),
        ("cat f > one & sort f > two & wait", &["one", "two"]),
        ("sleep 60 > log & touch x; mkdir d; kill %1", &["d", "log", "x"]),
        ("perl -e 'open F, q(>), q(made)' & cat f > copy; wait", &["copy", "made"]),
    ] {
        let answer = call(&capsule, &policy, command);
        let changes = answer["result"]["changes"].as_array().unwrap();
        let mut changed: Vec<&str> =
            changes.iter().filter_map(|change| change["path"].as_str()).collect();
        changed.sort_unstable();
        assert_eq!((&answer["status"], &changed[..]), (&json!("ok"), expected), "{answer}");
    }
}

/// A form of `wait` or `kill` that is not known does nothing in silence, whatever its values make of it.
#[test]
fn unknown_forms_end_the_list() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    for command in [
        "sleep 60 & kill -USR1 $!; echo never",
        "sleep 60 & kill $! 77; echo never",
        "sleep 60 & wait -n $!; echo never",
        "A=-USR1; sleep 60 & kill $A %1; echo never",
        "A=77; sleep 60 & kill $A %1; echo never",
    ] {
        let answer = call(&capsule, &policy, command);
        assert_eq!(answer["code"], "exec.not-in-language", "{command}: {answer}");
        assert!(!answer.to_string().contains("never\n"), "{command}: {answer}");
    }
}

/// What a part in the background stages is bounded while a part that only reads runs beside it.
#[test]
fn the_size_of_changes_is_bounded_beside_readers() {
    let capsule = capsule();
    let bounded = "level: workspace-write, changes: { paths: 100 }";
    let policy = capsule.write_policy(&OPEN.replace("level: workspace-write", bounded));
    let many = "for my $n (0 .. 5000) { mkdir qq(d$n) } sleep 60";
    let answer = call(&capsule, &policy, &format!("perl -e '{many}' & sleep 50; echo never"));
    assert_eq!(answer["code"], "change.too-many", "{answer}");
}

/// Statuses and outputs of the parts that end, that are ended, and that are none.
#[test]
fn ends_are_told_by_the_call_that_ends_them() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    for (command, stdout, status) in [
        ("cat f & wait; echo $?", "root\n0\n", 0),
        ("perl -e 'exit 3' & wait $!; echo $?", "3\n", 0),
        ("perl -e 'exit 3' & wait $!", "", 3),
        ("perl -e 'exit 3' & wait; echo $?", "0\n", 0),
        (
            "false | true & wait %1; echo $?; set -o pipefail; false | true & wait %2; echo $?",
            "0\n1\n",
            0,
        ),
        ("sleep 60 & kill %1; wait %1; echo $?", "143\n", 0),
        ("sleep 60 & kill -9 $!; wait $! || echo $?", "137\n", 0),
        (
            "sleep 60 & kill -0 %1 && echo runs; kill %1; kill -0 %1 2>/dev/null || echo ended",
            "runs\nended\n",
            0,
        ),
        (
            "true & wait %1; wait %1 2>/dev/null; echo $?; wait %7 2>/dev/null; echo $?",
            "127\n127\n",
            0,
        ),
        ("true & kill %7 2>/dev/null || echo none", "none\n", 0),
        ("true & kill %7 2>&1", "kill: %7: no such job\n", 1),
        ("sleep 60 & echo $?; echo $!", "0\n%1\n", 0),
        ("sleep 60 & sleep 60 & sleep 60 & kill %2 %1; echo $?", "0\n", 0),
        ("perl -e 'fork; fork; sleep 60' & true", "", 0),
        ("perl -e 'exit 9' & sleep 0.3", "", 0),
        ("sleep 60 & exit 4", "", 4),
        ("set -e; sleep 60 & false; echo never", "", 1),
        ("cat < missing & wait $! 2>/dev/null; echo $?", "1\n", 0),
    ] {
        let began = Instant::now();
        let answer = call(&capsule, &policy, command);
        let result = &answer["result"];
        assert_eq!(
            (&result["stdout"], &result["exit_code"]),
            (&json!(stdout), &json!(status)),
            "{command}: {answer}"
        );
        assert!(began.elapsed() < Duration::from_secs(30), "{command}");
        replays(&capsule);
    }
}

/// What must not run in the background, and what nothing in the background may do.
#[test]
fn what_cannot_be_held_in_the_background_is_refused() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    for (command, reason) in [
        ("true && sleep 1 &", "only one pipeline"),
        ("(sleep 1 &)", "only one pipeline"),
        ("sleep 1 & $!", "does not say which program"),
        ("sleep 1 & echo x > $!", "which file a stream leads to"),
        ("sleep 1 & rm $!", "what `rm` works on"),
        ("sleep 1 & cd $!", "`cd`"),
        ("jobs", "no background part"),
        ("sleep 1 & jobs | wc -l", "no background part"),
        ("sleep 1 & jobs -p", "not known here"),
        ("sleep 1 & kill -USR1 %1", "not known here"),
        ("sleep 1 & wait 77", "not known here"),
        ("kill %1", "no background part"),
        ("sleep 1 & X=$!; kill $X | cat", "without a pipe"),
        ("sleep 1 & cat /etc/shadow", "outside"),
        ("cat ../secret & true", "outside"),
    ] {
        let answer = call(&capsule, &policy, command);
        assert_eq!(answer["status"], "denied", "{command}: {answer}");
        assert!(answer.to_string().contains(reason), "{command}: {answer}");
    }
    let direct = capsule
        .write_policy(&OPEN.replace("workspace-write", "workspace-write, workspace: direct"));
    let answer = call(&capsule, &direct, "sleep 1 & touch made");
    assert_ne!(answer["status"], "ok", "{answer}");
    assert!(answer.to_string().contains("changes a staged workspace alone"), "{answer}");
    assert!(!capsule.workspace().join("made").exists());
    let policy = capsule.write_policy(&OPEN.replace("sandbox: {", "sandbox: { floor: landlock,"));
    let args = json!({ "command": "sleep 1 & true" }).to_string();
    let words = ["call", "shell.run", "--policy", &policy, "--args", &args];
    let answer = capsule.run_without_namespaces(&words).json();
    assert!(answer.to_string().contains("run in the background only where"), "{answer}");
}

/// Files change while later parts run: they are collected once nothing changes any more, and what is recorded is what is
/// there then. A link that is put in a file's place leads nowhere.
#[test]
fn what_changes_under_the_list_is_collected_at_its_end() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    capsule.write_file("hostile.pl", HOSTILE);
    for _ in 0..3 {
        let command = "perl hostile.pl & cat f; touch t; ls; sleep 0.3; cp f g; kill %1";
        let answer = call(&capsule, &policy, command);
        assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
        let changes = answer["result"]["changes"].to_string();
        assert!(changes.contains("\"t\"") && changes.contains("\"g\""), "{answer}");
        let _ = capsule.run(&["verify"]).exits(0);
        replays(&capsule);
    }
}

/// What a part that runs in the background writes is bounded by every rule under which something ran beside it.
#[test]
fn nothing_is_written_by_the_rule_of_a_part_beside_it() {
    let capsule = capsule();
    let policy = capsule.write_policy(&OPEN.replace(
        "    effects",
        "    executables: { perl: { decision: allow, writes: [\"logs/**\"] } }\n    effects",
    ));
    let narrow = "perl -e 'sleep 1; open F, q(>), q(stolen); print F 1' & sleep 2; touch t; wait";
    let answer = call(&capsule, &policy, narrow);
    assert_eq!(answer["code"], "change.refused", "{answer}");
    let _ = capsule.run(&["apply", "latest"]);
    assert!(!capsule.workspace().join("stolen").exists());
}

/// Processes whose command line holds this word.
fn processes(word: &str) -> usize {
    let lines = fs::read_dir("/proc").unwrap().flatten().map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    });
    lines.filter(|line| line.contains(word) && !line.contains("capsule call")).count()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// However a list ends, nothing of its background parts goes on.
#[test]
fn nothing_outlives_the_list() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    let word = format!("capsule-background-{}", std::process::id());
    // The word stands in two halves, so that no other command line holds it.
    let (first, last) = word.split_at(9);
    let daemon = format!("perl -e '$0 = q({first}) . q({last}); fork; fork; sleep 600' &");
    let _ = call(&capsule, &policy, &format!("{daemon} {daemon} sleep 0.5"));
    assert_eq!(processes(&word), 0);
    for signal in ["-KILL", "-INT", "-TERM"] {
        let args = json!({ "command": format!("{daemon} {daemon} sleep 600") }).to_string();
        let mut command =
            capsule.command(&["call", "shell.run", "--policy", &policy, "--args", &args]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("they start", || processes(&word) >= 8);
        let id = child.id().to_string();
        let _ = std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        child.wait().unwrap();
        wait_until("everything ends", || processes(&word) == 0);
    }
    let _ = capsule.run(&["verify"]);
}
