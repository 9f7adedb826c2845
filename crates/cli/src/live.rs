//! Showing a run while it goes on.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capsule_core::journal::{Event, PayloadRef};
use capsule_report::Console;
use capsule_runtime::{Note, Observer};

use crate::screen::Screen;

/// Prints the lines of a run as they are complete.
pub(crate) struct Timeline {
    pub(crate) console: Console,
    screen: Screen,
    progress: Progress,
    /// The first line that could not be printed ends the printing, not the run.
    quiet: bool,
}

impl Timeline {
    pub(crate) fn new(screen: Screen, quiet: bool) -> Self {
        let progress = Progress::new(!quiet && !screen.layout().plain && !screen.json);
        Self { console: Console::new(screen.layout()), screen, progress, quiet }
    }
}

impl Observer for Timeline {
    fn see(&mut self, note: &Note<'_>) {
        let payloads = |wanted: &PayloadRef| {
            note.payloads.iter().find(|(own, _)| own == wanted).map(|(_, bytes)| bytes.clone())
        };
        let lines = self.console.see(note.at, note.event, &payloads);
        match note.event {
            Event::CallStarted(_) => {
                let about = self.console.story.calls.last().map(capsule_report::CallStory::about);
                self.progress.begin(about.unwrap_or_default());
            }
            Event::CallFinished(_) => self.progress.end(),
            _ => {}
        }
        if !self.quiet {
            self.quiet = self.screen.say_all(&lines).is_err();
        }
    }
}

/// A line on standard error while something takes longer than a second.
struct Progress(Option<(Sender<Option<String>>, JoinHandle<()>)>);

impl Progress {
    fn new(wanted: bool) -> Self {
        if !wanted || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (sender, receiver) = mpsc::channel::<Option<String>>();
        let thread = std::thread::spawn(move || {
            let mut running: Option<(String, Instant)> = None;
            let mut shown = false;
            loop {
                match receiver.recv_timeout(Duration::from_millis(250)) {
                    Ok(next) => running = next.map(|about| (about, Instant::now())),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                let late = running.as_ref().filter(|(_, since)| since.elapsed().as_secs() >= 1);
                if let Some((about, since)) = late {
                    let about = capsule_core::escape::line(about).into_owned();
                    let about = capsule_report::clip(&about, 60);
                    let seconds = since.elapsed().as_secs();
                    let _ = write!(io::stderr(), "\r\x1b[K   … {about} · {seconds} s");
                } else if shown {
                    let _ = write!(io::stderr(), "\r\x1b[K");
                }
                shown = late.is_some();
            }
            if shown {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        Self(Some((sender, thread)))
    }

    fn begin(&self, about: String) {
        if let Some((sender, _)) = &self.0 {
            let _ = sender.send(Some(about));
        }
    }

    fn end(&self) {
        if let Some((sender, _)) = &self.0 {
            let _ = sender.send(None);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
