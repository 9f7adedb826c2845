//! The empty root of a run, and what every run sees in it.
//!
//! The root is a small file system in memory, laid over the host's root: paths of the host still
//! lead where they did, so folders can be bound from there, while what is made here is named
//! relative to it. It becomes the only root later ([`super::view`]).

use std::ffi::CStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use capsule_base::limits;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, Timespec, Timestamps, fstat, ftruncate, futimens,
    mkdirat, open, openat, readlinkat, statat, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount,
    open_tree,
};

use super::host_directories::HostDirectories;
use super::memory_file_system::memory_file_system;
use super::overlay;
use super::shared_tmp::SharedTmp;
use crate::linux::backend::system::{
    CONFIGURATION, COVERED, DEVICES, DIRECTORIES, LINKS, VisiblePath,
};
use crate::linux::kernel::{errno, set_mount_attributes};
use crate::linux::landlock::LandlockAccess;
use crate::linux::protocol::{AtStep as _, HostPath, SetupError, Step};

/// The size of the root's file system: it holds names, and copies of a few small files.
const ROOT_BYTES: &str = "16m";
/// Larger files of the configuration are bound instead of copied.
const COPIED_BYTES: usize = 40_000;

/// What a bound folder never has: writing, privileges of files, devices.
pub(super) const READ_ONLY_ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// How a directory of the host is opened to be shown.
const HOST_DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How directories of the host are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HostView {
    /// Each through a layer of its own, so that no socket in it leads to the host.
    Layers,
    /// Bound.
    Bound,
}

/// The root of a run while it is being built.
pub(super) struct Root {
    /// The root itself; everything is made relative to it.
    pub(super) tree: OwnedFd,
    /// An empty file and an empty folder to lay over what is hidden.
    pub(super) cover: Cover,
    /// What Landlock will allow, by folder.
    pub(super) access: Vec<(OwnedFd, LandlockAccess)>,
    /// How the directories of the host are shown in it.
    pub(super) directories: HostDirectories,
    view: HostView,
    pub(super) tmp: SharedTmp,
}

/// What is laid over hidden paths.
pub(super) struct Cover {
    /// No program may read it.
    pub(super) file: OwnedFd,
    /// Programs may list it, since those that walk a tree fail at a folder that cannot be listed; it holds
    /// nothing. They may not look up a name in it, so that none takes what is hidden for deleted.
    pub(super) directory: OwnedFd,
    /// Everybody's to list, with nothing in it.
    pub(super) empty_directory: OwnedFd,
}

