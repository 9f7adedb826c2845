//! `capsule approvals`: questions that nobody was there to answer, from any terminal.

use capsule_base::escape;
use capsule_core::approval::GrantLifetime;
use capsule_report::{age_text, card_lines};
use capsule_runtime::{PendingQuestion, QuestionAnswer, QuestionState, now_micros};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::{AnswerArgs, ApprovalsCommand, ApprovalsListArgs, QuestionArg, ScopeArg};
use crate::command::{open_store, run_and_step};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{HINT, SUCCESS, Screen, WARNING};

pub(crate) fn run(of: &ApprovalsCommand, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    match of {
        ApprovalsCommand::List(args) => list(args, ctx, screen),
        ApprovalsCommand::Show(args) => show(args, ctx, screen),
        ApprovalsCommand::Answer(args) => answer(args, ctx, screen),
    }
}

/// The question that a person means.
fn find_question(store: &Store, asked: &str) -> Result<(String, PendingQuestion), Failure> {
    let (run, call) = run_and_step(asked);
    let id = PendingQuestion::resolve_run(store, store.find(run)?)?;
    let mut questions = PendingQuestion::of_run(store, &id)?;
    questions.retain(|question| {
        let step = question.step.as_deref();
        call.is_none_or(|call| {
            Some(call) == step || call.parse().is_ok_and(|call| question.is_of_call(call))
        })
    });
    // Where a session has several, the one that waits is meant.
    let now = now_micros();
    let waiting = questions.iter().position(|one| one.state(now) == QuestionState::Waiting);
    let question = match waiting {
        Some(place) => Some(questions.swap_remove(place)),
        None => questions.pop(),
    };
    match question {
        Some(question) => Ok((id, question)),
        None => Err(capsule_runtime::not_waiting(asked).into()),
    }
}

fn list(args: &ApprovalsListArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    // A store that is not there yet holds no questions.
    let all = match !ctx.store_is_explicit && !ctx.store.exists() {
        true => Vec::new(),
        false => PendingQuestion::all(&open_store(ctx, screen)?)?,
    };
    let now = now_micros();
    let open = |question: &&PendingQuestion| args.all || question.is_open(now);
    let shown: Vec<&PendingQuestion> = all.iter().filter(open).collect();
    if screen.json {
        let shown: Vec<Value> = shown.iter().map(|question| question_json(question, now)).collect();
        screen.print_json(&json!({ "schema": 1, "approvals": shown }))?;
        return Ok(0);
    }
    if shown.is_empty() {
        screen.print_line("nothing waits for an answer")?;
    }
    for question in &shown {
        let standing = match question.state(now) {
            QuestionState::Waiting => String::new(),
            other => format!(" · {}", other.as_str()),
        };
        let says = escape::line(&question.card.headline).into_owned();
        let ago = age_text(now.saturating_sub(question.asked_at));
        let risk = question.card.risk;
        screen
            .print_line(&format!("{}  {ago:>6}  {risk:<6}  {says}{standing}", question.name()))?;
    }
    if let Some(first) = shown.iter().find(|question| question.state(now) == QuestionState::Waiting)
    {
        screen.eprint(&format!("{HINT}next{HINT:#}: capsule approvals show {}", first.name()));
    }
    Ok(0)
}

fn question_json(question: &PendingQuestion, now: u64) -> Value {
    json!({
        "id": question.name(),
        "run": question.run,
        "call": question.call,
        "step": question.step,
        "standing": question.state(now).as_str(),
        "asked_at": question.asked_at,
        "until": question.expires_at,
        "risk": question.card.risk,
        "says": question.card.headline,
        "resumed_as": question.resumed_by,
        "answer": question.answer.as_ref().map(|answer| json!({
            "run": answer.run,
            "at": answer.at,
            "outcome": answer.given.outcome,
            "scope": answer.given.scope,
            "stops": answer.given.stops,
            "why": answer.why,
        })),
    })
}

fn show(args: &QuestionArg, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(ctx, screen)?;
    let (_, question) = find_question(&store, &args.id)?;
    let now = now_micros();
    if screen.json {
        let mut all = question_json(&question, now);
        if let Value::Object(map) = &mut all {
            map.insert("schema".into(), 1.into());
            map.insert("card".into(), json!(question.card));
            map.insert("sha256".into(), json!(question.card.digest()));
        }
        screen.print_json(&all)?;
        return Ok(0);
    }
    let standing = question.state(now);
    let ago = age_text(now.saturating_sub(question.asked_at));
    screen.print_line(&format!("{} · {} · asked {ago} ago", question.name(), standing.as_str()))?;
    screen.print_lines(&card_lines(&question.card, screen.layout()))?;
    let name = question.name();
    match standing {
        QuestionState::Waiting => screen.eprint(&format!(
            "{HINT}next{HINT:#}: capsule approvals answer {name} (--allow once | --deny -m WHY | --stop)"
        )),
        QuestionState::Answered => {
            screen.eprint(&format!("{HINT}next{HINT:#}: {}", question.next_step()));
        }
        QuestionState::Expired => screen.eprint(&format!("{WARNING}it has waited too long{WARNING:#}")),
        QuestionState::Resumed => {
            let label = question.resumed_by.unwrap_or_default();
            screen.eprint(&format!("it went on as {label}"));
        }
    }
    Ok(0)
}

fn answer(args: &AnswerArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(ctx, screen)?;
    let (id, question) = find_question(&store, &args.question.id)?;
    drop(store);
    let why = args.message.clone();
    let say = match (args.allow, args.deny, args.stop) {
        (Some(scope), _, _) => QuestionAnswer::Allow(match scope {
            ScopeArg::Once => GrantLifetime::Once,
            ScopeArg::Task => GrantLifetime::Task,
            ScopeArg::Session => GrantLifetime::Session,
        }),
        (None, true, _) => QuestionAnswer::Deny(why),
        (None, false, true) => QuestionAnswer::Stop(why),
        (None, false, false) => {
            return Err(usage_failure("say `--allow once`, `--deny` or `--stop`"));
        }
    };
    let label = PendingQuestion::answer(
        Store::open(&ctx.store)?,
        (&id, question.call),
        &say,
        now_micros(),
    )?;
    let word = match &say {
        QuestionAnswer::Allow(scope) => format!("allowed ({})", scope.keyword()),
        QuestionAnswer::Deny(_) => "denied".into(),
        QuestionAnswer::Stop(_) => "denied, and the run ends with it".into(),
    };
    if screen.json {
        let said =
            json!({ "schema": 1, "run": label, "subject": question.run, "id": question.name() });
        screen.print_json(&said)?;
        return Ok(0);
    }
    screen.print_line(&format!(
        "{SUCCESS}✔{SUCCESS:#} {} is {word} · recorded as {label}",
        question.name()
    ))?;
    screen.eprint(&format!("{HINT}next{HINT:#}: {}", question.next_step()));
    Ok(0)
}
