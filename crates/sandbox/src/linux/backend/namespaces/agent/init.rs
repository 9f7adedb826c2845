//! The first process of an agent: it makes what belongs to the namespace of processes, the terminal among that,
//! starts the program in a session of its own, and ends when that does or when its starter has ended.

use std::ffi::CString;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount, move_mount, unmount,
};
use rustix::process::{
    Pid, Resource, Signal, WaitOptions, WaitStatus, chdir, geteuid, ioctl_tiocsctty,
    kill_process_group, setsid, umask, wait,
};
use rustix::pty::{ptsname, unlockpt};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::remove_capability_from_bounding_set;

use capsule_base::root_names::WORKSPACE_MOUNT;

use crate::linux::backend::namespaces::isolate::PROCESSES;
use crate::linux::backend::namespaces::memory_file_system::memory_file_system;
use crate::linux::backend::namespaces::probe::{ROOT_AGENT_CAPABILITY, SETUP_CAPABILITIES};
use crate::linux::backend::namespaces::root::READ_ONLY_ATTRIBUTES;
use crate::linux::backend::{capabilities, rlimits};
use crate::linux::kernel::{self, ExecRequest, set_mount_attributes};
use crate::linux::landlock;
use crate::linux::poll;
use crate::linux::protocol::{
    AgentOrder, AgentReply, AgentRequest, AtStep as _, SetupError, Step, socket,
};
use crate::linux::seccomp;

/// How many terminals an agent may have open.
const TERMINALS: u32 = 1_024;
/// What is covered of the writable files of processes: this process, which is always there.
const COVERED_PROCESS: &str = "/run/capsule/processes/1";
/// The size of the cover, which holds nothing.
const COVER_BYTES: &str = "4k";

/// Lives the whole life of the first process. `line` leads to the starter of the agent.
pub(super) fn run(
    request: &AgentRequest,
    (line, streams): (&OwnedFd, [Option<OwnedFd>; 3]),
    listeners: Vec<TcpListener>,
    mask: Mode,
) -> ! {
    let _never_back = kernel::ExitOnDrop;
    // Its own is that of standard input.
    let Ok(line) = rustix::io::fcntl_dupfd_cloexec(line, 3) else { kernel::exit_now(1) };
    let line = &line;
    let reply = match serve(request, (line, streams), listeners, mask) {
        Ok(reply) => reply,
        Err(failed) => AgentReply::Failed(failed),
    };
    // Nothing of it runs any more when its end is told.
    let _ = kernel::kill_and_reap_all(kernel::kill_namespace);
    let _ = socket::send(line.as_fd(), &reply.encode(), &[]);
    kernel::exit_now(0)
}

fn serve(
    request: &AgentRequest,
    (line, streams): (&OwnedFd, [Option<OwnedFd>; 3]),
    listeners: Vec<TcpListener>,
    mask: Mode,
) -> Result<AgentReply, SetupError> {
    kernel::die_with_parent().at(Step::Lifeline)?;
    setsid().at(Step::Lifeline)?;
    show_processes().at(Step::Proc)?;
    let settings = CString::new(format!("ptmxmode=0666,mode=0600,max={TERMINALS}"));
    let settings = settings.map_err(|_| Errno::INVAL).at(Step::Terminals)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(c"devpts", c"/dev/pts", c"devpts", flags, settings.as_c_str()).at(Step::Terminals)?;
    let terminal = match streams.iter().all(Option::is_some) {
        true => None,
        false => Some(open_terminal().at(Step::Terminals)?),
    };
    raise_sandbox()?;
    let (master, terminal) = terminal.unzip();
    let sockets = listeners.iter().map(TcpListener::as_fd);
    let given: Vec<_> = sockets.chain(master.iter().map(OwnedFd::as_fd)).collect();
    socket::send(line.as_fd(), &AgentReply::Ready.encode(), &given).at(Step::Lifeline)?;
    drop((master, listeners));
    if receive(line) != Some(AgentOrder::Begin) {
        return Err(SetupError { step: Step::Order, errno: Errno::CANCELED });
    }
    umask(mask);
    chdir(WORKSPACE_MOUNT).at(Step::Folder)?;
    let [input, output, error] = &streams;
    let of = |stream| Option::as_ref(stream).or(terminal.as_ref());
    let missing = SetupError { step: Step::Streams, errno: Errno::BADF };
    dup2_stdin(of(input).ok_or(missing)?).at(Step::Streams)?;
    dup2_stdout(of(output).ok_or(missing)?).at(Step::Streams)?;
    dup2_stderr(of(error).ok_or(missing)?).at(Step::Streams)?;
    let program = match start_program(request, terminal.as_ref())? {
        Ok(program) => program,
        Err(errno) => return Ok(AgentReply::NotExecutable(errno)),
    };
    // The program alone has the ends of pipes, so that a reader sees one close.
    drop(streams);
    kernel::close_range(0..=2).at(Step::Streams)?;
    supervise(line, program)
}

