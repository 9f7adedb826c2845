//! The transport over HTTP on loopback: a message of the client in each request, with the token of this server.
//!
//! One client is served at a time: who begins with `initialize` takes the place of the client before. A request has a TCP
//! connection of its own, whose thread reads it within bounds and passes it on.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use serde_json::Value;

use crate::mcp::connection::Connection;
use crate::mcp::host::McpHost;
use crate::mcp::http_request::{Head, random_text, read_head};
use crate::mcp::message::{Message, parse};
use crate::mcp::outlet::{MessageSink, Outlet};
use crate::mcp::reception;
use crate::mcp::server::McpServer;

/// A place where clients are served over HTTP.
#[derive(Debug)]
pub struct HttpDoor {
    listener: TcpListener,
    port: u16,
    token: String,
}

impl HttpDoor {
    /// Opens it at an address of loopback; port 0 is any that is free.
    ///
    /// # Errors
    /// When the address is none of loopback, or cannot be had.
    pub fn open(address: &str) -> Result<Self, CodedError> {
        let read: std::net::SocketAddr = address.parse().map_err(|_| {
            let message = format!("`{address}` is no address with a port, such as `127.0.0.1:0`");
            CodedError::new(Code::Usage, message)
        })?;
        if !read.ip().is_loopback() {
            let message =
                format!("`{address}` is no address of loopback: other machines could call tools");
            return Err(CodedError::new(Code::Usage, message).with_suggestion("use `127.0.0.1:0`"));
        }
        let unable = |error: &dyn std::fmt::Display| {
            CodedError::new(
                Code::EngineFault,
                format!("`{address}` cannot be listened at: {error}"),
            )
        };
        let listener = TcpListener::bind(read).map_err(|error| unable(&error))?;
        let port = listener.local_addr().map_err(|error| unable(&error))?.port();
        let token = random_text().map_err(|error| unable(&error))?;
        Ok(Self { listener, port, token })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        let host = self.listener.local_addr().map(|address| address.to_string());
        format!("http://{}/mcp", host.unwrap_or_default())
    }

