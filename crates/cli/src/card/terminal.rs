//! The terminal itself: opened anew, so that it never is data that was piped in; raw for as long as a
//! card is on it, and given back as it was on every way out.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use capsule_base::units;
use capsule_core::approval::Card;
use capsule_runtime::{Cancel, PromptAnswer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

use crate::card::card_state::{CardState, RulePatchLookup};
use crate::card::frame::render;
use crate::card::key_decoder::{Decoder, TerminalInput};

/// How often the clock, the window and the run are looked at while nobody types.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The most bytes that are read at once.
const READ_BYTES: usize = 4_096;

/// Another screen, nothing wrapped, no cursor, and pastes between marks.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE_SCREEN: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?2004l\x1b[?1049l";

/// The terminal that the process belongs to.
pub(crate) struct Terminal {
    file: File,
}

impl Terminal {
    /// Opens it, if there is one that listens to this process.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let own: OwnedFd = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        // A process in the background would be stopped when it reads.
        (tcgetpgrp(&own).ok()? == getpgrp()).then(|| Self { file: File::from(own) })
    }

    /// Its columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&self.file) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            }
            _ => (80, 24),
        }
    }

    /// Writes to it.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut file = &self.file;
        file.write_all(text.as_bytes())?;
        file.flush()
    }

    /// Waits so long for something to be read; none if nothing came.
    pub(crate) fn read(&self, wait: Duration) -> Result<Option<Vec<u8>>, Errno> {
        let nanos = i64::from(wait.subsec_nanos());
        let wait =
            Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: nanos };
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut files, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        let mut bytes = vec![0; READ_BYTES];
        match rustix::io::read(&self.file, &mut bytes) {
            // The other side hung up.
            Ok(0) => Err(Errno::IO),
            Ok(read) => {
                bytes.truncate(read);
                Ok(Some(bytes))
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Drops what was typed before anybody could see what it would answer.
    pub(crate) fn discard_input(&self) -> bool {
        let mut any = false;
        while let Ok(Some(_)) = self.read(Duration::ZERO) {
            any = true;
        }
        any
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A terminal that gives every key as it comes. Dropped, also by a panic, it is as it was.
struct RawMode<'t> {
    terminal: &'t Terminal,
    before: Termios,
    raw: Termios,
}

impl<'t> RawMode<'t> {
    fn new(terminal: &'t Terminal) -> Result<Self, Errno> {
        let before = tcgetattr(terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        let mode = Self { terminal, before, raw };
        mode.enter()?;
        Ok(mode)
    }

    fn enter(&self) -> Result<(), Errno> {
        tcsetattr(self.terminal, OptionalActions::Now, &self.raw)?;
        self.terminal.print(ENTER_SCREEN).map_err(|_| Errno::IO)
    }

    /// Whether somebody else changed it: a shell does while the process is stopped.
    fn is_lost(&self) -> bool {
        tcgetattr(self.terminal).is_ok_and(|now| now.local_modes.contains(LocalModes::ICANON))
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        let _ = self.terminal.print(LEAVE_SCREEN);
        // What was typed to the card and not read is nobody else's.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Shows a card until it is answered, or cannot be any more.
pub(crate) fn show(
    terminal: &Terminal,
    card: &Card,
    rules: &RulePatchLookup,
    (color, cancel): (bool, &Cancel),
) -> PromptAnswer {
    let (said, interrupted) = match RawMode::new(terminal) {
        Ok(raw) => run_prompt(&raw, card, rules, (color, cancel)),
        Err(_) => (PromptAnswer::Withdrawn, false),
    };
    if interrupted {
        // As if the terminal had done it, now that it is as it was.
        let _ = kill_process(getpid(), Signal::INT);
    }
    said
}

fn run_prompt(
    raw: &RawMode<'_>,
    card: &Card,
    rules: &RulePatchLookup,
    (color, cancel): (bool, &Cancel),
) -> (PromptAnswer, bool) {
    let terminal = raw.terminal;
    let began = Instant::now();
    let now = || units::millis(began.elapsed());
    let ahead = terminal.discard_input();
    let mut keys = CardState::new(card, now(), ahead);
    let (mut decoder, mut size, mut shown) = (Decoder::default(), terminal.size(), Vec::new());
    loop {
        if let Some(call) = keys.wants_rule() {
            keys.set_patch(rules(call));
        }
        let lines = render(card, &mut keys, size, now(), color);
        if lines != shown {
            if terminal.print(&join_frame(&lines)).is_err() {
                return (PromptAnswer::Withdrawn, false);
            }
            shown = lines;
        }
        let read = terminal.read(POLL_INTERVAL);
        if cancel.is_set() {
            return (PromptAnswer::Withdrawn, false);
        }
        let mut inputs = match read {
            Ok(Some(bytes)) => decoder.push(&bytes),
            Ok(None) => vec![decoder.flush().unwrap_or(TerminalInput::Nothing)],
            Err(_) => vec![TerminalInput::Disconnected],
        };
        let here = terminal.size();
        if here != size || raw.is_lost() {
            size = here;
            shown.clear();
            if raw.enter().is_err() {
                inputs.push(TerminalInput::Disconnected);
            }
            inputs.insert(0, TerminalInput::Resized);
        }
        for input in inputs {
            if let Some(said) = keys.handle_input(now(), input) {
                return (said, keys.is_interrupted());
            }
        }
    }
}

/// Everything at once, so that nothing flickers.
fn join_frame(lines: &[String]) -> String {
    let mut all = String::from("\x1b[H");
    for (at, line) in lines.iter().enumerate() {
        let is_last = at + 1 == lines.len();
        let end = if is_last { "" } else { "\r\n" };
        // Erased before it is written: behind a full line the cursor stands on its last character.
        all.push_str(if is_last { "\x1b[J" } else { "\x1b[2K" });
        all.push_str(line);
        all.push_str(end);
    }
    all
}
