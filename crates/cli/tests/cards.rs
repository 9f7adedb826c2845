//! Cards in a real pseudo-terminal: what a person sees and types, and what comes of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs::{self};
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::Capsule;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

mod terminal;

use terminal::{Terminal, size};

const POLICY: &str = "version: 1
name: asks
sandbox: { workspace: direct }
tools:
  fs.read: allow
  fs.write:
    decision: ask
    rules: [{ id: free, paths: [\"free/**\"], decision: allow }]
  shell.run:
    decision: ask
    form: command
    executables: [printf, ls]
";

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    fs::create_dir_all(capsule.workspace().join("docs")).unwrap();
    capsule
}

const WRITE: &str = r#"{"path": "docs/a.md", "content": "new\n"}"#;

/// What the record says of the last run's first call.
fn approval(capsule: &Capsule) -> Value {
    let report = capsule.run(&["report", "latest", "--format", "json"]).json();
    report["calls"][0]["approval"].clone()
}

fn written(capsule: &Capsule, name: &str) -> bool {
    capsule.workspace().join(name).exists()
}

/// A call that is asked about, with the card on the screen.
fn asked(capsule: &Capsule) -> Terminal {
    let policy = capsule.write_policy(POLICY);
    let mut terminal =
        Terminal::start(capsule, &["call", "fs.write", "--policy", &policy, "--args", WRITE]);
    terminal.card();
    terminal
}

/// EI-2: what is proposed is shown, and runs once a person says so.
#[test]
fn allowed_once() {
    let capsule = capsule();
    let mut terminal = asked(&capsule);
    terminal.press("1");
    terminal.until("\x1b[?1049l");
    terminal.until("recorded as");
    assert!(terminal.is_given_back());
    assert_eq!(terminal.end().0, 0);
    assert!(written(&capsule, "docs/a.md"));
    let said = approval(&capsule);
    assert_eq!((&said["outcome"], &said["surface"]), (&json!("approved"), &json!("terminal")));
}

/// Where changes are staged, the card of a write says so: there is nothing to undo until they are
/// applied.
#[test]
fn a_write_that_is_staged_is_shown_so() {
    let capsule = capsule();
    let policy = capsule.write_policy(&POLICY.replace("workspace: direct", "workspace: staged"));
    let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.until("a staged copy is changed");
    terminal.until("digits answer");
    terminal.press("1");
    terminal.until("\x1b[?1049l");
    assert_eq!(terminal.end().0, 0);
    assert!(!written(&capsule, "docs/a.md"));
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert!(written(&capsule, "docs/a.md"));
}

/// APR-7: one answer holds for calls like the one, for as long as the process lives.
#[test]
fn allowed_for_the_session() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "version: 1\nname: two\nsteps:\n  \
         - { id: a, tool: fs.write, args: { path: docs/a.md, content: one } }\n  \
         - { id: b, tool: fs.write, args: { path: docs/b.md, content: two } }\n",
    );
    let mut terminal =
        Terminal::start(&capsule, &["run", &plan, "--policy", &policy, "--color", "never"]);
    terminal.card();
    terminal.press("2");
    terminal.until("\x1b[?1049l");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    assert!(!shown.contains("Approve?"), "{shown}");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("approved by a person after "), "{shown}");
    assert!(
        shown.contains(" s · grant ")
            && shown.contains("allowed by grant")
            && shown.contains("prompts 1"),
        "{shown}"
    );
    assert!(written(&capsule, "docs/a.md") && written(&capsule, "docs/b.md"));
}

#[test]
fn denied_in_the_persons_words() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE, "--json"];
    let out = capsule.directory().join("out.json");
    let by = format!("exec \"$@\" >{}", out.display());
    let mut terminal = Terminal::start_by(&capsule, &by, &args, &[]);
    terminal.card();
    terminal.press("4");
    terminal.until("Why not?");
    terminal.type_slowly("use docs/b.md");
    terminal.until("use docs/b.md▏");
    terminal.press("\r");
    assert_eq!(terminal.end().0, 3);
    let answer: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    assert!(answer.to_string().contains("use docs/b.md"), "{answer}");
    assert!(answer.to_string().contains("approval.denied"), "{answer}");
    assert!(!written(&capsule, "docs/a.md"));
}

