//! A model as a conversation needs one: the way to the model does not matter.

use std::time::{Duration, Instant};

use capsule_core::outcome::CodedError;
use capsule_runtime::{Cancel, ModelTool, TokenCount};
use serde_json::Value;

use crate::message::{Message, ModelAnswer};

/// How often a request that goes on is asked whether it should.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A model that can be asked.
pub trait Model {
    /// The URL that is asked, without a key, as it is recorded.
    fn endpoint(&self) -> &str;

    /// The model's name.
    fn name(&self) -> &str;

    /// How many tokens a request and its answer may have together.
    fn window(&self) -> u64;

    /// The prices of the model; none where they are not known.
    fn prices(&self) -> Option<Prices> {
        None
    }

    /// The body of a request.
    fn body(&self, instructions: &str, tools: &[ModelTool], messages: &[Message]) -> Value;

    /// Sends a request, and tells of the pieces of the answer's text as they come. The text of the answer is what the
    /// pieces behind the last [`AnswerPiece::Restart`] make together.
    ///
    /// # Errors
    /// When there is no answer: the user or the time ends the request, or the model cannot be asked.
    fn ask(
        &self,
        body: &[u8],
        until: &Until<'_>,
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Result<(ModelAnswer, TokenCount), RequestError>;
}

/// A piece of an answer that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPiece<'p> {
    /// More text.
    Text(&'p str),
    /// The request is sent again: what came of its answer does not count.
    Restart,
}

/// The prices of a model, in millionths of a US dollar for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Tokens of requests.
    pub input: u64,
    /// Tokens of answers.
    pub output: u64,
}

impl Prices {
    /// The cost of a request and its answer, in millionths of a US dollar.
    #[must_use]
    pub fn cost(self, tokens: TokenCount) -> u64 {
        let part = |count: Option<u64>, price: u64| {
            let product = u128::from(count.unwrap_or(0)) * u128::from(price);
            product.div_ceil(1_000_000)
        };
        let cost = part(tokens.input, self.input) + part(tokens.output, self.output);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum RequestError {
    /// The user wants the turn to end.
    Cancelled,
    /// The time of the turn is over.
    OutOfTime,
    /// The model did not give one.
    Failed(CodedError),
}

/// When a request has to end before its answer.
#[derive(Debug)]
pub struct Until<'u> {
    /// Says that the user wants it to end.
    pub cancel: &'u Cancel,
    /// When its time is over.
    pub deadline: Instant,
}

impl Until<'_> {
    /// Whether a request may go on.
    ///
    /// # Errors
    /// When it may not.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.cancel.is_set() {
            return Err(RequestError::Cancelled);
        }
        if Instant::now() >= self.deadline { Err(RequestError::OutOfTime) } else { Ok(()) }
    }

    /// Waits.
    ///
    /// # Errors
    /// When the request may not go on.
    pub fn pause(&self, time: Duration) -> Result<(), RequestError> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}
