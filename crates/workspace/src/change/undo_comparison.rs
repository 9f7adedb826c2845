//! Compares what stands at a path with what a call left there, and with what an undo brings back.

use capsule_core::change::{Change, FileState};

/// Whether what stands there is what the call left.
pub(super) fn is_left(change: &Change, now: Option<&FileState>) -> bool {
    match (&change.before, now) {
        // What the call made anew has the permissions that the user's mask left it.
        (Some(left), Some(now)) if change.after.is_none() => left.same_except_mode(now),
        (left, now) => left.as_ref() == now,
    }
}

/// Whether what stands there is what is to come back.
pub(super) fn is_before(change: &Change, now: Option<&FileState>) -> bool {
    let now = now.map(|now| Change { before: Some(now.clone()), ..Change::default() });
    now.and_then(|change| change.reverted().after) == change.after
}