#[test]
fn stopped() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "version: 1\nname: two\nsteps:\n  \
         - { id: a, tool: fs.write, args: { path: docs/a.md, content: one }, on_error: continue }\n  \
         - { id: b, tool: fs.write, args: { path: free/b.md, content: two } }\n",
    );
    let mut terminal = Terminal::start(&capsule, &["run", &plan, "--policy", &policy]);
    terminal.card();
    terminal.press("5");
    let (status, shown) = terminal.end();
    assert_eq!(status, 3, "{shown}");
    assert!(!written(&capsule, "docs/a.md") && !written(&capsule, "free/b.md"));
    assert_eq!(approval(&capsule)["stops"], json!(true));
}

#[test]
fn changed_arguments_are_decided_anew() {
    let capsule = capsule();
    let mut terminal = asked(&capsule);
    terminal.press("3");
    terminal.until("Other arguments");
    terminal.press("\x1b[H");
    thread::sleep(Duration::from_millis(30));
    // Everything goes, and something else comes.
    for _ in 0..60 {
        terminal.press("\x1b[3~");
        while terminal.read(Duration::from_millis(5)) {}
    }
    terminal.press(r#"{"path":"free/c.md","content":"x"}"#);
    terminal.until(r#"free/c.md","content":"x"}▏"#);
    terminal.press("\r");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    assert!(written(&capsule, "free/c.md") && !written(&capsule, "docs/a.md"));
    assert_eq!(approval(&capsule)["changed"], json!(true));
}

/// F14: whatever takes the terminal away, or the person from it, the call does not run.
#[test]
fn every_way_out_denies() {
    type Leave = fn(&mut Terminal);
    let rows: [(&str, i32, Leave); 6] = [
        ("escape", 4, |terminal| terminal.press("\x1b")),
        ("end of file", 4, |terminal| terminal.press("\x04")),
        ("ctrl+c", 130, |terminal| terminal.press("\x03")),
        ("interrupted", 130, |own| kill_process(own.pid(), Signal::INT).unwrap()),
        ("ended", 130, |own| kill_process(own.pid(), Signal::TERM).unwrap()),
        ("hung up", 130, |own| drop(own.master.take())),
    ];
    for (name, wanted, leave) in rows {
        let capsule = capsule();
        let mut terminal = asked(&capsule);
        leave(&mut terminal);
        let hung = terminal.master.is_none();
        if !hung {
            terminal.until("\x1b[?1049l");
            assert!(terminal.is_given_back(), "{name}");
        }
        let (status, shown) = terminal.end();
        // The signal or the terminal may tell it first, and then nothing can be printed.
        assert!(
            status == wanted || (hung && [4, 10].contains(&status)),
            "{name}: {status} {shown}"
        );
        assert!(!written(&capsule, "docs/a.md"), "{name}");
        assert_eq!(approval(&capsule)["outcome"], json!("withdrawn"), "{name}");
    }
}

#[test]
fn the_window_changes() {
    let capsule = capsule();
    let mut terminal = asked(&capsule);
    for wide in [200, 80, 120] {
        size(&terminal.slave, (wide, 40));
        terminal.until("Approve?");
        // The head ends where the card does.
        terminal.until("MEDIUM ━┓");
        terminal.until("digits answer");
    }
    // Too small, nothing can be answered.
    size(&terminal.slave, (30, 6));
    terminal.until("too small");
    thread::sleep(Duration::from_millis(600));
    terminal.press("1");
    thread::sleep(Duration::from_millis(600));
    assert!(!written(&capsule, "docs/a.md"));
    size(&terminal.slave, (80, 24));
    terminal.card();
    thread::sleep(Duration::from_millis(600));
    terminal.press("1");
    assert_eq!(terminal.end().0, 0);
    assert!(written(&capsule, "docs/a.md"));
}

/// APR-6: a list is approved as a whole; its parts ask nobody again, and their output is not mixed with the
/// card.
#[test]
fn a_list_is_asked_about_once() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let command = r#"{"command": "printf one; printf two && printf three"}"#;
    let args = ["call", "shell.run", "--policy", &policy, "--args", command];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.card();
    terminal.press("1");
    terminal.until("\x1b[?1049l");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    assert!(shown.contains("onetwothree") && !shown.contains("Approve?"), "{shown}");
}

/// APR-6: a loop is approved with the names that it goes through; a command with words that were not known then is
/// asked about when it is reached.
#[test]
fn a_loop_is_asked_about_once_and_what_was_not_known_again() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for (command, cards, printed) in [
        ("for x in one two; do printf $x; done && printf three", 1, "onetwothree"),
        ("printf \"$(printf one)\"; printf two", 2, "onetwo"),
    ] {
        let args = json!({ "command": command }).to_string();
        let args = ["call", "shell.run", "--policy", &policy, "--args", &args];
        let mut screen = Terminal::start(&capsule, &args);
        for _ in 0..cards {
            screen.card();
            screen.press("1");
            screen.until("\x1b[?1049l");
        }
        let (status, shown) = screen.end();
        assert_eq!(status, 0, "{command}: {shown}");
        assert!(!shown.contains("Approve?"), "{command}: {shown}");
        let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
        let text = report.to_string();
        assert!(text.contains(printed) || shown.contains(printed), "{command}: {shown}");
    }
}

