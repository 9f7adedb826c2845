//! Requests of a command to the proxy: a tunnel by `CONNECT` (RFC 9110, section 9.3.6) or SOCKS 5 (RFC 1928), or a
//! page over plain HTTP (RFC 9112, section 3.2.2).
//!
//! A connection carries one request. What a server could take for a second one, or for one to another host, is
//! refused: two `Host` fields, a body with two lengths, a target that is not the `Host`.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capsule_base::code::Code;
use capsule_base::url::HttpUrl;
use capsule_core::outcome::CodedError;
use httparse::{Request, Status};

/// The longest head of a request.
const HEAD_BYTES: usize = 16 * 1024;
/// The most fields of a head.
const HEAD_FIELDS: usize = 128;
/// The longest message of SOCKS: a version, a command, a name of 255 bytes with its length, a port.
const SOCKS_NAME_BYTES: usize = 255;
/// The fields of a request that are about the connection to the proxy, and the host, which is written anew.
const CONNECTION_FIELDS: [&str; 8] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// A request that names a host.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    /// The host and port, as an address over https.
    target: HttpUrl,
    kind: RequestKind,
    /// The bytes that are sent to the host first.
    first_bytes: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum RequestKind {
    /// A tunnel by `CONNECT`.
    Tunnel,
    /// A tunnel by SOCKS 5.
    Socks,
    /// A page over plain HTTP, with the method where it sends something, and the length of what it has yet to send.
    Page { sends: Option<String>, left: u64 },
}

/// Why there is no request to serve.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The request is answered with this.
    Refused(Vec<u8>),
    /// Nothing more came, or nothing can be answered.
    Ended,
}

impl From<std::io::Error> for RequestError {
    fn from(_: std::io::Error) -> Self {
        Self::Ended
    }
}

impl ProxyRequest {
    /// The host and port, as an address over https.
    pub(super) const fn target(&self) -> &HttpUrl {
        &self.target
    }

    /// `registry.example.org:443`.
    pub(super) fn host_and_port(&self) -> String {
        self.target.host_and_port()
    }

    /// The bytes that are sent to the host first.
    pub(super) fn first_bytes(&self) -> &[u8] {
        &self.first_bytes
    }

    /// The bytes that are handed on of what the command sends from now on.
    pub(super) fn left_to_send(&self) -> u64 {
        match &self.kind {
            RequestKind::Tunnel | RequestKind::Socks => u64::MAX,
            RequestKind::Page { left, .. } => *left,
        }
    }

    /// The name that a client of TLS may ask a server by; any where nothing of it could be seen.
    pub(super) fn server_name(&self) -> Option<String> {
        let is_tunnel = matches!(self.kind, RequestKind::Tunnel | RequestKind::Socks);
        is_tunnel.then(|| self.target.host().to_string())
    }

    /// The method, where it can be seen and sends something.
    pub(super) fn sends(&self) -> Option<&str> {
        match &self.kind {
            RequestKind::Page { sends, .. } => sends.as_deref(),
            RequestKind::Tunnel | RequestKind::Socks => None,
        }
    }

    /// The answer to the command once the host is reached.
    pub(super) fn accepted(&self) -> &'static [u8] {
        match self.kind {
            RequestKind::Tunnel => b"HTTP/1.1 200 Connection established\r\n\r\n",
            RequestKind::Socks => &SOCKS_DONE,
            RequestKind::Page { .. } => b"",
        }
    }

    /// The answer to the command where it is not.
    pub(super) fn refused(&self, problem: &CodedError) -> Vec<u8> {
        let is_denied = Code::class(problem.code) == capsule_base::code::FailureClass::Denied;
        match (&self.kind, is_denied) {
            (RequestKind::Socks, true) => socks_reply(SOCKS_NOT_ALLOWED).to_vec(),
            (RequestKind::Socks, false) => socks_reply(SOCKS_UNREACHABLE).to_vec(),
            (_, true) => text_reply("403 Forbidden", &denied_text(problem)),
            (_, false) => text_reply("502 Bad Gateway", &denied_text(problem)),
        }
    }
}

/// Reason, code and way forward, for the person or model that reads what the program prints of them.
fn denied_text(problem: &CodedError) -> String {
    let CodedError { code, message, suggestion } = problem;
    let suggestion = suggestion.as_deref().map(|text| format!("; {text}")).unwrap_or_default();
    format!("capsule: {message} ({code}){suggestion}")
}

