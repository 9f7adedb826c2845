//! `policy explain`: what a policy decides on a call, why, and what was asked on the way.

use std::path::Path;
use std::sync::Arc;

use capsule_core::action::{Action, Facts};
use capsule_core::code::Code;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{DecisionTrace, Policy, PolicyInput};
use capsule_report::{CallStory, Story, kept, trace_lines};
use capsule_runtime::{Law, Texts, explain, explain_call, trace_case};
use capsule_store::Store;
use serde::Serialize;
use serde_json::Value;

use crate::args::{Explain, PolicyArg};
use crate::command::policy::asking_hands;
use crate::command::policy::batch::{BatchCall, each_call};
use crate::command::policy::past::usage_before;
use crate::command::{call_args, no_such_call, open_store, run_and_step, story};
use crate::failure::{Failure, usage};
use crate::screen::{BAD, CARE, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

/// `policy explain`.
pub(crate) fn run(args: &Explain, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    if let Some(logged) = &args.logged {
        // Without a policy it is the run's own, and so is its profile.
        let policy = Some(&args.policy).filter(|own| own.policy.is_some());
        if policy.is_none() && args.policy.profile.is_some() {
            return Err(usage("name the policy whose profile it is with `--policy`"));
        }
        return explain_logged(logged, policy, around, screen);
    }
    let law = around.law(&args.policy, None)?;
    if let Some(batch) = &args.batch {
        return explain_batch(batch, &law, around, screen);
    }
    let tool = args.tool.as_str();
    let call = call_args(tool, args.args.as_deref(), &args.words)?;
    let (decision, trace) = explain_call(&law.policy, &mut asking_hands(&law, around), tool, call);
    show(&Explained { decision, trace, policy: Some(law.policy) }, screen)?;
    Ok(0)
}

/// A decision, and how it came about as far as it was made again.
struct Explained {
    decision: Decision,
    trace: Option<DecisionTrace>,
    policy: Option<Arc<Policy>>,
}

fn show(explained: &Explained, screen: &Screen) -> Result<(), Failure> {
    let Explained { decision, trace, policy } = explained;
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
        let lift = match (decision.approvable, decision.code) {
            (true, _) => "an approval could allow it",
            (false, Code::Never) => "nothing lifts it",
            (false, _) => "no approval lifts it, only a change of the rule",
        };
        sheet.line("lift", lift)?;
    }
    let (Some(trace), Some(policy)) = (trace, policy) else {
        return screen.say("no check was asked: what the call means is not known");
    };
    screen.say("checks, in this order; the strictest decides")?;
    screen.say_all(&trace_lines(policy, decision, trace, screen.layout()))
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

    /// A value behind a name that takes up so many columns; it goes on below itself. Lines of its
    /// own, which show the place in a text that it is about, stay as they are.
    fn put(&mut self, name: &str, columns: usize, value: &str) -> Result<(), Failure> {
        let (value, place) = value.split_once('\n').unwrap_or((value, ""));
        let value = escape::line(value);
        let lines = capsule_report::wrap(&value, self.width.saturating_sub(columns));
        let place = place.lines().map(|line| escape::line(line).into_owned());
        for (index, line) in lines.into_iter().chain(place).enumerate() {
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
    let mut hands = asking_hands(law, around);
    let mut exit = Exit::Ok;
    each_call(path, |line| match line {
        Ok(BatchCall { id, tool, args }) => {
            let decision = explain(&law.policy, &mut hands, &tool, args);
            screen.say_json_line(&Answer { id, decision })
        }
        // One line out for every line in, so that the two can be laid side by side.
        Err(error) => {
            exit = Exit::BadUsage;
            screen.complain(&format!("{BAD}error{BAD:#}: {}", escape::line(&error)));
            screen.say_json_line(&Unanswered { id: Value::Null, error })
        }
    })?;
    Ok(exit.status())
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

/// A logged call: decided again from what was recorded, by the recorded policy or by another one.
fn explain_logged(
    logged: &str,
    policy: Option<&PolicyArg>,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (run, step) = run_and_step(logged);
    let step = step.ok_or_else(|| usage("name a call as RUN:STEP, such as `latest:1`"))?;
    let store = open_store(around, screen)?;
    let id = store.find(run)?;
    let story = story(&store, &id)?;
    let call = story.named(step).ok_or_else(|| no_such_call(run, step))?;
    let explained = match (&call.action, &call.facts) {
        // Where masks stand in the record, its own policy cannot be asked again: what it said of
        // the secret is there.
        (Some(_), Some(_)) if policy.is_none() && call.masked => as_recorded(call),
        (Some(action), Some(facts)) => {
            Some(again(&store, (&id, &story), call, (action, facts), policy, around)?)
        }
        // It was not understood, so there is nothing to decide again.
        _ => as_recorded(call),
    };
    let explained = explained.ok_or_else(|| {
        CodedError::new(Code::ReplayIncomplete, "the call's decision was not kept")
    })?;
    show(&explained, screen)?;
    Ok(0)
}

fn as_recorded(call: &CallStory) -> Option<Explained> {
    call.decision.clone().map(|decision| Explained { decision, trace: None, policy: None })
}

fn again(
    store: &Store,
    (id, story): (&str, &Story),
    call: &CallStory,
    (action, facts): (&Action, &Facts),
    policy: Option<&PolicyArg>,
    around: &Surroundings,
) -> Result<Explained, Failure> {
    let policy = match policy {
        Some(policy) => around.law(policy, None)?.policy,
        None => recorded_policy(store, id, story)?,
    };
    let usage = usage_before(story, call);
    let (tool, tainted, made) = (&call.tool, call.tainted.as_slice(), Some(call.args_mac));
    let case = PolicyInput { tool, action, facts, usage: &usage, tainted, args_digest: made };
    let (decision, trace) = trace_case(&policy, &case);
    Ok(Explained { decision, trace: Some(trace), policy: Some(policy) })
}

fn recorded_policy(store: &Store, id: &str, story: &Story) -> Result<Arc<Policy>, Failure> {
    let missing = || CodedError::new(Code::ReplayIncomplete, "the run's policy was not kept");
    let opened = &story.header.as_ref().ok_or_else(missing)?.opened;
    let first = store.event(id, 1)?.ok_or_else(missing)?;
    let payloads = store.payloads(first.leaf, &first.entry.event)?;
    let texts = Texts::of(opened, kept(&payloads)).ok_or_else(missing)?;
    Law::recorded(&texts, opened).map_err(|problems| Failure::Texts(texts.own, problems))
}