/// UC-3: a command is approved, its output seen, and both are in the log.
#[test]
fn output_does_not_meet_the_card() {
    let capsule = capsule();
    let policy = capsule.write_policy(&POLICY.replace("ls]", "ls, perl]"));
    let args = ["exec", "--policy", &policy, "--", "perl", "-e", "print qq(before\\nafter\\n)"];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.card();
    terminal.press("1");
    terminal.until("\x1b[?1049l");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    assert!(shown.contains("before\r\nafter\r\n"), "{shown}");
    assert_eq!(approval(&capsule)["outcome"], json!("approved"));
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let call = &report["calls"][0];
    assert_eq!(call["decision"]["risk"], "medium");
    assert_eq!(call["result"]["stdout"], "before\nafter\n");
    assert_eq!(call["args"]["argv"][0], "perl");
}

#[test]
fn plain_lines_are_answered_by_their_word() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE, "--plain"];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.until("Answer with a number and the word `");
    while !terminal.seen.contains('`') {
        terminal.read(Duration::from_millis(50));
    }
    let word = terminal.seen.split('`').next().unwrap().to_owned();
    terminal.type_slowly("1\n");
    terminal.until("nothing was answered");
    terminal.type_slowly("1 amberx\n");
    terminal.until("nothing was answered");
    terminal.type_slowly(&format!("1 {word}\n"));
    assert_eq!(terminal.end().0, 0);
    assert!(written(&capsule, "docs/a.md"));
    assert_eq!(approval(&capsule)["surface"], json!("plain"));
    // The end of input is no answer.
    fs::remove_file(capsule.workspace().join("docs/a.md")).unwrap();
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.until("Answer with a number");
    thread::sleep(Duration::from_millis(200));
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 4);
    assert!(!written(&capsule, "docs/a.md"));
}

