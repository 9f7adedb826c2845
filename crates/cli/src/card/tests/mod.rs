//! Cards without a terminal: what they look like, what hostile content makes of them, and what keys
//! do under a clock that the test holds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use capsule_base::digest::Digest;
use capsule_core::approval::{
    Card, CardField, GrantLifetime, GrantOffer, GrantPattern, Person, Reversibility, StepCall,
};
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::risk::Risk;
use capsule_core::tool::ToolName;
use capsule_report::width;
use capsule_runtime::PromptAnswer;
use serde_json::{Value, json};

use crate::card::card_state::{AllowBlocked, CardState, Page};
use crate::card::choices::{Choice, choices};
use crate::card::key_decoder::{Decoder, Key, Motion, TerminalInput};
use crate::card::{card_rows, diff, frame, plain_prompt};

fn word(text: &str) -> CardField {
    CardField { name: None, text: text.into(), note: None }
}

/// A command's card.
fn command(words: &[&str]) -> Card {
    let mut exact: Vec<CardField> = words.iter().map(|text| word(text)).collect();
    exact[0].note = Some(format!("/usr/bin/{}", words[0]));
    let offer = |scope, reach| GrantOffer {
        scope,
        pattern: reach,
        uses: 20,
        after_ms: 4 * 3_600_000,
        would_have_covered: 6,
        of_them_denied: 0,
        covered: vec!["r-7Q3K:2 git commit -m one · allowed".into()],
    };
    let reach = GrantPattern::Command {
        names: vec!["git".into(), "commit".into()],
        options: vec!["-m".into()],
        cwd: String::new(),
    };
    let mut card = Card {
        call: 3,
        step: Some("commit".into()),
        tool: ToolName::unchecked("shell.run"),
        risk: Risk::Medium,
        capabilities: Capabilities::of(Capability::ProcExec).with(Capability::FsWrite),
        headline: "git commit -m 'docs: add release notes for v1.3.0'".into(),
        consequences: vec!["run a program".into(), "change files".into()],
        exact,
        place: Some("in the workspace · PATH LANG CI=1 · no input".into()),
        new_here: vec!["the first `git commit` here".into()],
        read_before: None,
        seen_before: None,
        why: "commits are asked: shell.run/git.commit (policy.yaml:116:5)".into(),
        undo: Reversibility::Staged,
        pending_changes: None,
        prevented: vec!["reach the network".into(), "read what the policy never shows".into()],
        tainted: vec!["argv[3]".into()],
        offers: vec![
            offer(GrantLifetime::Task, reach.clone()),
            offer(GrantLifetime::Session, reach),
            offer(
                GrantLifetime::Session,
                GrantPattern::AnyWithCapability { capability: Capability::ProcExec },
            ),
        ],
        args: json!({ "argv": words }),
        diff: None,
        attention: Some((3, 25)),
        steps: 0,
        previously_allowed: None,
        undo_hint: None,
        waits_unanswered: false,
    };
    if card.is_hostile() {
        card.offers.clear();
    }
    card
}

fn commit() -> Card {
    command(&["git", "commit", "-m", "docs: add release notes for v1.3.0"])
}

/// A card for a file, with its diff.
fn writing() -> Card {
    let text = |name: &str, text: &str| CardField {
        name: Some(name.into()),
        text: text.into(),
        note: None,
    };
    let content: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    Card {
        tool: ToolName::unchecked("fs.write"),
        headline: "fs.write docs/a.md".into(),
        consequences: vec!["create or change files".into()],
        exact: vec![text("path", "docs/a.md"), text("content", &content)],
        place: None,
        undo: Reversibility::Recorded,
        prevented: Vec::new(),
        tainted: Vec::new(),
        args: json!({ "path": "docs/a.md", "content": content }),
        diff: Some("@@ -1,2 +1,2 @@\n same\n-old\n+new\n".into()),
        ..commit()
    }
}

