//! The view of a run in the lower tier: nothing is built, only remembered. Each call works out anew
//! what it may open.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::access_rules::HiddenTree;
use super::call_confinement::CallConfinement;
use super::init_process;
use super::prepare::PreparedLandlock;
use crate::linux::backend::host_path::{self, reopen};
use crate::linux::backend::init_process::{CommandPaths, InitOptions, InitProcess, Streams};
use crate::linux::backend::no_namespaces::CallResources;
use crate::linux::protocol::{
    AtStep as _, CommandMessage, EnterRequest, ExecutorError, SetupError, StagingPaths, Step,
    ToolchainPath,
};

/// What a run sees, and what each call of it needs.
pub(crate) struct LandlockSandbox {
    pub(in crate::linux::backend) resources: CallResources,
    confinement: CallConfinement,
    /// Whether the workspace is a copy, so that commands may change it.
    copied: bool,
}

impl PreparedLandlock {
    /// Remembers the workspace and the programs.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn enter(self, enter: &EnterRequest) -> Result<LandlockSandbox, ExecutorError> {
        let Self { abi, cgroups, filter } = self;
        let (place, copied) = match &enter.staging {
            None => (&enter.workspace, false),
            Some(StagingPaths::Copied(copy)) => (copy, true),
            // Nothing can be laid over the workspace without mounts of one's own.
            Some(StagingPaths::Overlay(_)) => {
                return Err(SetupError { step: Step::Staging, errno: Errno::OPNOTSUPP }.into());
            }
        };
        let workspace = reopen(place, Step::WorkspaceMoved)?;
        let place = host_path::bytes_to_path(&place.path).to_owned();
        let mut programs = Vec::with_capacity(enter.programs.len());
        let whole = host_path::bytes_to_path(&enter.workspace.path).to_owned();
        for (target, place) in &enter.programs {
            let path = host_path::bytes_to_path(&place.path);
            if *target != place.path {
                // It could only appear elsewhere by a mount.
                return Err(SetupError { step: Step::Program, errno: Errno::XDEV }.into());
            }
            let file = reopen(place, Step::ProgramMoved)?;
            let mode = fstat(&file).at(Step::Program)?.st_mode;
            let folder = FileType::from_raw_mode(mode) == FileType::Directory;
            if folder && (path.starts_with(&whole) || whole.starts_with(path)) {
                // A rule for it would open what is hidden of the workspace.
                return Err(SetupError { step: Step::Program, errno: Errno::EXIST }.into());
            }
            programs.push((file, HiddenTree::default()));
        }
        for shown in &enter.toolchains {
            programs.extend(open_toolchain(shown)?);
        }
        let judged = vec![whole, place.clone()];
        let walls = CallConfinement {
            abi,
            filter,
            workspace_path: place,
            workspace_paths: judged,
            programs,
            git_files: enter.git_files.clone(),
        };
        Ok(LandlockSandbox {
            resources: CallResources::create(cgroups, workspace)?,
            confinement: walls,
            copied,
        })
    }
}

/// A directory or file of a toolchain, with what is hidden in it; none where a link leads to it, which
/// commands follow. Nothing is written there.
fn open_toolchain(shown: &ToolchainPath) -> Result<Option<(OwnedFd, HiddenTree)>, SetupError> {
    let path = host_path::bytes_to_path(&shown.path);
    let Some(place) = &shown.place else { return Ok(None) };
    if shown.path != place.path {
        let real = path.canonicalize().at(Step::Toolchain)?;
        return match real == host_path::bytes_to_path(&place.path) {
            true => Ok(None),
            false => Err(SetupError { step: Step::Toolchain, errno: Errno::XDEV }),
        };
    }
    let mut hidden = HiddenTree::default();
    shown.hidden.iter().for_each(|path| hidden.add(host_path::bytes_to_path(path)));
    Ok(Some((reopen(place, Step::ToolchainMoved)?, hidden)))
}

impl LandlockSandbox {
    /// Starts a command from which these paths are hidden.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        CommandPaths { hidden: masks, direct }: CommandPaths<'_>,
        run: &CommandMessage,
        built: InitOptions,
        streams: &Streams,
    ) -> Result<InitProcess, ExecutorError> {
        if direct.is_some() {
            // What is protected could not be held without mounts of one's own.
            return Err(SetupError { step: Step::Direct, errno: Errno::OPNOTSUPP }.into());
        }
        if built.writes && !self.copied {
            return Err(SetupError { step: Step::Staging, errno: Errno::ROFS }.into());
        }
        let Self { resources, confinement: walls, .. } = self;
        let reach = (masks, built.writes);
        resources.spawn(run, streams, |resources, ends| {
            init_process::run_init(resources, walls, reach, &ends)
        })
    }
}
