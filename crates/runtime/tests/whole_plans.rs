//! One question for a whole plan: what is shown, what an answer covers, and what it does not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

mod person;

use std::fs;

use capsule_base::exit::Exit;
use capsule_core::approval::{AnswerKind, GrantLifetime, GrantPattern, Person};
use capsule_core::journal::Event;
use capsule_runtime::PromptAnswer;
use person::{Act, Done, Place, yes};

const POLICY: &str = "version: 1
name: asks
sandbox: { workspace: direct }
composites: { preflight: union, overflow: ask }
tools:
  fs.read: allow
  fs.write:
    decision: ask
    rules:
      - { id: each, paths: [\"each/**\"], decision: ask-each }
      - { id: no, paths: [\"no/**\"], decision: deny }
  fs.delete: ask
";

const PLAN: &str = "version: 1
name: three
steps:
  - { id: one, tool: fs.write, args: { path: docs/a.md, content: a } }
  - { id: two, tool: fs.write, args: { path: docs/b.md, content: b } }
  - { id: seen, tool: fs.read, args: { path: docs/a.md } }
  - { id: three, tool: fs.write, args: { path: docs/c.md, content: { $ref: steps.seen.text } } }
";

/// Leave for all of a plan's steps.
fn all() -> Act {
    Box::new(|card| {
        assert!(card.steps > 0, "{card:?}");
        PromptAnswer::Allow(Person::present(), Some(0))
    })
}

fn said(said: PromptAnswer) -> Act {
    Box::new(move |_| said.clone())
}

fn used(done: &Done) -> Vec<u64> {
    let used = |event| match event {
        Event::GrantUsed(used) => Some(used.call),
        _ => None,
    };
    done.events().into_iter().filter_map(used).collect()
}

/// APR-6: one decision on what is known of a plan before it begins; the first call beyond it is asked
/// about by itself.
#[test]
fn a_plan_is_one_question_and_what_is_beyond_it_another() {
    let place = Place::with(POLICY);
    let done = place.plan(vec![all(), yes()], PLAN);
    assert_eq!((done.exit, done.left, done.cards.len()), (Exit::Ok, 0, 2));
    let card = &done.cards[0];
    assert_eq!((card.steps, card.call), (2, 0));
    let texts: Vec<&str> = card.exact.iter().map(|own| own.text.as_str()).collect();
    for path in ["docs/a.md", "docs/b.md"] {
        assert!(texts.contains(&path), "{texts:?}");
    }
    assert!(!texts.contains(&"docs/c.md"), "its content is not known yet: {texts:?}");
    assert!(card.headline.contains("1 more cannot be shown"), "{}", card.headline);
    let news =
        ["one: the first change beneath docs/ here", "two: the first change beneath docs/ here"];
    assert_eq!(card.new_here, news);
    let offer = &card.offers[0];
    assert_eq!((offer.scope, offer.uses), (GrantLifetime::Task, 2));
    assert!(
        matches!(&offer.pattern, GrantPattern::Steps { steps } if steps.len() == 2),
        "{offer:?}"
    );
    assert_eq!(done.cards[1].step.as_deref(), Some("three"));
    assert_eq!(used(&done), [1, 2], "the first two steps ran by it, and only they");
    assert_eq!(done.kinds()[..3], ["run.opened", "plan.shown", "plan.answered"]);
    done.replays();
}

/// The whole is denied before anything of it ran.
#[test]
fn a_no_to_the_plan_is_one_to_all_of_it() {
    for (answer, stops) in [
        (PromptAnswer::Deny(Person::present(), Some("not today".into())), false),
        (PromptAnswer::Stop(Person::present(), None), true),
    ] {
        let place = Place::with(POLICY);
        let done = place.plan(vec![said(answer)], PLAN);
        assert_eq!(done.exit, Exit::Denied);
        assert_eq!(done.kinds(), ["run.opened", "plan.shown", "plan.answered", "run.sealed"]);
        let events = done.events();
        let Event::PlanAnswered(answered) = &events[2] else { panic!("{:?}", events[2]) };
        assert_eq!((answered.outcome, answered.stops), (AnswerKind::Denied, stops));
        assert_eq!(answered.why.is_some(), !stops);
        assert!(!place.file("docs/a.md").exists());
        done.replays();
    }
}

/// Who says neither yes nor no is asked at each step, and so is everybody where nothing is known ahead.
#[test]
fn without_an_answer_each_step_is_asked() {
    let place = Place::with(POLICY);
    let done = place.plan(vec![said(PromptAnswer::Withdrawn), yes(), yes(), yes()], PLAN);
    let steps: Vec<_> = done.cards.iter().map(|own| own.step.as_deref()).collect();
    assert_eq!(steps, [None, Some("one"), Some("two"), Some("three")]);
    assert_eq!((done.exit, used(&done).len()), (Exit::Ok, 0));
    done.replays();

    let without = Place::with(&POLICY.replace("composites:", "# composites:"));
    let done = without.plan(vec![yes(), yes(), yes()], PLAN);
    assert!(done.cards.iter().all(|own| own.steps == 0), "it is the policy that wants it");
    assert_eq!(done.exit, Exit::Ok);
    done.replays();
}

/// What the policy asks each time, or denies, no leave for a plan is about.
#[test]
fn leave_for_a_plan_lifts_nothing_else() {
    let text = "version: 1
name: more
steps:
  - { id: one, tool: fs.write, args: { path: docs/a.md, content: a } }
  - { id: two, tool: fs.write, args: { path: docs/b.md, content: b } }
  - { id: each, tool: fs.write, args: { path: each/c.md, content: c } }
  - { id: no, tool: fs.write, args: { path: no/d.md, content: d } }
";
    let place = Place::with(POLICY);
    let done = place.plan(vec![all(), yes()], text);
    assert_eq!((done.exit, done.left), (Exit::Denied, 0));
    assert_eq!(done.cards[0].steps, 2);
    assert_eq!(done.cards[1].step.as_deref(), Some("each"));
    assert!(place.file("each/c.md").exists() && !place.file("no/d.md").exists());
    done.replays();
}

/// F1, F2: leave is for what was there when the plan was shown.
#[test]
fn what_changed_behind_the_plans_card_is_asked_again() {
    let place = Place::with(POLICY);
    fs::write(place.folder.path().join("ws/other.md"), "x").unwrap();
    let (from, to) = (place.file("docs"), place.file("moved"));
    let act: Act = Box::new(move |_| {
        fs::rename(&from, &to).unwrap();
        std::os::unix::fs::symlink("moved", &from).unwrap();
        PromptAnswer::Allow(Person::present(), Some(0))
    });
    let done = place.plan(vec![act], PLAN);
    // Nobody answers the second card.
    assert_eq!(used(&done), [] as [u64; 0]);
    assert_eq!(done.exit, Exit::ApprovalNeeded);
    assert!(!place.file("moved/a.md").exists());
    done.replays();
}

/// F1, F2: leave for a step that changes a file is for the lines that were shown.
#[test]
fn other_lines_than_those_shown_are_asked_again() {
    let place = Place::with(POLICY);
    fs::create_dir_all(place.file("docs")).unwrap();
    fs::write(place.file("docs/a.md"), "first\n").unwrap();
    let file = place.file("docs/a.md");
    let act: Act = Box::new(move |card| {
        assert!(card.diff.as_ref().is_some_and(|own| own.contains("-first")), "{:?}", card.diff);
        fs::write(&file, "other\n").unwrap();
        PromptAnswer::Allow(Person::present(), Some(0))
    });
    let done = place.plan(vec![act, yes(), yes()], PLAN);
    assert_eq!((done.exit, used(&done)), (Exit::Ok, vec![2]));
    assert_eq!(done.cards[1].step.as_deref(), Some("one"));
    assert!(done.cards[1].diff.as_ref().is_some_and(|own| own.contains("-other")));
    done.replays();
}

/// A step that is tried again has as many uses as tries; another plan run has none of them.
#[test]
fn leave_ends_with_the_plan() {
    let place = Place::with(POLICY);
    let first = place.plan(vec![all()], PLAN);
    assert_eq!(first.exit, Exit::ApprovalNeeded, "the third step has nobody to ask");
    let second = place.plan(vec![said(PromptAnswer::Withdrawn)], PLAN);
    assert_eq!((second.exit, used(&second).len()), (Exit::ApprovalNeeded, 0));
    let tried =
        PLAN.replace("content: a } }", "content: a }, on_error: { retry: 2, backoff: 1ms } }");
    let third = place.plan(vec![said(PromptAnswer::Stop(Person::present(), None))], &tried);
    assert_eq!(third.cards[0].offers[0].uses, 4);
}

/// The leave is a grant for the task: where the policy offers none, or fewer uses, each step is asked.
#[test]
fn a_policy_bounds_the_leave_for_a_plan() {
    for grants in ["{ offer: [once] }", "{ expire: { uses: 1 } }"] {
        let place = Place::with(&format!("{POLICY}grants: {grants}\n"));
        let done = place.plan(vec![yes(), yes(), yes()], PLAN);
        assert_eq!((done.exit, done.left), (Exit::Ok, 0), "{grants}");
        assert!(done.cards.iter().all(|own| own.steps == 0), "{grants}");
        done.replays();
    }
}

/// How often a step is tried stands on the card.
#[test]
fn tries_are_shown() {
    let place = Place::with(POLICY);
    let tried =
        PLAN.replace("content: a } }", "content: a }, on_error: { retry: 2, backoff: 1ms } }");
    let done = place.plan(vec![said(PromptAnswer::Stop(Person::present(), None))], &tried);
    let texts: Vec<&str> = done.cards[0].exact.iter().map(|own| own.text.as_str()).collect();
    assert!(texts.iter().any(|own| own.ends_with("tried up to 3 times")), "{texts:?}");
}
