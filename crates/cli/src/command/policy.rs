//! `capsule policy`: check and explain.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use capsule_core::action::{Action, Facts};
use capsule_core::code::Code;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::diagnostic::Severity;
use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_core::limits;
use capsule_core::outcome::Problem;
use capsule_core::policy::Usage;
use capsule_report::{CallStory, Story, kept};
use capsule_runtime::{
    Cancel, Commands, Hush, Law, Live, Machine, Text, check_examples, explain as decide,
    explain_recorded, lint,
};
use capsule_store::Store;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Explain, PolicyArg};
use crate::command::{call_args, open_store, run_and_step, story};
use crate::diagnostic;
use crate::failure::{Failure, usage};
use crate::screen::{BAD, CARE, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

/// Hands that look and never act: what a call would be judged by.
pub(super) fn judging_hands(law: &Law, around: &Surroundings) -> Live {
    let machine = Machine::new(&law.policy, &around.store, Box::new(Surroundings::variable));
    Live::new(
        Rc::clone(&law.workspace),
        &law.policy,
        Commands::off(),
        Rc::new(machine),
        Cancel::default(),
        Rc::new(Hush),
    )
}

/// `policy check`.
pub(crate) fn check(
    args: &PolicyArg,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let law = match around.law(&args.policy, None) {
        Err(Failure::Texts(text, problems)) if screen.json => {
            screen.say_json(&json!({
                "ok": false,
                "problems": diagnostic::to_json(&text, &problems),
            }))?;
            return Ok(2);
        }
        other => other?,
    };
    let mut problems = check_examples(&law.policy);
    problems.extend(law.warnings.iter().cloned());
    problems.extend(lint(&law.policy));
    problems.sort_by_key(|problem| problem.span.start);
    let wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
    if screen.json {
        screen.say_json(&json!({
            "ok": !wrong,
            "problems": diagnostic::to_json(&law.text, &problems),
        }))?;
    } else {
        if !problems.is_empty() {
            screen.complain(&diagnostic::render(&law.text, &problems, screen));
        }
        let examples: usize = law.policy.tools.values().map(|rule| rule.examples.len()).sum();
        let notes = problems.len();
        let (style, word) = if wrong { (BAD, "✖ wrong") } else { (GOOD, "✔ ok") };
        screen.say(&format!(
            "{style}{word}{style:#} {} · {} tools · {examples} examples · {notes} notes",
            escape::line(&law.policy.name),
            law.policy.tools.len()
        ))?;
    }
    Ok(if wrong { 2 } else { 0 })
}

/// `policy explain`.
pub(crate) fn explain(
    args: &Explain,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    if let Some(logged) = &args.logged {
        return explain_logged(logged, args.policy.as_deref(), around, screen);
    }
    let policy = args.policy.as_deref().unwrap_or_default();
    let law = around.law(policy, None)?;
    if let Some(batch) = &args.batch {
        return explain_batch(batch, &law, around, screen);
    }
    let tool = args.tool.as_str();
    let call = call_args(tool, args.args.as_deref(), &args.words)?;
    let decision = decide(&law.policy, &mut judging_hands(&law, around), tool, call);
    show(&decision, screen)?;
    Ok(0)
}

fn show(decision: &Decision, screen: &Screen) -> Result<(), Failure> {
    if screen.json {
        return screen.say_json_line(decision);
    }
    let style = match decision.verdict {
        Verdict::Allow => GOOD,
        Verdict::Ask | Verdict::AskEach => CARE,
        Verdict::Deny => BAD,
    };
    let word = decision.verdict.to_string();
    let mut sheet = Sheet { screen, width: screen.layout().width };
    sheet.put(&format!("{style}{word}{style:#}  "), word.len() + 2, &decision.reason)?;
    let rule = decision.rule.as_deref().unwrap_or("(no rule matches)");
    let at = decision.at.as_deref().unwrap_or("");
    sheet.line("rule", format!("{rule} {at}").trim_end())?;
    sheet.line("code", decision.code.slug())?;
    sheet.line("risk", decision.risk.name())?;
    let needs: Vec<&str> =
        decision.capabilities.iter().map(capsule_core::capability::Capability::name).collect();
    sheet.line("needs", &needs.join(" "))?;
    if let Some(suggestion) = &decision.suggestion {
        sheet.put(&format!("  {HINT}instead{HINT:#} "), NAMES, suggestion)?;
    }
    if decision.verdict != Verdict::Allow {
        let lift = match (decision.liftable, decision.code) {
            (true, _) => "an approval could allow it",
            (false, Code::Never) => "nothing lifts it",
            (false, _) => "no approval lifts it, only a change of the rule",
        };
        sheet.line("lift", lift)?;
    }
    Ok(())
}

/// How wide the names in front of the parts of a decision are.
const NAMES: usize = 10;

/// The parts of a decision, as wide as the screen.
struct Sheet<'s> {
    screen: &'s Screen,
    width: usize,
}

impl Sheet<'_> {
    fn line(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        self.put(&format!("  {name:<8}"), NAMES, value)
    }

    /// A value behind a name that takes up so many columns; it goes on below itself.
    fn put(&mut self, name: &str, columns: usize, value: &str) -> Result<(), Failure> {
        let value = escape::line(value);
        let lines = capsule_report::wrap(&value, self.width.saturating_sub(columns));
        for (index, line) in lines.iter().enumerate() {
            let line = match index {
                0 => format!("{name}{line}"),
                _ => format!("{:columns$}{line}", ""),
            };
            self.screen.say(line.trim_end())?;
        }
        Ok(())
    }
}

