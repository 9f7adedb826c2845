//! The transport over standard input and output: a message a line.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use capsule_base::limits;
use capsule_core::outcome::CodedError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::Value;

use crate::mcp::connection::Connection;
use crate::mcp::host::McpHost;
use crate::mcp::message::{INVALID_REQUEST, RpcError, parse};
use crate::mcp::outlet::{LineSink, Outlet};
use crate::mcp::reception;
use crate::mcp::server::McpServer;

/// Serves the client at the other end of standard input and output until it goes, or the process is asked to end.
///
/// # Errors
/// When no thread can be started.
pub fn serve_stdio(host: &mut dyn McpHost) -> Result<(), CodedError> {
    let connection = Arc::new(Connection::new(host));
    let reader = Arc::clone(&connection);
    let when_ended = move || {
        wait_for_hangup(&io::stdout());
        reader.stop();
    };
    // A lock of standard input cannot go to another thread.
    let input = BufReader::new(io::stdin());
    serve_connection(host, connection, (input, io::stdout(), when_ended))
}

/// Serves a client whose messages are in this input, a line each, until all of them are answered.
///
/// # Errors
/// When no thread can be started.
pub fn serve_lines(
    host: &mut dyn McpHost,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), CodedError> {
    let connection = Arc::new(Connection::new(host));
    serve_connection(host, connection, (input, output, || ()))
}

fn serve_connection(
    host: &mut dyn McpHost,
    connection: Arc<Connection>,
    (mut input, output, when_ended): (
        impl BufRead + Send + 'static,
        impl Write + Send + 'static,
        impl FnOnce() + Send + 'static,
    ),
) -> Result<(), CodedError> {
    let outlet = Outlet::new(LineSink(output));
    let reader = Arc::clone(&connection);
    let read = move || {
        read_lines(&mut input, (&reader, &outlet));
        reader.end();
        when_ended();
    };
    // The thread blocks for as long as the client says nothing, so the process does not wait for it to end.
    McpServer::new(host, connection).run_beside("client", read)
}

/// Waits until nothing reads what is written here any more: the client has ended. Without a reader that can end, for ever.
fn wait_for_hangup(output: &impl AsFd) {
    let mut watched = [PollFd::new(output, PollFlags::empty())];
    while let Err(Errno::INTR) | Ok(0) = poll(&mut watched, None) {}
}

fn read_lines(input: &mut dyn BufRead, (connection, outlet): (&Connection, &Outlet)) {
    let mut line = Vec::new();
    loop {
        match read_line(input, &mut line) {
            Line::Whole if line.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole => receive(&line, (connection, outlet)),
            Line::TooLong => {
                let most = limits::ARGUMENT_BYTES;
                let error =
                    RpcError::new(INVALID_REQUEST, format!("a message has at most {most} bytes"));
                let _ = outlet.send(&error.answer(&Value::Null));
            }
            Line::End => return,
        }
    }
}

enum Line {
    /// A line that ended.
    Whole,
    /// A line with more than a message may have, of which nothing was kept.
    TooLong,
    /// No more lines. A last line without an end is no message.
    End,
}

/// Reads a line, and keeps no more of it than a message may have.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> Line {
    line.clear();
    let mut is_too_long = false;
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(available) if !available.is_empty() => available,
            Ok(_) | Err(_) => return Line::End,
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
        is_too_long |= line.len().saturating_add(piece.len()) > limits::ARGUMENT_BYTES;
        if is_too_long {
            *line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        match (end, is_too_long) {
            (Some(_), true) => return Line::TooLong,
            (Some(_), false) => return Line::Whole,
            (None, _) => {}
        }
    }
}

/// Takes one message.
fn receive(bytes: &[u8], (connection, outlet): (&Connection, &Outlet)) {
    match parse(bytes) {
        Err((id, error)) => drop(outlet.send(&error.answer(&id))),
        Ok(message) => reception::receive(message, connection, outlet),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_line_is_kept_up_to_the_size_of_a_message() {
        let most = limits::ARGUMENT_BYTES;
        let long = io::repeat(b'x').take(u64::try_from(most).unwrap_or(0) + 1);
        let input = long.chain(&b"\nshort\n\nwithout an end"[..]);
        let (mut input, mut line) = (BufReader::new(input), Vec::new());
        assert!(matches!(read_line(&mut input, &mut line), Line::TooLong));
        assert_eq!(line.capacity(), 0);
        assert!(matches!(read_line(&mut input, &mut line), Line::Whole));
        assert_eq!(line, b"short");
        assert!(matches!(read_line(&mut input, &mut line), Line::Whole));
        assert!(matches!(read_line(&mut input, &mut line), Line::End));
    }
}
