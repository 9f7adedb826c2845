//! The view of a whole agent, and the process that holds it.
//!
//! It has namespaces of its own of users, mounts, host name, processes, queues and, if asked, of the network, the same
//! system as every command has, and its workspace, which it may write to. Landlock rules on files are left out: the
//! kernel refuses to mount anything behind them, and an agent may confine what it starts, as Capsule does. The root is
//! read-only, nothing of the host but what was named is in it, and the process has no capabilities.

mod init;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

use capsule_base::root_names::WORKSPACE_MOUNT;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, move_mount};
use rustix::process::{DumpableBehavior, Resource, geteuid, set_dumpable_behavior, umask};
use rustix::system::sethostname;
use rustix::thread::set_no_new_privs;

use super::accounts::HOST_NAME;
use super::isolate::{NamespaceHolder, PROCESSES, RunNetwork, is_read_only, write_setting};
use super::machine_files;
use super::memory_file_system::memory_file_system;
use super::probe::{ROOT_AGENT_CAPABILITY, SETUP_CAPABILITIES, covered_proc};
use super::root::{self, HostView, READ_ONLY_ATTRIBUTES, Root, Submounts};
use super::run_sandbox::make_only_root;
use super::{direct_writes, hidden_paths, overlay};
use crate::linux::backend::host_path::{bytes_to_path, reopen};
use crate::linux::backend::{capabilities, listen_on, mountinfo, rlimits, system};
use crate::linux::executor;
use crate::linux::kernel::{self, CloneRequest, ForkResult, set_mount_attributes};
use crate::linux::protocol::{
    AgentMountPath, AgentReply, AgentRequest, AtStep as _, SetupError, Step, socket,
};

/// The size of the home directory of an agent and of its `/tmp`, each: what `npx` and browsers unpack fits.
const MEMORY_BYTES: &str = "2g";
/// The size of its `/dev/shm` where that is no part of `/tmp`.
const SHARED_MEMORY_BYTES: &str = "64m";
/// What a directory of an agent's own has none of.
const WRITABLE_ATTRIBUTES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
/// The namespaces of an agent beside those of its view.
const NAMESPACES: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
/// How many namespaces of control groups an agent may have: its own.
const CGROUP_NAMESPACES: &str = "1";

/// Serves one agent, and ends with it.
pub(crate) fn serve() -> ExitCode {
    let line = kernel::inherited_socket();
    match start(&line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            let _ = socket::send(line.as_fd(), &AgentReply::Failed(failed).encode(), &[]);
            ExitCode::FAILURE
        }
    }
}

fn start(line: &OwnedFd) -> Result<(), SetupError> {
    // The agent's files are made with the permissions that the user's are.
    let mask = umask(Mode::empty());
    executor::isolate_process()?;
    let refused = |errno| SetupError { step: Step::Order, errno };
    let message = socket::receive(line.as_fd()).at(Step::Order)?;
    let message = message.ok_or_else(|| refused(Errno::CANCELED))?;
    let request = AgentRequest::decode(&message.bytes).map_err(|_| refused(Errno::BADMSG))?;
    if request.given.iter().filter(|given| **given).count() != message.descriptors.len() {
        return Err(SetupError { step: Step::Streams, errno: Errno::BADF });
    }
    let mut given = message.descriptors.into_iter();
    let streams = request.given.map(|is_given| if is_given { given.next() } else { None });
    build_view(&request)?;
    let listeners = listen_on(request.ports.as_deref().unwrap_or_default())?;
    match make_first_process().at(Step::Birth)? {
        ForkResult::Child => init::run(&request, (line, streams), listeners, mask),
        ForkResult::Parent(child, _handle) => {
            drop((streams, listeners));
            kernel::wait_for(child).at(Step::Birth).map(drop)
        }
    }
}

/// Makes the first process, in namespaces of its own.
fn make_first_process() -> Result<ForkResult, Errno> {
    let make = |namespaces: i32| {
        let namespaces = u64::try_from(namespaces).unwrap_or_default();
        kernel::clone_process(&CloneRequest { namespaces, cgroup: None })
    };
    match make(NAMESPACES | libc::CLONE_NEWCGROUP) {
        // Within the sandbox of another agent, whose namespace of control groups is the only one.
        Err(Errno::NOSPC) => make(NAMESPACES),
        made => made,
    }
}

