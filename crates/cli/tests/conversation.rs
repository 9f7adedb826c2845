//! `capsule chat` in a real pseudo-terminal: a person who types, a scripted model on loopback that answers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

mod terminal;

use std::fs;
use std::io::Write as _;
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, HttpServer, ModelFormat, ModelServer, ModelTurn, results_of_calls};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use terminal::{Terminal, size};

const POLICY: &str = "version: 1
name: notes
tools:
  fs.search: allow
  fs.list: allow
  fs.read: { decision: allow, paths: { allow: [\"**\"] } }
  fs.edit: { decision: allow, paths: { allow: [\"**\"] } }
  fs.write: { decision: ask, paths: { allow: [\"**\"] } }
  shell.run:
    form: command
    effects: { reads: allow, opens: allow, writes: ask }
sandbox: { workspace: staged, level: workspace-write }
";

/// A capsule in whose environment a model is configured, with some notes.
fn capsule(model: &ModelServer) -> Capsule {
    let capsule =
        model.configured(env!("CARGO_BIN_EXE_capsule"), "sk-test-4f8c2d7ab1936e50cc71d2ea");
    capsule.write_file("notes.md", "old notes\n");
    capsule.write_file(".env", "TOKEN=very-secret-value-1234\n");
    capsule
}

/// A model that edits the notes in its first turn, and reads them in its second one.
fn edits_then_reads() -> ModelServer {
    let edit = json!({ "path": "notes.md", "search": "old", "replace": "new" });
    let turns = vec![
        ModelTurn::call("fs_edit", &edit),
        ModelTurn::say("one"),
        ModelTurn::call("fs_read", &json!({ "path": "notes.md" })),
        ModelTurn::say("two"),
    ];
    ModelServer::scripted(ModelFormat::OpenAi, turns)
}

/// A chat at its prompt.
fn chat(capsule: &Capsule, more: &[&str]) -> Terminal {
    let policy = capsule.write_policy(POLICY);
    let mut terminal = start(capsule, &[&["--policy", &policy], more].concat());
    terminal.until("Ctrl+D ends the chat");
    terminal
}

fn start(capsule: &Capsule, args: &[&str]) -> Terminal {
    Terminal::start(capsule, &[&["chat", "--color", "never"], args].concat())
}

/// Says something, and waits until the turn is over.
fn say(terminal: &mut Terminal, text: &str) -> String {
    enter(terminal, text);
    let from = terminal.shown.len();
    terminal.until(" prompt");
    prompt(terminal);
    String::from_utf8_lossy(&terminal.shown[from..]).into_owned()
}

/// Types a line, once the prompt is there.
fn enter(terminal: &mut Terminal, text: &str) {
    prompt(terminal);
    terminal.press(text);
    terminal.press("\r");
}

/// Waits until the editor reads keys.
fn prompt(terminal: &mut Terminal) {
    let end = Instant::now() + Duration::from_secs(30);
    let is_raw = |terminal: &Terminal| {
        let modes = rustix::termios::tcgetattr(&terminal.slave).unwrap();
        !modes.input_modes.contains(rustix::termios::InputModes::ICRNL)
    };
    while !is_raw(terminal) {
        assert!(Instant::now() < end, "no prompt: {}", terminal.seen);
        terminal.read(Duration::from_millis(20));
    }
}

/// The results that the model got with its last request.
fn results(model: &ModelServer) -> Vec<Value> {
    results_of_calls(model.bodies().last().unwrap())
}

fn quit(mut terminal: Terminal) -> String {
    prompt(&mut terminal);
    terminal.press("\x04");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    shown
}

/// The run of the only chat of a store.
fn run_of_chat(capsule: &Capsule) -> String {
    let runs = capsule.run(&["list-runs", "--json"]).exits(0).json();
    let chat = runs.as_array().unwrap().iter().find(|run| run["kind"] == "session").unwrap();
    chat["run"].as_str().unwrap().to_owned()
}

/// UC-2, UC-4, FR-1, EI-1, EI-3: the workspace is shown first; a file is read, a refusal is explained with something
/// safer to do, and the model goes on from it in one conversation. A replay needs no model.
#[test]
fn a_person_and_a_model_take_turns() {
    let read = |path: &str| ModelTurn::call("fs_read", &json!({ "path": path }));
    let turns = vec![
        read("notes.md"),
        ModelTurn::say("The notes are old."),
        read(".env"),
        ModelTurn::say("I may not read that."),
        ModelTurn::call(
            "fs_edit",
            &json!({ "path": "notes.md", "search": "old", "replace": "new" }),
        ),
        ModelTurn::say("They are new."),
    ];
    let model = ModelServer::scripted(ModelFormat::OpenAi, turns);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    let workspace = capsule.workspace().display().to_string();
    let header = String::from_utf8_lossy(&terminal.shown).into_owned();
    let shown_name = workspace.rsplit('/').next().unwrap();
    assert!(header.find("workspace").unwrap() < header.find("policy").unwrap(), "{header}");
    for expected in [shown_name, "notes", "namespaces", "m-1"] {
        assert!(header.contains(expected), "{expected}: {header}");
    }
    let shown = say(&mut terminal, "what do the notes say?");
    assert!(
        shown.contains("✔ fs.read notes.md") && shown.contains("The notes are old."),
        "{shown}"
    );
    let shown = say(&mut terminal, "and .env?");
    for expected in ["✖ fs.read .env", "denied", "no-credentials", "instead: ", "1 denied"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let shown = say(&mut terminal, "make them new");
    assert!(shown.contains("1 change staged"), "{shown}");
    // The whole conversation is sent each time.
    assert_eq!(results(&model).len(), 3);
    enter(&mut terminal, "/changes");
    terminal.until("M notes.md");
    let notes = || fs::read_to_string(capsule.workspace().join("notes.md")).unwrap();
    assert_eq!(notes(), "old notes\n");
    enter(&mut terminal, "/apply");
    terminal.until("capsule undo");
    assert_eq!(notes(), "new notes\n");
    enter(&mut terminal, "/undo");
    terminal.until("undone");
    assert_eq!(notes(), "old notes\n");
    let shown = quit(terminal);
    assert!(shown.contains("ended after 3 calls") && shown.contains("capsule replay"), "{shown}");
    let run = run_of_chat(&capsule);
    drop(model);
    let replayed = capsule.run(&["replay", &run]).exits(0);
    for expected in ["what do the notes say?", "The notes are old.", "DENIED", "They are new."] {
        assert!(replayed.stdout.contains(expected), "{expected}: {}", replayed.stdout);
    }
    let _ = capsule.run(&["verify"]).exits(0);
}

/// UC-1: a time range that can be read in two ways is asked about; the search follows the answer, which is recorded and
/// replayed. A question gives no permission, and one that the person leaves unanswered ends nothing.
#[test]
fn an_ambiguous_time_range_is_asked_about() {
    let ask = json!({ "question": "Which \u{1b}[2Jweek?", "choices": ["this week", "last week"] });
    let model = ModelServer::start(ModelFormat::OpenAi, move |body, number| {
        let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        match number {
            0 | 3 => ModelTurn::call("user_ask", &ask),
            1 if last.contains("last week") => {
                ModelTurn::call("fs_search", &json!({ "name": "*.md", "modified_before": "7d" }))
            }
            2 => ModelTurn::say(if last.contains("old.md") { "It is old.md." } else { "nothing" }),
            _ => ModelTurn::say("not answered"),
        }
    });
    let capsule = capsule(&model);
    capsule.write_file("old.md", "x");
    let ago = std::time::SystemTime::now() - Duration::from_secs(10 * 24 * 3600);
    let old = fs::File::options().write(true).open(capsule.workspace().join("old.md")).unwrap();
    old.set_modified(ago).unwrap();
    let mut terminal = chat(&capsule, &[]);
    enter(&mut terminal, "find the notes of the week");
    terminal.until("? Which ⟨U+001B⟩[2Jweek?");
    terminal.until("2  last week");
    terminal.until("(Enter: none): ");
    terminal.press("2\r");
    terminal.until("✔ fs.search *.md");
    terminal.until("It is old.md.");
    terminal.until("1 call · 0 prompts");
    enter(&mut terminal, "again");
    terminal.until("(Enter: none): ");
    terminal.press("\r");
    terminal.until("not answered");
    terminal.until(" prompt");
    let _ = quit(terminal);
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).stdout;
    assert!(report.contains("user.answered"), "{report}");
    drop(model);
    let replayed = capsule.run(&["replay", "latest"]).exits(0);
    assert!(replayed.stdout.contains("last week"), "{}", replayed.stdout);
}

/// UC-3, EI-2: a command that changes files is shown on a card, runs once the person allows it, and is not run where
/// they deny it; the turn goes on with their words.
#[test]
fn a_command_runs_when_the_person_allows_it() {
    let command = |text: &str| ModelTurn::call("shell_run", &json!({ "command": text }));
    let turns = vec![
        command("mkdir sorted"),
        ModelTurn::say("made"),
        command("mkdir other"),
        ModelTurn::say("not made"),
    ];
    let model = ModelServer::scripted(ModelFormat::OpenAi, turns);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    enter(&mut terminal, "sort");
    terminal.card();
    terminal.press("1");
    terminal.until("approved by a person");
    terminal.until("1 prompt");
    enter(&mut terminal, "again");
    terminal.card();
    terminal.press("4");
    terminal.until("Why not?");
    terminal.type_slowly("one is enough");
    terminal.until("one is enough▏");
    terminal.press("\r");
    terminal.until("✖ shell.run");
    terminal.until("1 prompt");
    let last = results(&model);
    assert_eq!((&last[0]["status"], &last[1]["status"]), (&json!("ok"), &json!("denied")));
    assert!(last[1].to_string().contains("one is enough"), "{}", last[1]);
    let shown = quit(terminal);
    assert!(shown.contains("capsule apply"), "{shown}");
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}

/// NFR-12: Esc and Ctrl+C end a turn within a second, whether the model is silent or a command goes on; the chat goes
/// on. The text that had come is kept.
#[test]
fn a_turn_is_ended_and_the_chat_is_not() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let server = HttpServer::start(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "Let me think " } }] });
        let _ = stream.write_all(format!("{head}data: {piece}\n\n").as_bytes());
        asked.send(()).unwrap();
        thread::park();
    });
    let mut capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.set("OPENAI_BASE_URL", &server.url("/v1"));
    capsule.set("CAPSULE_MODEL", "m-1");
    let mut terminal = chat(&capsule, &[]);
    for key in ["\x1b", "\x03"] {
        enter(&mut terminal, "hello");
        was_asked.recv().unwrap();
        terminal.until("Let me think");
        let began = Instant::now();
        terminal.press(key);
        terminal.until("the turn was ended");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    let bodies = server.requests();
    let second: Value = serde_json::from_slice(&bodies[1].body).unwrap();
    assert!(second.to_string().contains("Let me think"), "{second}");
    let _ = quit(terminal);
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}

/// NFR-12: a command that takes long is ended by Esc, with nothing left of it.
#[test]
fn a_long_command_is_ended() {
    let turns = vec![ModelTurn::call("shell_run", &json!({ "command": "tail -f notes.md" }))];
    let model = ModelServer::scripted(ModelFormat::OpenAi, turns);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    enter(&mut terminal, "follow the notes");
    terminal.until("tail -f notes.md · 1 s");
    let began = Instant::now();
    terminal.press("\x1b");
    terminal.until("⊘ shell.run");
    terminal.until("the turn was ended");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let _ = quit(terminal);
    assert_eq!(model.requests().len(), 1);
}

/// What is typed while a turn goes on is not lost, and sent only when the person says so.
#[test]
fn what_is_typed_during_a_turn_waits() {
    let model = ModelServer::start(ModelFormat::OpenAi, |_, _| {
        thread::sleep(Duration::from_secs(2));
        ModelTurn::say("ready")
    });
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    enter(&mut terminal, "hello");
    terminal.until("the model · Esc ends the turn · 1 s");
    terminal.press("next one");
    terminal.until("ready");
    terminal.until("next one");
    assert_eq!(model.requests().len(), 1);
    enter(&mut terminal, "");
    terminal.until("ready");
    terminal.until(" prompt");
    let body = model.bodies()[1].to_string();
    assert!(body.contains("next one"), "{body}");
    let _ = quit(terminal);
}

/// A server that cuts, refuses or has to be waited for is reported in a line, and the chat goes on.
#[test]
fn a_failing_server_ends_a_turn_alone() {
    let refuse = ModelTurn::Refuse(
        "429 Too Many Requests",
        "Retry-After: 3600\r\n",
        json!({ "error": { "message": "slow down" } }).to_string(),
    );
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "half of it" } }] });
    let cut = ModelTurn::Stream(format!("data: {piece}\n\n").into_bytes());
    let turns = vec![cut, ModelTurn::say("whole"), refuse, ModelTurn::say("back")];
    let model = ModelServer::scripted(ModelFormat::OpenAi, turns);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    let shown = say(&mut terminal, "one");
    assert!(shown.contains("the answer broke off") && shown.contains("whole"), "{shown}");
    let shown = say(&mut terminal, "two");
    assert!(shown.contains("[model.rate-limited]"), "{shown}");
    let shown = say(&mut terminal, "three");
    assert!(shown.contains("back"), "{shown}");
    let _ = quit(terminal);
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}