/// The card of a plan, before any of it ran.
fn plan() -> Card {
    let named = |name: &str, text: &str| CardField {
        name: Some(name.into()),
        text: text.into(),
        note: None,
    };
    let calls = ["notes", "commit"].map(|step| StepCall {
        step: step.into(),
        binding: Digest::of(b""),
        diff: None,
    });
    let mut exact = vec![
        named("step", "notes: fs.write docs/notes.md"),
        named("why", "`fs.write` is asked about: fs.write (policy.yaml:9:3)"),
        named("path", "docs/notes.md"),
        named("content", "one\ntwo\n"),
        named("step", "commit: git commit -m notes"),
        named("why", "commits are asked: shell.run/git.commit (policy.yaml:116:5)"),
        named("where", "in the workspace · PATH LANG CI=1 · no input"),
    ];
    exact.extend(commit().exact);
    Card {
        call: 0,
        step: None,
        tool: ToolName::unchecked("plan"),
        headline: "2 steps of this plan need your leave, and 1 more cannot be shown yet".into(),
        consequences: Vec::new(),
        exact,
        place: None,
        new_here: Vec::new(),
        read_before: None,
        seen_before: None,
        tainted: Vec::new(),
        why: "`composites` of the policy asks once for what is known of a plan".into(),
        offers: vec![GrantOffer {
            scope: GrantLifetime::Task,
            pattern: GrantPattern::Steps { steps: calls.into() },
            uses: 2,
            after_ms: 3_600_000,
            would_have_covered: 0,
            of_them_denied: 0,
            covered: Vec::new(),
        }],
        args: Value::Null,
        diff: Some("@ step notes\n+one\n+two\n".into()),
        steps: 2,
        ..commit()
    }
}

/// The screen as text.
fn screen(card: &Card, size: (usize, usize)) -> String {
    let mut keys = CardState::new(card, 0, false);
    painted(card, &mut keys, size, 1_000)
}

fn painted(card: &Card, keys: &mut CardState<'_>, size: (usize, usize), now: u64) -> String {
    let lines = frame::render(card, keys, size, now, false);
    assert!(lines.len() <= size.1, "{} lines of {}", lines.len(), size.1);
    for line in &lines {
        assert!(width(line) <= size.0, "{line}");
    }
    lines.join("\n")
}

/// A plan is allowed as it is shown, denied, or asked about step by step; it is never changed, and
/// there is no other leave.
#[test]
fn a_plan_has_answers_of_its_own() {
    let known =
        |card: &Card| choices(card).into_iter().map(|(_, choice)| choice).collect::<Vec<_>>();
    assert_eq!(known(&plan()), [Choice::Offer(0), Choice::StepByStep, Choice::Deny, Choice::Stop]);
    let mut hostile = plan();
    hostile.exact.push(CardField { name: None, text: "a\u{202e}b".into(), note: None });
    assert_eq!(known(&hostile), [Choice::StepByStep, Choice::Deny, Choice::Stop]);
    let answer = |line| plain_prompt::parse_answer(&plan(), line, "amber", false);
    assert_eq!(answer("1 amber"), Ok(PromptAnswer::Allow(Person::present(), Some(0))));
    assert_eq!(answer("3 amber"), Ok(PromptAnswer::Withdrawn));
    assert!(answer("2 amber").is_err());
}

/// A person is told that nothing holds it, before anything else about it, and on every surface.
#[test]
fn what_nothing_confines_is_said() {
    let needs = Capabilities::of(Capability::ProcExec).with(Capability::ProcUnconfined);
    let item = Card { capabilities: needs, prevented: Vec::new(), ..command(&["make"]) };
    for card in [&item, &commit()] {
        let rows = card_rows::body_rows(card, 80, false).rows;
        let text = rows.iter().map(|row| row.text.trim()).collect::<Vec<_>>().join(" ");
        let said = text.find("nothing prevents it from reading, changing, deleting");
        assert_eq!(said.is_some(), card.capabilities == needs, "{text}");
        assert!(said.is_none_or(|at| at < text.find("why asked").unwrap()), "{text}");
        assert_eq!(text.contains("cannot "), card.capabilities != needs, "{text}");
    }
}

#[test]
fn cards_at_80_and_200_columns() {
    for (name, card) in [("command", commit()), ("writing", writing()), ("plan", plan())] {
        for size in [(80, 30), (200, 50)] {
            insta::assert_snapshot!(format!("{name}_{}", size.0), screen(&card, size));
        }
        insta::assert_snapshot!(
            format!("{name}_plain"),
            plain_prompt::card_text(&card, 80, false, "amber")
        );
    }
}

