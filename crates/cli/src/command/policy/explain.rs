//! `policy explain`: what a policy decides on a call, why, and what was asked on the way.

use std::path::Path;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_core::action::{Action, Facts};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::outcome::CodedError;
use capsule_core::policy::{DecisionTrace, Judgement, Policy, PolicyInput, decide};
use capsule_report::{CallView, RunView, payload_lookup, trace_lines};
use capsule_runtime::{BoundPolicy, PolicyTexts, explain, explain_call};
use capsule_store::Store;
use serde::Serialize;
use serde_json::Value;

use crate::args::{ExplainArgs, PolicyArg};
use crate::command::policy::batch::{BatchCall, each_call};
use crate::command::policy::probing_backend;
use crate::command::policy::recorded_calls::usage_before;
use crate::command::{no_such_call, open_store, parse_call_args, read_run, run_and_step};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{ERROR, HINT, SUCCESS, Screen, WARNING};

/// `policy explain`.
pub(crate) fn run(args: &ExplainArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    if let Some(logged) = &args.logged {
        // Without a policy it is the run's own, and so is its profile.
        let policy = Some(&args.policy).filter(|arg| arg.policy.is_some());
        if policy.is_none() && args.policy.profile.is_some() {
            return Err(usage_failure("name the policy whose profile it is with `--policy`"));
        }
        return explain_logged(logged, policy, ctx, screen);
    }
    let bound = ctx.load_policy(&args.policy, None)?;
    if let Some(batch) = &args.batch {
        return explain_batch(batch, &bound, ctx, screen);
    }
    let tool = args.tool.as_str();
    if tool == "shell.run" && args.args.is_none() && args.words.is_empty() {
        return Err(usage_failure("name a call, such as `-- git status`"));
    }
    let call = parse_call_args(tool, args.args.as_deref(), &args.words)?;
    let (decision, trace) =
        explain_call(&bound.policy, &mut probing_backend(&bound, ctx), tool, call);
    show(&Explained { decision, trace, policy: Some(bound.policy) }, screen)?;
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
        return screen.print_json_line(decision);
    }
    let style = match decision.verdict {
        Verdict::Allow => SUCCESS,
        Verdict::Ask | Verdict::AskEach => WARNING,
        Verdict::Deny => ERROR,
    };
    let word = decision.verdict.to_string();
    let mut sheet = ExplanationPrinter { screen, width: screen.layout().width };
    sheet.print_labelled(&format!("{style}{word}{style:#}  "), word.len() + 2, &decision.reason)?;
    let rule = decision.rule.as_deref().unwrap_or("(no rule matches)");
    let at = decision.at.as_deref().unwrap_or("");
    sheet.print_line("rule", format!("{rule} {at}").trim_end())?;
    sheet.print_line("code", decision.code.slug())?;
    sheet.print_line("risk", decision.risk.name())?;
    let needs: Vec<&str> =
        decision.capabilities.iter().map(capsule_core::capability::Capability::name).collect();
    sheet.print_line("needs", &needs.join(" "))?;
    if let Some(suggestion) = &decision.suggestion {
        sheet.print_labelled(&format!("  {HINT}instead{HINT:#} "), LABEL_COLUMNS, suggestion)?;
    }
    if decision.verdict != Verdict::Allow {
        let allowed = match (decision.approvable, decision.code) {
            (true, _) => "if the user approves",
            (false, Code::Never) => "never: no approval, grant or profile can",
            (false, _) => "only by a change of the rule",
        };
        sheet.print_line("allowed", allowed)?;
    }
    let (Some(trace), Some(policy)) = (trace, policy) else {
        return screen.print_line("no check was asked: what the call means is not known");
    };
    screen.print_line("checks, in this order; the strictest decides")?;
    screen.print_lines(&trace_lines(policy, decision, trace, screen.layout()))
}

/// How wide the names in front of the parts of a decision are.
const LABEL_COLUMNS: usize = 10;

/// The parts of a decision, as wide as the screen.
struct ExplanationPrinter<'s> {
    screen: &'s Screen,
    width: usize,
}