/// APR-3, F14: where nobody was asked for, or nobody can be there, nobody is asked.
#[test]
fn nobody_is_asked() {
    const PLAIN: &str = "exec \"$@\"";
    type Row<'r> = (&'r str, &'r [&'r str], &'r [(&'r str, &'r str)]);
    let rows: [Row<'_>; 8] = [
        (PLAIN, &["--unattended"], &[]),
        (PLAIN, &[], &[("CAPSULE_UNATTENDED", "1")]),
        (PLAIN, &[], &[("CI", "true")]),
        ("exec \"$@\" </dev/null", &[], &[]),
        ("exec \"$@\" <&-", &[], &[]),
        ("exec \"$@\" 2>/dev/null", &[], &[]),
        ("exec \"$@\" 2>&-", &[], &[]),
        ("cat /dev/null | \"$@\"", &["--json"], &[]),
    ];
    for (by, flags, more) in rows {
        let capsule = capsule();
        let policy = capsule.write_policy(POLICY);
        let mut args = vec!["call", "fs.write", "--policy", &policy, "--args", WRITE];
        args.extend(flags);
        let (status, shown) = Terminal::start_by(&capsule, by, &args, more).end();
        assert_eq!(status, 4, "{by} {flags:?} {more:?}: {shown}");
        assert!(!shown.contains("Approve?") && !written(&capsule, "docs/a.md"), "{by}");
    }
}

/// A command in the background cannot ask, and must not be stopped by trying to.
#[test]
fn nobody_is_asked_in_the_background() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE];
    let by = "set -m; \"$@\" <&1 & wait $!";
    let (status, shown) = Terminal::start_by(&capsule, by, &args, &[]).end();
    assert_eq!(status, 4, "{shown}");
    assert!(!shown.contains("Approve?"), "{shown}");
}

/// Data on standard input is no answer, and no reason not to ask.
#[test]
fn piped_data_is_not_the_person() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let data = capsule.directory().join("args.json");
    fs::write(&data, WRITE).unwrap();
    let by = format!("cat {} | \"$@\"", data.display());
    let args = ["call", "fs.write", "--policy", &policy, "--args", "-"];
    let mut terminal = Terminal::start_by(&capsule, &by, &args, &[]);
    terminal.card();
    terminal.press("1");
    assert_eq!(terminal.end().0, 0);
    assert!(written(&capsule, "docs/a.md"));
}

/// 50 cards in a storm of keys at 30 a second, begun before they appear: no approval, no stop.
#[test]
fn a_storm_in_a_terminal_answers_nothing() {
    fn storm(seed: u64) {
        let capsule = capsule();
        let policy = capsule.write_policy(POLICY);
        let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE];
        let mut terminal = Terminal::start(&capsule, &args);
        let mut number = seed;
        let begin = Instant::now();
        let mut cards = None;
        while cards.is_none_or(|at: Instant| at.elapsed() < Duration::from_millis(2_500)) {
            assert!(begin.elapsed() < Duration::from_secs(60), "no card: {}", terminal.seen);
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let keys = ["1", "2", "3", "4", "5", "6", "7", "1", "5", "\r", "x", "v", " ", "\x7f"];
            let key = keys[usize::try_from(number >> 33).unwrap() % keys.len()];
            terminal.press(key);
            if cards.is_none() && terminal.seen.contains("Approve?") {
                cards = Some(Instant::now());
            }
            let until = Instant::now() + Duration::from_millis(33);
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                terminal.read(left);
            }
            if terminal.child.try_wait().unwrap().is_some() {
                break;
            }
        }
        drop(terminal.master.take());
        let (status, shown) = terminal.end();
        assert_ne!(status, 0, "{shown}");
        assert!(!written(&capsule, "docs/a.md"), "seed {seed}");
        let said = approval(&capsule);
        let outcome = said["outcome"].as_str().unwrap_or("none");
        assert!(["denied", "withdrawn"].contains(&outcome), "seed {seed}: {said}");
        assert_ne!(said["stops"], json!(true), "seed {seed}");
    }
    let all: Vec<_> = (0..5_u64)
        .map(|lane| thread::spawn(move || (0..10).for_each(|card| storm(lane * 100 + card + 1))))
        .collect();
    for lane in all {
        lane.join().unwrap();
    }
}