/// I-16: nothing that a model or a file says reaches the terminal as a control character, in whatever pieces it comes.
#[test]
fn text_of_a_model_cannot_control_the_terminal() {
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[31mred\r\u{9b}1m \u{202e}";
    let call = ("fs_read\u{1b}[2J".to_owned(), json!({ "path": "a\u{1b}[2Jb" }).to_string());
    let turns = vec![
        ModelTurn::Call(vec![call, ("fs_read".into(), "{\u{1b}[2J".into())]),
        ModelTurn::say(hostile),
    ];
    let model = ModelServer::scripted(ModelFormat::OpenAi, turns);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    let shown = say(&mut terminal, "hello");
    assert!(shown.contains("⟨U+001B⟩[31mred"), "{shown}");
    for sequence in ["\x1b]0;", "\x1b[2J", "\x1b[31m", "\u{9b}", "\u{202e}", "\u{7}"] {
        assert!(!shown.contains(sequence), "{sequence:?}: {shown:?}");
    }
    let _ = quit(terminal);
}

/// The screen as a terminal of so many columns shows it.
fn rows(shown: &[u8], columns: u16) -> Vec<String> {
    let size = |size| NonZero::new(size).unwrap();
    let mut screen = vt100::Parser::new(size(200), size(columns), 0);
    screen.process(shown);
    screen.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
}

/// In a narrow window and with `--plain` all that is said is there, and no word of an answer is broken.
#[test]
fn a_narrow_window_breaks_nothing() {
    let text = "The quick brown fox jumps over the lazy dog and looks for the notes of last week.";
    for (columns, plain) in [(40, false), (80, false), (200, false), (40, true)] {
        let read = ModelTurn::call("fs_read", &json!({ "path": ".env" }));
        let model = ModelServer::scripted(ModelFormat::OpenAi, vec![read, ModelTurn::say(text)]);
        let capsule = capsule(&model);
        let policy = capsule.write_policy(POLICY);
        let mut args = vec!["--policy", policy.as_str()];
        args.extend(plain.then_some("--plain"));
        let line = format!("stty cols {columns} rows 50; exec \"$@\"");
        let all = [&["chat", "--color", "never"], args.as_slice()].concat();
        let mut terminal = Terminal::start_by(&capsule, &line, &all, &[]);
        size(&terminal.slave, (columns, 50));
        terminal.until("ends the chat");
        let _ = say(&mut terminal, "hello");
        let rows = rows(&terminal.shown, columns);
        let _ = quit(terminal);
        let joined = rows.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in ["no-credentials", "instead: Ask the user", "1 denied"] {
            assert!(joined.contains(expected), "{columns} {plain} {expected}: {rows:#?}");
        }
        match plain {
            false => assert!(joined.contains(text), "{columns}: {rows:#?}"),
            true => assert!(!rows.concat().contains(['✖', '✔', '›', '…']), "{rows:#?}"),
        }
    }
}

/// Commands of the chat: what there is, what is not, and what there is nothing for yet.
#[test]
fn commands_of_the_chat_explain_themselves() {
    let model = ModelServer::scripted(ModelFormat::OpenAi, vec![]);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    for (line, expected) in [
        ("/help", "/undo [--dry-run]"),
        ("/aply", "did you mean `/apply`?"),
        ("/apply", "nothing was said yet"),
        ("/policy", "fs.search"),
        ("/grants", "there are no active grants"),
        ("/grants revok x", "usage: /grants [revoke ID | clear]"),
        ("/model", "model m-1"),
        ("/model m-2", "model m-2"),
        ("/stop", "no turn goes on"),
    ] {
        enter(&mut terminal, line);
        terminal.until(expected);
    }
    let _ = say(&mut terminal, "hello \\\rthere");
    let body = model.bodies()[0].clone();
    assert_eq!(body["model"], "m-2");
    assert!(body["messages"].to_string().contains("hello \\nthere"), "{body}");
    let copy = capsule.home().join("copy.db").display().to_string();
    enter(&mut terminal, &format!("/export {copy}"));
    terminal.until("wrote");
    enter(&mut terminal, "/report");
    terminal.until("the session is open");
    enter(&mut terminal, "/quit");
    assert_eq!(terminal.end().0, 0);
    assert!(fs::metadata(copy).is_ok());
}

/// The first word of an answer is on the terminal at once: under 5 ms after the server sent it.
#[test]
fn the_first_word_is_shown_at_once() {
    let sent = Arc::new(Mutex::new(Instant::now()));
    let sends = Arc::clone(&sent);
    let model = ModelServer::start(ModelFormat::OpenAi, move |_, number| {
        *sends.lock().unwrap() = Instant::now();
        ModelTurn::say(&format!("word-{number}"))
    });
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    let mut times = Vec::new();
    for number in 0..12 {
        enter(&mut terminal, "go on");
        terminal.until(&format!("word-{number}"));
        times.push(sent.lock().unwrap().elapsed());
        terminal.until(" prompt");
    }
    let _ = quit(terminal);
    // Another process may have taken the time of some of them.
    assert!(times.iter().min().unwrap() < &Duration::from_millis(5), "{times:?}");
}

/// A person gives the model a file, also one outside of the workspace. What looks like a secret in it is masked, and a policy
/// may deny it. The record has all that a replay needs.
#[test]
fn a_person_attaches_a_file() {
    let model = ModelServer::scripted(ModelFormat::OpenAi, vec![]);
    let capsule = capsule(&model);
    let letter = capsule.home().join("my letter.txt");
    fs::write(&letter, "Dear Ada,\ntoken ghp_9fA2kLm3Qr5Tv7Xz1Bc4De6Fg8Hj0NpSuWyA\n").unwrap();
    let mut terminal = chat(&capsule, &[]);
    for (line, expected) in [
        ("/attach", "a file is needed"),
        ("/attach nowhere.txt", "fs.not-found"),
        ("/attach /", "is no file"),
        ("/attach ~/my letter.txt", "my letter.txt (57 B)"),
    ] {
        enter(&mut terminal, line);
        terminal.until(expected);
    }
    let shown = say(&mut terminal, "who is it to?");
    assert!(shown.contains("✔ user.attach"), "{shown}");
    let store = capsule.store().display().to_string();
    enter(&mut terminal, &format!("/attach {store}.head"));
    terminal.until("with your next message");
    enter(&mut terminal, "and this?");
    terminal.until("record of Capsule");
    terminal.until("the message was not sent");
    terminal.until("and this?");
    terminal.press("\u{3}");
    terminal.until("Ctrl+D ends the chat");
    let _ = quit(terminal);
    assert_eq!(model.bodies().len(), 1);
    let body = model.bodies()[0]["messages"].to_string();
    assert!(body.contains("Dear Ada") && body.contains("«") && !body.contains("ghp_"), "{body}");
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0);
    assert!(report.stdout.contains("data.user") && !report.stdout.contains("ghp_"));
    drop(model);
    fs::remove_file(&letter).unwrap();
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}

