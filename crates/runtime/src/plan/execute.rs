//! Running the steps of a plan, one after the other, through the one path.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::call::{Origin, ToolCall};
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{Event, Journal, StepEnded, StepEnding};
use capsule_core::lifecycle::{PlanApproval, PlannedCall, request_plan_approval};
use capsule_core::outcome::{CodedError, Status};
use capsule_core::policy::Usage;
use capsule_core::tool::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::backend::CallBackend;
use crate::call_result::CallResult;
use crate::lifecycle::submit;
use crate::plan::requirements::runs_code;
use crate::plan::{
    EvalScope, ExpectedDenial, OnError, Plan, PlanStep, StepForecast, StepResult, evaluate,
    forecast_steps,
};
use crate::run::Run;

/// What a plan came to.
#[derive(Clone, Debug)]
pub struct PlanResult {
    /// How the run ends.
    pub exit: Exit,
    /// What the plan gives; none if it did not come to its end.
    pub outputs: Option<Value>,
    /// How far it came, if a call waits for an answer.
    pub progress: Option<Box<PlanProgress>>,
}

impl PlanResult {
    /// What came of a run that does not wait.
    pub(crate) const fn ended(exit: Exit, outputs: Option<Value>) -> Self {
        Self { exit, outputs, progress: None }
    }
}

/// How far a plan came: what it goes on from once a person has answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanProgress {
    /// How many steps are over.
    #[serde(rename = "at")]
    steps_done: usize,
    /// Which attempt at the next one it is.
    attempt: u32,
    /// How the run ends because of the steps that are over.
    exit: Exit,
    /// Their results.
    steps: BTreeMap<String, StepResult>,
    /// What they used.
    usage: Usage,
}

impl Default for PlanProgress {
    fn default() -> Self {
        let (steps, usage) = (BTreeMap::new(), Usage::default());
        Self { steps_done: 0, attempt: 1, exit: Exit::Ok, steps, usage }
    }
}

/// How a step ended.
struct EndedStep {
    ending: StepEnding,
    problem: Option<CodedError>,
    /// The result, for the steps behind.
    result: Option<Value>,
    tainted: bool,
}

impl EndedStep {
    const fn succeeded(&self) -> bool {
        matches!(
            self.ending,
            StepEnding::Ok | StepEnding::DeniedAsExpected | StepEnding::FailedAsExpected
        )
    }

    const fn without_result(ending: StepEnding, problem: Option<CodedError>) -> Self {
        Self { ending, problem, result: None, tainted: false }
    }
}

/// Runs every step of a plan. Where the policy wants one question for all that is known of it, that
/// is asked first.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else.
pub fn execute<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    plan: &Plan,
    inputs: Map<String, Value>,
) -> Result<PlanResult, J::Error> {
    if run.policy.approves_plans
        && let PlanApproval::Denied(problem) = approve_plan(run, plan, &inputs)?
    {
        return Ok(PlanResult::ended(problem.code.exit(), None));
    }
    resume_plan(run, plan, inputs, PlanProgress::default())
}

/// Asks about what the steps will come to.
fn approve_plan<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    plan: &Plan,
    inputs: &Map<String, Value>,
) -> Result<PlanApproval, J::Error> {
    let scope = EvalScope { inputs: inputs.clone(), ..EvalScope::default() };
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let ahead = forecast_steps(&run.policy, &mut run.backend, plan, &scope, redactor);
    let (known, open) = split_known(plan, ahead);
    request_plan_approval(&known, open, run.backend.approver(), redactor, journal)
}

/// The steps that can be shown before the plan begins, and how many are left for later. What runs the
/// files of a project is not shown ahead where something before it may change them that is not shown.
fn split_known(plan: &Plan, ahead: Vec<StepForecast>) -> (Vec<PlannedCall>, u64) {
    let changing = [Capability::FsWrite, Capability::FsDelete, Capability::ProcExec];
    let may_change =
        |needs: Capabilities| changing.iter().any(|capability| needs.contains(*capability));
    let (mut known, mut open, mut unseen) = (Vec::new(), 0, false);
    for (step, forecast) in plan.steps.iter().zip(ahead) {
        match forecast {
            StepForecast::Known(call) => match call.decision().verdict {
                Verdict::Ask if !(unseen && runs_code(&call)) => known.push(*call),
                Verdict::Ask | Verdict::AskEach => {
                    open += 1;
                    unseen |= may_change(call.decision().capabilities);
                }
                Verdict::Allow => unseen |= may_change(call.decision().capabilities),
                Verdict::Deny => {}
            },
            StepForecast::Unknown => {
                open += 1;
                unseen |= may_change(step.tool.capabilities.iter().copied().collect());
            }
            StepForecast::Refused(_) => {}
        }
    }
    (known, open)
}

