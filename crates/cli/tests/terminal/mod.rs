//! A command in a pseudo-terminal, with somebody who reads and types.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    reason = "tests fail by panics; each of them uses a part of this"
)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::Capsule;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A command in a terminal of its own.
pub(crate) struct Terminal {
    pub(crate) master: Option<File>,
    /// The side of the command, so that its modes can be looked at.
    pub(crate) slave: File,
    pub(crate) child: Child,
    /// What was shown since it was last looked for something.
    pub(crate) seen: String,
    /// All that was shown.
    pub(crate) shown: Vec<u8>,
}

impl Terminal {
    pub(crate) fn start(capsule: &Capsule, args: &[&str]) -> Self {
        Self::start_by(capsule, "exec \"$@\"", args, &[])
    }

    /// Starts it by a line of a shell, with more variables.
    pub(crate) fn start_by(
        capsule: &Capsule,
        by: &str,
        args: &[&str],
        more: &[(&str, &str)],
    ) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = File::from(rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap());
        size(&slave, (80, 30));
        let inner = capsule.command(args);
        // Makes the terminal the session's own, which takes a call that no safe code has.
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait", "sh", "-c", by, "sh"])
            .arg(inner.get_program())
            .args(inner.get_args());
        command.current_dir(inner.get_current_dir().unwrap()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm");
        command.stdin(slave.try_clone().unwrap());
        command.stdout(slave.try_clone().unwrap());
        command.stderr(slave.try_clone().unwrap());
        command.envs(more.iter().copied());
        let child = command.spawn().unwrap();
        let master = Some(File::from(master));
        Self { master, slave, child, seen: String::new(), shown: Vec::new() }
    }

    /// Reads what is there for so long.
    pub(crate) fn read(&mut self, wait: Duration) -> bool {
        let Some(master) = &mut self.master else { return false };
        let nanos = i64::from(wait.subsec_nanos());
        let wait = Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap(), tv_nsec: nanos };
        if poll(&mut [PollFd::new(&*master, PollFlags::IN)], Some(&wait)).unwrap_or(0) == 0 {
            return false;
        }
        let mut bytes = [0; 65_536];
        let read = master.read(&mut bytes).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        self.shown.extend_from_slice(&bytes[..read]);
        read > 0
    }

    /// Waits until a text was shown since the last time.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.seen.contains(text) {
            assert!(Instant::now() < end, "{text:?} is not in {}", self.seen);
            self.read(Duration::from_millis(50));
        }
        let at = self.seen.find(text).unwrap() + text.len();
        self.seen.drain(..at);
    }

    /// Waits for a card that can be allowed.
    #[track_caller]
    pub(crate) fn card(&mut self) {
        self.until("Approve?");
        self.until("digits answer");
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Types like a person: one key, and then the next.
    pub(crate) fn type_slowly(&mut self, keys: &str) {
        for key in keys.chars() {
            self.press(key.encode_utf8(&mut [0; 4]));
            thread::sleep(Duration::from_millis(10));
            self.read(Duration::ZERO);
        }
    }

    /// The process itself, below the one that made the session.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the end; gives the status and what was shown.
    #[track_caller]
    pub(crate) fn end(mut self) -> (i32, String) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            while self.read(Duration::from_millis(20)) {}
            if let Some(status) = self.child.try_wait().unwrap() {
                while self.read(Duration::ZERO) {}
                return (status.code().unwrap_or(-1), std::mem::take(&mut self.seen));
            }
            assert!(Instant::now() < end, "still there: {}", self.seen);
        }
    }

    /// Whether the terminal gives lines again, and its own screen.
    pub(crate) fn is_given_back(&self) -> bool {
        let wanted = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if tcgetattr(&self.slave).unwrap().local_modes.contains(wanted) {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

/// Gives a terminal so many columns and rows.
pub(crate) fn size(terminal: &File, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}
