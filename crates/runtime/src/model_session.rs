//! A session in which a model calls tools: the calls of a model come in through this type alone.
//!
//! Each call takes the one path ([`submit`]) with the origin `model`. What the user says, what the model is
//! sent and what it answers is recorded before it has an effect. Texts are masked here, so the record
//! holds what was delivered. A model can ask for a call and cannot approve one: it has no way to the prompt.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_base::json;
use capsule_core::call::{Origin, ToolCall};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{
    Event, Journal as _, ModelAnswered, ModelRequested, PayloadClass, PayloadRef, RunKind,
};
use capsule_core::lifecycle::PreflightReport;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{ATTACH_TOOL, Policy, PolicyInput, decide};
use capsule_core::tool::{ToolName, ToolShape, ToolSignature};
use capsule_store::{Store, StoreError};
use capsule_tools::{CATALOGUE, QUESTION_TOOL, QuestionPrompt};
use serde_json::Value;

use crate::backend::CallBackend as _;
use crate::call_result::CallResult;
use crate::lifecycle::submit;
use crate::live_run::{FinishedRun, LiveRun, LiveRunOptions, OpenError};
use crate::masked_stream::MaskedText;
use crate::model_call::{bounded_text, call_args, result_text, tool_id};
use crate::model_history::{HistoryEntry, TokenCount, has_unsent_calls, read_state, visit_history};
use crate::person_time::{TimedPrompt, TimedQuestions};
use crate::replay::replay_unsent_calls;
use crate::script_files::with_script_texts;
use crate::session::{ConversationState, SessionError, SessionRequest};
use crate::tool_schema::ModelTool;
use crate::unsent_results::UnsentResults;

/// A session in which a model calls tools.
pub struct ModelSession<'o> {
    live: LiveRun<'o>,
    /// The origin of its calls.
    origin: Origin,
    turns: u64,
    /// Whether a result was delivered that the policy does not vouch for: every later argument may derive
    /// from it.
    is_tainted: bool,
    /// How long persons took for their answers.
    person_time: Rc<Cell<Duration>>,
    store: PathBuf,
}

/// A request to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'r> {
    /// The URL that is asked, without a key.
    pub endpoint: &'r str,
    /// The model.
    pub model: &'r str,
    /// The whole request body.
    pub body: &'r [u8],
    /// The messages that the request before did not have.
    pub added: &'r Value,
}

/// How much of models a run may use, as its policy and the layers over it say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelBudget {
    /// Tokens of requests and answers.
    pub tokens: Option<u64>,
    /// The cost in millionths of a US dollar.
    pub cost: Option<u64>,
}

/// What a model is given for one of its calls.
#[derive(Clone, Debug)]
pub struct ToolAnswer {
    /// The text for the model: bounded, and masked.
    pub text: String,
    /// What came of the call; none where nothing was proposed to the policy.
    pub result: Option<CallResult>,
    /// Whether the call was not made because it could not be understood.
    pub is_malformed: bool,
}

impl<'o> ModelSession<'o> {
    /// Takes up a session, or opens it.
    ///
    /// # Errors
    /// As [`LiveRun::join`].
    pub fn open(
        start: LiveRunOptions<'_, 'o>,
        request: SessionRequest<'_>,
    ) -> Result<Self, OpenError> {
        let store = start.store.to_owned();
        let origin = if start.kind == RunKind::Mcp { Origin::Mcp } else { Origin::Model };
        let person_time = Rc::new(Cell::new(Duration::ZERO));
        let prompt = Box::new(TimedPrompt { prompt: start.prompt, time: Rc::clone(&person_time) });
        let mut live = LiveRun::join(LiveRunOptions { prompt, ..start }, request)?;
        let state = match live.conversation.take() {
            _ if live.is_new_session => ConversationState::default(),
            Some(state) => state,
            None => {
                let record = Store::open(&store)?;
                read_state(&record, &live.id.to_string(), &live.run.policy)?
            }
        };
        let ConversationState { turns, is_tainted } = state;
        Ok(Self { live, origin, turns, is_tainted, person_time, store })
    }

