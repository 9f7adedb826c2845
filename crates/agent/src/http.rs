//! A request to a model's server, and the events of its answer.
//!
//! The connection lives on a thread of its own, so that a task can be cancelled at any instant: the thread ends
//! with its next event, or with the connection.

use std::io::{BufReader, Read as _};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_redact::{Redactor, excerpt};
use capsule_runtime::{Cancel, TokenCount};
use serde_json::Value;
use ureq::http::{Response, header};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

use crate::answer::{PartialAnswer, error_text};
use crate::message::ModelAnswer;
use crate::provider::Provider;
use crate::sse::next_event;

/// How often a request that goes on is asked whether it should.
const TICK: Duration = Duration::from_millis(20);
/// The wait before the first repetition, where the server names none.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How many characters of a server's own words are shown.
const SHOWN_CHARS: usize = 500;

/// Why there is no answer.
pub(crate) enum RequestError {
    /// The user wants the task to end.
    Cancelled,
    /// The time of the task is over.
    OutOfTime,
    /// The server did not give one.
    Failed(CodedError),
}

/// A failure of one attempt.
struct Failure {
    problem: CodedError,
    /// Whether the same request may succeed later.
    passes: bool,
    /// How long the server asks to wait.
    wait: Option<Duration>,
}

impl Failure {
    const fn lasting(problem: CodedError) -> Self {
        Self { problem, passes: false, wait: None }
    }
}

/// When a request has to end before its answer.
pub(crate) struct Until<'u> {
    pub(crate) cancel: &'u Cancel,
    pub(crate) deadline: Instant,
}

impl Until<'_> {
    fn check(&self) -> Result<(), RequestError> {
        if self.cancel.is_set() {
            return Err(RequestError::Cancelled);
        }
        if Instant::now() >= self.deadline { Err(RequestError::OutOfTime) } else { Ok(()) }
    }

    fn pause(&self, time: Duration) -> Result<(), RequestError> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.check()?;
            std::thread::sleep(TICK);
        }
        Ok(())
    }
}

/// Sends a request, again where that may help, and reads the answer to its end.
pub(crate) fn ask(
    provider: &Provider,
    body: &[u8],
    until: &Until<'_>,
) -> Result<(ModelAnswer, TokenCount), RequestError> {
    let mut wait = FIRST_WAIT;
    for attempt in 0.. {
        let failure = match ask_once(provider, body, until)? {
            Ok((mut answer, tokens)) => {
                answer.text = without_key(provider, &answer.text);
                for call in &mut answer.calls {
                    for text in [&mut call.id, &mut call.tool, &mut call.args] {
                        *text = without_key(provider, text);
                    }
                }
                return Ok((answer, tokens));
            }
            Err(failure) => failure,
        };
        let pause = failure.wait.unwrap_or(wait);
        if !failure.passes || attempt >= limits::MODEL_RETRIES || pause > limits::MODEL_RETRY_WAIT {
            let message = without_key(provider, &failure.problem.message);
            return Err(RequestError::Failed(CodedError { message, ..failure.problem }));
        }
        until.pause(pause)?;
        wait *= 2;
    }
    Err(RequestError::OutOfTime)
}

/// A text of a server, which may repeat the key that it was given.
fn without_key(provider: &Provider, text: &str) -> String {
    let known: Vec<_> = provider.key.iter().cloned().collect();
    let mut masked = 0;
    Redactor::with(&known, &[]).text(text, &mut masked).into_owned()
}