/// Everything that lies around a workspace, but for the store.
fn around(capsule: &Capsule) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![capsule.directory().to_owned()];
    let store = capsule.store().to_string_lossy().into_owned();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.starts_with(&store) {
                all.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

/// The second time, the card names the call that was allowed and the command that makes a rule of it,
/// and shows the patch. Nothing is written but the journal, until somebody says so; then nobody is
/// asked any more.
#[test]
fn always_is_a_patch_of_the_policy() {
    let capsule = capsule();
    let before = around(&capsule);
    let mut terminal = asked(&capsule);
    terminal.press("1");
    terminal.until("\x1b[?1049l");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    let runs = capsule.run(&["list-runs", "--json"]).exits(0).json();
    let label = runs[0]["label"].as_str().unwrap().to_owned();
    let learn = format!("capsule policy learn {label}:1");
    assert!(shown.contains(&learn), "{shown}");
    fs::remove_file(capsule.workspace().join("docs/a.md")).unwrap();
    let policy = capsule.write_policy(POLICY);
    let mut now = around(&capsule);
    now.retain(|(name, _)| *name != policy);
    assert_eq!(now, before, "a yes is in the journal and nowhere else");

    let mut terminal = asked(&capsule);
    terminal.press("p");
    terminal.until("docs/a.md");
    terminal.until("Esc goes back");
    terminal.press("\x1b");
    terminal.until("digits answer");
    terminal.press("4");
    terminal.until("Why not?");
    terminal.press("\r");
    let (status, shown) = terminal.end();
    assert_eq!(status, 3, "{shown}");
    assert_eq!(fs::read_to_string(&policy).unwrap(), POLICY);
    // What was denied last is denied still, and its run teaches nothing.
    let refused = capsule.run(&["policy", "learn", "latest:1"]).exits(0);
    assert!(refused.stderr.contains("a person said no"), "{}", refused.stderr);
    let _ = capsule.run(&["policy", "learn", &format!("{label}:1"), "--write"]).exits(0);
    let call = ["call", "fs.write", "--policy", &policy, "--args", WRITE, "--unattended"];
    let _ = capsule.run(&call).exits(0);
    assert!(written(&capsule, "docs/a.md"));
    let _ = capsule.run(&["verify"]).exits(0);
}

/// Before the first yes there is no rule to show; the second card says which call it was.
#[test]
fn the_second_card_offers_the_rule() {
    let capsule = capsule();
    let mut terminal = asked(&capsule);
    terminal.press("1");
    terminal.until("\x1b[?1049l");
    assert_eq!(terminal.end().0, 0);
    let policy = capsule.write_policy(POLICY);
    let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE, "--plain"];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.until("before     allowed as r-");
    terminal.until("`capsule policy learn r-");
    terminal.until("`p` a rule for it");
    terminal.until("the word `");
    thread::sleep(Duration::from_millis(300));
    terminal.type_slowly("p\n");
    terminal.until("+++ b/");
    terminal.until("learned-docs");
    terminal.press("\x03");
    let _ = terminal.end();
    assert_eq!(fs::read_to_string(&policy).unwrap(), POLICY);
}

