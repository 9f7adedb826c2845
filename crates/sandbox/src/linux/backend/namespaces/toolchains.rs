//! Toolchains and package caches in the view: read-only directories of the host, some of them below a layer
//! that takes what a call writes and vanishes with it.
//!
//! Package managers write locks, indexes and unpacked archives into their caches even where they only
//! read. The layer lets them, and nothing of it reaches the host or the next call.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::init_process::mount_memory;
use super::root::{self, Cover, READ_ONLY_ATTRIBUTES, Root, Submounts};
use super::workspace_mount::WorkspaceMount;
use super::{hidden_paths, overlay};
use crate::linux::backend::host_path::{self, reopen};
use crate::linux::backend::system::{TMP, private_directory};
use crate::linux::kernel::errno;
use crate::linux::landlock::LandlockAccess;
use crate::linux::protocol::{AtStep as _, SetupError, Step, ToolchainPath};

/// Where the layers lie while they are mounted. Terminals are mounted there afterwards.
const LAYERS: &str = "/dev/pts";

/// The directories and files of toolchains that a run shows.
#[derive(Default)]
pub(super) struct Toolchains(Vec<Shown>);

/// One of them.
struct Shown {
    path: PathBuf,
    discards_writes: bool,
    /// What is hidden in it.
    hidden: Vec<Vec<u8>>,
}

/// The layers of a call over directories of toolchains.
#[derive(Default)]
pub(super) struct CallLayers {
    /// What Landlock has to allow in addition.
    pub(super) opened: Vec<(OwnedFd, LandlockAccess)>,
    /// Whether one could not be had, so that sockets in its directory lead to the host.
    pub(super) is_bound: bool,
}

impl Toolchains {
    /// Shows them in the root of a run, read-only.
    ///
    /// # Errors
    /// One is not at its path any more, lies where each call has something of its own, or overlaps the
    /// workspace.
    pub(super) fn show<'p>(
        root: &mut Root,
        mount: &WorkspaceMount,
        toolchains: impl Iterator<Item = &'p ToolchainPath>,
    ) -> Result<Self, SetupError> {
        let mut all = Vec::new();
        for shown in toolchains {
            let path = host_path::bytes_to_path(&shown.path);
            let in_tmp = path.starts_with(TMP) && path != Path::new(TMP);
            let overlaps = path.starts_with(mount.path()) || mount.path().starts_with(path);
            if overlaps || (private_directory(path).is_some() && !in_tmp) {
                return Err(SetupError { step: Step::Toolchain, errno: Errno::EXIST });
            }
            let is_directory = match &shown.text {
                Some(text) => show_text(root, path, (text, all.len())).map(|()| false)?,
                None => show_path(root, path, shown)?,
            };
            all.push(Shown {
                path: path.to_owned(),
                discards_writes: shown.discards_writes && is_directory,
                hidden: shown.hidden.clone(),
            });
        }
        Ok(Self(all))
    }

    /// Lays an empty layer over each directory in which a call may write, in the mounts of that call. Where the
    /// kernel refuses such a layer, the directory stays read-only.
    ///
    /// # Errors
    /// The memory for the layers cannot be mounted.
    pub(super) fn open_for_call(&self, bytes: u64) -> Result<CallLayers, Errno> {
        let mut layers = CallLayers::default();
        let writable: Vec<&Shown> = self.0.iter().filter(|shown| shown.discards_writes).collect();
        if writable.is_empty() {
            return Ok(layers);
        }
        mount_memory(LAYERS, bytes)?;
        // Those of the run belong to its mounts, and nothing can be covered with them in the mounts of a call.
        let cover = Cover::create(open_path(Path::new(LAYERS))?.as_fd())?;
        for (number, shown) in writable.into_iter().enumerate() {
            match self.lay_over(&cover, (shown, number))? {
                Some(layer) => layers.opened.push((layer, LandlockAccess::ChangeStaged)),
                None => layers.is_bound = true,
            }
        }
        // The layers hold what they need of it.
        unmount(LAYERS, UnmountFlags::DETACH)?;
        Ok(layers)
    }

    /// Lays an empty layer over a directory, and what is shown in it over that again; gives the directory as
    /// the call sees it then, or nothing where the kernel refuses the layer.
    ///
    /// # Errors
    /// The layer is there, and not what has to be hidden in it or shown in it.
    fn lay_over(
        &self,
        cover: &Cover,
        (shown, number): (&Shown, usize),
    ) -> Result<Option<OwnedFd>, Errno> {
        let directory = |kind: &str| {
            let path = Path::new(LAYERS).join(format!("{kind}{number}"));
            mkdirat(CWD, &path, Mode::from_raw_mode(0o755))?;
            open_path(&path)
        };
        let (changes, work) = (directory("changes")?, directory("work")?);
        let lower = open_path(&shown.path)?;
        let is_inner =
            |other: &&Shown| other.path != shown.path && other.path.starts_with(&shown.path);
        let copy = |inner: &Shown| root::copy_mount(&open_path(&inner.path)?, Submounts::Copied);
        let inner: Vec<&Shown> = self.0.iter().filter(is_inner).collect();
        let copies: Vec<OwnedFd> =
            inner.iter().map(|inner| copy(inner)).collect::<Result<_, _>>()?;
        let Ok(layer) = overlay::overlay(&lower, &changes, &work) else { return Ok(None) };
        root::attach_over(&layer, lower.as_fd())?;
        let shows = open_path(&shown.path)?;
        hidden_paths::hide(cover, shows.as_fd(), &shown.hidden).map_err(|failed| failed.errno)?;
        for (inner, copy) in inner.iter().zip(&copies) {
            root::attach_over(copy, open_path(&inner.path)?.as_fd())?;
        }
        open_path(&shown.path).map(Some)
    }
}

