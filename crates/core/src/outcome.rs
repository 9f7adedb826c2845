//! What came of a call.
//!
//! A tool hands over raw bytes. They become text at one place only, [`Output::deliver`], after
//! everything that looks like a credential was masked: what is recorded, shown and handed to a
//! model is the same, so a replay stays exact.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::change::Change;
use crate::confinement::Enforcement;
use capsule_base::code::{Code, FailureClass, Responsible};
use capsule_redact::{Redactor, TextPiece};

/// How a call that was allowed ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It did what was asked.
    Done,
    /// It could not.
    Failed,
    /// It met something on its way that the policy rules out, such as a redirect to a private
    /// address.
    Refused,
    /// It was cancelled.
    Cancelled,
    /// It took longer than it may.
    TimedOut,
}

/// What a caller is told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It went as asked.
    Ok,
    /// It was ruled out or declined.
    Denied,
    /// The tool could not do it.
    ToolError,
    /// The runtime could not do it.
    RuntimeError,
}

capsule_base::words! {
    Status::name:
    Ok = "ok", Denied = "denied", ToolError = "tool_error", RuntimeError = "runtime_error",
}

impl From<FailureClass> for Status {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Denied => Self::Denied,
            FailureClass::ToolError => Self::ToolError,
            FailureClass::RuntimeError => Self::RuntimeError,
        }
    }
}

impl From<Code> for Status {
    fn from(code: Code) -> Self {
        match code.responsible() {
            Responsible::NoOne => Self::Ok,
            _ => code.class().into(),
        }
    }
}

/// Why a call did not go as asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodedError {
    /// What kind of problem.
    pub code: Code,
    /// What happened, as a fragment in lower case.
    pub message: String,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl CodedError {
    /// A problem. One that denies says what to do, if nothing better the code's own next step.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let denies = code.class() == FailureClass::Denied;
        let suggestion = denies.then(|| code.next_step().into());
        Self { code, message: message.into(), suggestion }
    }

    /// The same with a suggestion of its own.
    #[must_use]
    pub fn with_suggestion(self, suggestion: impl Into<String>) -> Self {
        Self { suggestion: Some(suggestion.into()), ..self }
    }
}

/// What came of a call that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Why it did not go as asked.
    pub problem: Option<CodedError>,
    /// What it gave; a failed call may have given something too.
    pub output: Output,
    /// What held it while it ran.
    pub enforcement: Enforcement,
    /// What it changed in a staged workspace.
    pub changes: Vec<Change>,
}

impl Outcome {
    /// A call in this process that did what was asked.
    #[must_use]
    pub const fn done(output: Output) -> Self {
        Self {
            ending: Ending::Done,
            problem: None,
            output,
            enforcement: Enforcement::InProcess,
            changes: Vec::new(),
        }
    }

    /// A call in this process that did not.
    #[must_use]
    pub fn failed(problem: CodedError) -> Self {
        let ending = match problem.code {
            Code::ExecCancelled => Ending::Cancelled,
            Code::ExecTimeout | Code::NetTimeout => Ending::TimedOut,
            code if code.class() == FailureClass::Denied => Ending::Refused,
            _ => Ending::Failed,
        };
        Self { ending, problem: Some(problem), ..Self::done(Output::default()) }
    }

    /// The same call with another end: what held it, what it said and what it changed stay.
    #[must_use]
    pub fn with_end(self, problem: CodedError) -> Self {
        let Self { output, enforcement, changes, .. } = self;
        Self { output, enforcement, changes, ..Self::failed(problem) }
    }

    /// The status that callers see.
    #[must_use]
    pub fn status(&self) -> Status {
        self.problem.as_ref().map_or(Status::Ok, |problem| problem.code.class().into())
    }
}

/// The fields of a result, still raw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output(Vec<(&'static str, FieldValue)>);

