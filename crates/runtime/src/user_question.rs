//! `user.ask`: a model asks the user what is meant. The answer is text, and no permission.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_core::tool::{
    ArgumentKind, Catalogue, ResultField, ToolArgument, ToolShape, ToolSignature,
};
use serde_json::Value;

/// The signature of `user.ask`. No policy names the tool, which can do nothing.
pub(crate) static SIGNATURE: ToolSignature = ToolSignature {
    id: "user.ask",
    model_name: "user_ask",
    aliases: &[],
    about: "Asks the user what is meant, where the task can be read in several ways. Permissions are not asked for here.",
    shape: ToolShape::Files,
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

/// The questions that a model may ask, beside the tools.
pub(crate) const QUESTIONS: Catalogue = Catalogue(&[&SIGNATURE]);

/// A question of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserQuestion {
    /// The question, masked; it may hold any characters.
    pub question: String,
    /// Likely answers, masked; they may hold any characters.
    pub choices: Vec<String>,
}

/// Shows a model's questions to a person.
pub trait QuestionPrompt {
    /// The person's answer; none where there is none.
    fn ask(&self, question: &UserQuestion) -> Option<String>;
}

impl UserQuestion {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// [`Code::ArgsInvalid`] where they do not fit, or are longer than a person can read.
    pub(crate) fn from_args(args: &Value) -> Result<Self, CodedError> {
        let args = SIGNATURE.check(args).map_err(|error| CodedError {
            code: Code::ArgsInvalid,
            message: error.message,
            suggestion: error.suggestion,
        })?;
        let question = args.get("question").and_then(Value::as_str).unwrap_or_default().trim();
        let choices = args.get("choices").and_then(Value::as_array).into_iter().flatten();
        let choices: Vec<String> = choices.filter_map(Value::as_str).map(str::to_owned).collect();
        let most = limits::QUESTION_CHARS;
        let is_long = |text: &str| text.chars().count() > most;
        let invalid = |message: String| Err(CodedError::new(Code::ArgsInvalid, message));
        if question.is_empty() {
            return invalid("`question` is empty".to_owned());
        }
        if is_long(question) || choices.iter().any(|choice| is_long(choice)) {
            return invalid(format!("a question and a choice have at most {most} characters each"));
        }
        if choices.len() > limits::QUESTION_CHOICES {
            let most = limits::QUESTION_CHOICES;
            return invalid(format!("a question has at most {most} choices"));
        }
        Ok(Self { question: question.to_owned(), choices })
    }
}
