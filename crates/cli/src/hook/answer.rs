//! The answer of a hook in the form of its host.

use capsule_base::code::Responsible;
use capsule_base::escape;
use capsule_core::outcome::CodedError;
use serde_json::{Map, Value};

use crate::hook::dialect::Dialect;

/// What a host is told about a call.
#[derive(Debug)]
pub(crate) enum HookAnswer {
    /// Nothing: the host does what it would do without a hook.
    Silent,
    /// The call may be made as it is.
    Allow,
    /// The call may be made with these arguments.
    Rewrite(Map<String, Value>),
    /// The call may not be made, for this reason.
    Deny(String),
}

impl HookAnswer {
    /// The refusal of a call, in words for a model.
    pub(crate) fn denial(problem: &CodedError) -> Self {
        let mut text = format!("Capsule denies this call [{}]: {}", problem.code, problem.message);
        let way = problem.suggestion.as_deref().unwrap_or(problem.code.next_step());
        text.push_str(&format!(". Instead: {way}"));
        if !text.ends_with('.') {
            text.push('.');
        }
        text.push_str(match problem.code.responsible() {
            Responsible::Policy | Responsible::Person => " This is the user's policy, not a fault:",
            _ => " What cannot be judged is not allowed:",
        });
        text.push_str(" do not look for another way to do the same thing.");
        Self::Deny(escape::block(&text).into_owned())
    }

    /// The text for the host's standard input; none where a form of the table is no JSON.
    pub(crate) fn render(&self, dialect: &Dialect) -> Option<String> {
        let (form, value) = match self {
            Self::Silent => return Some(String::new()),
            Self::Allow => (dialect.allow, Value::Null),
            Self::Rewrite(args) => (dialect.rewrite, Value::Object(args.clone())),
            Self::Deny(reason) => (dialect.deny, Value::from(reason.as_str())),
        };
        if form.is_empty() {
            return Some(String::new());
        }
        let mut answer: Value = serde_json::from_str(form).ok()?;
        fill(&mut answer, &value);
        Some(format!("{answer}\n"))
    }
}

/// Puts a value in the place of the variable of a form.
fn fill(form: &mut Value, value: &Value) {
    match form {
        Value::String(text) if text == "$reason" || text == "$input" => *form = value.clone(),
        Value::Object(map) => map.values_mut().for_each(|part| fill(part, value)),
        _ => {}
    }
}
