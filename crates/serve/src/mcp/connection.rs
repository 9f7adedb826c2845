//! A connection: what its two threads know of each other.
//!
//! The thread that reads puts calls into a bounded queue, and sees at once that one is cancelled or a question answered.
//! The thread that serves takes the calls one after another.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use capsule_base::limits;
use capsule_runtime::Cancel;
use serde_json::{Map, Value, json};

use crate::mcp::host::McpHost;
use crate::mcp::kept_results::KeptResults;
use crate::mcp::listeners::Listeners;
use crate::mcp::message::{BUSY, INVALID_REQUEST, Request, RpcError};
use crate::mcp::offer::Offer;
use crate::mcp::outlet::Outlet;
use crate::mcp::revision::Client;

/// What the thread that serves finds.
pub(crate) enum Next {
    Request(Request, Client),
    /// Nothing, within the time.
    Idle,
    /// Nothing, and nothing will come.
    Ended,
}

/// What came of a question to the user of the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// The client's result; none where it could not ask.
    Given(Option<Value>),
    /// No answer came in time, or none can come any more.
    Abandoned,
    /// The call was cancelled, or the client is not there any more.
    Withdrawn,
}

/// The request that is served now.
struct Running {
    id: Value,
    outlet: Outlet,
    client: Client,
    /// Its parameters without what a repeated request adds, which has to ask for the same.
    call: Map<String, Value>,
    is_cancelled: bool,
    /// Whether the answer to the request was a question, so that there is none any more until it is made again.
    is_answered: bool,
}

/// A question that waits for an answer.
struct Question {
    /// The id of our request, or the state that a repeated request brings back.
    key: String,
    reply: Option<Reply>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<(Request, Client)>,
    running: Option<Running>,
    question: Option<Question>,
    questions: u64,
    /// The client, once it began with `initialize`.
    client: Option<Client>,
    /// Whether the client is still to be asked which directory it works in.
    awaits_root: bool,
    has_ended: bool,
}

/// A connection of a client.
pub(crate) struct Connection {
    state: Mutex<State>,
    changed: Condvar,
    /// What the policy offers.
    pub(crate) offer: Offer,
    /// Where changes of it are told.
    pub(crate) listeners: Listeners,
    /// Long results of calls.
    pub(crate) results: KeptResults,
    /// Stops the call that goes on.
    interrupt: fn(),
    /// Says that the process is asked to stop.
    cancel: Cancel,
}

/// The name of the one question of an answer that wants input.
const QUESTION: &str = "approval";

