//! Changes of a staged workspace that a person wants to have in the workspace itself.

use alloc::format;

use crate::change::Change;
use crate::code::Code;
use crate::limits;
use crate::policy::bounds::{sound, unprotected};
use crate::policy::decide::Finding;
use crate::policy::model::Policy;
use crate::redact::excerpt;

/// What stands in the way of the first change that cannot be applied. All of them are, or none.
pub(super) fn check(policy: &Policy, changes: &[Change]) -> Option<Finding> {
    let judge = |change: &Change| match &change.refused {
        Some(why) => Err(why.clone()),
        None => sound(change).and_then(|path| unprotected(policy, change, &path)),
    };
    let (path, why) =
        changes.iter().find_map(|change| Some((&change.path, judge(change).err()?)))?;
    Some(Finding::deny(
        Code::ChangeRefused,
        format!("`{}`: {why}", excerpt(path, limits::QUOTED_CHARS)),
    ))
}
