//! The view of a run in the lower tier: nothing is built, only remembered. Each call works out anew
//! what it may open.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::first;
use super::ground::Ground;
use crate::backend::first::{Built, First, Paths, Streams};
use crate::backend::place::{self, open_again};
use crate::backend::plain::Seat;
use crate::protocol::{At as _, Enter, Failed, Refusal, Run, Staged, Step};
use crate::seccomp::Filter;

/// What a run sees, and what each call of it needs.
pub(crate) struct View {
    pub(in crate::backend) seat: Seat,
    walls: Walls,
    /// Whether the workspace is a copy, so that commands may change it.
    copied: bool,
}

/// What is around a call.
pub(super) struct Walls {
    pub(super) abi: i32,
    pub(super) filter: Filter,
    /// Where the workspace or its copy is: commands see it there.
    pub(super) place: PathBuf,
    /// Where the workspace and its copy are, which no rule for anything else may open.
    pub(super) judged: Vec<PathBuf>,
    /// Programs from elsewhere, and folders of them.
    pub(super) programs: Vec<OwnedFd>,
}

impl Ground {
    /// Remembers the workspace and the programs.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn enter(self, enter: &Enter) -> Result<View, Refusal> {
        let Self { abi, cgroups, filter } = self;
        let (place, copied) = match &enter.staging {
            None => (&enter.workspace, false),
            Some(Staged::Copied(copy)) => (copy, true),
            // Nothing can be laid over the workspace without mounts of one's own.
            Some(Staged::Overlay(_)) => {
                return Err(Failed { step: Step::Staging, errno: Errno::OPNOTSUPP }.into());
            }
        };
        let workspace = open_again(place, Step::WorkspaceMoved)?;
        let place = place::path(&place.path).to_owned();
        let mut programs = Vec::with_capacity(enter.programs.len());
        let whole = place::path(&enter.workspace.path).to_owned();
        for (target, place) in &enter.programs {
            let path = place::path(&place.path);
            if *target != place.path {
                // It could only appear elsewhere by a mount.
                return Err(Failed { step: Step::Program, errno: Errno::XDEV }.into());
            }
            let file = open_again(place, Step::ProgramMoved)?;
            let mode = fstat(&file).at(Step::Program)?.st_mode;
            let folder = FileType::from_raw_mode(mode) == FileType::Directory;
            if folder && (path.starts_with(&whole) || whole.starts_with(path)) {
                // A rule for it would open what is hidden of the workspace.
                return Err(Failed { step: Step::Program, errno: Errno::EXIST }.into());
            }
            programs.push(file);
        }
        let judged = vec![whole, place.clone()];
        let walls = Walls { abi, filter, place, judged, programs };
        Ok(View { seat: Seat::take(cgroups, workspace)?, walls, copied })
    }
}

impl View {
    /// Starts a command from which these paths are hidden.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        Paths { masks, direct }: Paths<'_>,
        run: &Run,
        built: Built,
        streams: &Streams,
    ) -> Result<First, Refusal> {
        if direct.is_some() {
            // What is protected could not be held without mounts of one's own.
            return Err(Failed { step: Step::Direct, errno: Errno::OPNOTSUPP }.into());
        }
        if built.writes && !self.copied {
            return Err(Failed { step: Step::Staging, errno: Errno::ROFS }.into());
        }
        let Self { seat, walls, .. } = self;
        let reach = (masks, built.writes);
        seat.spawn(run, streams, |seat, ends| first::live(seat, walls, reach, &ends))
    }
}
