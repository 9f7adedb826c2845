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
mod history;
mod id;
mod index;
mod inflate;
mod layout;
mod loose;

mod object;
mod own;
mod pack;
mod parts;
mod refs;
mod review;
mod snapshot;

use std::io;

use capsule_base::path::WorkspacePath;
use capsule_core::change::Change;

use crate::control_files::{GIT_NAME, has_repository_parts};
use crate::resolve::Workspace;
use files::{Disk, Files as _};
use id::Format;
use index::Index;
use layout::{Part, part};

pub(crate) use files::RunChanges;
pub use review::Reviewed;
pub(crate) use review::review;
pub use snapshot::RepositorySnapshot;

/// What keeps paths from being changed.
pub trait Protects {
    /// Why a change may not be made, if it may not.
    fn refuse(&self, change: &Change) -> Option<String>;

    /// Whether a protected path begins with this one.
    fn reaches(&self, path: &WorkspacePath) -> bool;
}

/// Why something cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw(String);

impl Flaw {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn io(why: &io::Error) -> Self {
        Self(why.to_string())
    }
}

/// What an index is called.
pub(crate) const INDEX: &str = "index";

/// Whether two indexes hold the same entries, however the files looked when somebody last compared them.
pub(crate) fn is_same_index(one: &[u8], other: &[u8]) -> bool {
    [Format::Sha1, Format::Sha256].into_iter().any(|format| {
        let read = |bytes| Index::parse(format, bytes).ok();
        read(one).zip(read(other)).is_some_and(|(one, other)| one == other)
    })
}

/// Why a tool that writes files does not change what stands at a path: git keeps it there, and git alone
/// changes it. Texts are open, and what invariants protect they judge themselves.
pub(crate) fn keeps(workspace: &Workspace, path: &WorkspacePath) -> Option<String> {
    let disk = Disk { workspace, root: workspace.root() };
    let is_repository =
        |item: &WorkspacePath| has_repository_parts(|part| disk.stands(item.join(part).as_str()));
    let folder = path.ancestors().skip(1).find(is_repository)?;
    let depth = folder.components().count();
    let name: Vec<&str> = path.components().skip(depth).collect();
    let is_open = match part(Format::Sha1, &name.join("/")) {
        Part::Text | Part::Control | Part::Leftover => true,
        // A repository that is not called so may have other files beside it.
        Part::Unknown => folder.name() != Some(GIT_NAME),
        _ => false,
    };
    (!is_open)
        .then(|| format!("git keeps `{path}` for itself, and no tool that writes files changes it"))
}

/// A path in a folder; the folder may be the whole workspace.
fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        _ => format!("{folder}/{path}"),
    }
}