/// One `{"id", "tool", "args"}` a line; one decision a line, in the same order.
fn explain_batch(
    path: &Path,
    law: &Law,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let mut hands = judging_hands(law, around);
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(
            std::fs::File::open(path)
                .map_err(|error| usage(format!("`{}` cannot be read: {error}", path.display())))?,
        )
    };
    let mut lines = BufReader::new(input);
    let mut line = Vec::new();
    let most = u64::try_from(limits::ARGUMENT_BYTES).unwrap_or(u64::MAX);
    let (mut number, mut exit) = (0_u64, Exit::Ok);
    let unread =
        |error: std::io::Error| usage(format!("`{}` cannot be read: {error}", path.display()));
    loop {
        line.clear();
        number += 1;
        let read = lines.by_ref().take(most).read_until(b'\n', &mut line).map_err(unread)?;
        if read == 0 {
            return Ok(exit.status());
        }
        // A line that is too long is one line, and is read to its end.
        if !line.ends_with(b"\n") && u64::try_from(read) == Ok(most) {
            let rest = lines.skip_until(b'\n').map_err(unread)?;
            line.truncate(if rest > 0 { 0 } else { read });
        } else if line.trim_ascii().is_empty() {
            continue;
        }
        match call_of(&line) {
            Ok((id, tool, args)) => {
                let decision = decide(&law.policy, &mut hands, &tool, args);
                screen.say_json_line(&Answer { id, decision })?;
            }
            // One line out for every line in, so that the two can be laid side by side.
            Err(message) => {
                exit = Exit::BadUsage;
                let error = format!("line {number}: {message}");
                screen.complain(&format!("{BAD}error{BAD:#}: {}", escape::line(&error)));
                screen.say_json_line(&Unanswered { id: Value::Null, error })?;
            }
        }
    }
}

/// A line of a batch that is no call.
#[derive(Serialize)]
struct Unanswered {
    id: Value,
    error: String,
}

/// A decision of a batch.
#[derive(Serialize)]
struct Answer {
    id: Value,
    #[serde(flatten)]
    decision: Decision,
}

fn call_of(line: &[u8]) -> Result<(Value, String, Value), String> {
    if line.is_empty() {
        return Err(format!("it is longer than {} bytes", limits::ARGUMENT_BYTES));
    }
    let value = capsule_core::json::parse(line).map_err(|error| error.message)?;
    let tool = value.get("tool").and_then(Value::as_str).ok_or("it names no `tool`")?;
    let args = value.get("args").cloned().unwrap_or_else(|| json!({}));
    Ok((value.get("id").cloned().unwrap_or(Value::Null), tool.to_owned(), args))
}

/// A logged call: decided again from what was recorded, by the recorded policy or by another one.
fn explain_logged(
    logged: &str,
    policy: Option<&str>,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (run, step) = run_and_step(logged);
    let step = step.ok_or_else(|| usage("name a call as RUN:STEP, such as `latest:1`"))?;
    let store = open_store(around)?;
    let id = store.find(run)?;
    let story = story(&store, &id)?;
    let call = story
        .named(step)
        .ok_or_else(|| Problem::new(Code::RunUnknown, format!("`{run}` has no call `{step}`")))?;
    let decision = match (&call.action, &call.facts) {
        // Where masks stand in the record, its own policy cannot be asked again: what it said of
        // the secret is there.
        (Some(_), Some(_)) if policy.is_none() && call.masked => call.decision.clone(),
        (Some(action), Some(facts)) => {
            Some(again(&store, (&id, &story), call, (action, facts), policy, around)?)
        }
        // It was not understood, so there is nothing to decide again.
        _ => call.decision.clone(),
    };
    let decision = decision
        .ok_or_else(|| Problem::new(Code::ReplayIncomplete, "the call's decision was not kept"))?;
    show(&decision, screen)?;
    Ok(0)
}

fn again(
    store: &Store,
    (id, story): (&str, &Story),
    call: &CallStory,
    (action, facts): (&Action, &Facts),
    policy: Option<&str>,
    around: &Surroundings,
) -> Result<Decision, Failure> {
    let policy = match policy {
        Some(policy) => around.law(policy, None)?.policy,
        None => recorded_policy(store, id, story)?,
    };
    let usage = usage_before(story, call);
    Ok(explain_recorded(&policy, &call.tool, action, facts, &usage))
}

fn recorded_policy(
    store: &Store,
    id: &str,
    story: &Story,
) -> Result<std::sync::Arc<capsule_core::policy::Policy>, Failure> {
    let missing = || Problem::new(Code::ReplayIncomplete, "the run's policy was not kept");
    let opened = &story.header.as_ref().ok_or_else(missing)?.opened;
    let first = store.event(id, 1)?.ok_or_else(missing)?;
    let payloads = store.payloads(first.leaf, &first.entry.event)?;
    let bytes = kept(&payloads)(&opened.policy.text);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(missing)?;
    let text = Text { name: capsule_runtime::shown_name(&opened.policy.path), text };
    Law::recorded(&text, opened).map_err(|problems| Failure::Texts(text, problems))
}

/// What the run had used before a call, as the record has it.
fn usage_before(story: &Story, call: &CallStory) -> Usage {
    let mut usage = Usage::default();
    let before = story.calls.iter().take_while(|other| other.call != call.call);
    for other in before {
        let (Some(action), Some(output), Some(_)) = (&other.action, &other.output, &other.started)
        else {
            continue;
        };
        let micros = other.micros().unwrap_or(0);
        capsule_runtime::count(&mut usage, &other.tool, action, output, micros);
    }
    usage
}
