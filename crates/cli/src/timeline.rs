//! Showing a run while it goes on.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capsule_core::journal::{Event, PayloadRef};
use capsule_report::{Console, Layout};
use capsule_runtime::{Observer, WrittenEvent};

use crate::screen::Screen;

/// Prints the lines of a run as they are complete.
pub(crate) struct Timeline {
    pub(crate) console: Console,
    screen: Screen,
    progress: ProgressLine,
    /// The first line that could not be printed ends the printing, not the run.
    quiet: bool,
}

impl Timeline {
    pub(crate) fn new(screen: Screen, quiet: bool) -> Self {
        let progress = ProgressLine::new(!quiet && !screen.json, screen.layout());
        Self { console: Console::new(screen.layout()), screen, progress, quiet }
    }
}

impl Observer for Timeline {
    fn on_event(&mut self, note: &WrittenEvent<'_>) {
        let payloads = |wanted: &PayloadRef| {
            note.payloads.iter().find(|(item, _)| item == wanted).map(|(_, bytes)| bytes.clone())
        };
        let lines = self.console.on_event(note.at, note.event, &payloads);
        match note.event {
            Event::CallStarted(_) => {
                let about = self.console.run.calls.last().map(capsule_report::CallView::summary);
                self.progress.begin(about.unwrap_or_default());
            }
            Event::CallFinished(_) => self.progress.end(),
            // Nothing is written over a card.
            Event::ApprovalShown(_) | Event::PlanShown(_) | Event::ConnectionShown(_) => {
                self.progress.end();
            }
            _ => {}
        }
        if !self.quiet {
            self.quiet = self.screen.print_lines(&lines).is_err();
        }
    }
}

/// A line on standard error while something takes longer than a second.
pub(crate) struct ProgressLine(Option<ProgressThread>);

/// The thread that shows it: what it is told, and its word that nothing is shown any more.
struct ProgressThread {
    sender: Sender<Option<String>>,
    cleared: Receiver<()>,
    thread: JoinHandle<()>,
}

impl ProgressLine {
    /// A line in a layout, where one is wanted and can be shown.
    pub(crate) fn new(wanted: bool, layout: Layout) -> Self {
        // Room for the mark and the time.
        let columns = layout.width.saturating_sub(16).min(60);
        if !wanted || layout.plain || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (tell, receiver) = mpsc::channel::<Option<String>>();
        let (cleared, gone) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut running: Option<(String, Instant)> = None;
            let mut shown = false;
            loop {
                let mut ended = false;
                match receiver.recv_timeout(Duration::from_millis(250)) {
                    Ok(next) => {
                        ended = next.is_none();
                        running = next.map(|about| (about, Instant::now()));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                let late = running.as_ref().filter(|(_, since)| since.elapsed().as_secs() >= 1);
                if let Some((about, since)) = late {
                    let about = capsule_base::escape::line(about).into_owned();
                    let about = capsule_report::clip(&about, columns);
                    let seconds = since.elapsed().as_secs();
                    let _ = write!(io::stderr(), "\r\x1b[K   … {about} · {seconds} s");
                } else if shown {
                    let _ = write!(io::stderr(), "\r\x1b[K");
                }
                shown = late.is_some();
                if ended && cleared.send(()).is_err() {
                    break;
                }
            }
            if shown {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        Self(Some(ProgressThread { sender: tell, cleared: gone, thread }))
    }

    /// Shows what goes on, if that takes longer than a second.
    pub(crate) fn begin(&self, about: String) {
        if let Some(thread) = &self.0 {
            let _ = thread.sender.send(Some(about));
        }
    }

    /// Clears the line before anything else is written: a card may come next.
    pub(crate) fn end(&self) {
        if let Some(thread) = &self.0
            && thread.sender.send(None).is_ok()
        {
            let _ = thread.cleared.recv();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(ProgressThread { sender: tell, cleared: gone, thread }) = self.0.take() {
            drop((tell, gone));
            let _ = thread.join();
        }
    }
}