    /// Has the questions of the model shown to a person.
    pub fn set_question_prompt(&mut self, prompt: Rc<dyn QuestionPrompt>) {
        let prompt = TimedQuestions { prompt, time: Rc::clone(&self.person_time) };
        self.live.run.backend.set_question_prompt(Rc::new(prompt));
    }

    /// How long persons took for their answers to cards and questions, since the session was taken up.
    #[must_use]
    pub fn person_time(&self) -> Duration {
        self.person_time.get()
    }

    /// The results of these calls of the last answer, each a tool and its arguments, that no request has sent, and the
    /// files that the user attached since. None for a call whose result the record does not have.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn unsent_results(&self, calls: &[(&str, &str)]) -> Result<UnsentResults, SessionError> {
        let (store, run) = (Store::open(&self.store)?, self.live.id.to_string());
        Ok(match has_unsent_calls(&store, &run)? {
            true => UnsentResults::of(replay_unsent_calls(store, &run)?, calls),
            false => UnsentResults::default(),
        })
    }

    /// Visits the conversation that the session's record holds, from its beginning on.
    ///
    /// # Errors
    /// When the record cannot be read, or a part of the conversation was erased.
    pub fn visit_history(&self, visit: impl FnMut(HistoryEntry)) -> Result<(), SessionError> {
        visit_history(&Store::open(&self.store)?, &self.live.id.to_string(), visit)
    }

    /// The run of the session.
    #[must_use]
    pub const fn live(&self) -> &LiveRun<'o> {
        &self.live
    }

    /// The tools that the policy does not deny as a whole, and questions where a person can answer them.
    #[must_use]
    pub fn tools(&self) -> Vec<ModelTool> {
        offered_tools(&self.live.run.policy, self.live.run.backend.can_ask_questions())
    }

    /// Masks the text of an answer while it comes, like what is recorded of it.
    #[must_use]
    pub fn masked_text(&self) -> MaskedText {
        MaskedText::new(self.live.run.redactor.clone())
    }

    /// Records a message of the user; gives it as the model may see it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record_message(&mut self, text: &str) -> Result<String, StoreError> {
        let text = self.mask(Value::from(text));
        let kept = self.keep(PayloadClass::Text, &text)?;
        self.live.run.write(Event::UserMessage { text: kept })?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Records a request before it is sent.
    ///
    /// # Errors
    /// When it cannot be written: then it must not be sent.
    pub fn record_request(&mut self, request: ModelRequest<'_>) -> Result<(), StoreError> {
        self.turns += 1;
        let added = self.mask(request.added.clone());
        let added = self.keep(PayloadClass::Text, &added)?;
        self.live.run.write(Event::ModelRequested(ModelRequested {
            turn: self.turns,
            endpoint: request.endpoint.to_owned(),
            model: request.model.to_owned(),
            sha256: Digest::of(request.body),
            added,
        }))
    }

    /// How much of models the whole run may use: the least that the policy or a layer names.
    #[must_use]
    pub fn budget(&self) -> ModelBudget {
        let layers = || self.live.run.policy.self_and_layers().map(|layer| &layer.budgets);
        ModelBudget {
            tokens: layers().filter_map(|budgets| budgets.llm_tokens).min(),
            cost: layers().filter_map(|budgets| budgets.llm_cost).min(),
        }
    }

    /// How many requests were sent in the run.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// A text as it may be shown and recorded.
    #[must_use]
    pub fn masked(&self, text: &str) -> String {
        let mut masked = 0;
        self.live.run.redactor.text(text, &mut masked).into_owned()
    }

    /// Records why there is no answer to the last request, and the text that was shown of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record_failure(&mut self, problem: &CodedError, text: &str) -> Result<(), StoreError> {
        let mut value = serde_json::json!(problem);
        if let (false, Some(map)) = (text.is_empty(), value.as_object_mut()) {
            map.insert("text".into(), text.into());
        }
        self.write_answer(Some(problem.code), value, TokenCount::default()).map(|_| ())
    }

    /// Records the answer to the last request; gives it as it is recorded.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record_answer(
        &mut self,
        answer: &Value,
        tokens: TokenCount,
    ) -> Result<Value, StoreError> {
        self.write_answer(None, answer.clone(), tokens)
    }

    fn write_answer(
        &mut self,
        code: Option<Code>,
        answer: Value,
        tokens: TokenCount,
    ) -> Result<Value, StoreError> {
        let answer = self.mask(answer);
        let kept = self.keep(PayloadClass::Output, &answer)?;
        self.live.run.write(Event::ModelAnswered(ModelAnswered {
            turn: self.turns,
            code,
            answer: kept,
            input_tokens: tokens.input,
            output_tokens: tokens.output,
        }))?;
        Ok(answer)
    }

    /// Makes a call of the model, and gives what the model is told of it.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn call(&mut self, tool: &str, args: &str) -> Result<ToolAnswer, StoreError> {
        let args = match call_args(args) {
            Ok(args) => args,
            Err(problem) => {
                let message = format!("the arguments are not one JSON object: {}", problem.message);
                return Ok(self.malformed(tool, &CodedError::new(Code::ArgsInvalid, message)));
            }
        };
        let call = model_call((tool, args), self.is_tainted);
        self.submit(ToolCall { origin: self.origin, ..call })
    }

    /// What the policy says of a call now. Nothing is recorded, and nothing can run from it.
    pub fn judge(&mut self, tool: &str, args: Value) -> Decision {
        let call = model_call((tool_id(tool).as_str(), args), self.is_tainted);
        let run = &mut self.live.run;
        let call = with_script_texts((&run.policy, &run.usage), &mut run.backend, call);
        match run.backend.preflight(&call) {
            Ok(PreflightReport { action, facts, .. }) => {
                let (tool, tainted) = (&call.tool, call.tainted.as_slice());
                let (action, facts, usage) = (&action, &facts, &run.usage);
                let input = PolicyInput { tool, action, facts, usage, tainted, args_digest: None };
                decide(&run.policy, &input).decision
            }
            Err(problem) => Decision::reject_invalid(problem),
        }
    }

    /// The answer to a call that cannot be read, with the schema of its tool.
    #[must_use]
    pub fn malformed(&self, tool: &str, problem: &CodedError) -> ToolAnswer {
        let signature = CATALOGUE.find(tool);
        let expected = signature.map(|signature| ModelTool::from(signature).parameters);
        let suggestion = problem.suggestion.as_deref();
        let answer = serde_json::json!({
            "status": "tool_error",
            "code": problem.code,
            "reason": problem.message,
            "suggestion": suggestion.unwrap_or("make the call again with arguments that fit the schema"),
            "schema": expected,
        });
        let text = bounded_text(&self.mask(answer));
        ToolAnswer { text, result: None, is_malformed: true }
    }

    /// Gives the conversation a file that the user chose.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn attach(&mut self, file: &str) -> Result<ToolAnswer, StoreError> {
        let args = serde_json::json!({ "file": file });
        self.submit(ToolCall::by(Origin::Person, ATTACH_TOOL, args))
    }

    /// Takes a call down the one path.
    fn submit(&mut self, call: ToolCall) -> Result<ToolAnswer, StoreError> {
        let id = tool_id(call.tool.as_str());
        let question = (id.as_str() == QUESTION_TOOL).then(|| call.args.clone());
        let result = submit(&mut self.live.run, call)?;
        self.live.run.journal.flush_deferred()?;
        self.is_tainted |= result.value.is_some() && self.live.run.policy.taints(&id);
        if let (Some(question), Some(value)) = (question, &result.value) {
            self.record_exchange(question, value.get("answer").cloned())?;
        }
        let is_malformed = matches!(result.code(), Code::ArgsInvalid | Code::ToolUnknown);
        Ok(ToolAnswer { text: result_text(&result), result: Some(result), is_malformed })
    }

    /// Records a question of the model, with the answer of the user.
    fn record_exchange(
        &mut self,
        mut exchange: Value,
        answer: Option<Value>,
    ) -> Result<(), StoreError> {
        if let Some(map) = exchange.as_object_mut() {
            map.entry("choices").or_insert_with(|| Value::Array(Vec::new()));
            map.insert("answer".into(), answer.unwrap_or_default());
        }
        let exchange = self.mask(exchange);
        let kept = self.keep(PayloadClass::Text, &exchange)?;
        self.live.run.write(Event::UserAnswered { text: kept })
    }

    /// Whether no call may follow one with this result.
    #[must_use]
    pub fn ends_after(&self, result: &CallResult) -> bool {
        result.problem.as_ref().is_some_and(|problem| self.live.run.ends_after(problem.code))
    }

    /// The call that waits for the answer of a person, if one does.
    #[must_use]
    pub const fn waiting(&self) -> Option<u64> {
        self.live.run.waiting()
    }

    /// Leaves the session open for the next process, where one of its questions waits for an answer.
    ///
    /// # Errors
    /// When what the session remembers cannot be written.
    pub fn leave(mut self, exit: Exit) -> Result<FinishedRun, SessionError> {
        let Self { turns, is_tainted, .. } = self;
        self.live.conversation = Some(ConversationState { turns, is_tainted });
        self.live.end_call(exit, None)
    }

    /// Ends the session: its run is sealed, and what it staged waits.
    ///
    /// # Errors
    /// When the seal cannot be written.
    pub fn end(self, exit: Exit) -> Result<FinishedRun, StoreError> {
        self.live.end_session(exit)
    }

    fn mask(&self, value: Value) -> Value {
        let mut masked = 0;
        self.live.run.redactor.value(value, &mut masked)
    }

    fn keep(&mut self, class: PayloadClass, value: &Value) -> Result<PayloadRef, StoreError> {
        self.live.run.journal.put_payload(class, &json::canonical_value(value))
    }
}