/// Runs the steps of a plan that are not over.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else.
pub fn resume_plan<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    plan: &Plan,
    inputs: Map<String, Value>,
    from: PlanProgress,
) -> Result<PlanResult, J::Error> {
    let PlanProgress { steps_done: at, mut attempt, mut exit, steps, usage } = from;
    run.usage = usage;
    let mut scope = EvalScope { inputs, steps };
    let referred = plan.referred_steps();
    for (at, step) in plan.steps.iter().enumerate().skip(at) {
        if run.backend.interrupted() {
            return Ok(PlanResult::ended(Exit::Interrupted, None));
        }
        let ended = match run_attempts(run, step, &scope, std::mem::replace(&mut attempt, 1))? {
            StepAttempt::Ended(ended) => ended,
            StepAttempt::Waits(attempt) => {
                let (steps, usage) = (scope.steps, run.usage.clone());
                let progress =
                    Some(Box::new(PlanProgress { steps_done: at, attempt, exit, steps, usage }));
                let exit = exit.min(Exit::ApprovalNeeded);
                return Ok(PlanResult { exit, outputs: None, progress });
            }
        };
        let goes_on = step.on_error == OnError::Continue;
        let step_exit = exit_after(&ended, goes_on);
        exit = exit.min(step_exit);
        let ends = !ended.succeeded() && ends_the_run(run, &ended);
        let goes_on = goes_on && !ends;
        let stops = step_exit == Exit::Interrupted
            || (!goes_on && !ended.succeeded() && ended.ending != StepEnding::Skipped);
        write_step_end(run, step, &ended, goes_on)?;
        let good = ended.succeeded();
        let value = ended.result.filter(|_| referred.contains(&step.id));
        scope
            .steps
            .insert(step.id.clone(), StepResult { succeeded: good, value, tainted: ended.tainted });
        if stops {
            return Ok(PlanResult::ended(exit, None));
        }
    }
    Ok(PlanResult::ended(exit, outputs(plan, &scope)))
}

/// Whether a step ends its run, whatever the plan says about errors: nothing more may be done, or
/// the profile does not go on where nobody is there to ask.
fn ends_the_run<J: Journal, H: CallBackend>(run: &Run<J, H>, ended: &EndedStep) -> bool {
    ended.problem.as_ref().is_some_and(|problem| run.ends_after(problem.code))
}

/// What the plan gives: an output whose value is not there, or for which there is no more room, is
/// left out.
fn outputs(plan: &Plan, scope: &EvalScope) -> Option<Value> {
    if plan.outputs.is_empty() {
        return None;
    }
    let mut room = evaluate::EvalBudget::default();
    let made = plan.outputs.iter().filter_map(|(name, expression)| {
        let (value, _) = scope.evaluate(expression).ok()?;
        Some((name.clone(), room.take(value).ok()?))
    });
    Some(Value::Object(made.collect()))
}

/// How the run ends because of a step.
fn exit_after(ended: &EndedStep, goes_on: bool) -> Exit {
    if ended.succeeded() {
        return Exit::Ok;
    }
    let exit = ended.problem.as_ref().map_or(Exit::Ok, |problem| problem.code.exit());
    match exit {
        // A failure that the plan takes in its stride is shown, and is none of the run's.
        Exit::ToolFailed if goes_on => Exit::Ok,
        other => other,
    }
}

fn write_step_end<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    step: &PlanStep,
    ended: &EndedStep,
    goes_on: bool,
) -> Result<(), J::Error> {
    let note = match &ended.problem {
        Some(problem) => Some(run.keep_text(&json!(problem))?),
        None => None,
    };
    run.write_with_next(Event::StepEnded(StepEnded {
        step: step.id.clone(),
        ending: ended.ending,
        code: ended.problem.as_ref().map(|problem| problem.code),
        goes_on: goes_on && !ended.succeeded(),
        note,
    }))
}