const WAITS: &str = "version: 1
name: waits
profile: later
profiles: { later: { decide: { fs.write: ask, \"*\": deny }, unattended: wait } }
sandbox: { workspace: direct }
tools: { fs.write: ask }
";

/// Where the profile lets questions wait, Esc lays this one down, and the run is suspended as if nobody
/// had been there; elsewhere it denies. The card says which.
#[test]
fn deciding_later() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let call = ["call", "fs.write", "--policy", &policy, "--args", WRITE];
    let mut terminal = Terminal::start(&capsule, &call);
    terminal.until("Approve?");
    terminal.until("Esc not now");
    terminal.press("\x1b");
    assert_eq!(terminal.end().0, 4);
    assert_eq!(approval(&capsule)["outcome"], json!("withdrawn"));

    let plan = capsule.write_plan(
        "version: 1\nname: two\nsteps:\n  \
         - { id: a, tool: fs.write, args: { path: docs/a.md, content: one } }\n  \
         - { id: b, tool: fs.write, args: { path: docs/b.md, content: two } }\n",
    );
    let policy = capsule.write_policy(WAITS);
    for (line, status) in [
        (vec!["call", "fs.write", "--policy", &policy, "--args", WRITE], 0),
        (vec!["run", &plan, "--policy", &policy], 4),
    ] {
        let mut terminal = Terminal::start(&capsule, &line);
        terminal.until("Approve?");
        terminal.until("Esc decide later");
        terminal.press("\x1b");
        terminal.until("\x1b[?1049l");
        let (ended, shown) = terminal.end();
        assert_eq!(ended, 4, "{shown}");
        assert!(shown.contains("capsule approvals show r-"), "{shown}");
        assert!(!written(&capsule, "docs/a.md"));
        let _ = capsule.run(&["replay", "latest"]).exits(4);
        let list = capsule.run(&["approvals", "list", "--json"]).exits(0).json();
        let id = list["approvals"][0]["id"].as_str().unwrap().to_owned();
        let _ = capsule.run(&["approvals", "answer", &id, "--allow", "once"]).exits(0);
        let run = id.split(':').next().unwrap();
        let _ = capsule.run(&["resume", run, "--unattended"]).exits(status);
        assert!(written(&capsule, "docs/a.md"));
        fs::remove_file(capsule.workspace().join("docs/a.md")).unwrap();
    }
    let _ = capsule.run(&["verify"]).exits(0);
}

/// G10: a card is recorded and shown as a whole, and no place of it shows a secret: neither what the
/// policy sets, nor what a reason quotes.
#[test]
fn no_place_of_a_card_shows_a_secret() {
    let capsule = capsule();
    let body = "q7Zr2LxP9bVn4KtW8sDy3MfH6cJa1GvE5uRi";
    let secret = ["ghp", "_", body].concat();
    let policy = capsule.write_policy(&format!(
        "version: 1
sandbox: {{ workspace: direct }}
tools:
  shell.run:
    effects: {{ reads: ask, code: ask, runs: ask, writes: ask, unknown: ask }}
    env: {{ set: {{ DEPLOY: {secret} }} }}
"
    ));
    let code = format!("k = '{secret}'");
    let line = ["exec", "--policy", &policy, "--", "python3", "-c", &code];
    let mut terminal = Terminal::start(&capsule, &line);
    terminal.until("Approve?");
    terminal.until("DEPLOY=");
    terminal.until("digits answer");
    terminal.press("5");
    terminal.until("\x1b[?1049l");
    let all = String::from_utf8_lossy(&terminal.shown).into_owned();
    assert!(!all.contains(body), "{all}");
    let (_, rest) = terminal.end();
    assert!(!rest.contains(body), "{rest}");
    for args in [&["show-run", "latest:1"][..], &["report", "latest", "--format", "json"]] {
        let told = capsule.run(args).stdout;
        assert!(!told.contains(body), "{told}");
    }
}

/// A card of one command offers nothing beyond it: the run is over then, and so would be a grant.
#[test]
fn one_command_is_allowed_once_and_not_for_longer() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for args in [
        &["exec", "--policy", policy.as_str(), "--", "printf", "hello"][..],
        &["call", "fs.write", "--policy", &policy, "--args", WRITE],
    ] {
        let mut terminal = Terminal::start(&capsule, args);
        terminal.until("Approve?");
        terminal.until("1  Allow once");
        terminal.until("digits answer");
        let card = String::from_utf8_lossy(&terminal.shown).into_owned();
        for beyond in ["this session", "until this run ends", "2  Allow", "6  ", "7  "] {
            assert!(!card.contains(beyond), "{beyond}: {card}");
        }
        // The digits that would have been offers answer nothing.
        for digit in ["2", "6", "7"] {
            terminal.press(digit);
            thread::sleep(Duration::from_millis(700));
        }
        assert!(terminal.child.try_wait().unwrap().is_none(), "{args:?}");
        terminal.press("4");
        terminal.until("Why not?");
        terminal.press("\r");
        assert_eq!(terminal.end().0, 3, "{args:?}");
        let said = approval(&capsule);
        assert_eq!(said["outcome"], json!("denied"));
        let shown = capsule.run(&["show-run", "latest:1", "--json"]).json();
        assert!(shown["approval"]["grant"].is_null(), "{shown}");
    }
}

/// A small window is asked in plain lines, and says so where it is made too small meanwhile.
#[test]
fn a_small_window_is_asked_too() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "- { tool: shell.run, args: { argv: [printf, \"%s\", hello] } }
- { tool: shell.run, args: { argv: [printf, \"%s\", again] } }
",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--unattended"]);
    for window in [(60, 16), (40, 14), (30, 10), (80, 12)] {
        let mut terminal = Terminal::start_by(
            &capsule,
            &format!("stty cols {} rows {}; exec \"$@\"", window.0, window.1),
            &["run", &plan, "--policy", &policy],
            &[],
        );
        // A question about the plan as a whole may come first: each step is asked by itself.
        terminal.until("Approve?");
        terminal.until("Answer with a number and the word `");
        terminal.until("`");
        let word = word_of(&terminal);
        assert!(!word.is_empty(), "{window:?}");
        // What is typed before anybody could read the question counts for nothing.
        thread::sleep(Duration::from_millis(500));
        terminal.press(&format!("5 {word}\r"));
        assert_eq!(terminal.end().0, 3, "{window:?}");
    }
    let mut terminal = asked(&capsule);
    size(&terminal.slave, (60, 8));
    terminal.until("too small for this question");
    terminal.until("Make it larger, or press Esc");
    size(&terminal.slave, (80, 30));
    terminal.card();
    terminal.press("1");
    terminal.until("recorded as");
    assert_eq!(terminal.end().0, 0);
}

/// The word that an answer in plain lines needs.
fn word_of(terminal: &Terminal) -> String {
    let shown = String::from_utf8_lossy(&terminal.shown).into_owned();
    let (_, word) = shown.rsplit_once("and the word `").unwrap();
    word.split('`').next().unwrap().to_owned()
}

/// A word with several lines is shown line by line, and is nothing to beware of by itself.
#[test]
fn a_word_of_several_lines_is_shown_as_lines() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let message = "subject\n\n- one\n\tindented\n- two";
    let args = ["exec", "--policy", policy.as_str(), "--", "printf", "%s", message];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.until("digits answer");
    let card = String::from_utf8_lossy(&terminal.shown).into_owned();
    assert!(!card.contains("beware") && !card.contains("U+000A"), "{card}");
    for line in ["5 lines", "│ subject", "│ - one", "│ ⇥   indented", "│ - two"] {
        assert!(card.contains(line), "{line}: {card}");
    }
    terminal.press("1");
    terminal.until("indented");
    assert_eq!(terminal.end().0, 0);
    // What is not what it seems is still told, wherever it stands.
    let args = ["exec", "--policy", policy.as_str(), "--", "printf", "%s", "a\nb\u{202e}c"];
    let mut terminal = Terminal::start(&capsule, &args);
    terminal.until("⟨U+202E⟩");
    terminal.until("beware");
    terminal.until("digits answer");
    terminal.press("5");
    assert_eq!(terminal.end().0, 3);
}

