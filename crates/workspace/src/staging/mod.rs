//! A staged workspace: what a run changes is collected in a folder of ours, and the workspace stays
//! what it is until a person applies the changes.
//!
//! The kernel mounts that directory over the workspace, by the caller's [`MountStaging`]. Where it refuses
//! that, the directory becomes a copy of the workspace ([`workspace_copy`]), and what differs in it is what
//! changed. [`scan`] reads the changes out of it, and [`repository_check`] checks what is around them.
//! Whether a change may be made is judged outside of this crate; [`StagedApply`](crate::StagedApply) makes
//! changes in the workspace.

mod collect;
mod copy_changes;
mod diff;
mod directory;
mod excludes;
mod indexes;
mod layers;
mod mount;
mod refusals;
mod repository_check;
mod scan;
mod setup;
mod state;
mod workspace_copy;

pub(crate) use indexes::{is_index, read as read_index};
pub use mount::{MountError, MountStaging, StagingArea};
pub use setup::StagingSetup;
pub use state::Staging;
