//! What a change looks like, line by line.

use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};

use capsule_base::limits;
use capsule_core::change::{Change, FileState};
use similar::TextDiff;

use super::state::Staging;
use crate::change_path::split_parent;
use crate::node;
use crate::resolve::LookupError;

/// How many lines around a difference are shown.
const CONTEXT_LINES: usize = 3;

impl Staging {
    /// The lines in which a changed file differs, as a unified diff without its head; none where it
    /// is no text, too large to be shown, or no longer what was recorded.
    #[must_use]
    pub fn diff(&self, change: &Change) -> Option<String> {
        let (folder, name) = split_parent(&change.path);
        let before = recorded_text(|| self.open_lower(folder), name, change.before.as_ref())?;
        let after = recorded_text(|| self.open_upper(folder), name, change.after.as_ref())?;
        let diff = TextDiff::from_lines(&before, &after);
        Some(diff.unified_diff().context_radius(CONTEXT_LINES).to_string())
    }
}

/// The text of a regular file that is what the record says; nothing where nothing stands.
fn recorded_text(
    folder: impl FnOnce() -> Result<OwnedFd, LookupError>,
    name: &str,
    recorded: Option<&FileState>,
) -> Option<String> {
    let Some(recorded) = recorded else { return Some(String::new()) };
    let FileState::File { bytes, .. } = recorded else { return None };
    if *bytes > limits::WRITE_BYTES {
        return None;
    }
    let folder = folder().ok()?;
    let stat = node::stat_optional(folder.as_fd(), name).ok()??;
    if node::read_node(folder.as_fd(), name, &stat).ok()? != *recorded {
        return None;
    }
    let mut text = String::new();
    let file = node::open_regular(folder.as_fd(), name, &stat).ok()?;
    file.take(limits::WRITE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