impl Connection {
    pub(crate) fn new(host: &dyn McpHost) -> Self {
        let state = State { awaits_root: host.awaits_root(), ..State::default() };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            offer: Offer::of(host),
            listeners: Listeners::default(),
            results: KeptResults::default(),
            interrupt: host.interrupter(),
            cancel: host.cancel(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client, once it began with `initialize`.
    pub(crate) fn client(&self) -> Option<Client> {
        self.state().client
    }

    /// Takes the beginning of a client.
    ///
    /// # Errors
    /// When there was one.
    pub(crate) fn begin(&self, client: Client) -> Result<(), RpcError> {
        match self.state().client.replace(client) {
            None => Ok(()),
            Some(_) => Err(RpcError::new(INVALID_REQUEST, "the connection has begun already")),
        }
    }

    /// Whether a client is still to be asked which directory it works in: then what it is told of the policy waits for its turn.
    pub(crate) fn awaits_root(&self, client: Client) -> bool {
        client.has_roots && self.state().awaits_root
    }

    /// Says whether one is, from now on.
    pub(crate) fn set_awaits_root(&self, awaits_root: bool) {
        self.state().awaits_root = awaits_root;
    }

    /// Whether the client says nothing more.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Lets another client begin. What was asked of the user of the one before has no answer.
    pub(crate) fn forget_client(&self) {
        self.listeners.forget_client();
        self.results.clear();
        let state = &mut *self.state();
        state.client = None;
        if state.running.as_ref().is_some_and(|running| !running.client.is_stateless) {
            state.reply(Reply::Abandoned);
        }
        self.changed.notify_all();
    }

    /// Refuses the id of a request that goes on.
    ///
    /// # Errors
    /// When it is one.
    pub(crate) fn check_id(&self, id: &Value) -> Result<(), RpcError> {
        let is_subscription = self.listeners.has_subscription(id);
        let state = self.state();
        let mut ids =
            state.running.iter().filter(|running| !running.is_answered).map(|running| &running.id);
        let mut waiting = state.queue.iter().map(|(waiting, _)| &waiting.id);
        if is_subscription || ids.any(|used| used == id) || waiting.any(|used| used == id) {
            return Err(RpcError::new(INVALID_REQUEST, "the id is that of a request that goes on"));
        }
        Ok(())
    }

    /// Puts a call into the queue. A call waits behind a question, in every revision.
    ///
    /// # Errors
    /// When too many wait, or it answers a question that nothing asks.
    pub(crate) fn accept(&self, mut request: Request, client: Client) -> Result<(), RpcError> {
        let state = &mut *self.state();
        if request.params.contains_key("requestState") {
            state.take_repeated(&mut request)?;
        } else if state.queue.len() >= limits::MCP_WAITING {
            return Err(RpcError::new(BUSY, "too many requests wait"));
        } else {
            state.queue.push_back((request, client));
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Cancels a request.
    pub(crate) fn cancel(&self, id: &Value) {
        self.listeners.end_subscription(id);
        let state = &mut *self.state();
        state.queue.retain(|(waiting, _)| waiting.id != *id);
        if let Some(running) = state.running.as_mut().filter(|running| running.id == *id) {
            running.is_cancelled = true;
            state.reply(Reply::Withdrawn);
            (self.interrupt)();
        }
        self.changed.notify_all();
    }

    /// Takes the answer to a request of ours.
    pub(crate) fn answer(&self, id: &str, result: Option<Value>) {
        let state = &mut *self.state();
        let is_asked = state.question.as_ref().is_some_and(|question| question.key == id);
        let is_stateless =
            state.running.as_ref().is_some_and(|running| running.client.is_stateless);
        if is_asked && !is_stateless {
            state.reply(Reply::Given(result));
        }
        self.changed.notify_all();
    }

    /// The client says nothing more. What it asked for is finished; its questions have no answer.
    pub(crate) fn end(&self) {
        let state = &mut *self.state();
        state.has_ended = true;
        state.reply(Reply::Abandoned);
        self.changed.notify_all();
    }

    /// The client does not listen any more either: what it asked for is not finished.
    pub(crate) fn stop(&self) {
        let state = &mut *self.state();
        state.has_ended = true;
        state.queue.clear();
        state.reply(Reply::Withdrawn);
        if state.running.is_some() {
            (self.interrupt)();
        }
        self.changed.notify_all();
    }

    /// The next request, which is served from now on, once there is one or the time is over.
    pub(crate) fn next(&self, wait: Duration) -> Next {
        let mut state = self.state();
        if state.queue.is_empty() && !state.has_ended {
            (state, _) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
        }
        match state.queue.pop_front() {
            Some((request, client)) => {
                // From here on it can be stopped.
                state.running = Some(Running {
                    id: request.id.clone(),
                    outlet: request.outlet.clone(),
                    client,
                    call: same_call(&request.params),
                    is_cancelled: false,
                    is_answered: false,
                });
                Next::Request(request, client)
            }
            None if state.has_ended => Next::Ended,
            None => Next::Idle,
        }
    }

    /// Answers the request that was served, unless it was cancelled. Whether the client stopped it.
    pub(crate) fn finish(&self, answer: impl FnOnce(&Value) -> Value) -> bool {
        let running = self.state().running.take();
        let Some(running) = running else { return false };
        if !running.is_cancelled && !running.is_answered {
            running.outlet.send(&answer(&running.id));
        }
        running.is_cancelled
    }

    /// Whether the user of the client can be asked now.
    pub(crate) fn can_ask(&self) -> bool {
        let state = self.state();
        state
            .running
            .as_ref()
            .is_some_and(|running| running.client.has_forms && !running.is_cancelled)
            && !state.has_ended
    }

    /// Asks the client, and waits this long for the answer.
    pub(crate) fn ask(
        &self,
        (method, params): (&str, &Value),
        chance: u64,
        time: Duration,
    ) -> Reply {
        let mut state = self.state();
        let number = state.questions;
        state.questions += 1;
        let has_ended = state.has_ended;
        let running = state.running.as_mut();
        let Some(running) = running.filter(|running| !running.is_cancelled && !has_ended) else {
            return Reply::Withdrawn;
        };
        // A repeated request shows that it is meant by what no other client was told.
        let key = format!("capsule-{number}-{chance:016x}");
        let (id, outlet, client) = (running.id.clone(), running.outlet.clone(), running.client);
        running.is_answered = client.is_stateless;
        let message = match client.is_stateless {
            false => json!({ "jsonrpc": "2.0", "id": key, "method": method, "params": params }),
            true => crate::mcp::message::result(
                &id,
                &json!({
                    "resultType": "input_required",
                    "inputRequests": { QUESTION: { "method": method, "params": params } },
                    "requestState": key,
                }),
            ),
        };
        state.question = Some(Question { key: key.clone(), reply: None });
        drop(state);
        outlet.send(&message);
        let reply = self.wait_for_reply(time);
        if !client.is_stateless && !matches!(reply, Reply::Given(_)) {
            // The form decides nothing any more: the client may close it.
            let params = json!({ "requestId": key });
            let method = "notifications/cancelled";
            outlet.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        }
        reply
    }

    fn wait_for_reply(&self, time: Duration) -> Reply {
        let deadline = Instant::now() + time;
        let mut state = self.state();
        loop {
            if let Some(reply) = state.question.as_ref().and_then(|question| question.reply.clone())
            {
                state.question = None;
                return reply;
            }
            let is_stopped = self.cancel.is_set();
            if is_stopped || Instant::now() >= deadline {
                state.question = None;
                return if is_stopped { Reply::Withdrawn } else { Reply::Abandoned };
            }
            let (pause, changed) = (limits::MCP_POLL, &self.changed);
            (state, _) = changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    /// Answers the question that waits, if one does. The first answer counts.
    fn reply(&mut self, reply: Reply) {
        if let Some(question) = &mut self.question {
            question.reply.get_or_insert(reply);
        }
    }

    /// Takes a request that is made again with the answer to the question of the one before.
    fn take_repeated(&mut self, request: &mut Request) -> Result<(), RpcError> {
        let responses = request.params.remove("inputResponses");
        let asked = request.params.remove("requestState");
        let unknown = || RpcError::params("`requestState` names no question that waits");
        let (Some(running), Some(question)) = (&mut self.running, &self.question) else {
            return Err(unknown());
        };
        let is_known = asked.as_ref().and_then(Value::as_str) == Some(question.key.as_str());
        if !is_known || !running.client.is_stateless || question.reply.is_some() {
            return Err(unknown());
        }
        if request.method != "tools/call" || same_call(&request.params) != running.call {
            return Err(RpcError::params(
                "the request is another one than the one that was asked about",
            ));
        }
        (running.id, running.outlet) = (request.id.clone(), request.outlet.clone());
        running.is_answered = false;
        let response = responses.and_then(|mut all| all.get_mut(QUESTION).map(Value::take));
        self.reply(Reply::Given(response));
        Ok(())
    }
}

/// The parameters by which a repeated request is the same.
fn same_call(params: &Map<String, Value>) -> Map<String, Value> {
    let is_kept =
        |(name, _): &(&String, &Value)| name.as_str() == "name" || name.as_str() == "arguments";
    let kept = params.iter().filter(is_kept);
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
