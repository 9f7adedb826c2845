//! What commands connect to: an HTTP server on loopback that serves three things, and a bare relay before it.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use crate::Answer;

/// What is written and read at once.
const BLOCK: usize = 1 << 16;

/// Serves `/short`, `/package` and everything else, which is long, on a port of loopback, to the end of the program.
pub(crate) fn serve(package: Vec<u8>, long: u64) -> Answer<u16> {
    let package = Arc::new(package);
    listen(move |stream| answer(&stream, &package, long))
}

/// Hands on what it is sent, both ways, in blocks, and does nothing else.
pub(crate) fn relay(to: u16) -> Answer<u16> {
    listen(move |client| {
        let server = TcpStream::connect(("127.0.0.1", to))?;
        server.set_nodelay(true)?;
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || hand_on(&from_client, &to_server));
        hand_on(&server, &client)
    })
}

/// Has each connection to a free port taken by a thread of its own.
fn listen(
    serve: impl Fn(TcpStream) -> std::io::Result<()> + Clone + Send + 'static,
) -> Answer<u16> {
    let failed = |error: std::io::Error| format!("no port of loopback: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            // A body is sent before its head is acknowledged.
            let _ = stream.set_nodelay(true);
            // A client that leaves early knows why.
            std::thread::spawn(move || serve(stream));
        }
    });
    Ok(port)
}

fn hand_on(mut from: &TcpStream, mut to: &TcpStream) -> std::io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let read = from.read(&mut block)?;
        let Some(text) = block.get(..read).filter(|text| !text.is_empty()) else {
            return to.shutdown(Shutdown::Write);
        };
        to.write_all(text)?;
    }
}

fn answer(mut stream: &TcpStream, package: &[u8], long: u64) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (length, body): (u64, Box<dyn Read + '_>) = match first.split(' ').nth(1) {
        Some("/short") => (2, Box::new(&b"ok"[..])),
        Some("/package") => (u64::try_from(package.len()).unwrap_or(u64::MAX), Box::new(package)),
        _ => (long, Box::new(std::io::repeat(b'x').take(long))),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut body = BufReader::with_capacity(BLOCK, body);
    loop {
        let text = body.fill_buf()?;
        let length = text.len();
        if length == 0 {
            return Ok(());
        }
        stream.write_all(text)?;
        body.consume(length);
    }
}
