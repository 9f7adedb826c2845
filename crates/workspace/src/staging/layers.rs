//! The two layers of a staged workspace: what it was, and what a run changes.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use capsule_core::confinement::ChangeLimits;
use rustix::fs::OFlags;

use crate::resolve::{LookupError, Workspace};

/// How a folder is opened to be read.
pub(super) const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The layers of a staged workspace.
#[derive(Debug)]
pub(super) struct StagingLayers {
    /// The workspace as it is, beneath the changes.
    pub(super) lower: Rc<Workspace>,
    /// The folder that the kernel lays over it, or that is shown in its place.
    pub(super) upper: OwnedFd,
    /// Whether what is changed there looks otherwise.
    pub(super) stamps_are_reliable: bool,
    /// How much the run may change.
    pub(super) limits: Cell<ChangeLimits>,
}

impl StagingLayers {
    /// Opens a folder among the changes, without following any link.
    pub(super) fn open_upper(&self, path: impl AsRef<OsStr>) -> Result<OwnedFd, LookupError> {
        self.lower.open_plain(self.upper.as_fd(), path.as_ref(), DIRECTORY_FLAGS)
    }

    /// Opens a folder of the workspace beneath them, without following any link.
    pub(super) fn open_lower(&self, path: impl AsRef<OsStr>) -> Result<OwnedFd, LookupError> {
        self.lower.open_plain(self.lower.root(), path.as_ref(), DIRECTORY_FLAGS)
    }
}