/// Leaves to `/proc` the processes of this namespace: those of the host cannot be seen.
///
/// For root it is read-only, since settings of the kernel are among it, which belong to root of the host. Processes
/// alone can then be written to beside it, as a sandbox inside has to.
///
/// To the kernel those would be a whole and writable `/proc`, and a namespace inside could mount another one, settings
/// included. So one directory of it is covered: a mount counts as whole only where nothing that is locked covers
/// anything in it, and a namespace inside has every mount locked.
fn show_processes() -> Result<(), Errno> {
    let is_root = geteuid().is_root();
    let all = process_files(is_root, None)?;
    let alone = match is_root.then(|| process_files(false, Some("pid"))).transpose() {
        // Within the sandbox of another agent of root. A sandbox in this one then has no users of its own.
        Err(Errno::PERM) => None,
        made => made?,
    };
    unmount("/proc", UnmountFlags::DETACH)?;
    attach(&all, "/proc")?;
    let Some(alone) = alone else { return Ok(()) };
    let cover = memory_file_system(&[("size", COVER_BYTES), ("mode", "0555")])?;
    set_mount_attributes(cover.as_fd(), false, READ_ONLY_ATTRIBUTES)?;
    attach(&alone, PROCESSES)?;
    attach(&cover, COVERED_PROCESS)
}

/// Attaches a mount that is nowhere so far.
fn attach(files: &OwnedFd, path: &str) -> Result<(), Errno> {
    move_mount(files, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn process_files(is_read_only: bool, subset: Option<&str>) -> Result<OwnedFd, Errno> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    if let Some(subset) = subset {
        fsconfig_set_string(context.as_fd(), "subset", subset)?;
    }
    fsconfig_create(context.as_fd())?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    if is_read_only {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Makes a terminal, which becomes that of this session: the side of its starter, and the agent's.
fn open_terminal() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = open("/dev/pts/ptmx", flags, Mode::empty())?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let terminal = open(name.as_c_str(), flags, Mode::empty())?;
    ioctl_tiocsctty(&terminal)?;
    Ok((master, terminal))
}

fn raise_sandbox() -> Result<(), SetupError> {
    if kernel::landlock_abi().is_ok_and(|abi| abi >= landlock::SCOPE_ABI) {
        landlock::restrict_scope().at(Step::Landlock)?;
    }
    for capability in SETUP_CAPABILITIES {
        remove_capability_from_bounding_set(capability).at(Step::Capabilities)?;
    }
    let dropped = match geteuid().is_root() {
        true => capabilities::drop_all_but_one(ROOT_AGENT_CAPABILITY),
        false => capabilities::drop_all(),
    };
    dropped.at(Step::Capabilities)?;
    let filter = seccomp::agent_filter().map_err(|seccomp::TooLong| Errno::TOOBIG);
    filter.and_then(|filter| kernel::attach_filter(&filter)).at(Step::Filter)
}

fn start_program(
    request: &AgentRequest,
    terminal: Option<&OwnedFd>,
) -> Result<Result<Pid, Errno>, SetupError> {
    let text = |bytes: &Vec<u8>| CString::new(bytes.as_slice()).map_err(|_| Errno::INVAL);
    let texts = |all: &[Vec<u8>]| all.iter().map(text).collect::<Result<Vec<_>, _>>();
    let path = text(&request.program).at(Step::Order)?;
    let arguments = texts(&request.arguments).at(Step::Order)?;
    let environment = texts(&request.environment).at(Step::Order)?;
    let cpu = rlimits::hard_limit(Resource::Cpu);
    let program = ExecRequest {
        path: &path,
        arguments: &arguments,
        environment: &environment,
        cpu: (cpu, cpu),
        rules: None,
        terminal: terminal.map(OwnedFd::as_fd),
    };
    Ok(kernel::start_program(&program))
}

/// Takes in every orphan and does what its starter says, until the program or the starter has ended.
fn supervise(line: &OwnedFd, program: Pid) -> Result<AgentReply, SetupError> {
    let children = kernel::child_signals().at(Step::Silence)?;
    loop {
        // A signal that came before the descriptor did is not seen there.
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((child, status))) if child == program => match status.stopping_signal() {
                    Some(signal) => {
                        let reply = AgentReply::Stopped(signal).encode();
                        socket::send(line.as_fd(), &reply, &[]).at(Step::Silence)?;
                    }
                    None => return Ok(AgentReply::Ended(WaitStatus::as_raw(status))),
                },
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        let mut files = [PollFd::new(&children, PollFlags::IN), PollFd::new(line, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll::wait(&mut files, None)).at(Step::Silence)?;
        let has_order = !files[1].revents().is_empty();
        let _ = rustix::io::read(&children, &mut [0; 128]);
        if has_order {
            match receive(line) {
                Some(AgentOrder::Continue) => send_signal(program, Signal::CONT),
                Some(AgentOrder::Signal(number)) => {
                    Signal::from_named_raw(number)
                        .into_iter()
                        .for_each(|it| send_signal(program, it));
                }
                // Its starter has ended.
                Some(AgentOrder::Begin) | None => {
                    return Err(SetupError { step: Step::Order, errno: Errno::CANCELED });
                }
            }
        }
    }
}

/// Sends a signal to the program and to the processes of its group.
fn send_signal(program: Pid, signal: Signal) {
    let _ = kill_process_group(program, signal);
}

/// The next order; none if its starter has ended.
fn receive(line: &OwnedFd) -> Option<AgentOrder> {
    let message = rustix::io::retry_on_intr(|| socket::receive(line.as_fd())).ok()??;
    AgentOrder::decode(&message.bytes).ok()
}