/// A policy that denies the capability denies each file, and the task does not begin.
#[test]
fn a_policy_denies_attached_files() {
    let model = ModelServer::scripted(ModelFormat::OpenAi, vec![]);
    let capsule = capsule(&model);
    let profile =
        "profiles: { own: { decide: { data.user: deny, \"*\": allow } } }\nprofile: own\n";
    let policy = capsule.write_policy(&format!("{POLICY}{profile}"));
    fs::write(capsule.home().join("image"), [0, 159, 146, 150]).unwrap();
    fs::write(capsule.home().join("large"), "x".repeat(200_001)).unwrap();
    let home = |name: &str| capsule.home().join(name).display().to_string();
    let notes = capsule.workspace().join("notes.md").display().to_string();
    let allowed = capsule.write_file("other.yaml", POLICY).display().to_string();
    for (policy, file, exit, expected) in [
        (&policy, notes.clone(), 3, "data.user"),
        (&allowed, home("image"), 1, "is no text"),
        (&allowed, home("large"), 1, "has more than 200 KB"),
        (&allowed, notes, 0, ""),
    ] {
        let args = ["chat", "--policy", policy, "--task", "read it", "--attach", &file];
        let done = capsule.run(&args).exits(exit);
        assert!(done.stderr.contains(expected), "{file}: {}", done.stderr);
    }
    assert_eq!(model.bodies().len(), 1);
    assert!(model.bodies()[0].to_string().contains("old notes"));
}

