//! A small HTTP server on loopback: real connections, answers as bytes, nothing clever.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The path with its query.
    pub target: String,
    /// The headers as lines, names in lower case.
    pub headers: Vec<String>,
    /// The body, as long as the headers say.
    pub body: Vec<u8>,
}

/// What answers: gets the request and the connection, and writes whatever it wants.
type Answer = dyn Fn(&HttpRequest, &mut TcpStream) + Send + Sync;

/// A server that lives as long as this value.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves on a free port of loopback.
    ///
    /// # Panics
    /// When no port can be had.
    pub fn start(answer: impl Fn(&HttpRequest, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let answer: Arc<Answer> = Arc::new(answer);
        let thread = {
            let (seen, stop) = (Arc::clone(&seen), Arc::clone(&stop));
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                    // A slow answer does not keep the next one waiting.
                    std::thread::spawn(move || serve(stream, &seen, &*answer));
                }
            })
        };
        Self { address, requests: seen, stop, thread: Some(thread) }
    }

    /// Serves the same bytes to everybody.
    #[must_use]
    pub fn fixed(status: &str, headers: &str, body: &str) -> Self {
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        Self::start(move |_, stream| drop(stream.write_all(answer.as_bytes())))
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// A URL on this server.
    #[must_use]
    pub fn url(&self, target: &str) -> String {
        format!("http://127.0.0.1:{}{target}", self.port())
    }

    /// The requests so far.
    ///
    /// # Panics
    /// When a thread of the server panicked.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<HttpRequest>>, answer: &Answer) {
    let Ok(read_half) = stream.try_clone() else { return };
    let mut reader = BufReader::new(read_half);
    let mut lines = reader.by_ref().lines();
    let Some(Ok(first)) = lines.next() else { return };
    let target = first.split(' ').nth(1).unwrap_or("").to_owned();
    let headers: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .map(|line| match line.split_once(':') {
            Some((name, value)) => format!("{}:{value}", name.to_lowercase()),
            None => line,
        })
        .collect();
    let length =
        headers.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request = HttpRequest { target, headers, body };
    seen.lock().unwrap().push(request.clone());
    answer(&request, &mut stream);
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // One more connection wakes the thread that waits for the next.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
