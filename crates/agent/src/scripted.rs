//! A model that gives answers which are known before.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::{ModelTool, TokenCount};
use serde_json::Value;

use crate::message::{Message, ModelAnswer};
use crate::model::{AnswerPiece, Model, Prices, RequestError, Until};
use crate::provider::ProviderKind;

/// A model that gives one answer after the other, whatever it is asked. It needs no server.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    answers: RefCell<VecDeque<ModelAnswer>>,
    pace: Duration,
}

impl ScriptedModel {
    /// A model of this name with these answers. Each word of a text takes `pace`.
    #[must_use]
    pub fn new(name: &str, answers: impl IntoIterator<Item = ModelAnswer>, pace: Duration) -> Self {
        let answers = RefCell::new(answers.into_iter().collect());
        Self { name: name.to_owned(), answers, pace }
    }

    /// How many answers it has not given.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.answers.borrow().len()
    }
}

impl Model for ScriptedModel {
    fn endpoint(&self) -> &'static str {
        "demo:"
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> u64 {
        limits::MODEL_WINDOW
    }

    fn prices(&self) -> Option<Prices> {
        Some(Prices::default())
    }

    fn body(&self, instructions: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
        ProviderKind::OpenAi.body(&self.name, instructions, tools, messages)
    }

    fn ask(
        &self,
        _: &[u8],
        until: &Until<'_>,
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Result<(ModelAnswer, TokenCount), RequestError> {
        until.check()?;
        let answer = self.answers.borrow_mut().pop_front().ok_or_else(|| {
            let message = format!("the script of `{}` has come to its end", self.name);
            RequestError::Failed(CodedError::new(Code::ModelUnavailable, message))
        })?;
        for word in answer.text.split_inclusive(' ') {
            until.pause(self.pace)?;
            on_piece(AnswerPiece::Text(word));
        }
        Ok((answer, TokenCount { input: Some(0), output: Some(0) }))
    }
}
