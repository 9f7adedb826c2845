//! The arguments of a call, read by name.

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use serde_json::{Map, Value};

/// A text argument.
pub(crate) fn text_arg<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

/// A number argument.
pub(crate) fn number_arg(args: &Map<String, Value>, name: &str) -> Option<u64> {
    args.get(name).and_then(Value::as_u64)
}

/// A flag argument; no if left out.
pub(crate) fn flag_arg(args: &Map<String, Value>, name: &str) -> bool {
    args.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// A size argument: a number of bytes, or text with a unit.
pub(crate) fn size_arg(args: &Map<String, Value>, name: &str) -> Result<Option<u64>, CodedError> {
    let Some(value) = args.get(name) else { return Ok(None) };
    let size = value.as_u64().or_else(|| capsule_base::units::parse_size(value.as_str()?));
    size.map(Some).ok_or_else(|| invalid_args(format!("`{name}` is a size such as `10KB`")))
}

/// The problem with arguments that make no sense.
pub(crate) fn invalid_args(message: impl Into<String>) -> CodedError {
    CodedError::new(Code::ArgsInvalid, message)
}
