//! The terminal of the user and that of an agent: what is typed goes in, what is shown comes out, and the size, the
//! signals and the stops of one are those of the other.
//!
//! The agent never has the user's terminal: a process that holds one can type into it.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use capsule_runtime::AgentConnections;
use capsule_sandbox::{AgentEvent, RunningAgent, SandboxError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, kill_process_group};
use rustix::termios::{
    OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

/// How much is passed on at once.
const BUFFER_BYTES: usize = 65_536;
/// How long an agent that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);
/// How often Ctrl+C has to come, where the agent has no terminal, until it is ended.
const INTERRUPTS: u32 = 3;

/// How long the terminal of an agent that has ended is waited for to close.
const LAST_OUTPUT_NANOS: i64 = 200_000_000;

/// Signals that are passed on to the agent.
const PASSED: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// Which streams of this process are no terminal, duplicated: the agent gets these themselves.
///
/// # Errors
/// A stream cannot be duplicated, or is a directory, through which an agent would reach what lies in it and beside it.
pub(super) fn given_streams() -> io::Result<[Option<OwnedFd>; 3]> {
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    let give = |is_terminal: bool, stream: BorrowedFd<'_>| {
        if is_terminal {
            return Ok(None);
        }
        if FileType::from_raw_mode(fstat(stream)?.st_mode) == FileType::Directory {
            return Err(io::Error::other("one of them is a directory"));
        }
        stream.try_clone_to_owned().map(Some)
    };
    Ok([
        give(input.is_terminal(), input.as_fd())?,
        give(output.is_terminal(), output.as_fd())?,
        give(error.is_terminal(), error.as_fd())?,
    ])
}

/// Has an agent begin and stays with it to its end.
///
/// # Errors
/// Its program cannot be executed, or its end is not known.
pub(super) fn attach(
    agent: &mut RunningAgent,
    connections: Option<&mut AgentConnections<'_, '_>>,
) -> Result<AgentEvent, SandboxError> {
    let signals = Signals::catch().map_err(|error| unable(&error))?;
    let user = UserTerminal::find();
    let mut relay = Relay::new(&user);
    if let Some(terminal) = agent.terminal() {
        fcntl_setfl(terminal, OFlags::RDWR | OFlags::NONBLOCK).map_err(|e| unable(&e.into()))?;
        // As if the agent had the user's: the same size, and the same keys mean the same.
        for end in user.output.iter().chain(&user.input) {
            let _ = copy_size(end.as_fd(), terminal);
            let _ =
                tcgetattr(end).and_then(|modes| tcsetattr(terminal, OptionalActions::Now, &modes));
        }
    }
    relay.enter_raw();
    agent.begin()?;
    relay.run(agent, &signals, connections)
}

fn unable(error: &io::Error) -> SandboxError {
    SandboxError::Start { reason: error.to_string() }
}

/// The ends of the user's terminal: what of the standard streams is one.
struct UserTerminal {
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
}

impl UserTerminal {
    fn find() -> Self {
        let terminal = |is_terminal: bool, stream: BorrowedFd<'_>| {
            if is_terminal { stream.try_clone_to_owned().ok() } else { None }
        };
        let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
        Self {
            input: terminal(input.is_terminal(), input.as_fd()),
            output: terminal(output.is_terminal(), output.as_fd())
                .or_else(|| terminal(error.is_terminal(), error.as_fd())),
        }
    }
}

/// The signals of this process, as something to wait for.
struct Signals {
    woken: std::os::unix::net::UnixStream,
    pending: std::sync::Arc<[std::sync::atomic::AtomicU32]>,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        let (woken, wake) = std::os::unix::net::UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let all: Vec<i32> = PASSED.into_iter().chain([SIGWINCH]).collect();
        let pending: std::sync::Arc<[AtomicU32]> = all.iter().map(|_| AtomicU32::new(0)).collect();
        let mut signals = signal_hook::iterator::Signals::new(&all)?;
        let counters = std::sync::Arc::clone(&pending);
        // A thread, since a handler can do nothing but count; it ends with the process.
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let at = all.iter().position(|known| *known == signal);
                if let Some(counter) = at.and_then(|at| counters.get(at)) {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                let _ = io::Write::write(&mut &wake, &[0]);
            }
        })?;
        Ok(Self { woken, pending })
    }

    /// Those that came since the last time: how often each of [`PASSED`], and whether the window changed.
    fn take(&self) -> (Vec<(i32, u32)>, bool) {
        let _ = io::Read::read(&mut &self.woken, &mut [0; 64]);
        let take = |at: usize| {
            let counter = self.pending.get(at);
            counter.map_or(0, |counter| counter.swap(0, std::sync::atomic::Ordering::Relaxed))
        };
        let came = PASSED.iter().enumerate().map(|(at, signal)| (*signal, take(at)));
        let came = came.filter(|(_, count)| *count > 0).collect();
        (came, take(PASSED.len()) > 0)
    }
}