/// A call of a model, of which every argument may derive from what a tainted session delivered.
fn model_call((tool, args): (&str, Value), is_tainted: bool) -> ToolCall {
    let names = args.as_object().into_iter().flat_map(|args| args.keys().cloned());
    let tainted = if is_tainted { names.collect() } else { Vec::new() };
    ToolCall { tainted, ..ToolCall::by(Origin::Model, tool, args) }
}

impl LiveRun<'_> {
    /// A call that a model makes in the run by a command of its host.
    ///
    /// # Errors
    /// When the store cannot be read, which says whether the session is tainted.
    pub fn call_by_model(
        &self,
        store: &Path,
        (tool, args): (&str, Value),
    ) -> Result<ToolCall, StoreError> {
        let state = match self.is_new_session {
            true => ConversationState::default(),
            false => read_state(&Store::open(store)?, &self.id.to_string(), &self.run.policy)?,
        };
        Ok(model_call((tool, args), state.is_tainted))
    }
}

/// The tools that a policy does not deny as a whole, and questions where a person can answer them.
#[must_use]
pub fn offered_tools(policy: &Policy, can_ask_questions: bool) -> Vec<ModelTool> {
    let is_offered = |tool: &&ToolSignature| {
        is_offered(policy, tool) && (can_ask_questions || tool.id != QUESTION_TOOL)
    };
    CATALOGUE.0.iter().copied().filter(is_offered).map(ModelTool::from).collect()
}

/// Whether some call of the tool may be allowed or asked about.
fn is_offered(policy: &Policy, tool: &ToolSignature) -> bool {
    let id = ToolName::unchecked(tool.id);
    let denies =
        |layer: &Policy| layer.tool(&id).is_some_and(|rule| rule.decision == Some(Verdict::Deny));
    let needs_rule = tool.shape != ToolShape::User || policy.tools.is_empty();
    let is_named = !needs_rule || policy.tool(&id).is_some();
    is_named && !policy.self_and_layers().any(denies)
}