impl ExplanationPrinter<'_> {
    fn print_line(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        self.print_labelled(&format!("  {name:<8}"), LABEL_COLUMNS, value)
    }

    /// A value behind a name that takes up so many columns; it goes on below itself. Lines of its
    /// own, which show the place in a text that it is about, stay as they are.
    fn print_labelled(&mut self, name: &str, columns: usize, value: &str) -> Result<(), Failure> {
        let (value, place) = value.split_once('\n').unwrap_or((value, ""));
        let value = escape::line(value);
        let lines = capsule_report::wrap(&value, self.width.saturating_sub(columns));
        let place = place.lines().map(|line| escape::line(line).into_owned());
        for (index, line) in lines.into_iter().chain(place).enumerate() {
            let line = match index {
                0 => format!("{name}{line}"),
                _ => format!("{:columns$}{line}", ""),
            };
            self.screen.print_line(line.trim_end())?;
        }
        Ok(())
    }
}

/// One `{"id", "tool", "args"}` a line; one decision a line, in the same order.
fn explain_batch(
    path: &Path,
    bound: &BoundPolicy,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let mut backend = probing_backend(bound, ctx);
    let mut exit = Exit::Ok;
    each_call(path, |line| match line {
        Ok(BatchCall { id, tool, args }) => {
            let decision = explain(&bound.policy, &mut backend, &tool, args);
            screen.print_json_line(&BatchDecision { id, decision })
        }
        // One line out for every line in, so that the two can be laid side by side.
        Err(error) => {
            exit = Exit::BadUsage;
            screen.eprint(&format!("{ERROR}error{ERROR:#}: {}", escape::line(&error)));
            screen.print_json_line(&InvalidBatchLine { id: Value::Null, error })
        }
    })?;
    Ok(exit.status())
}

/// A line of a batch that is no call.
#[derive(Serialize)]
struct InvalidBatchLine {
    id: Value,
    error: String,
}

/// A decision of a batch.
#[derive(Serialize)]
struct BatchDecision {
    id: Value,
    #[serde(flatten)]
    decision: Decision,
}

/// A logged call: decided again from what was recorded, by the recorded policy or by another one.
fn explain_logged(
    logged: &str,
    policy: Option<&PolicyArg>,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (run, step) = run_and_step(logged);
    let step = step.ok_or_else(|| usage_failure("name a call as RUN:STEP, such as `latest:1`"))?;
    let store = open_store(ctx, screen)?;
    let id = store.find(run)?;
    let view = read_run(&store, &id)?;
    let call = view.find_call(step).ok_or_else(|| no_such_call(run, step))?;
    let explained = match (&call.action, &call.facts) {
        // Where masks stand in the record, its own policy cannot be asked again: what it said of
        // the secret is there.
        (Some(_), Some(_)) if policy.is_none() && call.masked => recorded_explanation(call),
        (Some(action), Some(facts)) => {
            Some(explain_again(&store, (&id, &view), call, (action, facts), policy, ctx)?)
        }
        // It was not understood, so there is nothing to decide again.
        _ => recorded_explanation(call),
    };
    let explained = explained.ok_or_else(|| {
        CodedError::new(Code::ReplayIncomplete, "the call's decision was not kept")
    })?;
    show(&explained, screen)?;
    Ok(0)
}

fn recorded_explanation(call: &CallView) -> Option<Explained> {
    call.decision.clone().map(|decision| Explained { decision, trace: None, policy: None })
}

fn explain_again(
    store: &Store,
    (id, view): (&str, &RunView),
    call: &CallView,
    (action, facts): (&Action, &Facts),
    policy: Option<&PolicyArg>,
    ctx: &CliContext,
) -> Result<Explained, Failure> {
    let policy = match policy {
        Some(policy) => ctx.load_policy(policy, None)?.policy,
        None => recorded_policy(store, id, view)?,
    };
    let usage = usage_before(view, call);
    let (tool, tainted, made) = (&call.tool, call.tainted.as_slice(), Some(call.args_mac));
    let case = PolicyInput { tool, action, facts, usage: &usage, tainted, args_digest: made };
    let Judgement { decision, trace, .. } = decide(&policy, &case);
    Ok(Explained { decision, trace: Some(trace), policy: Some(policy) })
}

fn recorded_policy(store: &Store, id: &str, view: &RunView) -> Result<Arc<Policy>, Failure> {
    let missing = || CodedError::new(Code::ReplayIncomplete, "the run's policy was not kept");
    let opened = &view.header.as_ref().ok_or_else(missing)?.opened;
    let first = store.event(id, 1)?.ok_or_else(missing)?;
    let payloads = store.payloads(first.leaf, &first.entry.event)?;
    let texts = PolicyTexts::from_record(opened, payload_lookup(&payloads)).ok_or_else(missing)?;
    BoundPolicy::bind_recorded(&texts, opened)
        .map_err(|problems| Failure::InvalidText(texts.policy, problems))
}