/// An answer with a line of text. The reason is in its own field, too: many programs show no body of a refused
/// tunnel, and some show the status line alone.
fn text_reply(status: &str, text: &str) -> Vec<u8> {
    let plain: String = text.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' }).collect();
    let length = text.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         X-Capsule-Reason: {plain}\r\nConnection: close\r\n\r\n{text}\n"
    )
    .into_bytes()
}

/// Reads what a command asks for.
///
/// # Errors
/// Where that is no request that can be served, with what it is answered.
pub(super) fn read_request<S: Read + Write>(stream: &mut S) -> Result<ProxyRequest, RequestError> {
    let mut first = [0];
    stream.read_exact(&mut first)?;
    match first {
        [SOCKS_VERSION] => read_socks(stream),
        [byte] => read_http(stream, byte),
    }
}

fn bad_request(text: &str) -> RequestError {
    RequestError::Refused(text_reply("400 Bad Request", &format!("capsule: {text}")))
}

fn read_http<S: Read>(stream: &mut S, first: u8) -> Result<ProxyRequest, RequestError> {
    let mut head = vec![first];
    let mut buffer = [0; 4096];
    loop {
        let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS];
        let mut request = Request::new(&mut fields);
        match request.parse(&head) {
            Ok(Status::Complete(length)) => {
                let rest = head.get(length..).unwrap_or_default();
                return http_request(&request, rest);
            }
            Ok(Status::Partial) if head.len() < HEAD_BYTES => {}
            Ok(Status::Partial) => return Err(bad_request("the head of the request is too long")),
            Err(error) => return Err(bad_request(&format!("not a request of HTTP: {error}"))),
        }
        match stream.read(&mut buffer)? {
            0 => return Err(RequestError::Ended),
            read => head.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// The values of a field, by its name in small letters.
fn values<'r>(request: &'r Request<'_, '_>, name: &str) -> Vec<&'r [u8]> {
    let fields = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    fields.map(|field| field.value).collect()
}

fn http_request(request: &Request<'_, '_>, rest: &[u8]) -> Result<ProxyRequest, RequestError> {
    let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let hosts = values(request, "host");
    if hosts.len() > 1 {
        return Err(bad_request("the request names two hosts"));
    }
    if method == "CONNECT" {
        let target = parse_authority(path).ok_or_else(|| bad_request("no host and port"))?;
        return Ok(ProxyRequest { target, kind: RequestKind::Tunnel, first_bytes: rest.to_vec() });
    }
    let Ok(url) = HttpUrl::parse(path) else {
        return Err(bad_request("this is a proxy; it needs the whole URL, or `CONNECT`"));
    };
    if url.scheme() != "http" {
        return Err(bad_request("only plain HTTP is asked of a proxy; the rest needs `CONNECT`"));
    }
    let host = hosts.first().and_then(|host| std::str::from_utf8(host).ok());
    let host = host.filter(|host| !host.contains(NOT_IN_AUTHORITY));
    let host = host.and_then(|host| HttpUrl::parse(&format!("http://{host}/")).ok());
    if !host.is_some_and(|host| host.same_origin(&url)) {
        return Err(bad_request("the `Host` of the request is not that of its URL"));
    }
    let lengths = values(request, "content-length");
    let is_coded = !values(request, "transfer-encoding").is_empty();
    if lengths.len() > 1 || is_coded && !lengths.is_empty() {
        return Err(bad_request("the request has two lengths"));
    }
    if is_coded {
        let text = "capsule: a request that sends something says how long that is";
        return Err(RequestError::Refused(text_reply("411 Length Required", text)));
    }
    let length = match lengths.first() {
        Some(length) => parse_length(length).ok_or_else(|| bad_request("no length"))?,
        None => 0,
    };
    let only_fetches = matches!(method, "GET" | "HEAD" | "OPTIONS") && length == 0;
    let target =
        parse_authority(&url.host_and_port()).ok_or_else(|| bad_request("no host and port"))?;
    let mut first_bytes = page_head(request, &url);
    let came = rest.len().min(usize::try_from(length).unwrap_or(usize::MAX));
    first_bytes.extend_from_slice(rest.get(..came).unwrap_or_default());
    let sends = (!only_fetches).then(|| method.to_owned());
    let kind = RequestKind::Page { sends, left: length - came as u64 };
    Ok(ProxyRequest { target, kind, first_bytes })
}

