//! The executor: one small process per run, which starts that run's commands and nothing else.
//!
//! It is small (a copy of it is made for every call), has one thread, and holds nothing of the
//! deciding process but a socket: it is this same program, started anew, or a copy that this program
//! makes of itself before it does anything else, and that forgets with which words it was started. It
//! does what it is told over that socket and ends when the other end is gone.

pub(crate) mod cgroup;
mod processor;
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

use crate::backend::{self, Built, Entered, First, Ground, Paths, Probe, Streams, View};
use crate::kernel;
use crate::protocol::{At as _, Begin, Failed, Refusal, Reply, Request, Step, socket};
use watch::{Ending, Rest};

/// The name under which it shows in lists of processes.
pub(crate) const NAME: &str = "capsule-executor";
/// How much sooner than other processes the kernel ends this one and its commands when memory runs
/// out, of a thousand: commands go before anything else of the user's.
const FIRST_TO_GO: &str = "500";

/// How far a run has come.
enum Stage {
    /// Everything is ready for a view.
    Ready(Ground),
    /// Commands can be run.
    Entered(View),
    /// A wall is missing or could not be built: nothing can be run.
    Barred,
}

/// Serves one run until the other end of the socket is gone.
pub(crate) fn serve() -> ExitCode {
    serve_on(kernel::inherited_socket(), backend::probe)
}

/// The same as a copy of the deciding process, which never becomes that again.
pub(crate) fn serve_as_copy(socket: OwnedFd, words: kernel::Words) -> ! {
    let _leave = kernel::LeaveOnDrop;
    let served = shed(socket, &words).map(|socket| serve_on(socket, backend::probe));
    kernel::leave(i32::from(served != Ok(ExitCode::SUCCESS)))
}

/// Lets go of what a copy has of the deciding process, as far as [`begin`] does not: its words and its
/// streams. The socket takes the place of one of these.
fn shed(socket: OwnedFd, words: &kernel::Words) -> Result<OwnedFd, Errno> {
    kernel::forget_words(words, NAME);
    set_name(&CString::new(NAME).unwrap_or_default())?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    dup2_stdin(&socket)?;
    Ok(kernel::inherited_socket())
}

/// Serves one program that nothing confines, and nothing else.
pub(crate) fn serve_unconfined() -> ExitCode {
    serve_on(kernel::inherited_socket(), backend::bare::prepare)
}

fn serve_on(socket: OwnedFd, probe: fn() -> Probe) -> ExitCode {
    if begin().is_err() {
        return ExitCode::FAILURE;
    }
    let probe = probe();
    let mut stage = probe.ground.map_or(Stage::Barred, Stage::Ready);
    let mut alive = answer(&socket, &Reply::Hello(probe.walls)).is_ok();
    while alive {
        if let Stage::Entered(view) = &mut stage {
            view.take_in(&socket);
        }
        alive = match socket::receive(socket.as_fd()) {
            Ok(Some(message)) => match Request::decode(&message.bytes) {
                Ok(request) => obey(&mut stage, &socket, request, message.descriptors),
                Err(_) => false,
            },
            Err(Errno::INTR) => true,
            Ok(None) | Err(_) => false,
        };
    }
    ExitCode::SUCCESS
}

/// What comes before anything else: nothing inherited may stay.
fn begin() -> Result<(), Failed> {
    kernel::close_range(3..=u32::MAX).at(Step::Descriptors)?;
    kernel::default_signals().at(Step::Signals)?;
    kernel::outlive_no_parent(getppid()).at(Step::Parent)?;
    // Keys that are pressed in the user's terminal are for the deciding process.
    let _ = setsid();
    chdir("/").at(Step::Root)?;
    umask(Mode::from_raw_mode(0o022));
    // What the kernel told this program when it started cannot be asked for behind the walls.
    let _ = rustix::param::page_size();
    // A courtesy to the rest of the system, not a wall.
    let _ = std::fs::write("/proc/self/oom_score_adj", FIRST_TO_GO);
    Ok(())
}

/// Does what is asked; whether to go on.
fn obey(stage: &mut Stage, socket: &OwnedFd, request: Request, descriptors: Vec<OwnedFd>) -> bool {
    if request == Request::End {
        // The command ended by itself meanwhile.
        return true;
    }
    let reply = match (request, std::mem::replace(stage, Stage::Barred)) {
        (Request::Enter(enter), Stage::Ready(ground)) => match ground.enter(&enter) {
            Ok(Entered { mut view, shared, tmp }) => {
                let shared: Vec<_> = shared.iter().map(AsFd::as_fd).collect();
                let told = socket::send(socket.as_fd(), &Reply::Entered { tmp }.encode(), &shared);
                let alive = told.is_ok();
                // The deciding process has things to write down before it asks for the first
                // command; meanwhile its first process is made.
                let tmp_bytes = ProcessLimits::default().tmp_bytes;
                view.stand_by(Built { tmp_bytes, writes: false });
                *stage = Stage::Entered(view);
                return alive;
            }
            Err(refusal) => Reply::Refused(refusal),
        },
        (Request::Run { writes, direct, masks, last, run }, Stage::Entered(mut view)) => {
            let built = Built { tmp_bytes: run.limits.tmp_bytes, writes };
            let paths = Paths { masks: &masks, direct: direct.as_ref() };
            let started = streams(descriptors).and_then(|streams| {
                let first = view.spawn(paths, &run, built, &streams)?;
                Ok((first, streams.begin))
            });
            let alive = match started {
                Ok(begun) => {
                    let next = (!last).then_some(built);
                    attend(&mut view, socket, (&run.limits, next), begun)
                }
                Err(refusal) => answer(socket, &Reply::Refused(refusal)).is_ok(),
            };
            *stage = Stage::Entered(view);
            return alive;
        }
        (_, other) => {
            *stage = other;
            Reply::Refused(Failed { step: Step::Order, errno: Errno::INVAL }.into())
        }
    };
    answer(socket, &reply).is_ok()
}

/// Stays with a command to its end and answers; whether to go on. `begin` says when its time begins.
fn attend(
    view: &mut View,
    socket: &OwnedFd,
    (limits, next): (&ProcessLimits, Option<Built>),
    (first, begin): (First, Begin),
) -> bool {
    // While the command runs, there is time to make ready for the next one.
    if let Some(next) = next {
        view.stand_by(next);
    }
    match watch::until_the_end(view, socket, limits, (&first, &begin)) {
        // Answered before the first process is taken in: nobody needs to wait for that, and often not
        // the next command either.
        Ending::Ended(reply, Rest::OwnEnd) if !view.leaves_traces() => {
            let alive = answer(socket, &reply).is_ok();
            view.let_end(first);
            alive
        }
        ended => {
            // One that was killed hangs up before the others are gone: only when it is gone itself, they
            // are.
            drop(first);
            // What cannot be removed now is found before the next command.
            let _ = view.clear();
            matches!(ended, Ending::Ended(reply, _) if answer(socket, &reply).is_ok())
        }
    }
}

fn streams(descriptors: Vec<OwnedFd>) -> Result<Streams, Refusal> {
    let mut descriptors = descriptors.into_iter();
    match (descriptors.next(), descriptors.next(), descriptors.next()) {
        (Some(begin), Some(output), Some(errors)) => {
            Ok(Streams { begin: begin.into(), input: descriptors.next(), output, errors })
        }
        _ => Err(Failed { step: Step::Streams, errno: Errno::BADF }.into()),
    }
}

fn answer(socket: &OwnedFd, reply: &Reply) -> Result<(), Errno> {
    socket::send(socket.as_fd(), &reply.encode(), &[])
}
