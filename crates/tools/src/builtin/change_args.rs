//! What the tools share that write, above all those that apply changes and undo them.

use std::time::{Duration, Instant};

use capsule_base::limits;
use capsule_core::change::Change;
use capsule_core::lifecycle::Permit;
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::Restrictions;
use capsule_core::undo::NoUndoReason;
use capsule_workspace::replaced_size;
use serde_json::{Map, Value};

use crate::fault::wrong_permit_outcome;
use crate::tool::args::{invalid_args, text_arg};

/// The changes that the argument `changes` holds as JSON, by their paths.
pub(super) fn parse_changes(args: &Map<String, Value>) -> Result<Vec<Change>, CodedError> {
    let changes = text_arg(args, "changes").unwrap_or_default();
    let mut changes: Vec<Change> = serde_json::from_str(changes)
        .map_err(|error| invalid_args(format!("`changes` cannot be read: {error}")))?;
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// Why what the changes replace cannot be kept for an undo, if it cannot.
pub(super) fn backup_refusal(changes: &[Change]) -> Option<NoUndoReason> {
    let bytes = changes.iter().filter_map(replaced_size).fold(0, u64::saturating_add);
    (bytes > limits::UNDO_BYTES).then_some(NoUndoReason::TooLarge { bytes })
}

/// Changes files by a permit, until its time is over.
pub(super) fn write_by_permit(
    permit: &Permit<'_>,
    work: impl FnOnce(Instant) -> Result<Output, CodedError>,
) -> Outcome {
    let Restrictions::Write { timeout_ms } = *permit.restrictions() else {
        return wrong_permit_outcome();
    };
    match work(Instant::now() + Duration::from_millis(timeout_ms)) {
        Ok(output) => Outcome::done(output),
        Err(problem) => Outcome::failed(problem),
    }
}