/// The card of a list, or of a loop, is as that of its hardest part: what it changes is staged where that of the part is,
/// and what confines the part is told.
#[test]
fn a_list_is_undone_as_its_parts_are() {
    let capsule = capsule();
    capsule.write_file("docs/a.md", "text\n");
    let reads = capsule.write_policy(POLICY);
    let staged = "a staged copy is changed";
    for (policy, line, undo, cannot) in [
        ("builtin:developer", "rm docs/a.md", staged, "reach a host"),
        ("builtin:developer", "rm docs/a.md && echo done", staged, "reach a host"),
        ("builtin:developer", "for i in 1 2; do rm docs/$i; done", staged, "reach a host"),
        (&reads, "ls docs", "nothing is changed", "reach the network"),
        (&reads, "ls docs && printf x", "nothing is changed", "reach the network"),
    ] {
        let args =
            ["exec", "--session", "none", "--policy", policy, "--color", "never", "--", line];
        let mut terminal = Terminal::start(&capsule, &args);
        terminal.until(&format!("undo       {undo}"));
        terminal.until(&format!("cannot     {cannot}"));
        terminal.until("digits answer");
        terminal.press("\x1b");
        assert_eq!(terminal.end().0, 4, "{line}");
    }
}

/// The command that a card names takes the call back.
#[test]
fn the_undo_of_a_card_works() {
    let capsule = capsule();
    for (effect, is_new) in [("removes it again", true), ("brings back what is there now", false)] {
        if !is_new {
            capsule.write_file("docs/a.md", "old\n");
        }
        let mut terminal = asked_with(&capsule, &["--color", "never"]);
        terminal.press("1");
        let (status, shown) = terminal.end();
        assert_eq!(status, 0, "{shown}");
        let (_, named) = shown.split_once("yes: `").unwrap();
        let (named, said) = named.split_once("` ").unwrap();
        assert!(said.starts_with(effect), "{shown}");
        let words: Vec<&str> = named.split(' ').skip(1).collect();
        assert_eq!(fs::read_to_string(capsule.workspace().join("docs/a.md")).unwrap(), "new\n");
        let _ = capsule.run(&words).exits(0);
        assert_eq!(written(&capsule, "docs/a.md"), !is_new);
    }
    assert_eq!(fs::read_to_string(capsule.workspace().join("docs/a.md")).unwrap(), "old\n");
}

