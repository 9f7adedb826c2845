//! Calls from a file: one `{"id", "tool", "args"}` a line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use capsule_base::limits;
use serde_json::{Value, json};

use crate::failure::{Failure, usage_failure};

/// A call of a batch.
#[derive(Debug)]
pub(super) struct BatchCall {
    pub(super) id: Value,
    pub(super) tool: String,
    pub(super) args: Value,
}

/// Visits the calls of a file in their order, `-` being standard input. A line that is no call is
/// visited as what is wrong with it.
pub(super) fn each_call(
    path: &Path,
    mut visit: impl FnMut(Result<BatchCall, String>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unread = |error: std::io::Error| {
        usage_failure(format!("`{}` cannot be read: {error}", path.display()))
    };
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(unread)?)
    };
    let mut lines = BufReader::new(input);
    let mut line = Vec::new();
    let most = u64::try_from(limits::ARGUMENT_BYTES).unwrap_or(u64::MAX);
    let mut number = 0_u64;
    loop {
        line.clear();
        number += 1;
        let read = lines.by_ref().take(most).read_until(b'\n', &mut line).map_err(unread)?;
        if read == 0 {
            return Ok(());
        }
        // A line that is too long is one line, and is read to its end.
        if !line.ends_with(b"\n") && u64::try_from(read) == Ok(most) {
            let rest = lines.skip_until(b'\n').map_err(unread)?;
            line.truncate(if rest > 0 { 0 } else { read });
        } else if line.trim_ascii().is_empty() {
            continue;
        }
        visit(parse_call(&line).map_err(|message| format!("line {number}: {message}")))?;
    }
}

fn parse_call(line: &[u8]) -> Result<BatchCall, String> {
    if line.is_empty() {
        return Err(format!("it is longer than {} bytes", limits::ARGUMENT_BYTES));
    }
    let value = capsule_base::json::parse(line).map_err(|error| error.message)?;
    let tool = value.get("tool").and_then(Value::as_str).ok_or("it names no `tool`")?;
    let args = value.get("args").cloned().unwrap_or_else(|| json!({}));
    let id = value.get("id").cloned().unwrap_or(Value::Null);
    Ok(BatchCall { id, tool: tool.to_owned(), args })
}
