//! `capsule approvals`: questions that nobody was there to answer, from any terminal.

use capsule_core::approval::GrantLifetime;
use capsule_core::escape;
use capsule_report::{age, card_lines};
use capsule_runtime::{Pending, PendingState, Say, this_moment};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::{AnswerArgs, Approvals, ApprovalsList, OneQuestion, ScopeArg};
use crate::command::{open_store, run_and_step};
use crate::failure::{Failure, usage};
use crate::screen::{CARE, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(of: &Approvals, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    match of {
        Approvals::List(args) => list(args, around, screen),
        Approvals::Show(args) => show(args, around, screen),
        Approvals::Answer(args) => answer(args, around, screen),
    }
}

/// The question that a person means.
fn pending(store: &Store, asked: &str) -> Result<(String, Pending), Failure> {
    let (run, call) = run_and_step(asked);
    let id = Pending::meant(store, store.find(run)?)?;
    let own = Pending::read(store, &id)?.filter(|own| {
        let step = own.step.as_deref();
        call.is_none_or(|call| call == own.call.to_string() || Some(call) == step)
    });
    match own {
        Some(own) => Ok((id, own)),
        None => Err(capsule_runtime::not_waiting(asked).into()),
    }
}

fn list(args: &ApprovalsList, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    // A store that is not there yet holds no questions.
    let all = match !around.store_named && !around.store.exists() {
        true => Vec::new(),
        false => Pending::all(&open_store(around, screen)?)?,
    };
    let now = this_moment();
    let open = |own: &&Pending| {
        args.all || matches!(own.standing(now), PendingState::Waiting | PendingState::Answered)
    };
    let shown: Vec<&Pending> = all.iter().filter(open).collect();
    if screen.json {
        let shown: Vec<Value> = shown.iter().map(|own| as_json(own, now)).collect();
        screen.say_json(&json!({ "schema": 1, "approvals": shown }))?;
        return Ok(0);
    }
    if shown.is_empty() {
        screen.say("nothing waits for an answer")?;
    }
    for own in &shown {
        let standing = match own.standing(now) {
            PendingState::Waiting => String::new(),
            other => format!(" · {}", other.word()),
        };
        let says = escape::line(&own.card.consequence).into_owned();
        let ago = age(now.saturating_sub(own.asked_at));
        let risk = own.card.risk;
        screen.say(&format!("{}  {ago:>6}  {risk:<6}  {says}{standing}", own.name()))?;
    }
    if let Some(first) = shown.iter().find(|own| own.standing(now) == PendingState::Waiting) {
        screen.complain(&format!("{HINT}next{HINT:#}: capsule approvals show {}", first.name()));
    }
    Ok(0)
}

fn as_json(own: &Pending, now: u64) -> Value {
    json!({
        "id": own.name(),
        "run": own.run,
        "call": own.call,
        "step": own.step,
        "standing": own.standing(now).word(),
        "asked_at": own.asked_at,
        "until": own.until,
        "risk": own.card.risk,
        "says": own.card.consequence,
        "resumed_as": own.resumed,
        "answer": own.answer.as_ref().map(|answer| json!({
            "run": answer.run,
            "at": answer.at,
            "outcome": answer.given.outcome,
            "scope": answer.given.scope,
            "stops": answer.given.stops,
            "why": answer.why,
        })),
    })
}

fn show(args: &OneQuestion, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around, screen)?;
    let (_, own) = pending(&store, &args.id)?;
    let now = this_moment();
    if screen.json {
        let mut all = as_json(&own, now);
        if let Value::Object(map) = &mut all {
            map.insert("schema".into(), 1.into());
            map.insert("card".into(), json!(own.card));
            map.insert("sha256".into(), json!(own.card.digest()));
        }
        screen.say_json(&all)?;
        return Ok(0);
    }
    let standing = own.standing(now);
    let ago = age(now.saturating_sub(own.asked_at));
    screen.say(&format!("{} · {} · asked {ago} ago", own.name(), standing.word()))?;
    screen.say_all(&card_lines(&own.card, screen.layout()))?;
    let name = own.name();
    match standing {
        PendingState::Waiting => screen.complain(&format!(
            "{HINT}next{HINT:#}: capsule approvals answer {name} (--allow once | --deny -m WHY | --stop)"
        )),
        PendingState::Answered => {
            screen.complain(&format!("{HINT}next{HINT:#}: capsule resume {}", own.label));
        }
        PendingState::Expired => screen.complain(&format!("{CARE}it has waited too long{CARE:#}")),
        PendingState::Resumed => {
            let label = own.resumed.unwrap_or_default();
            screen.complain(&format!("its run went on as {label}"));
        }
    }
    Ok(0)
}

fn answer(args: &AnswerArgs, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around, screen)?;
    let (id, own) = pending(&store, &args.question.id)?;
    drop(store);
    let why = args.message.clone();
    let say = match (args.allow, args.deny, args.stop) {
        (Some(scope), _, _) => Say::Allow(match scope {
            ScopeArg::Once => GrantLifetime::Once,
            ScopeArg::Task => GrantLifetime::Task,
            ScopeArg::Session => GrantLifetime::Session,
        }),
        (None, true, _) => Say::Deny(why),
        (None, false, true) => Say::Stop(why),
        (None, false, false) => return Err(usage("say `--allow once`, `--deny` or `--stop`")),
    };
    let label = Pending::answer(Store::open(&around.store)?, &id, &say, this_moment())?;
    let word = match &say {
        Say::Allow(scope) => format!("allowed ({})", scope.keyword()),
        Say::Deny(_) => "denied".into(),
        Say::Stop(_) => "denied, and the run ends with it".into(),
    };
    if screen.json {
        let said = json!({ "schema": 1, "run": label, "subject": own.run, "id": own.name() });
        screen.say_json(&said)?;
        return Ok(0);
    }
    screen.say(&format!("{GOOD}✔{GOOD:#} {} is {word} · recorded as {label}", own.name()))?;
    screen.complain(&format!("{HINT}next{HINT:#}: capsule resume {}", own.label));
    Ok(0)
}