/// A session that was ended from elsewhere is followed by another one, with the whole conversation in its record.
#[test]
fn the_conversation_goes_on_when_its_session_was_ended() {
    let model = edits_then_reads();
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    let _ = say(&mut terminal, "edit");
    let _ = capsule.run(&["session", "end", "latest"]).exits(0);
    let shown = say(&mut terminal, "read");
    assert!(shown.contains("was ended; going on in a new one"), "{shown}");
    let asked = model.bodies()[2]["messages"].to_string();
    assert!(asked.contains("\"edit\"") && asked.contains("\"read\""), "{asked}");
    let _ = capsule.run(&["session", "end", "latest"]).exits(0);
    let _ = quit(terminal);
    let listed = capsule.run(&["list-runs", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    drop(model);
    for run in listed.as_array().unwrap() {
        let _ = capsule.run(&["replay", run["run"].as_str().unwrap()]).exits(0);
    }
}

/// FR-1: nothing is recorded by a chat in which nothing was said; a second one goes on where the first one ended.
#[test]
fn a_session_is_taken_up_by_the_next_chat() {
    let model = edits_then_reads();
    let capsule = capsule(&model);
    let _ = quit(chat(&capsule, &[]));
    assert!(!capsule.store().exists());
    let policy = capsule.write_policy(POLICY);
    let started = capsule.run(&["session", "start", "--policy", &policy, "--json"]).exits(0).json();
    let session = started["session"].as_str().unwrap().to_owned();
    let mut terminal = chat(&capsule, &["--session", &session]);
    let _ = say(&mut terminal, "edit");
    let shown = quit(terminal);
    assert!(shown.contains("stays open"), "{shown}");
    let mut terminal = chat(&capsule, &["--session", &session]);
    let _ = say(&mut terminal, "read");
    // What the first one staged is there, and so is what was said.
    let results = results(&model);
    assert_eq!(results.last().unwrap()["result"]["text"], "new notes\n");
    assert_eq!(results.len(), 2);
    let _ = quit(terminal);
    let _ = capsule.run(&["session", "end", &session]).exits(0);
    let _ = capsule.run(&["replay", &session]).exits(0);
}

/// Where the kernel lays no changes over the workspace, the session is held to the end of the chat: later turns see what
/// earlier ones changed, and what needs the session is refused until then.
#[test]
fn a_chat_in_a_copy_keeps_its_session() {
    let model = edits_then_reads();
    let capsule = capsule(&model);
    capsule.write_file("mnt/x", "x");
    let policy = capsule.write_policy(POLICY);
    let args = ["chat", "--color", "never", "--policy", &policy];
    let by = "exec unshare --user --map-root-user --mount sh -c \
              'mount -t tmpfs none \"$0/mnt\" && exec \"$@\"' \"$PWD\" \"$@\"";
    let mut terminal = Terminal::start_by(&capsule, by, &args, &[]);
    terminal.until("ends the chat");
    enter(&mut terminal, "edit");
    terminal.until("the workspace was copied");
    terminal.until(" prompt");
    enter(&mut terminal, "/apply");
    terminal.until("`/quit` first");
    let _ = say(&mut terminal, "read");
    assert_eq!(results(&model)[1]["result"]["text"], "new notes\n");
    let shown = quit(terminal);
    assert!(shown.contains("capsule apply"), "{shown}");
    let run = run_of_chat(&capsule);
    let _ = capsule.run(&["apply", &run]).exits(0);
    assert_eq!(fs::read_to_string(capsule.workspace().join("notes.md")).unwrap(), "new notes\n");
}

/// A request to end the process is followed at the prompt, with the terminal given back.
#[test]
fn a_signal_ends_a_waiting_chat() {
    let model = ModelServer::scripted(ModelFormat::OpenAi, vec![]);
    let capsule = capsule(&model);
    let mut terminal = chat(&capsule, &[]);
    prompt(&mut terminal);
    kill_process(terminal.pid(), Signal::TERM).unwrap();
    assert!(terminal.is_given_back());
    assert_ne!(terminal.end().0, 0);
}

/// The demo needs no model, no account and no network, and is a real run: a question, a search, a refusal, an edit that
/// a person allows, applied and undone.
#[test]
fn the_demo_is_played_through() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let place = capsule.home().join("sample");
    let began = Instant::now();
    let mut terminal = start(&capsule, &["--demo", place.to_str().unwrap()]);
    terminal.until("the model is a script");
    terminal.until("after the last meeting?");
    enter(&mut terminal, "");
    terminal.until("(Enter: none): ");
    terminal.press("2\r");
    terminal.until("budget by Friday");
    terminal.until("nothing staged");
    enter(&mut terminal, "");
    terminal.card();
    terminal.press("1");
    terminal.until("1 change staged");
    enter(&mut terminal, "");
    terminal.until("no-credentials");
    terminal.until("1 denied");
    let summary = || fs::read_to_string(place.join("summary.md")).unwrap();
    assert!(summary().contains("to be done"));
    enter(&mut terminal, "");
    terminal.until("capsule undo");
    assert!(summary().contains("128.50"));
    enter(&mut terminal, "");
    terminal.until("undone");
    assert!(summary().contains("to be done"));
    enter(&mut terminal, "");
    terminal.until("the session is open");
    terminal.until("/quit");
    enter(&mut terminal, "");
    let (status, shown) = terminal.end();
    assert_eq!(status, 0, "{shown}");
    assert!(shown.contains("sample workspace"), "{shown}");
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
    let run = run_of_chat(&capsule);
    let report = capsule.run(&["report", &run]).exits(0);
    assert!(report.stdout.contains("fs.search") && !report.stdout.contains("sample-password"));
    let _ = capsule.run(&["replay", &run]).exits(0);
    // A directory that holds something is not taken.
    let refused = capsule.run(&["chat", "--demo", place.to_str().unwrap()]).exits(2);
    assert!(refused.stderr.contains("is not empty"), "{}", refused.stderr);
}

/// Without a terminal the demo runs through, and nobody is there to allow its edit or to answer its question.
#[test]
fn a_demo_without_a_person_allows_nothing() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let place = capsule.home().join("sample");
    let done = capsule.run(&["chat", "--demo", place.to_str().unwrap()]).exits(4);
    assert!(done.stdout.contains("budget by Friday"), "{}", done.stdout);
    assert!(done.stdout.contains("ASKED"), "{}", done.stdout);
    let _ = capsule.run(&["replay", "latest"]).exits(4);
}

/// Without a model it is said what was looked for, and the demo is offered.
#[test]
fn a_missing_model_leads_to_the_demo() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let mut terminal = start(&capsule, &[]);
    for expected in [
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "providers.yaml",
        "11434",
        "8080",
        "1234",
        "--demo",
        "Show the demo now?",
    ] {
        terminal.until(expected);
    }
    terminal.press("n\r");
    let (status, shown) = terminal.end();
    assert_eq!(status, 2);
    assert!(shown.contains("[model.not-configured]"), "{shown}");
    assert!(!capsule.store().exists());
    // Without a terminal there is no conversation.
    let refused = capsule.run(&["chat"]).exits(2);
    assert!(refused.stderr.contains("--task"), "{}", refused.stderr);
}
