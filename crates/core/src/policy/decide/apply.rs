//! Changes that a person wants to have in the workspace: those of a staged one, or what stood there
//! before.

use alloc::format;
use alloc::string::String;

use crate::change::Change;
use crate::policy::decide::check::Finding;
use crate::policy::model::Policy;
use crate::policy::restrictions::check_unprotected;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_redact::excerpt;

/// What stands in the way of the first change that cannot be made, by whether its `path` may be and by
/// the invariants. All of them are, or none.
pub(super) fn check_changes(
    policy: &Policy,
    changes: &[Change],
    path: impl Fn(&Change) -> Result<WorkspacePath, String>,
) -> Option<Finding> {
    let judge = |change: &Change| match &change.refused {
        Some(why) => Err(why.clone()),
        None => path(change).and_then(|path| check_unprotected(policy, change, &path)),
    };
    if let Some((path, why)) =
        changes.iter().find_map(|change| Some((&change.path, judge(change).err()?)))
    {
        let path = excerpt(path, limits::QUOTED_CHARS);
        return Some(Finding::deny(Code::ChangeRefused, format!("`{path}`: {why}")));
    }
    // A person who said yes took the question away.
    let asked = changes.iter().find_map(|change| change.asked.clone())?;
    Some(Finding::deny(Code::ChangeAsked, asked))
}