#[derive(Clone, Debug, PartialEq)]
enum FieldValue {
    /// A value that needs no decoding; texts in it are masked too.
    Plain(Value),
    /// Bytes: text where they are UTF-8, base64 under the other name where they are not.
    Bytes { piece: TextPiece, otherwise: &'static str },
    /// Bytes that are shown as base64 whatever they are.
    Binary(TextPiece),
    /// A recorded value, with how many places were masked when it was recorded.
    Recorded(Value, u64),
}

impl Output {
    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, FieldValue::Plain(value.into())));
        self
    }

    /// Adds a value to a list that is among the fields, unless it is in it already.
    #[must_use]
    pub fn push_unique(mut self, name: &'static str, value: Value) -> Self {
        let list = self.0.iter_mut().find_map(|(text, datum)| match datum {
            FieldValue::Plain(Value::Array(list)) if *text == name => Some(list),
            _ => None,
        });
        if let Some(list) = list.filter(|list| !list.contains(&value)) {
            list.push(value);
        }
        self
    }

    /// Adds bytes under `name` if they are text, else in base64 under `otherwise`.
    #[must_use]
    pub fn with_bytes(
        mut self,
        name: &'static str,
        base64_name: &'static str,
        bytes: impl Into<TextPiece>,
    ) -> Self {
        self.0.push((name, FieldValue::Bytes { piece: bytes.into(), otherwise: base64_name }));
        self
    }

    /// Adds bytes in base64.
    #[must_use]
    pub fn with_binary(mut self, name: &'static str, bytes: impl Into<TextPiece>) -> Self {
        self.0.push((name, FieldValue::Binary(bytes.into())));
        self
    }

    /// A result that is masked already: one that is served again, or that a tool masked itself.
    #[must_use]
    pub fn recorded(value: Value, masked: u64) -> Self {
        Self(alloc::vec![("", FieldValue::Recorded(value, masked))])
    }

    /// Masks what looks like a credential and turns bytes into text.
    #[must_use]
    pub fn deliver(self, redactor: &Redactor) -> DeliveredOutput {
        let mut map = Map::new();
        let mut masked = 0;
        for (name, datum) in self.0 {
            let (name, value) = match datum {
                FieldValue::Plain(value) => (name, redactor.value(value, &mut masked)),
                FieldValue::Binary(piece) => {
                    (name, STANDARD.encode(redactor.piece(&piece, &mut masked)).into())
                }
                FieldValue::Bytes { piece, otherwise } => {
                    let clean = redactor.piece(&piece, &mut masked);
                    match core::str::from_utf8(&clean) {
                        Ok(text) => (name, text.to_string().into()),
                        Err(_) => (otherwise, STANDARD.encode(&clean).into()),
                    }
                }
                FieldValue::Recorded(value, masked) => return DeliveredOutput { value, masked },
            };
            map.insert(name.to_string(), value);
        }
        DeliveredOutput { value: Value::Object(map), masked }
    }
}

/// A result as everyone sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveredOutput {
    /// The fields.
    pub value: Value,
    /// How many places were masked.
    pub masked: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_or_base64() {
        let redactor = Redactor::builtin();
        let output = Output::default()
            .with("exit_code", 0)
            .with("limits_reached", alloc::vec!["tmp"])
            .push_unique("limits_reached", "file-size".into())
            .push_unique("limits_reached", "tmp".into())
            .push_unique("exit_code", "tmp".into())
            .with_bytes("stdout", "stdout_base64", b"hello".to_vec())
            .with_bytes("stderr", "stderr_base64", b"\xff\xfe".to_vec());
        let delivered = output.deliver(&redactor);
        assert_eq!(delivered.value["stdout"], "hello");
        assert_eq!(delivered.value["limits_reached"], serde_json::json!(["tmp", "file-size"]));
        assert_eq!(delivered.value["exit_code"], 0);
        assert_eq!(delivered.value["stderr_base64"], "//4=");
        assert_eq!(delivered.value.get("stderr"), None);
    }

    #[test]
    fn endings_follow_codes() {
        let ending = |code| Outcome::failed(CodedError::new(code, "x")).ending;
        assert_eq!(ending(Code::NetPrivate), Ending::Refused);
        assert_eq!(ending(Code::ExecTimeout), Ending::TimedOut);
        assert_eq!(ending(Code::FileNotFound), Ending::Failed);
        assert_eq!(ending(Code::ExecCancelled), Ending::Cancelled);
    }
}
