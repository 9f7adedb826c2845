//! Repositories that are not called `.git`: git takes orders from a folder for what is in it.

use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;

use crate::control_files::git_pointer::COMMONDIR;

/// The name of a repository's folder, or of a file that says where that folder is.
pub(crate) const GIT_NAME: &str = ".git";
/// What git looks for in a folder before it takes orders from there.
pub(crate) const REPOSITORY_PARTS: [&str; 3] = [HEAD, "objects", "refs"];
/// The one of them without which there is none.
pub(super) const HEAD: &str = "HEAD";

/// Whether a folder is a repository, by what it has.
pub(crate) fn has_repository_parts(has: impl Fn(&str) -> bool) -> bool {
    // The working tree of another repository has the rest in that one's folder.
    has(HEAD) && (has(COMMONDIR) || REPOSITORY_PARTS.into_iter().all(has))
}

/// The repositories that a path lies in, each by the name that rules know: what is in one goes by that
/// name, too.
pub(crate) fn enclosing_repositories(
    path: &WorkspacePath,
    has: impl Fn(&WorkspacePath, &str) -> bool,
) -> PathAliases {
    let mut aliases = PathAliases::default();
    for folder in path.ancestors().skip(1).filter(|folder| folder.name() != Some(GIT_NAME)) {
        if has_repository_parts(|part| has(&folder, part)) {
            aliases.add_alias(&folder.join(GIT_NAME), &folder);
        }
    }
    aliases
}