impl Root {
    /// Builds it. `sees_proc` says whether the run's `/proc` may be written to by the first process
    /// of a call (to bound its processes); nobody else ever sees it.
    ///
    /// # Errors
    /// The step that failed.
    pub(super) fn build(proc_is_writable: bool, view: HostView) -> Result<Self, SetupError> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .at(Step::PrivateMounts)?;
        let tree = empty_root().at(Step::Root)?;
        let cover = Cover::create(tree.as_fd()).at(Step::Root)?;
        let directories = HostDirectories::default();
        let tmp = SharedTmp::default();
        let mut root = Self { tree, cover, access: Vec::new(), directories, view, tmp };
        root.allow(".", LandlockAccess::List).at(Step::Root)?;
        for folder in DIRECTORIES {
            root.show_directory(folder).at(Step::SystemFolder)?;
        }
        for folder in COVERED {
            root.cover_directory(Path::new(folder.path)).at(Step::SystemFolder)?;
        }
        // An image of a container may have none.
        root.make_directory(Path::new("etc")).at(Step::Configuration)?;
        let names = names_in("/etc");
        // Once for all: a new one each time would be cleared again.
        let mut buffer = vec![0; COPIED_BYTES];
        for entry in CONFIGURATION {
            root.show_configuration(entry, &names, &mut buffer).at(Step::Configuration)?;
        }
        root.allow("etc", LandlockAccess::Read).at(Step::Configuration)?;
        let data = CONFIGURATION.iter().filter(|entry| !entry.path.starts_with("/etc/"));
        for entry in data {
            match root.allow(strip_slash(entry.path), LandlockAccess::Read) {
                Err(error) if error != Errno::NOENT => return Err(error).at(Step::Configuration),
                _ => {}
            }
        }
        root.make_directory(Path::new("dev/pts")).at(Step::Terminals)?;
        for device in DEVICES {
            root.show_device(device).at(Step::Device)?;
        }
        root.allow("dev", LandlockAccess::Devices).at(Step::Device)?;
        for (link, target) in LINKS {
            root.make_link(Path::new(link), target).at(Step::Device)?;
        }
        root.make_directory(Path::new("tmp")).at(Step::Root)?;
        root.show_proc(proc_is_writable).at(Step::Proc)?;
        Ok(root)
    }

    /// Lets commands reach a path of the root.
    pub(super) fn allow(
        &mut self,
        path: impl AsRef<Path>,
        reach: LandlockAccess,
    ) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = openat(&self.tree, path.as_ref(), flags, Mode::empty())?;
        self.access.push((file, reach));
        Ok(())
    }

    /// Whether this very file of the host stands at the path already.
    pub(super) fn shows(&self, path: &Path, place: &HostPath) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(&self.tree, path, flags, Mode::empty()).and_then(|file| fstat(&file));
        found.is_ok_and(|found| {
            let device = self.directories.host_device(found.st_dev);
            (device, found.st_ino) == (place.device, place.inode)
        })
    }

    /// Shows a folder of the host at its own path, or makes the link that it is.
    fn show_directory(&mut self, shown: &VisiblePath) -> Result<(), Errno> {
        let name = strip_slash(shown.path);
        let Some(found) = host_stat(shown.path)? else { return Ok(()) };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => self.copy_link(shown.path),
            FileType::Directory => {
                self.make_directory(Path::new(name))?;
                let source = open(shown.path, HOST_DIRECTORY, Mode::empty())?;
                self.show_host_directory(&source, Path::new(name), READ_ONLY_ATTRIBUTES)?;
                self.allow(name, LandlockAccess::Read)
            }
            _ => Ok(()),
        }
    }

    /// Shows a directory of the host at a path of the root.
    ///
    /// # Errors
    /// It can be shown in neither way.
    pub(super) fn show_host_directory(
        &mut self,
        source: &OwnedFd,
        target: &Path,
        attributes: MountAttrFlags,
    ) -> Result<(), Errno> {
        if self.view == HostView::Layers
            && let Ok(layer) = self.layer_of(source)
            && self.attach(layer.as_fd(), target, attributes).is_ok()
        {
            return Ok(());
        }
        self.bind_host_directory(source, target, attributes)
    }

    /// Binds a directory of the host at a path of the root.
    ///
    /// # Errors
    /// It cannot be bound.
    pub(super) fn bind_host_directory(
        &mut self,
        source: &OwnedFd,
        target: &Path,
        attributes: MountAttrFlags,
    ) -> Result<(), Errno> {
        self.directories.add_bound(&Path::new("/").join(target));
        let copy = copy_mount(source, Submounts::Copied)?;
        self.attach(copy.as_fd(), target, attributes)
    }

    /// A layer that shows a directory, in which the files that were judged can be known again.
    fn layer_of(&mut self, source: &OwnedFd) -> Result<OwnedFd, Errno> {
        // Mounts in it would not be seen.
        drop(copy_mount(source, Submounts::Excluded)?);
        let layer = overlay::overlay_alone(source, &self.cover.empty_directory)?;
        self.directories.add_layer(source.as_fd(), layer.as_fd())?;
        Ok(layer)
    }

    /// Covers a folder within a shown one, if it is there.
    pub(super) fn cover_directory(&self, path: &Path) -> Result<(), Errno> {
        let name = path.strip_prefix("/").unwrap_or(path);
        match openat(
            &self.tree,
            name,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(folder) => self.cover.empty(folder.as_fd()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn show_configuration(
        &mut self,
        shown: &VisiblePath,
        names: &[String],
        buffer: &mut [u8],
    ) -> Result<(), Errno> {
        let Some(start) = shown.path.strip_suffix('*') else {
            return self.show_entry(shown.path, buffer);
        };
        let mut matching = names.iter().filter(|path| path.starts_with(start));
        matching.try_for_each(|path| self.show_entry(path, buffer))
    }

    /// Shows one entry of the configuration: links as links, small files as copies (each bind would
    /// cost every call a little), folders and large files bound. What is absent, or not ours to
    /// read, is left out.
    fn show_entry(&mut self, path: &str, buffer: &mut [u8]) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = match open(path, flags, Mode::empty()) {
            Ok(source) => source,
            Err(Errno::LOOP) => return self.copy_link(path),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
            Err(error) => return Err(error),
        };
        let facts = fstat(&source)?;
        let name = Path::new(strip_slash(path));
        let length = usize::try_from(facts.st_size).unwrap_or(usize::MAX);
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::RegularFile if length <= buffer.len() => {
                let got = rustix::io::read(&source, &mut *buffer)?;
                let mut file = File::from(self.make_file(name, Mode::from_raw_mode(0o444))?);
                file.write_all(buffer.get(..got).unwrap_or_default()).map_err(|error| errno(&error))
            }
            FileType::RegularFile => {
                self.make_file(name, Mode::from_raw_mode(0o444))?;
                self.bind(Path::new(path), name, READ_ONLY_ATTRIBUTES)
            }
            FileType::Directory => {
                self.make_directory(name)?;
                let source = open(path, HOST_DIRECTORY, Mode::empty())?;
                self.show_host_directory(&source, name, READ_ONLY_ATTRIBUTES)
            }
            _ => Ok(()),
        }
    }

    /// Devices keep working on a read-only mount, but their permissions cannot be changed there:
    /// to root without capabilities the host's `/dev/null` would otherwise still belong.
    pub(super) fn show_device(&self, shown: &VisiblePath) -> Result<(), Errno> {
        let name = Path::new(strip_slash(shown.path));
        self.make_file(name, Mode::from_raw_mode(0o444))?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        self.bind(Path::new(shown.path), name, attributes)
    }

    /// Puts the host's `/proc` where each call mounts its own. The kernel lets a `/proc` be mounted
    /// only where one can already be seen; no call sees this one, because its own lies over it.
    fn show_proc(&self, writable: bool) -> Result<(), Errno> {
        let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        if !writable {
            attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        }
        self.bind(Path::new("/proc"), Path::new("proc"), attributes)
    }

    /// Binds a path of the host, with all that is mounted beneath it: the kernel does not let
    /// anything be uncovered.
    fn bind(&self, source: &Path, target: &Path, attributes: MountAttrFlags) -> Result<(), Errno> {
        let copy = open_tree(CWD, source, COPY | OpenTreeFlags::AT_RECURSIVE)?;
        self.attach(copy.as_fd(), target, attributes)
    }

    /// Attaches a copied mount at a path of the root.
    pub(super) fn attach(
        &self,
        copy: BorrowedFd<'_>,
        target: &Path,
        attributes: MountAttrFlags,
    ) -> Result<(), Errno> {
        set_mount_attributes(copy, true, attributes)?;
        move_mount(copy, "", &self.tree, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
    }

    /// Makes the link that the host has at a path.
    fn copy_link(&self, path: &str) -> Result<(), Errno> {
        let target = readlinkat(CWD, path, Vec::new())?;
        self.make_link(Path::new(strip_slash(path)), &target)
    }

    pub(super) fn make_link(&self, path: &Path, target: &CStr) -> Result<(), Errno> {
        self.with_parents(path, || symlinkat(target, &self.tree, path))
    }

    /// Makes an empty file, and the folders above it.
    pub(super) fn make_file(&self, path: &Path, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        self.with_parents(path, || openat(&self.tree, path, flags, mode))
    }

    /// Makes a folder and those above it; that it is already there is fine.
    pub(super) fn make_directory(&self, path: &Path) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(0o755);
        match self.with_parents(path, || mkdirat(&self.tree, path, mode)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes something, and if that fails for want of a folder, the folder first.
    fn with_parents<T>(
        &self,
        path: &Path,
        make: impl Fn() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if path.components().any(|component| !matches!(component, Component::Normal(_))) {
            return Err(Errno::INVAL);
        }
        self.tmp.hold(&self.tree, path)?;
        match (make(), path.parent()) {
            (Err(Errno::NOENT), Some(parent)) if !parent.as_os_str().is_empty() => {
                self.make_directory(parent)?;
                make()
            }
            (made, _) => made,
        }
    }
}

impl Cover {
    /// Makes the cover beneath the place where `/proc` will lie, so that nobody sees it.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create(tree: BorrowedFd<'_>) -> Result<Self, Errno> {
        mkdirat(tree, "proc", Mode::from_raw_mode(0o555))?;
        mkdirat(tree, "proc/folder", Mode::from_raw_mode(0o444))?;
        mkdirat(tree, "proc/nothing", Mode::from_raw_mode(0o555))?;
        let make = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(tree, "proc/file", make, Mode::empty())?;
        ftruncate(&file, limits::HIDDEN_FILE_BYTES.into())?;
        futimens(&file, &hidden_file_times())?;
        let open = |path: &str| openat(tree, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            file: open("proc/file")?,
            directory: open("proc/folder")?,
            empty_directory: open("proc/nothing")?,
        })
    }

    /// Hides a file or folder: reading the file is an error, and the folder looks empty.
    pub(super) fn hide(&self, target: BorrowedFd<'_>, folder: bool) -> Result<(), Errno> {
        bind_over(if folder { &self.directory } else { &self.file }, target)
    }

    /// Makes a folder look empty.
    fn empty(&self, target: BorrowedFd<'_>) -> Result<(), Errno> {
        bind_over(&self.empty_directory, target)
    }
}