/// The length of a body: digits and nothing else.
fn parse_length(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The head of a request as the host gets it.
fn page_head(request: &Request<'_, '_>, url: &HttpUrl) -> Vec<u8> {
    let origin = format!("{}://", url.scheme());
    let rest = url.as_str().strip_prefix(&origin).unwrap_or_default();
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    let method = request.method.unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
    let kept = request.headers.iter().filter(|field| {
        !CONNECTION_FIELDS.iter().any(|name| field.name.eq_ignore_ascii_case(name))
    });
    for field in kept {
        head.extend_from_slice(field.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(field.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    head
}

/// The characters that end an authority, or begins something else in it.
const NOT_IN_AUTHORITY: [char; 5] = ['/', '?', '#', '@', '\\'];

/// A host with a port, as an address over https.
fn parse_authority(authority: &str) -> Option<HttpUrl> {
    if authority.contains(NOT_IN_AUTHORITY) {
        return None;
    }
    HttpUrl::parse(&format!("https://{authority}/")).ok()
}

const SOCKS_VERSION: u8 = 5;
const SOCKS_NO_PASSWORD: u8 = 0;
const SOCKS_NO_METHOD: u8 = 0xff;
const SOCKS_CONNECT: u8 = 1;
const SOCKS_NOT_ALLOWED: u8 = 2;
const SOCKS_UNREACHABLE: u8 = 5;
const SOCKS_NO_COMMAND: u8 = 7;
const SOCKS_NO_ADDRESS: u8 = 8;
const SOCKS_DONE: [u8; 10] = socks_reply(0);

/// An answer without an address of ours.
const fn socks_reply(reply: u8) -> [u8; 10] {
    [SOCKS_VERSION, reply, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn read_socks<S: Read + Write>(stream: &mut S) -> Result<ProxyRequest, RequestError> {
    let mut count = [0];
    stream.read_exact(&mut count)?;
    let mut methods = vec![0; usize::from(count[0])];
    stream.read_exact(&mut methods)?;
    if !methods.contains(&SOCKS_NO_PASSWORD) {
        return Err(RequestError::Refused(vec![SOCKS_VERSION, SOCKS_NO_METHOD]));
    }
    stream.write_all(&[SOCKS_VERSION, SOCKS_NO_PASSWORD])?;
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let [version, command, _, kind] = head;
    if version != SOCKS_VERSION {
        return Err(RequestError::Ended);
    }
    let refused = |reply| Err(RequestError::Refused(socks_reply(reply).to_vec()));
    let host = match kind {
        1 => {
            let mut address = [0; 4];
            stream.read_exact(&mut address)?;
            IpAddr::V4(Ipv4Addr::from(address)).to_string()
        }
        3 => {
            let mut length = [0];
            stream.read_exact(&mut length)?;
            let mut name = [0; SOCKS_NAME_BYTES];
            let name = name.get_mut(..usize::from(length[0])).unwrap_or_default();
            stream.read_exact(name)?;
            String::from_utf8_lossy(name).into_owned()
        }
        4 => {
            let mut address = [0; 16];
            stream.read_exact(&mut address)?;
            format!("[{}]", Ipv6Addr::from(address))
        }
        _ => return refused(SOCKS_NO_ADDRESS),
    };
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    if command != SOCKS_CONNECT {
        return refused(SOCKS_NO_COMMAND);
    }
    let authority = format!("{host}:{}", u16::from_be_bytes(port));
    match parse_authority(&authority).filter(|_| !host.contains(':') || kind == 4) {
        Some(target) => {
            Ok(ProxyRequest { target, kind: RequestKind::Socks, first_bytes: Vec::new() })
        }
        None => refused(SOCKS_NOT_ALLOWED),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

    use super::*;

    /// A stream with what a command says, and what it is told.
    struct Script {
        input: std::io::Cursor<Vec<u8>>,
        output: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            // One byte at a time: a head comes in any number of pieces.
            let most = buffer.len().min(1);
            self.input.read(buffer.get_mut(..most).unwrap())
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.output.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn read(input: &[u8]) -> Result<ProxyRequest, String> {
        let mut script = Script { input: std::io::Cursor::new(input.to_vec()), output: Vec::new() };
        read_request(&mut script).map_err(|error| match error {
            RequestError::Refused(reply) => String::from_utf8_lossy(&reply).into_owned(),
            RequestError::Ended => String::from("ended"),
        })
    }

    fn target(input: &[u8]) -> String {
        match read(input) {
            Ok(request) => request.host_and_port(),
            Err(reply) => reply.lines().next().unwrap_or_default().to_owned(),
        }
    }

    /// E7, E14, E16: the host that is judged is the one that is dialled, however it is written.
    #[test]
    fn requests_name_the_host_that_is_dialled() {
        const BAD: &str = "HTTP/1.1 400 Bad Request";
        let socks = |rest: &[u8]| [&[5, 1, 0, 5, 1, 0], rest].concat();
        for (input, expected) in [
            (&b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"[..], "a.example:443"),
            (b"CONNECT A.Example.:8443 HTTP/1.1\r\n\r\n", "a.example:8443"),
            (b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n", "[::1]:80"),
            (b"CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n", "127.0.0.1:80"),
            (b"CONNECT user@a.example:443 HTTP/1.1\r\n\r\n", BAD),
            (b"CONNECT a.example:443/x HTTP/1.1\r\n\r\n", BAD),
            (b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", BAD),
            (b"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example:80"),
            (b"GET http://a.example:81/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "a.example:81"),
            (b"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", BAD),
            (b"GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", BAD),
            (b"GET http://a.example/ HTTP/1.1\r\nHost: a.example/b\r\n\r\n", BAD),
            (b"GET http://a.example/ HTTP/1.1\r\nHost: a.example#@b\r\n\r\n", BAD),
            (b"GET http://a.example/ HTTP/1.1\r\n\r\n", BAD),
            (b"GET http://u:p@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", BAD),
            (b"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", BAD),
            (b"GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", BAD),
            (b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", BAD),
            (
                b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                BAD,
            ),
            (
                b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                BAD,
            ),
            (b"nonsense\r\n\r\n", BAD),
            (b"GET http://a.exa", "ended"),
        ] {
            assert_eq!(target(input), expected, "{}", String::from_utf8_lossy(input));
        }
        assert_eq!(target(&socks(b"\x03\x09a.example\x01\xbb")), "a.example:443");
        assert_eq!(target(&socks(b"\x01\x7f\x00\x00\x01\x00\x50")), "127.0.0.1:80");
        let six = [&b"\x04"[..], &[0; 15], &[1, 0, 80]].concat();
        assert_eq!(target(&socks(&six)), "[::1]:80");
        for odd in [&b"\x03\x0ba@a.example\x01\xbb"[..], b"\x03\x0ba:1.example\x01\xbb"] {
            assert!(read(&socks(odd)).is_err(), "{odd:?}");
        }
        let bound = [5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80];
        assert_eq!(read(&bound).unwrap_err().as_bytes()[1], SOCKS_NO_COMMAND);
    }

    /// E16: one request goes on, with its own host, and nothing behind it does.
    #[test]
    fn pages_are_handed_on_without_what_is_the_proxys() {
        let request = read(
            b"GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Basic eA==\r\n\
              Connection: keep-alive\r\nAccept: */*\r\n\r\nGET http://b.example/ HTTP/1.1\r\n\r\n",
        );
        let request = request.unwrap();
        let expected =
            "GET /x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(request.first_bytes()), expected);
        assert_eq!((request.left_to_send(), request.sends()), (0, None));
    }

    proptest::proptest! {
        /// Whatever a command sends, the proxy reads a host or answers.
        #[test]
        fn nothing_breaks_the_reader(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = target(&bytes);
            let _ = target(&[b"GET http://".as_slice(), &bytes].concat());
            let _ = target(&[&[5, 1, 0, 5, 1, 0][..], &bytes].concat());
        }
    }

    /// E16: as much of a body goes on as its length says.
    #[test]
    fn a_body_ends_where_its_length_says() {
        for (method, rest, sends, length) in [
            ("POST", "Content-Length: 0\r\n\r\nabc", Some("POST"), 0),
            ("GET", "Content-Length: 3\r\n\r\na", Some("GET"), 3),
            ("PUT", "Content-Length: 3\r\n\r\nabcGET", Some("PUT"), 3),
            ("DELETE", "\r\nabc", Some("DELETE"), 0),
            ("HEAD", "Content-Length: 0\r\n\r\n", None, 0),
        ] {
            let head = format!("{method} http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{rest}");
            let request = read(head.as_bytes()).unwrap();
            let first = String::from_utf8_lossy(request.first_bytes()).into_owned();
            let came = first.split_once("\r\n\r\n").unwrap().1.len() as u64;
            assert_eq!((request.sends(), came + request.left_to_send()), (sends, length), "{head}");
            assert!(!request.first_bytes().ends_with(b"GET"), "{head}");
        }
        for (length, status) in [
            ("Content-Length: +3", "400 Bad Request"),
            ("Content-Length: 3, 4", "400 Bad Request"),
            ("Transfer-Encoding: chunked", "411 Length Required"),
        ] {
            let head =
                format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{length}\r\n\r\n");
            assert_eq!(target(head.as_bytes()), format!("HTTP/1.1 {status}"), "{head}");
        }
    }
}
