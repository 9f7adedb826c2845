//! Control files: files from which programs of the host load configuration or hooks, besides those that an
//! invariant names.
//!
//! A protected name may be a link, or a file `.git` that says where the repository is. Their targets get
//! the protected names as aliases ([`PathAliases`]), and so do the parts of a [`repository`] with another
//! name than `.git`, and the files that the configuration of a repository names ([`git_config`]). They are
//! looked for when the workspace is first walked, in the workspace as the host has it, without staged changes.

mod candidates;
mod collector;
mod git_config;
pub(crate) mod git_pointer;
mod host_files;
mod link_trace;
mod mounts;
mod outer_repository;
mod repository;
mod user;

pub(crate) use candidates::{AliasCandidates, is_candidate};
pub(crate) use collector::collect_aliases;
pub(crate) use host_files::{PATH, VARIABLES};
pub(crate) use repository::{
    GIT_NAME, REPOSITORY_PARTS, enclosing_repositories, has_repository_parts,
};
pub(crate) use user::{Variables, relative_orders};