/// What came of trying a step.
enum StepAttempt {
    /// It ended.
    Ended(EndedStep),
    /// Its call waits for an answer, in this attempt.
    Waits(u32),
}

/// Tries a step as often as it says, from this attempt on.
fn run_attempts<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    step: &PlanStep,
    scope: &EvalScope,
    mut attempt: u32,
) -> Result<StepAttempt, J::Error> {
    let (times, backoff) = match step.on_error {
        OnError::Retry { times, backoff } => (times, backoff),
        OnError::Stop | OnError::Continue => (0, std::time::Duration::ZERO),
    };
    loop {
        let ended = run_attempt(run, step, scope, attempt)?;
        if run.waiting.is_some() {
            return Ok(StepAttempt::Waits(attempt));
        }
        // A denial stays one however often it is tried.
        let again = ended.ending == StepEnding::Failed && u64::from(attempt) <= times;
        if !again || run.backend.interrupted() {
            return Ok(StepAttempt::Ended(ended));
        }
        run.journal.flush_deferred()?;
        run.backend.pause(backoff);
        attempt += 1;
    }
}

fn run_attempt<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    step: &PlanStep,
    scope: &EvalScope,
    attempt: u32,
) -> Result<EndedStep, J::Error> {
    let call = match prepare_call(step, scope, attempt) {
        Ok(Some(call)) => call,
        Ok(None) => return Ok(EndedStep::without_result(StepEnding::Skipped, None)),
        Err(problem) => return Ok(EndedStep::without_result(StepEnding::Failed, Some(problem))),
    };
    let tainted = run.policy.taints(&call.tool) || !call.tainted.is_empty();
    let delivered = submit(run, call)?;
    let (ending, problem) = judge_step(step, &delivered);
    Ok(EndedStep { ending, problem, result: delivered.value, tainted })
}

/// The call that a step makes; none if its `when` does not hold.
fn prepare_call(
    step: &PlanStep,
    scope: &EvalScope,
    attempt: u32,
) -> Result<Option<ToolCall>, CodedError> {
    for need in &step.needs {
        if !scope.steps.get(need).is_some_and(|result| result.succeeded) {
            let message = format!("the step needs `{need}`, which did not go well");
            return Err(CodedError::new(Code::PlanStep, message));
        }
    }
    if let Some(when) = &step.when {
        let (value, _) = scope.evaluate(when)?;
        if evaluate::is_empty(&value) {
            return Ok(None);
        }
    }
    build_call(step, scope, attempt).map(Some)
}

/// The call of a step.
///
/// # Errors
/// When something that it refers to is not there.
pub(super) fn build_call(
    step: &PlanStep,
    scope: &EvalScope,
    attempt: u32,
) -> Result<ToolCall, CodedError> {
    let mut args = Map::new();
    let mut tainted = Vec::new();
    for (name, expression) in &step.args {
        let (value, from_outside) = scope.evaluate(expression)?;
        if from_outside {
            tainted.push(name.clone());
        }
        args.insert(name.clone(), value);
    }
    if let Some(timeout) = step.timeout
        && step.tool.argument("timeout").is_some()
        && !args.contains_key("timeout")
    {
        args.insert("timeout".into(), format!("{}ms", timeout.as_millis()).into());
    }
    Ok(ToolCall {
        tool: ToolName::unchecked(step.tool.id),
        args: Value::Object(args),
        origin: Origin::Plan,
        step: Some(step.id.clone()),
        attempt,
        tainted,
    })
}

/// How a step ends, and how the run would end because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictedEnding {
    /// How the step ends.
    pub ending: StepEnding,
    /// What goes wrong, or is denied as expected.
    pub problem: Option<CodedError>,
    /// How the run ends because of it.
    pub exit: Exit,
}

impl PredictedEnding {
    /// Whether it is just what the plan expects.
    #[must_use]
    pub const fn is_expected(&self) -> bool {
        matches!(self.ending, StepEnding::DeniedAsExpected | StepEnding::FailedAsExpected)
    }
}

