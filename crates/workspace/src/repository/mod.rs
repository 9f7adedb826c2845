//! The database of a git repository is a second working tree: what an index, an object, a reference or a
//! note of git's own says is what stands in the files after the next checkout, reset or stash, and what is
//! pushed. So what a run makes of it is compared with what was there, before it is applied.
//!
//! - What a file is to git says its name ([`layout`]); what is not known is not changed.
//! - An object is believed for its content alone ([`database`], [`loose`], [`pack`]), so none becomes
//!   another one.
//! - What names reach by then, and what the [`index`] holds, is compared path by path ([`compare`]) with what
//!   the user's own side had ([`own`]). A protected path may have no other content than that.
//! - What is computed from the rest ([`commit_graph`]) is compared with it.
//!
//! What cannot be read is refused. The reader is our own: it reads by descriptors and within bounds, refuses
//! what has two readings, and nothing that it misreads has the name that it was asked for (ADR 50).

mod commit_graph;
mod compare;
mod database;
mod files;
mod flaw;
mod history;
mod id;
mod index;
mod inflate;
mod layout;
mod linked_trees;
mod loose;
mod new_repositories;
mod object;
mod own;
mod pack;
mod parts;
mod refs;
mod reserved_path;
mod review;
mod snapshot;
mod split_repositories;
mod stopped_operation;

pub use compare::Protects;
pub(crate) use files::RunChanges;
pub(crate) use index::{INDEX, is_same_index, with_hidden_files, without_hidden_files};
pub(crate) use layout::is_shown_outside;
pub use linked_trees::LinkedTrees;
pub(crate) use reserved_path::reserved_path_reason;
pub use review::Reviewed;
pub(crate) use review::{linked_trees, review};
pub use snapshot::RepositorySnapshot;
pub use split_repositories::SplitRepositories;