#[test]
fn pages_behind_the_card() {
    let text = |rows: card_rows::Rows| {
        rows.rows.into_iter().map(|row| row.text).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(text(diff::diff_rows(&writing(), 76)), "@@ -1,2 +1,2 @@\n  same\n- old\n+ new");
    let covered = text(card_rows::coverage_rows(&commit(), 76));
    assert_eq!(covered.matches("git commit -m …").count(), 1, "{covered}");
    let same = Card { diff: Some(String::new()), ..writing() };
    assert!(text(card_rows::body_rows(&same, 76, true)).contains("what is there already"));
}

#[test]
fn every_page_fits_every_window() {
    let long = format!("--message={}", "word ".repeat(400));
    let mut hostile = command(&["git", "commit", &long, "\u{202e}x", "日本語テキスト"]);
    hostile.diff = Some(format!("+{}\n", "日本".repeat(200)));
    for card in [commit(), writing(), hostile] {
        for columns in [20, 40, 41, 79, 80, 120, 200] {
            for height in [5, 14, 24, 60] {
                for key in ['v', 'e', 'd', 'g', '4', '3'] {
                    let mut keys = CardState::new(&card, 0, false);
                    painted(&card, &mut keys, (columns, height), 0);
                    keys.handle_input(1_000, TerminalInput::Keys(vec![Key::Char(key)]));
                    keys.handle_input(2_000, TerminalInput::Nothing);
                    painted(&card, &mut keys, (columns, height), 2_000);
                }
            }
        }
    }
}

/// Text of the body when everything is opened, its pieces put together again.
fn opened(card: &Card) -> String {
    let rows = card_rows::body_rows(card, 76, true);
    assert!(!rows.hides_something);
    let text = |row: &card_rows::Row| row.text.trim_start_matches([' ', '┆', '│']).to_owned();
    rows.rows.iter().map(text).collect::<String>()
}

/// FR-23, F16: every executable, option, path and host is to be seen, and nothing beyond the call is offered
/// where something cannot be shown as it is.
#[test]
fn hostile_content_is_seen_for_what_it_is() {
    let long = "a".repeat(100_000);
    let blanks = format!("safe{}; rm -rf ~", " ".repeat(500));
    let lines = format!("ok{}rm", "\n".repeat(300));
    let turned = "ok\n\u{202e}rm".to_owned();
    let stacked = format!("a{}", "\u{301}".repeat(50));
    // What is given, what has to be on the card, and whether it is shown as it is.
    let rows: Vec<(&str, String, bool)> = vec![
        ("rm\u{202e}txt.exe", "rm⟨U+202E⟩txt.exe".into(), false),
        ("r\u{200b}m", "r⟨U+200B⟩m".into(), false),
        ("a\tb", "a⟨U+0009⟩b".into(), false),
        ("\u{1b}[2J\u{1b}[H", "⟨U+001B⟩[2J⟨U+001B⟩[H".into(), false),
        ("\u{1b}]52;c;cm0=\u{7}", "⟨U+001B⟩]52;c;cm0=⟨U+0007⟩".into(), false),
        ("\u{9b}31m", "⟨U+009B⟩31m".into(), false),
        ("--f\u{43e}rce", "--f⟨U+043E⟩rce".into(), false),
        ("\u{2013}force", "⟨U+2013⟩force".into(), false),
        ("https://ex\u{430}mple.com", "https://ex⟨U+0430⟩mple.com".into(), false),
        ("https://example.com\u{2044}evil.org", "example.com⟨U+2044⟩evil.org".into(), false),
        ("\u{ff52}\u{ff4d}", "⟨U+FF52⟩⟨U+FF4D⟩".into(), false),
        ("e\u{e0041}\u{e0042}", "e⟨U+E0041⟩⟨U+E0042⟩".into(), false),
        ("\u{5d0}\u{5d1}/rm", "⟨U+05D0⟩⟨U+05D1⟩/rm".into(), false),
        ("⟨U+0041⟩", "⟨U+27E8⟩U+0041⟨U+27E9⟩".into(), false),
        ("a\u{a0}b", "a⟨U+00A0⟩b".into(), false),
        (&blanks, "safe⟨500 blanks⟩; rm -rf ~".into(), true),
        // A word of several lines is shown as lines, and each of them as exactly as a word of one line.
        (&lines, "okrm".into(), true),
        (&turned, "ok⟨U+202E⟩rm".into(), false),
        (&stacked, "⟨U+0301⟩".into(), true),
        ("", "⟨empty⟩".into(), true),
        (" x", "⟨1 blank⟩x".into(), true),
        (&long, long.clone(), true),
        ("日本.md", "日本.md".into(), true),
        ("naïve café", "naïve café".into(), true),
    ];
    for (given, shown, as_it_is) in rows {
        let card = command(&["git", "add", given, "--last", "the/end"]);
        let text = opened(&card);
        for part in [shown.as_str(), "/usr/bin/git", "add", "--last", "the/end"] {
            assert!(text.contains(part), "{part:?} of {given:?}");
        }
        let raw = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}' | '\u{e0041}');
        assert!(!text.contains(raw), "{given:?}");
        let offers = choices(&card).iter().any(|(digit, _)| *digit == '2');
        assert_eq!(offers, as_it_is, "{given:?}");
        for line in card_rows::body_rows(&card, 76, false).rows {
            assert!(width(&line.text) <= 76, "{}", line.text);
        }
    }
}