fn ask_once(
    provider: &Provider,
    body: &[u8],
    until: &Until<'_>,
) -> Result<Result<(ModelAnswer, TokenCount), Failure>, RequestError> {
    let (sender, receiver) = sync_channel(8);
    let request = Request {
        url: provider.endpoint.to_string(),
        headers: provider.headers(),
        body: body.to_vec(),
        is_local: provider.is_local(),
    };
    std::thread::spawn(move || request.send(&sender));
    let mut partial = PartialAnswer::default();
    let (mut bytes, mut heard) = (0, Instant::now());
    loop {
        until.check()?;
        match receiver.recv_timeout(TICK) {
            Ok(Ok(event)) => {
                heard = Instant::now();
                bytes += event.len();
                if bytes > limits::MODEL_ANSWER_BYTES {
                    return Ok(Err(protocol_failure("the answer is too long")));
                }
                if let Err(problem) = provider.read_event(&mut partial, &event) {
                    return Ok(Err(Failure::lasting(problem)));
                }
            }
            Ok(Err(failure)) => return Ok(Err(failure)),
            // A server may keep the connection open behind its answer.
            Err(RecvTimeoutError::Timeout)
                if partial.is_complete && heard.elapsed() >= limits::MODEL_LAST_EVENTS =>
            {
                return Ok(Ok((partial.answer, partial.tokens)));
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < limits::MODEL_SILENCE => {}
            Err(RecvTimeoutError::Timeout) => {
                let problem =
                    CodedError::new(Code::ModelUnavailable, "the server sent nothing for too long");
                return Ok(Err(Failure::lasting(problem)));
            }
            Err(RecvTimeoutError::Disconnected) if partial.is_complete => {
                return Ok(Ok((partial.answer, partial.tokens)));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let mut failure = protocol_failure("the stream ended before the answer did");
                failure.passes = true;
                return Ok(Err(failure));
            }
        }
    }
}

/// A request that is ready to be sent.
struct Request {
    url: String,
    headers: Vec<(&'static str, Zeroizing<String>)>,
    body: Vec<u8>,
    is_local: bool,
}

impl Request {
    /// Sends the request, and then the data of each event of the answer to the task.
    fn send(self, to: &SyncSender<Result<Vec<u8>, Failure>>) {
        let response = match self.response() {
            Ok(response) => response,
            Err(failure) => return drop(to.send(Err(failure))),
        };
        let mut stream = BufReader::new(response.into_body().into_reader());
        loop {
            match next_event(&mut stream) {
                Ok(Some(event)) => {
                    if to.send(Ok(event)).is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    let mut failure = protocol_failure(&format!("the stream broke: {error}"));
                    failure.passes = error.kind() != std::io::ErrorKind::InvalidData;
                    return drop(to.send(Err(failure)));
                }
            }
        }
    }

    /// The head of a good answer.
    fn response(&self) -> Result<Response<Body>, Failure> {
        let mut config = Agent::config_builder()
            .timeout_connect(Some(limits::MODEL_CONNECT))
            .timeout_recv_response(Some(limits::MODEL_SILENCE))
            // The key goes where it was meant for, and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("capsule/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections(0);
        if self.is_local {
            config = config.proxy(None);
        }
        let agent = Agent::new_with_config(config.build());
        let mut request = agent
            .post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "text/event-stream");
        for (name, value) in &self.headers {
            let mut value = header::HeaderValue::from_str(value).map_err(|_| {
                Failure::lasting(CodedError::new(
                    Code::ModelNotConfigured,
                    "the key cannot be sent",
                ))
            })?;
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        let response = request.send(self.body.as_slice()).map_err(|error| {
            let message = format!("{}: {error}", self.url);
            Failure::lasting(CodedError::new(Code::ModelUnavailable, message))
        })?;
        match response.status().as_u16() {
            200 => Ok(response),
            status => Err(status_failure(status, response)),
        }
    }
}

/// The failure that a status other than 200 reports.
fn status_failure(status: u16, response: Response<Body>) -> Failure {
    let wait = response.headers().get(header::RETRY_AFTER);
    let wait =
        wait.and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
    let mut body = Vec::new();
    let reader = response.into_body().into_reader();
    // Where reading fails, the message holds the part that was read.
    let _ = reader.take(limits::MODEL_ERROR_BYTES).read_to_end(&mut body);
    let text = serde_json::from_slice::<Value>(&body).ok().and_then(|value| error_text(&value));
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
    let is_too_long = ["context_length", "context length", "context size", "prompt is too long"]
        .iter()
        .any(|words| {
            text.contains(words) || body.windows(words.len()).any(|bytes| bytes == words.as_bytes())
        });
    let code = match status {
        401 | 403 => Code::ModelKeyRefused,
        404 => Code::ModelUnknown,
        400 | 413 | 422 if is_too_long || status == 413 => Code::ModelContextFull,
        429 => Code::ModelRateLimited,
        500.. => Code::ModelUnavailable,
        _ => Code::ModelProtocol,
    };
    let text = excerpt(text.trim(), SHOWN_CHARS).into_owned();
    let message = match text.is_empty() {
        true => format!("the server answered with status {status}"),
        false => format!("the server answered with status {status}: {text}"),
    };
    let problem = CodedError::new(code, message).with_suggestion(code.next_step());
    let passes = matches!(code, Code::ModelRateLimited | Code::ModelUnavailable);
    Failure { problem, passes, wait }
}

fn protocol_failure(message: &str) -> Failure {
    Failure::lasting(CodedError::new(Code::ModelProtocol, message))
}
