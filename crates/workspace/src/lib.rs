//! `workspace` holds files and decides nothing.
//!
//! It resolves paths inside a workspace and holds them by descriptors ([`Workspace`]), finds what must not be
//! seen ([`HiddenPaths`]) and by which other names the host reads its configuration and hooks, collects the
//! changes of a run ([`Staging`]), makes changes ([`StagedApply`], [`AtomicWrite`], [`Deletion`]) and keeps
//! backups to undo them ([`BackupStore`], [`UndoPlan`]).
//!
//! What this crate must not do: judge whether a call may act, take a permit, start a process, mount anything,
//! or open the store. A policy's predicates are handed in and asked; mounting is the trait [`MountStaging`],
//! which `tools` implements over the sandbox; what a run records goes through [`BackupLog`].

mod backup;
mod cancel;
mod change;
mod change_path;
mod change_set;
mod command_words;
mod control_files;
mod directory_entries;
mod encoding;
pub mod git_config;
mod git_preferences;
mod hidden_paths;
mod line_count;
mod node;
mod outside_repository;
mod path_facts;
pub mod path_problem;
mod repository;
mod resolve;
mod script_text;
mod staging;
mod store_files;
pub mod system;
mod temporary_names;
mod walk;

pub use backup::{BackupLog, BackupReader, BackupStore, UndoRecord};
pub use cancel::Cancel;
pub use change::{
    AppliedChanges, AtomicWrite, DeleteTarget, Deletion, Restoration, StagedApply, UndoEntry,
    UndoPlan, UndoStatus, is_half_applied, replaced_size,
};
pub use change_set::ChangeSet;
pub use directory_entries::{new_buffer, read_entries};
pub use encoding::{DecodedText, TextEncoding};
pub use git_preferences::{GitAliases, GitPreferences};
pub use hidden_paths::{HiddenPaths, HiddenPathsError, HidePredicate, Stand, UserVariables, names};
pub use line_count::changed_line_counts;
pub use outside_repository::OutsideRepository;
pub use path_facts::{look_up, look_up_entry};
pub use repository::{LinkedTrees, Protects, RepositorySnapshot, Reviewed, SplitRepositories};
pub use resolve::{
    EntryLookup, FoundPath, LinkChain, LookupError, MissingEntry, NamedEntry, PathLookup,
    Workspace, file_type, same_file, workspace_path,
};
pub use staging::{MountError, MountStaging, Staging, StagingArea, StagingSetup};
pub use store_files::store_names;
pub use temporary_names::has_apply_name;
pub use walk::{Visitor, WalkStep, WalkedEntry, open_directory, walk};
