//! `capsule redact`: masks what looks like a secret, from standard input to standard output.

use std::io::{self, Read as _, Write as _};

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_redact::{MaskingStream, Redactor, SecretFinding};
use serde_json::json;

use crate::failure::{Failure, stdout_failure};
use crate::screen::Screen;

/// How much is read at once.
const READ_BYTES: usize = 256 << 10;

pub(crate) fn run(screen: &Screen) -> Result<u8, Failure> {
    let redactor = Redactor::builtin();
    let mut stream = match screen.json {
        true => MaskingStream::with_findings(redactor),
        false => MaskingStream::new(redactor),
    };
    let mut input = io::stdin().lock();
    let mut piece = vec![0; READ_BYTES];
    let mut clean = Vec::new();
    loop {
        let read = match input.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other.map_err(stdin_failure)?,
        };
        clean.clear();
        match piece.get(..read) {
            Some(bytes) if !bytes.is_empty() => stream.push(bytes, &mut clean),
            _ => stream.finish(false, &mut clean),
        }
        if screen.json {
            stream
                .take_findings()
                .iter()
                .try_for_each(|finding| screen.print_json_line(&finding_json(finding)))?;
        } else {
            let mut out = io::stdout().lock();
            out.write_all(&clean).and_then(|()| out.flush()).map_err(stdout_failure)?;
        }
        if read == 0 {
            return Ok(0);
        }
    }
}

/// What is told of a secret: everything but the secret.
fn finding_json(finding: &SecretFinding) -> serde_json::Value {
    json!({
        "kind": finding.kind,
        "rule": finding.rule,
        "offset": finding.offset,
        "line": finding.line,
        "column": finding.column,
        "length": finding.length,
    })
}

fn stdin_failure(error: io::Error) -> Failure {
    CodedError::new(Code::Usage, format!("standard input cannot be read: {error}")).into()
}
