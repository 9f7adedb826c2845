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
use capsule_runtime::{MaskedText, ModelTool, TokenCount};
use serde_json::Value;
use ureq::http::{Response, header};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

use crate::answer::{PartialAnswer, error_text};
use crate::message::{Message, ModelAnswer};
use crate::model::{AnswerPiece, Model, Prices, RequestError, TICK, Until};
use crate::provider::Provider;
use crate::sse::next_event;

/// The wait before the first repetition, where the server names none.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How many characters of a server's own words are shown.
const SHOWN_CHARS: usize = 500;

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

impl Model for Provider {
    fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    fn name(&self) -> &str {
        &self.model
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn prices(&self) -> Option<Prices> {
        self.prices
    }

    fn body(&self, instructions: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
        self.kind.body(&self.model, instructions, tools, messages)
    }

    fn ask(
        &self,
        body: &[u8],
        until: &Until<'_>,
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Result<(ModelAnswer, TokenCount), RequestError> {
        ask(self, body, until, on_piece)
    }
}

/// Sends a request, again where that may help, and reads the answer to its end.
fn ask(
    provider: &Provider,
    body: &[u8],
    until: &Until<'_>,
    on_piece: &mut dyn FnMut(AnswerPiece<'_>),
) -> Result<(ModelAnswer, TokenCount), RequestError> {
    let mut wait = FIRST_WAIT;
    for attempt in 0.. {
        let mut attempted = Attempt::new(provider);
        let failure = match attempted.run(body, until, on_piece)? {
            Ok((mut answer, tokens)) => {
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
        if !attempted.text.is_empty() {
            on_piece(AnswerPiece::Restart);
        }
        until.pause(pause)?;
        wait *= 2;
    }
    Err(RequestError::OutOfTime)
}

/// Masks the key that a server was given, and may repeat.
fn key_redactor(provider: &Provider) -> Redactor {
    Redactor::with(provider.key.as_slice(), &[])
}

/// A text of a server, which may repeat the key that it was given.
fn without_key(provider: &Provider, text: &str) -> String {
    let mut masked = 0;
    key_redactor(provider).text(text, &mut masked).into_owned()
}

/// One attempt of a request.
struct Attempt<'p> {
    provider: &'p Provider,
    masking: MaskedText,
    partial: PartialAnswer,
    /// The text so far, without the key.
    text: String,
    bytes: usize,
}

impl<'p> Attempt<'p> {
    fn new(provider: &'p Provider) -> Self {
        let masking = MaskedText::new(key_redactor(provider));
        let partial = PartialAnswer::default();
        Self { provider, masking, partial, text: String::new(), bytes: 0 }
    }

    fn run(
        &mut self,
        body: &[u8],
        until: &Until<'_>,
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Result<Result<(ModelAnswer, TokenCount), Failure>, RequestError> {
        let (sender, receiver) = sync_channel(8);
        let request = Request {
            url: self.provider.endpoint.to_string(),
            headers: self.provider.headers(),
            body: body.to_vec(),
            is_local: self.provider.is_local(),
        };
        std::thread::spawn(move || request.send(&sender));
        let mut heard = Instant::now();
        loop {
            until.check()?;
            match receiver.recv_timeout(TICK) {
                Ok(Ok(event)) => {
                    heard = Instant::now();
                    if let Err(failure) = self.take_event(&event, on_piece) {
                        return Ok(Err(failure));
                    }
                }
                Ok(Err(failure)) => return Ok(Err(failure)),
                // A server may keep the connection open behind its answer.
                Err(RecvTimeoutError::Timeout)
                    if self.partial.is_complete && heard.elapsed() >= limits::MODEL_LAST_EVENTS =>
                {
                    return Ok(Ok(self.finish(on_piece)));
                }
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < limits::MODEL_SILENCE => {}
                Err(RecvTimeoutError::Timeout) => {
                    let message = "the server sent nothing for too long";
                    let problem = CodedError::new(Code::ModelUnavailable, message);
                    return Ok(Err(Failure::lasting(problem)));
                }
                Err(RecvTimeoutError::Disconnected) if self.partial.is_complete => {
                    return Ok(Ok(self.finish(on_piece)));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let mut failure = protocol_failure("the stream ended before the answer did");
                    failure.passes = true;
                    return Ok(Err(failure));
                }
            }
        }
    }

    fn take_event(
        &mut self,
        event: &[u8],
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Result<(), Failure> {
        self.bytes += event.len();
        if self.bytes > limits::MODEL_ANSWER_BYTES || self.text.len() > limits::MODEL_TEXT_BYTES {
            return Err(protocol_failure("the answer is too long"));
        }
        self.provider.kind.read_event(&mut self.partial, event).map_err(Failure::lasting)?;
        let piece = self.masking.push(&std::mem::take(&mut self.partial.answer.text));
        self.show(&piece, on_piece);
        Ok(())
    }

    fn finish(&mut self, on_piece: &mut dyn FnMut(AnswerPiece<'_>)) -> (ModelAnswer, TokenCount) {
        let rest = self.masking.finish(false);
        self.show(&rest, on_piece);
        let PartialAnswer { answer, tokens, .. } = std::mem::take(&mut self.partial);
        (ModelAnswer { text: std::mem::take(&mut self.text), ..answer }, tokens)
    }

    fn show(&mut self, piece: &str, on_piece: &mut dyn FnMut(AnswerPiece<'_>)) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            on_piece(AnswerPiece::Text(piece));
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