/// Shows a text in the place of a file that is in the root already.
fn show_text(
    root: &mut Root,
    path: &Path,
    (text, number): (&[u8], usize),
) -> Result<(), SetupError> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let place = Path::new(LAYERS.trim_start_matches('/')).join(format!("text{number}"));
    let mut file =
        File::from(root.make_file(&place, Mode::from_raw_mode(0o444)).at(Step::Toolchain)?);
    file.write_all(text).map_err(|error| errno(&error)).at(Step::Toolchain)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = openat(&root.tree, &place, flags, Mode::empty()).at(Step::Toolchain)?;
    let copy = root::copy_mount(&file, Submounts::Excluded).at(Step::Toolchain)?;
    root.attach(copy.as_fd(), relative, READ_ONLY_ATTRIBUTES).at(Step::Toolchain)?;
    root.allow(relative, LandlockAccess::ReadFile).at(Step::Toolchain)
}

/// Shows one in the root; tells whether it is a directory.
fn show_path(root: &mut Root, path: &Path, shown: &ToolchainPath) -> Result<bool, SetupError> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let Some(place) = &shown.place else {
        root.make_directory(relative).at(Step::Toolchain)?;
        root.allow(relative, LandlockAccess::Read).at(Step::Toolchain)?;
        return Ok(true);
    };
    let source = reopen(place, Step::ToolchainMoved)?;
    let mode = fstat(&source).at(Step::Toolchain)?.st_mode;
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    let made = match is_directory {
        true => root.make_directory(relative),
        false => root.make_file(relative, Mode::from_raw_mode(0o555)).map(drop),
    };
    made.at(Step::Toolchain)?;
    let has_call_layer = shown.discards_writes;
    let attached = match is_directory {
        // Over others each call lays a layer, and the kernel takes no more than two above each other.
        true if !has_call_layer => {
            root.show_host_directory(&source, relative, READ_ONLY_ATTRIBUTES)
        }
        _ => root::copy_mount(&source, Submounts::Copied)
            .and_then(|copy| root.attach(copy.as_fd(), relative, READ_ONLY_ATTRIBUTES)),
    };
    attached.at(Step::Toolchain)?;
    if !shown.hidden.is_empty() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let directory = openat(&root.tree, relative, flags, Mode::empty()).at(Step::Toolchain)?;
        let _ = hidden_paths::hide(&root.cover, directory.as_fd(), &shown.hidden)?;
        if !has_call_layer {
            allow_entries(root, relative).at(Step::Toolchain)?;
            return Ok(is_directory);
        }
    }
    let access = if is_directory { LandlockAccess::Read } else { LandlockAccess::ReadFile };
    root.allow(relative, access).at(Step::Toolchain)?;
    Ok(is_directory)
}

/// Allows what is in a directory now. A file that takes the place of a hidden one later is closed to commands.
fn allow_entries(root: &mut Root, directory: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(&root.tree, directory, flags, Mode::empty())?;
    root.allow(directory, LandlockAccess::List)?;
    for entry in Dir::new(opened)? {
        let entry = entry?;
        let access = match entry.file_type() {
            FileType::Directory => LandlockAccess::Read,
            FileType::RegularFile => LandlockAccess::ReadFile,
            _ => continue,
        };
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            root.allow(directory.join(OsStr::from_bytes(entry.file_name().to_bytes())), access)?;
        }
    }
    Ok(())
}

fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}