/// Forbids an agent to make namespaces of control groups: in one of its own it could mount the groups that it is in, and
/// change them where they are its user's, as all of them are where root runs it.
fn bound_cgroup_namespaces() -> Result<(), Errno> {
    if is_read_only("/proc") {
        // Within the sandbox of another agent of root, which has the same bound.
        return Ok(());
    }
    write_setting("/proc/sys/user/max_cgroup_namespaces", CGROUP_NAMESPACES)
}

/// Leaves the host's users, mounts and host name, and its network where the agent has none of it.
fn build_view(request: &AgentRequest) -> Result<(), SetupError> {
    set_no_new_privs(true).at(Step::NoNewPrivileges)?;
    let network = if request.ports.is_none() { RunNetwork::Host } else { RunNetwork::Private };
    let mut holder = NamespaceHolder::start(network)?;
    let mounts = mountinfo::process_mounts();
    holder.enter()?;
    drop(holder);
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::UserNamespace)?;
    sethostname(HOST_NAME.as_bytes()).at(Step::HostName)?;
    keep_capabilities().at(Step::Capabilities)?;
    rlimits::lower_limits(&[(Resource::Core, rlimits::NO_CORE, rlimits::NO_CORE)])
        .at(Step::Limits)?;
    if covered_proc(&mounts).is_some() {
        return Err(SetupError { step: Step::Proc, errno: Errno::PERM });
    }
    bound_cgroup_namespaces().at(Step::Limits)?;
    let mut root = Root::build(false, HostView::Bound)?;
    root.show_device(&system::TERMINAL).at(Step::Device)?;
    machine_files::write_system_files(&mut root).at(Step::Machine)?;
    show_workspace(&root, request)?;
    make_private_directories(&root, request)?;
    root.make_directory(relative(Path::new(PROCESSES))).at(Step::Proc)?;
    let layers = Layers::mount(&root).at(Step::Toolchain)?;
    for (number, mount) in request.mounts.iter().enumerate() {
        show_mount(&root, (&layers, number), mount)?;
    }
    for [path, target] in &request.links {
        let target = std::ffi::CString::new(target.as_slice()).map_err(|_| Errno::INVAL);
        let made = target.and_then(|target| root.make_link(relative(bytes_to_path(path)), &target));
        match made {
            // It is shown for another reason.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(SetupError { step: Step::Program, errno }),
        }
    }
    for [path, text] in &request.files {
        let path = relative(bytes_to_path(path));
        let file = root.make_file(path, Mode::from_raw_mode(0o444)).at(Step::Configuration)?;
        File::from(file).write_all(text).at(Step::Configuration)?;
    }
    make_only_root(&root).at(Step::PivotRoot)
}

/// Gives up all capabilities but those for the set-up.
fn keep_capabilities() -> Result<(), Errno> {
    if !geteuid().is_root() {
        return capabilities::drop_all_but(&SETUP_CAPABILITIES);
    }
    capabilities::inherit_one(ROOT_AGENT_CAPABILITY)?;
    let [admin, resource, bounds] = SETUP_CAPABILITIES;
    capabilities::drop_bounds(&[admin, resource, bounds, ROOT_AGENT_CAPABILITY])
}

/// Shows the workspace with all that is mounted in it, writable but for some paths.
fn show_workspace(root: &Root, request: &AgentRequest) -> Result<(), SetupError> {
    let folder = reopen(&request.workspace, Step::WorkspaceMoved)?;
    let path = relative(Path::new(WORKSPACE_MOUNT));
    root.make_directory(path).at(Step::Workspace)?;
    let copy = root::copy_mount(&folder, Submounts::Copied).at(Step::Workspace)?;
    root.attach(copy.as_fd(), path, WRITABLE_ATTRIBUTES).at(Step::Workspace)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = openat(&root.tree, path, flags, Mode::empty()).at(Step::Workspace)?;
    // What is above a path that is held stays where it is: the kernel renames nothing that something is mounted on.
    let above = request.read_only.iter().flat_map(|path| direct_writes::parents(path));
    let above: BTreeSet<&[u8]> = above.collect();
    for path in above {
        bind_onto_itself(workspace.as_fd(), path, WRITABLE_ATTRIBUTES).at(Step::Direct)?;
    }
    for path in &request.read_only {
        bind_onto_itself(workspace.as_fd(), path, READ_ONLY_ATTRIBUTES).at(Step::Direct)?;
    }
    Ok(())
}

