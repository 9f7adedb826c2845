//! The screen: what is printed, where, and how wide.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use capsule_base::escape;
use capsule_core::outcome::CodedError;
use capsule_report::{Layout, ReportError, fit_line};
use serde::Serialize;
use serde_json::Value;
use terminal_size::terminal_size_of;

use crate::args::{Color, Globals};
use crate::failure::{Failure, stdout_failure};

/// Something went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Something went well.
pub(crate) const SUCCESS: Style = AnsiColor::Green.on_default();
/// Something wants care.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// As it is.
pub(crate) const PLAIN: Style = Style::new();
/// What to do next.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// Details.
pub(crate) const DIMMED: Style = Style::new().dimmed();

/// The widest that a report gets on a terminal; longer lines are hard to read.
const MAX_COLUMNS: usize = 120;

/// Whether anything was said on standard output.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// What is printed, where, and how wide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Whether programs read the output.
    pub(crate) json: bool,
    color: Color,
    layout: Layout,
}

impl Screen {
    /// The screen that a command was given.
    pub(crate) fn new(globals: &Globals) -> Self {
        let layout = Layout { width: columns().clamp(40, MAX_COLUMNS), plain: globals.plain };
        Self { json: globals.json, color: globals.color, layout }
    }

    /// The same in the window as it is now, also where that is a narrow one.
    pub(crate) fn measured(&self) -> Self {
        let width = columns().clamp(20, MAX_COLUMNS);
        Self { layout: Layout { width, ..self.layout }, ..*self }
    }

    /// One for programs that read the output, where nobody could say how it should look.
    pub(crate) const fn for_json() -> Self {
        Self { json: true, color: Color::Never, layout: Layout { width: 80, plain: true } }
    }

    /// How reports are laid out.
    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether a program that reads the output has nothing yet that it can parse.
    pub(crate) fn needs_json(&self) -> bool {
        self.json && !HAS_PRINTED.load(Ordering::Relaxed)
    }

    fn choice(&self) -> ColorChoice {
        match self.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }

    /// Whether errors may be coloured.
    pub(crate) fn has_color(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => AutoStream::choice(&io::stderr()) != ColorChoice::Never,
        }
    }

    /// Prints a line to standard output.
    pub(crate) fn print_line(&self, line: &str) -> Result<(), Failure> {
        HAS_PRINTED.store(true, Ordering::Relaxed);
        let mut out = AutoStream::new(io::stdout().lock(), self.choice());
        writeln!(out, "{line}").map_err(stdout_failure)
    }

    /// Prints a text as it is, for whoever it is piped to.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        io::stdout().lock().write_all(text.as_bytes()).map_err(stdout_failure)
    }

    /// Prints a piece of a line at once, with the moves of the cursor that it holds.
    pub(crate) fn print_piece(&self, piece: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(piece.as_bytes()).and_then(|()| out.flush()).map_err(stdout_failure)
    }

    /// Prints lines to standard output.
    pub(crate) fn print_lines(&self, lines: &[String]) -> Result<(), Failure> {
        lines.iter().try_for_each(|line| self.print_line(line))
    }

    /// Prints a value to standard output, for people to read where people read it.
    pub(crate) fn print_json(&self, value: &Value) -> Result<(), Failure> {
        self.print_line(&escape_json(&serde_json::to_string_pretty(value).unwrap_or_default()))
    }

    /// Prints JSON that is made while it is printed, as [`Self::print_json`] prints a value.
    pub(crate) fn print_json_with<T>(
        &self,
        make: impl FnOnce(&mut dyn Write) -> Result<T, ReportError>,
    ) -> Result<T, Failure> {
        let shown = Shown { out: io::stdout().lock(), rest: Vec::new() };
        // JSON comes in small pieces.
        let mut out = BufWriter::with_capacity(1 << 16, shown);
        let made = make(&mut out).map_err(|error| match error {
            ReportError::Store(error) => Failure::from(error),
            ReportError::Write(error) => stdout_failure(error),
        })?;
        let ended = out.write_all(b"\n").and_then(|()| out.flush());
        ended.map_err(stdout_failure)?;
        Ok(made)
    }

    /// Prints a value in one line, its fields in their own order.
    pub(crate) fn print_json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.print_line(&escape_json(&serde_json::to_string(value).unwrap_or_default()))
    }

    /// Prints a line to standard output, at a terminal in as many lines as it needs there.
    pub(crate) fn print_fitted(&self, line: &str) -> Result<(), Failure> {
        self.print_lines(&fit_lines(line, self.window()))
    }

    /// Prints a line to standard error, at a terminal in as many lines as it needs there; nobody is told if that fails.
    pub(crate) fn eprint(&self, line: &str) {
        let mut out = AutoStream::new(io::stderr().lock(), self.choice());
        let fitted = fit_lines(line, terminal_columns(io::stderr()));
        let _ = writeln!(out, "{}", fitted.join("\n"));
    }

    /// The columns of the terminal that standard output goes to, if it goes to one.
    pub(crate) fn window(&self) -> Option<usize> {
        terminal_columns(io::stdout())
    }
}