/// What goes back and forth.
struct Relay<'u> {
    user: &'u UserTerminal,
    /// How the user's terminal was before every key came through.
    raw: Option<Termios>,
    /// Whether more may come from the user, and from the agent.
    is_open: (bool, bool),
    /// When the agent is ended, since it was asked to.
    deadline: Option<Instant>,
    interrupts: u32,
    /// What was typed and the agent has not taken so far.
    typed: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'u> Relay<'u> {
    fn new(user: &'u UserTerminal) -> Self {
        Self {
            user,
            raw: None,
            is_open: (user.input.is_some(), true),
            deadline: None,
            interrupts: 0,
            typed: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Has every key come through, where the whole conversation is on the terminal.
    fn enter_raw(&mut self) {
        let (Some(input), Some(_)) = (&self.user.input, &self.user.output) else { return };
        if let Ok(before) = tcgetattr(input) {
            let mut raw = before.clone();
            raw.make_raw();
            if tcsetattr(input, OptionalActions::Drain, &raw).is_ok() {
                self.raw = Some(before);
            }
        }
    }

    fn leave_raw(&mut self) {
        if let (Some(input), Some(before)) = (&self.user.input, self.raw.take()) {
            let _ = tcsetattr(input, OptionalActions::Drain, &before);
        }
    }

    fn run(
        &mut self,
        agent: &mut RunningAgent,
        signals: &Signals,
        mut connections: Option<&mut AgentConnections<'_, '_>>,
    ) -> Result<AgentEvent, SandboxError> {
        loop {
            let attention = connections.as_ref().and_then(|all| all.attention());
            let ready = self.wait(agent, signals, attention)?;
            if ready.connected
                && let Some(connections) = &mut connections
            {
                self.attend(agent, connections)?;
            }
            if ready.shown {
                self.show(agent);
            }
            if ready.signalled {
                self.pass_signals(agent, signals)?;
            }
            if ready.typed {
                self.type_in();
            }
            if !self.typed.is_empty() {
                self.give_typed(agent);
            }
            if ready.event {
                match agent.next_event()? {
                    AgentEvent::Stopped(_) => self.stop(agent)?,
                    ended => {
                        self.show_rest(agent);
                        return Ok(ended);
                    }
                }
            }
            if self.deadline.is_some_and(|end| Instant::now() >= end) {
                agent.signal(Signal::KILL.as_raw())?;
                self.deadline = None;
            }
        }
    }

    /// Has something done about a connection of the agent. Where a person is asked, the terminal is theirs meanwhile.
    fn attend(
        &mut self,
        agent: &RunningAgent,
        connections: &mut AgentConnections<'_, '_>,
    ) -> Result<(), SandboxError> {
        let was_raw = self.raw.is_some();
        connections.attend(&mut || self.leave_raw());
        if connections.has_failed() && self.deadline.is_none() {
            agent.signal(Signal::TERM.as_raw())?;
            self.deadline = Instant::now().checked_add(GRACE);
        }
        if was_raw && self.raw.is_none() {
            self.enter_raw();
            if let Some(terminal) = agent.terminal() {
                redraw(terminal);
            }
        }
        Ok(())
    }

    fn wait(
        &self,
        agent: &RunningAgent,
        signals: &Signals,
        attention: Option<BorrowedFd<'_>>,
    ) -> Result<Ready, SandboxError> {
        let events = agent.events()?;
        let terminal = agent.terminal().filter(|_| self.is_open.1);
        // Nothing more is read while the agent takes nothing.
        let takes = self.is_open.0 && self.typed.is_empty();
        let input = self.user.input.as_ref().filter(|_| takes);
        let mut files =
            vec![PollFd::new(&events, PollFlags::IN), PollFd::new(&signals.woken, PollFlags::IN)];
        let writes = if self.typed.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        files.extend(terminal.iter().map(|end| PollFd::new(end, PollFlags::IN | writes)));
        files.extend(input.iter().map(|end| PollFd::new(*end, PollFlags::IN)));
        files.extend(attention.iter().map(|end| PollFd::new(end, PollFlags::IN)));
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        match poll(&mut files, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(unable(&errno.into())),
        }
        let mut ready = files.iter().map(|file| file.revents());
        let any = |flags: Option<PollFlags>| flags.is_some_and(|flags| !flags.is_empty());
        Ok(Ready {
            event: any(ready.next()),
            signalled: any(ready.next()),
            shown: terminal.is_some()
                && ready.next().is_some_and(|flags| flags.intersects(!PollFlags::OUT)),
            typed: input.is_some() && any(ready.next()),
            connected: attention.is_some() && any(ready.next()),
        })
    }

    /// Passes on what the agent shows.
    fn show(&mut self, agent: &RunningAgent) {
        let Some(terminal) = agent.terminal() else { return };
        match rustix::io::read(terminal, &mut self.buffer) {
            Ok(0) => self.is_open.1 = false,
            Ok(count) => {
                let shown = self.buffer.get(..count).unwrap_or_default();
                if let Some(output) = &self.user.output {
                    write_all(output.as_fd(), shown);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The other side is closed.
            Err(_) => self.is_open.1 = false,
        }
    }

    /// Passes on what the agent showed last.
    fn show_rest(&mut self, agent: &RunningAgent) {
        while let Some(terminal) = agent.terminal().filter(|_| self.is_open.1) {
            let mut files = [PollFd::new(&terminal, PollFlags::IN)];
            let wait = Timespec { tv_sec: 0, tv_nsec: LAST_OUTPUT_NANOS };
            if poll(&mut files, Some(&wait)) == Ok(0) {
                return;
            }
            self.show(agent);
        }
    }

    /// Takes what the user typed.
    fn type_in(&mut self) {
        let Some(input) = &self.user.input else { return };
        match rustix::io::read(input, &mut self.buffer) {
            Ok(count) if count > 0 => {
                self.typed.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) if self.raw.is_none() => {
                // The end of the input, typed: the agent's terminal makes the same of the same key.
                self.typed.push(0x04);
                self.is_open.0 = false;
            }
            // The window was closed.
            Ok(_) | Err(_) => self.is_open.0 = false,
        }
    }

    /// Gives the agent as much of it as it takes: it may take nothing while it shows something that waits for us.
    fn give_typed(&mut self, agent: &RunningAgent) {
        let Some(terminal) = agent.terminal() else { return self.typed.clear() };
        match rustix::io::write(terminal, &self.typed) {
            Ok(count) => drop(self.typed.drain(..count.min(self.typed.len()))),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.typed.clear(),
        }
    }

    fn pass_signals(
        &mut self,
        agent: &RunningAgent,
        signals: &Signals,
    ) -> Result<(), SandboxError> {
        let (came, resized) = signals.take();
        if resized && let (Some(user), Some(terminal)) = (&self.user.output, agent.terminal()) {
            // The kernel tells the agent.
            let _ = copy_size(user.as_fd(), terminal);
        }
        for (signal, count) in came {
            agent.signal(signal)?;
            if signal == SIGINT {
                self.interrupts = self.interrupts.saturating_add(count);
            }
            let ends = matches!(signal, SIGTERM | SIGHUP) || self.interrupts >= INTERRUPTS;
            if ends && self.deadline.is_none() {
                self.deadline = Instant::now().checked_add(GRACE);
            }
        }
        Ok(())
    }

    /// Stops with the agent, and goes on with it.
    fn stop(&mut self, agent: &RunningAgent) -> Result<(), SandboxError> {
        let was_raw = self.raw.is_some();
        self.leave_raw();
        // The shell of the user goes on; whatever of this job there is besides waits with us.
        let _ = kill_process_group(getpgrp(), Signal::TSTP);
        if was_raw {
            self.enter_raw();
        }
        if let (Some(user), Some(terminal)) = (&self.user.output, agent.terminal()) {
            let _ = copy_size(user.as_fd(), terminal);
        }
        agent.resume()
    }
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        self.leave_raw();
    }
}

/// Which of them have something.
struct Ready {
    event: bool,
    signalled: bool,
    shown: bool,
    typed: bool,
    connected: bool,
}

/// Has what runs in a terminal show itself again, as when the window changes.
fn redraw(terminal: BorrowedFd<'_>) {
    if let Ok(size) = tcgetwinsize(terminal) {
        let other = Winsize { ws_row: size.ws_row.saturating_sub(1).max(1), ..size };
        let _ = tcsetwinsize(terminal, other);
        let _ = tcsetwinsize(terminal, size);
    }
}

fn copy_size(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    tcgetwinsize(from).and_then(|size| tcsetwinsize(to, size))
}

/// Writes all of it; to a terminal that is not read any more it is lost.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&to, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}