/// Binds a path of the workspace onto itself, if it is there and is no link.
fn bind_onto_itself(
    workspace: BorrowedFd<'_>,
    path: &[u8],
    attributes: MountAttrFlags,
) -> Result<(), Errno> {
    let found = match hidden_paths::find_path(workspace, path) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    if FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::Symlink {
        return Ok(());
    }
    let copy = root::copy_mount(&found, Submounts::Copied)?;
    set_mount_attributes(copy.as_fd(), true, attributes)?;
    root::attach_over(&copy, found.as_fd())
}

/// Gives it a home directory and a `/tmp`, in memory; without a `/tmp`, memory that processes share all the same.
fn make_private_directories(root: &Root, request: &AgentRequest) -> Result<(), SetupError> {
    let tmp = Path::new("tmp");
    let home = relative(bytes_to_path(&request.home));
    // A home directory may lie in the first of them.
    let first = if request.has_tmp {
        (tmp, "1777", MEMORY_BYTES)
    } else {
        unlinkat(&root.tree, tmp, AtFlags::REMOVEDIR).at(Step::Tmp)?;
        // Links that lead there.
        unlinkat(&root.tree, "var/tmp", AtFlags::empty()).at(Step::Tmp)?;
        unlinkat(&root.tree, "dev/shm", AtFlags::empty()).at(Step::Tmp)?;
        (Path::new("dev/shm"), "1777", SHARED_MEMORY_BYTES)
    };
    for (path, mode, bytes) in [first, (home, "0700", MEMORY_BYTES)] {
        root.make_directory(path).at(Step::Tmp)?;
        let memory = memory_file_system(&[("size", bytes), ("mode", mode)]).at(Step::Tmp)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&memory, "", &root.tree, path, flags).at(Step::Tmp)?;
    }
    Ok(())
}

/// Where layers over directories of the host lie, in memory. Terminals are mounted there afterwards.
struct Layers(OwnedFd);

impl Layers {
    fn mount(root: &Root) -> Result<Self, Errno> {
        let memory = memory_file_system(&[("size", MEMORY_BYTES), ("mode", "0700")])?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&memory, "", &root.tree, "dev/pts", flags)?;
        Ok(Self(memory))
    }

    /// An empty layer over a directory.
    fn over(&self, directory: &OwnedFd, number: usize) -> Result<OwnedFd, Errno> {
        let make = |kind: &str| {
            let name = format!("{kind}{number}");
            mkdirat(&self.0, &name, Mode::from_raw_mode(0o755))?;
            openat(&self.0, &name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        };
        overlay::overlay(directory, &make("changes")?, &make("work")?)
    }
}

/// Shows a directory or file of the host, which stays as it is.
fn show_mount(
    root: &Root,
    (layers, number): (&Layers, usize),
    mount: &AgentMountPath,
) -> Result<(), SetupError> {
    let path = relative(bytes_to_path(&mount.path));
    let source = reopen(&mount.place, Step::ToolchainMoved)?;
    let mode = fstat(&source).at(Step::Toolchain)?.st_mode;
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    if statat(&root.tree, path, AtFlags::SYMLINK_NOFOLLOW).is_err() {
        let made = match is_directory {
            true => root.make_directory(path),
            false => root.make_file(path, Mode::from_raw_mode(0o555)).map(drop),
        };
        made.at(Step::Toolchain)?;
    }
    let layer = match mount.discards_writes && is_directory {
        true => layers.over(&source, number).ok(),
        false => None,
    };
    let attached = match layer {
        Some(layer) => root.attach(layer.as_fd(), path, WRITABLE_ATTRIBUTES),
        None => root::copy_mount(&source, Submounts::Copied)
            .and_then(|copy| root.attach(copy.as_fd(), path, READ_ONLY_ATTRIBUTES)),
    };
    attached.at(Step::Toolchain)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let shown = openat(&root.tree, path, flags, Mode::empty()).at(Step::Toolchain)?;
    hidden_paths::hide(&root.cover, shown.as_fd(), &mount.hidden).map(drop)
}

/// The path from the root on.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