/// The dates of a hidden file.
fn hidden_file_times() -> Timestamps {
    let time = Timespec { tv_sec: limits::HIDDEN_FILE_SECONDS.into(), tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

/// A mount of its own that shows what another one does.
const COPY: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);

/// What becomes of the mounts beneath a place that is copied.
pub(super) enum Submounts {
    /// They are left out. The kernel refuses that where they cover something.
    Excluded,
    /// They are copied, too.
    Copied,
}

/// Copies the mount of an open file or folder.
pub(super) fn copy_mount(place: &OwnedFd, beneath: Submounts) -> Result<OwnedFd, Errno> {
    let beneath = match beneath {
        Submounts::Excluded => OpenTreeFlags::empty(),
        Submounts::Copied => OpenTreeFlags::AT_RECURSIVE,
    };
    open_tree(place, "", COPY | OpenTreeFlags::AT_EMPTY_PATH | beneath)
}

/// Lays a copy of one place over another.
fn bind_over(source: &OwnedFd, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let copy = copy_mount(source, Submounts::Excluded)?;
    set_mount_attributes(
        copy.as_fd(),
        false,
        READ_ONLY_ATTRIBUTES | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )?;
    attach_over(&copy, target)
}

/// Lays a copied mount over a place.
pub(super) fn attach_over(copy: &OwnedFd, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(copy, "", target, "", flags)
}

/// A file system in memory, laid over the root.
fn empty_root() -> Result<OwnedFd, Errno> {
    let tree = memory_file_system(&[("size", ROOT_BYTES), ("mode", "0755")])?;
    move_mount(&tree, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(tree)
}

/// The facts of a path of the host itself, links not followed; none if it is not there.
fn host_stat(path: &str) -> Result<Option<Stat>, Errno> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The paths of what lies in a folder of the host.
fn names_in(folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.map(|name| format!("{folder}/{name}")).collect()
}

/// The path without its leading slash.
fn strip_slash(path: &str) -> &str {
    path.trim_start_matches('/')
}
