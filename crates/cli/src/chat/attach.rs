//! Files that a person gives to the conversation, from wherever they are: a person chose them.

use std::io;
use std::path::Path;

use capsule_base::code::Code;
use capsule_base::units::show_size;
use capsule_base::{escape, limits};
use capsule_core::outcome::CodedError;

use crate::context::CliContext;

/// A file that waits for the next message.
#[derive(Clone, Debug)]
pub(crate) struct AttachedFile {
    /// Its absolute path.
    pub(crate) path: String,
    /// Its size in bytes when it was named.
    size: u64,
}

impl AttachedFile {
    /// The file of a name; `~/` is the home directory. Whether it may be given, and what it holds, is seen later.
    ///
    /// # Errors
    /// When there is no such file, or it is too large.
    pub(crate) fn named(name: &Path, ctx: &CliContext) -> Result<Self, CodedError> {
        let path = match name.strip_prefix("~") {
            Ok(rest) => ctx.home.join(rest),
            Err(_) => ctx.cwd.join(name),
        };
        let shown = path.display();
        let problem = |code, why: &str| CodedError::new(code, format!("`{shown}` {why}"));
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => problem(Code::FileNotFound, "is not there"),
            _ => problem(Code::FileSystem, &error.to_string()),
        };
        let real = path.canonicalize().map_err(missing)?;
        let found = real.metadata().map_err(missing)?;
        if !found.is_file() {
            return Err(problem(Code::FileNotRegular, "is no file"));
        }
        if found.len() > limits::ATTACHED_BYTES {
            let most = show_size(limits::ATTACHED_BYTES);
            let why = format!("has more than {most}, which is the most of an attached file");
            return Err(problem(Code::AttachedUnfit, &why));
        }
        let unreadable = |_| problem(Code::AttachedUnfit, "has a name that is no text");
        let path = real.into_os_string().into_string().map_err(unreadable)?;
        Ok(Self { path, size: found.len() })
    }

    /// The file with its size, for a screen.
    pub(crate) fn text(&self) -> String {
        format!("{} ({})", escape::line(&self.path), show_size(self.size))
    }
}
