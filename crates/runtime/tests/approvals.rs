//! What becomes of questions: a person who answers by a script, the record of it, and its replay.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::approval::{GrantLifetime, GrantPattern, Person, Reversibility};
use capsule_core::journal::{Event, PendingChanges};
use capsule_runtime::PromptAnswer;
use capsule_store::Store;
use serde_json::json;

mod person;

use person::{Act, Place, offer, write, yes};

const POLICY: &str = "version: 1
name: asks
sandbox: { workspace: direct }
tools:
  fs.read: allow
  fs.write:
    decision: ask
    rules:
      - { id: each, paths: [\"each/**\"], decision: ask-each }
      - { id: no, paths: [\"no/**\"], decision: deny }
  fs.delete: ask
";

#[test]
fn a_yes_lets_the_call_run_and_is_in_the_record() {
    let place = Place::with(POLICY);
    let done = place.run(vec![yes()], &[write("docs/a.md")]);
    assert_eq!(done.code(0), Code::Asked);
    assert_eq!(done.delivered[0].exit(), Exit::Ok);
    assert_eq!(fs::read_to_string(place.file("docs/a.md")).unwrap(), "new\n");
    assert_eq!(
        done.kinds(),
        [
            "run.opened",
            "call.proposed",
            "call.decided",
            "approval.shown",
            "approval.answered",
            "call.started",
            "call.finished",
            "run.sealed"
        ]
    );
    let card = &done.cards[0];
    assert_eq!(card.undo, Reversibility::Recorded);
    assert!(card.exact.iter().any(|own| own.text == "docs/a.md"), "{card:?}");
    let shown = done.events().into_iter().find_map(|event| match event {
        Event::ApprovalShown(shown) => Some(shown),
        _ => None,
    });
    assert_eq!(shown.unwrap().sha256, card.digest());
    done.replays();
}

#[test]
fn every_other_answer_keeps_the_call_from_running() {
    let why = "use docs/b.md instead".to_owned();
    let rows: Vec<(PromptAnswer, Code, Exit)> = vec![
        (
            PromptAnswer::Deny(Person::present(), Some(why.clone())),
            Code::ApprovalDenied,
            Exit::Denied,
        ),
        (PromptAnswer::Deny(Person::present(), None), Code::ApprovalDenied, Exit::Denied),
        (PromptAnswer::Stop(Person::present(), None), Code::ApprovalStopped, Exit::Denied),
        (PromptAnswer::Expired, Code::ApprovalExpired, Exit::ApprovalNeeded),
        (PromptAnswer::Withdrawn, Code::ApprovalWithdrawn, Exit::ApprovalNeeded),
        (
            PromptAnswer::Allow(Person::present(), Some(99)),
            Code::ApprovalWithdrawn,
            Exit::ApprovalNeeded,
        ),
    ];
    for (said, code, exit) in rows {
        let place = Place::with(POLICY);
        let own = said.clone();
        let done = place.run(vec![Box::new(move |_| own.clone())], &[write("docs/a.md")]);
        assert_eq!((done.code(0), done.delivered[0].exit()), (code, exit), "{said:?}");
        assert!(!place.file("docs/a.md").exists(), "{said:?}");
        assert!(!done.kinds().contains(&"call.started"), "{said:?}");
        if let PromptAnswer::Deny(_, Some(_)) = said {
            // The words reach whoever asked as they are.
            let problem = done.delivered[0].problem.as_ref().unwrap();
            assert_eq!(problem.message, why);
        }
        done.replays();
    }
}

#[test]
fn without_anybody_it_is_as_it_was() {
    let place = Place::with(POLICY);
    let done = place.run(Vec::new(), &[write("docs/a.md")]);
    assert_eq!(done.code(0), Code::ApprovalNeeded);
    assert_eq!(done.kinds(), ["run.opened", "call.proposed", "call.decided", "run.sealed"]);
    done.replays();
}

/// Decision 29, house rule 8: what was approved is what runs, or nothing does.
#[test]
fn what_changes_behind_a_card_is_not_approved() {
    let place = Place::with(POLICY);
    fs::write(place.file("docs/a.md"), "old\n").unwrap();
    let (own, elsewhere) = (place.file("docs/a.md"), place.folder.path().join("elsewhere"));
    fs::write(&elsewhere, "mine\n").unwrap();
    let outside = elsewhere.clone();
    let act: Act = Box::new(move |_| {
        fs::remove_file(&own).unwrap();
        std::os::unix::fs::symlink(&outside, &own).unwrap();
        PromptAnswer::Allow(Person::present(), None)
    });
    let done = place.run(vec![act], &[write("docs/a.md")]);
    assert_eq!(done.code(0), Code::ApprovalChangedAfter);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine\n");
    assert!(!done.kinds().contains(&"call.started"));
    done.replays();
}

/// F2: what was approved is what was shown, also where the file is the same and holds something else.
#[test]
fn other_lines_behind_a_card_are_not_approved() {
    for other in ["other\n".as_bytes(), b"not\xfftext\x00"] {
        let place = Place::with(POLICY);
        fs::write(place.file("docs/a.md"), "old\n").unwrap();
        let own = place.file("docs/a.md");
        let act: Act = Box::new(move |card| {
            assert!(card.diff.as_ref().is_some_and(|own| own.contains("-old")), "{:?}", card.diff);
            fs::write(&own, other).unwrap();
            PromptAnswer::Allow(Person::present(), None)
        });
        let done = place.run(vec![act], &[write("docs/a.md")]);
        assert_eq!(done.code(0), Code::ApprovalChangedAfter);
        assert_eq!(fs::read(place.file("docs/a.md")).unwrap(), other);
        done.replays();
    }
    // Of what has no lines it is said what it is.
    let place = Place::with(POLICY);
    fs::write(place.file("docs/a.md"), b"not\xfftext\x00").unwrap();
    let own = place.file("docs/a.md");
    let act: Act = Box::new(move |card| {
        assert!(card.diff.as_ref().is_some_and(|own| own.contains("SHA-256")), "{:?}", card.diff);
        fs::write(&own, b"not\xffthat\x00").unwrap();
        PromptAnswer::Allow(Person::present(), None)
    });
    let done = place.run(vec![act], &[write("docs/a.md")]);
    assert_eq!(done.code(0), Code::ApprovalChangedAfter);
    done.replays();
}

#[test]
fn changed_arguments_are_another_call() {
    let place = Place::with(POLICY);
    let act: Act =
        Box::new(|_| PromptAnswer::ChangeArguments(Person::present(), write("docs/b.md").1));
    let done = place.run(vec![act, yes()], &[write("docs/a.md")]);
    assert_eq!(done.delivered[0].exit(), Exit::Ok);
    assert!(!place.file("docs/a.md").exists() && place.file("docs/b.md").exists());
    let proposed = done.kinds().iter().filter(|kind| **kind == "call.proposed").count();
    assert_eq!((proposed, done.cards.len()), (2, 2), "both are in the record, and both were asked");
    // The other call is judged like any: what is denied stays denied.
    let act: Act =
        Box::new(|_| PromptAnswer::ChangeArguments(Person::present(), write("no/b.md").1));
    let done = place.run(vec![act, yes()], &[write("docs/a.md")]);
    assert_eq!((done.code(0), done.left), (Code::RuleDenied, 1));
}

#[test]
fn a_changed_call_replays() {
    let place = Place::with(POLICY);
    let act: Act =
        Box::new(|_| PromptAnswer::ChangeArguments(Person::present(), write("docs/b.md").1));
    place.run(vec![act, yes()], &[write("docs/a.md")]).replays();
}

#[test]
fn a_grant_answers_for_calls_like_the_one() {
    let place = Place::with(POLICY);
    let calls = [
        write("docs/a.md"),
        write("docs/b.md"),
        write("top.md"),
        write("each/c.md"),
        write("no/d"),
    ];
    let done = place.run(vec![offer(GrantLifetime::Session)], &calls);
    let codes: Vec<Code> = (0..calls.len()).map(|at| done.code(at)).collect();
    use Code::{ApprovalNeeded, Asked, RuleDenied};
    assert_eq!(codes, [Asked, Asked, ApprovalNeeded, ApprovalNeeded, RuleDenied]);
    assert!(place.file("docs/b.md").exists() && !place.file("top.md").exists());
    let used: Vec<(String, u64)> = done
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::GrantUsed(used) => Some((used.grant, used.left)),
            _ => None,
        })
        .collect();
    assert_eq!(used.len(), 1);
    assert_eq!(used[0].1, 18, "the call that it was given with was the first of 20");
    let GrantPattern::Directory { folder, .. } = &done.cards[0].offers[0].pattern else { panic!() };
    assert_eq!(folder, "docs");
}

#[test]
fn a_grant_ends_by_its_uses() {
    let policy = POLICY.replace("tools:", "grants: { expire: { uses: 2 } }\ntools:");
    let place = Place::with(&policy);
    let calls = [write("docs/a.md"), write("docs/b.md"), write("docs/c.md")];
    let done = place.run(vec![offer(GrantLifetime::Task)], &calls);
    assert_eq!(done.code(1), Code::Asked);
    assert_eq!(done.code(2), Code::ApprovalNeeded);
}

#[test]
fn a_policy_says_what_is_offered() {
    let policy = POLICY.replace("tools:", "grants: { offer: [once] }\ntools:");
    let done = Place::with(&policy).run(vec![yes()], &[write("docs/a.md")]);
    assert_eq!(done.cards[0].offers, []);
    let done =
        Place::with(POLICY).run(vec![yes(), yes()], &[write("docs/a.md"), write("each/a.md")]);
    let scopes: Vec<GrantLifetime> = done.cards[0].offers.iter().map(|offer| offer.scope).collect();
    assert_eq!(scopes, [GrantLifetime::Task, GrantLifetime::Session, GrantLifetime::Session]);
    assert!(
        matches!(done.cards[0].offers[2].pattern, GrantPattern::AnyWithCapability { .. }),
        "the widest comes last"
    );
    assert_eq!(done.cards[1].offers, [], "what is asked each time is never granted");
    let hidden = Place::with(POLICY).run(vec![yes()], &[write("docs/a\u{202e}.md")]);
    assert_eq!(hidden.cards[0].offers, [], "what cannot be shown as it is is never granted");
}

#[test]
fn a_tired_person_is_left_alone() {
    let attention = "budgets: { attention: { prompts: 2, per: 1h } }\ntools:";
    let place = Place::with(&POLICY.replace("tools:", attention));
    let calls = [write("docs/a.md"), write("docs/b.md"), write("docs/c.md")];
    let done = place.run(vec![yes(), yes(), yes()], &calls);
    assert_eq!((done.code(2), done.left), (Code::ApprovalNeeded, 1));
}

/// APR-7: a grant that somebody takes back elsewhere does not answer the next call.
#[test]
fn a_revoked_grant_is_gone_at_once() {
    let place = Place::with(POLICY);
    let store = place.store();
    let revoke: Act = Box::new(move |_| {
        let event = Event::GrantRevoked { grant: None };
        Store::open(&store).unwrap().write_unattached(event, 1).unwrap();
        PromptAnswer::Deny(Person::present(), None)
    });
    let calls = [write("docs/a.md"), write("top.md"), write("docs/b.md")];
    let done = place.run(vec![offer(GrantLifetime::Session), revoke], &calls);
    assert_eq!(done.code(1), Code::ApprovalDenied);
    assert_eq!(done.code(2), Code::ApprovalNeeded);
}

/// APR-11: the card says what waits in the workspace, and that what cannot be kept cannot be undone.
#[test]
fn a_card_tells_what_is_at_stake() {
    let place = Place::with(&POLICY.replacen("tools:", "risk: { block_at: none }\ntools:", 1));
    let own = fs::metadata(place.folder.path().join("ws")).unwrap();
    let staged = place.folder.path().join("store.db.staged/r-0000000000000001");
    fs::create_dir_all(&staged).unwrap();
    let note = json!({
        "device": own.dev().to_string(), "inode": own.ino().to_string(), "paths": 3, "refused": false
    });
    fs::write(staged.join("waiting"), note.to_string()).unwrap();
    fs::File::create(place.file("docs/a.md")).unwrap().set_len(64_000_001).unwrap();
    let done = place.run(vec![yes(), yes()], &[write("docs/a.md"), write("docs/b.md")]);
    assert_eq!(done.cards[0].undo, Reversibility::Irreversible);
    assert_eq!(done.cards[1].undo, Reversibility::Recorded);
    for card in &done.cards {
        assert_eq!(card.pending_changes, Some(PendingChanges { runs: 1, paths: 3 }));
    }
    assert_eq!(fs::read_to_string(place.file("docs/a.md")).unwrap(), "new\n");
}

/// The card says what will differ, what is new here, and what an offer would have covered before.
#[test]
fn a_card_knows_what_was_there_before() {
    let attention = "budgets: { attention: { prompts: 9, per: 1h } }\ntools:";
    let place = Place::with(&POLICY.replace("tools:", attention));
    fs::write(place.file("docs/a.md"), "old\nsame\n").unwrap();
    let no: Act = Box::new(|_| PromptAnswer::Deny(Person::present(), None));
    let first = place.run(vec![no, yes()], &[write("docs/a.md"), write("docs/b.md")]);
    let [one, two] = first.cards.as_slice() else { panic!() };
    assert_eq!(one.new_here, ["the first change beneath docs/ here"]);
    assert_eq!((one.offers[0].would_have_covered, one.attention), (0, Some((1, 9))));
    assert_eq!(one.diff.as_deref(), Some("@@ -1,2 +1 @@\n-old\n-same\n+new\n"));
    assert_eq!((two.new_here.len(), two.attention), (0, Some((2, 9))));
    assert_eq!((two.offers[0].would_have_covered, two.offers[0].of_them_denied), (1, 1));
    let later = place.run(vec![yes()], &[write("docs/a.md")]);
    let card = &later.cards[0];
    assert_eq!((card.offers[0].would_have_covered, card.offers[0].of_them_denied), (2, 1));
    assert!(card.offers[0].covered[0].ends_with(":2 fs.write docs/b.md"), "{card:?}");
    assert!(card.offers[0].covered[1].ends_with(":1 fs.write docs/a.md · denied"), "{card:?}");
    // Only what is there once the card is answered can be replaced.
    later.replays();
    // Another folder is another pattern, and new.
    let top =
        place.run(vec![yes()], &[("fs.write", json!({ "path": "new/x.md", "content": "x" }))]);
    assert_eq!(top.cards[0].new_here, ["the first change beneath new/ here"]);
    assert_eq!(top.cards[0].offers[0].would_have_covered, 0);
}