/// How a step ends by the decision on its call alone, with nobody there to ask; none where that
/// depends on what the call comes to.
#[must_use]
pub fn predict_ending(step: &PlanStep, decision: &Decision) -> Option<PredictedEnding> {
    let (ending, problem) = if decision.verdict == Verdict::Allow {
        judge_decision(step, &CallResult::allowed(decision.clone()))?
    } else {
        judge_step(step, &CallResult::not_run(0, decision.clone().unattended()))
    };
    let ended = EndedStep::without_result(ending, problem);
    let exit = exit_after(&ended, step.on_error == OnError::Continue);
    Some(PredictedEnding { ending, problem: ended.problem, exit })
}

type StepJudgement = (StepEnding, Option<CodedError>);

fn unexpected_ending(message: String) -> StepJudgement {
    (StepEnding::Failed, Some(CodedError::new(Code::PlanExpectation, message)))
}

/// Compares what came with what is expected.
fn judge_step(step: &PlanStep, delivered: &CallResult) -> StepJudgement {
    let problem = delivered.problem.clone();
    // What we could not do ourselves is no answer to what was expected of the call.
    if delivered.status == Status::RuntimeError {
        return (StepEnding::Failed, problem);
    }
    if let Some(judged) = judge_decision(step, delivered) {
        return judged;
    }
    match (delivered.status, problem) {
        (Status::Denied, problem) => (StepEnding::Denied, problem),
        (Status::ToolError, Some(problem)) => judge_failure(step, delivered, problem),
        _ if step.expect.failed.is_some() => {
            unexpected_ending("a failure was expected, and the call went well".into())
        }
        _ => match field_mismatch(step, delivered) {
            Some(message) => unexpected_ending(message),
            None => (StepEnding::Ok, None),
        },
    }
}

/// Compares what was decided with what is expected; none where the decision settles nothing.
fn judge_decision(step: &PlanStep, delivered: &CallResult) -> Option<StepJudgement> {
    let expect = &step.expect;
    let denied = delivered.status == Status::Denied;
    if let Some(denial) = &expect.denied {
        return Some(match delivered.problem.clone() {
            Some(problem) if denied => {
                if denial.matches(delivered.decision.rule.as_deref(), problem.code) {
                    (StepEnding::DeniedAsExpected, Some(problem))
                } else {
                    (StepEnding::Denied, Some(other_denial_problem(denial, delivered, problem)))
                }
            }
            _ => unexpected_ending("a denial was expected, and the call was allowed".into()),
        });
    }
    // A denial is one, whatever else was expected of the call.
    let wanted = expect.capabilities.filter(|_| !denied)?;
    let needed = delivered.capabilities();
    (wanted != needed).then(|| {
        unexpected_ending(format!("the call needs {needed:?}, and {wanted:?} was expected"))
    })
}

/// A denial that is not the one that the plan expects stays a denial, with both codes.
fn other_denial_problem(
    expected: &ExpectedDenial,
    delivered: &CallResult,
    problem: CodedError,
) -> CodedError {
    let by = delivered.decision.rule.as_deref().unwrap_or("no rule");
    let message = format!(
        "denied by {by} with `{}`, and {expected} was expected ({})",
        problem.code,
        Code::PlanExpectation
    );
    CodedError { message, ..problem }
}

/// A call that failed may be just what the plan expects: by its code, or by its exit status.
fn judge_failure(step: &PlanStep, delivered: &CallResult, problem: CodedError) -> StepJudgement {
    match step.expect.failed {
        Some(None) => return (StepEnding::FailedAsExpected, Some(problem)),
        Some(Some(code)) if code == problem.code => {
            return (StepEnding::FailedAsExpected, Some(problem));
        }
        Some(Some(code)) => {
            let message = format!("it failed with `{}`, and `{code}` was expected", problem.code);
            return unexpected_ending(message);
        }
        None => {}
    }
    let names_status = step.expect.fields.iter().any(|(field, _)| field == "exit_code");
    if problem.code == Code::ExecFailed && names_status {
        return match field_mismatch(step, delivered) {
            None => (StepEnding::FailedAsExpected, Some(problem)),
            Some(message) => unexpected_ending(message),
        };
    }
    (StepEnding::Failed, Some(problem))
}

fn field_mismatch(step: &PlanStep, delivered: &CallResult) -> Option<String> {
    step.expect.fields.iter().find_map(|(field, matcher)| {
        let value = delivered.value.as_ref().and_then(|value| value.get(field));
        let found = matcher.mismatch(value.unwrap_or(&Value::Null));
        found.map(|what| format!("`{field}` {what}"))
    })
}
