//! The view of a run in the lower tier: nothing is built, only remembered. Each call works out anew
//! what it may open.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::first;
use super::ground::Ground;
use super::tmp::Tmp;
use crate::backend::first::{Built, Ending, First, Paths, Streams, line};
use crate::backend::place::{self, open_again};
use crate::executor::cgroup::Cgroups;
use crate::executor::sample;
use crate::kernel::{self, Birth};
use crate::protocol::{At as _, Enter, Failed, Refusal, Run, Staged, Step};
use crate::seccomp::Filter;

/// The first process of a call counts, too.
const OWN_PROCESSES: u64 = 1;

/// What a run sees, and what each call of it needs.
pub(crate) struct View {
    pub(super) abi: i32,
    pub(super) filter: Filter,
    pub(crate) cgroups: Cgroups,
    /// The workspace or its copy, and where it is: commands see it there.
    pub(super) workspace: (OwnedFd, PathBuf),
    /// Where the workspace and its copy are, which no rule for anything else may open.
    pub(super) judged: Vec<PathBuf>,
    /// Whether it is a copy, so that commands may change it.
    copied: bool,
    /// Programs from elsewhere, and folders of them.
    pub(super) programs: Vec<OwnedFd>,
    tmp: Tmp,
    /// The standard input of commands that are given none.
    pub(super) nothing: OwnedFd,
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
        let folder = open_again(place, Step::WorkspaceMoved)?;
        let workspace = (folder, place::path(&place.path).to_owned());
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
        let tmp = Tmp::make().at(Step::Tmp)?;
        let nothing =
            open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).at(Step::Device)?;
        let judged = vec![whole, workspace.1.clone()];
        Ok(View { abi, filter, cgroups, workspace, judged, copied, programs, tmp, nothing })
    }
}

impl View {
    /// The folder in which commands may write.
    pub(crate) fn tmp(&self) -> &Tmp {
        &self.tmp
    }

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
        self.clear()?;
        self.cgroups.bound(&run.limits, OWN_PROCESSES).at(Step::Cgroup)?;
        let (line, other_end) = line()?;
        // The kernel counts all processes of a user together, and none of root's.
        let counted = !geteuid().is_root() && !self.cgroups.bounds_processes();
        let others = counted.then(sample::tasks_of_user);
        let born = kernel::give_plain_birth(self.cgroups.born_into());
        let first = match born.at(Step::Birth)? {
            Birth::Child => first::live(self, (masks, built.writes), (&line, &other_end), others),
            Birth::Parent(pid, handle) => First::new(pid, handle, line, Ending::HungUp),
        };
        drop(other_end);
        first.order(run, streams, &self.nothing)?;
        Ok(first)
    }

    /// Ends what a call may have left behind, and empties its folder. Only where its first process
    /// was killed from outside is anything left to end.
    ///
    /// # Errors
    /// The folder cannot be emptied.
    pub(crate) fn clear(&mut self) -> Result<(), Failed> {
        kernel::end_children();
        self.tmp.empty().at(Step::Tmp)
    }
}