    /// What a client has to send as `Authorization: Bearer TOKEN`.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// Serves clients at a door until the process is asked to end.
///
/// # Errors
/// When no thread can be started.
pub fn serve_http(host: &mut dyn McpHost, door: HttpDoor) -> Result<(), CodedError> {
    let connection = Arc::new(Connection::new(host));
    let HttpDoor { listener, port, token } = door;
    let state = Arc::new(HttpState {
        connection: Arc::clone(&connection),
        names: [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")],
        authorization: format!("Bearer {token}"),
        session: Mutex::default(),
        reading: AtomicUsize::new(0),
    });
    // The thread blocks for as long as no client comes, so the process does not wait for it to end.
    McpServer::new(host, connection).run_beside("door", move || accept_all(&listener, &state))
}

/// What the threads of requests share.
struct HttpState {
    connection: Arc<Connection>,
    /// What this server is called.
    names: [String; 3],
    authorization: String,
    /// The session of the client that began.
    session: Mutex<Option<String>>,
    /// How many requests are read now.
    reading: AtomicUsize,
}

fn accept_all(listener: &TcpListener, state: &Arc<HttpState>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Too many files are open, or the like.
            thread::sleep(limits::MCP_POLL);
            continue;
        };
        if state.reading.fetch_add(1, Ordering::SeqCst) >= limits::MCP_REQUESTS {
            state.reading.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let shared = Arc::clone(state);
        let serve = move || {
            // A peer that goes away is told nothing.
            let _ = shared.serve(stream);
            shared.reading.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::Builder::new().name("request".into()).spawn(serve).is_err() {
            state.reading.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl HttpState {
    /// Reads a request, and passes its message on.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(limits::MCP_PEER_TIME))?;
        stream.set_write_timeout(Some(limits::MCP_PEER_TIME))?;
        let (head, mut body) = match read_head(&mut stream) {
            Ok(read) => read,
            Err(status) => return refuse(&mut stream, status),
        };
        let length = match self.judge(&head) {
            Ok(length) => length,
            Err(status) => return refuse(&mut stream, status),
        };
        if head.method == "GET" {
            return self.listen(&head, stream);
        }
        if head.method == "DELETE" {
            let ended = self.end_session(head.session.as_deref());
            return refuse(&mut stream, if ended { "204 No Content" } else { NO_SESSION });
        }
        body.truncate(length);
        let rest = u64::try_from(length.saturating_sub(body.len())).unwrap_or(0);
        (&stream).take(rest).read_to_end(&mut body)?;
        match parse(&body) {
            _ if body.len() < length => refuse(&mut stream, "400 Bad Request"),
            Err((id, error)) => {
                let mut sink = HttpSink { stream, id, session: None, is_stream: false };
                sink.answer("400 Bad Request", &error.answer(&sink.id))
            }
            Ok(message) => self.take(message, &head, stream),
        }
    }

    /// The length of the body of a request that may be read.
    fn judge(&self, head: &Head) -> Result<usize, &'static str> {
        let is_name = |name: &str| self.names.iter().any(|known| known == name);
        if !head.host.as_deref().is_some_and(is_name) {
            return Err("421 Misdirected Request");
        }
        let is_ours = |origin: &str| origin.strip_prefix("http://").is_some_and(is_name);
        if !head.origin.as_deref().is_none_or(is_ours) {
            return Err("403 Forbidden");
        }
        let given = head.authorization.as_deref().unwrap_or_default();
        if !is_same(given.as_bytes(), self.authorization.as_bytes()) {
            return Err("401 Unauthorized");
        }
        if head.path != "/mcp" {
            return Err("404 Not Found");
        }
        match head.method.as_str() {
            "DELETE" | "GET" => return Ok(0),
            "POST" => {}
            _ => return Err("405 Method Not Allowed"),
        }
        if !head.is_json {
            return Err("415 Unsupported Media Type");
        }
        match head.length {
            None => Err("411 Length Required"),
            Some(length) if length > limits::ARGUMENT_BYTES => Err("413 Content Too Large"),
            Some(length) => Ok(length),
        }
    }

    fn take(&self, message: Message, head: &Head, mut stream: TcpStream) -> io::Result<()> {
        let is_current = match &head.session {
            None => None,
            given => Some(*given == *self.session.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        if is_current == Some(false) {
            return refuse(&mut stream, NO_SESSION);
        }
        let Message::Request { id, method, params } = &message else {
            reception::receive(message, &self.connection, &Outlet::new(Nowhere));
            return refuse(&mut stream, "202 Accepted");
        };
        let speaks_for_itself =
            params.get("_meta").is_some_and(crate::mcp::revision::names_revision);
        let session = match method.as_str() {
            "initialize" => Some(self.begin_session()?),
            _ if is_current.is_none() && !speaks_for_itself => {
                return refuse(&mut stream, "400 Bad Request");
            }
            _ => None,
        };
        let sink = HttpSink { stream, id: id.clone(), session, is_stream: false };
        reception::receive(message, &self.connection, &Outlet::new(sink));
        Ok(())
    }

    /// Opens the stream in which the client that began hears of changes.
    fn listen(&self, head: &Head, mut stream: TcpStream) -> io::Result<()> {
        // Nothing is held while the peer is waited for.
        let current = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match &head.session {
            None => return refuse(&mut stream, "400 Bad Request"),
            given if *given != current => return refuse(&mut stream, NO_SESSION),
            _ => {}
        }
        stream.write_all(STREAM_HEAD)?;
        let sink = HttpSink { stream, id: Value::Null, session: None, is_stream: true };
        // Where it has no place, the stream ends.
        let _ = self.connection.listeners.add(Outlet::new(sink), None);
        Ok(())
    }

    /// Begins a session, in the place of the one before.
    fn begin_session(&self) -> io::Result<String> {
        let new = random_text()?;
        self.connection.forget_client();
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
        Ok(new)
    }

    /// Ends the session of a client. Whether it was one.
    fn end_session(&self, given: Option<&str>) -> bool {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = given.is_some() && given == session.as_deref();
        if is_current {
            *session = None;
            self.connection.forget_client();
        }
        is_current
    }
}

const NO_SESSION: &str = "404 Not Found";

/// Compares in a time that says nothing of where texts differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// The head of an answer that is a stream of events.
const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n";

/// An answer without a body.
fn refuse(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    let allow = if status.starts_with("405") { "Allow: POST, GET, DELETE\r\n" } else { "" };
    let text =
        format!("HTTP/1.1 {status}\r\n{allow}Content-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes())?;
    close(stream)
}

/// Closes a connection so that the peer reads the answer first, whatever of its request was not read.
fn close(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let most = u64::try_from(limits::ARGUMENT_BYTES).unwrap_or(0);
    io::copy(&mut stream.take(most), &mut io::sink()).map(drop)
}

/// Takes what answers nothing.
struct Nowhere;

impl MessageSink for Nowhere {
    fn send(&mut self, _: &Value) -> io::Result<()> {
        Ok(())
    }
}

/// The answer to a request: one message, or a stream of events where others come before it.
struct HttpSink {
    stream: TcpStream,
    id: Value,
    /// The session that began with the request.
    session: Option<String>,
    is_stream: bool,
}

impl HttpSink {
    fn answer(&mut self, status: &str, message: &Value) -> io::Result<()> {
        let body = message.to_string();
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n\
             Connection: close\r\n\r\n",
            body.len(),
            session.unwrap_or_default()
        );
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body.as_bytes())?;
        self.stream.shutdown(Shutdown::Write)
    }
}

impl MessageSink for HttpSink {
    fn send(&mut self, message: &Value) -> io::Result<()> {
        let is_last = message.get("method").is_none() && message.get("id") == Some(&self.id);
        if is_last && !self.is_stream {
            return self.answer("200 OK", message);
        }
        if !self.is_stream {
            self.is_stream = true;
            self.stream.write_all(STREAM_HEAD)?;
        }
        self.stream.write_all(format!("event: message\ndata: {message}\n\n").as_bytes())?;
        if is_last { self.stream.shutdown(Shutdown::Write) } else { Ok(()) }
    }
}