/// Where a mask hides what would run, where or how, nothing can be allowed.
#[test]
fn masks_hide_nothing_that_runs() {
    const MASK: &str = "«token:github:40:9f3a»";
    let options = format!("--{MASK}");
    let path = format!("/srv/{MASK}");
    let (found, named) = ("of=«pattern:acme:9»", "«secret:setting:9»");
    for words in [
        &[MASK, "x"][..],
        &["rm", &options],
        &["rm", &path],
        &["rm", MASK],
        &["rm", "-r", MASK],
        &["rm", named],
        &["dd", found],
        &["dd", "of=«token:github:40:9f3a»"],
        &["mysql", "-p«password:command:9»"],
        &["sshpass", "-p", "«password:command:9»"],
        &["rm", "-f", "--", "sshpass", "-p", "«password:command:9»"],
        &["rm", "-f", "--", "--token", named],
        &["rm", "-f", "--", "a:«secret:setting:9»"],
        &["curl", "--key", named],
        &["sh", "-c", "PASSWORD=«password:setting:9»"],
        &["bash", "-lc", "export PASSWORD=«password:setting:9»"],
        &["x", "a: ; PASSWORD=«password:setting:9»"],
        &["scp", "a", "password:«password:setting:9»"],
        &["curl", "https://a.example/?q=x:«token:github:40:9f3a»"],
    ] {
        let card = command(words);
        let known: Vec<Choice> = choices(&card).iter().map(|(_, choice)| *choice).collect();
        assert_eq!(known, [Choice::Change, Choice::Deny, Choice::Stop], "{words:?}");
        let mut keys = CardState::new(&card, 0, false);
        painted(&card, &mut keys, (80, 40), 0);
        assert_eq!(press(&mut keys, 1_000, '1'), None);
        assert!(opened(&card).contains("a mask covers"), "{words:?}");
    }
    let value = format!("--header=Authorization: {MASK}");
    for words in [
        &["curl", &value][..],
        &["vault", "--token", named],
        &["vault", "--token=«secret:setting:9»"],
        &["env", "DB_PASSWORD=«password:setting:9»", "x"],
        &["curl", "-H", "Authorization: Bearer «token:github:40:9f3a»"],
        &["git", "clone", "https://me:«password:url:9»@git.example/x"],
    ] {
        assert_eq!(command(words).hidden_essential(), None, "{words:?}");
    }
    let mut url = command(&["x"]);
    url.exact = vec![CardField { name: Some("url".into()), text: MASK.into(), note: None }];
    assert_eq!(url.hidden_essential(), Some("an address"));
}

/// Presses a key, and lets half a second pass without another one.
fn press(keys: &mut CardState<'_>, now: u64, key: char) -> Option<PromptAnswer> {
    let said = keys.handle_input(now, TerminalInput::Keys(vec![Key::Char(key)]));
    said.or_else(|| keys.handle_input(now + 450, TerminalInput::Nothing))
}

