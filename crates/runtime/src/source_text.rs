//! The texts of policies and plans, as they are read from files.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::suggestion::closest;
use capsule_core::outcome::CodedError;
use capsule_policy::{SourceText, builtin_names, builtin_text};

use crate::realpath::real_path;

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// A file.
    File(PathBuf),
    /// One that this build carries.
    Builtin(String),
}

impl PolicySource {
    /// Reads `builtin:NAME` or a path.
    #[must_use]
    pub fn from_argument(text: &str) -> Self {
        match text.strip_prefix("builtin:") {
            Some(name) => Self::Builtin(name.into()),
            None => Self::File(text.into()),
        }
    }
}

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
                .with_suggestion(
                    "check the path; `capsule init` writes a starter as `.capsule/policy.yaml`",
                )
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

/// The text of a policy, and where its file really is.
///
/// # Errors
/// When there is none.
pub(crate) fn read_policy(
    source: &PolicySource,
) -> Result<(SourceText, Option<PathBuf>), CodedError> {
    match source {
        PolicySource::Builtin(name) => {
            let text = builtin_text(name).ok_or_else(|| {
                let message = format!("this build carries no policy `builtin:{name}`");
                let names: Vec<String> =
                    builtin_names().map(|name| format!("`builtin:{name}`")).collect();
                let suggestion = match closest(name, builtin_names()) {
                    Some(near) => format!("did you mean `builtin:{near}`?"),
                    None => format!("it carries {}", names.join(", ")),
                };
                CodedError::new(Code::PolicyMissing, message).with_suggestion(suggestion)
            })?;
            Ok((SourceText { name: format!("builtin:{name}"), text: text.into() }, None))
        }
        PolicySource::File(path) => {
            let text = read_text(path, limits::POLICY_BYTES, Code::PolicyUnreadable)?;
            let name = shown_name(&path.to_string_lossy());
            Ok((SourceText { name, text }, Some(real_path(path))))
        }
    }
}
