//! The session that the book shows, made again in a real terminal: what a reader is told is what they
//! would see. With `UPDATE_BOOK=1` the page is written anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

mod terminal;

use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use capsule_testkit::Capsule;
use regex::{Captures, Regex};
use terminal::{Terminal, size};
use vt100::Parser;

const PAGE: &str = "docs/book/guide/session.md";
/// No line of the timeline is near this: where one is broken would hang on how long a time is written.
const COLUMNS: u16 = 114;
const ROWS: u16 = 40;

fn root() -> PathBuf {
    let built = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    std::env::var_os("CAPSULE_TEST_ROOT").map_or_else(built, PathBuf::from)
}

/// What a terminal shows once nothing more comes.
fn screen(terminal: &mut Terminal) -> String {
    // Longer than a card is dead after it appeared.
    while terminal.read(Duration::from_millis(900)) {}
    let mut parser = Parser::new(NonZero::new(ROWS).unwrap(), NonZero::new(COLUMNS).unwrap(), 0);
    parser.process(&terminal.shown);
    let text = parser.screen().contents();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// What differs from run to run, made the same.
fn steady(text: &str, capsule: &Capsule) -> String {
    let workspace = capsule.workspace().canonicalize().unwrap();
    let text = text.replace(&*workspace.to_string_lossy(), "/home/ada/notes");
    let mut labels: Vec<String> = Vec::new();
    let label = Regex::new("r-[0-9A-Z]{4,8}").unwrap();
    let text = label.replace_all(&text, |found: &Captures<'_>| {
        let found = found[0].to_owned();
        let at = labels.iter().position(|label| *label == found).unwrap_or_else(|| {
            labels.push(found);
            labels.len() - 1
        });
        ["r-7Q3K", "r-8M2C", "r-9T5D"][at]
    });
    let mut text = text.into_owned();
    for (what, same) in [
        ("[0-9a-f]{6}…[0-9a-f]{2}", "5f0c1e…a7"),
        ("<1 ms|[0-9]+ ms", "4 ms"),
        (r"[0-9]+(\.[0-9]+)? s\b", "9 s"),
    ] {
        text = Regex::new(what).unwrap().replace_all(&text, same).into_owned();
    }
    text
}

/// EI-2, FR-20 … FR-23: two questions, one answered for the session and one denied with a reason; then
/// all of it is taken back.
#[test]
fn the_session_in_the_book_is_a_real_one() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for name in ["plan.yaml", "policy.yaml"] {
        let text = fs::read_to_string(root().join("examples/session").join(name)).unwrap();
        capsule.write_file(name, &text);
    }
    capsule.write_file("docs/old.md", "# Old notes\n");
    let plan = ["run", "plan.yaml", "--policy", "policy.yaml"];
    let mut terminal = Terminal::start(&capsule, &plan);
    size(&terminal.slave, (COLUMNS, ROWS));
    let mut parts = Vec::new();
    terminal.card();
    parts.push(("first", screen(&mut terminal)));
    terminal.press("2");
    terminal.card();
    parts.push(("second", screen(&mut terminal)));
    terminal.press("4");
    terminal.until("Why not?");
    terminal.type_slowly("ben still reads them");
    parts.push(("reason", screen(&mut terminal)));
    terminal.press("\r");
    terminal.until("next:");
    parts.push(("run", screen(&mut terminal)));
    assert_eq!(terminal.end().0, 3);
    assert!(capsule.workspace().join("docs/index.md").exists());

    for (name, args) in
        [("preview", &["undo", "latest", "--dry-run"][..]), ("undo", &["undo", "latest"])]
    {
        let mut terminal = Terminal::start(&capsule, args);
        size(&terminal.slave, (COLUMNS, ROWS));
        let shown = screen(&mut terminal);
        assert_eq!(terminal.end().0, 0, "{shown}");
        parts.push((name, shown));
    }
    assert!(!capsule.workspace().join("docs/notes.md").exists());
    assert!(capsule.workspace().join("docs/old.md").exists());

    // Names are given over all of it, so that what is one run on one screen is it on the next.
    let seam = "\n\u{1}\n";
    let all: Vec<&str> = parts.iter().map(|(_, text)| text.as_str()).collect();
    let all = steady(&all.join(seam), &capsule);
    let mut page = fs::read_to_string(root().join(PAGE)).unwrap();
    for ((name, _), text) in parts.iter().zip(all.split(seam)) {
        page = with(&page, name, text);
    }
    if std::env::var_os("UPDATE_BOOK").is_some() {
        fs::write(root().join(PAGE), &page).unwrap();
    }
    let kept = fs::read_to_string(root().join(PAGE)).unwrap();
    similar(&kept, &page);
}

/// The page with a part of the recording behind its mark.
fn with(page: &str, name: &str, text: &str) -> String {
    let mark = format!("<!-- recorded: {name} -->\n```\n");
    let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("no {mark}"));
    let (said, after) = rest.split_once("```").unwrap();
    // What was typed stands in front of it, and is the page's own.
    let typed = said.lines().next().filter(|line| line.starts_with("$ "));
    let typed = typed.map(|line| format!("{line}\n")).unwrap_or_default();
    format!("{before}{mark}{typed}{text}\n```{after}")
}

#[track_caller]
fn similar(kept: &str, now: &str) {
    let differs = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert_eq!(differs, None, "the page shows the first, and a terminal the second");
    assert_eq!(kept.lines().count(), now.lines().count());
}
