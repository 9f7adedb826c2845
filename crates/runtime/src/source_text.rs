//! The texts of policies and plans, as they are read from files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;

/// How the place of a text is shown in decisions and problems: by the file's own name, which is never
/// taken for one of ours.
#[must_use]
pub fn shown_name(path: &str) -> String {
    let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path);
    match name.starts_with("builtin:") && path.contains('/') {
        true => format!("./{name}"),
        false => name.to_owned(),
    }
}

/// Reads a text file that a person wrote: a regular file, UTF-8, not too large.
///
/// # Errors
/// With `code`; [`Code::PolicyMissing`] for a policy that is not there.
pub fn read_text(path: &Path, most: usize, code: Code) -> Result<String, CodedError> {
    let shown = path.display();
    let failed = |why: String| CodedError::new(code, format!("`{shown}` cannot be read: {why}"));
    let meta = path.metadata().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if code == Code::PolicyUnreadable => {
            CodedError::new(Code::PolicyMissing, format!("there is no policy at `{shown}`"))
                .with_suggestion("write a starter with `capsule init`")
        }
        _ => failed(error.to_string()),
    })?;
    if !meta.is_file() {
        return Err(failed("it is not a regular file".into()));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    file.take(limit.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|error| failed(error.to_string()))?;
    if text.len() > most {
        return Err(failed(format!("it has more than {most} bytes")));
    }
    String::from_utf8(text).map_err(|_| failed("it is not UTF-8".into()))
}
