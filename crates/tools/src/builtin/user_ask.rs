//! `user.ask`: a model asks the user what is meant. The answer is text, and no permission.

use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::action::{Action, Facts};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::Restrictions;
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_redact::Redactor;
use serde_json::{Map, Value};

use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::host::QuestionPrompt;
use crate::tool::args::{invalid_args, text_arg};
use crate::tool::prepare::FailedOperation;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// The tool with which a model asks the user.
pub const QUESTION_TOOL: &str = "user.ask";

/// What `user.ask` is called, takes and gives.
pub static SIGNATURE: ToolSignature = ToolSignature {
    id: QUESTION_TOOL,
    model_name: "user_ask",
    aliases: &[],
    about: "Asks the user what is meant, where the task can be read in several ways. Permissions are not asked for here.",
    shape: ToolShape::User,
    capabilities: &[],
    arguments: &[
        ToolArgument {
            name: "question",
            kind: ArgumentKind::Text,
            required: true,
            about: "the question, in a sentence or two",
        },
        ToolArgument {
            name: "choices",
            kind: ArgumentKind::Argv,
            required: false,
            about: "likely answers; the user may give another one",
        },
    ],
    results: &[ResultField { name: "answer", about: "the user's words" }],
};

/// Asks the user.
#[derive(Clone, Copy, Debug)]
pub struct UserAsk;

impl Tool for UserAsk {
    fn signature(&self) -> &'static ToolSignature {
        &SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let question = text_arg(args, "question").unwrap_or_default().trim().to_owned();
        let choices = args.get("choices").and_then(Value::as_array).into_iter().flatten();
        let choices: Vec<String> = choices.filter_map(Value::as_str).map(str::to_owned).collect();
        let most = limits::QUESTION_CHARS;
        let is_long = |text: &String| text.chars().count() > most;
        if question.is_empty() {
            return Err(invalid_args("`question` is empty"));
        }
        if is_long(&question) || choices.iter().any(is_long) {
            let message = format!("a question and a choice have at most {most} characters each");
            return Err(invalid_args(message));
        }
        if choices.len() > limits::QUESTION_CHOICES {
            let most = limits::QUESTION_CHOICES;
            return Err(invalid_args(format!("a question has at most {most} choices")));
        }
        Ok(Action::AskUser { question, choices })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let operation: Box<dyn Operation> = match (action, context.questions) {
            (Action::AskUser { question, choices }, Some(prompt)) => Box::new(AskOperation {
                question: question.clone(),
                choices: choices.clone(),
                redactor: context.redactor.clone(),
                prompt: Rc::clone(prompt),
            }),
            (Action::AskUser { .. }, None) => {
                Box::new(FailedOperation(no_answer("no person can answer here")))
            }
            _ => Box::new(FailedOperation(wrong_action_problem())),
        };
        PreparedCall { facts: Facts::default(), operation }
    }
}

fn no_answer(why: &str) -> CodedError {
    CodedError::new(Code::UserNoAnswer, why).with_suggestion(Code::UserNoAnswer.next_step())
}

struct AskOperation {
    question: String,
    choices: Vec<String>,
    redactor: Redactor,
    prompt: Rc<dyn QuestionPrompt>,
}

impl Operation for AskOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Read { bytes, .. } = *permit.restrictions() else {
            return wrong_permit_outcome();
        };
        let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(limits::QUESTION_ANSWER_BYTES);
        let masked = |text: &String| self.redactor.text(text, &mut 0).into_owned();
        let choices: Vec<String> = self.choices.iter().map(masked).collect();
        let answer = self.prompt.ask(&masked(&self.question), &choices);
        let answer = answer.map(|answer| {
            let end = answer.floor_char_boundary(most);
            answer.get(..end).unwrap_or_default().trim().to_owned()
        });
        match answer.filter(|answer| !answer.is_empty()) {
            Some(answer) => Outcome::done(Output::default().with("answer", answer)),
            None => Outcome::failed(no_answer("the user gave no answer")),
        }
    }
}