fn on_screen(card: &Card) -> CardState<'_> {
    let mut keys = CardState::new(card, 0, false);
    painted(card, &mut keys, (80, 40), 0);
    keys
}

#[test]
fn digits_answer_in_their_own_time() {
    let card = commit();
    let mut keys = on_screen(&card);
    assert_eq!(press(&mut keys, 499, '1'), None, "too soon");
    assert_eq!(keys.allow_blocked(990), Some(AllowBlocked::Arming), "and that was a key, too");
    assert!(matches!(press(&mut keys, 1_000, '1'), Some(PromptAnswer::Allow(_, None))));
    // A pattern is offered once, for the session, and the whole capability last.
    for (digit, at) in [('2', 1), ('6', 2)] {
        let said = press(&mut on_screen(&card), 600, digit);
        assert!(matches!(said, Some(PromptAnswer::Allow(_, Some(own))) if own == at), "{said:?}");
    }
    // To stop, nobody has to wait.
    assert!(matches!(press(&mut on_screen(&card), 10, '5'), Some(PromptAnswer::Stop(..))));
    // A second key takes the first one back, and is nothing itself.
    for second in ['1', '5', 'x', '4'] {
        let mut keys = on_screen(&card);
        keys.handle_input(1_000, TerminalInput::Keys(vec![Key::Char('1')]));
        assert_eq!(press(&mut keys, 1_399, second), None, "{second}");
        assert_eq!(keys.page(), &Page::Card);
    }
    // What was typed before the card appeared was a key.
    let mut keys = CardState::new(&card, 0, true);
    painted(&card, &mut keys, (80, 40), 0);
    assert_eq!(press(&mut keys, 300, '5'), None);
}

#[test]
fn what_arrives_at_once_never_answers() {
    let card = commit();
    for bytes in [
        &b"1\n"[..],
        b"11",
        b"15",
        b"5\r",
        b"\x1b[200~1\x1b[201~",
        b"\x1b[200~1",
        b"1\x1b",
        b"1\x1b[200~",
        b"1\xc3",
    ] {
        let mut keys = on_screen(&card);
        let mut decoder = Decoder::default();
        for input in decoder.push(bytes) {
            assert_eq!(keys.handle_input(1_000, input), None);
        }
        assert_eq!(keys.handle_input(2_000, TerminalInput::Nothing), None, "{bytes:?}");
    }
    // In a line, a paste is text, and its line ends are blanks.
    let mut keys = on_screen(&card);
    press(&mut keys, 1_000, '4');
    keys.handle_input(1_500, TerminalInput::Paste("not\nnow\r".into()));
    keys.handle_input(1_600, TerminalInput::Keys(vec![Key::Char('!'), Key::Enter]));
    let said = keys.handle_input(1_700, TerminalInput::Keys(vec![Key::Enter]));
    assert!(
        matches!(said, Some(PromptAnswer::Deny(_, Some(ref why))) if why == "not now !"),
        "{said:?}"
    );
}

#[test]
fn what_was_not_seen_cannot_be_allowed() {
    let card = writing();
    let mut keys = CardState::new(&card, 0, false);
    let size = (80, 24);
    painted(&card, &mut keys, size, 0);
    assert_eq!(keys.allow_blocked(1_000), Some(AllowBlocked::NotExpanded));
    assert_eq!(press(&mut keys, 1_000, '1'), None);
    press(&mut keys, 2_000, 'v');
    painted(&card, &mut keys, size, 2_500);
    assert_eq!(keys.allow_blocked(3_000), Some(AllowBlocked::EndNotShown));
    assert_eq!(press(&mut keys, 3_000, '1'), None);
    keys.handle_input(4_000, TerminalInput::Keys(vec![Key::Move(Motion::Last)]));
    painted(&card, &mut keys, size, 4_000);
    assert_eq!(keys.allow_blocked(4_400), Some(AllowBlocked::Arming), "a page arms anew");
    assert!(matches!(press(&mut keys, 4_600, '1'), Some(PromptAnswer::Allow(_, None))));
    // A new size of the window arms anew, and takes back what was pressed.
    let card = commit();
    let mut keys = on_screen(&card);
    keys.handle_input(1_000, TerminalInput::Keys(vec![Key::Char('1')]));
    keys.handle_input(1_100, TerminalInput::Resized);
    assert_eq!(keys.handle_input(2_000, TerminalInput::Nothing), None);
    assert_eq!(press(&mut keys, 1_550, '1'), None);
    // In a window without room nothing can be seen.
    let mut keys = CardState::new(&card, 0, false);
    painted(&card, &mut keys, (80, 8), 0);
    assert_eq!(press(&mut keys, 1_000, '1'), None);
}