/// The columns of the terminal that a stream goes to, if it goes to one.
fn terminal_columns(stream: impl IsTerminal + AsFd) -> Option<usize> {
    let size = stream.is_terminal().then(|| terminal_size_of(stream)).flatten();
    size.map(|(width, _)| usize::from(width.0))
}

/// Lines, each in as many as it needs in a window. What quotes a text with its place stays as it is: marks stand
/// below it.
fn fit_lines(lines: &str, window: Option<usize>) -> Vec<String> {
    let fitted = |line: &str| match window {
        Some(columns) if !is_quoted_source(line) => fit_line(line, columns),
        _ => vec![line.to_owned()],
    };
    lines.split('\n').flat_map(fitted).collect()
}

/// Whether a line is one of a source text, with its number, or the marks below one.
fn is_quoted_source(line: &str) -> bool {
    let plain = anstream::adapter::strip_str(line).to_string();
    let behind = plain.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    behind.starts_with(['|', '^']) || behind.starts_with("-->")
}

/// The columns of the terminal that standard output goes to, 80 where that is none.
fn columns() -> usize {
    terminal_columns(io::stdout()).unwrap_or(80)
}

/// Standard output for JSON that shows what it holds; see [`escape_json`].
struct Shown<'o> {
    out: StdoutLock<'o>,
    /// The first bytes of a character of which the others are still to come.
    rest: Vec<u8>,
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        HAS_PRINTED.store(true, Ordering::Relaxed);
        self.rest.extend(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            Err(error) => error.valid_up_to(),
        };
        let whole: Vec<u8> = self.rest.drain(..whole).collect();
        self.out.write_all(escape_json(&String::from_utf8_lossy(&whole)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What to do next, as a fragment. The table of codes has sentences, for its page; whatever else is said
/// is one already.
pub(crate) fn hint(problem: &CodedError) -> Option<String> {
    let suggestion = problem.suggestion.as_deref()?;
    let told = match suggestion == problem.code.next_step() {
        true => suggestion
            .trim_end_matches('.')
            .split(". ")
            .map(to_fragment)
            .collect::<Vec<_>>()
            .join("; "),
        false => suggestion.to_owned(),
    };
    Some(escape::line(&told).into_owned())
}

/// A problem for people, with its code. What follows the first line of its message, such as the place in a command that
/// it is about, is indented, so that no line of it passes for one of ours.
pub(crate) fn problem_text(problem: &CodedError) -> String {
    let message = escape::block(&problem.message);
    let (first, rest) = message.split_once('\n').unwrap_or((&*message, ""));
    let rest: String = rest.lines().map(|line| format!("\n  {line}")).collect();
    format!("{first} [{}]{rest}", problem.code)
}

fn to_fragment(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect()
}

/// JSON that shows what it holds: characters that would do something other than show themselves are
/// escaped, which is the same value to whoever parses it. They stand in texts only, where line feeds
/// are escaped already.
fn escape_json(json: &str) -> Cow<'_, str> {
    let hides = |c: char| c != '\n' && escape::is_hostile(c);
    if !json.contains(hides) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if hides(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}
