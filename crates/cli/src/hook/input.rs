//! What a host passes: one JSON object on standard input, bounded, with one reading.

use std::io::Read;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::{json, limits};
use capsule_core::outcome::CodedError;
use serde_json::{Map, Value};

use crate::hook::dialect::Dialect;

/// A call that a host is about to make.
#[derive(Debug)]
pub(crate) struct HookInput {
    /// The session of the host.
    pub(crate) session: String,
    /// The directory that the host works in.
    pub(crate) cwd: PathBuf,
    /// The tool, by the host's name.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) args: Map<String, Value>,
}

impl HookInput {
    /// Reads it.
    ///
    /// # Errors
    /// When it is too long, no JSON object, of another event, or lacks something.
    pub(crate) fn read(from: impl Read, dialect: &Dialect) -> Result<Self, CodedError> {
        let most = limits::HOOK_INPUT_BYTES;
        let mut bytes = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        from.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| invalid_input(format!("cannot be read: {error}")))?;
        if bytes.len() > most {
            return Err(invalid_input(format!("has more than {most} bytes")));
        }
        let read = json::parse(&bytes).map_err(|error| invalid_input(error.message))?;
        let Value::Object(mut object) = read else {
            return Err(invalid_input("is no JSON object"));
        };
        let mut take = |name: &str| match object.remove(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            _ => Err(invalid_input(format!("has no `{name}`"))),
        };
        let event = take("hook_event_name")?;
        if event != dialect.event {
            let message =
                format!("is of the event `{event}`, and only `{}` is judged", dialect.event);
            return Err(invalid_input(message));
        }
        let (session, cwd, tool) = (take("session_id")?, take("cwd")?, take("tool_name")?);
        if !Path::new(&cwd).is_absolute() {
            return Err(invalid_input("has a `cwd` that is not absolute"));
        }
        match object.remove("tool_input") {
            Some(Value::Object(args)) => Ok(Self { session, cwd: cwd.into(), tool, args }),
            _ => Err(invalid_input("has no object `tool_input`")),
        }
    }

    /// The text of the first of these arguments that is there.
    pub(crate) fn text(&self, names: &[&str]) -> Option<&str> {
        text(&self.args, names)
    }
}

/// The text of the first of these arguments that is there.
pub(crate) fn text<'a>(args: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| args.get(*name)?.as_str())
}

pub(crate) fn invalid_input(why: impl std::fmt::Display) -> CodedError {
    CodedError::new(Code::HookInput, format!("the input of the hook {why}"))
}
