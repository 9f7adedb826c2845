//! The executor: one small process per run, which starts that run's commands and nothing else.
//!
//! It is small (a copy of it is made for every call), has one thread, and holds nothing of the
//! deciding process but a socket: it is this same program, started anew, or a copy that this program
//! makes of itself before it does anything else, and that forgets with which words it was started. It
//! does what it is told over that socket and ends when the other end is gone.

mod backoff;
pub(crate) mod cgroup;
mod copies;
mod cpu_time;
pub(crate) mod sample;
mod watch;

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use capsule_core::confinement::ProcessLimits;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{chdir, getppid, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::set_name;

use crate::linux::backend::{
    self, CommandPaths, EnteredSandbox, InitOptions, InitProcess, PreparedBackend, Probe,
    RunSandbox, Streams,
};
use crate::linux::kernel;
use crate::linux::protocol::{
    AtStep as _, ExecutorError, ExecutorReply, ExecutorRequest, SetupError, StartGate, Step, socket,
};
use copies::Copies;
use watch::{CommandEnd, PendingCleanup};

/// The name under which it shows in lists of processes.
pub(crate) const PROCESS_NAME: &str = "capsule-executor";
/// How much sooner than other processes the kernel ends this one and its commands when memory runs
/// out, of a thousand: commands go before anything else of the user's.
const OOM_SCORE_ADJ: &str = "500";

/// How far a run has come.
enum ExecutorState {
    /// Everything is ready for a view.
    Ready(PreparedBackend),
    /// Commands can be run.
    Entered(RunSandbox),
    /// A wall is missing or could not be built: nothing can be run.
    Unusable,
}

/// Serves one run until the other end of the socket is gone.
pub(crate) fn serve() -> ExitCode {
    serve_on(kernel::inherited_socket(), backend::probe)
}

/// The same as a copy of the deciding process, which never becomes that again.
pub(crate) fn serve_forked(socket: OwnedFd, words: kernel::ArgumentMemory) -> ! {
    let _leave = kernel::ExitOnDrop;
    let served = drop_inherited(socket, &words).map(|socket| serve_on(socket, backend::probe));
    kernel::exit_now(i32::from(served != Ok(ExitCode::SUCCESS)))
}

/// Lets go of what a copy has of the deciding process, as far as [`begin`] does not: its words and its
/// streams. The socket takes the place of one of these.
fn drop_inherited(socket: OwnedFd, words: &kernel::ArgumentMemory) -> Result<OwnedFd, Errno> {
    kernel::erase_arguments(words, PROCESS_NAME);
    set_name(&CString::new(PROCESS_NAME).unwrap_or_default())?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    dup2_stdin(&socket)?;
    Ok(kernel::inherited_socket())
}

/// Serves one program that nothing confines, and nothing else.
pub(crate) fn serve_unconfined() -> ExitCode {
    serve_on(kernel::inherited_socket(), backend::unconfined::prepare)
}

fn serve_on(mut socket: OwnedFd, probe: fn() -> Probe) -> ExitCode {
    if isolate_process().is_err() {
        return ExitCode::FAILURE;
    }
    let probe = probe();
    let mut stage = probe.prepared.map_or(ExecutorState::Unusable, ExecutorState::Ready);
    let mut alive = send_reply(&socket, &ExecutorReply::Status(probe.status)).is_ok();
    let mut copies = Copies::default();
    while alive {
        copies.take_in();
        if let ExecutorState::Entered(view) = &mut stage {
            view.reap(&socket);
        }
        alive = match socket::receive(socket.as_fd()) {
            Ok(Some(message)) => match ExecutorRequest::decode(&message.bytes) {
                Ok(ExecutorRequest::Fork) => match make_copy(&mut stage, &mut copies, &socket) {
                    Ok(Some(line)) => {
                        socket = line;
                        true
                    }
                    Ok(None) => true,
                    Err(failed) => {
                        send_reply(&socket, &ExecutorReply::Refused(failed.into())).is_ok()
                    }
                },
                Ok(request) => handle_request(&mut stage, &socket, request, message.descriptors),
                Err(_) => false,
            },
            Err(Errno::INTR) => true,
            Ok(None) | Err(_) => false,
        };
    }
    ExitCode::SUCCESS
}

/// Makes a copy that serves a command in the background; in that, gives what it is spoken to on.
///
/// # Errors
/// There is no view, or no copy of it can be made.
fn make_copy(
    stage: &mut ExecutorState,
    copies: &mut Copies,
    socket: &OwnedFd,
) -> Result<Option<OwnedFd>, SetupError> {
    match stage {
        ExecutorState::Entered(view) => copies.make(view, socket),
        _ => Err(SetupError { step: Step::Order, errno: Errno::INVAL }),
    }
}

/// What comes before anything else: nothing inherited may stay.
pub(crate) fn isolate_process() -> Result<(), SetupError> {
    kernel::close_range(3..=u32::MAX).at(Step::Descriptors)?;
    kernel::reset_signals().at(Step::Signals)?;
    kernel::outlive_no_parent(getppid()).at(Step::Parent)?;
    // Keys that are pressed in the user's terminal are for the deciding process.
    let _ = setsid();
    chdir("/").at(Step::Root)?;
    umask(Mode::from_raw_mode(0o022));
    // What the kernel told this program when it started cannot be asked for behind the walls.
    let _ = rustix::param::page_size();
    // A courtesy to the rest of the system, not a wall.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
    Ok(())
}

/// Does what is asked; whether to go on.
fn handle_request(
    stage: &mut ExecutorState,
    socket: &OwnedFd,
    request: ExecutorRequest,
    descriptors: Vec<OwnedFd>,
) -> bool {
    if matches!(request, ExecutorRequest::End | ExecutorRequest::Pause | ExecutorRequest::Resume) {
        // The command ended by itself meanwhile.
        return true;
    }
    let reply = match (request, std::mem::replace(stage, ExecutorState::Unusable)) {
        (ExecutorRequest::Enter(enter), ExecutorState::Ready(ground)) => match ground.enter(&enter)
        {
            Ok(EnteredSandbox { sandbox: mut view, shared, private }) => {
                let shared: Vec<_> = shared.iter().map(AsFd::as_fd).collect();
                let reply = ExecutorReply::Entered { private }.encode();
                let told = socket::send(socket.as_fd(), &reply, &shared);
                let alive = told.is_ok();
                // The deciding process has things to write down before it asks for the first
                // command; meanwhile its first process is made.
                view.prepare_next(init_options(&ProcessLimits::default(), false));
                *stage = ExecutorState::Entered(view);
                return alive;
            }
            Err(refusal) => ExecutorReply::Refused(refusal),
        },
        (
            ExecutorRequest::Run { writes, ignores_tmp_links, direct, hidden: masks, is_last, run },
            ExecutorState::Entered(mut view),
        ) => {
            let built = init_options(&run.limits, writes);
            let built = InitOptions { ignores_tmp_links, ..built };
            let paths = CommandPaths { hidden: &masks, direct: direct.as_ref() };
            let started = take_streams(descriptors).and_then(|streams| {
                let first = view.spawn(paths, &run, built, &streams)?;
                Ok((first, streams.start_gate))
            });
            let alive = match started {
                Ok(begun) => {
                    let next = (!is_last).then_some(built);
                    supervise_command(&mut view, socket, (&run.limits, next), begun)
                }
                Err(refusal) => send_reply(socket, &ExecutorReply::Refused(refusal)).is_ok(),
            };
            *stage = ExecutorState::Entered(view);
            return alive;
        }
        (ExecutorRequest::Listen { ports }, ExecutorState::Entered(view)) => {
            let alive = listen(&view, &ports, socket);
            *stage = ExecutorState::Entered(view);
            return alive;
        }
        (_, other) => {
            *stage = other;
            ExecutorReply::Refused(SetupError { step: Step::Order, errno: Errno::INVAL }.into())
        }
    };
    send_reply(socket, &reply).is_ok()
}

/// Listens in the network of the calls, and passes the sockets on; whether to go on.
fn listen(view: &RunSandbox, ports: &[u16], socket: &OwnedFd) -> bool {
    match view.listen(ports) {
        Ok((port, sockets)) => {
            let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
            let reply = ExecutorReply::Listening { port }.encode();
            socket::send(socket.as_fd(), &reply, &sockets).is_ok()
        }
        Err(refusal) => send_reply(socket, &ExecutorReply::Refused(refusal.into())).is_ok(),
    }
}

/// Stays with a command to its end and answers; whether to go on. `begin` says when its time begins.
fn supervise_command(
    view: &mut RunSandbox,
    socket: &OwnedFd,
    (limits, next): (&ProcessLimits, Option<InitOptions>),
    (first, begin): (InitProcess, StartGate),
) -> bool {
    // While the command runs, there is time to make ready for the next one.
    if let Some(next) = next {
        view.prepare_next(next);
    }
    match watch::wait_for_end(view, socket, limits, (&first, &begin)) {
        // Answered before the first process is taken in: nobody needs to wait for that, and often not
        // the next command either.
        CommandEnd::Ended(reply, PendingCleanup::InitExit) if !view.leaves_traces() => {
            let alive = send_reply(socket, &reply).is_ok();
            view.leave_to_end(first);
            alive
        }
        ended => {
            // One that was killed hangs up before the others are gone: only when it is gone itself, they
            // are.
            drop(first);
            // What cannot be removed now is found before the next command.
            let _ = view.clean_up();
            matches!(ended, CommandEnd::Ended(reply, _) if send_reply(socket, &reply).is_ok())
        }
    }
}

fn take_streams(descriptors: Vec<OwnedFd>) -> Result<Streams, ExecutorError> {
    let mut descriptors = descriptors.into_iter();
    match (descriptors.next(), descriptors.next(), descriptors.next()) {
        (Some(begin), Some(output), Some(errors)) => Ok(Streams {
            start_gate: begin.into(),
            input: descriptors.next(),
            output,
            error: errors,
        }),
        _ => Err(SetupError { step: Step::Streams, errno: Errno::BADF }.into()),
    }
}

fn send_reply(socket: &OwnedFd, reply: &ExecutorReply) -> Result<(), Errno> {
    socket::send(socket.as_fd(), &reply.encode(), &[])
}

/// What is built into the first process of a call with these limits.
fn init_options(limits: &ProcessLimits, writes: bool) -> InitOptions {
    let ProcessLimits { tmp_bytes, memory_bytes, .. } = *limits;
    InitOptions { tmp_bytes, memory_bytes, writes, ignores_tmp_links: false }
}