fn asked_with(capsule: &Capsule, more: &[&str]) -> Terminal {
    let policy = capsule.write_policy(POLICY);
    let args = ["call", "fs.write", "--policy", &policy, "--args", WRITE];
    let mut terminal = Terminal::start(capsule, &[&args[..], more].concat());
    let end = Instant::now() + Duration::from_secs(30);
    // All of it is kept, for whoever looks at it later.
    while !terminal.seen.contains("digits answer") && Instant::now() < end {
        terminal.read(Duration::from_millis(50));
    }
    terminal
}

/// At a terminal nothing is wider than it, and a command that is to be copied stays in one line.
#[test]
fn lines_fit_the_terminal() {
    let capsule = capsule();
    let options = ["--session", "auto", "--policy", "builtin:developer", "--color", "never"];
    let line = [&["exec"], &options[..], &["--", "touch q"]].concat();
    let (status, shown) = Terminal::start(&capsule, &line).end();
    assert_eq!(status, 0, "{shown}");
    for start in ["\r\n  capsule session end r-", "\r\n  capsule discard r-"] {
        assert!(shown.contains(start), "{start}: {shown}");
    }
    let (_, list) = Terminal::start(&capsule, &["list-runs", "--color", "never"]).end();
    assert!(list.contains("\r\n  session · touch q\r\n"), "{list}");
    let (_, doctor) = Terminal::start(&capsule, &["doctor", "--color", "never"]).end();
    assert!(doctor.contains("✔ ok        kernel "), "{doctor}");
    for line in [shown, list, doctor].iter().flat_map(|text| text.lines()) {
        let is_word = !line.trim().contains(' ');
        assert!(is_word || line.chars().count() <= 80, "{line}");
    }
    // In a pipe each row is one line, however wide.
    let piped = capsule.run(&["session", "list"]).exits(0);
    assert_eq!(piped.stdout.lines().count(), 1, "{}", piped.stdout);
}