#[test]
fn other_arguments_are_read_and_checked() {
    let card = commit();
    let mut keys = on_screen(&card);
    press(&mut keys, 1_000, '3');
    let enter = || TerminalInput::Keys(vec![Key::Enter]);
    assert_eq!(keys.handle_input(2_000, enter()), None);
    assert!(matches!(keys.page(), Page::Change(_, Some(why)) if why == "nothing was changed"));
    keys.handle_input(2_100, TerminalInput::Keys(vec![Key::Backspace]));
    assert_eq!(keys.handle_input(2_200, enter()), None, "no JSON");
    keys.handle_input(2_300, TerminalInput::Paste(r#", "cwd": "docs"}"#.into()));
    let said = keys.handle_input(2_400, enter());
    let wanted = json!({ "argv": card.args["argv"], "cwd": "docs" });
    assert!(matches!(said, Some(PromptAnswer::ChangeArguments(_, args)) if args == wanted));
    // What cannot be seen is edited as a code point, and stays what it is.
    let hostile = command(&["git", "a\u{202e}b\u{430}"]);
    let mut keys = on_screen(&hostile);
    press(&mut keys, 1_000, '3');
    let Page::Change(line, None) = keys.page() else { panic!() };
    assert!(line.text().contains(r"a\u202eb\u0430"), "{}", line.text());
    let same: Value = serde_json::from_str(&line.text()).unwrap();
    assert_eq!(same, hostile.args);
}

#[test]
fn leaving_and_interrupting() {
    let card = commit();
    for key in [Key::Escape, Key::End] {
        let mut keys = on_screen(&card);
        assert_eq!(keys.handle_input(10, TerminalInput::Keys(vec![key])), None);
        assert_eq!(keys.handle_input(500, TerminalInput::Nothing), Some(PromptAnswer::Postpone));
        assert!(!keys.is_interrupted());
    }
    let mut keys = on_screen(&card);
    for at in [0, 100, 200] {
        assert_eq!(keys.handle_input(at, TerminalInput::Keys(vec![Key::Interrupt])), None);
    }
    assert_eq!(keys.handle_input(500, TerminalInput::Nothing), Some(PromptAnswer::Withdrawn));
    assert!(keys.is_interrupted());
    assert_eq!(
        on_screen(&card).handle_input(10, TerminalInput::Disconnected),
        Some(PromptAnswer::Withdrawn)
    );
}

#[test]
fn a_plain_card_wants_its_word() {
    let card = commit();
    let say = |line: &str| plain_prompt::parse_answer(&card, line, "amber", false);
    for wrong in ["1", "y", "yes", "1 basil", "amber", "12 amber", "x amber", "1amber", "8 amber"] {
        assert!(say(wrong).is_err(), "{wrong}");
    }
    assert!(matches!(say("1 amber"), Ok(PromptAnswer::Allow(_, None))));
    assert!(matches!(say("2 amber"), Ok(PromptAnswer::Allow(_, Some(1)))));
    assert!(
        matches!(say("4 amber not now"), Ok(PromptAnswer::Deny(_, Some(why))) if why == "not now")
    );
    assert!(matches!(say("5 amber"), Ok(PromptAnswer::Stop(_, None))));
    assert!(matches!(say("0 amber"), Ok(PromptAnswer::Postpone)));
    assert!(matches!(say(r#"3 amber {"argv":["ls"]}"#), Ok(PromptAnswer::ChangeArguments(..))));
    assert!(say("3 amber [1]").is_err());
    assert!(
        plain_prompt::parse_answer(&card, "1 amber", "amber", true).is_err(),
        "not all was seen"
    );
    assert!(plain_prompt::parse_answer(&card, "4 amber", "amber", true).is_ok());
}

/// Numbers that are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A time to the next key: 33 ms on the average, evenly, or as by chance.
    fn pause(&mut self, by_chance: bool) -> u64 {
        if !by_chance {
            return 33;
        }
        let unit = (self.next() % 1_000_000 + 1) as f64 / 1_000_001.0;
        (-unit.ln() * 33.3) as u64
    }
}

/// A storm of keys at 30 a second while 10,000 cards appear: no approval, and no stop.
#[test]
fn stray_keys_answer_nothing() {
    let card = commit();
    let mut numbers = Numbers(7);
    let (mut denied, mut pressed) = (0, 0);
    for round in 0..10_000 {
        let mut keys = CardState::new(&card, 0, round % 3 == 0);
        keys.set_extent(20, 30, false);
        let mut now = 0;
        while now < 5_000 {
            let pause = numbers.pause(round % 2 == 0);
            let end = now + pause;
            let mut said = None;
            // While nobody types, the clock is looked at.
            while said.is_none() && now + 50 <= end {
                now += 50;
                said = keys.handle_input(now, TerminalInput::Nothing);
            }
            now = end;
            let key = match numbers.next() % 40 {
                digit @ 0..=9 => Key::Char(char::from(b'0' + digit as u8)),
                10 => Key::Enter,
                11 => Key::Escape,
                12 => Key::Interrupt,
                13 => Key::Move(Motion::Last),
                14 => Key::Backspace,
                15 => Key::End,
                other => Key::Char(char::from(b'a' + (other % 26) as u8)),
            };
            pressed += 1;
            let said = said.or_else(|| keys.handle_input(now, TerminalInput::Keys(vec![key])));
            keys.set_extent(20, 30, false);
            match said {
                None => {}
                Some(PromptAnswer::Deny(..)) => {
                    denied += 1;
                    break;
                }
                Some(other) => panic!("card {round} at {now} ms: {other:?}"),
            }
        }
    }
    assert!(denied > 0 && pressed > 100_000, "{denied} denied, {pressed} keys");
}

/// The rule of an earlier yes is looked at, and never answered: `p` turns the page where there is one, and
/// nothing on that page lets anything run.
#[test]
fn a_rule_is_only_looked_at() {
    let before =
        Card { previously_allowed: Some("r-7Q3K:2".into()), waits_unanswered: true, ..commit() };
    let shown = screen(&before, (80, 40));
    assert!(shown.contains("before     allowed as r-7Q3K:2; `capsule policy learn"), "{shown}");
    assert!(shown.contains("Esc decide later"), "{shown}");
    assert!(screen(&commit(), (80, 40)).contains("Esc not now"));
    let first = commit();
    let mut none = on_screen(&first);
    press(&mut none, 1_000, 'p');
    assert_eq!((none.page(), none.wants_rule()), (&Page::Card, None));

    let mut keys = on_screen(&before);
    press(&mut keys, 1_000, 'p');
    assert_eq!(keys.wants_rule(), Some("r-7Q3K:2"));
    keys.set_patch("--- a/p\n+++ b/p\n@@ -1 +1,2 @@\n x: 1\n+y: \u{202e}2\n".into());
    assert_eq!(keys.wants_rule(), None, "it is learned once");
    let page = painted(&before, &mut keys, (80, 40), 2_000);
    assert!(page.contains("capsule policy learn r-7Q3K:2 --write"), "{page}");
    assert!(page.contains("+ y: ⟨U+202E⟩2") && page.contains("+++ b/p"), "{page}");
    for (at, key) in ['1', '2', '3', '4', '5'].into_iter().enumerate() {
        let now = 10_000 + 2_000 * u64::try_from(at).unwrap();
        assert_eq!(press(&mut keys, now, key), None);
        assert_eq!(keys.handle_input(now + 1_000, TerminalInput::Nothing), None);
        assert_eq!(keys.page(), &Page::Rule);
    }
    press(&mut keys, 60_000, 'p');
    assert_eq!(keys.page(), &Page::Card);
}
