//! Repositories that are not called `.git`: git takes orders from a folder for what is in it.

use capsule_core::path::WorkspacePath;
use capsule_core::path_aliases::PathAliases;

use crate::workspace::pointer::SHARED;

/// The name of a repository's folder, or of a file that says where that folder is.
pub(crate) const GIT: &str = ".git";
/// What git looks for in a folder before it takes orders from there.
pub(crate) const PARTS: [&str; 3] = [HEAD, "objects", "refs"];
/// The one of them without which there is none.
pub(super) const HEAD: &str = "HEAD";

/// Whether a folder is a repository, by what it has.
pub(crate) fn is_whole(has: impl Fn(&str) -> bool) -> bool {
    // The working tree of another repository has the rest in that one's folder.
    has(HEAD) && (has(SHARED) || PARTS.into_iter().all(has))
}

/// The repositories that a path lies in, each by the name that rules know: what is in one goes by that
/// name, too.
pub(crate) fn around(
    path: &WorkspacePath,
    has: impl Fn(&WorkspacePath, &str) -> bool,
) -> PathAliases {
    let mut orders = PathAliases::default();
    for folder in path.ancestors().skip(1).filter(|folder| folder.name() != Some(GIT)) {
        if is_whole(|part| has(&folder, part)) {
            orders.add_alias(&folder.join(GIT), &folder);
        }
    }
    orders
}
